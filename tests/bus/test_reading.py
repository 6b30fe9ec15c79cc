"""Reading: waits, bounds, what lies between two events, other threads and processes."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import Any

import pytest
from msgspec import Struct

import inorder
from inorder.core.errors import (
    BadOption,
    BadValue,
    Damaged,
    Misuse,
    Refused,
    Removed,
    Unsure,
)
from inorder.logs import reader
from tests.bus.judge import counted, gather, judged, none_left, numbers, run, take, traces, until

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
            with pytest.raises(Misuse, match="enter it first"):
                list(bus.subscribe("t"))
            with pytest.raises(Misuse, match="enter it first"):
                await bus.subscribe("t").next()
            assert not hasattr(bus.subscribe("t"), "else")
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


def test_a_log_that_does_not_say_its_end_is_not_asked_in_a_hurry(url):
    async def job() -> None:
        async with inorder.connect(url) as bus, bus.subscribe("t") as events:
            asked = 0

            async def refusing(logs: Any) -> Any:
                nonlocal asked
                asked += 1
                raise Refused("not now")

            async def at_once(*rest: Any) -> None:
                """The end that is known stays behind, so there is always more."""

            settle, bus._broker.settle = bus._broker.settle, refusing
            moved, bus._broker.moved = bus._broker.moved, at_once
            await asyncio.sleep(0.5)
            assert asked < 100
            bus._broker.settle, bus._broker.moved = settle, moved
            await bus.publish("t", {"n": 1})
            assert (await events.next(5)).value == {"n": 1}

    run(job)


def test_a_subscription_that_cannot_begin_says_so_at_the_deadline(url):
    async def job() -> None:
        async with inorder.connect(url, deadline=0.3) as bus:
            settle = bus._broker.settle

            async def silent(logs: Any) -> Any:
                await asyncio.sleep(60)

            bus._broker.settle = silent
            with pytest.raises(Unsure, match=r"subscribe: no answer in 0\.3 s"):
                await bus.subscribe("t")
            bus._broker.settle = settle
            assert not bus._pump.subscriptions
            async with bus.subscribe("t") as events:
                await bus.publish("t", {"n": 1})
                assert numbers(await take(events, 1)) == [1]

    run(job)
