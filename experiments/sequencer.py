"""A single sequencer in the manner of JGroups' SEQUENCER over TCP: the rival of figure 24.

Rule 1: one group for all topics. Every event goes to the coordinator, which numbers it and sends
        one copy to every member; members deliver in number order.
Rule 2: a member drops, on delivery, what it does not subscribe to. Until then it has cost a copy.

Links are taken to be reliable and nobody crashes: what JGroups does about loss and failures is not
part of the comparison.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

import msgspec
from msgspec import Struct

from inorder.core.effect import Answer, Deliver, Effect, Send
from inorder.core.event import Event, Scalar, event_id
from inorder.core.machine import Builder
from inorder.core.wire import encode
from inorder.guarantee.promises import Network
from inorder.guarantee.registry import GUARANTEES, Guarantee

COORDINATOR = "sequencer"


class Forward(Struct, frozen=True, gc=False, tag="forward"):
    event: Event


class Ordered(Struct, frozen=True, gc=False, tag="ordered"):
    number: int
    event: Event


class Enter(Struct, frozen=True, gc=False, tag="enter"):
    pass


class Entered(Struct, frozen=True, gc=False, tag="entered"):
    """From which number on the new member hears everything."""

    number: int


Message = Forward | Ordered | Enter | Entered


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    pass


class Coordinator:
    """Numbers everything and sends a copy to each member."""

    def __init__(self) -> None:
        self.number = 0
        self.members: list[str] = []

    def receive(self, source: str, message: Any, now: float) -> list[Effect]:
        if isinstance(message, Enter):
            self.members = sorted({*self.members, source})
            return [Send(source, Entered(self.number))]
        self.number += 1
        ordered = Ordered(self.number, message.event)
        return [Send(member, ordered) for member in self.members]

    def fire(self, timer: str, now: float) -> list[Effect]:
        raise AssertionError(f"no timer is ever set, {timer!r} fired")

    def snapshot(self) -> bytes:
        return encode((self.number, self.members))

    @classmethod
    def restore(cls, snapshot: bytes) -> Self:
        machine = cls()
        machine.number, machine.members = msgspec.msgpack.decode(
            snapshot, type=tuple[int, list[str]]
        )
        return machine


class _State(Struct):
    name: str
    seq: int = 1
    # The last number delivered; None while not a member.
    number: int | None = None
    active: list[str] = []
    calls: dict[str, list[str]] = {}
    early: dict[int, Event] = {}


class Client:
    """A member of the group."""

    def __init__(
        self, name: str, topics: Sequence[str] = (), options: Options | None = None
    ) -> None:
        self._s = _State(name)

    @property
    def next_seq(self) -> int:
        return self._s.seq

    def publish(self, topic: str, value: dict[str, Scalar], now: float) -> list[Effect]:
        s = self._s
        event = Event(s.name, s.seq, topic, value, now)
        s.seq += 1
        accepted = Answer(event_id(s.name, event.seq), "accepted")
        return [Send(COORDINATOR, Forward(event)), accepted]

    def subscribe(self, call: str, topics: Iterable[str], now: float) -> list[Effect]:
        s = self._s
        if s.number is not None:
            s.active = sorted({*s.active, *topics})
            return [Answer(call, "done")]
        s.calls[call] = sorted(topics)
        return [Send(COORDINATOR, Enter())]

    def unsubscribe(self, call: str, topics: Iterable[str], now: float) -> list[Effect]:
        self._s.active = sorted({*self._s.active} - {*topics})
        return [Answer(call, "done")]

    def joined(self, topic: str, now: float) -> list[Effect]:
        raise AssertionError("nobody joins a topic of the network here")

    def receive(self, source: str, message: Any, now: float) -> list[Effect]:
        s = self._s
        if isinstance(message, Entered):
            return self._on_entered(message)
        s.early[message.number] = message.event
        return self._deliver()

    def _on_entered(self, message: Entered) -> list[Effect]:
        s = self._s
        if s.number is None:
            s.number = message.number
        s.early = {number: event for number, event in s.early.items() if number > s.number}
        done = [Answer(call, "done") for call in s.calls]
        s.active = sorted({*s.active, *(topic for some in s.calls.values() for topic in some)})
        s.calls.clear()
        return [*done, *self._deliver()]

    def _deliver(self) -> list[Effect]:
        s = self._s
        effects: list[Effect] = []
        while s.number is not None and s.number + 1 in s.early:
            s.number += 1
            event = s.early.pop(s.number)
            if event.topic in s.active:
                effects.append(Deliver(event))
        return effects

    def fire(self, timer: str, now: float) -> list[Effect]:
        raise AssertionError(f"no timer is ever set, {timer!r} fired")

    def snapshot(self) -> bytes:
        return encode(self._s)

    @classmethod
    def restore(cls, snapshot: bytes) -> Self:
        client = cls("")
        client._s = msgspec.msgpack.decode(snapshot, type=_State)
        return client


def _services(topics: Sequence[str], options: Options) -> dict[str, Builder]:
    return {COORDINATOR: Builder(Coordinator, COORDINATOR)}


def _promises(options: Options, network: Network) -> tuple[str, ...]:
    return ("total", "fifo", "unique", "reliable")


def register() -> None:
    """Make `guarantee = "sequencer"` known to scenarios of this process."""
    GUARANTEES.setdefault(
        "sequencer",
        Guarantee("sequencer", Options, Client, Message, _services, _promises),
    )
