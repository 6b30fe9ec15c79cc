"""The contract of a broker, continued: what is taken away, being told, connections."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from inorder.core.errors import Misuse, Refused
from inorder.logs.broker import Author
from inorder.logs.topics import EVERYTHING
from tests.brokers.contract import Place, check, patient, values
from tests.brokers.hands import Seen, Writer, ends, events, everything, published

# What is taken away.


@check
async def an_erased_event_leaves_a_stub(place: Place) -> None:
    async with place.log() as (broker, log), place.log() as (other, _):
        writer = Writer(broker, log)
        keys, headers = ("a", "b", "c"), ({"h": "1"}, {"h": "2"}, {"h": "3"})
        offsets = await writer.write("t", [1, {"secret": "s" * 30}, 3], keys=keys, headers=headers)
        offsets += await writer.write("t", [4])
        before = await everything(broker, log)
        end = await ends(broker, log)
        await patient(lambda: broker.erase(log, offsets[1]))
        await patient(lambda: broker.erase(log, offsets[3]))
        after = await everything(other, log)
        assert [_bare(seen) for seen in after.seen] == [
            (*_bare(s)[:-3], None, None, None) if s.offset in (offsets[1], offsets[3]) else _bare(s)
            for s in before.seen
        ]
        assert await ends(other, log) == end
        await writer.write("t", [5])
        assert [s.value for s in published(await everything(broker, log)) if s.sequence][-1] == 5
        for nowhere in (end.first - 1, end.stable + 10):
            with pytest.raises(Misuse):
                await patient(lambda nowhere=nowhere: broker.erase(log, nowhere))


def _bare(seen: Seen) -> tuple[Any, ...]:
    facts = seen.offset, seen.topic, seen.publisher, seen.epoch, seen.sequence
    return *facts, seen.published_at, seen.value, seen.key, seen.headers


@check
async def what_is_removed_is_said(place: Place) -> None:
    async with place.log() as (broker, log), place.log() as (other, _):
        writer = Writer(broker, log)
        for count in (4, 5, 1, 6):
            await writer.write("t", [f"{count}-{n}" for n in range(count)])
        read = await everything(broker, log)
        end = await ends(broker, log)
        for place_ in (0, 2, 6, 9, 10, 13):
            below = read.seen[place_].offset
            mark = await patient(lambda below=below: broker.mark(log, below))
            await patient(lambda below=below: broker.remove(log, below))
            after = await ends(other, log)
            assert (after.first, after.stable, after.mark) == (below, end.stable, end.mark)
            for start in {end.first, below - 1, below}:
                rest = await everything(other, log, start)
                assert rest.seen == [seen for seen in read.seen if seen.offset >= below]
                gone = {offset for pair in rest.removed for offset in range(*pair)}
                # What lies below the log's first event was never there; it may be said or not.
                never = set(range(start, end.first))
                assert gone | never == set(range(start, below)) | never
            assert await patient(lambda below=below: broker.mark(log, below)) in (mark, None)
            if below > end.first:
                assert await patient(lambda below=below: broker.mark(log, below - 1)) is None
        await patient(lambda: broker.remove(log, end.stable + 100))
        after = await ends(broker, log)
        assert (after.first, after.stable, after.mark) == (end.stable, end.stable, end.mark)
        offsets = await writer.write("t", ["more"])
        assert offsets[0] >= end.stable
        assert [s.value for s in (await everything(other, log)).seen if s.sequence][-1:] == ["more"]


# Being told.


@check
async def who_waits_is_woken(place: Place) -> None:
    async with place.log() as (broker, log), place.log() as (other, _):
        if not broker.traits.wakes:
            return
        writer = Writer(other, log)
        for n in range(15):
            end = await ends(broker, log)

            async def wait(stable: int) -> None:
                while (await ends(broker, log)).stable <= stable:
                    await broker.moved({log.identity: stable}, 30.0)

            waiting = asyncio.create_task(wait(end.stable))
            for _ in range(n % 4):
                await asyncio.sleep(0)
            await writer.write("t", [n])
            await asyncio.wait_for(waiting, 10)


@check
async def who_knows_less_does_not_wait(place: Place) -> None:
    async with place.log() as (broker, log):
        await Writer(broker, log).write("t", [1])
        end = await ends(broker, log)
        for _ in range(3):
            await asyncio.wait_for(broker.moved({log.identity: end.stable - 1}, 60.0), 10)
        for _ in range(3):
            await asyncio.wait_for(broker.moved({log.identity: end.stable}, 0.02), 10)
        await asyncio.wait_for(broker.moved({}, 0.02), 10)


# Connections.


@check
async def what_is_stored_outlives_a_connection(place: Place) -> None:
    async with place.log() as (keeper, log):
        async with place.log() as (broker, _):
            await Writer(broker, log).write("t", [1, 2, 3])
        assert values(await everything(keeper, log)) == [1, 2, 3]
        with pytest.raises(Refused):
            await broker.append(log, Author("p"), [events(Author("p"), "t", 9, [1])])
        with pytest.raises(Refused):
            await broker.read(log, 1, 100, EVERYTHING)
        with pytest.raises(Refused):
            await broker.settle([log])
        await broker.close()


@check
async def what_is_stored_outlives_all_connections(place: Place) -> None:
    async with place.log() as (broker, log):
        shares = broker.traits.shares
        await Writer(broker, log).write("t", [1, 2, 3])
        before = (await everything(broker, log)).seen
    async with place.log() as (broker, again):
        if shares:
            assert again.identity == log.identity
            assert (await everything(broker, again)).seen == before
        else:
            assert again.identity != log.identity
            assert (await everything(broker, again)).seen == []


@check
async def figures_for_people(place: Place) -> None:
    async with place.log() as (broker, log):
        writer = Writer(broker, log)
        for n in range(4):
            await writer.write("t", [n, n])
        status = await patient(broker.status)
        stored = [s for s in (await everything(broker, log)).seen if s.sequence]
        assert status["topics"] == {"t": len(stored)}
        assert status["bytes"] > 0
        assert status["names"] == []
