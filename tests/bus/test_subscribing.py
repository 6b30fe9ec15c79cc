"""Subscriptions: who gets what, in which order, from where on."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import inorder
from inorder.core.errors import (
    Misuse,
    TooLarge,
)
from inorder.core.limits import SUBSCRIBED_BYTES_MAX
from inorder.logs.cursor import Cursor, parse
from tests.bus.judge import counted, gather, judged, none_left, numbers, run, take, traces

# Order, judged.


@pytest.mark.parametrize("guarantee", ["none", "fifo", "total"])
def test_several_buses_and_subscriptions_keep_every_promise(url, tmp_path, guarantee):
    each = 60
    topics = ["x", "y", "z"]

    async def job() -> None:
        async with AsyncExitStack() as stack:
            buses = [
                await stack.enter_async_context(
                    inorder.connect(url, guarantee, name=f"b{n}", trace=tmp_path / f"t{n}")
                )
                for n in range(3)
            ]
            held = [topics, topics, ["x", "y"], ["y", "z"], ["z"]]
            subscriptions = [
                await stack.enter_async_context(buses[n % 3].subscribe(*some))
                for n, some in enumerate(held)
            ]
            filtered = await stack.enter_async_context(
                buses[0].subscribe(*topics, where="n >= :low", low=each // 2)
            )

            async def publish(bus: Any, number: int) -> None:
                for n in range(each):
                    await bus.publish(topics[(n + number) % 3], {"n": n})

            await asyncio.gather(*(publish(bus, n) for n, bus in enumerate(buses)))
            expected = [each * len(some) for some in held]
            for events, count in zip(subscriptions, expected, strict=True):
                got = [event.position for event in await take(events, count)]
                assert got == sorted({*got})
            await take(filtered, 3 * (each - each // 2))
            traces(buses)
            counts = judged(gather(tmp_path / f"t{n}" for n in range(3)))
            assert counts["owed"] == sum(expected) + 3 * (each - each // 2)

    run(job)


def test_everybody_sees_one_sequence_and_its_past_is_the_same(url):
    async def job() -> None:
        async with (
            inorder.connect(url) as one, inorder.connect(url) as two,
            one.subscribe("x", "y") as here, two.subscribe("x", "y") as there,
        ):  # fmt: skip
            await asyncio.gather(
                *(counted(bus, topic, 300) for bus in (one, two) for topic in "xy")
            )
            seen = [[(e.id, e.position) for e in await take(s, 1200)] for s in (here, there)]
            assert seen[0] == seen[1]
            async with two.subscribe("x", "y", start="earliest") as past:
                assert [(e.id, e.position) for e in await take(past, 1200)] == seen[0]

    run(job)


# Where it begins.


def test_latest_is_what_comes_after_the_call(url):
    async def job() -> None:
        async with inorder.connect(url) as bus, inorder.connect(url) as other:
            await counted(other, "t", 5)
            async with bus.subscribe("t") as events:
                await counted(other, "t", 5, 8)
                assert numbers(await take(events, 3)) == [5, 6, 7]
                await none_left(events)

    run(job)


def test_a_subscription_goes_from_the_past_into_the_present_without_a_seam(url):
    """Also in the middle of a run, and with publications under way all the time."""

    async def job() -> None:
        async with inorder.connect(url) as bus, inorder.connect(url) as other:
            receipts = await counted(bus, "a", 100)

            async def more() -> None:
                for n in range(100, 200):
                    await bus.publish("a", {"n": n})

            publishing = asyncio.create_task(more())
            positions = [await receipt.position() for receipt in receipts]
            for start, first in (
                ("earliest", 0), (positions[32], 33), (positions[0], 1), (positions[99], 100),
                (positions[0] - 1, 0),
            ):  # fmt: skip
                async with other.subscribe("a", start=start) as events:
                    got = await take(events, 200 - first)
                    assert numbers(got) == list(range(first, 200))
            await publishing

    run(job)


def test_a_cursor_goes_on_above_its_event_also_in_another_life(url):
    async def job() -> None:
        async with inorder.connect(url) as keeps_it_there:
            async with inorder.connect(url) as bus, bus.subscribe("t") as events:
                await counted(bus, "t", 5)
                cursors = [event.cursor for event in await take(events, 5)]
            async with inorder.connect(url) as bus:
                await counted(bus, "t", 5, 7)
                for n, cursor in enumerate(cursors):
                    async with bus.subscribe("t", start=cursor) as events:
                        assert numbers(await take(events, 6 - n)) == list(range(n + 1, 7))
            assert keeps_it_there

    run(job)


def test_a_cursor_of_another_log_or_another_past_is_refused(url):
    async def job() -> None:
        async with inorder.connect(url) as bus, bus.subscribe("t") as events:
            await counted(bus, "t", 3)
            cursor = parse((await events.next(5)).cursor)
            elsewhere = Cursor("another", cursor.position, cursor.digest)
            with pytest.raises(Misuse, match="another log"):
                await bus.subscribe("t", start=str(elsewhere))
            grown_again = Cursor(cursor.order, cursor.position, b"8 bytes!")
            with pytest.raises(Misuse, match="lost its tail"):
                await bus.subscribe("t", start=str(grown_again))
            ahead = Cursor(cursor.order, cursor.position + 50, cursor.digest)
            with pytest.raises(Misuse, match="has no position"):
                await bus.subscribe("t", start=str(ahead))
            assert not [each for each in bus._pump.subscriptions if each is not events]

    run(job)


def test_a_time_begins_at_the_first_event_stored_then_or_later(url):
    async def job() -> None:
        async with inorder.connect(url) as bus:
            await counted(bus, "t", 3)
            await asyncio.sleep(0.02)
            between = datetime.now(UTC)
            await asyncio.sleep(0.02)
            await counted(bus, "t", 3, 5)
            starts = {between: [3, 4], between - timedelta(days=1): [0, 1, 2, 3, 4],
                      between + timedelta(days=1): []}  # fmt: skip
            for start, wanted in starts.items():
                async with bus.subscribe("t", start=start) as events:
                    assert numbers(await take(events, len(wanted))) == wanted
                    await none_left(events)

    run(job)


@pytest.mark.parametrize("start", ["some", -2, 99, True, 1.5, None, datetime(2026, 1, 1), [1]])
def test_a_start_that_cannot_be_is_refused(url, start):
    async def job() -> None:
        async with inorder.connect(url) as bus:
            await bus.publish("t", {})
            with pytest.raises(Misuse):
                await bus.subscribe("t", start=start)
            assert not bus._pump.subscriptions

    run(job)


# Topics and patterns.


def test_patterns_take_in_topics_that_appear_later_without_a_gap(url):
    async def job() -> None:
        async with (
            inorder.connect(url) as bus, bus.subscribe("orders.*") as one,
            bus.subscribe("orders.>", "payments") as rest, bus.subscribe(">") as everything,
        ):  # fmt: skip
            topics = ["orders", "orders.eu", "orders.us", "orders.eu.paid", "payments", "x"]
            for n, topic in enumerate(topics):
                await bus.publish(topic, {"n": n})
            assert [e.topic for e in await take(one, 2)] == ["orders.eu", "orders.us"]
            wanted = ["orders.eu", "orders.us", "orders.eu.paid", "payments"]
            assert [e.topic for e in await take(rest, 4)] == wanted
            assert [e.topic for e in await take(everything, 6)] == topics
            for events in (one, rest, everything):
                await none_left(events)

    run(job)


def test_topics_of_one_subscription_are_bounded(url):
    async def job() -> None:
        async with inorder.connect(url) as bus:
            names = [f"{n:0>200}" for n in range(SUBSCRIBED_BYTES_MAX // 200)]
            with pytest.raises(TooLarge):
                bus.subscribe(*names, "one.more" * 20)
            more = [f"x{name}" for name in names[10:]]
            async with bus.subscribe(*names) as events, bus.subscribe(*more) as others:
                # Together the two want more than one subscription may name.
                await bus.publish(names[0], {"n": 1})
                await bus.publish(more[0], {"n": 2})
                assert numbers(await take(events, 1)) == [1]
                assert numbers(await take(others, 1)) == [2]

    run(job)


def test_nothing_of_a_topic_that_was_left_is_handed_over(url, tmp_path):
    async def job() -> None:
        folder = tmp_path / "trace"
        async with inorder.connect(url, trace=folder) as bus, bus.subscribe("a", "b") as events:
            for n in range(3):
                await bus.publish("a", {"n": n})
                await bus.publish("b", {"n": n})
            assert (await events.next(5)).topic == "a"
            await events.unsubscribe("a")
            await bus.publish("a", {"n": 9})
            await bus.publish("b", {"n": 3})
            got = await take(events, 4)
            assert [(e.topic, e.value["n"]) for e in got] == [("b", n) for n in range(4)]
            for wrong in (("a",), ("c",), (), ("b", "c")):
                with pytest.raises(Misuse, match="not held"):
                    await events.unsubscribe(*wrong)
            traces([bus])
            judged(gather([folder], within=10.0))
            await events.unsubscribe("b")
            await bus.publish("b", {"n": 9})
            await none_left(events)

    run(job)


@pytest.mark.parametrize("start", [-1, 0, "earliest"])
def test_before_the_first_event_nothing_was_removed(url, start):
    async def job() -> None:
        async with inorder.connect(url) as bus:
            await counted(bus, "t", 2)
            async with bus.subscribe("t", start=start) as events:
                assert numbers(await take(events, 2)) == [0, 1]

    run(job)
