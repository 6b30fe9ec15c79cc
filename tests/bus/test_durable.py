"""Durable subscriptions: a program goes on where it was."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

import inorder
from inorder.bus.durable import key_of
from inorder.core.errors import BadOption, Misuse, Refused, Replaced, Unsure
from inorder.logs.cursor import Cursor, parse
from tests.bus.judge import none_left, run, take, until


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/bus.db"


def numbers(events):
    return [event.value["n"] for event in events]


async def counted(bus, *range_, topic="t"):
    return await bus.publish_many(topic, [{"n": n} for n in range(*range_)])


async def stored(bus, name):
    found = await bus._broker.get(key_of(name))
    return None if found is None else parse(found[0].decode()).position


def test_memory_keeps_no_durable_names():
    async def job():
        async with inorder.connect("memory://") as bus:
            with pytest.raises(BadOption, match="use a file"):
                bus.subscribe("t", durable="billing")

    run(job)


def test_what_was_handed_over_is_done_when_the_next_is_asked_for(url):
    async def job():
        async with inorder.connect(url) as bus:
            await counted(bus, 5)
            async with bus.subscribe("t", durable="d", start="earliest") as events:
                first = await events.next(5)
                second = await events.next(5)
                await until(lambda: events._durable._stored == first.position)
                assert numbers([first, second]) == [0, 1]
            # Leaving without an error says that the last one is done, too.
            async with bus.subscribe("t", durable="d", start="earliest") as events:
                assert numbers(await take(events, 2)) == [2, 3]
                await events.close()
            # Closing does not: the last one comes again.
            async with bus.subscribe("t", durable="d") as events:
                assert numbers(await take(events, 2)) == [3, 4]

    run(job)


def test_what_was_being_worked_on_when_an_error_came_comes_again(url):
    async def job():
        async with inorder.connect(url) as bus:
            await counted(bus, 3)
            with suppress(ZeroDivisionError):
                async with bus.subscribe("t", durable="d", start="earliest") as events:
                    await take(events, 2)
                    raise ZeroDivisionError
            async with bus.subscribe("t", durable="d") as events:
                assert numbers(await take(events, 2)) == [1, 2]

    run(job)


def test_with_manual_acks_a_position_is_on_disk_when_ack_returns(url):
    async def job():
        async with inorder.connect(url) as bus:
            await counted(bus, 6)
            wanted = {"durable": "d", "start": "earliest", "ack": "manual"}
            async with bus.subscribe("t", **wanted) as events:
                got = await take(events, 4)
                await events.ack(got[2])
                assert await stored(bus, "d") == got[2].position
                await events.ack(got[0])  # cumulative: it is done already
                assert await stored(bus, "d") == got[2].position
            async with bus.subscribe("t", **wanted) as events:
                assert numbers(await take(events, 3)) == [3, 4, 5]
            async with bus.subscribe("t", start="earliest") as plain:
                event = await plain.next(5)
                with pytest.raises(Misuse, match="manual"):
                    await plain.ack(event)

    run(job)


def test_a_position_advances_over_what_a_filter_kept_back(url):
    async def job():
        async with inorder.connect(url) as bus:
            wanted = {"durable": "d", "start": "earliest"}
            async with bus.subscribe("t", where="n > :low", low=50, **wanted) as events:
                receipts = await counted(bus, 30)
                await none_left(events)
                await none_left(events)
            assert await stored(bus, "d") == receipts[-1].offset
            async with bus.subscribe("t", **wanted) as events:
                await none_left(events)

    run(job)


def test_a_moved_filter_judges_nothing_that_a_stored_position_has_passed(url):
    async def job():
        async with inorder.connect(url) as bus:
            wanted = {"durable": "d", "start": "earliest", "where": "n > :low", "low": 50}
            async with bus.subscribe("t", **wanted) as events:
                receipts = await counted(bus, 10)
                await none_left(events)
                await none_left(events)
                await until(lambda: events._durable._stored == receipts[-1].offset)
                change = await events.set(low=-1)
                assert change.position == receipts[-1].offset
                await none_left(events)
                await counted(bus, 10, 12)
                assert numbers(await take(events, 2)) == [10, 11]

    run(job)


def test_one_reads_under_a_name_at_a_time(url):
    async def job():
        async with inorder.connect(url) as bus, inorder.connect(url) as other:
            await counted(bus, 4)
            first = await bus.subscribe("t", durable="d", start="earliest")
            got = await take(first, 2)
            await until(lambda: first._durable._stored == got[0].position)

            async def read_on():
                while True:
                    await first.next(0.5)
                    await asyncio.sleep(0.02)

            async with other.subscribe("t", durable="d", start="earliest") as second:
                with pytest.raises(Replaced):
                    await read_on()
                assert numbers(await take(second, 3)) == [1, 2, 3]
            await first.close()

    run(job)


def test_a_position_that_cannot_be_stored_is_tried_again(url):
    async def job():
        async with inorder.connect(url) as bus:
            await counted(bus, 3)
            async with bus.subscribe("t", durable="d", start="earliest") as events:
                put, refusals = bus._broker.put, [Refused("full"), Refused("full")]

                async def failing(*rest):
                    if refusals:
                        raise refusals.pop()
                    return await put(*rest)

                bus._broker.put = failing
                got = await take(events, 3)
                await until(lambda: events._durable._stored == got[1].position)
                assert not refusals

    run(job)


def test_a_durable_name_of_another_log_or_past_is_refused(url):
    async def job():
        async with inorder.connect(url) as bus:
            receipts = await counted(bus, 3)
            position = receipts[0].offset
            for cursor, words in (
                (Cursor("another", position, b""), "another log"),
                (Cursor(bus._log.identity, position, b"8 bytes!"), "lost its tail"),
                (Cursor(bus._log.identity, position + 9, b""), "has no position"),
            ):
                await bus._broker.put(key_of("d"), str(cursor).encode(), 1)
                with pytest.raises(Misuse, match=words):
                    await bus.subscribe("t", durable="d")
                await bus._broker.drop(key_of("d"))

    run(job)


def test_topics_that_appear_later_come_from_the_stored_position_on(url):
    async def job():
        async with inorder.connect(url) as bus:
            async with bus.subscribe("a", durable="d", start="earliest") as events:
                await counted(bus, 2, topic="a")
                await take(events, 2)
            await counted(bus, 2, topic="b")
            async with bus.subscribe("a", "b", durable="d") as events:
                assert [e.topic for e in await take(events, 2)] == ["b", "b"]

    run(job)


def test_a_disk_that_stays_full_ends_no_call_late(url):
    async def job():
        async with inorder.connect(url, deadline=0.3) as bus:
            await counted(bus, 3)
            events = await bus.subscribe("t", durable="d", start="earliest", ack="manual")
            first = await events.next(5)

            async def full(*rest):
                raise Refused("full")

            put, bus._broker.put = bus._broker.put, full
            with pytest.raises(Unsure, match="ack"):
                await asyncio.wait_for(events.ack(first), 5)
            bus._broker.put = put
            await until(lambda: events._durable._stored == first.position)
            bus._broker.put = full
            with pytest.raises(Unsure):
                await asyncio.wait_for(events.ack(await events.next(5)), 5)
            await asyncio.wait_for(events.close(), 5)
            bus._broker.put = put
            assert await stored(bus, "d") == first.position

    run(job)
