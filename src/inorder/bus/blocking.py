"""The same bus for scripts and notebooks: no `async`, one thread behind the scenes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Iterable, Iterator
from concurrent.futures import CancelledError, Future
from threading import Lock, Thread
from types import TracebackType
from typing import Any, Self, TypeVar

from inorder.bus.bus import Bus, connect
from inorder.bus.receipt import Change, Receipt
from inorder.bus.subscription import Subscription
from inorder.core.errors import Misuse
from inorder.logs.event import Event

T = TypeVar("T")


def connect_sync(url: str, guarantee: str = "total", **settings: Any) -> BlockingBus:
    """Like `connect`, opened already; use it in a `with`.

    >>> with connect_sync("memory://doc-sync") as bus, bus.subscribe("t") as events:
    ...     bus.publish("t", {"n": 1}).outcome, events.next(5).value
    ('stored', {'n': 1})
    """
    return BlockingBus(connect(url, guarantee, **settings))


class BlockingBus:
    """A bus whose calls return when they are done."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="inorder-bus", daemon=True)
        self._thread.start()
        self._closed = False
        self._stopping = Lock()
        # Who waits in other threads, and whether anybody will serve them.
        self._waiting: set[Future[Any]] = set()
        self._ended = False
        self._process = os.getpid()
        try:
            self.wait_for(bus.open())
        except BaseException:
            self._stop()
            raise

    @property
    def name(self) -> str:
        return self._bus.name

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def publish(self, topic: str, value: Any, **facts: Any) -> Receipt:
        """Like `Bus.publish`."""
        return self.wait_for(self._bus.publish(topic, value, **facts))

    def publish_many(self, topic: str, values: Iterable[Any], **facts: Any) -> list[Receipt]:
        """Like `Bus.publish_many`."""
        return self.wait_for(self._bus.publish_many(topic, values, **facts))

    def subscribe(self, *topics: Any, **settings: Any) -> BlockingSubscription:
        """Like `Bus.subscribe`, opened already."""

        async def subscribe() -> Subscription[Any]:
            return await self._bus.subscribe(*topics, **settings)

        return BlockingSubscription(self, self.wait_for(subscribe()))

    def close(self) -> None:
        if self._closed or self._process != os.getpid():
            return
        try:
            self._run(self._bus.close())
        except CancelledError:
            pass  # another thread has closed it meanwhile
        finally:
            self._stop()

    def wait_for(self, call: Coroutine[Any, Any, T]) -> T:
        """Run a call of the bus in its own thread, and wait here."""
        try:
            return self._run(call)
        except CancelledError:
            raise Misuse("the bus was closed meanwhile") from None

    def _run(self, call: Coroutine[Any, Any, T]) -> T:
        if self._process != os.getpid():
            call.close()
            raise Misuse("the bus belongs to the process that was forked: connect anew")
        if self._closed:
            call.close()
            raise Misuse("the bus is closed")
        try:
            waiting = asyncio.run_coroutine_threadsafe(call, self._loop)
        except RuntimeError:  # the loop was closed since we looked
            call.close()
            raise CancelledError from None
        self._waiting.add(waiting)
        try:
            if self._ended:
                waiting.cancel()
            return waiting.result()
        except CancelledError:
            if self._ended:
                call.close()
            raise
        except BaseException:
            waiting.cancel()  # interrupted: nobody will take the answer
            raise
        finally:
            self._waiting.discard(waiting)

    def _stop(self) -> None:
        with self._stopping:
            if self._ended:
                return
            self._closed = True
            asyncio.run_coroutine_threadsafe(_cancel_all(), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            # Whoever came after the first round, and then whoever came after this one.
            self._loop.run_until_complete(_cancel_all())
            self._loop.close()
            self._ended = True
            for waiting in list(self._waiting):
                waiting.cancel()


async def _cancel_all() -> None:
    """Wake the threads that still wait for something."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class BlockingSubscription:
    """A subscription to iterate over, or to ask for the next event."""

    def __init__(self, bus: BlockingBus, subscription: Subscription[Any]) -> None:
        self._bus = bus
        self._subscription = subscription

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bus.wait_for(self._subscription.__aexit__(kind, error, traceback))

    def __iter__(self) -> Iterator[Event[Any]]:
        while True:
            try:
                event = self._bus.wait_for(self._subscription.__anext__())
            except StopAsyncIteration:
                return
            yield event

    def next(self, deadline: float | None = None) -> Event[Any]:
        """The next event; TimeoutError when none comes within the deadline."""
        return self._bus.wait_for(self._subscription.next(deadline))

    def ack(self, event: Event[Any]) -> None:
        self._bus.wait_for(self._subscription.ack(event))

    def set(self, **values: Any) -> Change:
        return self._bus.wait_for(self._subscription.set(**values))

    def replace(self, where: str, **values: Any) -> Change:
        return self._bus.wait_for(self._subscription.replace(where, **values))

    def unsubscribe(self, *topics: str) -> None:
        self._bus.wait_for(self._subscription.unsubscribe(*topics))

    def close(self) -> None:
        self._bus.wait_for(self._subscription.close())
