"""A grid of square cells, and which of them belong to an event or to a filter.

With cells of 10, the event `x = 12, y = 31` is in cell (1, 3). The filter
`x BETWEEN 5 AND 14 AND y < 10 AND y >= 0` needs the cells (0, 0) and (1, 0).

Rule 1: an event has the numbers `x` and `y`: a point. With `x_to` and `y_to`, the opposite corner,
        it is an area, and in all cells that the area meets.
Rule 2: the cells of a filter are enough: of the cells of every event that matches, one is among
        them. They may be more than enough, where the filter has other tests or ragged sets.
Rule 3: with bounds, cells at the edge reach on for ever: every point has a cell, and a filter that
        leaves a side open needs all cells up to the edge. Without bounds, such a filter is refused.

Theory. A column is found by comparing with the lines between columns, never by dividing alone: so
`x < 10` needs nothing of the column that begins with 10, whatever floats round to. For areas there
are three ways to be sure of a column: that of `x`, that of `x_to` (corners are always in), and
those between the least `x_to` and the greatest `x` that match: an area that begins before the one
and ends behind the other meets all that lies between. The fewest columns are taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil, floor, inf, isfinite
from typing import Any

from msgspec import Struct

from inorder.content.box import Box
from inorder.content.cuts import Cut
from inorder.content.slot import Slot
from inorder.core.errors import Misuse, TooLarge
from inorder.core.limits import CUBE_CELL_INDEX_MAX, CUBE_CELLS_MAX, CUBE_COPIES_MAX

Cell = tuple[int, int]

# Columns or rows from the first to the last one.
Span = tuple[int, int]

# The attributes of places: each side, and where an area's other corner stands.
SIDES = (("x", "x_to"), ("y", "y_to"))


class Grid(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[network.cube.cells]`.

    >>> grid = Grid(size=10.0)
    >>> grid.cells_of({"x": 12, "y": -0.5}), grid.cells_of({"x": 8, "y": 1, "x_to": 21, "y_to": 2})
    ([(1, -1)], [(0, 0), (1, 0), (2, 0)])
    """

    # The side of a cell.
    size: float
    # Where the grid begins and ends: x, y, x, y. Without, it begins at 0, 0 and has no end.
    bounds: tuple[float, float, float, float] | None = None

    def trouble(self) -> str | None:
        """Why this is no grid, if so."""
        if not (isfinite(self.size) and self.size > 0.0):
            return f"size {self.size:g} is no side of a cell"
        for low, high in () if self.bounds is None else (self._ends(0), self._ends(1)):
            if not (isfinite(low) and isfinite(high) and low < high):
                return f"bounds from {low:g} to {high:g} hold nothing"
            if max(abs(low), abs(high)) > self.size * CUBE_CELL_INDEX_MAX:
                return f"size {self.size:g} is too small for bounds from {low:g} to {high:g}"
        return None

    def cells_of(self, value: Mapping[str, Any]) -> list[Cell]:
        """The cells of an event, that of its point (`x`, `y`) first."""
        far = [name for _, name in SIDES if value.get(name) is not None]
        if len(far) == 1:
            names = " and ".join(name for _, name in SIDES)
            raise Misuse(f"an event with an area has {names}, not only {far[0]}")
        spans: list[Span] = []
        for side, (start, end) in enumerate(SIDES):
            first = self._of_number(side, start, value)
            spans.append((first, self._of_number(side, end, value) if far else first))
        (left, right), (low, high) = spans
        if (count := (abs(right - left) + 1) * (abs(high - low) + 1)) > CUBE_COPIES_MAX:
            raise TooLarge("cells of an event", count, CUBE_COPIES_MAX)
        return [(column, row) for column in _walk(left, right) for row in _walk(low, high)]

    def cells_for(self, boxes: Iterable[Box]) -> list[Cell]:
        """The cells that a filter with these boxes needs, growing."""
        found: dict[Cell, None] = {}
        for box in boxes:
            wide, high = self._needed(0, box), self._needed(1, box)
            if (count := _length(wide) * _length(high)) > CUBE_CELLS_MAX:
                raise TooLarge("cells of a subscription", count, CUBE_CELLS_MAX)
            found.update(
                ((column, row), None)
                for columns in wide
                for column in _walk(*columns)
                for rows in high
                for row in _walk(*rows)
            )
        if len(found) > CUBE_CELLS_MAX:
            raise TooLarge("cells of a subscription", len(found), CUBE_CELLS_MAX)
        return sorted(found)

    # One side: columns, or rows.

    def _ends(self, side: int) -> tuple[float, float]:
        return (0.0, inf) if self.bounds is None else (self.bounds[side], self.bounds[side + 2])

    def _of_number(self, side: int, name: str, value: Mapping[str, Any]) -> int:
        number = value.get(name)
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise Misuse(f"an event on a grid of cells needs a number {name}, not {number!r}")
        if number != number or abs(number) == inf:
            raise Misuse(f"{name} is {number}, which is nowhere")
        return self._index(side, number)

    def _index(self, side: int, number: int | float) -> int:
        """The column of a number."""
        origin, end = self._ends(side)
        if self.bounds is not None:
            last = ceil((end - origin) / self.size) - 1
            if number < self._line(side, 1):
                return 0
            if number >= self._line(side, last):
                return last
        elif not abs(number) < (far := self.size * CUBE_CELL_INDEX_MAX):
            raise Misuse(f"beyond {far:g} is too far from 0 for cells of {self.size:g}")
        index = floor((number - origin) / self.size)
        while number < self._line(side, index):
            index -= 1
        while number >= self._line(side, index + 1):
            index += 1
        return index

    def _line(self, side: int, index: int) -> float:
        """Where a column begins."""
        return self._ends(side)[0] + index * self.size

    def _needed(self, side: int, box: Box) -> list[Span]:
        """Columns of which each event in the box is in one: apart, and growing."""
        name, far_name = SIDES[side]
        near, far = box.slot(name), box.slot(far_name)
        if near.state in ("absent", "truth", "text") or far.state in ("truth", "text"):
            return []
        choices = [self._of_slot(side, near)]
        if far.state == "number":
            choices += [self._of_slot(side, far), self._between(side, far, near)]
        closed = [each for each in choices if each is not None]
        if not closed:
            problem = f"a filter on a grid of cells without bounds must say how far {name} reaches"
            raise Misuse(f"{problem}, below and above")
        return min(closed, key=_length)

    def _of_slot(self, side: int, slot: Slot) -> list[Span] | None:
        """The columns of what is in the slot; None if they have no end."""
        spans: list[Span] = []
        for low, high in _pieces(slot):
            first, last = self._first(side, low), self._last(side, high)
            if first is None or last is None:
                return None
            first = max(first, spans[-1][1] + 1) if spans else first
            if first <= last:
                spans.append((first, last))
        return spans

    def _between(self, side: int, far: Slot, near: Slot) -> list[Span] | None:
        """The columns from the least of one slot to the greatest of the other."""
        first = self._first(side, _pieces(far)[0][0])
        last = self._last(side, _pieces(near)[-1][1])
        return None if first is None or last is None else [(min(first, last), last)]

    def _first(self, side: int, low: Cut | None) -> int | None:
        if low is None and self.bounds is None:
            return None
        return self._index(side, -inf if low is None else _number(low))

    def _last(self, side: int, high: Cut | None) -> int | None:
        if high is None and self.bounds is None:
            return None
        number = inf if high is None else _number(high)
        index = self._index(side, number)
        if high is not None and high[1] < 0 and number == self._line(side, index):
            # The column begins with what is just outside. What is below all bounds is in the first.
            return index - 1 if self.bounds is None else max(index - 1, 0)
        return index


def _pieces(slot: Slot) -> list[tuple[Cut | None, Cut | None]]:
    """From where to where the numbers in a slot go; None: for ever.

    >>> _pieces(Slot("number", ((1, -1), (2, 1), (5, 1)))), _pieces(Slot("any"))
    ([((1, -1), (2, 1)), ((5, 1), None)], [(None, None)])
    """
    if slot.state != "number":
        return [(None, None)]
    ends: list[Cut | None] = [None if abs(_number(cut)) == inf else cut for cut in slot.cuts]
    if len(ends) % 2:
        ends.append(None)
    return list(zip(ends[::2], ends[1::2], strict=True))


def _number(cut: Cut) -> int | float:
    number = cut[0]
    assert isinstance(number, int | float)
    return number


def _walk(first: int, last: int) -> range:
    return range(first, last + 1) if first <= last else range(first, last - 1, -1)


def _length(spans: Sequence[Span]) -> int:
    return sum(last - first + 1 for first, last in spans)
