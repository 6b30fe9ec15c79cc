"""Small windows laid over cells: an event looks at one cell only.

A window stands in every cell it overlaps, along its first one or two attributes; cells are a few
times as wide as the median window, so that a window overlaps few of them and a small move mostly
keeps it in its cells. A window over too many cells stands apart and is looked at for every event.

A cell's number is `floor(x / size)`, which never falls as x grows: a point inside a window is in
one of the window's cells, whatever the rounding. A point too far out for a number has no cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import isfinite
from statistics import median
from typing import Any

from inorder.content.index.row import Bounds, Row
from inorder.content.index.sheet import Sheet, Side
from inorder.core.limits import (
    INDEX_CELLS_PER_ROW_MAX,
    INDEX_GRID_ROWS_MIN,
    INDEX_SAMPLE_ROWS,
    INDEX_WIDE_SHARE_MAX,
)

CELL_PER_WINDOW = 4.0  # smaller cells hold fewer rows that do not match, and rows stand in more
_DRIFT = 4.0  # cells this many times too large or too small are made anew
_CELLS_MIN = 16  # windows that crowd into fewer cells gain nothing
_FAR = 2.0**52  # beyond this, cell numbers are no whole numbers any more


class Grid:
    """`sizes` are the edges of a cell, one or two; the windows' sides come first."""

    __slots__ = ("_cells", "_scales", "_sides", "sizes", "wide")

    def __init__(self, sizes: tuple[float, ...], sides: tuple[Side, ...]) -> None:
        self.sizes = sizes
        self.wide = Sheet(sides)
        self._scales = tuple(1 / size for size in sizes)
        self._sides = sides
        self._cells: dict[tuple[float, ...], Sheet] = {}

    def add(self, row: Row) -> None:
        row.corners = self.corners(row.bounds)
        row.cells = self._cells_at(row.corners)
        for cell in row.cells:
            cell.add(row)

    def drop(self, row: Row) -> None:
        cells, row.cells = row.cells, ()
        for cell in cells:
            cell.drop(row)
        self._forget(row.corners, cells)

    def change(self, row: Row, bounds: Bounds) -> None:
        row.bounds = bounds
        corners = self.corners(bounds)
        if corners == row.corners:
            for cell in row.cells:
                cell.write(row, bounds)
            return
        self.drop(row)
        self.add(row)

    def corners(self, bounds: Bounds) -> Bounds:
        """The numbers of the first and the last cell of a window, along each attribute."""
        if len(self._scales) == 1:
            (x,) = self._scales
            return bounds[0] * x // 1, bounds[1] * x // 1
        x, y = self._scales
        return bounds[0] * x // 1, bounds[1] * x // 1, bounds[2] * y // 1, bounds[3] * y // 1

    def _cells_at(self, corners: Bounds) -> tuple[Sheet, ...]:
        numbers = numbers_of(corners)
        if numbers is None:
            return (self.wide,)
        cells: list[Sheet] = []
        for number in numbers:
            cell = self._cells.get(number)
            if cell is None:
                cell = self._cells[number] = Sheet(self._sides)
            cells.append(cell)
        return tuple(cells)

    def _forget(self, corners: Bounds, cells: tuple[Sheet, ...]) -> None:
        """Empty cells go, or windows that wander would leave ever more of them."""
        if all(map(len, cells)):
            return
        for number, cell in zip(numbers_of(corners) or (), cells, strict=False):
            if not len(cell):
                del self._cells[number]

    def collect(self, point: Sequence[Any], found: list[int]) -> None:
        if len(self._scales) == 2:
            x, y = self._scales
            cell = self._cells.get((point[0] * x // 1, point[1] * y // 1))
        else:
            cell = self._cells.get((point[0] * self._scales[0] // 1,))
        if cell is not None:
            cell.scan(point, point, found)
        if len(self.wide):
            self.wide.scan(point, point, found)

    def suits(self, sizes: tuple[float, ...]) -> bool:
        """Whether a grid of these sizes would not be much better."""
        pairs = zip(sizes, self.sizes, strict=True)
        return all(1 / _DRIFT <= wanted / size <= _DRIFT for wanted, size in pairs)


def numbers_of(corners: Bounds) -> list[tuple[float, ...]] | None:
    """The numbers of the cells between the corners; None when there are too many, or none."""
    across = _between(*corners[:2])
    along = None if across is None or len(corners) == 2 else _between(*corners[2:])
    if across is None or (along is None and len(corners) > 2):
        return None
    if along is None:
        return [(number,) for number in across]
    if len(across) * len(along) > INDEX_CELLS_PER_ROW_MAX:
        return None
    return list(product(across, along))


def _between(first: float, last: float) -> list[float] | None:
    if not (last - first < INDEX_CELLS_PER_ROW_MAX and -_FAR < first <= last < _FAR):
        return None
    return [first + step for step in range(int(last - first) + 1)]


def cell_sizes(rows: Sequence[Row], windows: int) -> tuple[float, ...] | None:
    """What cells these windows are worth; None when scanning the columns is better.

    A sample decides: rows at even distances, for there is no chance here.
    """
    if not windows or len(rows) < INDEX_GRID_ROWS_MIN:
        return None
    sample = [row.bounds for row in rows[:: max(1, len(rows) // INDEX_SAMPLE_ROWS)]]
    sizes: list[float] = []
    for first in range(0, 2 * min(windows, 2), 2):
        size = median(ends[first + 1] - ends[first] for ends in sample) * CELL_PER_WINDOW
        if not (isfinite(size) and size > 0 and isfinite(1 / size)):
            return None
        sizes.append(size)
    trial = Grid(tuple(sizes), ())
    numbers = [numbers_of(trial.corners(ends)) for ends in sample]
    wide = sum(one is None for one in numbers)
    starts = {one[0] for one in numbers if one is not None}
    if wide > INDEX_WIDE_SHARE_MAX * len(sample) or len(starts) < _CELLS_MIN:
        return None
    return tuple(sizes)
