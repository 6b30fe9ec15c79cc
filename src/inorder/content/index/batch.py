"""Many events at once: the index laid out in arrays, and no loop over events.

For every block: its buckets stand one behind the other in long arrays, with the place where each
begins. The events' spots are looked up, so each event has a stretch of rows. A ladder narrows the
stretch by bisecting all of them together; other buckets compare each row of each stretch. The
layout is kept until the block changes. What boxes decide is decided event by event.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from inorder.content.index.block import Block, holds
from inorder.content.index.columns import Columns
from inorder.content.index.layout import Cells, Floats, Ints, crossed, stretched
from inorder.content.index.sheet import Sheet
from inorder.content.index.table import Mask, Table

Pairs = tuple[Ints, Ints]
Match = Callable[[Mapping[str, Any]], list[int]]

_CROSSED_ROWS_MIN = 256  # longer buckets are compared whole, without laying out pairs first


class Layout:
    """A block's buckets as arrays."""

    def __init__(self, block: Block) -> None:
        plan = block.plan
        buckets = block.buckets
        self.large: list[tuple[int, Sheet, Cells | None]] = []
        self.spots: dict[Any, int] = {spot: code for code, spot in enumerate(buckets)}
        self.sizes: Ints = np.fromiter(map(len, buckets.values()), np.int64, len(buckets))
        self.columns: list[Floats] = []
        if not plan.sides:
            self.keys: Ints = _ints(chain.from_iterable(map(dict.values, buckets.values())))
        elif len(plan.sides) == 1:
            ladders = list(buckets.values())
            self.keys = _ints(chain.from_iterable(k for one in ladders for k in one.keys))
            ends = chain.from_iterable(e for one in ladders for e in one.ends)
            self.columns = [np.append(np.fromiter(ends, np.float64), np.inf)]
        else:
            self._lay_columns(list(buckets.values()))
        self.starts: Ints = np.concatenate(([0], np.cumsum(self.sizes)[:-1]))

    def _lay_columns(self, buckets: list[Columns]) -> None:
        small: list[Columns] = []
        for code, bucket in enumerate(buckets):
            if len(bucket) < _CROSSED_ROWS_MIN:
                small.append(bucket)
                continue
            self.sizes[code] = 0
            grid = bucket.grid
            cells = None if grid is None else Cells(bucket.sheet, grid.sizes)
            self.large.append((code, bucket.sheet, cells))
        views = [bucket.sheet.views() for bucket in small]
        self.keys = np.concatenate([_NONE, *(view[0] for view in views if view)])
        ends = len(buckets[0].sheet.columns) if buckets else 0
        for side in range(ends):
            parts = [view[1][side] for view in views if view]
            self.columns.append(np.concatenate([np.empty(0), *parts]))


_NONE: Ints = np.empty(0, np.int64)


def _ints(keys: Any) -> Ints:
    return np.fromiter(keys, np.int64)


def match_batch(
    blocks: Sequence[Block], several: Sequence[int], columns: Mapping[str, Any], match: Match
) -> Pairs:
    """The pairs of event and key; `several` are the keys that may be found more than once."""
    table = Table(columns)
    rough = _rough(blocks, table)
    found: list[Pairs] = []
    for block in blocks:
        found += _match_block(block, table, rough)
    if rough is not None:
        for place in np.flatnonzero(rough).tolist():
            keys = _ints(match(table.event(place)))
            found.append((np.full(len(keys), place, np.int64), keys))
    places = np.concatenate([_NONE, *(pair[0] for pair in found)])
    keys = np.concatenate([_NONE, *(pair[1] for pair in found)])
    return _once(places, keys, several) if several else (places, keys)


def _rough(blocks: Sequence[Block], table: Table) -> Mask | None:
    """The events whose numbers floats cannot say, in an attribute with a range."""
    rough: Mask | None = None
    for name in sorted({name for block in blocks for name in block.plan.ranged}):
        column = table.column(name)
        part = None if column is None else column.numbers()[1]
        if part is not None:
            rough = part if rough is None else rough | part
    return rough


def _once(places: Ints, keys: Ints, several: Sequence[int]) -> Pairs:
    """Pairs of keys with several forms may have been found twice."""
    twice = np.isin(keys, np.array(several, np.int64))
    if not twice.any():
        return places, keys
    pairs = np.unique(np.stack((places[twice], keys[twice])), axis=1)
    return np.append(places[~twice], pairs[0]), np.append(keys[~twice], pairs[1])


def _match_block(block: Block, table: Table, rough: Mask | None) -> list[Pairs]:
    found: list[Pairs] = []
    if block.beside or block.apart:
        found.append(_decided(block, table, rough))
    if not block.buckets:
        return found
    if block.snapshot is None:
        block.snapshot = Layout(block)
    layout: Layout = block.snapshot
    plan = block.plan
    codes = _codes(block, layout, table)
    numbers: list[Floats] = []
    kept = codes >= 0
    for name in plan.ranged:
        column = table.column(name)
        if column is None:
            return found
        numbers.append(column.numbers()[0])
        kept &= ~np.isnan(numbers[-1])
    if rough is not None:
        kept &= ~rough
    places = np.flatnonzero(kept)
    codes, points = codes[places], [floats[places] for floats in numbers]
    for code, sheet, cells in layout.large:
        here = np.flatnonzero(codes == code)
        inside = [floats[here] for floats in points]
        views = sheet.views()
        assert views is not None, "NumPy is here"
        for events, rows in (crossed if cells is None else cells.crossed)(
            plan.sides, views[1], inside
        ):
            found.append((places[here[events]], views[0][rows]))
    starts, counts = layout.starts[codes], layout.sizes[codes]
    if len(plan.sides) == 1:
        starts, counts = _narrowed(layout, starts, counts, points[0], plan.sides[0].low)
    columns = layout.columns if len(plan.sides) > 1 else []
    for events, rows in stretched(starts, counts, plan.sides, columns, points):
        found.append((places[events], layout.keys[rows]))
    return found


def _codes(block: Block, layout: Layout, table: Table) -> Ints:
    """For each event the bucket it looks at, -1 for none."""
    plan = block.plan
    if not plan.hashed:
        return np.full(table.size, layout.spots.get((), -1), np.int64)
    columns = [table.column(name) for name in plan.hashed]
    known = [column for column in columns if column is not None]
    if len(known) < len(columns):
        return np.full(table.size, -1, np.int64)
    if len(known) == 1:
        return known[0].found_in(layout.spots, plan.whole[0])
    parts = [column.hashed(whole) for column, whole in zip(known, plan.whole, strict=True)]
    get = layout.spots.get
    return np.fromiter((get(spot, -1) for spot in zip(*parts, strict=True)), np.int64, table.size)


def _narrowed(
    layout: Layout, starts: Ints, counts: Ints, points: Floats, low: bool
) -> tuple[Ints, Ints]:
    """Bisect all stretches of a ladder at once: what is left of each."""
    (ends,) = layout.columns
    first, last = starts.copy(), starts + counts
    compare = np.less_equal if low else np.less
    for _ in range(int(counts.max(initial=0)).bit_length()):
        middle = (first + last) >> 1
        right = compare(ends[middle], points) & (first < last)
        first = np.where(right, middle + 1, first)
        last = np.where(right, last, middle)
    return (starts, first - starts) if low else (first, starts + counts - first)


def _decided(block: Block, table: Table, rough: Mask | None) -> Pairs:
    """What boxes decide, event by event."""
    places: list[int] = []
    keys: list[int] = []
    for place in range(table.size):
        if rough is not None and rough[place]:
            continue
        event = table.event(place)
        for row in block.standing_beside(block.plan.spot_of(event)):
            if holds(row, event):
                places.append(place)
                keys.append(row.key)
    return _ints(places), _ints(keys)
