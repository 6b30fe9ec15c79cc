"""Rows with one end only, sorted by it: the answer is a slice.

`x <= 10`, `x <= 20`, `x <= 30` hold for 15 from the second on. Ends and keys are two lists side by
side; equal ends are sorted by key, so that a row is found by bisection whatever the others are.
Long lists are kept in chunks, or every insertion would move half of them.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from math import inf
from typing import Any

from inorder.content.index.row import Bounds, Row
from inorder.core.limits import INDEX_CHUNK_ROWS_MAX


class Ladder:
    """`upward` when the ends are lower ones (`x >= 10`): they hold for all points above."""

    __slots__ = ("_firsts", "_size", "_upward", "ends", "keys")

    def __init__(self, upward: bool) -> None:
        self._upward = upward
        self._size = 0
        self.ends: list[array[float]] = [array("d")]
        self.keys: list[array[int]] = [array("q")]
        # What chunk n+1 begins with, or began with: nothing in it is less, nothing before is more.
        self._firsts: list[tuple[float, float]] = []

    def __len__(self) -> int:
        return self._size

    def add(self, row: Row) -> None:
        self._insert(row.bounds[0], row.key)
        self._size += 1

    def drop(self, row: Row) -> None:
        self._delete(row.bounds[0], row.key)
        self._size -= 1

    def change(self, row: Row, bounds: Bounds) -> None:
        before, end, key = row.bounds[0], bounds[0], row.key
        row.bounds = bounds
        if self._firsts:
            self._delete(before, key)
            self._insert(end, key)
            return
        ends, keys = self.ends[0], self.keys[0]
        at = bisect_left(ends, before)
        if keys[at] != key:
            at = bisect_left(keys, key, at, bisect_right(ends, before, at))
        del ends[at], keys[at]
        at = bisect_left(ends, end)
        if at < len(ends) and ends[at] == end:
            at = bisect_left(keys, key, at, bisect_right(ends, end, at))
        ends.insert(at, end)
        keys.insert(at, key)

    def _insert(self, end: float, key: int) -> None:
        chunk = bisect_right(self._firsts, (end, key)) if self._firsts else 0
        ends, keys = self.ends[chunk], self.keys[chunk]
        at = bisect_left(ends, end)
        if at < len(ends) and ends[at] == end:
            at = bisect_left(keys, key, at, bisect_right(ends, end, at))
        ends.insert(at, end)
        keys.insert(at, key)
        if len(ends) > INDEX_CHUNK_ROWS_MAX:
            self._split(chunk)

    def _delete(self, end: float, key: int) -> None:
        chunk = bisect_right(self._firsts, (end, key)) if self._firsts else 0
        ends, keys = self.ends[chunk], self.keys[chunk]
        at = bisect_left(ends, end)
        if keys[at] != key:
            at = bisect_left(keys, key, at, bisect_right(ends, end, at))
        del ends[at], keys[at]
        if not ends and self._firsts:
            del self.ends[chunk], self.keys[chunk], self._firsts[max(chunk - 1, 0)]

    def _split(self, chunk: int) -> None:
        ends, keys = self.ends[chunk], self.keys[chunk]
        half = len(ends) // 2
        # One row may stand here twice, if two forms of it are equal; both stay in one chunk.
        while half < len(ends) and ends[half] == ends[half - 1] and keys[half] == keys[half - 1]:
            half += 1
        if half == len(ends):
            return
        self.ends.insert(chunk + 1, ends[half:])
        self.keys.insert(chunk + 1, keys[half:])
        self._firsts.insert(chunk, (ends[half], keys[half]))
        del ends[half:], keys[half:]

    def collect(self, lows: Sequence[Any], highs: Sequence[Any], found: list[int]) -> None:
        if self._upward:
            self.up_to(highs[0], found)
        else:
            self.from_on(lows[0], found)

    def up_to(self, point: float, found: list[int]) -> None:
        """The keys of all ends up to the point."""
        if not self._firsts:
            found += self.keys[0][: bisect_right(self.ends[0], point)].tolist()
            return
        chunk = bisect_right(self._firsts, (point, inf))
        for keys in self.keys[:chunk]:
            found += keys
        found += self.keys[chunk][: bisect_right(self.ends[chunk], point)]

    def from_on(self, point: float, found: list[int]) -> None:
        """The keys of all ends from the point on."""
        if not self._firsts:
            found += self.keys[0][bisect_left(self.ends[0], point) :].tolist()
            return
        chunk = bisect_left(self._firsts, (point, -inf))
        found += self.keys[chunk][bisect_left(self.ends[chunk], point) :]
        for keys in self.keys[chunk + 1 :]:
            found += keys
