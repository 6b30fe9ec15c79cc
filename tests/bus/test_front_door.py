"""The front door: what connect takes, when a bus is open, and how it ends."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import inorder
from inorder.core.errors import BadOption, Misuse, Refused, UnknownName, Unsure
from tests.bus.judge import Failing, none_left, run, take, until

# The front door.


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: inorder.connect(5), Misuse, "leads to no broker"),
        (lambda: inorder.connect("file.db"), Misuse, "leads to no broker"),
        (lambda: inorder.connect("redis://x"), Misuse, "leads to no broker"),
        (lambda: inorder.connect("memory://a/b"), Misuse, "has no /"),
        (lambda: inorder.connect("memory://x?fast=1"), Misuse, "no option 'fast'"),
        (lambda: inorder.connect("sqlite://x.db"), Misuse, "sqlite:///"),
        (lambda: inorder.connect("memory://x", "totl"), UnknownName, "totl"),
        (lambda: inorder.connect("memory://x", "causal"), UnknownName, "causal"),
        (lambda: inorder.connect("memory://x", mode="tag"), BadOption, "mode"),
        (lambda: inorder.connect("memory://x", name=5), Misuse, "name 5"),
        (lambda: inorder.connect("memory://x", name=""), Misuse, "name ''"),
        (lambda: inorder.connect("memory://x", name="a b"), Misuse, "name 'a b'"),
        (lambda: inorder.connect("memory://x", deadline="x"), Misuse, "deadline='x'"),
        (lambda: inorder.connect("memory://x", deadline=float("nan")), Misuse, "deadline=nan"),
        (lambda: inorder.connect("memory://x", deadline=True), Misuse, "deadline=True"),
        (lambda: inorder.connect("memory://x", deadline=0), Misuse, "a deadline of 0 s"),
    ],
)
def test_what_connect_cannot_take_is_one_sentence(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("topic", [5, None, b"t", "", "a..b", "orders.*", ">", "x" * 300])
def test_what_is_no_topic_is_one_sentence(url, topic):
    async def job() -> None:
        async with inorder.connect(url) as bus:
            with pytest.raises(Misuse, match="topic"):
                await bus.publish(topic, {})
            with pytest.raises(Misuse, match="topic"):
                await bus.publish_many(topic, [{}])

    run(job)


def test_a_bus_is_open_between_its_opening_and_its_close(url):
    async def job() -> None:
        bus = inorder.connect(url)
        with pytest.raises(Misuse, match="use `async with`"):
            await bus.publish("t", {})
        with pytest.raises(Misuse, match="use `async with`"):
            bus.subscribe("t")
        async with bus:
            with pytest.raises(Misuse, match="opened once"):
                await bus.open()
        with pytest.raises(Misuse, match="closed"):
            await bus.publish("t", {})
        with pytest.raises(Misuse, match="opened once"):
            await bus.open()
        await bus.close()

    run(job)


def test_closing_waits_for_what_is_under_way(url):
    async def job() -> None:
        async with inorder.connect(url) as other:
            bus = inorder.connect(url)
            await bus.open()
            tasks: list[Any] = [asyncio.create_task(bus.publish("t", {"n": n})) for n in range(50)]
            tasks.append(asyncio.create_task(bus.publish_many("t", [{}] * 50)))
            await asyncio.sleep(0)
            await asyncio.gather(bus.close(), bus.close())
            ends = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(not isinstance(end, Exception) for end in ends), ends
            async with other.subscribe("t", start="earliest") as events:
                await take(events, 100)
                await none_left(events)

    run(job)


def test_closing_ends_though_an_append_never_does(url):
    async def job() -> None:
        bus = inorder.connect(url, deadline=0.2)
        await bus.open()
        await bus.publish("t", {})
        broker = Failing(bus)
        broker.blocked = asyncio.Event()
        publishing = asyncio.create_task(bus.publish("t", {}, deadline=20))
        waiting = asyncio.create_task(bus.publish("u", {}, deadline=20))
        await until(lambda: broker.appends > 0)
        await asyncio.wait_for(bus.close(), 5)
        with pytest.raises(Unsure, match="closed"):
            await publishing
        with pytest.raises((Refused, Unsure), match="closed"):
            await waiting

    run(job)


def test_cancelled_calls_leave_nothing_behind(url):
    async def job() -> None:
        async with inorder.connect(url) as bus:
            async with bus.subscribe("t") as events:
                for steps in range(12):
                    for call in (
                        bus.publish("t", {"n": steps}),
                        bus.subscribe("t").__aenter__(),
                        events.next(5),
                    ):
                        task = asyncio.create_task(call)
                        for _ in range(steps):
                            await asyncio.sleep(0)
                        task.cancel()
                        [end] = await asyncio.gather(task, return_exceptions=True)
                        if hasattr(end, "unsubscribe"):
                            await end.close()
                await bus.publish("t", {"end": 1})
                while (await events.next(5)).value != {"end": 1}:
                    pass
            assert not bus._pump.subscriptions
            assert bus._publisher.waiting == 0

    run(job)
