"""The embedded bus: events per second, latency, and what order costs beside `none`.

Every guarantee does the same work in one process (memory, SQLite) and across three (a publisher,
the owner of the managers, a subscriber, on one SQLite file). A unit is an event of about 100 bytes,
published with a receipt and delivered to every subscriber. `none` is the yardstick of the ratios:
the same bus, without order. Beside it stand the bare commits of the same disk: nothing that waits
for the disk event by event can be faster.

One at a time on SQLite every event waits for one sync, whatever the guarantee: look at the spread
and at the bare commits before the ratios.
"""

from __future__ import annotations

import asyncio
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from time import perf_counter, time
from typing import Any

from rich.console import Console
from rich.table import Table

import inorder
from benches.measure import Contest

GUARANTEES = ("none", "fifo", "total")
MANY = 4000
FEW = 150
ROUNDS = 5


def value(number: int) -> dict[str, Any]:
    return {"id": number, "amount": 12.5, "text": "x" * 70}


class Stage:
    """Buses and subscriptions that stay open between rounds."""

    def __init__(self, url: str, guarantee: str, subscribers: int) -> None:
        self._loop = asyncio.new_event_loop()
        self._stack = AsyncExitStack()
        self._loop.run_until_complete(self._open(url, guarantee, subscribers))

    async def _open(self, url: str, guarantee: str, subscribers: int) -> None:
        enter = self._stack.enter_async_context
        self._bus = await enter(inorder.connect(url, guarantee, deadline=60))
        self._events = [await enter(self._bus.subscribe("t")) for _ in range(subscribers)]

    def many(self) -> int:
        """All in one call; done when everybody has all of it."""

        async def round() -> None:
            await asyncio.gather(
                self._bus.publish_many("t", [value(n) for n in range(MANY)]),
                *(self._read(events, MANY) for events in self._events),
            )

        self._loop.run_until_complete(round())
        return MANY

    def singly(self) -> int:
        """One after the other, each with its receipt."""

        async def round() -> None:
            for n in range(FEW):
                await self._bus.publish("t", value(n))
            await asyncio.gather(*(self._read(events, FEW) for events in self._events))

        self._loop.run_until_complete(round())
        return FEW

    def latencies(self) -> list[float]:
        """From the call of publish to the event in the subscriber's hands, one at a time."""

        async def round() -> list[float]:
            found = []
            for n in range(FEW):
                started = perf_counter()
                publishing = asyncio.create_task(self._bus.publish("t", value(n)))
                await self._events[0].next(10)
                found.append(perf_counter() - started)
                await publishing
            return found

        return self._loop.run_until_complete(round())

    async def _read(self, events: Any, count: int) -> None:
        for _ in range(count):
            await events.next(60)

    def close(self) -> None:
        self._loop.run_until_complete(self._stack.aclose())
        self._loop.close()


class Troupe:
    """A publisher, an owner of the managers and a subscriber, each a process."""

    def __init__(self, url: str, guarantee: str) -> None:
        # The first to come owns the managers, so the others wait for it.
        self._processes = []
        for role in self._roles():
            process = subprocess.Popen(
                [sys.executable, "-m", "benches.bus", role, url, guarantee],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
            )  # fmt: skip
            self._processes.append(process)
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        _, self._subscriber, self._publisher = self._processes

    def _roles(self) -> Iterator[str]:
        yield "keep"
        yield "subscribe"
        yield "publish"

    def _ask(self, process: subprocess.Popen[str], line: str) -> None:
        assert process.stdin is not None
        process.stdin.write(line + "\n")
        process.stdin.flush()

    def _hear(self, process: subprocess.Popen[str]) -> list[float]:
        assert process.stdout is not None
        return [float(word) for word in process.stdout.readline().split()]

    def many(self) -> int:
        self._run("many", MANY)
        return MANY

    def singly(self) -> int:
        self._run("singly", FEW)
        return FEW

    def latencies(self) -> list[float]:
        return self._run("singly", FEW)

    def _run(self, how: str, count: int) -> list[float]:
        self._ask(self._subscriber, str(count))
        self._ask(self._publisher, f"{how} {count}")
        self._hear(self._publisher)
        return self._hear(self._subscriber)

    def close(self) -> None:
        for process in reversed(self._processes):
            assert process.stdin is not None
            process.stdin.close()
            process.wait(30)


async def work(role: str, url: str, guarantee: str) -> None:
    """One process of a troupe: reads orders, says what it measured."""
    loop = asyncio.get_running_loop()
    async with inorder.connect(url, guarantee, deadline=60) as bus, AsyncExitStack() as stack:
        subscribing = role == "subscribe"
        events = await stack.enter_async_context(bus.subscribe("t")) if subscribing else None
        print("ready", flush=True)
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            found: list[float] = []
            how, _, count = line.strip().rpartition(" ")
            if events is not None:
                for _ in range(int(count)):
                    found.append(-(await events.next(60)).published_at + time())
            elif how == "many":
                await bus.publish_many("t", [value(n) for n in range(int(count))])
            else:
                for n in range(int(count)):
                    await bus.publish("t", value(n))
            print(*found, flush=True)


@contextmanager
def place(folder: Path, kind: str, guarantee: str, number: int) -> Iterator[Any]:
    """Where a guarantee works, open for all rounds."""
    file = f"sqlite:///{folder}/{kind}-{guarantee}-{number}.db"
    if kind == "processes":
        made: Stage | Troupe = Troupe(file, guarantee)
    else:
        url = f"memory://{guarantee}-{number}" if kind == "memory" else file
        made = Stage(url, guarantee, number)
    try:
        yield made
    finally:
        made.close()


def contest(folder: Path, kind: str, subscribers: int, job: str) -> None:
    title = f"{kind}, {subscribers} subscriber{'s' if subscribers > 1 else ''}, {job}"
    race = Contest(title, "events", ROUNDS)
    tables: dict[str, list[float]] = {}
    with Entered() as stack:
        for guarantee in GUARANTEES:
            made = stack.enter(place(folder, kind, guarantee, subscribers))
            getattr(made, job)()  # once to warm up
            race.add(guarantee, getattr(made, job))
            if job == "singly" and subscribers == 1:
                tables[guarantee] = sorted(made.latencies())
        race.run("python -m benches.bus")
    if tables:
        show_latencies(kind, tables)


class Entered:
    """Leaves in any case what was entered, last first."""

    def __enter__(self) -> Entered:
        self._entered: list[Any] = []
        return self

    def enter(self, manager: Any) -> Any:
        found = manager.__enter__()
        self._entered.append(manager)
        return found

    def __exit__(self, *error: object) -> None:
        for manager in reversed(self._entered):
            manager.__exit__(None, None, None)


def show_latencies(kind: str, tables: dict[str, list[float]]) -> None:
    table = Table(title=f"{kind}: publish to delivery, ms, one at a time")
    for heading in ("guarantee", "p50", "p99"):
        table.add_column(heading, justify="right")
    for guarantee, found in tables.items():
        half, most = found[len(found) // 2], found[int(len(found) * 0.99)]
        table.add_row(guarantee, f"{half * 1000:.2f}", f"{most * 1000:.2f}")
    Console(width=100).print(table)


def floor(folder: Path) -> None:
    """What the disk can do: bare syncs, and bare commits of one row."""
    race = Contest("the disk below", "commits", ROUNDS)
    handle = os.open(folder / "bare", os.O_CREAT | os.O_WRONLY)
    db = sqlite3.connect(folder / "bare.db", isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("CREATE TABLE t (x BLOB)")

    def syncs() -> int:
        for _ in range(100):
            os.write(handle, b"x" * 4096)
            os.fsync(handle)
        return 100

    def commits() -> int:
        for _ in range(100):
            db.execute("INSERT INTO t VALUES (?)", (b"x" * 100,))
        return 100

    race.add("fsync of 4 KiB", syncs)
    race.add("SQLite, one row", commits)
    race.run("python -m benches.bus")
    os.close(handle)
    db.close()


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        floor(folder)
        for kind, subscribers in (("memory", 1), ("memory", 4), ("sqlite", 1), ("sqlite", 4)):
            contest(folder, kind, subscribers, "many")
            contest(folder, kind, subscribers, "singly")
        contest(folder, "processes", 1, "many")
        contest(folder, "processes", 1, "singly")
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"memory of this process at its largest: {used:.0f} MiB")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(work(*sys.argv[1:]))
    else:
        main()
