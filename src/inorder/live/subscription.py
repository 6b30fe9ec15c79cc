"""A subscription: some topics, perhaps a filter, under one guarantee, as a stream of events.

Rule 1: each subscription is a machine of its own: its order, its filter, its place in the log.
Rule 2: an event of a topic that was left is not handed over, even if it waited here already.
Rule 3: when the application falls behind, the machine stops reading. The log keeps the rest.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from inorder.compose import Filtering
from inorder.effect import Answer, Deliver, Effect
from inorder.errors import InorderError, Misuse, Refused, Unsure
from inorder.event import Event
from inorder.limits import ARRIVALS_REMEMBERED_MAX, UNREAD_EVENTS_MAX
from inorder.live.node import Node
from inorder.live.receipt import Change, Delivered
from inorder.live.values import from_attributes
from inorder.machine import Durable

if TYPE_CHECKING:
    from inorder.live.bus import Bus


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
        self._unread: deque[Deliver] = deque()
        self._came = asyncio.Event()
        self._arrived: OrderedDict[tuple[str, int], tuple[int, float]] = OrderedDict()
        self._calls: dict[str, asyncio.Future[None]] = {}
        self._position = 0
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
        records = await host.broker.records(self.name)
        host.add(self._node)
        machine = self._machine
        if isinstance(machine, Durable):
            for record in records:
                machine.replay(record)
            host.ask(self._node, machine.resume)
        try:
            await self._call(
                "subscribe",
                lambda call, now: machine.subscribe(
                    call, self._topics, now, self._where, self._parameters or None
                ),
            )
        except BaseException:
            await self.close()
            raise
        self._traced("subscribe", self._topics, self._parameters, host.now(), self._position)

    async def close(self) -> None:
        """Stop; what was not read stays unread."""
        if self._closed:
            return
        self._closed = True
        host = self._bus.host
        held = self._topics
        if self.name in host.nodes and held and self._error is None and not self._bus.closing:
            self._traced("unsubscribe", held, {}, host.now(), self._position)
            with suppress(InorderError):  # who keeps us registered only stamps a little more
                await self._call("unsubscribe", lambda call, now: self._leave(call, held, now))
        host.remove(self.name)
        await self._bus.gone(self)
        self._came.set()

    def _leave(self, call: str, topics: Sequence[str], now: float) -> list[Effect]:
        return self._machine.unsubscribe(call, topics, now)

    # Reading.

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delivered:
        try:
            return await self.next(self._idle_s)
        except TimeoutError:
            raise StopAsyncIteration from None

    async def next(self, deadline: float | None = None) -> Delivered:
        """The next event; TimeoutError when none comes within the deadline (seconds)."""
        while not self._unread:
            if self._error is not None:
                raise self._error
            if self._closed:
                raise StopAsyncIteration
            self._came.clear()
            if deadline is None:
                await self._came.wait()
            else:
                await asyncio.wait_for(self._came.wait(), deadline)
        return self._take()

    def _take(self) -> Delivered:
        delivery = self._unread.popleft()
        if len(self._unread) == UNREAD_EVENTS_MAX // 2:
            self._bus.host.ring()
        event = delivery.event
        self._position += 1
        now = self._bus.host.now()
        offset, received_at = self._arrived.pop((event.publisher, event.seq), (-1, now))
        delivered = Delivered(
            event.topic, from_attributes(event.value, self._kind), delivery.in_order,
            self._position, offset, event.publisher, event.seq, event.published_at,
        )  # fmt: skip
        self._bus.trace.delivered(self.name, delivered, received_at, now)
        return delivered

    # Changing.

    async def set(self, **values: Any) -> Change:
        """Move parameters of the filter; all of them, or none."""
        if self._where is None:
            raise Misuse("this subscription has no filter to move")

        def change(call: str, now: float) -> list[Effect]:
            return self._machine.set(call, self._topics, values, now)

        after = await self._change("set", change)
        self._parameters.update(values)
        self._traced("set", self._topics, values, self._bus.host.now(), after)
        return Change(after + 1)

    async def replace(self, where: str, **values: Any) -> Change:
        """Another filter, with its parameters, for the same topics."""
        if self._where is None:
            raise Misuse("this subscription has no filter to replace: subscribe anew")

        def change(call: str, now: float) -> list[Effect]:
            return self._machine.replace(call, self._topics, where, values, now)

        after = await self._change("replace", change)
        self._where, self._parameters = where, dict(values)
        host = self._bus.host
        self._traced("unsubscribe", self._topics, {}, host.now(), after)
        self._traced("subscribe", self._topics, values, host.now(), after)
        return Change(after + 1)

    async def unsubscribe(self, *topics: str) -> None:
        """Leave some of the topics; nothing of them is handed over from now on."""
        dropped = sorted({*topics} & {*self._topics})
        if not dropped:
            raise Misuse("unsubscribe names no topic that is held")
        self._topics = [topic for topic in self._topics if topic not in dropped]
        self._unread = deque(d for d in self._unread if d.event.topic not in dropped)
        self._traced("unsubscribe", dropped, {}, self._bus.host.now(), self._position)
        await self._call("unsubscribe", lambda call, now: self._leave(call, dropped, now))

    async def _change(self, what: str, change: Callable[[str, float], list[Effect]]) -> int:
        """Returns how many deliveries the old filter judged."""
        judged = 0

        def counted(call: str, now: float) -> list[Effect]:
            nonlocal judged
            judged = self._position + len(self._unread)
            return change(call, now)

        await self._call(what, counted)
        return judged

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
            await asyncio.wait_for(done, self._bus.deadline)
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
        if delivery.event.topic in self._topics:
            self._unread.append(delivery)
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

    def received(self, offset: int, events: Sequence[Event]) -> None:
        now = self._bus.host.now()
        arrived = self._arrived
        for place, event in enumerate(events, offset):
            arrived[event.publisher, event.seq] = (place, now)
        while len(arrived) > ARRIVALS_REMEMBERED_MAX:
            arrived.popitem(last=False)

    def has_room(self) -> bool:
        return len(self._unread) <= UNREAD_EVENTS_MAX // 2

    def broken(self, error: Exception) -> None:
        self._error = error
        for done in self._calls.values():
            if not done.done():
                done.set_exception(error)
        self._came.set()
