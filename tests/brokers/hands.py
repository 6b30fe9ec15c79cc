"""Hands for tests of brokers: write as a publisher does, read as a reader does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from inorder.brokers import runs
from inorder.core.errors import Refused, Unsure
from inorder.logs.broker import Author, Log, Run
from inorder.logs.topics import EVERYTHING, Topics

encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(list[Any]).decode

TIRED = 200


def run(job: Callable[[], Coroutine[Any, Any, Any]], limit_s: float = 60.0) -> Any:
    """Run a test; one that hangs fails."""

    async def limited() -> Any:
        return await asyncio.wait_for(job(), limit_s)

    return asyncio.run(limited())


class Seen(Struct, frozen=True):
    """One event as a reader gets it."""

    offset: int
    topic: str
    publisher: str
    epoch: int
    sequence: int
    value: Any
    key: str | None = None
    headers: dict[str, str] | None = None
    published_at: float = 0.0
    stored_at: float = 0.0


def events(author: Author, topic: str, sequence: int, values: Sequence[Any], **columns: Any) -> Run:
    """A run of events, for an append."""
    return Run(
        topic,
        author.publisher,
        author.epoch,
        sequence,
        len(values),
        encode(list(values)),
        **columns,
    )


class Writer:
    """A publisher that sends nothing behind an append whose fate it does not know."""

    def __init__(self, broker: Any, log: Log, name: str = "p", named: bool = True) -> None:
        self.broker = broker
        self.log = log
        self.author = Author(name, 1, named)
        self.sequence = 1

    async def write(self, topic: str, values: Sequence[Any], **columns: Any) -> list[int]:
        """Publish, whatever it takes; the offset of each event."""
        waiting = events(self.author, topic, self.sequence, values, **columns)
        self.sequence += len(values)
        stored: list[int] = []
        for _ in range(TIRED):
            try:
                some = (await self.broker.append(self.log, self.author, [waiting])).offsets
            except Unsure:
                some = await self._find(waiting)
            except Refused:
                continue
            stored += some
            if len(some) == waiting.count:
                return stored
            waiting = runs.cut(waiting, len(some), waiting.count)
            if waiting.epoch != self.author.epoch:
                waiting = replace(waiting, epoch=self.author.epoch)
        raise AssertionError("an append was never answered")

    async def _find(self, waiting: Run) -> list[int]:
        """The offsets of what was stored of an append, in its order."""
        if not self.broker.traits.refuses_repeats:
            # It may still come: behind a new beginning it counts for nothing.
            self.author = replace(self.author, epoch=self.author.epoch + 1)
            for _ in range(TIRED):
                try:
                    await self.broker.shut(self.log, self.author)
                    break
                except Refused:
                    continue
        wanted = range(waiting.sequence, waiting.sequence + waiting.count)
        return [
            seen.offset
            for seen in published(await everything(self.broker, self.log))
            if seen.publisher == waiting.publisher
            and seen.epoch == waiting.epoch
            and seen.sequence in wanted
        ]


class Read(Struct):
    """What was read: events with the beginnings of lives between them, and ranges removed."""

    seen: list[Seen] = []
    removed: list[tuple[int, int]] = []
    calls: int = 0


def expand(run: Run) -> list[Seen]:
    """The events of a run; of a beginning, one without a value."""
    about = run.topic, run.publisher, run.epoch
    times = {"published_at": run.published_at, "stored_at": run.stored_at}
    if not run.count:
        return [Seen(run.offset, *about, 0, None, **times)]
    values = decode(run.values)
    assert len(values) == run.count
    keys, headers = run.keys or [None] * run.count, run.headers or [None] * run.count
    assert len(keys) == len(headers) == run.count
    return [
        Seen(run.offset + n, *about, run.sequence + n, value, keys[n],
             dict(headers[n]) if headers[n] else None, **times)
        for n, value in enumerate(values)
    ]  # fmt: skip


async def ends(broker: Any, log: Log) -> Any:
    for _ in range(TIRED):
        if end := (await broker.settle([log])).get(log.identity):
            return end
    raise AssertionError("no end was ever told")


async def everything(
    broker: Any, log: Log, offset: int | None = None, topics: Topics = EVERYTHING,
    limit: int = 1 << 20,
) -> Read:  # fmt: skip
    """Read from an offset to the stable end."""
    end = await ends(broker, log)
    at = end.first if offset is None else offset
    read = Read()
    while at < end.stable:
        read.calls += 1
        try:
            rows = await broker.read(log, at, limit, topics)
        except Refused:
            assert read.calls < 100_000
            continue
        for run in rows.runs:
            for seen in expand(run):
                assert at <= seen.offset < rows.upto, "read gives what lies outside"
                assert not read.seen or seen.offset > read.seen[-1].offset, "offsets fall"
                read.seen.append(seen)
        for start, stop in rows.removed:
            assert at <= start < stop <= rows.upto, "a removed range lies outside"
            read.removed.append((start, stop))
        assert rows.upto > at, "reading stands still"
        at = rows.upto
    return read


def published(read: Read) -> list[Seen]:
    """What counts of a log: nothing of an older life behind a younger one, nothing twice."""
    lives: dict[str, int] = {}
    last: dict[tuple[str, int], int] = {}
    counted: list[Seen] = []
    for seen in read.seen:
        name = seen.publisher
        if seen.epoch < lives.get(name, 0):
            continue
        lives[name] = seen.epoch
        if seen.sequence > last.get((name, seen.epoch), 0):
            last[name, seen.epoch] = seen.sequence
            counted.append(seen)
    return counted
