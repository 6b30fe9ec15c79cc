"""What the bus once had wrong when things end: closing, failing, cancelling, forking."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

import inorder
from inorder.bus import blocking, keeper
from inorder.bus.store import memory
from inorder.bus.store.rows import Mail, Turn
from inorder.bus.store.sqlite.file import File
from inorder.core.errors import InorderError, Misuse, Refused, Unsure
from inorder.core.limits import OWNER_SILENT_S_MAX
from tests.bus.contract_ends import failing
from tests.bus.judge import run, until


def hub(folder: Path) -> str:
    return f"memory://{folder.name}"


def file(folder: Path) -> str:
    return f"sqlite:///{folder}/bus.db"


def long_names(count: int, start: int = 0) -> list[str]:
    return [f"topic-{n:04}" for n in range(start, start + count)]


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
