"""Filters that move, and what a move means for what was read ahead."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import inorder
from inorder.bus.parameters import Parameters
from inorder.core.errors import BadOption, Misuse, PredicateError
from tests.bus.judge import counted, gather, judged, none_left, numbers, run, take, traces

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
            with pytest.raises(BadOption, match=r"low.*no parameter of a filter"):
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
