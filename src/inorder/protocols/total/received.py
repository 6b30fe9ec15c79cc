"""Which numbers of a topic a reader of a log has received: the highest, and the holes below it.

Rule 1: a filter may leave as many holes as there are events, so the oldest are forgotten beyond a
        bound. What comes for a number up to there may be new or not: nobody can tell any more.

Theory. core/numbers.py remembers what came behind a hole, because its owner asks for what is
missing and soon gets it. Nobody answers a reader. One hole may stay for ever, so it must not cost
more as numbers go by; hence what is missing is kept here, as runs.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Literal

from msgspec import Struct

from inorder.core.limits import READER_HOLES_MAX

Hole = tuple[int, int]


class Received(Struct):
    """The numbers of one topic.

    >>> topic = Received(5, 5)
    >>> topic.add(6), topic.add(9), topic.add(8), topic.add(8), topic.add(5)
    ('new', 'new', 'new', 'again', 'unknown')
    >>> topic.known, topic.holes
    (9, [(7, 7)])
    """

    known: int
    # Up to here nobody remembers which numbers were received; to begin with, the topic's start.
    forgotten: int
    # First and last number of each, in order.
    holes: list[Hole] = []

    def add(self, number: int) -> Literal["new", "again", "unknown"]:
        """Note a number as received."""
        if number > self.known:
            if number > self.known + 1:
                self.leave([(self.known + 1, number - 1)])
            self.known = number
            return "new"
        place = bisect_right(self.holes, number, key=_first) - 1
        if place >= 0 and number <= self.holes[place][1]:
            first, last = self.holes[place]
            rest = [(first, number - 1), (number + 1, last)]
            self.holes[place : place + 1] = [hole for hole in rest if hole[0] <= hole[1]]
            self._forget()
            return "new"
        return "unknown" if number <= self.forgotten else "again"

    def extend(self, first: int, count: int) -> bool:
        """Note a run of numbers at once, if it is just the next ones; else do nothing."""
        if first != self.known + 1:
            return False
        self.known += count
        return True

    def leave(self, holes: list[Hole]) -> None:
        """Holes above all that is known."""
        self.holes += holes
        self._forget()

    def _forget(self) -> None:
        over = len(self.holes) - READER_HOLES_MAX
        if over > 0:
            self.forgotten = self.holes[over - 1][1]
            del self.holes[:over]


def _first(hole: Hole) -> int:
    return hole[0]
