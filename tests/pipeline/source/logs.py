"""Logs of the embedded broker, filled through the seam, and read plainly."""

from __future__ import annotations

import asyncio
import json
import math
import random
import sqlite3
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec

from inorder.brokers import broker_at
from inorder.logs.broker import Author, Broker, Log, Run
from inorder.logs.topics import EVERYTHING

Value = tuple[str, Any]


def with_log(path: Path | str, call: Callable[[Broker, Log], Any]) -> Any:
    """The answer of a coroutine about the log in a file."""

    async def opened() -> Any:
        broker = broker_at(f"sqlite:///{path}?durable=no", 10.0)
        await broker.open()
        try:
            [log] = await broker.logs(EVERYTHING)
            return await call(broker, log)
        finally:
            await broker.close()

    return asyncio.run(opened())


def fill(
    path: Path, values: list[Value], publisher: str = "p", epoch: int = 1, **facts: Any
) -> None:
    """Append events, of one life, behind what it has published before."""

    async def append(broker: Broker, log: Log) -> None:
        author = Author(publisher, epoch, True)
        sequence = (await broker.last(log, author) or 0) + 1
        runs = []
        for topic, some in groupby(values, key=lambda value: value[0]):
            packed = [value for _, value in some]
            array = msgspec.msgpack.encode(packed)
            runs.append(Run(topic, publisher, epoch, sequence, len(packed), array, **facts))
            sequence += len(packed)
        if runs:
            await broker.append(log, author, runs)

    with_log(path, append)


def numbered(topic: str, count: int, low: int = 0) -> list[Value]:
    return [(topic, {"n": n}) for n in range(low, low + count)]


def random_log(path: Path, seed: int, appends: int = 12) -> None:
    """Many topics, publishers and lives; some events have keys, some were erased."""
    rng = random.Random(seed)
    topics = ["orders.eu", "orders.us", "payments", "stock"]
    lives = {"p": 1, "q": 1}
    for _ in range(appends):
        publisher = rng.choice([*lives])
        lives[publisher] += rng.random() < 0.2
        count = rng.randint(1, 9)
        topic = rng.choice(topics)
        keys = tuple(rng.choice([None, "k", "ключ"]) for _ in range(count))
        headers = tuple(rng.choice([None, {"trace": "1"}]) for _ in range(count))
        facts = {"keys": keys, "headers": headers} if rng.random() < 0.5 else {}
        values = [(topic, any_value(rng)) for _ in range(count)]
        fill(path, values, publisher, lives[publisher], published_at=rng.random(), **facts)
    with_log(path, lambda broker, log: _erase(broker, log, rng))


async def _erase(broker: Broker, log: Log, rng: random.Random) -> None:
    end = (await broker.settle([log]))[log.identity]
    for offset in rng.sample(range(end.first, end.stable), 3):
        await broker.erase(log, offset)


def any_value(rng: random.Random) -> Any:
    words = ["", "plain", "line\nbreak", 'quo"te', "Zürich", "\u0000", "emoji 🙂"]
    kinds = [lambda: rng.choice(words), lambda: rng.randint(-(2**62), 2**62), rng.random,
             lambda: rng.random() < 0.5, lambda: None, lambda: [1, {"deep": b"\xff"}],
             lambda: rng.choice([math.inf, -math.inf, math.nan])]  # fmt: skip
    if rng.random() < 0.1:
        return rng.randbytes(3)
    return {f"k{key}": rng.choice(kinds)() for key in range(rng.randint(0, 3))}


def plain_rows(path: Path) -> list[tuple[Any, ...]]:
    """The events of a file by the shortest way there is: no columns, no batches, no Spark."""

    async def read(broker: Broker, log: Log) -> list[tuple[Any, ...]]:
        found = []
        end = (await broker.settle([log]))[log.identity]
        offset = end.first
        while offset < end.stable:
            rows = await broker.read(log, offset, 1, EVERYTHING)
            for run in rows.runs:
                for place, value in enumerate(msgspec.msgpack.decode(run.values)):
                    if value is not None:
                        found.append(_row(log, run, place, value))
            offset = rows.upto
        return found

    return with_log(path, read)


def _row(log: Log, run: Run, place: int, value: Any) -> tuple[Any, ...]:
    seq, at = run.sequence + place, run.offset + place
    headers = run.headers[place] if run.headers else None
    return (
        run.topic, at, at, log.identity, f"{run.publisher}:{run.epoch}:{seq}", run.publisher,
        run.epoch, seq, run.keys[place] if run.keys else None,
        None if headers is None else msgspec.json.encode(headers).decode(),
        run.published_at, run.stored_at, text_of(value), value if isinstance(value, bytes) else
    None, )  # fmt: skip


def text_of(value: Any) -> str:
    if isinstance(value, bytes):
        return "{}"
    if any(isinstance(each, float) and not math.isfinite(each) for each in value.values()):
        plain = msgspec.to_builtins(value)
        return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
    return msgspec.json.encode(value).decode()


def remove(path: Path, below: int) -> None:
    with_log(path, lambda broker, log: broker.remove(log, below))


def spoil(path: Path, offset: int) -> None:
    """Flip one bit of the row that holds an offset."""
    db = sqlite3.connect(path)
    last, body = db.execute(
        "SELECT last, body FROM log WHERE last >= ? ORDER BY last LIMIT 1", (offset,)
    ).fetchone()
    changed = bytes([*body[:-2], body[-2] ^ 4, body[-1]])
    db.execute("UPDATE log SET body = ? WHERE last = ?", (changed, last))
    db.commit()
    db.close()
