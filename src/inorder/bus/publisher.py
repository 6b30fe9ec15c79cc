"""The publishing machine of a bus, and the fates of what it was given.

Rule 1: every publication gets exactly one receipt, within its deadline.
Rule 2: when a turn is refused, what was handed over in it is refused: nothing of it was written.
        What was handed over earlier and has no answer yet is unknown. The machine begins a new life
        then, so nothing of the old one is sent again. What it wanted to remember is written first:
        a number that somebody was told is not given to another event.
Rule 3: what the machine has not taken by its deadline is taken back, and refused.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from inorder.bus.host import Host
from inorder.bus.node import Node
from inorder.bus.receipt import Outcome, Receipt
from inorder.bus.store.rows import Record, Turn
from inorder.bus.tracing import LiveTrace
from inorder.core.effect import Answer, Deliver, Effect
from inorder.core.errors import BadFrame, InorderError, Misuse, Refused
from inorder.core.event import Event, Scalar, event_id
from inorder.core.limits import WAITING_PUBLICATIONS_MAX
from inorder.core.machine import Client, Durable
from inorder.guarantee.registry import Guarantee

# How often deadlines are looked at.
SWEEP_S = 0.05
# Before a machine is begun again that the broker would not let begin.
BEGIN_AGAIN_S = 0.1


class Pending(Struct, gc=False):
    """A publication without an answer."""

    event: Event
    turn: int
    deadline: float
    done: Callable[[Receipt], None]
    seen: dict[str, int] = {}


class Handed(Struct):
    """Values that the machine has not taken yet."""

    count: int
    deadline: float
    failed: Callable[[Exception], None]
    open: bool = True

    def refuse(self, error: Exception) -> None:
        if self.open:
            self.open = False
            for _ in range(self.count):
                self.failed(error)


class Publisher:
    """Owner of the machine that publishes."""

    def __init__(
        self, host: Host, name: str, ordered: Guarantee, options: Any, trace: LiveTrace
    ) -> None:
        self.name = name
        self._host = host
        self._ordered = ordered
        self._options = options
        self._trace = trace
        self._pending: dict[str, Pending] = {}
        self._handed: deque[Handed] = deque()
        self._handed_values = 0
        self._ready = asyncio.Event()
        self._sweeping: asyncio.TimerHandle | None = None
        self._node: Node | None = None
        self._closed = False
        self._unwritten: Record | None = None
        self._beginning: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """Publications without an answer."""
        self._forget_handed()
        return len(self._pending) + self._handed_values

    async def begin(self) -> None:
        """Build the machine from what its earlier lives wrote down."""
        client: Client = self._ordered.client(self.name, (), self._options)
        if self._unwritten is not None:
            owned = {self.name: self._unwritten.token}
            await self._host.broker.write(Turn(records=[self._unwritten], owned=owned))
            self._unwritten = None
        records = await self._host.broker.records(self.name)
        if isinstance(client, Durable):
            remember(self.name, client, records)
        self._node = Node(self.name, client, self._ordered, self)
        self._host.add(self._node)
        if isinstance(client, Durable):
            self._host.ask(self._node, client.resume)
        self._ready.set()

    async def _begin_again(self) -> None:
        while True:
            try:
                await self.begin()
            except Refused:
                await asyncio.sleep(BEGIN_AGAIN_S)
            except InorderError as error:
                self._host.failed(error)
                return
            else:
                return

    async def ready(self, until: float) -> None:
        """Wait for the machine; `Refused` when there is none by then."""
        while self._node is None:
            try:
                async with asyncio.timeout(until - self._host.now()):
                    await self._ready.wait()
            except TimeoutError:
                reason = "the broker does not let us begin again"
                raise Refused(f"{self.name} cannot publish: {reason}") from None

    def hand_over(
        self,
        topic: str,
        values: Sequence[dict[str, Scalar]],
        deadline: float,
        done: Callable[[Receipt], None],
        failed: Callable[[Exception], None],
        mark: int,
    ) -> None:
        """Publish some values, in this order, in the next turn; for each of them either `done` gets
        a receipt or `failed` the reason why it was not even tried. `mark` says what the
        application had taken before (bus/tracing.py)."""
        node = self._node
        assert node is not None
        client: Client = node.machine  # type: ignore[assignment]
        handed = Handed(len(values), deadline, failed)
        if self.waiting + len(values) > WAITING_PUBLICATIONS_MAX:
            handed.refuse(Refused(f"{self.waiting} publications of {self.name} wait already"))
            return

        def publish(now: float) -> list[Effect]:
            effects: list[Effect] = []
            if not handed.open:
                return effects
            handed.open = False
            for number, value in enumerate(values):
                event = Event(self.name, client.next_seq, topic, value, now)
                try:
                    effects += client.publish(topic, value, now)
                except Exception as error:
                    # What was taken is published; the rest is not.
                    for _ in values[number:]:
                        failed(error)
                    break
                node.dirty_in = self._host.turn
                self._pending[event.id] = Pending(
                    event, self._host.turn, deadline, done, self._trace.seen(mark)
                )
            return effects

        self._handed.append(handed)
        self._handed_values += handed.count
        self._host.ask(node, publish, handed.refuse)
        if self._sweeping is None:
            self._sweep()

    # What the host tells.

    def answered(self, answer: Answer) -> None:
        pending = self._pending.get(answer.call)
        if pending is None:
            return
        if answer.outcome == "accepted":
            del self._pending[answer.call]
            self._trace.published(
                pending.event, "accepted", pending.seen, self._host.now(), answer.stamp
            )
            pending.done(Receipt(answer.call, pending.event.topic, "accepted", "", answer.stamp))
        else:
            self._end(pending, "refused", answer.reason)

    def broken(self, error: Exception) -> None:
        """The machine is no more: everybody who waits is told what is known."""
        self._ready.clear()
        if self._node is not None and self._node.unwritten is not None:
            self._unwritten = self._node.unwritten
        self._node = None
        turn = self._host.turn
        for pending in list(self._pending.values()):
            if isinstance(error, Refused) and pending.turn == turn:
                self._end(pending, "refused", str(error))
            else:
                self._end(pending, "unknown", str(error))
        if isinstance(error, Refused) and not self._closed:
            self._beginning = asyncio.ensure_future(self._begin_again())

    def delivered(self, delivery: Deliver) -> None:
        raise AssertionError(f"{self.name} holds no topic, but is given {delivery.event.id}")

    def received(self, offset: int, events: Sequence[Event], size: int) -> None:
        pass

    def has_room(self) -> bool:
        return True

    # Deadlines.

    def _sweep(self) -> None:
        now = self._host.now()
        self._forget_handed()
        for handed in self._handed:
            if handed.deadline <= now:
                handed.refuse(Refused(f"{self.name} could not be asked in time"))
        for pending in list(self._pending.values()):
            if pending.deadline <= now:
                self._end(pending, "unknown", "no answer in time")
        self._forget_handed()
        self._sweeping = None
        if (self._pending or self._handed) and not self._closed:
            self._sweeping = asyncio.get_running_loop().call_later(SWEEP_S, self._sweep)

    def _forget_handed(self) -> None:
        while self._handed and not self._handed[0].open:
            self._handed_values -= self._handed.popleft().count

    def _end(self, pending: Pending, outcome: Outcome, reason: str) -> None:
        event = pending.event
        del self._pending[event_id(event.publisher, event.seq)]
        self._trace.published(event, outcome, pending.seen)
        pending.done(Receipt(event.id, event.topic, outcome, reason))

    def close(self) -> None:
        """Whatever has no answer now gets none."""
        self._closed = True
        for handed in self._handed:
            handed.refuse(Refused("the bus was closed"))
        for pending in list(self._pending.values()):
            self._end(pending, "unknown", "the bus was closed")
        if self._sweeping is not None:
            self._sweeping.cancel()
        if self._beginning is not None:
            self._beginning.cancel()


def remember(name: str, machine: Durable, records: Sequence[bytes]) -> None:
    """Give a client what its earlier lives wrote down."""
    for record in records:
        try:
            machine.replay(record)
        except (BadFrame, msgspec.MsgspecError):
            raise Misuse(
                f"{name!r} was used with another guarantee here: choose another name"
            ) from None
