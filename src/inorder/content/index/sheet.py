"""Rows with several ends: a column of floats for each end, the key in a column beside.

A row is at the same place in all columns; the last row fills the place of one that goes. A change
is as many writes as there are ends. Few rows are walked one by one; many are compared column by
column with NumPy, without copying: its arrays are views of the columns, given up before a column
grows or shrinks.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from inorder.content.index.row import Bounds, Row
from inorder.core.limits import INDEX_WALKED_ROWS_MAX


class Side(Struct, frozen=True, gc=False):
    """One end: of which of the ranged attributes, and whether it is the lower one."""

    attribute: int
    low: bool


class Sheet:
    """`sides` tells what the columns are."""

    __slots__ = ("_places", "_views", "columns", "keys", "rows", "sides")

    def __init__(self, sides: tuple[Side, ...]) -> None:
        self.sides = sides
        self._places: dict[Row, int] = {}
        self._views: tuple[Any, list[Any]] | None = None
        self.rows: list[Row] = []
        self.keys = array("q")
        self.columns = [array("d") for _ in sides]

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, row: Row) -> None:
        self._views = None
        self._places[row] = len(self.rows)
        self.rows.append(row)
        self.keys.append(row.key)
        for column, end in zip(self.columns, row.bounds, strict=True):
            column.append(end)

    def drop(self, row: Row) -> None:
        self._views = None
        at, last = self._places.pop(row), self.rows.pop()
        key = self.keys.pop()
        ends = [column.pop() for column in self.columns]
        if last is not row:
            self._places[last] = at
            self.rows[at] = last
            self.keys[at] = key
            for column, end in zip(self.columns, ends, strict=True):
                column[at] = end

    def write(self, row: Row, bounds: Bounds) -> None:
        at = self._places[row]
        for column, end in zip(self.columns, bounds, strict=True):
            column[at] = end

    def scan(self, lows: Sequence[Any], highs: Sequence[Any], found: list[int]) -> None:
        """Append the keys of the rows that hold the point, which lies between lows and highs."""
        if len(self.rows) <= INDEX_WALKED_ROWS_MAX or (views := self.views()) is None:
            self._walk(lows, highs, found)
            return
        keys, columns = views
        mask: Any = None
        for side, column in zip(self.sides, columns, strict=True):
            part = column <= highs[side.attribute] if side.low else column >= lows[side.attribute]
            if mask is None:
                mask = part
            else:
                mask &= part
        found += keys[mask].tolist()

    def _walk(self, lows: Sequence[Any], highs: Sequence[Any], found: list[int]) -> None:
        columns = self.columns
        if len(columns) == 2 and self.sides[0].attribute == self.sides[1].attribute:
            most, least = highs[0], lows[0]
            rows = zip(self.keys, *columns, strict=True)
            found += [key for key, low, high in rows if low <= most and high >= least]
            return
        left: Sequence[int] = range(len(self.rows))
        for side, column in zip(self.sides, columns, strict=True):
            if side.low:
                point = highs[side.attribute]
                left = [at for at in left if column[at] <= point]
            else:
                point = lows[side.attribute]
                left = [at for at in left if column[at] >= point]
        keys = self.keys
        found += [keys[at] for at in left]

    def views(self) -> tuple[Any, list[Any]] | None:
        """The keys and the columns as arrays, good until the next change; None without NumPy."""
        if self._views is None:
            try:
                import numpy as np
            except ImportError:
                return None
            arrays = [np.frombuffer(column, dtype=np.float64) for column in self.columns]
            self._views = np.frombuffer(self.keys, dtype=np.int64), arrays
        return self._views
