"""Numbers by origin, in little room: 0 where nothing is known.

A subscriber that hears 5 of 4,096 origins keeps five entries in a dictionary; one that hears all of
them keeps an array of four bytes each. 4,096 such subscribers keep 16.7 million numbers in 67 MB,
for which dictionaries would take 1.7 GB.

Rule 1: the numbers of low origins stand in an array as soon as that is dense enough, all others in
        a dictionary, so that an origin which a peer has made up costs one entry and no more.
Rule 2: an array may be shared with other tables. No table changes it: what differs is kept in the
        dictionary while that is little, in an array of one's own from then on.
Rule 3: equal tables have equal pairs, however they came about.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from functools import cache
from typing import TypeAlias

Numbers: TypeAlias = "array[int]"

# Entries of a dictionary before an array is looked at: below, a dictionary takes less room.
FEW_MAX = 32

# Cells of an array for each entry that moves into it: 64 bytes, less than an entry takes.
CELLS_PER_ENTRY = 16


class Table:
    """
    >>> table = Table()
    >>> table[3] = 7
    >>> table[3], table[4], table.pairs()
    (7, 0, ((3, 7),))
    """

    __slots__ = ("_few", "_limit", "_many", "_shared")

    def __init__(self, shared: Numbers | None = None) -> None:
        self._few: dict[int, int] = {}
        self._many = array("I") if shared is None else shared
        self._shared = shared is not None
        # Entries of the dictionary at which it is time to look at the array again.
        self._limit = FEW_MAX + len(self._many) // 32

    def __getitem__(self, origin: int) -> int:
        number = self._few.get(origin)
        if number is not None:
            return number
        many = self._many
        return many[origin] if origin < len(many) else 0

    def __setitem__(self, origin: int, number: int) -> None:
        if origin < len(self._many):
            if not self._shared:
                self._put(origin, number)
                return
        elif not number:
            self._few.pop(origin, None)
            return
        self._few[origin] = number
        if len(self._few) > self._limit:
            self._gather()

    def _put(self, origin: int, number: int) -> None:
        try:
            self._many[origin] = number
        except OverflowError:
            # Four bytes end at four thousand million.
            self._many = array("Q", self._many)
            self._many[origin] = number

    def _gather(self) -> None:
        """Move what is dense enough from the dictionary into an array of one's own."""
        if self._shared:
            self._many, self._shared = self._many[:], False
        few = self._few
        top, size = len(self._many), len(self._many)
        for nth, origin in enumerate(sorted(few), 1):
            if origin < size + nth * CELLS_PER_ENTRY:
                top = max(top, origin + 1)
        self._many.extend([0] * (top - size))
        for origin in [origin for origin in few if origin < top]:
            self._put(origin, few.pop(origin))
        self._limit = max(FEW_MAX, 2 * len(few))

    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The origins with a number, growing, and their numbers."""
        few = self._few
        if not self._many:
            return tuple(sorted(few.items()))
        if self._shared and few:
            low = [(origin, few.get(origin, number)) for origin, number in enumerate(self._many)]
        else:
            low = list(enumerate(self._many))
        high = sorted(pair for pair in few.items() if pair[0] >= len(self._many))
        return (*(pair for pair in low if pair[1]), *high)

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, int]]) -> Table:
        table = cls()
        for origin, number in pairs:
            table[origin] = number
        return table


@cache
def ones(count: int) -> Numbers:
    """1 for each of so many origins, to be shared: no table changes it.

    >>> Table(ones(3)).pairs()
    ((0, 1), (1, 1), (2, 1))
    """
    return array("I", [1]) * count
