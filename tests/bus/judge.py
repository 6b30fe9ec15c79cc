"""Live runs before the same judges as everything else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from inorder.check import History, judge
from inorder.check.ending import Ending
from inorder.check.trace import read_table

# What a log keeps under every guarantee: an order of everything, nothing lost, nothing twice.
PROMISES = (
    "total", "fifo", "per_publisher", "causal", "causal_across_topics", "realtime", "unique",
    "reliable", "filter", "accepted",
)  # fmt: skip

DONE = Ending(quiet=True, ended_at=0.0, within=0.0)


def run(job: Callable[[], Coroutine[Any, Any, Any]], limit_s: float = 30.0) -> Any:
    """Run a test; one that hangs fails."""

    async def limited() -> Any:
        return await asyncio.wait_for(job(), limit_s)

    return asyncio.run(limited())


def gather(folders: Iterable[Path], within: float = 0.0) -> History:
    """The traces of several buses as one history. Nothing is under way any more, and every
    subscription has read what was there for it: the caller says so by asking, or gives a window to
    those that ended before."""
    tables: dict[str, list[Any]] = {"deliveries": [], "events": [], "subscriptions": []}
    for folder in folders:
        for table, rows in tables.items():
            if (folder / f"{table}.jsonl").exists():
                rows += read_table(folder, table)
    ending = replace(DONE, within=within)
    return History(**tables, complete=True, ending=ending, clock_error=0.0, source="live")


def judged(history: History) -> dict[str, int]:
    """Fail if a promise is broken; what was looked at, so that a test can say it was something."""
    verdicts = judge(history, PROMISES)
    for promise, verdict in verdicts.items():
        assert not verdict.broken, (promise, verdict.witness, verdict.also)
        assert verdict.judged, (promise, verdict.why)
    return verdicts["reliable"].counts


def traces(buses: Iterable[Any]) -> None:
    """Put on disk what happened so far."""
    for bus in buses:
        bus.trace.flush()


async def take(events: Any, count: int, patience_s: float = 10.0) -> list[Any]:
    """So many events of a subscription."""
    return [await events.next(patience_s) for _ in range(count)]


async def none_left(events: Any) -> None:
    """Nothing is there for this subscription."""
    try:
        event = await events.next(0.05)
    except TimeoutError:
        return
    raise AssertionError(f"{event} is there")


async def until(true: Callable[[], bool], patience_s: float = 10.0) -> None:
    loop = asyncio.get_running_loop()
    end = loop.time() + patience_s
    while not true():
        assert loop.time() < end, "it never came about"
        await asyncio.sleep(0.005)


class Failing:
    """A broker whose appends fail, or wait, while it is told so."""

    def __init__(self, bus: Any) -> None:
        self._inner = bus._broker
        self.error: Exception | None = None
        self.blocked: asyncio.Event | None = None
        # Whether an append that fails is stored all the same.
        self.stores = False
        self.appends = 0
        bus._broker = bus._publisher._broker = self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def append(self, *rest: Any) -> Any:
        self.appends += 1
        error = self.error
        if self.blocked is not None:
            await self.blocked.wait()
        if error is None:
            return await self._inner.append(*rest)
        if self.stores:
            await self._inner.append(*rest)
        raise error


def numbers(events: list[Any]) -> list[int]:
    return [event.value["n"] for event in events]


async def counted(bus: Any, topic: str, *range_: int) -> list[Any]:
    return await bus.publish_many(topic, [{"n": n} for n in range(*range_)])
