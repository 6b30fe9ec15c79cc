"""The thesis's baseline SRPT-B: a single tree of brokers, and subscribers that hang on them.

Brokers 0 to 31 are nodes of an SRPT tree (srpt.py), each with 127 guests. A guest publishes: it
asks the root broker, one hop. The event goes down the tree, and each broker sends a copy to each of
its guests that holds the topic.

Rule 1: a broker holds a topic in the tree as long as one of its guests does.
Rule 2: copies for other brokers stand in a broker's queue before those for its guests.
Rule 3: a broker hands an event to itself, too, as soon as it comes. No application is there: so
        the way to the brokers can be told from the way to the guests.

How a publisher reaches the root is not said in the thesis: directly, as in SRPT-S, is our reading.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from msgspec import Struct

from experiments.cube.srpt import Ask, Layout, Srpt, machines
from inorder.core.effect import Answer, Deliver, Effect, Send
from inorder.core.errors import BadMessage
from inorder.core.event import Event, Scalar, event_id
from inorder.core.pack import pack, unpacker


class Enter(Struct, frozen=True, gc=False, tag="enter"):
    """A guest holds the topic from now on."""

    topic: str


class Leave(Struct, frozen=True, gc=False, tag="leave"):
    """A guest does not hold the topic any more."""

    topic: str


class Noted(Struct, frozen=True, gc=False, tag="noted"):
    """The broker's answer to either, when its tree knows."""

    topic: str


class Copy(Struct, frozen=True, gc=False, tag="copy"):
    """A publication on its way from a broker to a guest."""

    event: Event

    @property
    def key(self) -> tuple[str, int]:
        return (self.event.publisher, self.event.seq)


class _Broker(Struct):
    tree: bytes
    guests: dict[str, list[str]]
    calls: int


class _Call(Struct):
    """A call of the application, and the topics that its broker has not answered for."""

    name: str
    topics: list[str]


class _Guest(Struct):
    name: str
    broker: str
    roots: dict[str, str]
    seq: int = 1
    held: list[str] = []
    calls: list[_Call] = []


_unpack_broker = unpacker(_Broker)
_unpack_guest = unpacker(_Guest)


class Broker:
    """A node of the tree, and what it does for its guests."""

    def __init__(self, tree: Srpt, guests: Mapping[str, Sequence[str]]) -> None:
        self._tree = tree
        self._guests = {topic: sorted(names) for topic, names in guests.items()}
        self._calls = 0

    def receive(self, source: str, message: Any, now: float) -> list[Effect]:
        if isinstance(message, Enter | Leave):
            return self._on_guest(source, message, now)
        return self._for_guests(self._tree.receive(source, message, now))

    def _for_guests(self, asked: list[Effect]) -> list[Effect]:
        """What the tree asks for, with its answers and deliveries passed on to guests."""
        effects: list[Effect] = []
        for effect in asked:
            if isinstance(effect, Answer):
                _, guest, topic = effect.call.split("/", 2)
                effects.append(Send(guest, Noted(topic)))
            else:
                effects.append(effect)
                if isinstance(effect, Deliver):
                    copy = Copy(effect.event)
                    names = self._guests.get(copy.event.topic, ())
                    effects += [Send(name, copy) for name in names]
        return effects

    def _on_guest(self, guest: str, message: Enter | Leave, now: float) -> list[Effect]:
        topic = message.topic
        names = self._guests.setdefault(topic, [])
        if isinstance(message, Enter) and guest not in names:
            insort(names, guest)
        elif isinstance(message, Leave) and guest in names:
            names.remove(guest)
        if not names:
            del self._guests[topic]
        # The tree answers at once if nothing changes for it.
        change = self._tree.subscribe if names else self._tree.unsubscribe
        self._calls += 1
        return self._for_guests(change(f"{self._calls}/{guest}/{topic}", [topic], now))

    def fire(self, timer: str, now: float) -> list[Effect]:
        raise AssertionError(f"no timer is ever set, {timer!r} fired")

    def account(self) -> dict[str, float]:
        return self._tree.account()

    def snapshot(self) -> bytes:
        return pack(_Broker(self._tree.snapshot(), self._guests, self._calls))

    @classmethod
    def restore(cls, snapshot: bytes) -> Self:
        seen = _unpack_broker(snapshot)
        broker = cls(Srpt.restore(seen.tree), seen.guests)
        broker._calls = seen.calls
        return broker


class Guest:
    """A client: it publishes to the root broker and hears from its own."""

    def __init__(
        self, name: str, broker: str, roots: Mapping[str, str], held: Iterable[str] = ()
    ) -> None:
        self._s = _Guest(name, broker, dict(roots), held=sorted(held))

    @property
    def next_seq(self) -> int:
        return self._s.seq

    def publish(self, topic: str, value: dict[str, Scalar], now: float) -> list[Effect]:
        s = self._s
        event = Event(s.name, s.seq, topic, value, now)
        s.seq += 1
        return [Answer(event_id(s.name, event.seq), "accepted"), Send(s.roots[topic], Ask(event))]

    def subscribe(self, call: str, topics: Iterable[str], now: float) -> list[Effect]:
        wanted = [topic for topic in topics if topic not in self._s.held]
        self._s.held = sorted([*self._s.held, *wanted])
        return self._say(call, [Enter(topic) for topic in wanted])

    def unsubscribe(self, call: str, topics: Iterable[str], now: float) -> list[Effect]:
        dropped = [topic for topic in topics if topic in self._s.held]
        self._s.held = [topic for topic in self._s.held if topic not in dropped]
        return self._say(call, [Leave(topic) for topic in dropped])

    def joined(self, topic: str, now: float) -> list[Effect]:
        raise AssertionError("no node joins a topic of the network here")

    def _say(self, call: str, messages: Sequence[Enter | Leave]) -> list[Effect]:
        if not messages:
            return [Answer(call, "done")]
        self._s.calls.append(_Call(call, [message.topic for message in messages]))
        return [Send(self._s.broker, message) for message in messages]

    def receive(self, source: str, message: Any, now: float) -> list[Effect]:
        if isinstance(message, Copy):
            return [Deliver(message.event)] if message.event.topic in self._s.held else []
        if not isinstance(message, Noted):
            raise BadMessage(source, f"{type(message).__name__} is no message for a guest")
        calls = self._s.calls
        call = next((call for call in calls if message.topic in call.topics), None)
        if call is None:
            return []
        call.topics.remove(message.topic)
        if call.topics:
            return []
        calls.remove(call)
        return [Answer(call.name, "done")]

    def fire(self, timer: str, now: float) -> list[Effect]:
        raise AssertionError(f"no timer is ever set, {timer!r} fired")

    def snapshot(self) -> bytes:
        return pack(self._s)

    @classmethod
    def restore(cls, snapshot: bytes) -> Self:
        seen = _unpack_guest(snapshot)
        guest = cls("", "", {})
        guest._s = seen
        return guest


def nodes(
    brokers: Layout, guests: Mapping[str, int], members: Mapping[str, Sequence[str]]
) -> dict[str, Broker | Guest]:
    """Brokers and guests by name; `guests` says which broker each hangs on, `members` which of
    them hold a topic from the beginning."""
    at: list[dict[str, list[str]]] = [{} for _ in brokers.names]
    held: dict[str, list[str]] = {}
    for topic, names in members.items():
        for name in names:
            at[guests[name]].setdefault(topic, []).append(name)
            held.setdefault(name, []).append(topic)
    holding = {
        topic: [broker for broker, topics in enumerate(at) if topic in topics] for topic in members
    }
    roots = {topic: brokers.names[root] for topic, root in brokers.roots.items()}
    trees = machines(brokers, holding)
    made: dict[str, Broker | Guest] = {
        name: Broker(tree, topics)
        for name, tree, topics in zip(brokers.names, trees, at, strict=True)
    }
    for name, broker in guests.items():
        made[name] = Guest(name, brokers.names[broker], roots, held.get(name, ()))
    return made
