"""Subscriptions: what is handed over, from where on, and what a filter's move means."""

from __future__ import annotations

import asyncio
import os
import threading
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec import Struct

import inorder
from inorder.bus.parameters import Parameters
from inorder.core.errors import (
    BadOption,
    BadValue,
    Damaged,
    Misuse,
    PredicateError,
    Refused,
    Removed,
    TooLarge,
)
from inorder.core.limits import SUBSCRIBED_BYTES_MAX
from inorder.logs import reader
from inorder.logs.cursor import Cursor, parse
from tests.bus.judge import gather, judged, none_left, run, take, traces, until


def numbers(events: list[Any]) -> list[int]:
    return [event.value["n"] for event in events]


async def counted(bus: Any, topic: str, *range_: int) -> list[Any]:
    return await bus.publish_many(topic, [{"n": n} for n in range(*range_)])


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


# Filters.


def test_a_filter_moves_and_says_above_which_position(url, tmp_path):
    async def job() -> None:
        folder = tmp_path / "trace"
        async with (
            inorder.connect(url, trace=folder) as bus,
            bus.subscribe("t", where="n >= :low", low=5) as events,
        ):
            await counted(bus, "t", 10)
            first = await events.next(5)
            assert first.value["n"] == 5
            change = await events.set(low=8)
            assert change.position == first.position
            await counted(bus, "t", 10)
            assert numbers(await take(events, 4)) == [8, 9, 8, 9]
            assert (await events.replace("n < :high", high=2)).position > change.position
            await counted(bus, "t", 10)
            assert numbers(await take(events, 2)) == [0, 1]
            for wrong in (events.set(low=1), events.set(high="x"), events.replace("n <")):
                with pytest.raises(PredicateError):
                    await wrong
            await none_left(events)
            traces([bus])
            judged(gather([folder], within=10.0))

    run(job)


def test_what_a_filter_kept_back_since_the_last_event_is_judged_again(url):
    async def job() -> None:
        async with (
            inorder.connect(url) as bus, bus.subscribe("t", where="n >= :low", low=5) as events,
        ):  # fmt: skip
            await counted(bus, "t", 4)
            await none_left(events)
            await events.set(low=2)
            assert numbers(await take(events, 2)) == [2, 3]
            await events.set(low=0)
            # What lies below the last event handed over does not come again.
            await none_left(events)

    run(job)


def test_a_waiting_reader_gets_what_the_moved_filter_lets_through(url):
    async def job() -> None:
        async with (
            inorder.connect(url) as bus, bus.subscribe("t", where="n >= :low", low=5) as events,
        ):  # fmt: skip
            await counted(bus, "t", 4)
            waiting = asyncio.create_task(events.next(5))
            await asyncio.sleep(0.05)
            await events.set(low=3)
            assert (await waiting).value == {"n": 3}

    run(job)


def test_values_without_attributes_match_no_filter(url):
    async def job() -> None:
        async with inorder.connect(url) as bus, bus.subscribe("t", where="n >= 0") as events:
            for value in (b"raw", {}, {"n": None}, {"n": [1]}, {"n": {"n": 1}}, {"n": 1}):
                await bus.publish("t", value)
            assert (await events.next(5)).value == {"n": 1}

    run(job)


def test_a_filter_needs_its_parameters_and_parameters_a_filter(url):
    async def job() -> None:
        async with inorder.connect(url) as bus:
            with pytest.raises(Misuse, match="without a where"):
                bus.subscribe("t", low=1)
            with pytest.raises(PredicateError, match="low"):
                bus.subscribe("t", where="n > :low")
            with pytest.raises(PredicateError):
                bus.subscribe("t", where="n >")
            async with bus.subscribe("t") as events:
                for call in (events.set(low=1), events.replace("n > 1")):
                    with pytest.raises(Misuse, match="no filter"):
                        await call
            named = bus.subscribe("t", where="n > :start", parameters={"start": 3})
            async with named as events:
                await counted(bus, "t", 6)
                assert numbers(await take(events, 2)) == [4, 5]

    run(job)


class Monitor(Parameters, topics=("quotes",), where="firm = :firm AND price < :limit"):
    firm: str
    limit: float = 10.0


def test_assigning_a_field_of_a_parameters_object_moves_the_filter(url):
    def quote(price: float, firm: str = "IBM") -> dict[str, Any]:
        return {"firm": firm, "price": price}

    async def job() -> None:
        monitor = Monitor(firm="IBM")
        async with inorder.connect(url) as bus:
            opening = bus.subscribe(monitor)
            monitor.limit = 20.0  # before it begins
            async with opening as events:
                await bus.publish("quotes", quote(15.0))
                assert (await events.next(5)).value["price"] == 15.0
                monitor.limit = 5.0
                await bus.publish("quotes", quote(7.0))
                await bus.publish("quotes", quote(4.0))
                assert (await events.next(5)).value["price"] == 4.0
                thread = threading.Thread(target=setattr, args=(monitor, "firm", "Sun"))
                thread.start()
                thread.join()
                await asyncio.sleep(0)
                await bus.publish("quotes", quote(4.0, "Sun"))
                assert (await events.next(5)).value["firm"] == "Sun"
                with pytest.raises(PredicateError):
                    monitor.limit = "high"
            monitor.limit = 1.0  # nobody listens any more
            with pytest.raises(Misuse, match="give it alone"):
                bus.subscribe(monitor, "more")
            with pytest.raises(Misuse, match="topics are texts"):
                bus.subscribe(5)

    run(job)


# Reading.


class Order(Struct):
    id: int


def test_a_value_of_another_type_is_said_and_passed_over(url):
    async def job() -> None:
        async with inorder.connect(url) as bus, bus.subscribe("o", type=Order) as orders:
            await bus.publish("o", {"no": "order"})
            await bus.publish("o", Order(1))
            with pytest.raises(BadValue, match="id"):
                await orders.next(5)
            assert (await orders.next(5)).value == Order(1)

    run(job)


def test_iteration_ends_when_nothing_comes(url):
    async def job() -> None:
        async with inorder.connect(url) as bus, bus.subscribe("t", idle=0.05) as events:
            await counted(bus, "t", 3)
            assert numbers([event async for event in events]) == [0, 1, 2]
            with pytest.raises(TimeoutError, match=r"nothing came in 0.01 s"):
                await events.next(0.01)
            with pytest.raises(Misuse):
                await events.next(float("nan"))

    run(job)


def test_a_slow_reader_takes_no_more_ahead_than_it_may(url, monkeypatch):
    monkeypatch.setattr(reader, "UNREAD_BYTES_MAX", 20_000)
    monkeypatch.setattr(reader, "READ_BYTES_AT_ONCE", 5_000)

    async def job() -> None:
        async with (
            inorder.connect(url) as bus, bus.subscribe("t") as slow, bus.subscribe("t") as quick,
        ):  # fmt: skip
            for start in range(0, 4000, 200):
                await counted(bus, "t", start, start + 200)
                assert numbers(await take(quick, 200)) == list(range(start, start + 200))
            assert slow.reader._bytes < 30_000
            assert numbers(await take(slow, 4000)) == list(range(4000))

    run(job)


def test_leaving_a_subscription_ends_its_waits(url):
    async def job() -> None:
        async with inorder.connect(url) as bus:
            events = await bus.subscribe("t")
            waiting = asyncio.create_task(events.next())
            iterating = asyncio.create_task(events.__anext__())
            await asyncio.sleep(0.01)
            await events.close()
            with pytest.raises(Misuse, match="closed"):
                await waiting
            with pytest.raises(StopAsyncIteration):
                await iterating
            for call in (events.next(1), events.unsubscribe("t"), events.set(a=1)):
                with pytest.raises(Misuse, match="closed"):
                    await call
            await events.close()
            await bus.publish("t", {})

    run(job)


def test_what_was_not_entered_is_said_in_one_sentence(url):
    async def job() -> None:
        async with inorder.connect(url) as bus:
            with pytest.raises(Misuse, match="enter it first"):
                async for _ in bus.subscribe("t"):
                    pass
            for wrong in ({"ack": "some"}, {"removed": "no"}, {"ack": "manual"}):
                with pytest.raises(BadOption):
                    bus.subscribe("t", **wrong)
            for idle in (-1, "x", float("inf"), True):
                with pytest.raises(Misuse, match="idle"):
                    bus.subscribe("t", idle=idle)
            with pytest.raises(Misuse, match="names no topic"):
                bus.subscribe()
            for topic in (b"t", None, "a..b"):
                with pytest.raises(Misuse):
                    bus.subscribe(topic)

    run(job)


# Removed, damaged, refused.


def test_a_removed_range_is_raised_or_told_between_two_events(url):
    async def job() -> None:
        async with inorder.connect(url) as bus:
            positions = [await receipt.position() for receipt in await counted(bus, "t", 10)]
            first = await bus.subscribe("t", start=positions[2])
            telling = await bus.subscribe("t", start=positions[2], removed="tell")
            before = bus.subscribe("t", start=positions[2])
            await none_left(await bus.subscribe("t"))
            first.reader.move(None, -1)
            telling.reader.move(None, -1)
            await bus._broker.remove(bus._log, positions[6])
            bus.reads()
            async with before as late:
                with pytest.raises(Removed) as caught:
                    await late.next(5)
                assert (caught.value.start, caught.value.upto) == (positions[3], positions[6])
                assert numbers(await take(late, 4)) == [6, 7, 8, 9]
            async with bus.subscribe("t", start="earliest") as events:
                assert numbers(await take(events, 4)) == [6, 7, 8, 9]

    run(job)


def test_a_removed_range_is_told_as_an_item(url):
    async def job() -> None:
        async with inorder.connect(url) as bus:
            positions = [await receipt.position() for receipt in await counted(bus, "t", 4)]
            await bus._broker.remove(bus._log, positions[2])
            before = positions[0] - 1
            async with bus.subscribe("t", start=before, removed="tell") as events:
                item = await events.next(5)
                assert isinstance(item, Removed)
                assert (item.start, item.upto) == (positions[0], positions[2])
                assert numbers(await take(events, 2)) == [2, 3]

    run(job)


def test_an_erased_event_leaves_no_trace_but_its_place(url):
    async def job() -> None:
        async with inorder.connect(url) as bus:
            positions = [await receipt.position() for receipt in await counted(bus, "t", 3)]
            await bus._broker.erase(bus._log, positions[1])
            async with bus.subscribe("t", start="earliest") as events:
                assert [e.position for e in await take(events, 2)] == [positions[0], positions[2]]

    run(job)


def reading_fails(bus: Any, errors: list[Exception], at: int | None = None) -> None:
    """Let reads fail so often, or those from an offset."""
    read = bus._broker.read

    async def failing(log: Any, offset: int, *rest: Any) -> Any:
        if errors and at in (None, offset):
            raise errors.pop(0)
        return await read(log, offset, *rest)

    bus._pump._broker = type("Broker", (), {})()
    for name in ("moved", "settle"):
        setattr(bus._pump._broker, name, getattr(bus._broker, name))
    bus._pump._broker.read = failing


def test_reading_that_is_refused_is_tried_again(url):
    async def job() -> None:
        async with inorder.connect(url) as bus, bus.subscribe("t") as events:
            reading_fails(bus, [Refused("busy"), Refused("busy")])
            await counted(bus, "t", 3)
            assert numbers(await take(events, 3)) == [0, 1, 2]

    run(job)


def test_damage_is_raised_where_it_is_and_reading_goes_on_behind_it(url):
    async def job() -> None:
        async with inorder.connect(url) as bus:
            positions = [await receipt.position() for receipt in await counted(bus, "t", 4)]
            start = positions[0]
            reading_fails(bus, [Damaged("log", "a wrong sum", start + 1, start + 2)])
            async with bus.subscribe("t", start=start) as events:
                with pytest.raises(Damaged, match="wrong sum"):
                    await events.next(5)
                assert numbers(await take(events, 2)) == [2, 3]

    run(job)


def test_damage_without_an_end_ends_the_subscription_and_no_other(url):
    async def job() -> None:
        async with inorder.connect(url) as bus:
            first = (await counted(bus, "t", 3))[0].offset
            async with bus.subscribe("t") as other:
                await none_left(other)
                reading_fails(bus, [Damaged("log", "gone")], first)
                async with bus.subscribe("t", start="earliest") as events:
                    for _ in range(2):
                        with pytest.raises(Damaged, match="gone"):
                            await events.next(5)
                await counted(bus, "t", 3, 5)
                assert numbers(await take(other, 2)) == [3, 4]

    run(job)


# Other processes and threads.


def test_a_forked_child_is_told_so(url):
    async def job() -> None:
        async with inorder.connect(url) as bus, bus.subscribe("t") as events:
            await bus.publish("t", {})
            if not (child := os.fork()):
                code = 1
                try:
                    bus.check_process()
                except Misuse as error:
                    code = 0 if "forked" in str(error) else 2
                finally:
                    os._exit(code)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            assert await events.next(5)
            await bus.publish("t", {})
            assert await events.next(5)

    run(job)


def test_without_async(url):
    with inorder.connect_sync(url) as bus:
        with bus.subscribe("t", where="n > :low", low=0, idle=0.2) as events:
            assert bus.publish("t", {"n": 1}, key="k").outcome == "stored"
            receipts = bus.publish_many("t", [{"n": n} for n in range(3)])
            assert [receipt.outcome for receipt in receipts] == ["stored"] * 3
            assert events.next(5).value == {"n": 1}
            assert [event.value["n"] for event in events] == [1, 2]
            assert events.set(low=5).position >= receipts[-1].offset
            assert events.replace("n = :n", n=6).position >= receipts[-1].offset
            with pytest.raises(TimeoutError):
                events.next(0.01)
        with pytest.raises(Misuse, match="closed"):
            events.next(1)
    with pytest.raises(Misuse, match="closed"):
        bus.publish("t", {"n": 1})


def test_a_thread_that_waits_is_woken_when_the_bus_closes(url):
    bus = inorder.connect_sync(url)
    events = bus.subscribe("t")
    ended: list[Any] = []

    def wait() -> None:
        try:
            events.next()
        except Misuse as error:
            ended.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    bus.close()
    thread.join(5)
    assert len(ended) == 1


def test_threads_with_loops_of_their_own_share_a_log(url, tmp_path):
    """A publisher and a subscriber in each of two threads."""
    started = threading.Barrier(2)
    failures: list[BaseException] = []

    async def one(number: int) -> None:
        folder = tmp_path / f"t{number}"
        async with (
            inorder.connect(url, name=f"b{number}", trace=folder) as bus,
            bus.subscribe("x", "y") as events,
        ):
            await asyncio.to_thread(started.wait, 10)
            for n in range(100):
                await bus.publish("xy"[n % 2], {"n": n})
            await take(events, 200)
            traces([bus])
            # Judged before anybody leaves.
            await asyncio.to_thread(started.wait, 10)
            if number == 0:
                counts = judged(gather([tmp_path / "t0", tmp_path / "t1"]))
                assert counts["owed"] == 400
            await asyncio.to_thread(started.wait, 10)

    def thread(number: int) -> None:
        try:
            run(lambda: one(number))
        except BaseException as error:
            failures.append(error)
            started.abort()

    threads = [threading.Thread(target=thread, args=[n]) for n in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert failures == []


def test_a_quiet_bus_reads_little(url):
    """It waits for the broker's word, and looks once a second beside it."""

    async def job() -> None:
        async with inorder.connect(url) as bus, bus.subscribe("t") as events:
            await bus.publish("t", {})
            await events.next(5)
            reads = 0
            read = bus._broker.read

            async def counting(*rest: Any) -> Any:
                nonlocal reads
                reads += 1
                return await read(*rest)

            bus._broker.read = counting
            await asyncio.sleep(0.5)
            assert reads <= 3
            await bus.publish("t", {})
            await events.next(5)
            await until(lambda: reads >= 1)

    run(job)
