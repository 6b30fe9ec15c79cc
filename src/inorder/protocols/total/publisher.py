"""The publishing half of a client.

Rule 1: an event id is never used twice: numbers are reserved on disk in blocks.
Rule 2: requests of one topic go out in order over one session, so they are numbered in order (F1).
Rule 3: at most `window` requests of a topic are under way. What is published meanwhile waits, and
        leaves in batches: the busier the topic, the larger they get, without any timer.
Rule 4: with `fence`, a request on another topic waits until all earlier ones are accepted. Without
        it, requests on different topics may overtake each other (program order across topics is
        then not kept; order per topic is).

A publisher that crashes forgets what was not accepted. Those events have an unknown fate: they are
published once or not at all.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from inorder.core import wire
from inorder.core.effect import Answer, Diffuse, Effect, Note
from inorder.core.errors import BadMessage, TooLarge
from inorder.core.event import Event, Scalar
from inorder.core.limits import FRAME_BYTES_MAX, WAITING_PUBLICATIONS_MAX
from inorder.protocols.session.links import Links
from inorder.protocols.total.directory import Directory
from inorder.protocols.total.messages import Accepted, Create, Events
from inorder.protocols.total.options import Options
from inorder.protocols.total.stamp import with_own, without

# Half a frame for the events of a batch: a stamp and the rest must fit beside them.
BATCH_BYTES_MAX = FRAME_BYTES_MAX // 2

# The one queue of a fenced publisher.
FENCED = ""


class Sized(Struct, frozen=True, gc=False):
    event: Event
    bytes: int


class PublisherState(Struct):
    next_seq: int = 1
    # Requests under way, by topic: the events of each.
    under_way: dict[str, list[tuple[Event, ...]]] = {}
    # Events waiting for the window, by topic (all in one queue with a fence).
    waiting: dict[str, list[Sized]] = {}
    queued: int = 0


class Publisher:
    """Asks topic managers for numbers."""

    def __init__(
        self,
        name: str,
        state: PublisherState,
        directory: Directory,
        options: Options,
        links: Links[Any],
    ) -> None:
        self.s = state
        self._name = name
        self._directory = directory
        self._options = options
        self._links = links

    @property
    def idle(self) -> bool:
        return not self.s.under_way and not self.s.waiting

    def prepare(self, topic: str, value: dict[str, Scalar], now: float) -> Sized:
        """The next event, checked but not yet published."""
        self._directory.home(topic)  # raises for an unknown topic
        event = Event(self._name, self.s.next_seq, topic, value, now)
        size = wire.size(event)
        if size > BATCH_BYTES_MAX:
            raise TooLarge("event", size, BATCH_BYTES_MAX)
        return Sized(event, size)

    def publish(self, sized: Sized) -> list[Effect]:
        s = self.s
        s.next_seq += 1
        event = sized.event
        if s.queued >= WAITING_PUBLICATIONS_MAX:
            reason = f"{WAITING_PUBLICATIONS_MAX} publications wait already"
            return [Answer(event.id, "refused", reason)]
        lane = FENCED if self._options.fence else event.topic
        s.waiting.setdefault(lane, []).append(sized)
        s.queued += 1
        self._pump(lane)
        return []

    def on_accepted(self, source: str, accepted: Accepted, now: float) -> list[Effect]:
        s = self.s
        topic = accepted.topic
        requests = s.under_way.get(topic, [])
        events = next((each for each in requests if each[0].seq == accepted.seq), ())
        if not events:
            # Answered already, in an earlier session; or asked by an earlier life.
            return [Note("old_answer", source)]
        if len(events) != accepted.count:
            raise BadMessage(source, f"accepts {accepted.count} events of {len(events)}")
        requests.remove(events)
        if not requests:
            del s.under_way[topic]
        others = without(accepted.stamp, topic)
        effects: list[Effect] = []
        if self._options.diffusion == "publisher" and accepted.first:
            batch = Events(
                topic, accepted.first, accepted.epoch, others, events, accepted.forgotten
            )
            effects.append(Diffuse(topic, batch))
        for number, event in enumerate(events, accepted.first):
            # Without a first number the manager knows no more which ones it gave.
            stamp = with_own(others, topic, number) if accepted.first else ()
            effects.append(Answer(event.id, "accepted", stamp=stamp))
        self._pump(FENCED if self._options.fence else topic)
        return effects

    def ask_again(self, home: str) -> None:
        """A stage has forgotten its session with us: the requests it may owe an answer."""
        for topic in sorted(self.s.under_way):
            if self._directory.home(topic) == home:
                for events in self.s.under_way[topic]:
                    self._links.post(home, Create(topic, events))

    def _pump(self, lane: str) -> None:
        """Send what the window allows."""
        queue = self.s.waiting.get(lane)
        while queue and self._may_send(queue[0].event.topic):
            self._send(queue)
        if not queue:
            self.s.waiting.pop(lane, None)

    def _may_send(self, topic: str) -> bool:
        under_way = self.s.under_way
        if self._options.fence and under_way and topic not in under_way:
            return False
        return len(under_way.get(topic, ())) < self._options.window

    def _send(self, queue: list[Sized]) -> None:
        """One request: as many events of the same topic as fit."""
        topic = queue[0].event.topic
        size = count = 0
        for sized in queue:
            size += sized.bytes
            full = count >= self._options.batch or (count and size > BATCH_BYTES_MAX)
            if full or sized.event.topic != topic:
                break
            count += 1
        events = tuple(sized.event for sized in queue[:count])
        del queue[:count]
        self.s.queued -= count
        self.s.under_way.setdefault(topic, []).append(events)
        self._links.post(self._directory.home(topic), Create(topic, events))
