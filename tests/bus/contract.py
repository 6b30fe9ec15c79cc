"""The contract of a broker: its verbs (contract_verbs.py) and a whole bus on top of it.

A new broker adds one file with a subclass of both classes that says where it is (`url`).
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

import inorder
from inorder.core.errors import BadScenario, Misuse, PredicateError, TooLarge, UnknownName
from inorder.core.limits import EVENT_BYTES_MAX
from tests.bus.contract_verbs import BrokerContract
from tests.bus.judge import gather, judged, run, take, traces, until

__all__ = ["BrokerContract", "BusContract"]

ALL = pytest.mark.parametrize("guarantee", ["none", "fifo", "total"])


class Order(Struct):
    id: int
    amount: float
    lines: list[str] = []


@dataclass
class Payment:
    id: int
    by: str


class BusContract:
    """A subclass gives `url`, from a folder of its own."""

    def url(self, folder: Path) -> str:
        raise NotImplementedError

    # Order, judged.

    @ALL
    def test_several_buses_and_subscriptions_get_what_is_promised(self, tmp_path, guarantee):
        each = 60
        topics = ["x", "y", "z"]

        async def job() -> None:
            url = self.url(tmp_path)
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
                    await take(events, count)
                await take(filtered, 3 * (each - each // 2))
                traces(buses)
                counts = judged(gather(tmp_path / f"t{n}" for n in range(3)), guarantee)
                assert counts["owed"] == sum(expected) + 3 * (each - each // 2)
                assert all(events.gaps == [] for events in subscriptions)

        run(job)

    def test_under_total_everybody_sees_one_sequence(self, tmp_path):
        async def job() -> None:
            url = self.url(tmp_path)
            async with (
                inorder.connect(url) as one,
                inorder.connect(url) as two,
                one.subscribe("x", "y") as here,
                two.subscribe("x", "y") as there,
            ):
                values = [{"n": n} for n in range(300)]
                await asyncio.gather(
                    *(bus.publish_many(topic, values) for bus in (one, two) for topic in "xy")
                )
                seen = [[event.id for event in await take(each, 1200)] for each in (here, there)]
                assert seen[0] == seen[1]
                async with two.subscribe("x", "y", replay="all") as past:
                    again = await take(past, 1200)
                    assert [event.id for event in again] == seen[0]
                    assert all(event.in_order for event in again)

        run(job)

    # Values.

    @ALL
    def test_values_come_out_as_they_went_in(self, tmp_path, guarantee):
        plain = {"s": "grün", "i": -7, "big": 2**63, "f": 0.5, "b": True, "n": None, "l": [1, {}]}

        async def job() -> None:
            async with (
                inorder.connect(self.url(tmp_path), guarantee) as bus,
                bus.subscribe("d") as dicts,
                bus.subscribe("o", type=Order) as orders,
                bus.subscribe("p", type=Payment) as payments,
            ):
                for value in (plain, b"\x00\xff", bytearray(b"x"), {}):
                    await bus.publish("d", value)
                assert [event.value for event in await take(dicts, 4)] == [
                    plain, b"\x00\xff", b"x", {},
                ]  # fmt: skip
                await bus.publish("o", Order(1, 2.5, ["a"]))
                assert (await orders.next(5)).value == Order(1, 2.5, ["a"])
                await bus.publish("p", Payment(1, "me"))
                delivered = await payments.next(5)
                assert delivered.value == Payment(1, "me")
                assert (delivered.publisher, delivered.offset) == (bus.name, 0)

        run(job)

    @ALL
    def test_what_cannot_be_published_hurts_nobody_else(self, tmp_path, guarantee):
        class Text(str):
            pass

        async def job() -> None:
            async with (
                inorder.connect(self.url(tmp_path), guarantee) as bus,
                bus.subscribe("t") as events,
            ):
                bad = ["text", 7, {"@x": 1}, {"": 1}, {1: 1}, {"i": 2**64}, {"s": "\ud800"}]
                for value in [*bad, {"o": object()}, {"x": [object()]}]:
                    with pytest.raises(Misuse):
                        await bus.publish("t", value)
                with pytest.raises(TooLarge):
                    await bus.publish("t", {"x": "a" * EVENT_BYTES_MAX})
                with pytest.raises(TooLarge):
                    await bus.publish_many("t", [{}, {"x": "a" * EVENT_BYTES_MAX}])
                with pytest.raises(Misuse):
                    await bus.publish("", {})
                large = {"x": "a" * (EVENT_BYTES_MAX - 200), "t": Text("t")}
                await bus.publish("t", large)
                assert (await events.next(5)).value == large

        run(job)

    def test_a_value_of_another_type_is_said_and_passed_over(self, tmp_path):
        async def job() -> None:
            async with (
                inorder.connect(self.url(tmp_path)) as bus,
                bus.subscribe("o", type=Order) as orders,
            ):
                await bus.publish("o", {"no": "order"})
                await bus.publish("o", Order(1, 1.0))
                with pytest.raises(inorder.core.errors.Damaged, match="cannot be read"):
                    await orders.next(5)
                event = await orders.next(5)
                assert (event.value, event.nth) == (Order(1, 1.0), 2)

        run(job)

    # Filters.

    @ALL
    def test_a_filter_moves_at_the_cut_it_tells(self, tmp_path, guarantee):
        async def job() -> None:
            folder = tmp_path / "trace"
            async with (
                inorder.connect(self.url(tmp_path), guarantee, trace=folder) as bus,
                bus.subscribe("t", where="n >= :low", low=5) as events,
            ):
                await bus.publish_many("t", [{"n": n} for n in range(10)])
                await until(lambda: len(events._unread) == 5)
                assert (await events.next(5)).value["n"] == 5
                change = await events.set(low=8)
                assert change.cut == 6
                await bus.publish_many("t", [{"n": n} for n in range(10)])
                rest = await take(events, 6)
                assert [(e.nth, e.value["n"]) for e in rest] == [
                    (2, 6), (3, 7), (4, 8), (5, 9), (6, 8), (7, 9),
                ]  # fmt: skip
                assert (await events.replace("n < :high", high=2)).cut == 8
                await bus.publish_many("t", [{"n": n} for n in range(10)])
                assert [e.value["n"] for e in await take(events, 2)] == [0, 1]
                with pytest.raises(PredicateError):
                    await events.set(low=1)
                with pytest.raises(PredicateError):
                    await events.replace("n <")
                with pytest.raises(TimeoutError):
                    await events.next(0.05)
                traces([bus])
                judged(gather([folder]), guarantee)

        run(job)

    @ALL
    def test_nothing_of_a_topic_that_was_left_is_handed_over(self, tmp_path, guarantee):
        async def job() -> None:
            folder = tmp_path / "trace"
            async with (
                inorder.connect(self.url(tmp_path), guarantee, trace=folder) as bus,
                bus.subscribe("a", "b", where="n >= :low", low=0) as events,
            ):
                for n in range(4):
                    await bus.publish("a", {"n": n})
                    await bus.publish("b", {"n": n})
                await until(lambda: len(events._unread) == 8)
                change = await events.set(low=2)
                await events.unsubscribe("a")
                await bus.publish_many("a", [{"n": 9}])
                await bus.publish_many("b", [{"n": 1}, {"n": 9}])
                rest = await take(events, 5)
                assert [(e.topic, e.value["n"]) for e in rest] == [
                    ("b", 0), ("b", 1), ("b", 2), ("b", 3), ("b", 9),
                ]  # fmt: skip
                assert rest[-1].nth == change.cut == 9
                with pytest.raises(Misuse):
                    await events.unsubscribe("a")
                traces([bus])
                judged(gather([folder], within=10.0), guarantee)
                await events.unsubscribe("b")
                await bus.publish("b", {"n": 9})
                with pytest.raises(TimeoutError):
                    await events.next(0.05)

        run(job)

    # The past.

    @ALL
    def test_a_replay_begins_anywhere_and_has_no_seam(self, tmp_path, guarantee):
        """Also in the middle of a batch, and with publications under way all the time."""

        async def job() -> None:
            url = self.url(tmp_path)
            async with inorder.connect(url, guarantee) as bus, inorder.connect(url) as other:
                await bus.publish_many("a", [{"n": n} for n in range(100)])
                await bus.publish_many("b", [{"n": n} for n in range(50)])

                async def more() -> None:
                    for n in range(100, 200):
                        await bus.publish("a", {"n": n})

                publishing = asyncio.create_task(more())
                for replay, first in (
                    ("all", (0, 0)), (33, (33, 33)), ({"a": 77, "b": 1}, (77, 1)),
                    ({"a": 99}, (99, 50)), ({"a": 100, "b": 50}, (100, 50)),
                ):  # fmt: skip
                    wanted = {"guarantee": guarantee, "replay": replay}
                    async with other.subscribe("a", "b", **wanted) as events:
                        count = 200 - first[0] + 50 - first[1]
                        found = await take(events, count)
                        for topic, start in zip("ab", first, strict=True):
                            end = 200 if topic == "a" else 50
                            mine = [e for e in found if e.topic == topic]
                            assert [e.offset for e in mine] == list(range(start, end))
                            assert [e.value["n"] for e in mine] == list(range(start, end))
                        assert all(e.in_order for e in found)
                await publishing

        run(job)

    def test_a_replay_goes_on_when_one_of_its_topics_is_left(self, tmp_path):
        async def job() -> None:
            async with inorder.connect(self.url(tmp_path)) as bus:
                for n in range(5):
                    await bus.publish("a", {"n": n})
                    await bus.publish("b", {"n": n})
                async with bus.subscribe("a", "b", replay="all") as events:
                    assert (await events.next(5)).topic == "a"
                    await events.unsubscribe("b")
                    for n in range(5, 8):
                        await bus.publish("b", {"n": n})
                        await bus.publish("a", {"n": n})
                    assert [e.value["n"] for e in await take(events, 7)] == list(range(1, 8))

        run(job)

    def test_a_replay_that_cannot_be_is_refused(self, tmp_path):
        async def job() -> None:
            async with inorder.connect(self.url(tmp_path)) as bus:
                await bus.publish("a", {})
                for replay in (2, -1, "some", True, {"a": 2}, {"b": 0}, {"a": "0"}):
                    with pytest.raises(Misuse):
                        await bus.subscribe("a", replay=replay)
                assert bus._subscriptions == {}

        run(job)

    # Guarantees and names.

    def test_none_reads_any_topic_and_others_only_their_own(self, tmp_path):
        async def job() -> None:
            url = self.url(tmp_path)
            async with inorder.connect(url) as total, inorder.connect(url, "none") as none:
                async with none.subscribe("t") as plain, total.subscribe("t") as ordered:
                    await total.publish_many("t", [{"n": n} for n in range(100)])
                    for events in (plain, ordered):
                        found = await take(events, 100)
                        assert [(e.value["n"], e.offset) for e in found] == [
                            (n, n) for n in range(100)
                        ]
                with pytest.raises(Misuse, match="published with guarantee 'total'"):
                    await none.publish("t", {})
                with pytest.raises(Misuse, match="cannot be subscribed to with 'fifo'"):
                    await none.subscribe("t", guarantee="fifo")
                with pytest.raises(UnknownName):
                    await none.subscribe("t", guarantee="some")

        run(job)

    def test_options_are_checked_before_anything_is_opened(self, tmp_path):
        url = self.url(tmp_path)
        with pytest.raises(BadScenario, match="windw"):
            inorder.connect(url, windw=3)
        with pytest.raises(UnknownName):
            inorder.connect(url, "totl")
        for name in ("", "a b", "x" * 65, "stage1"):
            with pytest.raises(Misuse):
                inorder.connect(url, name=name)
        for deadline in (0, -1, 1e9):
            with pytest.raises(Misuse):
                inorder.connect(url, deadline=deadline)
        bus = inorder.connect(url)
        with pytest.raises(Misuse, match="not open"):
            bus.subscribe("t")
        with pytest.raises(Misuse, match="not open"):
            run(lambda: bus.publish("t", {}))

    @ALL
    def test_a_name_is_taken_once_and_goes_on_counting(self, tmp_path, guarantee):
        async def job() -> None:
            url = self.url(tmp_path)
            async with inorder.connect(url, guarantee) as keeps_it_alive:
                seqs = []
                for _ in range(3):
                    async with inorder.connect(url, guarantee, name="me") as bus:
                        with pytest.raises(Misuse, match="connected already"):
                            await inorder.connect(url, guarantee, name="me").open()
                        receipts = await bus.publish_many("t", [{}, {}])
                        seqs += [int(receipt.event.split(":")[1]) for receipt in receipts]
                assert seqs == sorted({*seqs})
                async with keeps_it_alive.subscribe("t", replay="all") as events:
                    assert [e.seq for e in await take(events, 6)] == seqs

        run(job)

    def test_a_name_stays_with_its_guarantee(self, tmp_path):
        async def job() -> None:
            url = self.url(tmp_path)
            async with inorder.connect(url):
                async with inorder.connect(url, name="me") as bus:
                    await bus.publish("t", {})
                with pytest.raises(Misuse, match="another guarantee"):
                    await inorder.connect(url, "none", name="me").open()
                async with inorder.connect(url, name="me") as bus:
                    await bus.publish("t", {})

        run(job)

    def test_subscriptions_have_names_too(self, tmp_path):
        async def job() -> None:
            url = self.url(tmp_path)
            async with inorder.connect(url) as bus, inorder.connect(url) as other:
                tries = [bus.subscribe("t", name="s").__aenter__() for _ in range(3)]
                found = await asyncio.gather(*tries, return_exceptions=True)
                (events,) = [each for each in found if not isinstance(each, Exception)]
                assert sum(isinstance(each, Misuse) for each in found) == 2
                with pytest.raises(Misuse, match="connected already"):
                    await other.subscribe("t", name="s")
                with pytest.raises(Misuse):
                    await bus.subscribe("t", name="stage1")
                await events.close()
                async with other.subscribe("t", name="s") as again:
                    await bus.publish("t", {"n": 1})
                    assert (await again.next(5)).value == {"n": 1}

        run(job)

    # The synchronous facade.

    @ALL
    def test_without_async(self, tmp_path, guarantee):
        with inorder.connect_sync(self.url(tmp_path), guarantee) as bus:
            with bus.subscribe("t", where="n > :low", low=0, idle=0.2) as events:
                assert bus.publish("t", {"n": 1}).outcome == "accepted"
                receipts = bus.publish_many("t", [{"n": n} for n in range(3)])
                assert [receipt.outcome for receipt in receipts] == ["accepted"] * 3
                assert events.next(5).value == {"n": 1}
                assert [event.value["n"] for event in events] == [1, 2]
                assert events.set(low=5).cut == 4
                assert events.replace("n = :n", n=6).cut == 4
                with pytest.raises(TimeoutError):
                    events.next(0.01)
            with pytest.raises(Misuse, match="closed"):
                events.next(1)
        with pytest.raises(Misuse, match="closed"):
            bus.publish("t", {})

    def test_a_thread_that_waits_is_woken_when_the_bus_closes(self, tmp_path):
        bus = inorder.connect_sync(self.url(tmp_path))
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
