"""An independent judge of a topic's events, from what was seen: calls, launches, deliveries.

It reads no stamp, no view and no number of the protocol's. The past of an event is the set of all
events that its publisher had delivered or published, and of their pasts. Sets are bit masks, a bit
an event, so that states of an exhaustive search which no judge could tell apart are equal.

| property | what is said                                                                       |
|----------|------------------------------------------------------------------------------------|
| S1       | delivered once at most, as it was launched, and between IN and `unsubscribe`       |
| S2       | nothing of the past of something that has been delivered there already             |
| S3       | one publisher's events in the order of their launches                              |
| S10      | nothing that was launched before this session was asked for                        |
| L1       | a node that was IN at the launch and stays delivers                                |
| L5       | every call is answered                                                             |
"""

from __future__ import annotations

from msgspec import Struct

from inorder.core.event import Event

# Events of one node, at most: bits of a mask.
SPAN = 64


class Broken(AssertionError):
    """A property does not hold; `what` is its name."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(f"{what}: {why}")
        self.what = what


class Held(Struct):
    """A node and a topic; masks of events."""

    # Of its application: asked for, told so, and how often it has asked.
    wanted: bool = False
    told: bool = False
    session: int = 0
    # Delivered or published, with their pasts; delivered; the pasts of what was delivered.
    known: int = 0
    got: int = 0
    covered: int = 0
    # Launched before this session.
    old: int = 0
    # The last event of each publisher that was delivered.
    last: dict[str, int] = {}

    def copy(self) -> Held:
        return Held(
            self.wanted, self.told, self.session, self.known, self.got, self.covered, self.old,
            dict(self.last),
        )  # fmt: skip


class Judge:
    """`ordered` says whether causal order is promised."""

    def __init__(self, names: list[str], ordered: bool) -> None:
        self.places = {name: place for place, name in enumerate(names)}
        self.ordered = ordered
        self.held: dict[tuple[str, str], Held] = {}
        self.launches: dict[str, Event] = {}
        self.past: dict[str, int] = {}
        # By topic all events launched; by event who owes it to its application.
        self.made: dict[str, int] = {}
        self.due: dict[str, frozenset[str]] = {}
        # Calls without an answer: verb, node, topic and session.
        self.calls: dict[str, tuple[str, str, str, int]] = {}
        self.values: dict[str, int] = {}

    def copy(self) -> Judge:
        other = Judge([], self.ordered)
        other.__dict__.update(self.__dict__)
        other.held = {key: held.copy() for key, held in self.held.items()}
        for name in ("launches", "past", "made", "due", "calls", "values"):
            setattr(other, name, dict(getattr(self, name)))
        return other

    def key(self) -> list[object]:
        """Equal keys: no future can be judged differently."""
        held = [
            (*key, h.wanted, h.told, hex(h.known), hex(h.got), hex(h.covered), hex(h.old),
             sorted(h.last.items()))
            for key, h in sorted(self.held.items())
        ]  # fmt: skip
        due = [(event, sorted(names)) for event, names in sorted(self.due.items()) if names]
        past = [(event, hex(mask)) for event, mask in sorted(self.past.items())]
        calls = sorted((call, *rest[:3]) for call, rest in self.calls.items())
        return [held, due, past, calls]

    def of(self, node: str, topic: str) -> Held:
        held = self.held.get((node, topic))
        if held is None:
            held = self.held[(node, topic)] = Held()
        return held

    def bit(self, event: Event) -> int:
        assert event.seq < SPAN
        return 1 << (self.places[event.publisher] * SPAN + event.seq)

    # What is seen.

    def called(self, node: str, verb: str, topic: str, call: str, value: int = 0) -> None:
        held = self.of(node, topic)
        if verb == "publish":
            self.values[call] = value
        elif verb == "subscribe":
            held.wanted = True
            held.session += 1
            held.old = self.made.get(topic, 0)
        else:
            held.wanted = held.told = False
            for event, names in self.due.items():
                if node in names and self.launches[event].topic == topic:
                    self.due[event] = names - {node}
        self.calls[call] = (verb, node, topic, held.session)

    def launched(self, node: str, call: str, event: Event) -> None:
        asked = self.calls.pop(call, None)
        if asked is None or asked[:3] != ("publish", node, event.topic):
            raise Broken("S1", f"{node} launches {event.id}, and nobody has asked for {call}")
        if event.publisher != node or event.value != {"n": self.values.pop(call)}:
            raise Broken("S1", f"{node} launches {event}, which is not what {call} was about")
        if event.id in self.launches:
            raise Broken("S1", f"{event.id} is launched twice")
        self.calls[event.id] = asked
        held = self.of(node, event.topic)
        bit = self.bit(event)
        self.launches[event.id] = event
        self.past[event.id] = held.known
        held.known |= bit
        self.made[event.topic] = self.made.get(event.topic, 0) | bit
        self.due[event.id] = frozenset(
            name for (name, topic), h in self.held.items() if topic == event.topic and h.told
        )

    def answered(self, node: str, call: str, outcome: str) -> None:
        asked = self.calls.pop(call, None)
        if asked is None:
            raise Broken("L5", f"{node} answers {call} ({outcome}), which is no open call")
        verb, who, topic, session = asked
        good = outcome == ("accepted" if verb == "publish" else "done")
        if who != node or not good:
            raise Broken("L5", f"{node} answers {call} of {who}: {outcome}")
        held = self.of(node, topic)
        if verb == "subscribe" and held.wanted and session == held.session:
            held.told = True

    def delivered(self, node: str, event: Event, in_order: bool) -> None:
        held = self.of(node, event.topic)
        known = self.launches.get(event.id)
        if known is None or known != event:
            raise Broken("S1", f"{node} delivers {event}, launched was {known}")
        bit = self.bit(event)
        if held.got & bit:
            raise Broken("S1", f"{node} delivers {event.id} twice")
        if not held.told:
            raise Broken("S1", f"{node} delivers {event.id} without being IN")
        if held.old & bit:
            raise Broken("S10", f"{node} delivers {event.id} of before its session")
        past = self.past[event.id]
        if self.ordered:
            if not in_order:
                raise Broken("S2", f"{node} delivers {event.id} as late")
            if held.covered & bit:
                raise Broken("S2", f"{node} delivers {event.id} after an event that rests on it")
            if held.last.get(event.publisher, 0) > event.seq:
                raise Broken("S3", f"{node} delivers {event.id} after a later one")
            held.last[event.publisher] = event.seq
        held.got |= bit
        held.covered |= past
        held.known |= past | bit
        if node in self.due[event.id]:
            self.due[event.id] = self.due[event.id] - {node}

    def members(self, topic: str) -> set[str]:
        """Those that have been told that they are IN, and have not left."""
        return {name for (name, of), held in self.held.items() if of == topic and held.told}

    def finish(self) -> None:
        """Nothing will happen any more."""
        for event, names in self.due.items():
            if names:
                raise Broken("L1", f"{event} has never been delivered by {sorted(names)}")
        if self.calls:
            raise Broken("L5", f"never answered: {sorted(self.calls)}")
