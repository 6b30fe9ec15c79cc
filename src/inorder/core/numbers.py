"""Which numbers of an origin have come.

`have` is 5 when 1 to 5 have come without a hole; with 7 and 8 besides, 6 is missing.

Rule 1: numbers are kept as runs, so that what is remembered grows with the holes and not with the
        numbers. Up to `floor` nothing is remembered: all of it counts as come.
Rule 2: a number is known to exist when it has come, or when something names it (`hear`). It is
        missing while it is known and has not come.
Rule 3: beyond so many runs the oldest are forgotten and the floor rises. A number at or below the
        floor may have come or not: that is "unknown", and the caller decides.
Rule 4: what is remembered, and what is forgotten, is the same whether numbers that rise are noted
        one by one, run by run or many runs at once.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from inorder.core.limits import NUMBER_RUNS_MAX

Run = tuple[int, int]
Verdict = Literal["new", "again", "unknown"]


class Numbers(Struct, array_like=True):
    """The numbers of one origin.

    >>> numbers = Numbers.after(5)
    >>> [numbers.add(number) for number in (6, 9, 8, 8, 5)]
    ['new', 'new', 'new', 'again', 'unknown']
    >>> numbers.have, numbers.known, list(numbers.holes(1, 12))
    (6, 9, [(7, 7), (10, 12)])
    """

    floor: int = 0
    known: int = 0
    # First and last number of each run above the floor. Runs never touch each other.
    starts: list[int] = []
    ends: list[int] = []

    @classmethod
    def after(cls, floor: int) -> Numbers:
        """Only what comes above this number counts."""
        return cls(floor, floor)

    @property
    def have(self) -> int:
        """Up to here nothing is missing."""
        return self.ends[0] if self.starts and self.starts[0] == self.floor + 1 else self.floor

    @property
    def top(self) -> int:
        """The highest number that has come."""
        return self.ends[-1] if self.ends else self.floor

    @property
    def behind(self) -> int:
        """How many numbers lie behind the first hole, come or not."""
        for first, _ in self.beyond():
            return self.top - first + 1
        return 0

    def __contains__(self, number: int) -> bool:
        return self.look(number) != "new"

    def look(self, number: int) -> Verdict:
        """What `add` would say."""
        if number <= self.floor:
            return "unknown"
        place = bisect_right(self.starts, number) - 1
        return "again" if place >= 0 and number <= self.ends[place] else "new"

    def add(self, number: int) -> Verdict:
        """Note a number as come."""
        # One comparison after the other, and few calls: this is done for every event.
        starts, ends = self.starts, self.ends
        if ends and number == ends[-1] + 1:
            ends[-1] = number
            if number > self.known:
                self.known = number
            return "new"
        if number <= self.floor:
            return "unknown"
        if not ends or number > ends[-1]:
            starts.append(number)
            ends.append(number)
            if number > self.known:
                self.known = number
            if len(starts) > NUMBER_RUNS_MAX:
                self._forget()
            return "new"
        place = bisect_right(starts, number)
        if place and number <= ends[place - 1]:
            return "again"
        self._fill(place, number)
        return "new"

    def _fill(self, place: int, number: int) -> None:
        """Note one that is missing below the highest; so many runs lie before it."""
        starts, ends = self.starts, self.ends
        touches_before = place > 0 and ends[place - 1] == number - 1
        if starts[place] == number + 1:
            if touches_before:
                ends[place - 1] = ends.pop(place)
                del starts[place]
            else:
                starts[place] = number
        elif touches_before:
            ends[place - 1] = number
        else:
            starts.insert(place, number)
            ends.insert(place, number)
            self._forget()

    def cover(self, first: int, last: int) -> None:
        """Note a whole run, of which some may have come before."""
        starts, ends = self.starts, self.ends
        first = max(first, self.floor + 1)
        if first > last:
            return
        self.known = max(self.known, last)
        if ends and first <= ends[-1] + 1:
            # The runs that it overlaps or touches become one with it.
            low = bisect_left(ends, first - 1)
            high = bisect_right(starts, last + 1)
            if low < high:
                first, last = min(first, starts[low]), max(last, ends[high - 1])
            starts[low:high] = [first]
            ends[low:high] = [last]
        else:
            starts.append(first)
            ends.append(last)
        self._forget()

    def leap(self, starts: list[int], ends: list[int]) -> None:
        """Note runs that rise, none of which touches another or anything that has come."""
        self.starts += starts
        self.ends += ends
        self.known = max(self.known, self.top)
        self._forget()

    def _forget(self) -> None:
        over = len(self.starts) - NUMBER_RUNS_MAX
        if over > 0:
            # A tenth at once, so that forgetting costs nothing per number.
            share = NUMBER_RUNS_MAX // 10 + 1
            self.skip(self.ends[-(-over // share) * share - 1])

    def extend(self, first: int, count: int) -> bool:
        """Note a run that begins just above all that has come; else do nothing."""
        ends = self.ends
        if ends and first == ends[-1] + 1:
            ends[-1] = last = first + count - 1
            if last > self.known:
                self.known = last
            return True
        if ends or first != self.floor + 1:
            return False
        self.leap([first], [first + count - 1])
        return True

    def hear(self, number: int) -> bool:
        """A number exists; True if it, or one before it, is missing."""
        if number > self.known:
            self.known = number
        return self.known > self.have

    def skip(self, number: int) -> None:
        """Everything up to here counts as come, and nothing of it is remembered."""
        if number <= self.floor:
            return
        gone = bisect_left(self.ends, number + 1)
        del self.starts[:gone], self.ends[:gone]
        if self.starts and self.starts[0] <= number:
            self.starts[0] = number + 1
        self.floor = number
        self.known = max(self.known, number)

    def holes(self, low: int, high: int) -> Iterator[Run]:
        """The runs of numbers from `low` to `high` that have not come."""
        low = max(low, self.floor + 1)
        place = max(bisect_right(self.starts, low) - 1, 0)
        while place < len(self.starts) and self.starts[place] <= high:
            if self.starts[place] > low:
                yield low, self.starts[place] - 1
            low = max(low, self.ends[place] + 1)
            place += 1
        if low <= high:
            yield low, high

    def missing(self, limit: int) -> Run | None:
        """The first hole below what is known, at most so many numbers of it."""
        for first, last in self.holes(self.have + 1, self.known):
            return first, min(last, first + limit - 1)
        return None

    def beyond(self) -> Iterator[Run]:
        """The runs behind the first hole."""
        has_prefix = bool(self.starts) and self.starts[0] == self.floor + 1
        return zip(self.starts[has_prefix:], self.ends[has_prefix:], strict=True)
