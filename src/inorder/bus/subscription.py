"""A subscription: some topics, perhaps a filter, under one guarantee, as a stream of events.

Rule 1: each subscription is a machine of its own: its order, its filter, its place in the log.
Rule 2: an event of a topic that was left is not handed over, even if it waited here already.
Rule 3: when the application falls behind, the machine stops reading. The log keeps the rest.
Rule 4: an event has its `nth` from when the machine delivers it, so that a change of filter can
        say where it cuts. What is dropped by rule 2 leaves a hole.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import isnan
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from inorder.bus.node import Node
from inorder.bus.publisher import remember
from inorder.bus.receipt import Change, Delivered
from inorder.bus.values import from_attributes
from inorder.core.effect import Answer, Deliver, Effect
from inorder.core.errors import InorderError, Misuse, Refused, Unsure
from inorder.core.event import Event
from inorder.core.limits import ARRIVALS_REMEMBERED_MAX, UNREAD_BYTES_MAX, UNREAD_EVENTS_MAX
from inorder.core.machine import Durable
from inorder.guarantee.compose import Filtering

if TYPE_CHECKING:
    from inorder.bus.bus import Bus


# Where an event is in its topic's log, when it came, and about how large it is.
Arrival = tuple[int, float, int]


class Subscription:
    """What `Bus.subscribe` gives: enter it, then iterate."""

    def __init__(
        self,
        bus: Bus,
        name: str,
        topics: Sequence[str],
        machine: Filtering,
        node: Node,
        where: str | None,
        parameters: Mapping[str, Any],
        kind: type | None,
        idle_s: float | None,
    ) -> None:
        self.name = name
        # What managers could not give any more, in words; empty over a broker that keeps its logs.
        self.gaps: list[str] = []
        self._bus = bus
        self._topics = sorted({*topics})
        self._machine = machine
        self._node = node
        self._where = where
        self._parameters = dict(parameters)
        self._kind = kind
        self._idle_s = idle_s
        self._unread: deque[tuple[Deliver, Arrival]] = deque()
        self._unread_bytes = 0
        self._came = asyncio.Event()
        self._arrived: OrderedDict[tuple[str, int], Arrival] = OrderedDict()
        self._calls: dict[str, asyncio.Future[None]] = {}
        self._nth = 0
        self._error: Exception | None = None
        self._closed = False

    # Coming and going.

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def open(self) -> None:
        """Begin; from now on every event published on the topics is due."""
        host = self._bus.host
        machine = self._machine
        try:
            records = await host.broker.records(self.name)
            if isinstance(machine, Durable):
                remember(self.name, machine, records)
            host.add(self._node)
            if isinstance(machine, Durable):
                host.ask(self._node, machine.resume)
            await self._call(
                "subscribe",
                lambda call, now: machine.subscribe(
                    call, self._topics, now, self._where, self._parameters or None
                ),
            )
        except BaseException:
            self._error = self._error or Refused(f"{self.name} could not be opened")
            await self.close()
            raise
        self._bus.trace.begins(self.name)
        self._traced("subscribe", self._topics, self._parameters, host.now(), self._nth)

    async def close(self) -> None:
        """Stop; what was not read stays unread."""
        if self._closed:
            return
        self._closed = True
        host = self._bus.host
        held = self._topics
        try:
            if self.name in host.nodes and held and self._error is None and not self._bus.closing:
                self._traced("unsubscribe", held, {}, host.now(), self._nth)
                with suppress(InorderError):  # who keeps us registered only stamps a little more
                    await self._call("unsubscribe", lambda call, now: self._leave(call, held, now))
        finally:
            if host.nodes.get(self.name) is self._node:
                host.remove(self.name)
            self._came.set()
            await self._bus.gone(self)

    def _leave(self, call: str, topics: Sequence[str], now: float) -> list[Effect]:
        return self._machine.unsubscribe(call, topics, now)

    # Reading.

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delivered:
        if await self._wait(self._idle_s):
            return self._take()
        raise StopAsyncIteration

    async def next(self, deadline: float | None = None) -> Delivered:
        """The next event; TimeoutError when none comes within the deadline (seconds)."""
        if await self._wait(deadline):
            return self._take()
        if self._closed:
            raise Misuse(f"{self.name} is closed")
        raise TimeoutError(f"{self.name}: nothing came in {deadline:g} s")

    async def _wait(self, deadline: float | None) -> bool:
        """Wait for an event to take; False if none has come by then, or none will."""
        if self._has_next():
            return True
        if deadline is not None and isnan(deadline):
            raise Misuse(f"a deadline of {deadline:g} s")
        try:
            async with asyncio.timeout(deadline):
                while not self._has_next():
                    if self._closed:
                        return False
                    if self._error is not None:
                        raise self._error
                    self._came.clear()
                    await self._came.wait()
        except TimeoutError:
            # A last look, also for those who do not want to wait at all.
            return self._has_next()
        return True

    def _has_next(self) -> bool:
        self._skip()
        return bool(self._unread) and not self._closed

    def _skip(self) -> None:
        """Pass over what is of a topic that was left meanwhile."""
        while self._unread and self._unread[0][0].event.topic not in self._topics:
            self._nth += 1
            self._pop()

    def _pop(self) -> tuple[Deliver, Arrival]:
        had_room = self.has_room()
        popped = self._unread.popleft()
        self._unread_bytes -= popped[1][2]
        if not had_room and self.has_room():
            self._bus.host.ring()
        return popped

    def _take(self) -> Delivered:
        delivery, (offset, received_at, _) = self._pop()
        event = delivery.event
        self._nth += 1
        self._bus.trace.delivered(self.name, self._nth, delivery, received_at, self._bus.host.now())
        return Delivered(
            event.topic, from_attributes(event.value, self._kind), delivery.in_order,
            self._nth, offset, event.publisher, event.seq, event.published_at,
        )  # fmt: skip

    # Changing.

    async def set(self, **values: Any) -> Change:
        """Move parameters of the filter; all of them, or none."""
        if self._where is None:
            raise Misuse("this subscription has no filter to move")

        def change(call: str, now: float, after: int) -> list[Effect]:
            effects = self._machine.set(call, self._topics, values, now)
            self._parameters.update(values)
            self._traced("set", self._topics, values, now, after)
            return effects

        return await self._change("set", change)

    async def replace(self, where: str, **values: Any) -> Change:
        """Another filter, with its parameters, for the same topics."""
        if self._where is None:
            raise Misuse("this subscription has no filter to replace: subscribe anew")

        def change(call: str, now: float, after: int) -> list[Effect]:
            effects = self._machine.replace(call, self._topics, where, values, now)
            self._where, self._parameters = where, dict(values)
            self._traced("subscribe", self._topics, values, now, after)
            return effects

        return await self._change("replace", change)

    async def unsubscribe(self, *topics: str) -> None:
        """Leave some of the topics; nothing of them is handed over from now on."""
        dropped = sorted({*topics} & {*self._topics})
        if not dropped:
            raise Misuse("unsubscribe names no topic that is held")
        self._topics = [topic for topic in self._topics if topic not in dropped]
        self._traced("unsubscribe", dropped, {}, self._bus.host.now(), self._nth)
        await self._call("unsubscribe", lambda call, now: self._leave(call, dropped, now))

    async def _change(self, what: str, change: Callable[[str, float, int], list[Effect]]) -> Change:
        """The change happens when the machine is asked, whoever still waits for the answer; it is
        told how many deliveries the old filter judged."""
        judged = 0

        def counted(call: str, now: float) -> list[Effect]:
            nonlocal judged
            judged = self._nth + len(self._unread)
            return change(call, now, judged)

        await self._call(what, counted)
        return Change(judged + 1)

    async def _call(self, what: str, call: Callable[[str, float], list[Effect]]) -> None:
        """Ask the machine for something and wait until it is done, at most the bus's deadline."""
        if self._error is not None:
            raise self._error
        number = self._bus.next_call()
        name = f"{what}/{number}"
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._calls[name] = done

        def failed(error: Exception) -> None:
            if not done.done():
                done.set_exception(error)

        self._bus.host.ask(self._node, lambda now: call(name, now), failed)
        try:
            async with asyncio.timeout(self._bus.deadline):
                await done
        except TimeoutError:
            raise Unsure(f"{what}: no answer in {self._bus.deadline:g} s") from None
        finally:
            del self._calls[name]

    def _traced(
        self, op: str, topics: Sequence[str], values: Mapping[str, Any], at: float, after: int
    ) -> None:
        where = self._where if op == "subscribe" else None
        self._bus.trace.subscribed(self.name, op, topics, where, values, at, after)

    # What the host tells.

    def delivered(self, delivery: Deliver) -> None:
        event = delivery.event
        if event.topic in self._topics:
            arrival = self._arrived.pop((event.publisher, event.seq), None)
            arrival = arrival or (-1, self._bus.host.now(), 0)
            self._unread.append((delivery, arrival))
            self._unread_bytes += arrival[2]
            self._came.set()

    def answered(self, answer: Answer) -> None:
        if answer.outcome == "gap":
            self.gaps.append(answer.reason)
            return
        done = self._calls.get(answer.call)
        if done is None or done.done():
            return
        if answer.outcome == "refused":
            done.set_exception(Refused(answer.reason))
        else:
            done.set_result(None)

    def received(self, offset: int, events: Sequence[Event], size: int) -> None:
        now = self._bus.host.now()
        arrived = self._arrived
        each = size // max(1, len(events))
        for place, event in enumerate(events, offset):
            arrived[event.publisher, event.seq] = (place, now, each)
        while len(arrived) > ARRIVALS_REMEMBERED_MAX:
            arrived.popitem(last=False)

    def has_room(self) -> bool:
        return (
            len(self._unread) <= UNREAD_EVENTS_MAX // 2
            and self._unread_bytes <= UNREAD_BYTES_MAX // 2
        )

    def broken(self, error: Exception) -> None:
        self._error = self._error or error
        for done in self._calls.values():
            if not done.done():
                done.set_exception(error)
        self._came.set()
