"""What one subscriber hears of one publisher, put into order.

Rule 1: events leave in the order of their sequence numbers. One that comes after a later one has
        left is delivered at once, tagged; it is never silently dropped.
Rule 2: an event waits only while a smaller number is missing that may concern this subscriber, and
        only until that number's deadline. Deadlines are set when the gap is noticed and can only
        become shorter; none is later than `tau_max` after the gap was noticed.
Rule 3: only a timer gives up on a missing event. An arrival never does, so whatever has arrived
        counts as in time, however long the process slept or the timer was delayed.
Rule 4: an event leaves at most once; duplicates are counted and dropped.
Rule 5: a header that makes no sense costs the event its place, never its delivery.

Theory. "Probabilistic FIFO Ordering in Publish/Subscribe Networks", section III, keeps one latch
for the newest event. It does not say what happens to a second gap, to events that come during a
latch, or to a gap that is partly filled (E-F17). A deadline for each missing event answers all
three: an event is released when everything missing below it has come, is irrelevant or is given
up.
"""

from __future__ import annotations

from heapq import heappop, heappush
from math import inf

from inorder.core.effect import Deliver
from inorder.core.errors import BadFrame
from inorder.core.event import Event
from inorder.core.limits import MISSING_RUNS_MAX
from inorder.core.numbers import Numbers
from inorder.protocols.fifo.counters import Counters
from inorder.protocols.fifo.estimator import Estimator
from inorder.protocols.fifo.header import SEQ_JUMP_MAX, Header
from inorder.protocols.fifo.interests import Interests
from inorder.protocols.fifo.missing import Missing
from inorder.protocols.fifo.options import Options
from inorder.protocols.fifo.past import Life, Past
from inorder.protocols.fifo.record import EMPTY, Record, read_record

# A timer this late means that the process was asleep: arrivals that queued up meanwhile go first.
ASLEEP_S = 1.0
# So many odd events in a row are no accident: a clock that was set back, a publisher without
# incarnation that restarted, one whose records nobody can read.
IN_A_ROW = 3


class Receiver:
    """Holds events of one publisher back, as long as it is worth it."""

    __slots__ = (
        "_heap", "_use_record", "asleep", "backwards", "counters", "deadline", "delivered",
        "estimator", "fallen", "floor", "hi", "hi_departure_us", "incarnation", "interests",
        "latest", "missing", "options", "past", "pending", "seen", "unreadable",
    )  # fmt: skip

    def __init__(self, options: Options, estimator: Estimator, interests: Interests) -> None:
        self.options = options
        self.estimator = estimator
        self.interests = interests
        self.counters = Counters()
        self.past = Past()
        self.incarnation: int | None = None
        # The highest number delivered, the highest received, and when that departed. Before the
        # first event no number is next in line.
        self.floor = 0
        self.hi = -1
        self.hi_departure_us = 0
        self.delivered = False
        self.seen = Numbers()
        self.missing = Missing()
        # What is received and not delivered yet: number -> arrival and event; and the numbers.
        self.pending: dict[int, tuple[float, Event]] = {}
        self._heap: list[int] = []
        # When to call `fire`; None if and only if nothing is pending.
        self.deadline: float | None = None
        self._use_record = options.reads_record
        # No deadline of what is missing lies behind this one.
        self.latest = -inf
        # Departures of consecutive events that fell back; numbers of consecutive ones that did.
        self.backwards: list[int] = []
        self.fallen: list[int] = []
        # Consecutive records that could not be read.
        self.unreadable = 0
        self.asleep = False

    @property
    def clock_steps(self) -> int:
        """Steps of the publisher's clock: those seen in departures, and those in delays."""
        return self.counters.clock_steps + self.estimator.steps

    def receive(self, header: Header, event: Event, now: float) -> list[Deliver]:
        """An event arrived; what is delivered now, in order."""
        seq = header.seq
        if (
            seq == self.hi + 1
            and not self.pending
            and header.incarnation == self.incarnation
            and header.departure_us >= self.hi_departure_us
            and self.seen.add(seq) == "new"
        ):
            # Next in line and nobody waits, as nearly always.
            self.hi = self.floor = seq
            self.hi_departure_us = header.departure_us
            self.delivered = True
            self.backwards = []
            self.counters.received += 1
            self.estimator.sample(header.departure_us * 1e-6, now)
            self.estimator.feedback(False)
            return [Deliver(event)]
        return self._receive_slowly(header, event, now)

    def fire(self, now: float) -> list[Deliver]:
        """The deadline has passed; what is delivered now, in order."""
        if self.deadline is None:
            return []
        if now > self.deadline + ASLEEP_S and not self.asleep:
            self.asleep = True
            return []
        self.asleep = False
        # The timer has run, whatever a clock that was set back meanwhile says.
        return self._release(now, max(now, self.deadline))

    def let_go(self, now: float) -> list[Deliver]:
        """Wait no longer for anything."""
        return self._release(now, inf)

    def expect(self, pending: dict[int, tuple[float, Event]]) -> None:
        """Take over what waited in a snapshot."""
        self.pending = pending
        self._heap = sorted(pending)

    # Slowly: something is odd, missing or waiting.

    def _receive_slowly(self, header: Header, event: Event, now: float) -> list[Deliver]:
        self.counters.received += 1
        record, readable = self._record(header)
        incarnation = self._incarnation_of(header)
        released: list[Deliver] = []
        if self.incarnation is None:
            self._begin(incarnation or 0, header, record)
        elif incarnation is None:
            return self._doubtful(header, event)
        elif incarnation < self.incarnation:
            return self._straggler(incarnation, header, event)
        elif incarnation > self.incarnation:
            released = self._restart(now)
            self._begin(incarnation, header, record)
        # A number that is forgotten may be a duplicate: it is taken for a late one.
        if self.seen.look(header.seq) == "again" or header.seq in self.pending:
            self.counters.duplicates += 1
            return released
        if not readable or self._contradicts(header):
            self.seen.add(header.seq)
            self.missing.remove(header.seq)
            return [*released, *self.fail_open(event), *self._release(now)]
        released += self._take(header, record, event, now)
        self.seen.add(header.seq)
        return released

    def _take(self, header: Header, record: Record, event: Event, now: float) -> list[Deliver]:
        seq = header.seq
        departure_s = header.departure_us * 1e-6
        self.estimator.sample(departure_s, now)
        if self.missing:
            self._apply_record(header, record, now)
        late = seq <= self.floor
        self.estimator.feedback(late)
        if late:
            # Its record may have closed the gap that somebody else waits for.
            return [*self._late(event), *self._release(now)]
        if seq > self.hi:
            self._open(header, record, now)
            self.hi = seq
            self.hi_departure_us = header.departure_us
        elif self.missing.remove(seq):
            self.counters.held_useful += 1
        self.pending[seq] = (now, event)
        heappush(self._heap, seq)
        released = self._release(now)
        if seq in self.pending:
            self.counters.held += 1
            self.counters.planned_s += max(0.0, self.latest - now)
        return released

    def _release(self, now: float, give_up: float = -inf) -> list[Deliver]:
        """Deliver in order whatever waits for nothing any more."""
        pending = self.pending
        missing = self.missing
        released: list[Deliver] = []
        while pending:
            seq = self._heap[0]
            until = missing.until(seq)
            if until > give_up:
                if len(pending) <= self.options.max_pending and len(missing) <= MISSING_RUNS_MAX:
                    self._wait(until)
                    return released
                self.counters.overflow += 1
            heappop(self._heap)
            arrived, event = pending.pop(seq)
            self.counters.expired += missing.give_up_below(seq)
            self.floor = seq
            self.delivered = True
            waited_s = max(0.0, now - arrived)
            self.counters.waited_s += waited_s
            released.append(Deliver(event, True, waited_s))
        self._wait(None)
        self.latest = -inf
        return released

    def _wait(self, until: float | None) -> None:
        if until != self.deadline:
            self.deadline = until
            self.asleep = False

    def _late(self, event: Event) -> list[Deliver]:
        self.counters.late += 1
        return [] if self.options.when_late == "drop" else [Deliver(event, False)]

    def fail_open(self, event: Event) -> list[Deliver]:
        """Deliver an event whose header is of no use: tagged, and not sampled."""
        self.counters.header_errors += 1
        return [Deliver(event, False)]

    # Gaps.

    def _record(self, header: Header) -> tuple[Record, bool]:
        """What the header tells about those that are missing, and no more: most is never asked.
        Says also whether it could be read."""
        if not self._use_record or not header.record:
            return EMPTY, True
        if header.incarnation != self.incarnation:
            oldest = 1
        elif self.missing:
            oldest = self.missing.starts[0]
        else:
            oldest = self.hi + 1
        try:
            record = read_record(header.record, header.departure_us, header.seq - oldest)
            readable = True
            self.unreadable = 0
        except BadFrame:
            record = EMPTY
            self.unreadable += 1
            readable = self.unreadable >= IN_A_ROW
        return record, readable

    def _open(self, header: Header, record: Record, now: float) -> None:
        """Notice that the numbers between the highest so far and this one are missing."""
        first = self.hi + 1
        known_us = record.departures_us
        covered_from = max(first, header.seq - len(known_us))
        if first < covered_from:
            # Nobody tells about these: they departed no later than the oldest that is known.
            oldest_us = known_us[-1] if known_us else header.departure_us - header.prev_gap_us
            self._open_run(first, covered_from - 1, oldest_us, False, header, now)
        for number in range(covered_from, header.seq):
            place = header.seq - number - 1
            if self.interests.concern(record.summaries[place], record.hashes, now):
                self._open_run(number, number, known_us[place], True, header, now)
            else:
                self.counters.irrelevant += 1

    def _open_run(
        self, start: int, end: int, departure_us: int, exact: bool, header: Header, now: float
    ) -> None:
        deadline = self._deadline(departure_us, header, now)
        if deadline <= now:
            return
        self.latest = max(self.latest, deadline)
        if self.seen.top < start:
            self.missing.open(start, end, deadline, exact)
            return
        for low, high in self.seen.holes(start, end):
            self.missing.open(low, high, deadline, exact)

    def _deadline(self, departure_us: int, header: Header, now: float) -> float:
        options = self.options
        if not self.estimator.warm:
            return now + min(options.initial_latch, options.tau_max)
        until = self.estimator.deadline(departure_us * 1e-6, header.departure_us * 1e-6, now)
        return min(max(until, now), now + options.tau_max)

    def _apply_record(self, header: Header, record: Record, now: float) -> None:
        """Look again at what is missing, with what this event tells about it."""
        oldest = header.seq - len(record.departures_us)
        for number, settled in self.missing.between(oldest, min(header.seq - 1, self.hi)):
            place = header.seq - number - 1
            if not self.interests.concern(record.summaries[place], record.hashes, now):
                self.counters.irrelevant += 1
                self.missing.remove(number)
            elif not settled:
                deadline = self._deadline(record.departures_us[place], header, now)
                self.missing.settle(number, deadline)

    # Beginnings, restarts, contradictions.

    def _begin(self, incarnation: int, header: Header, record: Record) -> None:
        """The first event of an incarnation: nothing before it is waited for, unless we listened
        before it began and its record reaches back to the very first."""
        self.incarnation = incarnation
        self.seen = Numbers()
        for number in self.fallen:
            self.seen.add(number)
        self.missing = Missing()
        reaches_back = header.seq <= len(record.departures_us) + 1
        self.floor = self.hi = 0 if self.past and reaches_back else header.seq - 1
        self.hi_departure_us = 0
        self.delivered = False
        self.backwards = []
        self.fallen = []

    def _restart(self, now: float) -> list[Deliver]:
        """The publisher came back: what waits for its former life waits no longer."""
        assert self.incarnation is not None
        released = self.let_go(now)
        self.past.keep(Life(self.incarnation, self.floor, self.seen))
        self.estimator.rebase()
        self.counters.restarts += 1
        return released

    def _straggler(self, incarnation: int, header: Header, event: Event) -> list[Deliver]:
        """An event of a former life of the publisher."""
        verdict = self.past.place(incarnation, header.seq, overtaken=self.delivered)
        if verdict == "duplicate":
            self.counters.duplicates += 1
            return []
        if verdict == "late":
            return self._late(event)
        return [Deliver(event)]

    def _incarnation_of(self, header: Header) -> int | None:
        """The incarnation of an event; for foreign publishers we count their restarts ourselves.
        None: an event that may be of a new life, but it is too early to tell."""
        if header.incarnation is not None:
            return header.incarnation
        if self.incarnation is None:
            return 0
        # What departed after everything seen is no duplicate, whatever its number.
        fell = header.seq <= self.hi and header.departure_us > self.hi_departure_us
        if not fell:
            self.fallen = []
            return self.incarnation
        return self.incarnation + 1 if len(self.fallen) >= IN_A_ROW - 1 else None

    def _doubtful(self, header: Header, event: Event) -> list[Deliver]:
        if header.seq in self.fallen:
            self.counters.duplicates += 1
            return []
        self.fallen.append(header.seq)
        return self._late(event)

    def _contradicts(self, header: Header) -> bool:
        """Whether a header cannot be true beside what came before it.

        A clock that goes back makes every event a contradiction until it has caught up; three in a
        row that go on from there are a new clock.
        """
        if header.seq <= self.hi:
            return False
        if header.seq - self.hi > SEQ_JUMP_MAX:
            return True
        if header.departure_us >= self.hi_departure_us:
            self.backwards = []
            return False
        row = self.backwards
        if row and header.departure_us < row[-1]:
            row.clear()
        row.append(header.departure_us)
        if len(row) < IN_A_ROW:
            return True
        self.backwards = []
        self.estimator.rebase()
        self.counters.clock_steps += 1
        return False
