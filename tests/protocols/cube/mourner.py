"""The independent judge of judge.py where peers crash: what is owed by whom to whom then.

It reads calls, launches, deliveries, answers, crashes, and the word of a peer that it begins
another life; and which members have been given which events. A node is *steady* from an instant on
if it has neither crashed nor begun another life nor asked anew for the topic since.

| property  | what is said                                                                      |
|-----------|-----------------------------------------------------------------------------------|
| S1-S3,S10 | those of judge.py; what a member had read before a crash comes before what it     |
|           | publishes afterwards                                                              |
| L1        | the event of a publisher that lives on is delivered by all steady members         |
| agreement | what one living steady member has delivered all steady members deliver            |
| L6        | what is not delivered rests on an event of an ended life that nobody living has   |
| gap       | a member that was given an event and has not delivered it has told a gap since    |
| answers   | a refused publication is delivered by no living member, an accepted one has been  |
|           | given to all steady members; every call is answered                               |
"""

from __future__ import annotations

from msgspec import Struct

from inorder.core.event import Event
from tests.protocols.cube.judge import Broken, Judge

# A node, the number of its life, and of its application's session on a topic.
Stand = tuple[str, int, int]


class Fate(Struct):
    """One event."""

    topic: str
    publisher: str
    life: int
    # Who owes it to its application; by node the life in which it delivered the event, and the one
    # in which its peer was given it, with the count of gaps told there until then.
    due: tuple[Stand, ...]
    delivered: dict[str, int] = {}
    given: dict[str, tuple[int, int]] = {}
    outcome: str = ""


class Mourner(Judge):
    """A judge of one run; it is told of crashes."""

    def __init__(self, names: list[str], ordered: bool) -> None:
        super().__init__(names, ordered)
        self.bits: dict[str, int] = {}
        self.lives = dict.fromkeys(names, 0)
        self.alive = dict.fromkeys(names, True)
        self.fates: dict[str, Fate] = {}
        self.gaps: dict[tuple[str, str], int] = {}
        self.refused = 0

    def bit(self, event: Event) -> int:
        """Numbers of events jump where a life ends: bits are given as events come."""
        return self.bits.setdefault(event.id, 1 << len(self.bits))

    def is_steady(self, stand: Stand, topic: str) -> bool:
        node, life, session = stand
        held = self.of(node, topic)
        return self.alive[node] and self.lives[node] == life and held.session == session

    # What is seen.

    def crashed(self, node: str) -> None:
        self.alive[node] = False
        self.lives_on(node)
        for (name, _), held in self.held.items():
            if name == node:
                held.wanted = False
        for call in [call for call, asked in self.calls.items() if asked[1] == node]:
            del self.calls[call]

    def lives_on(self, node: str) -> None:
        """What a life has read of a topic orders what the next one publishes there, if its
        application holds the topic; a pure publisher's past is forgotten."""
        self.lives[node] += 1
        for (name, _), held in self.held.items():
            if name == node:
                held.told = False
                held.known *= held.wanted

    def restarted(self, node: str) -> None:
        self.alive[node] = True

    def launched(self, node: str, call: str, event: Event) -> None:
        super().launched(node, call, event)
        due = tuple(
            (name, self.lives[name], held.session)
            for (name, topic), held in self.held.items()
            if topic == event.topic and held.told
        )
        self.due.pop(event.id)
        self.fates[event.id] = Fate(event.topic, node, self.lives[node], due)

    def delivered(self, node: str, event: Event, in_order: bool) -> None:
        self.due[event.id] = frozenset()
        super().delivered(node, event, in_order)
        del self.due[event.id]
        self.fates[event.id].delivered[node] = self.lives[node]

    def gave(self, node: str, event: str) -> None:
        """A member's peer has been given an event."""
        fate = self.fates[event]
        fate.given.setdefault(node, (self.lives[node], self.gaps.get((node, fate.topic), 0)))
        if fate.given[node][0] != self.lives[node]:
            fate.given[node] = (self.lives[node], self.gaps.get((node, fate.topic), 0))

    def answered(self, node: str, call: str, outcome: str) -> None:
        if outcome == "gap":
            topic = call.partition("/")[2]
            self.gaps[node, topic] = self.gaps.get((node, topic), 0) + 1
            held = self.of(node, topic)
            if not held.wanted:
                raise Broken("L5", f"{node} tells a gap of {topic}, which it does not hold")
            held.told = True
            return
        if call in self.fates and call in self.calls:
            if outcome not in ("accepted", "refused"):
                raise Broken("L5", f"{node} answers {call}: {outcome}")
            self.fates[call].outcome = outcome
            self.refused += outcome == "refused"
            del self.calls[call]
            return
        super().answered(node, call, outcome)

    # The end.

    def finish(self) -> None:
        for event in self.fates:
            self._check(event)
        if self.calls:
            raise Broken("L5", f"never answered: {sorted(self.calls)}")

    def _is_over(self, event: str) -> bool:
        fate = self.fates[event]
        return not self.alive[fate.publisher] or self.lives[fate.publisher] != fate.life

    def _holders(self, event: str) -> list[str]:
        given = self.fates[event].given
        return [
            node for node, (life, _) in given.items()
            if self.alive[node] and self.lives[node] == life
        ]  # fmt: skip

    def _check(self, event: str) -> None:
        fate = self.fates[event]
        living = [
            node for node, life in fate.delivered.items()
            if self.alive[node] and self.lives[node] == life
        ]  # fmt: skip
        if fate.outcome == "refused" and living:
            raise Broken("answers", f"{event} was refused, and delivered by {living}")
        owing = [
            stand for stand in fate.due
            if self.is_steady(stand, fate.topic) and self.of(stand[0], fate.topic).wanted
        ]  # fmt: skip
        if fate.outcome == "accepted":
            without = [node for node, life, _ in owing if fate.given.get(node, (-1, 0))[0] != life]
            if without:
                raise Broken("answers", f"{event} was accepted, and never given to {without}")
        missing = [stand[0] for stand in owing if stand[0] not in fate.delivered]
        if not missing:
            return
        if not self._is_over(event):
            raise Broken("L1", f"{event} has never been delivered by {missing}")
        if living:
            raise Broken("agreement", f"{living} have delivered {event}, {missing} have not")
        past = [event, *(each for each, bit in self.bits.items() if self.past[event] & bit)]
        lost = [each for each in past if self._is_over(each) and not self._holders(each)]
        if not lost:
            raise Broken("L6", f"{missing} lack {event}, and it rests on nothing that is lost")
        for node in missing:
            life, gaps = fate.given.get(node, (-1, 0))
            if life == self.lives[node] and self.gaps.get((node, fate.topic), 0) == gaps:
                raise Broken("gap", f"{node} was given {event} and has told no gap since")
