"""The manager of one topic: numbers its events, completes the stamps that pass by.

Rule 1: only publications move the counter. A subscription copies it (the report increments it,
        which leaves holes nobody fills: R6, S3, S4, S12, S15).
Rule 2: what the manager knows about lower topics only grows, entry by entry (S11), and only
        members of its group are copied into stamps (S10).
Rule 3: a publisher's request is numbered once, however often it comes; that memory is kept for
        ever (F2).
Rule 4: events are kept until every registered subscriber has reported them, but no more than so
        many, so many bytes and so long. What was given up is said to be gone, never passed over
        in silence.

Theory. `count` is the report's LC, `lower` the supplement's LLC (Figure 2): for each lower topic
of the group, the highest number known to have passed here. A stamp created here copies `lower`
for what is below, and is filled with the counters of higher managers on its way up. A manager
handles one message at a time, so counters and stamps agree on one order of everything it has seen.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping

from msgspec import Struct

from inorder.core import wire
from inorder.core.event import Event, Stamp
from inorder.core.limits import REPAIR_EVENTS_MAX, RETAINED_BYTES_MAX
from inorder.protocols.total.groups import Group, Registration
from inorder.protocols.total.messages import Events, Gone, Walk
from inorder.protocols.total.stamp import raise_to

# Ticks of a topic's retention in time: with a tick every 10 seconds, ten minutes.
RETAINED_TICKS = 60

# So many mean gaps without an event mean that none follows; but at most so many seconds.
QUIET_GAPS = 6
QUIET_S_MAX = 60.0

# Events from which on a rate says something.
RATED_EVENTS_MIN = 4


class Batch(Struct):
    """Events numbered together; `stamp` is None while some entries are missing."""

    first: int
    events: tuple[Event, ...]
    session: int
    begun: float = 0.0
    forgotten: int = 0
    bytes: int = 0
    epoch: int = 0
    stamp: Stamp | None = None

    @property
    def last(self) -> int:
        return self.first + len(self.events) - 1


class TopicState(Struct):
    topic: str
    count: int = 0
    lower: dict[str, int] = {}
    subs: dict[str, Registration] = {}
    # Last event of each publisher that was numbered here.
    numbered: dict[str, int] = {}
    log: list[Batch] = []
    retained: int = 0
    retained_bytes: int = 0
    # Everything up to here has left the log, because all have it or for want of room.
    dropped: int = 0
    # Highest number diffused; what each holder says it has, and where the last one stands.
    published: int = 0
    reported: dict[str, int] = {}
    safe: int = 0
    # How often a holder was forgotten, and at which of these times each was (lease.py).
    forgotten: int = 0
    lapsed: dict[str, int] = {}
    # Where the topic stood at the last ticks: what is older than all of them is too old.
    ticks: list[int] = []
    # Seconds between publications, lately.
    gap_s: float = 0.0
    created_at: float | None = None
    outstanding: int = 0
    # The rate last said to the ranking; when the present measurement began, and at what number.
    rate: float = 0.0
    rated_at: float | None = None
    rated: int = 0


class Manager:
    """State and rules of one topic; knows nothing of links, stages and paths."""

    def __init__(
        self, state: TopicState, threshold: int, full: bool, retention: int, measured: bool = True
    ) -> None:
        self.s = state
        self.group = Group(state.topic, threshold, state.subs)
        self._everything = threshold == 0
        self._full = full
        self._retention = retention
        # Whether kept events are bounded in bytes, too: where subscribers may stay away.
        self._measured = measured
        # Derived from the group and the order; None when either has changed.
        self._split: tuple[list[str], tuple[str, ...]] | None = None

    # Stamping (section 4 of the report, Figure 2 of the supplement).

    def create(
        self, events: tuple[Event, ...], session: int, rank: Mapping[str, int], now: float
    ) -> tuple[int, list[tuple[str, int]], tuple[str, ...]]:
        """Number a batch: its first number, the entries known here, the topics to be asked."""
        s = self.s
        first = s.count + 1
        s.count += len(events)
        s.numbered[events[0].publisher] = events[-1].seq
        size = wire.size(events) if self._measured else 0
        s.log.append(Batch(first, events, session, now, s.forgotten, size))
        s.retained += len(events)
        s.retained_bytes += size
        s.outstanding += 1
        self._note_gap(now)
        if self._split is None:
            self._split = self._split_group(rank)
        below, above = self._split
        # The number of the LAST event of the batch: nobody sees the counter in between.
        known = [(s.topic, s.count)]
        known += [(topic, s.lower.get(topic, 0)) for topic in below]
        return first, known, above

    def _split_group(self, rank: Mapping[str, int]) -> tuple[list[str], tuple[str, ...]]:
        """The group: topics whose entries we know, and those above, in the order of the way up."""
        mine = rank[self.s.topic]
        others = tuple(rank) if self._everything else self.group.others
        below = [topic for topic in others if rank[topic] > mine] if self._full else []
        above = sorted(
            (topic for topic in others if rank[topic] < mine), key=rank.__getitem__, reverse=True
        )
        return below, tuple(above)

    def is_duplicate(self, events: tuple[Event, ...]) -> bool:
        return events[0].seq <= self.s.numbered.get(events[0].publisher, 0)

    def batch_of(self, events: tuple[Event, ...]) -> Batch | None:
        """The batch as which events were numbered, if it is still kept."""
        for batch in reversed(self.s.log):
            if batch.events[0].id == events[0].id:
                return batch
        return None

    def fill(self, entries: list[tuple[str, int]], rank: Mapping[str, int]) -> None:
        """A stamp from below passes: learn from it, add our counter (copied, not moved)."""
        s = self.s
        mine = rank[s.topic]
        holds = self.group.holds
        raise_to(s.lower, [(t, n) for t, n in entries if rank[t] > mine and holds(t)])
        entries.append((s.topic, s.count))

    def is_under_way(self, first: int) -> bool:
        """Whether a round that began with this number has not ended yet."""
        index = bisect_left(self.s.log, first, key=_first)
        return (
            index < len(self.s.log)
            and self.s.log[index].first == first
            and self.s.log[index].stamp is None
        )

    def complete(self, first: int, epoch: int, others: Stamp) -> Batch:
        """All entries are there: the batch may be shown."""
        s = self.s
        index = bisect_left(s.log, first, key=_first)
        batch = s.log[index]
        assert batch.first == first, "a round ends that was never begun"
        assert batch.stamp is None, "a round ends twice"
        batch.stamp = others
        batch.epoch = epoch
        s.outstanding -= 1
        assert s.outstanding >= 0
        s.published = max(s.published, batch.last)
        self._trim()
        return batch

    # Subscriptions (Figure 7 of the report, as one versioned walk).

    def walk(self, walk: Walk, entries: list[tuple[str, int]]) -> None:
        """A subscriber changes what it holds; entries come from lower topics only."""
        s = self.s
        here = s.topic in walk.topics
        held = s.subs.get(walk.subscriber)
        self._split = None
        if self.group.register(walk.subscriber, walk.version, walk.topics if here else ()):
            if not here:
                s.reported.pop(walk.subscriber, None)
            elif held is None or not held.topics:
                # Owed is only what is numbered from now on.
                s.reported[walk.subscriber] = s.count
            self._reconcile()
        if here:
            raise_to(s.lower, entries)
            entries.append((s.topic, s.count))

    def install(self, cut: Stamp) -> None:
        """A new order: everything numbered so far on topics that stood still comes before
        everything after it."""
        self._split = None
        raise_to(self.s.lower, [entry for entry in cut if self.group.holds(entry[0])])

    # Repair and retention.

    def repair(self, first: int, last: int) -> list[Events | Gone]:
        """What is kept of the numbers asked for, and a plain word on what is not."""
        s = self.s
        answers: list[Events | Gone] = []
        if first <= s.dropped:
            answers.append(Gone(s.topic, s.dropped))
            first = s.dropped + 1
        last = min(last, first + REPAIR_EVENTS_MAX - 1)
        index = max(0, bisect_left(s.log, first + 1, key=_first) - 1)
        for batch in s.log[index:]:
            if batch.first > last:
                break
            if batch.stamp is None or batch.last < first:
                continue
            low = max(first, batch.first)
            events = batch.events[low - batch.first : last + 1 - batch.first]
            answers.append(Events(s.topic, low, batch.epoch, batch.stamp, events, batch.forgotten))
        return answers

    def report(self, subscriber: str, number: int) -> None:
        s = self.s
        if subscriber in s.reported and number > s.reported[subscriber]:
            # Nobody can have what was not yet numbered.
            s.reported[subscriber] = min(number, s.count)

    @property
    def unreported(self) -> bool:
        """Whether somebody may still miss an event that was diffused."""
        published = self.s.published
        return any(number < published for number in self.s.reported.values())

    def _reconcile(self) -> None:
        """Who holds the topic has changed, or how far somebody says to be."""
        s = self.s
        s.safe = min(s.reported.values(), default=0)
        self._trim()

    def _trim(self) -> None:
        """Drop what all holders have. Without holders everything may go."""
        s = self.s
        safe = s.safe if s.reported else s.count
        old = s.ticks[0] if len(s.ticks) >= RETAINED_TICKS else 0
        gone = 0
        for batch in s.log:
            full = s.retained > self._retention or s.retained_bytes > RETAINED_BYTES_MAX
            if batch.stamp is None or not (batch.last <= max(safe, old) or full):
                break
            s.dropped = batch.last
            s.retained -= len(batch.events)
            s.retained_bytes -= batch.bytes
            gone += 1
        if gone:
            del s.log[:gone]

    # Leases (lease.py).

    def forget(self, subscriber: str) -> None:
        """A holder has been silent for too long."""
        s = self.s
        if subscriber not in s.reported:
            return
        del s.reported[subscriber]
        self.group.forget(subscriber)
        s.forgotten += 1
        s.lapsed[subscriber] = s.forgotten
        self._split = None
        self._reconcile()

    def keeps(self, subscriber: str, known: int) -> bool:
        """Whether it is registered, and has been ever since this number of forgotten holders."""
        return subscriber in self.s.reported and self.s.lapsed.get(subscriber, 0) <= known

    def tick(self) -> None:
        """Some seconds have passed."""
        s = self.s
        s.ticks.append(s.published)
        del s.ticks[:-RETAINED_TICKS]
        self._reconcile()

    def quiet_s(self, least_s: float) -> float:
        """How long without an event means that none is to be expected."""
        return min(max(QUIET_GAPS * self.s.gap_s, least_s), QUIET_S_MAX)

    def _note_gap(self, now: float) -> None:
        s = self.s
        if s.created_at is not None and 0.0 < now - s.created_at <= QUIET_S_MAX:
            s.gap_s += (now - s.created_at - s.gap_s) / 8
        s.created_at = now

    # The rate, for the ranking (section 5 of the report counts publications instead).

    def has_moved(self, every: float, now: float) -> bool:
        """Whether the rate has doubled or halved since it was last said. It is measured over
        `every` seconds at least, and until it says something."""
        s = self.s
        passed = now - (s.rated_at if s.rated_at is not None else now)
        if s.rated_at is None or passed < 0.0:
            # The clock was set back: begin anew, no harm is done.
            s.rated_at = now
            s.rated = s.count
            return False
        events = s.count - s.rated
        if passed < every or max(events, passed * s.rate / 2) < RATED_EVENTS_MIN:
            return False
        rate = events / passed
        s.rated_at = now
        s.rated = s.count
        if s.rate / 2 < rate < s.rate * 2:
            return False
        s.rate = rate
        return True


def _first(batch: Batch) -> int:
    return batch.first
