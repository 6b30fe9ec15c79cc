"""What a client does whatever it promises: number its events, and hold topics.

Rule 1: an event id is never used twice, not even by a client that crashed: numbers are reserved on
        disk in blocks before the first of them is used.
Rule 2: the topics of a call count as held from the network's confirmation of all of them on, which
        is when the call is answered, until they are dropped. Dropping ends a wait, too.

Guarantees without topic managers build their client on this.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct

from inorder.core.effect import Answer, Effect, Join, Leave, Persist
from inorder.core.errors import Misuse, TooLarge
from inorder.core.limits import TOPICS_PER_SUBSCRIBER_MAX
from inorder.core.pack import pack

# How many sequence numbers one record reserves: a crash wastes at most this many.
SEQ_BLOCK = 1000


class Membership(Struct):
    """The state behind the rules, for the snapshot of whoever has it."""

    name: str
    next_seq: int = 1
    reserved: int = 0
    active: list[str] = []
    # Calls whose topics the network has not confirmed yet: call -> topics still missing, and those
    # that are there and wait for the others.
    joining: dict[str, list[str]] = {}
    joined: dict[str, list[str]] = {}


class Member:
    """The half of a client that knows nothing of order."""

    def __init__(self, name: str) -> None:
        self._m = Membership(name)

    @property
    def next_seq(self) -> int:
        return self._m.next_seq

    @property
    def topics_held(self) -> Sequence[str]:
        return self._m.active

    def _number(self, effects: list[Effect]) -> int:
        """The next event's number, made durable by the effects if need be."""
        m = self._m
        seq = m.next_seq
        if seq > m.reserved:
            m.reserved = seq + SEQ_BLOCK - 1
            effects.append(Persist(pack(m.reserved)))
        m.next_seq = seq + 1
        return seq

    def subscribe(self, call: str, topics: Iterable[str], now: float) -> list[Effect]:
        m = self._m
        wanted = sorted({*topics} - {*m.active})
        if not wanted:
            raise Misuse("subscribe names no topic that is not held already")
        if (size := len(m.active) + len(wanted)) > TOPICS_PER_SUBSCRIBER_MAX:
            raise TooLarge("topics of one subscriber", size, TOPICS_PER_SUBSCRIBER_MAX)
        m.joining[call] = wanted
        return [Join(topic) for topic in wanted]

    def joined(self, topic: str, now: float) -> list[Effect]:
        m = self._m
        effects: list[Effect] = []
        for call, missing in list(m.joining.items()):
            if topic not in missing:
                continue
            missing.remove(topic)
            m.joined.setdefault(call, []).append(topic)
            effects += self._complete(call)
        return effects

    def _complete(self, call: str) -> list[Effect]:
        m = self._m
        if m.joining[call]:
            return []
        del m.joining[call]
        m.active = sorted({*m.active, *m.joined.pop(call, [])})
        return [Answer(call, "done")]

    def unsubscribe(self, call: str, topics: Iterable[str], now: float) -> list[Effect]:
        m = self._m
        named = {*topics}
        coming = {topic for each in (m.joining, m.joined) for ts in each.values() for topic in ts}
        dropped = sorted(named & {*m.active, *coming})
        if not dropped:
            raise Misuse("unsubscribe names no topic that is held")
        m.active = sorted({*m.active} - {*dropped})
        effects: list[Effect] = [Leave(topic) for topic in dropped]
        for waiting in list(m.joining):
            for lists in (m.joining, m.joined):
                if waiting in lists:
                    lists[waiting] = [topic for topic in lists[waiting] if topic not in named]
            effects += self._complete(waiting)
        return [*effects, Answer(call, "done")]

    def replay(self, record: bytes) -> None:
        self._m.reserved = msgspec.msgpack.decode(record, type=int)
        self._m.next_seq = self._m.reserved + 1

    def resume(self, now: float) -> list[Effect]:
        return []
