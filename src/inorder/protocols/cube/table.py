"""A number for each peer: 0 until something is known, shared until something is changed.

In a preset cube of 4,096 peers each peer knows of every other one that it is in its first session:
one array, which all of them share and none of them changes, says that for all. When every peer
publishes, each has a number of its own at every peer: 16.7 million, which dictionaries would keep
in 1.7 GB and arrays keep in 134 MB.

Rule 1: what differs from the shared numbers is kept in a dictionary while that is little, in an
        array of its own from then on.
Rule 2: equal tables have equal snapshots, however they came about.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from typing import TypeAlias

# Entries in a dictionary before an array takes less room.
FEW_MAX = 64

Shared: TypeAlias = "array[int]"


def shared(count: int, members: int, number: int) -> Shared:
    """One number for all the members (a bit mask), 0 for the others."""
    return array("Q", (number if members >> peer & 1 else 0 for peer in range(count)))


class Table:
    """
    >>> table = Table(8)
    >>> table[3] = 7
    >>> table[3], table[4], table.packed()
    (7, 0, [(3, 7)])
    """

    __slots__ = ("_count", "_few", "_many", "_shared")

    def __init__(self, count: int, shared: Shared | None = None) -> None:
        self._count = count
        self._shared = shared
        self._few: dict[int, int] = {}
        self._many: Shared | None = None

    def __getitem__(self, peer: int) -> int:
        if self._many is not None:
            return self._many[peer]
        number = self._few.get(peer)
        if number is not None:
            return number
        return self._shared[peer] if self._shared is not None else 0

    def __setitem__(self, peer: int, number: int) -> None:
        if self._many is not None:
            self._many[peer] = number
            return
        self._few[peer] = number
        if len(self._few) > FEW_MAX + self._count // 32:
            self._many = array("Q", self)
            self._shared, self._few = None, {}

    def __iter__(self) -> Iterator[int]:
        return (self[peer] for peer in range(self._count))

    def packed(self) -> list[tuple[int, int]]:
        """The peers with a number, and their numbers."""
        if self._shared is None and self._many is None:
            return [(peer, self._few[peer]) for peer in sorted(self._few) if self._few[peer]]
        return [(peer, number) for peer, number in enumerate(self) if number]

    @classmethod
    def unpacked(cls, count: int, pairs: Iterable[tuple[int, int]]) -> Table:
        table = cls(count)
        for peer, number in pairs:
            table[peer] = number
        return table
