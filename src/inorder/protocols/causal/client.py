"""Publishes with stamps, and takes events in after all that they rest on.

Rule 1: an event is stamped when `publish` is called: a network whose publications wait calls it at
        the launch. Its place comes back at once, through `placed`, before anything else happens.
Rule 2: where an origin begins, and from where on its events count, is for the network to say before
        `joined`. What comes earlier waits.
Rule 3: leaving a topic forgets its origins and what waits. It does not forget the past: the next
        event on the topic still rests on what was taken in before (P18).
Rule 4: a message that cannot stand at its place is refused, and changes nothing.

What is not promised. A barrier keeps the order within a topic only. An application that crashes
forgets its past with everything else. An event that rests on a lost one through events that were
never addressed to this client (it joined in between) is not recognised.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

from msgspec import Struct

from inorder.core.effect import Answer, Diffuse, Effect, Note
from inorder.core.errors import BadMessage, Misuse, TooLarge
from inorder.core.event import Event, Scalar, event_id
from inorder.core.limits import CAUSAL_STAMP_ENTRIES_MAX
from inorder.core.member import Member, Membership
from inorder.core.pack import pack, unpacker
from inorder.core.place import Origin, Place, Places
from inorder.core.table import Numbers, Table, ones
from inorder.protocols.causal.barrier import Barrier
from inorder.protocols.causal.clock import Clock
from inorder.protocols.causal.messages import Published
from inorder.protocols.causal.options import Options
from inorder.protocols.causal.order import Order
from inorder.protocols.causal.session import Packed, Session
from inorder.protocols.causal.stamp import Stamps, check, entries
from inorder.protocols.causal.whole import Whole

STAMPS: dict[str, type[Stamps]] = {"barrier": Barrier, "clock": Clock, "whole": Whole}


class _State(Struct, array_like=True):
    membership: Membership
    options: Options
    tables: dict[str, Places]
    own: dict[str, int]
    sessions: dict[str, Packed]
    held: list[tuple[Place, Published]]
    announced: list[str]


_unpack = unpacker(_State)


class Client(Member):
    """Publisher and subscriber of one process, on a network that gives places."""

    def __init__(
        self, name: str, topics: Sequence[str] = (), options: Options | None = None
    ) -> None:
        super().__init__(name)
        self._options = options or Options()
        self._stamps = STAMPS[self._options.stamps]()
        self._order = Order(self._stamps)

    # Calls of the application.

    def publish(self, topic: str, value: dict[str, Scalar], now: float) -> list[Effect]:
        places, others = self._stamps.stamp(topic)
        if (count := entries(places, others)) > CAUSAL_STAMP_ENTRIES_MAX:
            raise TooLarge("causes of an event", count, CAUSAL_STAMP_ENTRIES_MAX)
        effects: list[Effect] = []
        event = Event(self._m.name, self._number(effects), topic, value, now)
        effects.append(Diffuse(topic, Published(event, places, others)))
        effects.append(Answer(event_id(event.publisher, event.seq), "accepted"))
        return effects

    def subscribe(self, call: str, topics: Iterable[str], now: float) -> list[Effect]:
        named = sorted({*topics})
        effects = super().subscribe(call, named, now)
        for topic in named:
            self._order.open(topic)
        return effects

    def joined(self, topic: str, now: float) -> list[Effect]:
        effects = super().joined(topic, now)
        if effects:
            self._order.hold(self._m.active)
        self._order.join(topic, now)
        return [*effects, *self._take_out()]

    def unsubscribe(self, call: str, topics: Iterable[str], now: float) -> list[Effect]:
        named = sorted({*topics})
        effects = super().unsubscribe(call, named, now)
        self._order.hold(self._m.active)
        self._order.leave(named, now)
        return [*effects, *self._take_out()]

    # What the network says (core/place.py).

    def begins(self, origin: Origin, start: int, counts: int, now: float) -> list[Effect]:
        if not 1 <= start <= counts:
            raise Misuse(f"origin {origin} cannot begin with {start} and count from {counts} on")
        self._order.begins(origin, start, counts)
        return []

    def placed(self, place: Place, source: str, message: Any, now: float) -> list[Effect]:
        check(place, source, message)
        if source != self._m.name:
            self._order.arrive(place, message, now)
        elif message.event.seq == self._m.next_seq - 1:
            self._order.launched(place, message, now)
        else:
            # An event of a former life, which another peer has kept and repeats.
            return [Note("duplicate", message.event.id)]
        return self._take_out()

    def lost(self, place: Place, now: float) -> list[Effect]:
        self._order.lost(place, now)
        return self._take_out()

    def forget(self, now: float) -> list[Effect]:
        self._stamps = STAMPS[self._options.stamps]()
        self._order.forget(self._stamps)
        return []

    def receive(self, source: str, message: Any, now: float) -> list[Effect]:
        kind = type(message).__name__
        raise BadMessage(source, f"{kind} has no place: causal order needs a network with places")

    def fire(self, timer: str, now: float) -> list[Effect]:
        raise AssertionError(f"no timer is ever set, {timer!r} fired")

    def preset(self, topic: str, origins: int | Numbers, me: int, now: float = 0.0) -> list[Effect]:
        """The same as `begins` with 1 and 1 for all origins, one's own included, and `joined`.
        `origins` is how many there are, or an array with a 1 for each. Clients share the array,
        which must not change any more."""
        session = self._order.sessions.get(topic)
        firsts = ones(origins) if isinstance(origins, int) else origins
        if session is None or session.joined or session.due.pairs():
            raise Misuse(f"{topic!r} is not about to be joined")
        if not 0 <= me < len(firsts):
            raise Misuse(f"{me} is not one of {len(firsts)} origins")
        session.due = Table(firsts)
        return self.joined(topic, now)

    # What a holder of cells says (guarantee/cells).

    def learn(self, publisher: str, places: Iterable[Place]) -> None:
        """An event that has been handed over stands at all these places, of which this client may
        not hold all: what is published from now on rests on each. Whole stamps only; one's own
        places are known from the launch."""
        if publisher != self._m.name:
            for origin, number in places:
                self._stamps.learn(origin, number)

    # What the network may ask.

    @property
    def waiting(self) -> int:
        """Events held back: above HELD_EVENTS_MAX a network delays its acknowledgements."""
        return len(self._order.held)

    @property
    def idle(self) -> bool:
        return not self._order.held

    def expanded(self, place: Place) -> Places | None:
        """The places of its own topic that must come before this one and have not been taken in
        here. None if this client cannot know: the message, or an earlier one that its stamp builds
        on, has not come, or its origin has not begun here.

        A network that sends messages together holds a message back while any of these is missing,
        or is held back itself. Of a barrier they are the direct causes, of a clock all of them. The
        publisher's event before it is among them.
        """
        return self._order.expanded(place)

    def _take_out(self) -> list[Effect]:
        effects, self._order.out = self._order.out, []
        return effects

    # Snapshots.

    def snapshot(self) -> bytes:
        order = self._order
        sessions = {topic: session.packed() for topic, session in order.sessions.items()}
        state = _State(
            self._m, self._options, self._stamps.packed(), self._stamps.own, sessions,
            sorted(order.held.items(), key=lambda item: item[0]), order.announced,
        )  # fmt: skip
        return pack(state)

    @classmethod
    def restore(cls, snapshot: bytes) -> Self:
        state: _State = _unpack(snapshot)
        client = cls(state.membership.name, (), state.options)
        client._m = state.membership
        client._stamps.become(state.tables, state.own)
        sessions = {topic: Session.unpacked(packed) for topic, packed in state.sessions.items()}
        client._order.become(sessions, state.held)
        client._order.hold(state.membership.active)
        client._order.announced = state.announced
        return client
