"""A lane: the readers of some subscribers, driven by rows. It knows nothing of Spark.

Rule 1: time is what the rows tell (`received_at`, 0 without it), never a clock. Before a row, the
        timers of its subscriber that are due at or before its time fire, at their deadlines, in the
        order of deadline and name.
Rule 2: a row is judged by its columns alone; what else it carries stays with whoever feeds the
        lane. A row is known by its ticket: the number of rows fed before it.
Rule 3: every ticket is answered exactly once: delivered at an `nth`, or refused with a reason, or
        (not matched) passed over in silence. Whatever became of a row, nobody waits for its number,
        if its stamp can be read, or else its offset is known.
Rule 4: the same rows, cut into feeds anywhere, with `pack` and `unpack` between any two of them,
        get the same answers, as long as `received_at` does not fall along the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan
from typing import Any, Self

import numpy as np
from msgspec import Struct

from inorder.core.effect import CancelTimer, Deliver, Effect, Note, SetTimer
from inorder.core.errors import Misuse, PeerFault
from inorder.core.event import Event
from inorder.core.limits import SKIM_ROWS_MIN
from inorder.core.machine import Reader
from inorder.core.pack import pack, unpacker
from inorder.core.settings import convert
from inorder.guarantee.registry import guarantee
from inorder.guarantee.rows import Rows, Skimmer
from inorder.pipeline.order_columns import Columns

DUPLICATE = "duplicate"
# The ticket of an event nobody is told about.
NOBODY = -1
_TICKET = ""

Start = str | Mapping[str, int] | Mapping[str, Mapping[str, int]]


class Plan(Struct, frozen=True):
    """What a lane needs to know; it travels to the workers.

    `start` is "beginning" or "first", or says how many events of each topic come before the first
    given: for all subscribers alike, or for each by name. `strict`: a row that cannot be used ends
    the query.
    """

    guarantee: str
    options: dict[str, Any] = {}
    subscriber: str = ""
    start: Any = "beginning"
    strict: bool = True

    def reader(self, name: str) -> Reader:
        options = convert(self.options, guarantee(self.guarantee).options, "order")
        start = self.start
        if isinstance(start, str):
            return self.rows().reader(name, options, None, start == "first")
        if start and isinstance(next(iter(start.values())), Mapping):
            start = start.get(name)
        return self.rows().reader(name, options, start, False)

    def rows(self) -> Rows:
        rows = guarantee(self.guarantee).rows
        if rows is None:
            raise Misuse(f"guarantee {self.guarantee!r} puts no recorded rows in order yet")
        return rows


class Answers(Struct):
    """What became of tickets: those delivered, in the order of delivery of each subscriber."""

    tickets: Any
    nths: Any
    in_order: Any
    refused: list[tuple[int, str]]
    passed_over: Any


class Seat(Struct):
    """One subscriber; its machine rests as bytes until it is needed."""

    snapshot: bytes
    timers: dict[str, float] = {}
    nth: int = 0
    # The time of its last row: that of a row which tells none.
    now: float = 0.0


class _State(Struct):
    tickets: int = 0
    latest: float = -np.inf
    seats: dict[str, Seat] = {}


_unpack = unpacker(_State)


class Lane:
    """Feed it rows in their order of arrival."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._rows = plan.rows()
        # Whether a row has a place without a publisher.
        self._by_topic = self._rows.placeholder("topic", 0) is not None
        self._readers: dict[str, Reader] = {}
        self._s = _State()
        self._begin_answers()

    def _begin_answers(self) -> None:
        self._delivered: list[tuple[Any, Any, Any]] = []
        self._refused: list[tuple[int, str]] = []
        self._passed_over: list[Any] = []

    # Inputs.

    @property
    def fed(self) -> int:
        """Rows fed so far: the next ticket."""
        return self._s.tickets

    def feed(self, columns: Columns) -> Answers:
        """Rows in their order of arrival."""
        first = self._s.tickets
        self._s.tickets += columns.count
        for row, reason in columns.problems():
            if columns.is_matched is None or columns.is_matched[row]:
                self._refuse(first + row, reason, columns.name(row))
            elif row in columns.homeless:
                self._refuse(NOBODY, reason, columns.name(row))
        if columns.is_matched is not None:
            self._passed_over.append(first + columns.unmatched())
        skimmer = self._skimmer(columns)
        for subscriber, rows in columns.by_subscriber():
            seat = self._seat(subscriber)
            last_time = columns.last_time(rows)
            if skimmer is not None and not seat.timers and len(rows) >= SKIM_ROWS_MIN:
                rows = self._skim(skimmer, subscriber, columns, rows, first)
            if len(rows):
                self._receive(subscriber, columns, rows, first)
            seat.now = seat.now if last_time is None else last_time
        self._s.latest = max(self._s.latest, columns.latest())
        return self._answers()

    def settle(self) -> Answers:
        """The end of a micro-batch: nothing waits for a next row of its own subscriber only."""
        for subscriber in [name for name, seat in self._s.seats.items() if seat.timers]:
            out = _Out()
            self._fire(subscriber, self._s.latest, out, including=False)
            self._take(subscriber, out)
        return self._answers()

    def finish(self, keep: str | None = None) -> Answers:
        """Nothing will come any more (to anybody but `keep`): time runs on until no timer is left,
        then what is held goes."""
        for subscriber in [name for name in self._s.seats if name != keep]:
            out = _Out()
            self._fire(subscriber, np.inf, out)
            now = self._s.latest if self._s.latest > -np.inf else 0.0
            self._carry_out(subscriber, self._reader(subscriber).finish(now), now, NOBODY, out)
            self._take(subscriber, out)
            del self._s.seats[subscriber], self._readers[subscriber]
        return self._answers()

    def pack(self) -> bytes:
        for name, reader in self._readers.items():
            self._s.seats[name].snapshot = reader.snapshot()
        return pack(self._s)

    @classmethod
    def unpack(cls, plan: Plan, state: bytes) -> Self:
        lane = cls(plan)
        lane._s = _unpack(state)
        return lane

    # One subscriber.

    def _seat(self, subscriber: str) -> Seat:
        seat = self._s.seats.get(subscriber)
        if seat is None:
            self._readers[subscriber] = self._plan.reader(subscriber)
            seat = self._s.seats[subscriber] = Seat(b"")
        return seat

    def _reader(self, subscriber: str) -> Reader:
        reader = self._readers.get(subscriber)
        if reader is None:
            snapshot = self._s.seats[subscriber].snapshot
            reader = self._readers[subscriber] = self._rows.restore(snapshot)
        return reader

    def _skimmer(self, columns: Columns) -> Skimmer | None:
        if columns.count < SKIM_ROWS_MIN:
            return None
        return self._rows.skimmer(columns.topics, columns.topic_codes, columns.stamps())

    def _skim(
        self, skimmer: Skimmer, subscriber: str, columns: Columns, rows: Any, first: int
    ) -> Any:
        """As many rows at once as may be; returns the others."""
        skimmed = skimmer.skim(self._reader(subscriber), rows)
        if skimmed is None:
            return rows
        order, in_order, duplicates, rest, freed = skimmed
        tickets = first + order
        if columns.is_told is not None:
            tickets[~columns.is_told[np.maximum(order, 0)]] = NOBODY
            duplicates = duplicates[columns.is_told[duplicates]]
        for place in np.flatnonzero(order < 0).tolist():
            tickets[place] = ticket_of(freed[-1 - order[place]])
        self._deliver(subscriber, tickets, in_order)
        self._refused += [(first + row, DUPLICATE) for row in duplicates.tolist()]
        return rest

    def _receive(self, subscriber: str, columns: Columns, rows: Any, first: int) -> None:
        """Row by row."""
        seat, reader, out = self._s.seats[subscriber], self._reader(subscriber), _Out()
        message = self._rows.message
        for row, topic, publisher, seq, stamp, told, is_told in columns.each(rows):
            if not publisher and not self._by_topic:
                continue
            ticket = first + row if is_told else NOBODY
            event = Event(publisher or "", seq or 0, topic, {_TICKET: ticket})
            seat.now = now = seat.now if isnan(told) else told
            if seat.timers:
                self._fire(subscriber, now, out)
            try:
                effects = reader.receive(event.publisher, message(event, stamp or ""), now)
            except PeerFault as fault:
                if is_told:
                    self._refuse(ticket, str(fault), event.id)
                kept = self._keep_place(reader, event, columns.offset(row), now)
                if kept is None and columns.is_matched is not None and not columns.is_matched[row]:
                    self._refuse(NOBODY, str(fault), event.id)
                effects, ticket = kept or [], NOBODY
            self._carry_out(subscriber, effects, now, ticket, out)
        self._take(subscriber, out)

    def _keep_place(
        self, reader: Reader, event: Event, offset: int | None, now: float
    ) -> list[Effect] | None:
        """Let a row without a stamp take its number, without telling anybody; None if it has no
        number either."""
        stamp = None if offset is None else self._rows.placeholder(event.topic, offset)
        if stamp is None:
            return None
        nobodys = Event(event.publisher, event.seq, event.topic, {_TICKET: NOBODY})
        try:
            return reader.receive(event.publisher, self._rows.message(nobodys, stamp), now)
        except PeerFault:
            return None

    def _fire(self, subscriber: str, until: float, out: _Out, including: bool = True) -> None:
        """Timers due at or before a time; without `including`, before it."""
        timers = self._s.seats[subscriber].timers
        while timers:
            deadline, name = min((deadline, name) for name, deadline in timers.items())
            if deadline > until or (deadline == until and not including):
                return
            del timers[name]
            effects = self._reader(subscriber).fire(name, deadline)
            self._carry_out(subscriber, effects, deadline, NOBODY, out)

    def _carry_out(
        self, subscriber: str, effects: list[Effect], now: float, ticket: int, out: _Out
    ) -> None:
        timers = self._s.seats[subscriber].timers
        for effect in effects:
            if isinstance(effect, Deliver):
                out.tickets.append(ticket_of(effect.event))
                out.in_order.append(effect.in_order)
            elif isinstance(effect, SetTimer):
                timers[effect.name] = now + effect.after_s
            elif isinstance(effect, CancelTimer):
                timers.pop(effect.name, None)
            elif isinstance(effect, Note) and effect.mark == DUPLICATE and ticket != NOBODY:
                self._refused.append((ticket, DUPLICATE))

    # Answers.

    def _take(self, subscriber: str, out: _Out) -> None:
        if out.tickets:
            self._deliver(subscriber, np.array(out.tickets), np.array(out.in_order, bool))

    def _deliver(self, subscriber: str, tickets: Any, in_order: Any) -> None:
        seat = self._s.seats[subscriber]
        told = tickets != NOBODY
        if not told.all():
            tickets, in_order = tickets[told], in_order[told]
        nths = seat.nth + np.arange(1, len(tickets) + 1)
        seat.nth += len(tickets)
        self._delivered.append((tickets, nths, in_order))

    def _refuse(self, ticket: int, reason: str, event: str) -> None:
        if self._plan.strict:
            raise Misuse(f"event {event} cannot be put in order: {reason}")
        if ticket != NOBODY:
            self._refused.append((ticket, reason))

    def _answers(self) -> Answers:
        parts = zip(*self._delivered, strict=True) if self._delivered else ([], [], [])
        kinds = (np.int64, np.int64, bool)
        tickets, nths, in_order = (
            np.concatenate([*part]) if part else np.zeros(0, kind)
            for part, kind in zip(parts, kinds, strict=True)
        )
        passed = np.concatenate(self._passed_over) if self._passed_over else np.zeros(0, np.int64)
        answers = Answers(tickets, nths, in_order, self._refused, passed)
        self._begin_answers()
        return answers


def ticket_of(event: Event) -> int:
    ticket = event.value[_TICKET]
    assert isinstance(ticket, int)
    return ticket


class _Out:
    """Deliveries one by one."""

    __slots__ = ("in_order", "tickets")

    def __init__(self) -> None:
        self.tickets: list[int] = []
        self.in_order: list[bool] = []
