"""The guarantee that guarantees nothing: what the network alone would do.

Rule 1: every event the network hands over is delivered at once, in order of arrival, as often as
        it arrives. Duplicates and disorder are the network's, and this machine shows them.
Rule 2: an event id is never used twice, not even by a client that crashed: numbers are reserved on
        disk in blocks before the first of them is used.

It is the baseline of every comparison and the smallest complete example of a machine.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import msgspec
from msgspec import Struct

from inorder.effect import Answer, Deliver, Diffuse, Effect, Join, Leave, Persist
from inorder.errors import Misuse, TooLarge
from inorder.event import Event, Scalar, event_id
from inorder.limits import TOPICS_PER_SUBSCRIBER_MAX
from inorder.wire import Decoder, encode

# How many sequence numbers one record reserves: a crash wastes at most this many.
SEQ_BLOCK = 1000


class Published(Struct, frozen=True, gc=False, array_like=True, tag="published"):
    """An event on its way to the members of its topic."""

    event: Event


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """`guarantee = "none"` has nothing to choose."""


class _State(Struct):
    name: str
    next_seq: int = 1
    reserved: int = 0
    active: list[str] = []
    # Calls whose topics the network has not confirmed yet: call -> topics still missing.
    joining: dict[str, list[str]] = {}


_decode_state = Decoder(_State).decode


class Client:
    """Publishes and subscribes without any order."""

    def __init__(self, name: str, options: Options | None = None) -> None:
        self._s = _State(name)
        self._options = options or Options()

    @property
    def next_seq(self) -> int:
        return self._s.next_seq

    def publish(self, topic: str, value: dict[str, Scalar], now: float) -> list[Effect]:
        s = self._s
        effects: list[Effect] = []
        if s.next_seq > s.reserved:
            s.reserved = s.next_seq + SEQ_BLOCK - 1
            effects.append(Persist(encode(s.reserved)))
        event = Event(s.name, s.next_seq, topic, value, now)
        s.next_seq += 1
        effects.append(Diffuse(topic, Published(event)))
        effects.append(Answer(event_id(s.name, event.seq), "accepted"))
        return effects

    def subscribe(self, call: str, topics: Iterable[str], now: float) -> list[Effect]:
        s = self._s
        wanted = sorted({*topics} - {*s.active})
        if not wanted:
            raise Misuse("subscribe names no topic that is not held already")
        if (size := len(s.active) + len(wanted)) > TOPICS_PER_SUBSCRIBER_MAX:
            raise TooLarge("topics of one subscriber", size, TOPICS_PER_SUBSCRIBER_MAX)
        s.joining[call] = wanted
        return [Join(topic) for topic in wanted]

    def joined(self, topic: str, now: float) -> list[Effect]:
        s = self._s
        effects: list[Effect] = []
        for call, missing in list(s.joining.items()):
            if topic not in missing:
                continue
            missing.remove(topic)
            s.active = sorted({*s.active, topic})
            if not missing:
                del s.joining[call]
                effects.append(Answer(call, "done"))
        return effects

    def unsubscribe(self, call: str, topics: Iterable[str], now: float) -> list[Effect]:
        s = self._s
        dropped = sorted({*topics} & {*s.active})
        if not dropped:
            raise Misuse("unsubscribe names no topic that is held")
        s.active = sorted({*s.active} - {*dropped})
        return [*(Leave(topic) for topic in dropped), Answer(call, "done")]

    def receive(self, source: str, message: Any, now: float) -> list[Effect]:
        if message.event.topic not in self._s.active:
            return []
        return [Deliver(message.event)]

    def fire(self, timer: str, now: float) -> list[Effect]:
        raise AssertionError(f"no timer is ever set, {timer!r} fired")

    def replay(self, record: bytes) -> None:
        self._s.reserved = msgspec.msgpack.decode(record, type=int)
        self._s.next_seq = self._s.reserved + 1

    def resume(self, now: float) -> list[Effect]:
        return []

    def snapshot(self) -> bytes:
        return encode(self._s)

    @classmethod
    def restore(cls, snapshot: bytes) -> Self:
        client = cls("")
        client._s = _decode_state(snapshot)
        return client
