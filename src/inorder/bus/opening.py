"""A subscription that has been described but not begun: enter it, or await it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator, Iterator
from datetime import datetime
from threading import get_ident
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from msgspec import Struct

from inorder.bus.subscription import Ack, Filter, Subscription
from inorder.core.errors import Misuse
from inorder.logs.event import Event
from inorder.logs.topics import Topics

if TYPE_CHECKING:
    from inorder.bus.bus import Bus
    from inorder.bus.parameters import Parameters

Value = TypeVar("Value")

# "latest", "earliest", a position, a cursor, or a time.
Start = str | int | datetime


NOT_ENTERED = "enter it first: async with bus.subscribe(...) as events"


class Wanted(Struct):
    """What `subscribe` was asked for."""

    topics: Topics
    filter: Filter | None
    start: Start
    durable: str | None
    ack: Ack
    removed: Literal["raise", "tell"]
    name: str | None
    kind: type | None
    idle: float | None


class Opening(Generic[Value]):
    """What `subscribe` gives: entering it subscribes, leaving it ends the subscription."""

    def __init__(self, bus: Bus, wanted: Wanted, monitor: Parameters | None) -> None:
        self._bus = bus
        self._wanted = wanted
        self._monitor = monitor
        self._open: Subscription[Value] | None = None

    async def _begin(self) -> Subscription[Value]:
        subscription: Subscription[Value] = await self._bus.begun(self._wanted)
        if self._monitor is not None:
            _follow(self._monitor, subscription)
        return subscription

    async def __aenter__(self) -> Subscription[Value]:
        self._open = await self._begin()
        return self._open

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._open is not None:
            await self._open.__aexit__(kind, error, traceback)
            if self._monitor is not None:
                self._monitor.attach(None)

    def __await__(self) -> Generator[Any, None, Subscription[Value]]:
        """`events = await bus.subscribe(...)`, for those who close it themselves."""
        return self._begin().__await__()

    def __aiter__(self) -> AsyncIterator[Event[Value]]:
        raise Misuse(NOT_ENTERED)

    def __iter__(self) -> Iterator[Event[Value]]:
        raise Misuse(NOT_ENTERED)

    def __getattr__(self, name: str) -> Any:
        if hasattr(Subscription, name):
            raise Misuse(NOT_ENTERED)
        raise AttributeError(name)


def _follow(monitor: Parameters, subscription: Subscription[Any]) -> None:
    """Assigning a field of the monitor, in whatever thread, moves the subscription's filter."""
    loop, thread = asyncio.get_running_loop(), get_ident()

    def send(values: dict[str, Any]) -> None:
        if get_ident() == thread:
            subscription.move(values)
        else:
            loop.call_soon_threadsafe(subscription.move, values)

    monitor.attach(send)
    subscription.move(monitor.values)  # what was assigned since it was handed in
