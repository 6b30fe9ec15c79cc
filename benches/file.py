"""The file of a log, through the seam: beside bare SQLite with a row an event, and beside UmaDB.

All of them store the same 4,000 events of about 100 bytes, encoded with msgspec, and read them back
as Python values; everything waits for the disk. UmaDB takes part where it is installed (pip install
umadb, into an environment of its own).
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import sleep, time
from typing import Any

import msgspec

from benches.measure import Contest
from inorder.brokers import broker_at
from inorder.logs.broker import Author, Run
from inorder.logs.topics import EVERYTHING

MANY = 4000
FEW = 200
ROUNDS = 7

encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder().decode


def value(number: int) -> dict[str, Any]:
    return {"id": number, "amount": 12.5, "text": "x" * 70}


class Ours:
    """A broker, as a bus uses it: runs of a thousand events."""

    def __init__(self, url: str) -> None:
        self.loop = asyncio.new_event_loop()
        self.broker: Any = broker_at(url, 30.0)
        self.author = Author("bench")
        self.sequence = self.at = 1
        self.loop.run_until_complete(self._open())

    async def _open(self) -> None:
        await self.broker.open()
        (self.log,) = await self.broker.logs(EVERYTHING)

    def _run(self, values: list[Any]) -> Run:
        run = Run("t", "bench", 1, self.sequence, len(values), encode(values), time())
        self.sequence += len(values)
        return run

    async def _read(self, count: int) -> None:
        while count > 0:
            rows = await self.broker.read(self.log, self.at, 8 << 20, EVERYTHING)
            count -= sum(len(decode(run.values)) for run in rows.runs)
            self.at = rows.upto

    def many(self) -> int:
        async def job() -> None:
            values = [value(n) for n in range(MANY)]
            some = [self._run(values[n : n + 1000]) for n in range(0, MANY, 1000)]
            await self.broker.append(self.log, self.author, some)
            await self._read(MANY)

        self.loop.run_until_complete(job())
        return MANY

    def singly(self) -> int:
        async def job() -> None:
            for n in range(FEW):
                await self.broker.append(self.log, self.author, [self._run([value(n)])])

        self.loop.run_until_complete(job())
        self.at += FEW
        return FEW

    def replay(self) -> int:
        self.at = 1
        count = self.sequence - 1
        self.loop.run_until_complete(self._read(count))
        return count

    def close(self) -> None:
        self.loop.run_until_complete(self.broker.close())
        self.loop.close()


class Bare:
    """A table with a row an event, on this thread."""

    def __init__(self, path: Path) -> None:
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute("PRAGMA synchronous = FULL")
        self.db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, x BLOB)")
        self.at = 0

    def many(self) -> int:
        self.db.execute("BEGIN IMMEDIATE")
        rows = ((encode(value(n)),) for n in range(MANY))
        self.db.executemany("INSERT INTO t (x) VALUES (?)", rows)
        self.db.execute("COMMIT")
        return self._read()

    def _read(self) -> int:
        count = 0
        for id, blob in self.db.execute("SELECT id, x FROM t WHERE id > ?", (self.at,)):
            decode(blob)
            count += 1
            self.at = id
        return count

    def singly(self) -> int:
        for n in range(FEW):
            self.db.execute("INSERT INTO t (x) VALUES (?)", (encode(value(n)),))
        self.at += FEW
        return FEW

    def replay(self) -> int:
        self.at = 0
        return self._read()

    def close(self) -> None:
        self.db.close()


class Uma:
    """UmaDB, a server in a process of its own, through its client."""

    def __init__(self, folder: Path) -> None:
        self.module = importlib.import_module("umadb")
        place = "127.0.0.1:50999"
        words = ["--listen", place, "--db-path", str(folder / "uma.db")]
        self.server = subprocess.Popen(
            [str(Path(sys.executable).with_name("umadb")), *words],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.at = 0
        for patience in range(100, -1, -1):
            try:
                self.client = self.module.Client(url=f"http://{place}")
                return
            except Exception:
                if not patience:
                    raise
                sleep(0.1)

    def _event(self, number: int) -> Any:
        return self.module.Event(event_type="t", data=encode(value(number)), tags=[])

    def many(self) -> int:
        self.client.append([self._event(n) for n in range(MANY)])
        return self._read()

    def _read(self) -> int:
        count = 0
        for event in self.client.read(start=self.at + 1):
            decode(event.event.data)
            count += 1
            self.at = event.position
        return count

    def singly(self) -> int:
        for n in range(FEW):
            self.at = self.client.append([self._event(n)])
        return FEW

    def replay(self) -> int:
        self.at = 0
        return self._read()

    def close(self) -> None:
        self.client.close()
        self.server.kill()
        self.server.wait()


def latency(folder: Path) -> None:
    """From the call of append here to the event in the hands of another process."""
    path = folder / "latency.db"
    ours = Ours(f"sqlite:///{path}")
    other = subprocess.Popen(
        [sys.executable, "-m", "benches.file", str(path)], stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None
    assert other.stdout.readline() == "ready\n"
    sent: list[float] = []

    async def job() -> None:
        for n in range(FEW):
            sent.append(time())
            await ours.broker.append(ours.log, ours.author, [ours._run([value(n)])])
            await asyncio.sleep(0.005)

    ours.loop.run_until_complete(job())
    came = [float(word) for word in other.stdout.readline().split()]
    took = sorted(b - a for a, b in zip(sent, came, strict=True))
    print(f"another process: p50 {median(took) * 1000:.2f} ms, p99 {took[-3] * 1000:.2f} ms")
    other.wait(10)
    ours.close()


async def listen(path: str) -> None:
    broker: Any = broker_at(f"sqlite:///{path}", 30.0)
    await broker.open()
    (log,) = await broker.logs(EVERYTHING)
    print("ready", flush=True)
    at, came = 1, []
    while len(came) < FEW:
        await broker.moved({log.identity: at}, 10.0)
        rows = await broker.read(log, at, 1 << 20, EVERYTHING)
        came += [time() for run in rows.runs for _ in decode(run.values)]
        at = rows.upto
    print(*came, flush=True)
    await broker.close()


def main() -> None:
    ways: dict[str, Callable[[Path], Any]] = {
        "the file": lambda folder: Ours(f"sqlite:///{folder}/ours.db"),
        "bare sqlite3": lambda folder: Bare(folder / "bare.db"),
        "the file, durable=no": lambda folder: Ours(f"sqlite:///{folder}/quick.db?durable=no"),
        "memory": lambda folder: Ours("memory://bench"),
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        open_ = {way: made(folder) for way, made in ways.items()}
        if importlib.util.find_spec("umadb"):
            open_["UmaDB"] = Uma(folder)
        for job in ("many", "singly", "replay"):
            race = Contest(f"{MANY if job != 'singly' else FEW} events, {job}", "events", ROUNDS)
            for way, made in open_.items():
                getattr(made, job)()  # once to warm up
                race.add(way, getattr(made, job))
            race.run("python -m benches.file")
        for made in open_.values():
            made.close()
        latency(folder)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(listen(sys.argv[1]))
    else:
        main()
