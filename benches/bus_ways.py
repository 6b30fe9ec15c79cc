"""One way to publish and deliver, as a process that is asked line by line.

`PYTHON benches/bus_ways.py WAY FOLDER` runs under the Python of the environment that has the way
installed (benches/bus_rivals.py), and imports nothing else of ours. A line is a verb and numbers;
the answer is a line: seconds, and then figures. Everything is an event of 100 bytes in MessagePack
by msgspec, on both sides.

| verb        | does                                                             |
|-------------|------------------------------------------------------------------|
| many N      | publish N at once, and have all of them                          |
| singly N    | publish one, have it, and so on                                  |
| tasks K N   | K callers, each publishes N one after the other; have all        |
| paced N R   | publish N at R a second; each caller's wait for its receipt      |
| hear N      | be handed N events that another process publishes; how old each is |
| replay      | have everything from the beginning                               |
| topics N K  | publish N one after the other on K topics; bytes an event        |
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

encode, decode = msgspec.msgpack.encode, msgspec.msgpack.decode


def value(number: int) -> dict[str, Any]:
    return {"id": number, "amount": 12.5, "text": "x" * 70}


class Bus:
    """inorder, of today or before: the API of these verbs is the same."""

    def __init__(self, folder: Path, guarantee: str = "total", options: str = "") -> None:
        import inorder

        self.path = folder / "bus.db"
        self.url = f"sqlite:///{self.path}{options}"
        self.loop = asyncio.new_event_loop()
        self.bus = inorder.connect(self.url, guarantee, deadline=60)
        self.do(self.bus.open())
        self.events: Any = None
        self.published = 0

    def do(self, job: Any) -> Any:
        return self.loop.run_until_complete(job)

    async def listening(self) -> Any:
        if self.events is None:
            self.events = await self.bus.subscribe("t").__aenter__()
        return self.events

    async def take(self, count: int) -> None:
        events = await self.listening()
        for _ in range(count):
            await events.next(60)

    def ready(self) -> None:
        self.do(self.listening())

    def many(self, count: int) -> int:
        async def job() -> None:
            values = [value(n) for n in range(count)]
            await asyncio.gather(self.bus.publish_many("t", values), self.take(count))

        self.do(job())
        self.published += count
        return count

    def singly(self, count: int) -> int:
        async def job() -> None:
            for n in range(count):
                await self.bus.publish("t", value(n))
                await self.take(1)

        self.do(job())
        self.published += count
        return count

    def tasks(self, callers: int, count: int) -> int:
        async def one() -> None:
            for n in range(count):
                await self.bus.publish("t", value(n))

        async def job() -> None:
            some = [one() for _ in range(callers)]
            await asyncio.gather(*some, self.take(callers * count))

        self.do(job())
        return callers * count

    def paced(self, count: int, rate: int) -> list[float]:
        waits = []

        async def one(n: int) -> None:
            started = time.perf_counter()
            await self.bus.publish("t", value(n))
            waits.append(time.perf_counter() - started)

        async def job() -> None:
            start, some = time.perf_counter(), []
            for n in range(count):
                left = start + n / rate - time.perf_counter()
                await asyncio.sleep(max(0.0, left))
                some.append(asyncio.create_task(one(n)))
            await asyncio.gather(*some)

        self.do(job())
        return waits

    def hear(self, count: int) -> list[float]:
        async def job() -> list[float]:
            events = await self.listening()
            print("hearing", flush=True)
            return [-(await events.next(60)).published_at + time.time() for _ in range(count)]

        return list(self.do(job()))

    def replay(self) -> int:
        async def job() -> int:
            async with self.bus.subscribe("t", start="earliest") as events:
                for _ in range(self.published):
                    assert (await events.next(60)).value["id"] >= 0
            return self.published

        return int(self.do(job()))

    def topics(self, count: int, topics: int) -> list[float]:
        names = [f"topic.{n}" for n in range(topics)]

        async def job() -> None:
            for name in names:
                await self.bus.publish(name, value(0))
            before = self.size()
            started = time.perf_counter()
            for n in range(count):
                await self.bus.publish(names[n % topics], value(n))
            took = time.perf_counter() - started
            found.extend([took, (self.size() - before) / count])

        found: list[float] = []
        self.do(job())
        return found

    def size(self) -> int:
        """Bytes of the file, without SQLite's log."""
        db = sqlite3.connect(self.path)
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        db.close()
        return self.path.stat().st_size


class Sqlite:
    """Bare sqlite3: a row an event, as durable. With a thread, as an asyncio program has it."""

    def __init__(self, folder: Path, thread: bool = False) -> None:
        self.db = sqlite3.connect(folder / "bare.db", isolation_level=None, check_same_thread=False)
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute("PRAGMA synchronous = FULL")
        self.db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, topic TEXT, value BLOB)")
        self.last = 0
        self.pool = ThreadPoolExecutor(1) if thread else None
        self.loop = asyncio.new_event_loop()

    def ready(self) -> None:
        """It is."""

    def insert(self, values: list[dict[str, Any]]) -> None:
        self.db.execute("BEGIN IMMEDIATE")
        rows = [("t", encode(each)) for each in values]
        self.db.executemany("INSERT INTO t (topic, value) VALUES (?, ?)", rows)
        self.db.execute("COMMIT")

    def select(self, above: int) -> list[Any]:
        query = "SELECT id, topic, value FROM t WHERE id > ? ORDER BY id"
        return [(n, topic, decode(body)) for n, topic, body in self.db.execute(query, (above,))]

    def have(self) -> int:
        rows = self.select(self.last)
        self.last = rows[-1][0]
        return len(rows)

    def many(self, count: int) -> int:
        self.insert([value(n) for n in range(count)])
        return self.have()

    def singly(self, count: int) -> int:
        async def job() -> None:
            for n in range(count):
                await self.loop.run_in_executor(self.pool, self.insert, [value(n)])
                await self.loop.run_in_executor(self.pool, self.have)

        self.loop.run_until_complete(job())
        return count

    def replay(self) -> int:
        return len(self.select(0))


class Uma:
    """UmaDB: a server beside, which this process starts."""

    def __init__(self, folder: Path) -> None:
        import socket

        import umadb

        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [str(Path(sys.executable).parent / "umadb"), "--listen", f"127.0.0.1:{port}"]
        self.server = subprocess.Popen(
            [*command, "--db-path", str(folder / "uma.db")], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        end = time.monotonic() + 20
        while True:
            try:
                self.client = umadb.Client(f"http://127.0.0.1:{port}")
                self.client.head()
                break
            except Exception:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)
        self.made = umadb.Event
        self.last = 0

    def ready(self) -> None:
        """It is."""

    def close(self) -> None:
        self.server.kill()
        self.server.wait()

    def insert(self, values: list[dict[str, Any]]) -> None:
        self.client.append([self.made("t", encode(each)) for each in values])

    def have(self) -> int:
        rows = [(e.position, decode(e.event.data)) for e in self.client.read(start=self.last + 1)]
        self.last = rows[-1][0]
        return len(rows)

    def many(self, count: int) -> int:
        self.insert([value(n) for n in range(count)])
        return self.have()

    def singly(self, count: int) -> int:
        for n in range(count):
            self.insert([value(n)])
            self.have()
        return count

    def replay(self) -> int:
        return sum(decode(each.event.data) is not None for each in self.client.read())


class Sourcing:
    """The library eventsourcing, at its fastest: its recorder for SQLite, fed with bytes."""

    def __init__(self, folder: Path) -> None:
        from uuid import uuid4

        from eventsourcing.persistence import StoredEvent
        from eventsourcing.sqlite import SQLiteApplicationRecorder, SQLiteDatastore

        self.store = SQLiteApplicationRecorder(SQLiteDatastore(str(folder / "es.db")))
        self.store.create_table()
        self.made, self.origin = StoredEvent, uuid4()
        self.version = self.last = 0

    def ready(self) -> None:
        """It is."""

    def many(self, count: int) -> int:
        rows = [
            self.made(self.origin, self.version + n, "t", encode(value(n))) for n in range(count)
        ]
        self.version += count
        self.store.insert_events(rows)
        had = 0
        while had < count:
            some = self.store.select_notifications(self.last + 1, 1000)
            had += len([decode(each.state) for each in some])
            self.last = some[-1].id
        return had


WAYS: dict[str, Callable[[Path], Any]] = {
    "total": Bus,
    "none": lambda folder: Bus(folder, "none"),
    "quick": lambda folder: Bus(folder, options="?durable=no"),
    "today": Bus,
    "sqlite": Sqlite,
    "thread": lambda folder: Sqlite(folder, thread=True),
    "umadb": Uma,
    "eventsourcing": Sourcing,
}


def main() -> None:
    name, folder = sys.argv[1:]
    way = WAYS[name](Path(folder))
    try:
        way.ready()
        print("ready", flush=True)
        for line in sys.stdin:
            verb, *words = line.split()
            started = time.perf_counter()
            found = getattr(way, verb)(*map(int, words))
            took = time.perf_counter() - started
            some = found if isinstance(found, list) else [found]
            print(took, *some, flush=True)
    finally:
        if hasattr(way, "close"):
            way.close()
        sys.stdout.flush()
        os._exit(0)


if __name__ == "__main__":
    main()
