"""Pairs of events and rows, compared by the million: the arithmetic of batches.

A stretch is a run of rows that one event looks at. `stretched` lays the pairs of many short
stretches out and compares them; `crossed` compares many events with one long bucket; `Cells` finds,
in a bucket with a grid, the short stretches again. All work through bounded portions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inorder.content.index.sheet import Sheet, Side
from inorder.core.limits import INDEX_BATCH_PAIRS_MAX, INDEX_CELLS_PER_ROW_MAX

_FINER = 3.0  # laying rows out in more cells costs little here, comparing pairs costs more

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def stretched(
    starts: Ints,
    counts: Ints,
    sides: Sequence[Side],
    columns: Sequence[Floats],
    points: Sequence[Floats],
    rows: Ints | None = None,
) -> Iterator[tuple[Ints, Ints]]:
    """The pairs whose every column holds the point; `rows`, if given, is what the stretches hold.

    Without columns, every pair there is.
    """
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    for portion in _portions(ends, total):
        here = slice(*portion)
        size = counts[here]
        events = np.repeat(np.arange(*portion, dtype=np.int64), size)
        shift = starts[here] - (ends[here] - size - (ends[portion[0]] - size[0]))
        at = np.repeat(shift, size)
        at += np.arange(len(at), dtype=np.int64)
        if rows is not None:
            at = rows[at]
        for side, column in zip(sides, columns, strict=False):
            end, point = column[at], points[side.attribute][events]
            kept = np.flatnonzero(end <= point if side.low else end >= point)
            events, at = events[kept], at[kept]
        yield events, at


def _portions(ends: Ints, total: int) -> Iterator[tuple[int, int]]:
    """Runs of events with about as many pairs as may be laid out at once."""
    first = 0
    while first < len(ends):
        done = int(ends[first - 1]) if first else 0
        if total - done <= INDEX_BATCH_PAIRS_MAX:
            last = len(ends)
        else:
            last = int(np.searchsorted(ends, done + INDEX_BATCH_PAIRS_MAX, side="right"))
            last = max(last, first + 1)
        yield first, last
        first = last


def crossed(
    sides: Sequence[Side], columns: Sequence[Floats], points: Sequence[Floats]
) -> Iterator[tuple[Ints, Ints]]:
    """Every event with every row of a bucket."""
    rows, events = len(columns[0]), len(points[0])
    step = max(1, INDEX_BATCH_PAIRS_MAX // rows)
    for first in range(0, events, step):
        mask: Any = None
        for side, column in zip(sides, columns, strict=True):
            point = points[side.attribute][first : first + step, None]
            part = column[None, :] <= point if side.low else column[None, :] >= point
            mask = part if mask is None else np.logical_and(mask, part, out=mask)
        found = np.nonzero(mask)
        yield found[0] + first, found[1]


class Cells:
    """The rows of a bucket by cells, finer than those of its grid.

    A row stands in every cell it overlaps; those over too many of them are crossed.
    """

    def __init__(self, sheet: Sheet, sizes: Sequence[float]) -> None:
        views = sheet.views()
        assert views is not None, "NumPy is here"
        self._scales = [_FINER / size for size in sizes]
        firsts, counts = [], []
        self._narrow = np.ones(len(sheet), dtype=bool)
        with np.errstate(all="ignore"):
            for turn, scale in enumerate(self._scales):
                low, high = (np.floor(views[1][2 * turn + end] * scale) for end in (0, 1))
                span = high - low
                self._narrow &= (span >= 0) & (span < INDEX_CELLS_PER_ROW_MAX)
                self._narrow &= (low > -(2.0**52)) & (high < 2.0**52)
                firsts.append(low)
                counts.append(span + 1)
        narrow = np.flatnonzero(self._narrow)
        self._wide = np.flatnonzero(~self._narrow)
        numbers = [first[narrow].astype(np.int64) for first in firsts]
        spans = [count[narrow].astype(np.int64) for count in counts]
        self._lay(narrow, numbers, spans)

    def _lay(self, rows: Ints, numbers: list[Ints], spans: list[Ints]) -> None:
        """Repeat each row for each of its cells, and sort by cell."""
        for turn in range(len(spans)):
            span = spans[turn]
            of = np.repeat(np.arange(len(rows)), span)
            step = np.arange(len(of)) - np.repeat(np.cumsum(span) - span, span)
            rows = rows[of]
            numbers, spans = [one[of] for one in numbers], [one[of] for one in spans]
            numbers[turn] += step
        self._axes = [np.unique(number) for number in numbers]
        codes = np.zeros(len(rows), np.int64)
        for axis, number in zip(self._axes, numbers, strict=True):
            codes = codes * len(axis) + np.searchsorted(axis, number)
        order = np.argsort(codes, kind="stable")
        self._rows = rows[order]
        self._cells, self._starts, self._sizes = np.unique(
            codes[order], return_index=True, return_counts=True
        )

    def crossed(
        self, sides: Sequence[Side], columns: Sequence[Floats], points: Sequence[Floats]
    ) -> Iterator[tuple[Ints, Ints]]:
        if len(self._wide):
            wide = [column[self._wide] for column in columns]
            for events, rows in crossed(sides, wide, points):
                yield events, self._wide[rows]
        codes = np.zeros(len(points[0]), np.int64)
        known = np.ones(len(codes), dtype=bool)
        for axis, scale, floats in zip(self._axes, self._scales, points, strict=False):
            if not len(axis):
                return
            with np.errstate(all="ignore"):
                number = np.floor(floats * scale)
            at = np.minimum(np.searchsorted(axis, number), len(axis) - 1)
            known &= axis[at] == number
            codes = codes * len(axis) + at
        at = np.minimum(np.searchsorted(self._cells, codes), len(self._cells) - 1)
        known &= self._cells[at] == codes
        events = np.flatnonzero(known)
        starts, sizes = self._starts[at[events]], self._sizes[at[events]]
        inside = [floats[events] for floats in points]
        for found, rows in stretched(starts, sizes, sides, columns, inside, self._rows):
            yield events[found], rows
