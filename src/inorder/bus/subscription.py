"""A subscription: some topics, perhaps a filter, as a stream of events.

The reader (logs/reader.py) is the machine; here are its calls, its waits and its durable position.

Rule 1: what the application was handed last is done when it asks for the next (`ack="next"`), or
        when it says so (`ack="manual"`). A durable position is stored behind it: a crash hands some
        events over again, and never leaves one out.
Rule 2: one process reads under a durable name at a time. A later one takes a larger epoch; the
        earlier one is told `Replaced` when it stores its next position.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from math import isnan
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar

from inorder.bus.receipt import Change
from inorder.core.errors import Damaged, Misuse, Refused, Removed, Unsure
from inorder.logs.broker import Rows
from inorder.logs.event import Event
from inorder.logs.reader import Judge, Reader
from inorder.logs.topics import is_pattern

if TYPE_CHECKING:
    from inorder.bus.bus import Bus
    from inorder.bus.durable import Durable
    from inorder.content.predicate import Predicate

Value = TypeVar("Value")
Ack = Literal["next", "manual"]


class Filter:
    """A predicate with the values its parameters have now."""

    def __init__(self, where: str, values: Mapping[str, Any]) -> None:
        from inorder.content.predicate import Predicate

        self.where = where
        self._predicate: Predicate = Predicate.parse(where)
        self.values: dict[str, Any] = self._predicate.check(values)

    def moved(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """All values, with these changed; nothing has changed yet."""
        return self._predicate.check(values, self.values)

    @property
    def judge(self) -> Judge:
        matches, values = self._predicate.matches, dict(self.values)
        return lambda value: isinstance(value, dict) and matches(values, value)


class Subscription(Generic[Value]):
    """What entering `Bus.subscribe(...)` gives: iterate over it, or ask for the `next` event."""

    def __init__(
        self,
        bus: Bus,
        name: str,
        reader: Reader,
        filter: Filter | None,
        idle_s: float | None,
        removed: str,
        durable: Durable | None,
    ) -> None:
        self.name = name
        self.reader = reader
        self._bus = bus
        self._filter = filter
        self._idle_s = idle_s
        self._tells_removed = removed == "tell"
        self._durable = durable
        self._came = asyncio.Event()
        self._waits = False
        self._nth = 0
        self._error: Exception | None = None
        self._closed = False

    # Coming and going.

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None and not self._closed:
            self._is_done()
        await self.close()

    async def close(self) -> None:
        """Stop. What was not read stays in the log."""
        if self._closed:
            return
        self._closed = True
        self._bus.trace.unsubscribed(self.name, self.reader.topics.wanted, self._nth)
        self._bus.gone(self)
        self._came.set()
        if self._durable is not None:
            await self._durable.close(self._bus.deadline)

    # Reading.

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event[Value]:
        if (event := self._take()) is not None or (
            event := await self._wait(self._idle_s)
        ) is not None:
            return event
        raise StopAsyncIteration

    async def next(self, deadline: float | None = None) -> Event[Value]:
        """The next event; TimeoutError when none comes within so many seconds."""
        if (event := self._take()) is not None or (event := await self._wait(deadline)) is not None:
            return event
        if self._closed:
            raise Misuse(f"{self.name} is closed")
        raise TimeoutError(f"{self.name}: nothing came in {deadline:g} s")

    def _take(self) -> Event[Value] | None:
        """The next event if it is here, and what comes with handing it over."""
        if self._closed:
            return None
        if self._error is not None:
            raise self._error
        self._is_done()
        reader = self.reader
        had_room = reader.wants is not None
        try:
            event = reader.take()
        except Removed as error:
            if not self._tells_removed:
                raise
            return error  # type: ignore[return-value]
        finally:
            if not had_room and reader.wants is not None:
                self._bus.reads()
        if event is not None:
            self._nth += 1
            self._bus.trace.delivered(self.name, self._nth, event)
        return event

    async def _wait(self, seconds: float | None) -> Event[Value] | None:
        if seconds is not None and isnan(seconds):
            raise Misuse(f"a wait of {seconds:g} s")
        self._bus.check_process()
        try:
            async with asyncio.timeout(seconds):
                while not self._closed:
                    self._came.clear()
                    if (event := self._take()) is not None:
                        return event
                    await self._came.wait()
        except TimeoutError:
            return self._take()
        return None

    async def ack(self, event: Event[Value]) -> None:
        """Everything up to and with this event is done; returns when that is on disk. `Unsure` at
        the bus's deadline: it is stored as soon as that can be."""
        if self._durable is None or self._durable.ack != "manual":
            raise Misuse('ack() is for a durable subscription with ack="manual"')
        try:
            async with asyncio.timeout(self._bus.deadline):
                await self._durable.store(event.position, wait=True)
        except TimeoutError:
            raise Unsure(f"ack: no answer in {self._bus.deadline:g} s") from None

    def _is_done(self) -> None:
        """The application has asked on: it has done what it was handed."""
        durable = self._durable
        if durable is not None and durable.ack == "next" and self.reader.passed > durable.position:
            durable.note(self.reader.passed)

    # Changing.

    async def set(self, **values: Any) -> Change:
        """Move parameters of the filter: all of them, or none."""
        return self.move(values)

    def move(self, values: Mapping[str, Any]) -> Change:
        """`set`, for callers that do not wait: a filter over a log moves at once."""
        self._check_open()
        if self._filter is None:
            raise Misuse("this subscription has no filter to move")
        self._filter.values = self._filter.moved(values)
        self._bus.trace.moved(self.name, self.reader.topics.wanted, values, self._nth)
        return self._moved()

    async def replace(self, where: str, **values: Any) -> Change:
        """Another filter, with its parameters, for the same topics."""
        self._check_open()
        if self._filter is None:
            raise Misuse("this subscription has no filter to replace: subscribe with where=")
        self._filter = Filter(where, values)
        self._bus.trace.subscribed(
            self.name, self.reader.topics.wanted, where, self._filter.values, self._nth
        )
        return self._moved()

    def _moved(self) -> Change:
        assert self._filter is not None
        stored = -1 if self._durable is None else self._durable.position
        position = self.reader.move(self._filter.judge, stored)
        self._bus.reads()
        return Change(position)

    async def unsubscribe(self, *topics: str) -> None:
        """Leave some of the topics: nothing of them is handed over from now on."""
        self._check_open()
        held = [topic for topic in topics if self.reader.holds(topic)]
        if len(held) < len(topics) or not topics:
            raise Misuse("unsubscribe names a topic that is not held")
        for topic in sorted({*held}):
            if is_pattern(topic):
                raise Misuse(f"{topic!r} is a pattern: unsubscribe names topics")
            self.reader.leave(topic)
        self._bus.reads()  # what was left made room
        self._bus.trace.unsubscribed(self.name, sorted({*held}), self._nth)

    def _check_open(self) -> None:
        self._bus.check_process()
        if self._error is not None:
            raise self._error
        if self._closed:
            raise Misuse(f"{self.name} is closed")

    # What the bus brings.

    def received(self, offset: int, rows: Rows) -> None:
        self.reader.receive(offset, rows)
        self._came.set()

    def damaged(self, offset: int, error: Damaged) -> None:
        if error.upto is None:
            self.broken(error)
        else:
            self.reader.damaged(offset, error)
            self._came.set()

    def broken(self, error: Exception) -> None:
        """Nothing more comes."""
        self._error = self._error or (
            error if not isinstance(error, Refused) else Refused(str(error))
        )
        self._came.set()
