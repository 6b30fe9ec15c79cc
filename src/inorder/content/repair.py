"""What brokers do when one of them has crashed: its routes come back from its neighbours.

b2 between b1 and b3 crashes and comes back with nothing. b1 had confirmed a subscription of its
client to events that are published at b3; so b3 must go on sending them, and b2 must pass them on
though it does not know yet who wants what.

Rule 1: who has not answered wants everything. When a link begins anew, both ends take the other's
        interests for everything until its next reset replaces them (also those of a third broker
        that the returning one has not heard of yet). Too much is filtered further on; nothing is
        lost.
Rule 2: a neighbour still advertises what it advertised, until it has said all (`Said`); what it
        has not said again by then is over.
Rule 3: a change is not confirmed past a neighbour that has not said all.
Rule 4: a broker says `Said` to a neighbour when all its other neighbours have said it, and when the
        clients that it knew are back or given up (PATIENCE_S). Both are waited for on the far side
        only, and brokers form a tree, so no broker waits for itself.

What is not promised: a broker that has crashed waits for its clients for PATIENCE_S; the first
events of a publisher that comes back later still may be lost, as at every first advertisement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from inorder.content.engine import Form
from inorder.content.messages import Said
from inorder.content.skeleton import Skeleton
from inorder.content.topic import UNANSWERED, Topic
from inorder.core.effect import CancelTimer, Effect, Send, SetTimer

if TYPE_CHECKING:
    from inorder.content.broker import Broker

TIMER = "patience"
PATIENCE_S = 60.0

# What somebody who has not answered counts as wanting.
EVERYTHING: Form = (Skeleton(), ())


class RepairState(Struct):
    # Neighbours that have not said all since their link began anew.
    missing: dict[str, bool] = {}
    # Neighbours that wait for our word.
    asking: dict[str, bool] = {}
    # What neighbours advertised and have not said again.
    stale: dict[str, dict[str, bool]] = {}
    # Clients of an earlier life that are not back yet.
    expected: dict[str, bool] = {}


class Repair:
    """Decides who counts as wanting what, and who has said all."""

    def __init__(self, broker: Broker, state: RepairState) -> None:
        self._broker = broker
        self.s = state
        # Of the input in progress: neighbours that have said all, and whether a client has.
        self._heard: dict[str, None] = {}
        self._arrived = False

    @property
    def cautious(self) -> bool:
        """Whether a topic that is new here may be an old one elsewhere."""
        # The last word may come together with the topic, which is an old one all the same.
        return bool(self.s.missing or self.s.expected or self._heard or self._arrived)

    def recover(self, neighbours: tuple[str, ...], clients: tuple[str, ...]) -> list[Effect]:
        """A life that has forgotten everything begins."""
        self.s.missing = dict.fromkeys(sorted(neighbours), True)
        self.s.expected = dict.fromkeys(sorted(clients), True)
        return [SetTimer(TIMER, PATIENCE_S)] if clients else []

    def renew(self, neighbour: str) -> list[Effect]:
        """The link to a neighbour begins anew."""
        broker, s = self._broker, self.s
        s.missing[neighbour] = True
        s.asking.pop(neighbour, None)
        for name, topic in broker.topics.items():
            if neighbour in topic.s.advertisers:
                s.stale.setdefault(neighbour, {})[name] = True
            topic.suspend(neighbour)
            if topic.s.asked.pop(neighbour, None) or neighbour in topic.s.entries:
                topic.forget(neighbour)
                topic.put(neighbour, UNANSWERED, (EVERYTHING,), 0)
            broker.touch(name)
        return broker.lose_members(neighbour)

    def drop(self, link: str) -> None:
        """A link is gone for good."""
        self.s.missing.pop(link, None)
        self.s.asking.pop(link, None)
        self.s.stale.pop(link, None)
        self.s.expected.pop(link, None)
        for topic in self._broker.topics.values():
            topic.resolve(link)

    def look_at(self, topic: Topic) -> None:
        """A topic is new here: whoever has not answered may want it."""
        for link in (*self._silent(), *self.s.expected):
            topic.put(link, UNANSWERED, (EVERYTHING,), 0)

    def _silent(self) -> list[str]:
        up = self._broker.neighbours
        return [one for one in self.s.missing if one not in up]

    def look_again(self, topic: Topic) -> None:
        """Somebody else advertises a topic perhaps: who has not answered may want it now."""
        for link in self._silent():
            if link not in topic.s.entries and topic.is_wanted_by(link):
                topic.put(link, UNANSWERED, (EVERYTHING,), 0)

    def opens(self, topic: Topic, neighbour: str) -> None:
        """A neighbour is told of a topic; its answer is on the way."""
        if self.cautious and neighbour not in topic.s.entries:
            topic.put(neighbour, UNANSWERED, (EVERYTHING,), 0)

    def is_stale(self, neighbour: str, topic: str) -> bool:
        """Whether a neighbour advertised a topic, and has not said so again."""
        return topic in self.s.stale.get(neighbour, ())

    def advertised(self, neighbour: str, topic: str) -> None:
        """A neighbour has said again that it advertises a topic, or for the first time."""
        self.s.stale.get(neighbour, {}).pop(topic, None)

    def said(self, neighbour: str) -> None:
        """A neighbour has said all."""
        self.s.missing.pop(neighbour, None)
        for name in self.s.stale.pop(neighbour, {}):
            if name in self._broker.topics:
                self._broker.topics[name].silenced(neighbour)
                self._broker.touch(name)
        for name in self._broker.topics:
            self._broker.touch(name)
        self._heard[neighbour] = None

    def resolve(self) -> None:
        """What waited for a word that has come; what follows from the same inbox has been sent."""
        for neighbour in self._heard:
            for topic in self._broker.topics.values():
                topic.resolve(neighbour)
        self._heard = {}
        self._arrived = False

    def arrived(self, client: str) -> list[Effect]:
        """A client has said all its subscriptions again, or is given up."""
        if self.s.expected.pop(client, None) is None:
            return []
        self._arrived = True
        for name, topic in self._broker.topics.items():
            if topic.entry(client, UNANSWERED) is not None:
                topic.remove(client, UNANSWERED)
                self._broker.touch(name)
        return [] if self.s.expected else [CancelTimer(TIMER)]

    def give_up(self) -> list[str]:
        """Waiting is over; the clients that did not come back."""
        lost = list(self.s.expected)
        for client in lost:
            self.arrived(client)
        return lost

    def say(self) -> list[Effect]:
        """Tell those who wait for it that all is said."""
        s = self.s
        if not s.asking or s.expected:
            return []
        effects: list[Effect] = []
        for neighbour in sorted(s.asking):
            if any(other != neighbour for other in s.missing):
                continue
            del s.asking[neighbour]
            effects.append(Send(neighbour, Said()))
        return effects
