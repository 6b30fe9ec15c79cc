"""The guarantee that guarantees nothing: what the network alone would do.

Rule 1: every event the network hands over is delivered at once, in order of arrival, as often as
        it arrives. Duplicates and disorder are the network's, and this machine shows them.

It is the baseline of every comparison and the smallest complete example of a machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from msgspec import Struct

from inorder.core.effect import Answer, Deliver, Diffuse, Effect
from inorder.core.event import Event, Scalar, event_id
from inorder.core.member import Member, Membership
from inorder.core.pack import pack, unpacker


class Published(Struct, frozen=True, gc=False, array_like=True, tag="published"):
    """An event on its way to the members of its topic."""

    event: Event


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """`guarantee = "none"` has nothing to choose."""


_unpack = unpacker(Membership)


class Client(Member):
    """Publishes and subscribes without any order."""

    def __init__(self, name: str, topics: Sequence[str] = (), options: Any = None) -> None:
        super().__init__(name)

    def publish(self, topic: str, value: dict[str, Scalar], now: float) -> list[Effect]:
        effects: list[Effect] = []
        event = Event(self._m.name, self._number(effects), topic, value, now)
        effects.append(Diffuse(topic, Published(event)))
        effects.append(Answer(event_id(event.publisher, event.seq), "accepted"))
        return effects

    def receive(self, source: str, message: Any, now: float) -> list[Effect]:
        if message.event.topic not in self._m.active:
            return []
        return [Deliver(message.event)]

    def fire(self, timer: str, now: float) -> list[Effect]:
        raise AssertionError(f"no timer is ever set, {timer!r} fired")

    def snapshot(self) -> bytes:
        return pack(self._m)

    @classmethod
    def restore(cls, snapshot: bytes) -> Self:
        client = cls("")
        client._m = _unpack(snapshot)
        return client


class Reader:
    """A subscriber fed from recorded rows: what comes, goes."""

    waiting = 0

    def receive(self, source: str, message: Any, now: float) -> list[Effect]:
        return [Deliver(message.event)]

    def fire(self, timer: str, now: float) -> list[Effect]:
        raise AssertionError(f"no timer is ever set, {timer!r} fired")

    def finish(self, now: float) -> list[Effect]:
        return []

    def snapshot(self) -> bytes:
        return b""

    @classmethod
    def restore(cls, snapshot: bytes) -> Self:
        return cls()


class Rows:
    """Recorded rows of any network: nothing is read from a stamp (rows.py)."""

    needs_stamps = False

    def reader(
        self, name: str, options: Any, start: Mapping[str, int] | None, from_first: bool
    ) -> Reader:
        return Reader()

    def restore(self, snapshot: bytes) -> Reader:
        return Reader.restore(snapshot)

    def message(self, event: Event, stamp: str) -> Published:
        return Published(event)

    def placeholder(self, topic: str, offset: int) -> None:
        """Nobody waits for a number."""

    def waits_for_all(self, options: Any) -> bool:
        return False

    def skimmer(self, names: Sequence[str], codes: Any, stamps: bytes) -> _AllAtOnce:
        return _AllAtOnce()


class _AllAtOnce:
    """All rows go as they came."""

    def skim(self, reader: Any, rows: Any) -> tuple[Any, Any, Any, Any, list[Event]]:
        return rows, rows >= 0, rows[:0], rows[:0], []
