"""Counterexamples to what the bus promises: each fails for as long as the bus is wrong."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import threading
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest

import inorder
from inorder import wire
from inorder.errors import Damaged, InorderError, Misuse, Refused, Unsure
from inorder.event import Event
from inorder.fifo.header import Published
from inorder.limits import OWNER_SILENT_S_MAX
from inorder.live import blocking, keeper
from inorder.live.brokers import memory
from inorder.store.file import File
from inorder.store.rows import Append, Mail, Turn
from tests.live.contract_ends import failing
from tests.live.judge import gather, judged, run, take, traces, until


def hub(folder: Path) -> str:
    return f"memory://{folder.name}"


def file(folder: Path) -> str:
    return f"sqlite:///{folder}/bus.db"


def long_names(count: int, start: int = 0) -> list[str]:
    return [f"topic-{n:04}" for n in range(start, start + count)]


def test_hold_with_a_small_buffer_loses_nothing(tmp_path):
    """What finds no room is "asked for again" (subscriber.py), but over a log nobody asks: the
    event is gone, and everything behind it waits for ever."""

    async def job() -> None:
        async with (
            inorder.connect(hub(tmp_path), buffer=1) as bus,
            bus.subscribe("a", "b") as events,
        ):
            # A slow reader: all of it comes in one window, topic by topic.
            events.has_room = lambda: False
            for n in range(6):
                await bus.publish("ba"[n % 2], {"n": n})
            del events.has_room
            bus.host.ring()
            found = [event.value["n"] for event in await take(events, 6, 1.0)]
            assert found == [0, 1, 2, 3, 4, 5]

    run(job)


@pytest.mark.parametrize("guarantee", ["none", "fifo", "total"])
def test_the_number_of_an_unknown_publication_is_not_given_to_another(tmp_path, guarantee):
    """Its turn is refused after its deadline, with the record that reserved its number, and the new
    machine begins there again. Who looks for `me:1` finds it, and it is something else."""

    async def job() -> None:
        folder = tmp_path / "trace"
        async with inorder.connect(hub(tmp_path), guarantee, name="me", trace=folder) as bus:
            broker = failing(bus)
            broker.blocked = asyncio.Event()
            with pytest.raises(Unsure, match="me:1"):
                await bus.publish("t", {"n": 1}, deadline=0.1)
            broker.error = Refused("no room")
            broker.blocked.set()
            await until(lambda: bus.host.marks.get("turn refused", 0) > 0)
            broker.error = broker.blocked = None
            assert (await bus.publish("t", {"n": 2})).event != "me:1"

    run(job)


def test_a_bus_that_has_failed_lets_go_of_the_manager(tmp_path, monkeypatch):
    """`_fail` stops the host but not the keeper, which goes on saying that the owner lives: nobody
    can publish under total until the application closes the bus that failed."""
    monkeypatch.setattr(keeper, "LOOK_S", 0.02)
    monkeypatch.setattr(keeper, "RENEW_S", 0.1)
    monkeypatch.setattr(memory, "OWNER_SILENT_S_MAX", 0.5)

    async def job() -> None:
        url = hub(tmp_path)
        async with inorder.connect(url) as owner, inorder.connect(url, deadline=4) as other:
            await other.publish("t", {})
            failing(owner).error = Unsure("the disk")
            with pytest.raises(Unsure):
                await owner.publish("t", {})
            assert (await other.publish("t", {})).outcome == "accepted"

    run(job)


def test_a_message_that_fits_into_no_frame_harms_only_its_publisher(tmp_path, monkeypatch):
    """A stamp names all topics of the file. With 3000 topics of 250 bytes an event of 400 kB has no
    room beside it, and the bus that numbers it fails; so does whoever takes over, and whoever opens
    the file later, since the request is still in its mail. Here everything is 256 times smaller."""
    monkeypatch.setattr(wire, "FRAME_BYTES_MAX", 4096)

    async def job() -> None:
        url = file(tmp_path)
        async with (
            inorder.connect(url, deadline=1) as owner,
            inorder.connect(url, deadline=1) as other,
        ):
            for start in (0, 125):
                await (await owner.subscribe(*long_names(125, start))).close()
            with pytest.raises(InorderError):
                await other.publish("t", {"x": "a" * 1500})
            assert (await owner.publish("t", {})).outcome == "accepted"

    run(job)


def test_a_name_may_subscribe_to_ever_other_topics(tmp_path, monkeypatch):
    """What a name ever held is remembered and visited for ever (client.py, `known`): at some time
    its walk fits into no frame, and the bus fails. SUBSCRIBED_BYTES_MAX counts only the new."""
    monkeypatch.setattr(wire, "FRAME_BYTES_MAX", 4096)

    async def job() -> None:
        url = hub(tmp_path)
        async with inorder.connect(url), inorder.connect(url, deadline=2) as bus:
            for start in range(0, 500, 50):
                async with bus.subscribe(*long_names(50, start), name="s"):
                    pass

    run(job)


def test_a_row_that_cannot_be_taken_apart_stops_its_readers_and_only_them(tmp_path):
    """`stamped` raises BadFrame, which is not Damaged: it leaves Arrivals.log and ends the bus."""

    async def job() -> None:
        async with (
            inorder.connect(file(tmp_path), "none", deadline=2) as bus,
            bus.subscribe("sound") as sound,
            bus.subscribe("odd") as odd,
        ):
            store = File(tmp_path / "bus.db")
            store.declare("odd", "fifo")
            row = wire.encode(Published(Event("p", 1, "odd", {}, 0.0), b"\xff"))
            store.write(Turn(appends=[Append("odd", row, 1)]))
            store.close()
            with pytest.raises(Damaged):
                await odd.next(2)
            await bus.publish("sound", {})
            await sound.next(2)

    run(job)


def test_a_first_publication_ends_by_its_own_deadline(tmp_path):
    """`_prepare` waits for `declare` without looking at `until`."""

    async def job() -> None:
        async with inorder.connect(file(tmp_path), "none", deadline=4) as bus:
            lock = sqlite3.connect(tmp_path / "bus.db", isolation_level=None)
            lock.execute("BEGIN IMMEDIATE")
            task = asyncio.create_task(bus.publish("new", {}, deadline=0.1))
            done, _ = await asyncio.wait({task}, timeout=1.5)
            lock.execute("ROLLBACK")
            await asyncio.gather(task, return_exceptions=True)
            assert done

    run(job)


def test_closing_a_locked_file_does_not_wait_once_for_every_subscription(tmp_path):
    """Each subscription is released by a transaction of its own, one after the other in the one
    thread that writes, and each waits for the lock: 200 of them take 1000 s with the defaults."""

    async def job() -> None:
        bus = inorder.connect(file(tmp_path), "none", deadline=0.4)
        await bus.open()
        for _ in range(25):
            await bus.subscribe("t")
        lock = sqlite3.connect(tmp_path / "bus.db", isolation_level=None)
        lock.execute("BEGIN IMMEDIATE")
        task = asyncio.create_task(bus.close())
        done, _ = await asyncio.wait({task}, timeout=3.0)
        lock.execute("ROLLBACK")
        await task
        assert done

    run(job)


def test_a_reader_can_be_cancelled_whenever(tmp_path):
    """`asyncio.wait_for` of 3.11 swallows a cancellation that comes when what it waits for has just
    happened: a task that reads in a loop goes on for ever (`_wait`; `_call`, `ready` are alike)."""

    async def job() -> None:
        async with inorder.connect(hub(tmp_path), "none") as bus, bus.subscribe("t") as events:

            async def consume() -> None:
                while True:
                    await events.next(5)

            for steps in range(6):
                task = asyncio.create_task(consume())
                await asyncio.sleep(0.01)
                await bus.publish("t", {})
                for _ in range(steps):
                    await asyncio.sleep(0)
                task.cancel()
                done, _ = await asyncio.wait({task}, timeout=0.3)
                task.cancel()
                assert done, steps

    run(job)


def test_an_owner_that_is_silent_is_replaced_though_the_clock_was_set_back(tmp_path):
    """`_lives` compares wall clocks and takes an owner heard of "in the future" for alive: after a
    step of an hour, a suspended owner keeps its topics for an hour."""
    store = File(tmp_path / "bus.db")
    noon = 1_000_000.0
    assert store.claim("stage1", "suspended", noon) == 1
    later = noon - 3600 + 2 * OWNER_SILENT_S_MAX
    assert store.claim("stage1", "other", later) == 2
    store.close()


def test_a_forked_child_is_told_that_the_bus_is_not_its_own(tmp_path):
    """The thread behind the facade is not in the child: every call waits there for ever."""
    with inorder.connect_sync(hub(tmp_path), "none") as bus:
        child = os.fork()
        if not child:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(2)
            try:
                bus.publish("t", {}, deadline=0.1)
            except InorderError:
                os._exit(0)
            os._exit(1)
        _, status = os.waitpid(child, 0)
    assert status == 0


def test_a_close_that_was_cancelled_can_be_finished(tmp_path):
    """Cancelled inside `_end`, the rest of it is skipped, and the next `close` returns at once: the
    host's task, the connection and the claims are left."""

    async def job() -> None:
        left = []
        for steps in range(12):
            bus = inorder.connect(hub(tmp_path), "total")
            await bus.open()
            closing = asyncio.create_task(bus.close())
            for _ in range(steps):
                await asyncio.sleep(0)
            closing.cancel()
            await asyncio.gather(closing, return_exceptions=True)
            await bus.close()
            task = bus.host._task
            if not task.done() or tmp_path.name in memory._hubs:
                left.append(steps)
                task.cancel()
                memory._hubs.pop(tmp_path.name, None)
        assert left == []

    run(job)


def test_what_a_closing_bus_interrupts_ends_with_an_error_of_ours(tmp_path):
    """A subscription that is being opened or closed meanwhile meets executors that are shut down
    or a connection that is closed: RuntimeError, or sqlite3.ProgrammingError."""

    async def job() -> None:
        async with inorder.connect(file(tmp_path), "none") as bus:
            topics = bus.host.broker.topics

            async def late() -> Any:
                await bus.close()
                return await topics()

            bus.host.broker.topics = late  # type: ignore[method-assign]
            with pytest.raises(InorderError):
                await bus.subscribe("t", replay="all")

    run(job)


def test_two_threads_may_close_a_bus_at_once(tmp_path):
    """The second `close` finds the first under way, returns, and `_stop` cancels the first."""
    bus = inorder.connect_sync(file(tmp_path), "none")
    under_way, go_on = threading.Event(), threading.Event()
    errors: list[BaseException] = []
    broker = bus._bus.host.broker
    release = broker.release

    async def slow(owned: dict[str, int]) -> None:
        under_way.set()
        await asyncio.to_thread(go_on.wait, 5)
        await release(owned)

    broker.release = slow  # type: ignore[method-assign]

    def close() -> None:
        try:
            bus.close()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=close, daemon=True) for _ in range(2)]
    threads[0].start()
    under_way.wait(5)
    threads[1].start()
    threads[1].join(0.3)
    go_on.set()
    for each in threads:
        each.join(5)
    watcher: Any = broker._watcher  # type: ignore[attr-defined]
    watcher.join(0.5)
    left = watcher.is_alive()
    broker._closed.set()  # type: ignore[attr-defined]
    assert (errors, left) == ([], False)


def test_a_call_that_comes_while_the_bus_closes_ends(tmp_path, monkeypatch):
    """Behind `_cancel_all` and before `stop` the loop still takes calls, and never serves them."""
    bus = inorder.connect_sync(hub(tmp_path), "none")
    checked, cancelled, handed = threading.Event(), threading.Event(), threading.Event()
    hand_over, cancel_all = asyncio.run_coroutine_threadsafe, blocking._cancel_all

    def late(call: Any, loop: Any) -> Any:
        if threading.current_thread() is not caller:
            return hand_over(call, loop)
        checked.set()
        cancelled.wait(5)
        try:
            return hand_over(call, loop)
        finally:
            handed.set()

    async def cancel() -> None:
        await cancel_all()
        cancelled.set()
        handed.wait(5)

    def publish() -> None:
        with pytest.raises(InorderError):
            bus.publish("t", {}, deadline=0.1)

    caller = threading.Thread(target=publish, daemon=True)
    monkeypatch.setattr(asyncio, "run_coroutine_threadsafe", late)
    monkeypatch.setattr(blocking, "_cancel_all", cancel)
    caller.start()
    checked.wait(5)
    bus.close()
    caller.join(2)
    assert not caller.is_alive()


def test_a_closed_subscription_hands_nothing_over(tmp_path):
    """`_wait` looks at `_closed` only when nothing is unread; the judges call it "not held"."""

    async def job() -> None:
        async with inorder.connect(hub(tmp_path)) as bus:
            events = await bus.subscribe("t")
            await bus.publish_many("t", [{}, {}])
            await until(lambda: len(events._unread) == 2)
            await events.close()
            with pytest.raises(Misuse, match="closed"):
                await events.next(0.1)

    run(job)


def test_those_who_came_and_went_do_not_keep_others_out(tmp_path, monkeypatch):
    """Every bus and subscription, even a nameless one that closed in good order, is a peer of the
    stage for ever; the millionth is the last (and `owners` and `records` keep them all)."""
    monkeypatch.setattr("inorder.total.link.LINK_PEERS_MAX", 4)

    async def job() -> None:
        url = hub(tmp_path)
        async with inorder.connect(url):
            for _ in range(6):
                async with inorder.connect(url, deadline=1) as bus:
                    await bus.publish("t", {})

    run(job)


def test_a_refused_write_is_not_tried_again_without_a_pause(tmp_path):
    """A full disk and one letter: `_refused` asks for the mail again at once, thousands of times a
    second, until there is room."""

    async def job() -> None:
        url = hub(tmp_path)
        async with inorder.connect(url) as bus, inorder.connect(url) as other:
            broker = failing(bus)
            broker.error = Refused("no room")
            await other.host.broker.write(Turn(mails=[Mail(bus.name, "x", b"")]))
            await asyncio.sleep(0.5)
            broker.error = None
            assert broker.writes < 50

    run(job)


def test_the_first_events_of_a_publisher_keep_their_order_under_fifo(tmp_path):
    """Both are in one window, which is read topic by topic: the second comes first, is taken as the
    first of its publisher, and the real first is tagged, though the log had them in order."""

    async def job() -> None:
        async with (
            inorder.connect(hub(tmp_path), "fifo") as bus,
            bus.subscribe("a", "b") as events,
        ):
            await asyncio.gather(bus.publish("b", {}), bus.publish("a", {}))
            found = await take(events, 2)
            assert [(event.seq, event.in_order) for event in found] == [(1, True), (2, True)]

    run(job)


@pytest.mark.parametrize("value", [{"x": b"abc"}, {"x": [b"abc"]}, {"x": [nan]}, {"x": {1: 2}}])
def test_a_value_is_refused_or_comes_out_as_it_went_in(tmp_path, value):
    """What is not a scalar goes through JSON, which makes text of bytes and null of nan."""

    async def job() -> None:
        async with inorder.connect(hub(tmp_path), "none") as bus, bus.subscribe("t") as events:
            try:
                await bus.publish("t", value)
            except Misuse:
                return
            assert repr((await events.next(2)).value) == repr(value)

    run(job)


def test_a_topic_that_is_no_text_and_a_deadline_that_never_comes_are_misuse(tmp_path):

    async def job() -> None:
        async with inorder.connect(hub(tmp_path), "none") as bus:
            with pytest.raises(Misuse):
                bus.subscribe("\ud800")
            with pytest.raises(Misuse):
                await bus.publish("\ud800", {})
            for never in (nan, inf):
                with pytest.raises(Misuse):
                    await bus.publish("t", {}, deadline=never)

    run(job)


def test_a_change_that_nobody_waited_for_is_in_the_trace(tmp_path):
    """The machine moves the filter whether or not the caller still waits (cancelled, or past its
    deadline); the trace is told only by a caller who does, and the judges see a broken filter."""

    async def job() -> None:
        folder = tmp_path / "trace"
        async with (
            inorder.connect(hub(tmp_path), trace=folder) as bus,
            bus.subscribe("t", where="n >= :low", low=5) as events,
        ):
            broker = failing(bus)
            broker.blocked = asyncio.Event()
            publishing = asyncio.create_task(bus.publish("t", {"n": 8}))
            await until(lambda: broker.writes > 0)
            change = asyncio.create_task(events.set(low=0))
            await asyncio.sleep(0)
            change.cancel()
            await asyncio.gather(change, return_exceptions=True)
            broker.blocked.set()
            broker.blocked = None
            await publishing
            await bus.publish("t", {"n": 1})
            assert [e.value["n"] for e in await take(events, 2)] == [8, 1]
            traces([bus])
            judged(gather([folder]), "total")

    run(job)


def test_a_trace_can_be_judged_in_which_a_name_subscribes_twice(tmp_path):
    """Positions begin at 1 again under the same name: the judges refuse the whole trace."""

    async def job() -> None:
        folder = tmp_path / "trace"
        async with inorder.connect(hub(tmp_path), trace=folder) as bus:
            for n in range(2):
                async with bus.subscribe("t", name="s") as events:
                    await bus.publish("t", {"n": n})
                    await take(events, 1)
            traces([bus])
            judged(gather([folder]), "total")

    run(job)
