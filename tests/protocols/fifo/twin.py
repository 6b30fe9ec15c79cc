"""The receiver's slow, obvious twin: one dictionary of missing numbers, everything searched anew.

It shares the estimators and the record format with the real one, and nothing else.
"""

from __future__ import annotations

from math import inf
from typing import Any

from inorder.protocols.fifo.header import SEQ_JUMP_MAX, Header
from inorder.protocols.fifo.record import read_record


class Twin:
    def __init__(self, options: Any, estimator: Any, interests: Any) -> None:
        self.o, self.estimator, self.interests = options, estimator, interests
        self.incarnation: int | None = None
        self.received: set[tuple[int, int]] = set()
        # In order, that is.
        self.delivered: list[tuple[int, int]] = []
        self.floor = self.hi = self.hi_departure = 0
        # number -> [deadline, whether its departure was known]
        self.missing: dict[int, list[Any]] = {}
        self.pending: dict[int, Any] = {}
        self.backwards: list[int] = []
        self.lives: list[int] = []

    def receive(self, header: Header, event: Any, now: float) -> list[tuple[Any, bool]]:
        out: list[tuple[Any, bool]] = []
        key = (header.incarnation, header.seq)
        first = self.incarnation is None or header.incarnation > self.incarnation
        if not first and header.incarnation < self.incarnation:
            if key in self.received:
                return []
            self.received.add(key)
            in_order = not any(other > key for other in self.delivered)
            if in_order:
                self.delivered.append(key)
            return [(event, in_order)]
        record = self._record(header)
        if first:
            out += self._release(now, inf)
            if self.incarnation is not None:
                self.estimator.rebase()
            known = self.incarnation is not None
            self.incarnation = header.incarnation
            self.missing = {}
            reaches = header.seq <= len(record) + 1
            self.floor = self.hi = 0 if known and reaches else header.seq - 1
            self.hi_departure = 0
            self.backwards = []
        if key in self.received:
            return out
        self.received.add(key)
        if header.seq > self.hi and self._contradiction(header):
            self.missing.pop(header.seq, None)
            return [*out, (event, False), *self._release(now, -inf)]
        self.estimator.sample(header.departure_us * 1e-6, now)
        for number, (departure, concerns) in record.items():
            if number in self.missing:
                if not concerns:
                    del self.missing[number]
                elif not self.missing[number][1]:
                    deadline = self._deadline(departure, header, now)
                    self.missing[number] = [min(self.missing[number][0], deadline), True]
        late = header.seq <= self.floor
        self.estimator.feedback(late)
        if late:
            return [*out, (event, False), *self._release(now, -inf)]
        if header.seq > self.hi:
            self._open(header, record, now)
            self.hi, self.hi_departure = header.seq, header.departure_us
        self.missing.pop(header.seq, None)
        self.pending[header.seq] = event
        return out + self._release(now, -inf)

    def fire(self, now: float) -> list[tuple[Any, bool]]:
        return self._release(now, now)

    @property
    def deadline(self) -> float | None:
        if not self.pending:
            return None
        head = min(self.pending)
        return max(deadline for number, (deadline, _) in self.missing.items() if number < head)

    def _record(self, header: Header) -> dict[int, tuple[int, bool]]:
        if not self.o.reads_record or not header.record:
            return {}
        read = read_record(header.record, header.departure_us)
        found = {}
        for place, (departure, summary) in enumerate(
            zip(read.departures_us, read.summaries, strict=True), 1
        ):
            concerns = self.interests.concern(summary, read.hashes, 0.0)
            found[header.seq - place] = (departure, concerns)
        return found

    def _open(self, header: Header, record: dict[int, tuple[int, bool]], now: float) -> None:
        oldest = min((departure for departure, _ in record.values()), default=None)
        for number in range(self.hi + 1, header.seq):
            if (self.incarnation, number) in self.received:
                continue
            exact = number in record
            if exact:
                departure, concerns = record[number]
                if not concerns:
                    continue
            elif oldest is not None:
                departure = oldest
            else:
                departure = header.departure_us - header.prev_gap_us
            deadline = self._deadline(departure, header, now)
            if deadline > now:
                self.missing[number] = [deadline, exact]

    def _deadline(self, departure: int, header: Header, now: float) -> float:
        if not self.estimator.warm:
            return now + min(self.o.initial_latch, self.o.tau_max)
        until = self.estimator.deadline(departure * 1e-6, header.departure_us * 1e-6, now)
        return min(max(until, now), now + self.o.tau_max)

    def _release(self, now: float, give_up: float) -> list[tuple[Any, bool]]:
        out = []
        for number in sorted(self.pending):
            below = [each for each in self.missing if each < number]
            if any(self.missing[each][0] > give_up for each in below):
                break
            for each in below:
                del self.missing[each]
            out.append((self.pending.pop(number), True))
            self.floor = number
            self.delivered.append((self.incarnation or 0, number))
        return out

    def _contradiction(self, header: Header) -> bool:
        if header.seq - self.hi > SEQ_JUMP_MAX:
            return True
        if header.departure_us >= self.hi_departure:
            self.backwards = []
            return False
        if self.backwards and header.departure_us < self.backwards[-1]:
            self.backwards = []
        self.backwards.append(header.departure_us)
        if len(self.backwards) < 3:
            return True
        self.backwards = []
        self.estimator.rebase()
        return False
