"""memory:// keeps the contract; and what is its own: threads, and loops that end without a word."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

import inorder
from inorder.bus.store import memory
from inorder.core.errors import Misuse, UnknownName
from tests.bus.contract import BrokerContract, BusContract
from tests.bus.contract_ends import EndsContract
from tests.bus.judge import gather, judged, run, take, traces


def url(folder: Path) -> str:
    return f"memory://{folder.name}"


class TestBroker(BrokerContract):
    def url(self, folder: Path) -> str:
        return url(folder)


class TestBus(BusContract):
    def url(self, folder: Path) -> str:
        return url(folder)


class TestEnds(EndsContract):
    def url(self, folder: Path) -> str:
        return url(folder)


def test_a_hub_is_gone_with_its_last_connection(tmp_path):
    async def job() -> None:
        async with inorder.connect("memory://gone") as bus:
            await bus.publish("t", {})
        async with inorder.connect("memory://gone") as bus, bus.subscribe("t", replay="all") as e:
            await bus.publish("t", {"n": 1})
            assert (await e.next(5)).offset == 0

    run(job)
    assert "gone" not in memory._hubs


def test_two_event_loops_share_a_hub(tmp_path):
    """A publisher and a subscriber in each of two threads."""
    started = threading.Barrier(2)
    failures: list[BaseException] = []

    async def one(number: int) -> None:
        folder = tmp_path / f"t{number}"
        async with (
            inorder.connect("memory://threads", name=f"b{number}", trace=folder) as bus,
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
                counts = judged(gather([tmp_path / "t0", tmp_path / "t1"]), "total")
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


def test_a_bus_whose_loop_ended_without_closing_it_is_replaced():
    left: list[inorder.bus.bus.Bus] = []

    async def leaves() -> None:
        bus = inorder.connect("memory://left", name="me")
        left.append(bus)
        await bus.open()
        await bus.publish("t", {"n": 1})

    run(leaves)  # it owned the manager of all topics, and its name

    async def goes_on() -> None:
        bus = inorder.connect("memory://left", name="me")
        async with bus, bus.subscribe("t", replay="all") as events:
            await bus.publish("t", {"n": 2})
            assert [e.value["n"] for e in await take(events, 2)] == [1, 2]

    run(goes_on)
    memory._hubs.pop("left", None)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: inorder.connect(5), "leads to no broker"),
        (lambda: inorder.connect("memory://x", name=5), "cannot be a name"),
        (lambda: inorder.connect("memory://x", deadline="x"), "deadline is a number of seconds"),
        (lambda: inorder.connect("memory://x", deadline=float("nan")), "deadline is a number"),
        (lambda: inorder.connect("memory://x", deadline=0), "a deadline of 0 s"),
    ],
)
def test_what_connect_cannot_take_is_one_sentence(call, told):
    with pytest.raises(Misuse, match=told):
        call()


def test_what_a_bus_cannot_take_is_one_sentence(tmp_path):
    async def job() -> None:
        async with inorder.connect(f"memory://{tmp_path.name}") as bus:
            for topic in (5, None, b"t"):
                with pytest.raises(Misuse, match="a topic is text"):
                    await bus.publish(topic, {})
                with pytest.raises(Misuse, match="a topic is text"):
                    bus.subscribe(topic)
            with pytest.raises(Misuse, match="deadline is a number of seconds"):
                await bus.publish("t", {}, deadline="x")
            for idle in (-1, "x", float("inf"), True):
                with pytest.raises(Misuse, match="idle is a number of seconds"):
                    bus.subscribe("t", idle=idle)
            with pytest.raises(Misuse, match="order holds the options"):
                await bus.subscribe("t", order=5)
        with pytest.raises(UnknownName, match="format of a trace"):
            async with inorder.connect("memory://x", trace=tmp_path, trace_format="xml"):
                pass

    run(job)
