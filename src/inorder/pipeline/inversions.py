"""How many pairs of events two subscribers delivered in opposite orders, for many subscribers.

A *line* is one subscriber's events in its order. For subscribers a and b, write b's places in the
order of a's line: the pairs in opposite orders are the inversions of that list, counted in
O(n log n). Most lists are rising, which one comparison tells. Subscribers with the same line at the
same places are compared once and counted as often as there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from inorder.pipeline import bounds

Array = npt.NDArray[Any]

# Cells handled at once: stays in the processor's cache.
_CHUNK_CELLS = 1_000_000

# A report draws this many disagreements.
CLOSEST_KEPT = 3

# (distance, first place, a, b, second place): a is the first-named of the two
Closest = tuple[int, int, int, int, int]


@dataclass(slots=True)
class Lines:
    """Subscribers, numbered in the order of their names, with lines `event[starts[i]:starts[i+1]]`.

    Events are numbered from 0 within `events`; `nth` is where the subscriber delivered them.
    """

    subscriber: list[int]
    starts: Array
    event: Array
    nth: Array
    events: int

    def __len__(self) -> int:
        return len(self.subscriber)

    def line(self, number: int) -> slice:
        return slice(int(self.starts[number]), int(self.starts[number + 1]))


@dataclass(slots=True)
class Disagreements:
    """`closest` holds the closest pairs of events, of different pairs of subscribers, in order."""

    violations: int = 0
    pairs: int = 0
    closest: list[Closest] = field(default_factory=list)

    def offer(self, candidate: Closest) -> None:
        if len(self.closest) < CLOSEST_KEPT or candidate < self.closest[-1]:
            self.closest = sorted([*self.closest, candidate])[:CLOSEST_KEPT]

    def add(self, other: Disagreements) -> None:
        self.violations += other.violations
        self.pairs += other.pairs
        for candidate in other.closest:
            self.offer(candidate)


@dataclass(slots=True)
class _Class:
    """Subscribers with the same line at the same places; `number` is one of them."""

    number: int
    members: list[int] = field(default_factory=list)


def disagreements(first: Lines, second: Lines | None = None) -> Disagreements:
    """Compare every subscriber of `first` with every one of `second`, or with each other.

    All of `first` must be named before all of `second`.
    """
    found = Disagreements()
    other = first if second is None else second
    left = _classes(first)
    right = left if second is None else _classes(other)
    gather = _gatherer(other, right)
    for number, mine in enumerate(left):
        start = number + 1 if second is None else 0
        line = first.line(mine.number)
        for rival, places, at in gather(first.event[line], start):
            found.add(_compare(first, mine, right[rival], places, at, line))
            if second is None:
                _offer_reversed(found, first, right[rival], mine)
    return found


def _compare(
    lines: Lines, mine: _Class, rival: _Class, places: Array, at: Array, line: slice
) -> Disagreements:
    """`places` are the rival's, in the order of my line; `at` are my own places."""
    times = len(mine.members) * len(rival.members)
    found = Disagreements(times * inversions(places), times)
    nth = lines.nth[line]
    distance, begin, end = _closest_turn(places, nth[at])
    a = mine.members[0]
    b = next(member for member in rival.members if member > a)
    found.offer((distance, begin, a, b, end))
    return found


def _offer_reversed(found: Disagreements, lines: Lines, mine: _Class, rival: _Class) -> None:
    """The closest turn as a later-found class sees it, if one of its members is named first."""
    a = mine.members[0]
    later = [member for member in rival.members if member > a]
    if not later:
        return
    line, other = lines.line(mine.number), lines.line(rival.number)
    place = np.full(lines.events, -1, dtype=np.int64)
    place[lines.event[other]] = np.arange(other.stop - other.start)
    places = place[lines.event[line]]
    at = np.flatnonzero(places >= 0)
    distance, begin, end = _closest_turn(places[at], lines.nth[line][at])
    found.offer((distance, begin, a, later[0], end))


def _closest_turn(places: Array, nth: Array) -> tuple[int, int, int]:
    """Neighbours that fall: the least distance of places, then the earliest."""
    turns = np.flatnonzero(places[1:] < places[:-1])
    distance = nth[turns + 1] - nth[turns]
    best = turns[np.argmin(distance)]  # the first of equals, and places rise
    return int(distance.min()), int(nth[best]), int(nth[best + 1])


def _classes(lines: Lines) -> list[_Class]:
    """Classes of equal subscribers, in the order of their first-named members."""
    found: dict[tuple[bytes, bytes], _Class] = {}
    for number, subscriber in enumerate(lines.subscriber):
        line = lines.line(number)
        key = (lines.event[line].tobytes(), lines.nth[line].tobytes())
        found.setdefault(key, _Class(number)).members.append(subscriber)
    return list(found.values())


_Gathered = Iterator[tuple[int, Array, Array]]


def _gatherer(lines: Lines, classes: list[_Class]) -> Any:
    """A function (my line, first rival) -> (rival, its places, my places) of those that turn."""
    cells = len(classes) * lines.events
    if cells <= bounds.PLACE_CELLS_MAX:
        return _Dense(lines, classes).against
    return _Sparse(lines, classes).against


class _Dense:
    """A table of places, subscribers by events: quick when it fits."""

    def __init__(self, lines: Lines, classes: list[_Class]) -> None:
        self._place = np.full((len(classes), lines.events), -1, dtype=np.int32)
        for row, each in enumerate(classes):
            line = lines.line(each.number)
            self._place[row, lines.event[line]] = np.arange(line.stop - line.start)

    def against(self, line: Array, start: int) -> _Gathered:
        step = max(1, _CHUNK_CELLS // max(1, len(line)))
        for low in range(start, len(self._place), step):
            places = np.take(self._place[low : low + step], line, axis=1)
            for row in np.flatnonzero(_may_turn(places)).tolist():
                at = np.flatnonzero(places[row] >= 0)
                mine = places[row][at]
                if (mine[1:] < mine[:-1]).any():
                    yield low + row, mine, at


def _may_turn(places: Array) -> Array:
    """Rows that may hold a turn: exact for rows without holes, a hole (-1) makes a row suspect."""
    return np.asarray((places[:, 1:] < places[:, :-1]).any(axis=1))


class _Sparse:
    """Rows found by event: work and memory follow what is there, not what could be."""

    def __init__(self, lines: Lines, classes: list[_Class]) -> None:
        sizes = [lines.line(each.number).stop - lines.line(each.number).start for each in classes]
        parts = [lines.event[lines.line(each.number)] for each in classes]
        event = np.concatenate(parts) if parts else np.empty(0, dtype=np.int32)
        owner = np.repeat(np.arange(len(classes)), sizes)
        place = np.concatenate([np.arange(size) for size in sizes]) if sizes else event
        order = np.argsort(event, kind="stable")
        self._owner, self._place = owner[order], place[order]
        self._starts = np.searchsorted(event[order], np.arange(lines.events + 1))

    def against(self, line: Array, start: int) -> _Gathered:
        low, high = self._starts[line], self._starts[line + 1]
        counts = high - low
        at = np.repeat(np.arange(len(line)), counts)
        within = np.arange(len(at)) - np.repeat(np.cumsum(counts) - counts, counts)
        rows = np.repeat(low, counts) + within
        owner, place = self._owner[rows], self._place[rows]
        order = np.argsort(owner, kind="stable")  # `at` rises already, and keeps rising inside
        owner, place, at = owner[order], place[order], at[order]
        turns = (place[1:] < place[:-1]) & (owner[1:] == owner[:-1])
        for rival in np.unique(owner[1:][turns]).tolist():
            if rival >= start:
                mine = slice(*np.searchsorted(owner, [rival, rival + 1]).tolist())
                yield rival, place[mine], at[mine]


def inversions(values: Array) -> int:
    """Pairs of distinct, non-negative numbers that stand in falling order.

    >>> inversions(np.array([3, 1, 2]))
    2
    """
    highest = np.maximum.accumulate(values)
    lowest = np.minimum.accumulate(values[::-1])[::-1]
    values = values[(highest > values) | (lowest < values)]  # the others are in no inversion
    if len(values) < 2:
        return 0
    count = _fenwick()
    if count is not None and int(values.max()) < 64 * len(values):
        numbers = np.arange(1, len(values) + 1, dtype=np.intp)
        return int(count(numbers, values.astype(np.intp) + 1))
    return by_bits(values)


def _fenwick() -> Any:
    """SciPy's own count (the heart of `kendalltau`), four times as fast as ours; it is private."""
    try:
        from scipy.stats._stats import _kendall_dis
    except ImportError:
        return None
    return _kendall_dis


def by_bits(values: Array) -> int:
    """The same with NumPy alone: sort by one bit after the other, from the highest.

    When the numbers are sorted by their higher bits, inversions at this bit are the ones that
    stand before zeros of the same group; the group begins where its higher bits say.
    """
    number = np.empty(len(values), dtype=np.int64)
    number[np.argsort(values, kind="stable")] = np.arange(len(values))
    places = np.arange(len(values))
    total = 0
    for bit in range((len(values) - 1).bit_length() - 1, -1, -1):
        one = (number >> bit) & 1
        before = np.cumsum(one) - one
        group = (number >> (bit + 1)) << (bit + 1)
        before -= before[group]
        total += int(before[one == 0].sum())
        target = np.where(one == 0, places - before, group + (1 << bit) + before)
        sorted_further = np.empty_like(number)
        sorted_further[target] = number
        number = sorted_further
    return total
