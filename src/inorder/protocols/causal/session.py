"""One topic at one client, from `subscribe` to `unsubscribe`.

Rule 1: of each origin one number is kept, the one that is due next. Whatever is below it has been
        taken in or was never addressed to this client. The two need not be distinguished, and where
        an origin began need not be remembered.
Rule 2: an event does not wait for an origin that has not begun: that origin does not address this
        client (P1, P1b).
Rule 3: numbers of an origin that are lost, and all behind them, make a *gap*: no peer alive holds
        the first of them, and the others rest on it. A gap ends where the origin begins again.
"""

from __future__ import annotations

from msgspec import Struct

from inorder.core.limits import CAUSAL_GAPS_MAX
from inorder.core.place import Places
from inorder.core.table import Table

# The end of a gap whose origin has not begun again.
OPEN = 2**63 - 1

Run = tuple[int, int]


class Packed(Struct, array_like=True):
    """A session in a snapshot."""

    joined: bool
    due: Places
    counts: list[tuple[int, int]]
    again: list[tuple[int, int]]
    gaps: list[tuple[int, list[Run]]]


class Session:
    """What a client knows of the origins of one topic."""

    __slots__ = ("active", "again", "counts", "due", "gaps", "joined")

    def __init__(self) -> None:
        # Whether the network has confirmed the topic, and whether the application holds it: a call
        # for several topics is answered when all of them have been confirmed.
        self.joined = False
        self.active = False
        # The next number of each origin; 0: it has not begun.
        self.due = Table()
        # From which number on events are handed over, and where an origin began again last; both
        # are forgotten when that number is due.
        self.counts: dict[int, int] = {}
        self.again: dict[int, int] = {}
        self.gaps: dict[int, list[Run]] = {}

    def begins(self, origin: int, start: int, counts: int) -> None:
        has_begun = self.due[origin] > 0
        if has_begun:
            self._begins_again(origin, counts)
        if has_begun and self.joined:
            # What counted before still does: others may have handed it over already.
            counts = min(counts, self.counts.get(origin, 0))
        else:
            self.due[origin] = start
        self.leap(origin)
        if counts > self.due[origin]:
            self.counts[origin] = counts
        else:
            self.counts.pop(origin, None)

    def _begins_again(self, origin: int, number: int) -> None:
        """From this number on nothing rests on the earlier ones."""
        if number > self.due[origin]:
            self.again[origin] = number
        runs = self.gaps.pop(origin, [])
        if ended := [(first, min(last, number - 1)) for first, last in runs if first < number]:
            self.gaps[origin] = ended

    def pass_by(self, origin: int, number: int) -> bool:
        """A number has been taken in; whether it counts, if it was the one that was due."""
        self.due[origin] = number + 1
        if self.again and self.again.get(origin, OPEN) <= number + 1:
            del self.again[origin]
        if not self.counts or origin not in self.counts:
            return True
        if self.counts[origin] <= number + 1:
            del self.counts[origin]
        return False

    def leap(self, origin: int) -> int:
        """Pass over the gaps that have been reached, if they have an end: the last number, or 0."""
        passed = 0
        for first, last in self.gaps.get(origin, ()):
            if first <= self.due[origin] <= last != OPEN:
                self.pass_by(origin, last)
                passed = last
        return passed

    # Gaps.

    def is_lost(self, origin: int, number: int) -> bool:
        """Whether no peer holds this number, or it rests on a number that no peer holds."""
        return any(first <= number <= last for first, last in self.gaps.get(origin, ()))

    def lives(self, origin: int) -> list[int]:
        """The next number, and the one from which on the origin will have begun again."""
        due = self.due[origin]
        return [due, self.again[origin]] if origin in self.again else [due]

    def open_gap(self, origin: int, first: int) -> None:
        """All from this number on is lost, up to where the origin began again."""
        again = self.again.get(origin, 0)
        last = again - 1 if first < again else OPEN
        kept = [run for run in self.gaps.get(origin, []) if run[1] < first or run[0] > last]
        self.gaps[origin] = sorted([*kept, (first, last)])[-CAUSAL_GAPS_MAX:]

    # Snapshots.

    def packed(self) -> Packed:
        return Packed(
            self.joined, self.due.pairs(), sorted(self.counts.items()),
            sorted(self.again.items()), sorted(self.gaps.items()),
        )  # fmt: skip

    @classmethod
    def unpacked(cls, packed: Packed) -> Session:
        session = cls()
        session.joined = packed.joined
        session.due = Table.of(packed.due)
        session.counts, session.again = dict(packed.counts), dict(packed.again)
        session.gaps = dict(packed.gaps)
        return session
