"""What every bus does when things end: deadlines, cancellation, closing, slow readers, floods.

Used through contract.py's neighbours; a broker whose writes can be made to fail is made by
`failing`, which wraps the broker of a bus that is already open.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import inorder
from inorder.bus import publisher, subscription
from inorder.bus.store.rows import Turn
from inorder.core.errors import Misuse, Refused, TooLarge, Unsure
from inorder.core.limits import SUBSCRIBED_BYTES_MAX, UNREAD_EVENTS_MAX, WAITING_PUBLICATIONS_MAX
from tests.bus.judge import run, take, until

ALL = pytest.mark.parametrize("guarantee", ["none", "fifo", "total"])


class Failing:
    """A broker whose writes fail while it is told to."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.error: Exception | None = None
        self.blocked: asyncio.Event | None = None
        self.writes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def write(self, turn: Turn) -> int:
        self.writes += 1
        if self.blocked is not None:
            await self.blocked.wait()
        if self.error is not None:
            raise self.error
        return await self._inner.write(turn)


def failing(bus: Any) -> Failing:
    broker = Failing(bus.host.broker)
    bus.host.broker = broker
    return broker


class EndsContract:
    """A subclass gives `url`, from a folder of its own."""

    def url(self, folder: Path) -> str:
        raise NotImplementedError

    # Refused and unknown.

    @ALL
    def test_a_refused_write_refuses_what_was_in_it_and_nothing_else(self, tmp_path, guarantee):
        async def job() -> None:
            bus = inorder.connect(self.url(tmp_path), guarantee, deadline=3, name="me")
            async with bus, bus.subscribe("t") as events:
                await bus.publish("t", {"n": 0})
                broker = failing(bus)
                broker.error = Refused("no room")
                with pytest.raises(Refused, match="no room"):
                    await bus.publish("t", {"n": 1})
                # Handed over while the machine was being built again, or the next turn refused.
                tries = [bus.publish("t", {"n": n}) for n in range(2, 10)]
                found = await asyncio.gather(*tries, return_exceptions=True)
                assert {type(each) for each in found} == {Refused}
                receipts = await bus.publish_many("t", [{"n": 10}, {"n": 11}])
                assert [each.outcome for each in receipts] == ["refused"] * 2
                broker.error = None
                await bus.publish("t", {"n": 12})
                assert [e.value["n"] for e in await take(events, 2)] == [0, 12]
                with pytest.raises(TimeoutError):
                    await events.next(0.1)

        run(job)

    def test_a_manager_is_back_at_once_after_a_refused_write(self, tmp_path):
        """Not only when its owner, we ourselves, has been silent for long."""

        async def job() -> None:
            async with inorder.connect(self.url(tmp_path), deadline=3) as bus:
                await bus.publish("t", {})
                broker = failing(bus)
                broker.error = Refused("no room")
                with pytest.raises(Refused):
                    await bus.publish("t", {})
                broker.error = None
                assert (await bus.publish("t", {})).outcome == "accepted"

        run(job)

    @ALL
    def test_when_nobody_can_know_the_bus_stops_and_says_so(self, tmp_path, guarantee):
        async def job() -> None:
            bus = inorder.connect(self.url(tmp_path), guarantee, deadline=1)
            async with bus, bus.subscribe("t") as events:
                failing(bus).error = Unsure("the disk failed")
                with pytest.raises(Unsure, match="the disk failed"):
                    await bus.publish("t", {})
                with pytest.raises(Unsure, match="the bus has failed: the disk failed"):
                    await bus.publish("t", {})
                (receipt,) = await bus.publish_many("t", [{}])
                assert receipt.outcome == "refused"
                with pytest.raises(Unsure):
                    await events.next(1)

        run(job)

    @ALL
    def test_a_blocked_write_ends_at_the_deadline(self, tmp_path, guarantee):
        """What is in it is unknown; what waits behind it was not tried, and is refused."""

        async def job() -> None:
            async with inorder.connect(self.url(tmp_path), guarantee, deadline=0.4) as bus:
                await bus.publish("t", {})
                broker = failing(bus)
                broker.blocked = asyncio.Event()
                first = asyncio.create_task(bus.publish("t", {"n": 1}))
                await until(lambda: broker.writes > 0)
                second = asyncio.create_task(bus.publish("t", {"n": 2}))
                many = asyncio.create_task(bus.publish_many("t", [{"n": 3}]))
                with pytest.raises(Unsure):
                    await first
                with pytest.raises(Refused):
                    await second
                assert [each.outcome for each in await many] == ["refused"]
                with pytest.raises((Unsure, Refused)):
                    await bus.subscribe("t")
                broker.blocked.set()
                broker.blocked = None
                await bus.publish("t", {"n": 4}, deadline=3)
                async with bus.subscribe("t", replay="all") as events:
                    found = [e.value.get("n") for e in await take(events, 3)]
                    assert found == [None, 1, 4]  # 2 and 3 were refused: they never appear

        run(job)

    def test_a_manager_that_never_answers_makes_publications_unknown(self, tmp_path):
        async def job() -> None:
            url = self.url(tmp_path)
            async with inorder.connect(url) as owner, inorder.connect(url, deadline=0.4) as bus:
                await bus.publish("t", {}, deadline=5)
                broker = failing(owner)
                broker.blocked = asyncio.Event()
                with pytest.raises(Unsure, match="no answer in time"):
                    await bus.publish("t", {"n": 1})
                with pytest.raises(Unsure, match="subscribe: no answer"):
                    await bus.subscribe("t")
                broker.blocked.set()
                broker.blocked = None
                await bus.publish("t", {"n": 2}, deadline=5)
                async with bus.subscribe("t", replay="all") as events:
                    # It may have been published, and was.
                    assert [e.value.get("n") for e in await take(events, 3)] == [None, 1, 2]

        run(job)

    # Cancelling and closing.

    @ALL
    def test_cancelled_calls_leave_nothing_behind(self, tmp_path, guarantee):
        async def job() -> None:
            url = self.url(tmp_path)
            async with inorder.connect(url, guarantee) as bus:
                async with bus.subscribe("t") as events:
                    for steps in range(12):
                        for call in (
                            bus.publish("t", {"n": steps}),
                            bus.subscribe("t", name="s").__aenter__(),
                            events.next(5),
                        ):
                            task = asyncio.create_task(call)
                            for _ in range(steps):
                                await asyncio.sleep(0)
                            task.cancel()
                            (end,) = await asyncio.gather(task, return_exceptions=True)
                            if isinstance(end, subscription.Subscription):
                                await end.close()
                            else:
                                assert not isinstance(end, AssertionError), end
                    await bus.publish("t", {"end": 1})
                    last = None
                    while last != {"end": 1}:
                        last = (await events.next(5)).value
                    async with bus.subscribe("t", name="s") as again:
                        await bus.publish("t", {"n": 1})
                        assert (await again.next(5)).value == {"n": 1}
                assert [*bus._subscriptions] == []
                assert bus._publisher.waiting == 0

        run(job)

    @ALL
    def test_closing_waits_for_what_is_under_way(self, tmp_path, guarantee):
        async def job() -> None:
            url = self.url(tmp_path)
            async with inorder.connect(url, guarantee) as other:
                bus = inorder.connect(url, guarantee)
                await bus.open()
                tasks = [asyncio.create_task(bus.publish("t", {"n": n})) for n in range(50)]
                tasks.append(asyncio.create_task(bus.publish_many("t", [{}] * 50)))
                await asyncio.sleep(0.001)
                await asyncio.gather(bus.close(), bus.close())
                ends = await asyncio.gather(*tasks, return_exceptions=True)
                assert all(not isinstance(end, Unsure) for end in ends), ends
                kept = sum(end.outcome == "accepted" for end in ends[:50] if hasattr(end, "event"))
                if isinstance(ends[50], list):
                    kept += sum(receipt.outcome == "accepted" for receipt in ends[50])
                with pytest.raises(Misuse, match="not open"):
                    await bus.publish("t", {})
                with pytest.raises(Misuse, match="opened once"):
                    await bus.open()
                async with other.subscribe("t", replay="all" if kept else None) as events:
                    await take(events, kept)
                    with pytest.raises(TimeoutError):
                        await events.next(0.05)

        run(job)

    def test_closing_with_an_absent_manager_ends_too(self, tmp_path):
        async def job() -> None:
            url = self.url(tmp_path)
            owner = inorder.connect(url)
            await owner.open()
            bus = inorder.connect(url, deadline=0.3)
            await bus.open()
            for _ in range(3):
                await bus.subscribe("t")
            broker = failing(owner)
            broker.blocked = asyncio.Event()
            publishing = asyncio.create_task(bus.publish("t", {}, deadline=20))
            await asyncio.sleep(0.02)
            started = asyncio.get_running_loop().time()
            await bus.close()
            assert asyncio.get_running_loop().time() - started < 5
            with pytest.raises(Unsure, match="closed"):
                await publishing
            broker.blocked.set()
            await owner.close()

        run(job)

    @ALL
    def test_the_next_owner_goes_on_where_the_last_one_closed(self, tmp_path, guarantee):
        async def job() -> None:
            url = self.url(tmp_path)
            bus = inorder.connect(url, guarantee)
            await bus.open()
            await bus.publish("t", {"n": -1})
            for n in range(4):
                following = inorder.connect(url, guarantee)
                await following.open()
                await bus.close()
                bus = following
                await bus.publish("t", {"n": n})
            async with bus.subscribe("t", replay="all") as events:
                assert [e.value["n"] for e in await take(events, 5)] == [-1, 0, 1, 2, 3]
            await bus.close()

        run(job)

    # Slow readers and fast writers.

    def test_a_slow_subscriber_takes_no_more_than_it_may(self, tmp_path, monkeypatch):
        monkeypatch.setattr(subscription, "UNREAD_EVENTS_MAX", 200)
        monkeypatch.setattr("inorder.bus.arrivals.LOG_ROWS_AT_ONCE", 10)
        monkeypatch.setattr("inorder.bus.arrivals.LOG_EVENTS_AT_ONCE", 64)

        async def job() -> None:
            url = self.url(tmp_path)
            async with (
                inorder.connect(url) as bus,
                bus.subscribe("t") as slow,
                bus.subscribe("t") as quick,
            ):
                for _ in range(10):
                    await bus.publish_many("t", [{"n": n} for n in range(200)])
                    await take(quick, 200)
                assert len(slow._unread) <= 200
                found = await take(slow, 2000)
                assert [e.offset for e in found] == list(range(2000))

        run(job)

    def test_large_events_count_by_their_bytes(self, tmp_path, monkeypatch):
        monkeypatch.setattr(subscription, "UNREAD_BYTES_MAX", 1_000_000)
        monkeypatch.setattr("inorder.bus.arrivals.LOG_ROWS_AT_ONCE", 2)

        async def job() -> None:
            async with inorder.connect(self.url(tmp_path)) as bus, bus.subscribe("t") as slow:
                for _ in range(40):
                    await bus.publish("t", {"x": "a" * 100_000})
                await asyncio.sleep(0.05)
                assert 5 <= len(slow._unread) <= 10
                assert [e.offset for e in await take(slow, 40)] == list(range(40))

        run(job)

    @ALL
    def test_a_flood_is_refused_beyond_the_limit(self, tmp_path, guarantee, monkeypatch):
        monkeypatch.setattr(publisher, "WAITING_PUBLICATIONS_MAX", 100)
        assert WAITING_PUBLICATIONS_MAX > 100

        async def job() -> None:
            async with inorder.connect(self.url(tmp_path), guarantee) as bus:
                await bus.publish("t", {})
                flood = [bus.publish("t", {"n": n}) for n in range(300)]
                ends = await asyncio.gather(*flood, return_exceptions=True)
                kept = [end.event for end in ends if not isinstance(end, Exception)]
                assert {type(end) for end in ends if isinstance(end, Exception)} == {Refused}
                assert 100 <= len(kept) < 300
                async with bus.subscribe("t", replay="all") as events:
                    found = await take(events, 1 + len(kept))
                    assert [e.id for e in found[1:]] == kept

        run(job)

    @ALL
    def test_many_are_published_in_pieces_and_in_order(self, tmp_path, guarantee, monkeypatch):
        monkeypatch.setattr("inorder.bus.values.PUBLISH_AT_ONCE", 7)
        monkeypatch.setattr("inorder.bus.values.PUBLISH_BYTES_AT_ONCE", 2000)

        async def job() -> None:
            async with inorder.connect(self.url(tmp_path), guarantee) as bus:
                values = [{"n": n, "x": "a" * (n * 10)} for n in range(60)]
                receipts = await bus.publish_many("t", iter(values))
                assert [each.outcome for each in receipts] == ["accepted"] * 60
                assert await bus.publish_many("t", []) == []
                async with bus.subscribe("t", replay="all") as events:
                    found = await take(events, 60)
                    assert [e.value for e in found] == values
                    assert [e.id for e in found] == [each.event for each in receipts]

        run(job)

    def test_too_many_topics_for_one_subscription(self, tmp_path):
        async def job() -> None:
            async with inorder.connect(self.url(tmp_path)) as bus:
                few = SUBSCRIBED_BYTES_MAX // 200
                names = [f"{n:0>200}" for n in range(few)]
                with pytest.raises(TooLarge):
                    bus.subscribe(*names, "one.more" * 20)
                assert UNREAD_EVENTS_MAX > 0

        run(job)
