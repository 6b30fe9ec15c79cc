"""The rows of one subscriber, judged at once (skim.py says why that is allowed)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from inorder.core.limits import NUMBER_RUNS_MAX
from inorder.core.numbers import Numbers
from inorder.protocols.total.skim import GUESSES_MAX, beyond_at_most

if TYPE_CHECKING:
    from inorder.core.event import Event
    from inorder.protocols.total.reader import Reader

# Rows delivered, whether in order, rows still to be received, and events that waited.
Found = tuple[Any, Any, Any, "list[Event]"]

_ENDLESS = np.iinfo(np.int64).max


class Run:
    """One line of the table for each topic, one column for each row, in order of arrival."""

    def __init__(
        self, reader: Reader, topics: list[str], own: Any, numbers: Any, table: Any
    ) -> None:
        self.reader = reader
        self.topics = topics
        self.own = own
        self.numbers = numbers
        self.table = table
        self.engine = reader.engine.s
        self._received = reader.received
        # Topics that come up, each with its first row.
        lines, firsts = np.unique(own, return_index=True)
        self.firsts = {int(line): int(first) for line, first in zip(lines, firsts, strict=True)}
        self.starts = {
            line: reader.start_of(topics[line], int(numbers[first]))
            for line, first in self.firsts.items()
        }
        is_duplicate = self._find_duplicates()
        self.duplicates = np.flatnonzero(is_duplicate)
        self.kept = np.flatnonzero(~is_duplicate)

    def _find_duplicates(self) -> Any:
        own, numbers = self.own, self.numbers
        found = np.zeros(len(own), bool)
        order = np.lexsort((numbers, own))
        again = (np.diff(own[order]) == 0) & (np.diff(numbers[order]) == 0)
        found[order[1:][again]] = True
        for line in self.firsts:
            received = self._received.get(self.topics[line])
            if received is not None:
                old = (own == line) & (numbers <= received.top)
                if received.starts and old.any():
                    firsts, lasts = np.array([received.starts, received.ends], np.int64)
                    place = np.searchsorted(firsts, numbers, side="right") - 1
                    old &= (place >= 0) & (numbers <= lasts[place])
                found |= old
        return found

    def _any_forgotten(self) -> bool:
        """Whether a row has a number before the start, or of which nobody knows any more."""
        for line, start in self.starts.items():
            received = self._received.get(self.topics[line])
            floor = start if received is None else received.floor
            if (self.numbers[self.own == line] <= floor).any():
                return True
        return False

    def _clock(self) -> Any:
        """The clocks before the first row, as they are once all topics of the run are held."""
        clock = self.engine.clock
        return np.array(
            [max(clock.get(t, -1), self.starts.get(n, -1)) for n, t in enumerate(self.topics)]
        )

    # Tag, without a buffer.

    def as_they_come(self) -> Found | None:
        kept = self.kept
        if self._any_forgotten() or not self._fits():
            return None
        table, own, numbers = self.table[:, kept], self.own[kept], self.numbers[kept]
        if not len(kept):
            return kept, np.ones(0, bool), kept, []
        places = np.arange(len(kept))
        clocks = np.maximum.accumulate(np.column_stack([self._clock(), table]), axis=1)
        before = clocks[:, :-1]
        is_next = numbers > before[own, places]
        others = np.where(table < 0, _ENDLESS, table)
        others[own, places] = _ENDLESS
        in_order = is_next
        for _ in range(GUESSES_MAX):
            last = self._last(own, numbers, in_order)
            better = is_next & (others >= last[:, :-1]).all(axis=0)
            if (better == in_order).all():
                break
            in_order = better
        else:
            return None
        if (table > before)[:, ~in_order].any():
            return None
        self._move(clocks[:, -1], last[:, -1])
        for line in self.firsts:
            self._receive_numbers(line, numbers[own == line])
        return kept, in_order, kept[:0], []

    def _last(self, own: Any, numbers: Any, in_order: Any) -> Any:
        """The number last delivered in order on each topic, before each row and after all."""
        last = self.engine.last
        steps = np.full((len(self.topics), len(own) + 1), -1, np.int64)
        steps[:, 0] = [last.get(topic, -1) for topic in self.topics]
        rows = np.flatnonzero(in_order)
        steps[own[rows], rows + 1] = numbers[rows]
        return np.maximum.accumulate(steps, axis=1)

    def _fits(self) -> bool:
        """Whether numbers are forgotten as they would be row by row: never, or as numbers rise."""
        for line in self.firsts:
            # Duplicates too: what is forgotten in the meantime is none any more.
            numbers = self.numbers[self.own == line]
            received = self._received.get(self.topics[line], Numbers())
            # The first number begins a run, if it is the next one or not.
            runs = max(1, len(received.starts))
            if runs + len(numbers) > NUMBER_RUNS_MAX:
                highest = np.maximum.accumulate(_behind(received.top, numbers))[:-1]
                leaps = int(((numbers <= highest) | (numbers - highest > 1)).sum())
                if runs + leaps > NUMBER_RUNS_MAX and (numbers <= highest).any():
                    return False
        return True

    def _receive_numbers(self, line: int, numbers: Any) -> None:
        received = self._received[self.topics[line]]
        for number in numbers[numbers <= received.top].tolist():
            received.add(number)
        fresh = np.sort(numbers[numbers > received.top])
        if not len(fresh):
            return
        leaps = np.flatnonzero(np.diff(fresh) > 1)
        firsts = fresh[np.append(0, leaps + 1)].tolist()
        lasts = fresh[np.append(leaps, len(fresh) - 1)].tolist()
        # The first may touch what has come.
        received.cover(firsts[0], lasts[0])
        received.leap(firsts[1:], lasts[1:])

    # Hold, and tag with a buffer.

    def held_back(self) -> Found | None:
        if self._any_forgotten() or not self._known_in_time():
            return None
        if not len(self.kept):
            return self.kept, np.ones(0, bool), self.kept, []
        active = self.engine.active
        lines = [n for n, t in enumerate(self.topics) if t in active or n in self.firsts]
        waiting = self.reader.engine.held.rows()
        if any(topic not in self.topics for topic, _, _ in waiting):
            return None
        table, own = self._with_waiting(lines, waiting)
        clock = np.maximum(self._clock()[lines], 0)
        largest = max(int(table.max(initial=0)), int(clock.max(initial=0)))
        if largest > _ENDLESS // max(1, len(lines)):
            return None  # the sums below would run over
        order = np.argsort(table.sum(axis=0), kind="stable")
        steps = np.diff(np.column_stack([clock, table[:, order]]), axis=1)
        right = (steps.sum(axis=0) == 1) & (steps.min(axis=0) >= 0)
        right &= steps[own[order], np.arange(len(order))] == 1
        wrong = np.flatnonzero(~right)
        whole = int(wrong[0]) if len(wrong) else len(order)
        if whole:
            clock = table[:, order[whole - 1]]
        rest = order[whole:]
        ahead = table[:, rest] - clock[:, None]
        if (ahead < 0).any() or (ahead[own[rest], np.arange(len(rest))] < 1).any():
            return None
        if (ahead.sum(axis=0) < 2).any():
            return None
        wait = beyond_at_most(order[:whole], len(order))
        # Beside what has come already, what is delivered is one run, and what waits a run each.
        runs = 1 + max([len(numbers.starts) for numbers in self._received.values()], default=0)
        if wait > self.reader.options.room or runs + wait > NUMBER_RUNS_MAX:
            return None
        return self._release(lines, waiting, order[:whole], np.sort(rest), clock)

    def _known_in_time(self) -> bool:
        """Whether no event names a topic that is held only from a later row on."""
        waiting = self.reader.engine.held.rows()
        for line, first in self.firsts.items():
            topic = self.topics[line]
            if topic in self.engine.active:
                continue
            clock = max(self.engine.clock.get(topic, 0), self.starts[line])
            if (self.table[line, :first] > clock).any():
                return False
            if any(n > clock for _, _, held in waiting for name, n in held.stamp if name == topic):
                return False
        return True

    def _with_waiting(self, lines: list[int], waiting: list[Any]) -> tuple[Any, Any]:
        """The table of what waits, then of the rows; topics not held are left out."""
        place = {self.topics[line]: n for n, line in enumerate(lines)}
        early = np.zeros((len(lines), len(waiting)), np.int64)
        for column, (topic, number, held) in enumerate(waiting):
            for name, entry in [*held.stamp, (topic, number)]:
                if name in place:
                    early[place[name], column] = entry
        line_of = np.full(len(self.topics), -1, np.intp)
        line_of[lines] = np.arange(len(lines))
        rows = np.maximum(self.table[lines][:, self.kept], 0)
        first = np.array([place[topic] for topic, _, _ in waiting], np.intp)
        own = np.concatenate([first, line_of[self.own[self.kept]]])
        return np.column_stack([early, rows]), own

    def _release(
        self, lines: list[int], waiting: list[Any], order: Any, rest: Any, clock: Any
    ) -> Found:
        """Deliver these columns of waiting events and rows, in this order."""
        early = len(waiting)
        rows = self.kept[order[order >= early] - early]
        clocks = np.maximum(self._clock(), self.table[:, rows].max(axis=1, initial=-1))
        clocks[lines] = clock
        last = np.full(len(self.topics), -1, np.int64)
        np.maximum.at(last, self.own[rows], self.numbers[rows])
        freed: list[Event] = []
        delivered = np.where(order >= early, self.kept[np.maximum(order - early, 0)], 0)
        for place in np.flatnonzero(order < early).tolist():
            topic, number, held = waiting[order[place]]
            line = self.topics.index(topic)
            last[line] = max(last[line], number)
            delivered[place] = -1 - len(freed)
            freed.append(held.event)
            self.reader.let_go((topic, number))
            for name, entry in held.stamp:
                if name in self.topics:
                    line = self.topics.index(name)
                    clocks[line] = max(clocks[line], entry)
                elif self.engine.clock.get(name, -1) < entry:
                    self.engine.clock[name] = entry
        self._move(clocks, last)
        for line in self.firsts:
            self._receive_numbers(line, self.numbers[rows[self.own[rows] == line]])
        self.reader.look_again()
        left = self.kept[rest[rest >= early] - early]
        return delivered, np.ones(len(delivered), bool), left, freed

    def _move(self, clocks: Any, last: Any) -> None:
        """Hold the topics that came up, and set all clocks."""
        for line, first in self.firsts.items():
            self.reader.hold(self.topics[line], int(self.numbers[first]))
        for topic, clock, number in zip(self.topics, clocks.tolist(), last.tolist(), strict=True):
            if clock >= 0:
                self.engine.clock[topic] = max(self.engine.clock.get(topic, -1), clock)
            if number >= 0:
                self.engine.last[topic] = max(self.engine.last.get(topic, -1), number)


def _behind(first: int, numbers: Any) -> Any:
    """Whole numbers stay whole: of an empty list NumPy would make floats."""
    return np.concatenate([np.array([first], np.int64), numbers])
