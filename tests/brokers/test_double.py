"""The double is as odd as it says, and loses nothing to those who keep the rules."""

from __future__ import annotations

import asyncio

import pytest

from inorder.core.errors import Refused, Replaced
from inorder.logs.broker import Author
from inorder.logs.topics import EVERYTHING
from tests.brokers.double import Double, Server
from tests.brokers.hands import Writer, everything, published, run

ODDITIES = {
    "hole", "pause", "append refused", "append late", "append stored a prefix",
    "append without an answer", "a dead life's append lands", "last unknown", "read refused",
    "read stops early", "read found a hole", "removed", "end missing", "rang for nothing",
}  # fmt: skip


@pytest.mark.parametrize("first", [0, 1, 2**40])
def test_every_oddity_happens_and_nothing_is_lost(first):
    server = Server(partitions=2, first=first, seed=first)

    async def write(writer: Writer, count: int) -> list[int]:
        offsets: list[int] = []
        for n in range(count):
            offsets += await writer.write("t", [n, n])
            for ask in (writer.broker.last, writer.broker.shut):
                try:
                    await ask(writer.log, Author("nobody", n + 1, True))
                except (Refused, Replaced):
                    continue
            await writer.broker.moved({}, 0.0)
        return offsets

    async def job() -> None:
        broker = Double(server)
        await broker.open()
        logs = await broker.logs(EVERYTHING)
        assert len(logs) == 2
        for log in logs:
            writers = [Writer(broker, log, name) for name in "abc"]
            stored = await asyncio.gather(*(write(writer, 100) for writer in writers))
            read = await everything(broker, log, 0 if not first else first - 1)
            for writer, offsets in zip(writers, stored, strict=True):
                mine = [s for s in published(read) if s.publisher == writer.author.publisher]
                mine = [s for s in mine if s.sequence]
                assert [(s.value, s.offset) for s in mine] == [
                    (n // 2, offset) for n, offset in enumerate(offsets)
                ]
            for _ in range(3):
                assert (await everything(broker, log, limit=8)).seen == read.seen
            for place in range(0, len(read.seen), len(read.seen) // 40):
                await broker.remove(log, read.seen[place].offset)
                part = await everything(broker, log, first, limit=400)
                assert part.seen == read.seen[place:]
        await broker.close()

    run(job)
    assert {*server.oddities} == ODDITIES
    assert min(server.oddities.values()) >= 50, server.oddities
