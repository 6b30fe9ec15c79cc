"""Which sequence numbers have been received: runs instead of single numbers.

A subscriber that gets every event has one run for ever; one that gets every fiftieth has a run per
event and forgets the oldest beyond the limit. Forgetting means that a very old duplicate is taken
for a late event: delivered once more, tagged.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from inorder.core.limits import SEEN_RUNS_MAX


class Seen:
    """A set of numbers, kept as disjoint runs in ascending order."""

    __slots__ = ("ends", "starts")

    def __init__(self, starts: list[int] | None = None, ends: list[int] | None = None) -> None:
        self.starts = [] if starts is None else starts
        self.ends = [] if ends is None else ends

    def __contains__(self, number: int) -> bool:
        place = bisect_right(self.starts, number) - 1
        return place >= 0 and number <= self.ends[place]

    def add(self, number: int) -> bool:
        """Take a number in; False if it was there already.

        >>> seen = Seen()
        >>> [seen.add(n) for n in (1, 2, 5, 2, 4, 3)], seen.starts, seen.ends
        ([True, True, True, False, True, True], [1], [5])
        """
        starts, ends = self.starts, self.ends
        if not ends or number > ends[-1] + 1:
            starts.append(number)
            ends.append(number)
            self._forget()
            return True
        if number == ends[-1] + 1:
            ends[-1] = number
            return True
        place = bisect_right(starts, number) - 1
        if place >= 0 and number <= ends[place]:
            return False
        touches_left = place >= 0 and ends[place] == number - 1
        touches_right = starts[place + 1] == number + 1
        if touches_left and touches_right:
            ends[place] = ends[place + 1]
            del starts[place + 1], ends[place + 1]
        elif touches_left:
            ends[place] = number
        elif touches_right:
            starts[place + 1] = number
        else:
            starts.insert(place + 1, number)
            ends.insert(place + 1, number)
            self._forget()
        return True

    def _forget(self) -> None:
        if len(self.starts) > SEEN_RUNS_MAX:
            # A tenth at once, so that forgetting costs nothing per number.
            cut = SEEN_RUNS_MAX // 10
            del self.starts[:cut], self.ends[:cut]

    def holes(self, low: int, high: int) -> Iterator[tuple[int, int]]:
        """The runs of numbers from `low` to `high` that are not in here."""
        place = max(bisect_right(self.starts, low) - 1, 0)
        while place < len(self.starts) and self.starts[place] <= high:
            if self.starts[place] > low:
                yield low, self.starts[place] - 1
            low = max(low, self.ends[place] + 1)
            place += 1
        if low <= high:
            yield low, high
