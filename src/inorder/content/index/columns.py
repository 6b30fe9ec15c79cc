"""A bucket of rows with several ends: a sheet, and a grid over it where windows are small.

Whether a grid is worth it is asked every so many operations, and never while matching. Under a grid
the sheet is needed rarely (for batches, and numbers between two floats), so that changes of values
reach it only then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inorder.content.index.grid import Grid, cell_sizes
from inorder.content.index.row import Bounds, Row
from inorder.content.index.sheet import Sheet, Side
from inorder.core.limits import INDEX_REVIEW_OPERATIONS


class Columns:
    """The first `windows` attributes have both ends: their columns come first, low then high."""

    __slots__ = ("_operations", "_sheet", "_stale", "_windows", "grid")

    def __init__(self, sides: tuple[Side, ...], windows: int) -> None:
        self._windows = windows
        self._operations = 0
        self._sheet = Sheet(sides)
        self._stale: dict[Row, None] = {}  # rows whose ends the sheet does not have yet
        self.grid: Grid | None = None

    def __len__(self) -> int:
        return len(self._sheet)

    @property
    def sheet(self) -> Sheet:
        for row in self._stale:
            self._sheet.write(row, row.bounds)
        self._stale.clear()
        return self._sheet

    def add(self, row: Row) -> None:
        self._sheet.add(row)
        if self.grid is not None:
            self.grid.add(row)
        self._count()

    def drop(self, row: Row) -> None:
        self._sheet.drop(row)
        self._stale.pop(row, None)
        if self.grid is not None:
            self.grid.drop(row)
        self._count()

    def change(self, row: Row, bounds: Bounds) -> None:
        if self.grid is None:
            self._sheet.write(row, bounds)
            row.bounds = bounds
        else:
            self.grid.change(row, bounds)
            self._stale[row] = None
        self._operations += 1
        if self._operations >= INDEX_REVIEW_OPERATIONS:
            self._operations = 0
            self.review()

    def _count(self) -> None:
        self._operations += 1
        if self._operations >= INDEX_REVIEW_OPERATIONS:
            self._operations = 0
            self.review()

    def review(self) -> None:
        """Build, rebuild or give up the grid, as the windows are now."""
        sheet = self.sheet
        sizes = cell_sizes(sheet.rows, self._windows)
        if sizes is None:
            if self.grid is not None:
                for row in sheet.rows:
                    row.cells = ()
            self.grid = None
        elif self.grid is None or not self.grid.suits(sizes):
            self.grid = Grid(sizes, sheet.sides)
            for row in sheet.rows:
                self.grid.add(row)

    def collect(self, lows: Sequence[Any], highs: Sequence[Any], found: list[int]) -> None:
        if self.grid is not None and lows is highs:
            self.grid.collect(lows, found)
        else:
            self.sheet.scan(lows, highs, found)
