"""Publications and their four fates, on every broker."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from msgspec import Struct

import inorder
from inorder.bus import bus as bus_module
from inorder.bus.values import encoded
from inorder.core.errors import Misuse, Refused, Replaced, TooLarge, Unsure
from inorder.core.limits import EVENT_BYTES_MAX, PUBLISH_AT_ONCE
from inorder.logs import publications
from tests.bus.judge import Failing, none_left, run, take, until


class Order(Struct):
    id: int
    amount: float
    lines: list[str] = []


@dataclass
class Payment:
    id: int
    by: str


class Text(str):
    pass


# Values.


@pytest.mark.parametrize(
    "value",
    [
        {"s": "grün", "i": -7, "big": 2**63, "f": 0.5, "b": True, "n": None, "l": [1, {}]},
        {"deep": {"of": {"more": [1, [2]]}}, "raw": b"\x00\xff"},
        {"inf": float("inf")},
        {},
        b"\x00\xff",
        b"",
    ],
    ids=repr,
)
def test_values_come_out_as_they_went_in(url, value):
    async def job() -> None:
        async with inorder.connect(url) as bus, bus.subscribe("t") as events:
            await bus.publish("t", value)
            await bus.publish_many("t", [value, value])
            assert [event.value for event in await take(events, 3)] == [value] * 3

    run(job)


def test_values_of_types_come_out_as_those_types(url):
    async def job() -> None:
        async with (
            inorder.connect(url) as bus,
            bus.subscribe("o", type=Order) as orders,
            bus.subscribe("p", type=Payment, where="by = :me", me="me") as payments,
        ):
            await bus.publish("o", Order(1, 2.5, ["a"]))
            await bus.publish_many("p", [Payment(1, "me"), Payment(2, "you"), Payment(3, "me")])
            assert (await orders.next(5)).value == Order(1, 2.5, ["a"])
            assert [e.value for e in await take(payments, 2)] == [
                Payment(1, "me"),
                Payment(3, "me"),
            ]

    run(job)


def test_what_is_like_a_known_value_is_taken_as_it(url):
    async def job() -> None:
        async with inorder.connect(url) as bus, bus.subscribe("t") as events:
            for value in (bytearray(b"x"), memoryview(b"x")):
                await bus.publish("t", value)
            await bus.publish("t", {"t": Text("t")})
            assert [e.value for e in await take(events, 3)] == [b"x", b"x", {"t": "t"}]

    run(job)


@pytest.mark.parametrize(
    "value",
    ["text", 7, None, ["x"], {"": 1}, {1: 1}, {"i": 2**64}, {"s": "\ud800"}, {"o": object()},
     {"x": [object()]}, Order],
    ids=repr,
)  # fmt: skip
def test_what_cannot_be_published_is_said_before_anything_is(url, value):
    async def job() -> None:
        async with inorder.connect(url) as bus, bus.subscribe("t") as events:
            with pytest.raises(Misuse):
                await bus.publish("t", value)
            with pytest.raises(Misuse):
                await bus.publish_many("t", [{}, {}, value])
            await none_left(events)

    run(job)


def test_the_culprit_of_many_is_named(url):
    async def job() -> None:
        async with inorder.connect(url) as bus:
            with pytest.raises(Misuse, match=r"value 3 of 4: .*64"):
                await bus.publish_many("t", [{}, {}, {"i": 2**64}, {}])

    run(job)


def test_the_largest_event_is_published_and_a_larger_one_is_not(url):
    async def job() -> None:
        async with inorder.connect(url) as bus, bus.subscribe("t") as events:
            # To the byte: two for the map and its name, five for the length of the text.
            large = {"x": "a" * (EVENT_BYTES_MAX - 8)}
            assert len(msgspec.msgpack.encode(large)) == EVENT_BYTES_MAX
            await bus.publish_many("t", [large, {"n": 1}])
            assert (await events.next(5)).value == large
            for call in (bus.publish("t", {"x": "a" * EVENT_BYTES_MAX}),
                         bus.publish_many("t", [{}, {"x": "a" * EVENT_BYTES_MAX}])):  # fmt: skip
                with pytest.raises(TooLarge):
                    await call
            assert (await events.next(5)).value == {"n": 1}
            await none_left(events)

    run(job)


def test_keys_and_headers_come_along(url):
    async def job() -> None:
        async with inorder.connect(url) as bus, bus.subscribe("t") as events:
            await bus.publish("t", {}, key="k", headers={"trace": "7"})
            await bus.publish_many("t", [{}, {}], keys=["a", None], headers={"h": "1"})
            await bus.publish("t", {})
            got = [(event.key, event.headers) for event in await take(events, 4)]
            assert got == [("k", {"trace": "7"}), ("a", {"h": "1"}), (None, {"h": "1"}), (None, {})]
            with pytest.raises(Misuse, match="2 keys for 1"):
                await bus.publish_many("t", [{}], keys=["a", "b"])
            for wrong in ({"key": 7}, {"headers": {"a": 1}}, {"key": "x" * 20_000}):
                with pytest.raises(Misuse):
                    await bus.publish("t", {}, **wrong)
            for wrong in ({"keys": ["a", 7]}, {"headers": {"a": 1}}, {"keys": ["x" * 20_000, ""]}):
                with pytest.raises(Misuse):
                    await bus.publish_many("t", [{}, {}], **wrong)
            await none_left(events)

    run(job)


# Receipts.


def test_a_receipt_says_where_the_event_is(url):
    async def job() -> None:
        async with inorder.connect(url, name="me") as bus, bus.subscribe("t") as events:
            receipt = await bus.publish("t", {})
            event = await events.next(5)
            assert (receipt.event, receipt.outcome, receipt.topic) == (event.id, "stored", "t")
            assert await receipt.position() == event.position
            assert (await receipt.place())[1] == event.offset
            assert await receipt.stored() is receipt
            many = await bus.publish_many("t", [{}] * 300)
            assert [receipt.event for receipt in many] == [e.id for e in await take(events, 300)]
            assert await bus.publish_many("t", []) == []

    run(job)


def test_many_are_published_in_runs_and_in_order(url, monkeypatch):
    monkeypatch.setattr("inorder.bus.values.RUN_BYTES", 500)
    monkeypatch.setattr("inorder.bus.values._FIRST", 2)
    monkeypatch.setattr(bus_module, "EVENTS_AT_ONCE", 7)

    async def job() -> None:
        async with inorder.connect(url) as bus, bus.subscribe("t") as events:
            values = [{"n": n, "x": "a" * (n * 7)} for n in range(60)]
            receipts = await bus.publish_many("t", iter(values))
            got = await take(events, 60)
            assert [event.value for event in got] == values
            assert [event.id for event in got] == [receipt.event for receipt in receipts]
            assert {receipt.outcome for receipt in receipts} == {"stored"}

    run(job)


def test_far_more_than_may_be_under_way_is_published_by_one_call(url):
    async def job() -> None:
        async with inorder.connect(url) as bus:
            for _ in range(2):
                receipts = await bus.publish_many("t", ({"n": n} for n in range(100_000)))
                assert {receipt.outcome for receipt in receipts} == {"stored"}
            seqs = [receipt.seq for receipt in receipts]
            assert seqs == list(range(100_001, 200_001))

    run(job)


def test_runs_grow_to_their_size():
    """The first few values tell how many make a run."""
    counts = [count for _, count in encoded({"n": n} for n in range(20_000))]
    assert sum(counts) == 20_000
    assert max(counts) <= PUBLISH_AT_ONCE
    assert len(counts) <= 8


def test_publications_that_wait_together_go_together(url):
    async def job() -> None:
        async with inorder.connect(url) as bus, bus.subscribe("t") as events:
            await bus.publish("t", {"n": -1})
            broker = Failing(bus)
            broker.blocked = asyncio.Event()
            tasks = [asyncio.create_task(bus.publish("t", {"n": n})) for n in range(50)]
            await until(lambda: broker.appends == 1)
            await asyncio.sleep(0)
            broker.blocked.set()
            await asyncio.gather(*tasks)
            assert broker.appends <= 2
            assert [event.value["n"] for event in await take(events, 51)] == [*range(-1, 50)]

    run(job)


def test_a_refusal_refuses_what_was_in_it_and_nothing_else(url):
    async def job() -> None:
        async with inorder.connect(url) as bus, bus.subscribe("t") as events:
            await bus.publish("t", {"n": 0})
            broker = Failing(bus)
            broker.error = Refused("no room")
            with pytest.raises(Refused, match="no room"):
                await bus.publish("t", {"n": 1})
            receipts = await bus.publish_many("t", [{"n": 2}, {"n": 3}])
            assert [(r.outcome, r.reason) for r in receipts] == [("refused", "no room")] * 2
            broker.error = None
            await bus.publish("t", {"n": 4})
            assert [event.value["n"] for event in await take(events, 2)] == [0, 4]
            await none_left(events)

    run(job)


@pytest.mark.parametrize("stores", [True, False])
def test_an_append_without_an_answer_is_settled_by_reading_the_log(url, stores):
    async def job() -> None:
        async with inorder.connect(url) as bus, bus.subscribe("t") as events:
            await bus.publish("t", {"n": 0})
            broker = Failing(bus)
            broker.error, broker.stores = Unsure("the answer was lost"), stores
            publishing = asyncio.create_task(bus.publish("t", {"n": 1}))
            await until(lambda: broker.appends == 1)
            broker.error = None
            receipt = await publishing
            await bus.publish("t", {"n": 2})
            got = await take(events, 3)
            assert [event.value["n"] for event in got] == [0, 1, 2]
            assert (await receipt.position(), receipt.event) == (got[1].position, got[1].id)
            assert broker.appends == (2 if stores else 3)

    run(job)


def test_a_blocked_append_ends_at_the_deadline(url):
    """What is in it is unknown; what waits behind it was not tried, and is refused."""

    async def job() -> None:
        async with inorder.connect(url, deadline=0.3) as bus:
            await bus.publish("t", {})
            broker = Failing(bus)
            broker.blocked = asyncio.Event()
            first = asyncio.create_task(bus.publish("t", {"n": 1}))
            await until(lambda: broker.appends > 0)
            second = asyncio.create_task(bus.publish("t", {"n": 2}))
            many = asyncio.create_task(bus.publish_many("t", [{"n": 3}]))
            with pytest.raises(Unsure):
                await first
            with pytest.raises(Refused, match="not sent in time"):
                await second
            assert [each.outcome for each in await many] == ["refused"]
            broker.blocked.set()
            broker.blocked = None
            await bus.publish("t", {"n": 4}, deadline=5)
            async with bus.subscribe("t", start="earliest") as events:
                # 1 may have been published, and was; 2 and 3 were refused and never appear.
                assert [event.value.get("n") for event in await take(events, 3)] == [None, 1, 4]

    run(job)


def test_a_flood_is_refused_beyond_the_limit(url, monkeypatch):
    monkeypatch.setattr(publications, "WAITING_PUBLICATIONS_MAX", 100)

    async def job() -> None:
        async with inorder.connect(url) as bus:
            await bus.publish("t", {})
            flood = [bus.publish("t", {"n": n}) for n in range(300)]
            ends = await asyncio.gather(*flood, return_exceptions=True)
            kept = [end.event for end in ends if not isinstance(end, Exception)]
            assert {type(end) for end in ends if isinstance(end, Exception)} == {Refused}
            assert len(kept) == 100
            async with bus.subscribe("t", start="earliest") as events:
                assert [event.id for event in await take(events, 101)][1:] == kept

    run(job)


# Names and lives.


def test_a_store_that_refuses_a_life_is_asked_again_by_the_next_publication(url):
    async def job() -> None:
        async with inorder.connect(url, name="me") as bus, bus.subscribe("t") as events:
            final, refusals = bus._broker.final, [Refused("full"), Unsure("no answer")]

            async def failing(*rest: Any) -> Any:
                if refusals:
                    raise refusals.pop()
                return await final(*rest)

            bus._broker.final = failing
            for n, words in enumerate(("no answer", "full")):
                with pytest.raises(Refused, match=words):
                    await bus.publish("t", {"n": n})
            await bus.publish("t", {"n": 2})
            assert (await events.next(5)).value == {"n": 2}
            await none_left(events)

    run(job)


def test_many_of_a_replaced_publisher_have_a_receipt_each(url):
    async def job() -> None:
        async with inorder.connect(url, name="me") as bus, inorder.connect(url, name="me") as other:
            await bus.publish("t", {})
            await other.publish("t", {})
            for _ in range(2):
                receipts = await bus.publish_many("t", [{}] * 100)
                assert [receipt.outcome for receipt in receipts] == ["refused"] * 100

    run(job)


def test_a_name_counts_from_one_in_each_life(url):
    async def job() -> None:
        async with inorder.connect(url) as keeps_it_there:
            for life in range(1, 4):
                async with inorder.connect(url, name="me") as bus:
                    receipts = await bus.publish_many("t", [{}, {}])
                    assert [r.event for r in receipts] == [f"me:{life}:1", f"me:{life}:2"]
            async with keeps_it_there.subscribe("t", start="earliest") as events:
                got = [(event.epoch, event.seq) for event in await take(events, 6)]
                assert got == [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2)]
                await none_left(events)

    run(job)


def test_a_later_life_replaces_the_one_before(url):
    async def job() -> None:
        async with inorder.connect(url, name="me") as first, inorder.connect(url) as other:
            await first.publish("t", {"n": 1})
            async with inorder.connect(url, name="me") as second:
                # A name is taken by who publishes, not by who connects.
                await first.publish("t", {"n": 2})
                await second.publish("t", {"n": 3})
                with pytest.raises(Replaced, match="me"):
                    await first.publish("t", {"n": 4})
                with pytest.raises(Replaced):
                    await first.publish("t", {"n": 5})
                await second.publish("t", {"n": 6})
            async with other.subscribe("t", start="earliest") as events:
                assert [event.value["n"] for event in await take(events, 4)] == [1, 2, 3, 6]

    run(job)


def test_two_that_begin_at_once_get_different_lives(url):
    async def job() -> None:
        buses = [inorder.connect(url, name="me") for _ in range(5)]
        for bus in buses:
            await bus.open()
        ends = await asyncio.gather(
            *(bus.publish("t", {}) for bus in buses), return_exceptions=True
        )
        names = [end.event for end in ends if not isinstance(end, Exception)]
        assert len(names) == len({*names})
        assert {type(end) for end in ends if isinstance(end, Exception)} <= {Replaced}
        assert names
        for bus in buses:
            await bus.close()

    run(job)
