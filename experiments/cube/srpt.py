"""The thesis's baseline SRPT-S: one root for each topic, one tree that all its publications share.

Node 0 is the root of `t`; 0, 1, 3, 5 and 6 hold it. Node 3 publishes: it asks the root, one hop.
The root passes the event down its tree, 0 -> 1, 0 -> 2 -> 3, 0 -> 4 -> 5 and 4 -> 6. Nodes 2 and 4
do not hold `t`: they are relays, and what they get of it are false positives.

Rule 1: the tree is the complete hypercube's, as seen from the root, without the branches where no
        node holds the topic. The parent of a node: clear the lowest bit in which it differs from
        the root.
Rule 2: a node knows how many nodes hold a topic below each of its children, and no names.
Rule 3: with `resend`, a node that joins or leaves says so to the root (`Sub`, `Uns`, one hop), and
        the root passes that down its whole tree; each node that has the changed one below it
        counts. Without, the word climbs the tree, and each node on its way counts.
Rule 4: no order is promised. An event is handed over as it comes.

Rule 3 is a reading: the thesis says that single trees have to be rebuilt, and not how. What it
measures (a root that saturates at 5 % changes of 1,000 nodes a second) follows from `resend` and
not from climbing, where the root sends nothing. Links are taken to lose and double nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from msgspec import Struct

from inorder.core.effect import Answer, Deliver, Effect, Send
from inorder.core.errors import BadMessage, Misuse
from inorder.core.event import Event, Scalar, event_id
from inorder.core.pack import pack, unpacker


class Ask(Struct, frozen=True, gc=False, tag="ask"):
    """A publication on its way to the root."""

    event: Event

    @property
    def key(self) -> tuple[str, int]:
        return (self.event.publisher, self.event.seq)


class Pub(Struct, frozen=True, gc=False, tag="pub"):
    """A publication on its way down the tree."""

    event: Event

    @property
    def key(self) -> tuple[str, int]:
        return (self.event.publisher, self.event.seq)


class Sub(Struct, frozen=True, gc=False, tag="sub"):
    """A node holds the topic from now on."""

    topic: str
    node: int


class Uns(Struct, frozen=True, gc=False, tag="uns"):
    """A node does not hold the topic any more."""

    topic: str
    node: int


class Layout(Struct, frozen=True):
    """What all nodes are configured with: their names, and the root of each topic by its place
    among them."""

    names: tuple[str, ...]
    roots: Mapping[str, int]
    resend: bool = True
    # The copy with the largest branch leaves first. The thesis's CHILDREN names the nearest cluster
    # first, but its latencies fit this order.
    far_first: bool = True


class Place(Struct):
    """What a node knows of one topic: whether it holds it, and how many nodes hold it below the
    child across each dimension."""

    below: list[int]
    held: bool = False


class State(Struct):
    """All that a node knows, so that equal states have equal snapshots."""

    layout: Layout
    node: int
    seq: int = 1
    places: dict[str, Place] = {}
    # Calls whose changes have not come back from the root yet, topic by topic.
    calls: dict[str, list[str]] = {}
    # Publications that came down, and those of them that were no business of this node.
    received: int = 0
    relayed: int = 0


_unpack = unpacker(State)


def dimensions(size: int) -> int:
    """How many neighbours a node has; only whole cubes have the trees of Rule 1."""
    if size < 1 or size & (size - 1):
        raise Misuse(f"{size} nodes are no hypercube: their number must be a power of two")
    return size.bit_length() - 1


class Srpt:
    """One node: the application's client and a station of the trees."""

    def __init__(self, layout: Layout, node: int) -> None:
        self._become(State(layout, node))

    def _become(self, state: State) -> None:
        self._s = state
        self._names = state.layout.names
        self._dimensions = dimensions(len(self._names))
        self._name = self._names[state.node]
        # Follows from the counts: whom a publication on a topic is passed on to.
        self._kids: dict[str, list[str]] = {}

    # Calls of the application.

    @property
    def next_seq(self) -> int:
        return self._s.seq

    def publish(self, topic: str, value: dict[str, Scalar], now: float) -> list[Effect]:
        s = self._s
        root = s.layout.roots[topic]
        event = Event(self._name, s.seq, topic, value, now)
        s.seq += 1
        accepted = Answer(event_id(self._name, event.seq), "accepted")
        if root == s.node:
            return [accepted, *self._pass_on(Pub(event))]
        return [accepted, Send(self._names[root], Ask(event))]

    def subscribe(self, call: str, topics: Iterable[str], now: float) -> list[Effect]:
        return self._change(call, topics, True)

    def unsubscribe(self, call: str, topics: Iterable[str], now: float) -> list[Effect]:
        return self._change(call, topics, False)

    def joined(self, topic: str, now: float) -> list[Effect]:
        raise AssertionError("no node joins a topic of the network here")

    def _change(self, call: str, topics: Iterable[str], held: bool) -> list[Effect]:
        s = self._s
        effects: list[Effect] = []
        for topic in topics:
            place = self._place(topic)
            if place.held == held:
                continue
            place.held = held
            root = s.layout.roots[topic]
            if root == s.node:
                continue  # the root is below no node
            message = (Sub if held else Uns)(topic, s.node)
            if s.layout.resend:
                s.calls.setdefault(topic, []).append(call)
                effects.append(Send(self._names[root], message))
            else:
                effects.append(Send(self._parent(topic), message))
        return [*effects, *self._answer(call)]

    def _answer(self, call: str) -> list[Effect]:
        if any(call in calls for calls in self._s.calls.values()):
            return []
        return [Answer(call, "done")]

    # Messages.

    def receive(self, source: str, message: Any, now: float) -> list[Effect]:
        if isinstance(message, Pub):
            s = self._s
            s.received += 1
            place = s.places.get(message.event.topic)
            if place is None or not place.held:
                s.relayed += 1
            return self._pass_on(message)
        if isinstance(message, Ask):
            return self._pass_on(Pub(message.event))
        if not isinstance(message, Sub | Uns):
            raise BadMessage(source, f"{type(message).__name__} is no message of SRPT")
        return self._on_change(message)

    def _pass_on(self, message: Pub) -> list[Effect]:
        topic = message.event.topic
        effects: list[Effect] = [Send(kid, message) for kid in self.kids(topic)]
        place = self._s.places.get(topic)
        if place is not None and place.held:
            effects.append(Deliver(message.event))
        return effects

    def _on_change(self, message: Sub | Uns) -> list[Effect]:
        s = self._s
        if not s.layout.resend:
            self._count(message)
            if s.layout.roots[message.topic] == s.node:
                return []
            return [Send(self._parent(message.topic), message)]
        effects = self._pass_down(message)
        if message.node == s.node:
            calls = s.calls[message.topic]
            call = calls.pop(0)
            if not calls:
                del s.calls[message.topic]
            effects += self._answer(call)
        return effects

    def _pass_down(self, message: Sub | Uns) -> list[Effect]:
        """To all children with the topic below them: as it is after a `Sub`, was before an `Uns`.

        The branch of the changed node is among them even if a change of its own that overtook this
        one has left it without a count.
        """
        if isinstance(message, Sub):
            self._count(message)
        kids = self.kids(message.topic)
        across = self._across(message)
        if across is not None and (kid := self._names[self._s.node ^ 1 << across]) not in kids:
            kids = [*kids, kid]
        if isinstance(message, Uns):
            self._count(message)
        return [Send(kid, message) for kid in kids]

    def _across(self, message: Sub | Uns) -> int | None:
        """The dimension of the child that the changed node is below of, or is."""
        across = (message.node ^ self._s.node).bit_length() - 1
        return across if 0 <= across < self._height(message.topic) else None

    def _count(self, message: Sub | Uns) -> None:
        """Counts commute: whatever the order of changes, the last of them leaves the same tree."""
        across = self._across(message)
        if across is not None:
            change = 1 if isinstance(message, Sub) else -1
            self._place(message.topic).below[across] += change
            self._kids.pop(message.topic, None)

    def fire(self, timer: str, now: float) -> list[Effect]:
        raise AssertionError(f"no timer is ever set, {timer!r} fired")

    # The tree.

    def kids(self, topic: str) -> list[str]:
        """The children with somebody below, in the order of their copies."""
        kids = self._kids.get(topic)
        if kids is None:
            place = self._s.places.get(topic)
            below = place.below if place else ()
            node = self._s.node
            kids = [self._names[node ^ 1 << bit] for bit, count in enumerate(below) if count > 0]
            self._kids[topic] = kids = kids[::-1] if self._s.layout.far_first else kids
        return kids

    def _place(self, topic: str) -> Place:
        place = self._s.places.get(topic)
        if place is None:
            place = self._s.places[topic] = Place([0] * self._height(topic))
        return place

    def _height(self, topic: str) -> int:
        """How many children the complete tree has here."""
        apart = self._s.node ^ self._s.layout.roots[topic]
        return (apart & -apart).bit_length() - 1 if apart else self._dimensions

    def _parent(self, topic: str) -> str:
        apart = self._s.node ^ self._s.layout.roots[topic]
        return self._names[self._s.node ^ (apart & -apart)]

    # What is counted, and the state as a whole.

    def account(self) -> dict[str, float]:
        return {"received": self._s.received, "relayed": self._s.relayed}

    def preset(self, topic: str, place: Place) -> None:
        """Begin as if all had joined already; see `presets`."""
        self._s.places[topic] = place
        self._kids.pop(topic, None)

    def snapshot(self) -> bytes:
        return pack(self._s)

    @classmethod
    def restore(cls, snapshot: bytes) -> Self:
        state = _unpack(snapshot)
        machine = cls(state.layout, state.node)
        machine._become(state)
        return machine


def presets(size: int, root: int, members: Iterable[int]) -> dict[int, Place]:
    """What the nodes know after these have joined: only nodes on their ways know anything."""
    places: dict[int, Place] = {}

    def at(node: int) -> Place:
        place = places.get(node)
        if place is None:
            apart = node ^ root
            height = (apart & -apart).bit_length() - 1 if apart else dimensions(size)
            place = places[node] = Place([0] * height)
        return place

    for member in members:
        at(member).held = True
        node = member
        while node != root:
            lowest = (node ^ root) & -(node ^ root)
            node ^= lowest
            at(node).below[(member ^ node).bit_length() - 1] += 1
    return places


def machines(layout: Layout, members: Mapping[str, Sequence[int]]) -> list[Srpt]:
    """All nodes, with these members of each topic."""
    nodes = [Srpt(layout, node) for node in range(len(layout.names))]
    for topic, holding in members.items():
        for node, place in presets(len(layout.names), layout.roots[topic], holding).items():
            nodes[node].preset(topic, place)
    return nodes
