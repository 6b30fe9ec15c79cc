"""All forms of one skeleton: buckets by the values of its equalities, and what stands beside.

What kind a bucket is follows from the ends of the ranges: none, and it holds keys; one, and it is a
ladder; more, and it is columns. Forms that boxes decide stand beside the buckets under the same
values, or, if their sets are too large, apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from inorder.content.index.columns import Columns
from inorder.content.index.ends import EXACT, Spot, reach
from inorder.content.index.ladder import Ladder
from inorder.content.index.plan import Placement, Plan
from inorder.content.index.row import Bounds, Bucket, Row
from inorder.content.skeleton import Vector


class Keys(dict[Row, int]):
    """A bucket without ranges: every row in it matches."""

    __slots__ = ()

    def add(self, row: Row) -> None:
        self[row] = row.key

    def drop(self, row: Row) -> None:
        del self[row]

    def change(self, row: Row, bounds: Bounds) -> None:
        """There is nothing to change."""

    def collect(self, lows: Sequence[Any], highs: Sequence[Any], found: list[int]) -> None:
        found += self.values()


class Block:
    """`collect` appends what matches; it returns whether some keys must be looked at again."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.buckets: dict[Spot, Any] = {}
        self.beside: dict[Spot, dict[Row, None]] = {}
        self.apart: dict[Row, None] = {}
        self.snapshot: Any = None  # what the batches keep of it, until something changes
        self._size = 0
        self._bounds_of = plan.bounds_of
        self._equal_places = plan.equal_places
        self._set_places = plan.set_places
        self.collect: Callable[[Mapping[str, Any], list[int]], bool] = self._collect_several
        if len(plan.sides) == 0:
            self.collect = self._collect_all
        elif len(plan.sides) == 1:
            self.collect = self._collect_slice

    def __len__(self) -> int:
        return self._size

    def reset(self, row: Row, vector: Vector) -> None:
        """Give a form other values. Most changes leave it in its bucket: they are made at once."""
        bucket = row.bucket
        if bucket is not None and self._same_spot(row.vector, vector):
            bounds = self._bounds_of(vector)
            if bounds is not None:
                bucket.change(row, bounds)
                for twin in row.twins:
                    assert twin.bucket is not None, "twins stand where the first stands"
                    twin.bucket.change(twin, bounds)
                row.vector = vector
                self.snapshot = None
                return
        self.move(row, vector, self.plan.place(vector))

    def _same_spot(self, before: Vector, after: Vector) -> bool:
        for place in self._equal_places:
            a, b = before[place], after[place]
            if a is not b and (type(a) is not type(b) or a != b):
                return False
        # A set may hold 1 here and True there: not compared.
        return not self._set_places or all(before[p] is after[p] for p in self._set_places)

    def move(self, row: Row, vector: Vector, placement: Placement) -> None:
        self.take(row)
        row.vector = vector
        self.put(row, placement)

    def put(self, row: Row, placement: Placement) -> None:
        self.snapshot = None
        self._size += 1
        spots = placement.spots
        if spots is None:
            row.boxes = placement.boxes
            self.apart[row] = None
            return
        if not spots:
            return
        row.twins = tuple(Row(row.key, self, row.vector) for _ in spots[1:])
        for one, spot in zip((row, *row.twins), spots, strict=True):
            one.spot, one.bounds, one.boxes = spot, placement.bounds, placement.boxes
            if one.boxes:
                self.beside.setdefault(spot, {})[one] = None
                continue
            bucket = self.buckets.get(spot)
            if bucket is None:
                bucket = self.buckets[spot] = self._bucket()
            bucket.add(one)
            one.bucket = bucket

    def take(self, row: Row) -> None:
        self.snapshot = None
        self._size -= 1
        for one in (row, *row.twins):
            if one.bucket is not None:
                one.bucket.drop(one)
                if not len(one.bucket):
                    del self.buckets[one.spot]
                one.bucket = None
            elif one in self.apart:
                del self.apart[one]
            elif one.boxes:
                rows = self.beside[one.spot]
                del rows[one]
                if not rows:
                    del self.beside[one.spot]
            one.boxes = ()
        row.twins = ()

    def _bucket(self) -> Bucket:
        sides = self.plan.sides
        if not sides:
            return Keys()
        return Ladder(sides[0].low) if len(sides) == 1 else Columns(sides, self.plan.windows)

    def _collect_all(self, attributes: Mapping[str, Any], found: list[int]) -> bool:
        spot = self.plan.spot_of(attributes)
        bucket = self.buckets.get(spot)
        if bucket is not None:
            found += bucket.values()
        if self.beside or self.apart:
            self._collect_beside(spot, attributes, found)
        return False

    def _collect_slice(self, attributes: Mapping[str, Any], found: list[int]) -> bool:
        plan = self.plan
        spot = plan.spot_of(attributes)
        if self.beside or self.apart:
            self._collect_beside(spot, attributes, found)
        bucket = self.buckets.get(spot)
        if bucket is None:
            return False
        point: Any = attributes.get(plan.ranged[0])
        kind = type(point)
        if kind is float:
            if point != point:
                return False
        elif kind is not int or not -EXACT <= point <= EXACT:
            return self._collect_around(bucket, attributes, found)
        if plan.sides[0].low:
            bucket.up_to(point, found)
        else:
            bucket.from_on(point, found)
        return False

    def _collect_several(self, attributes: Mapping[str, Any], found: list[int]) -> bool:
        spot = self.plan.spot_of(attributes)
        if self.beside or self.apart:
            self._collect_beside(spot, attributes, found)
        bucket = self.buckets.get(spot)
        if bucket is None:
            return False
        point: list[Any] = [attributes.get(name) for name in self.plan.ranged]
        for value in point:
            kind = type(value)
            if kind is float:
                if value != value:
                    return False
            elif kind is not int or not -EXACT <= value <= EXACT:
                return self._collect_around(bucket, attributes, found)
        bucket.collect(point, point, found)
        return False

    def _collect_around(
        self, bucket: Bucket, attributes: Mapping[str, Any], found: list[int]
    ) -> bool:
        """Values of rarer types, and whole numbers between two floats."""
        lows: list[float] = []
        highs: list[float] = []
        for name in self.plan.ranged:
            around = reach(attributes.get(name))
            if around is None:
                return False
            lows.append(around[0])
            highs.append(around[1])
        bucket.collect(lows, lows if lows == highs else highs, found)
        return lows != highs

    def _collect_beside(self, spot: Spot, attributes: Mapping[str, Any], found: list[int]) -> None:
        for rows in (self.beside.get(spot), self.apart):
            if rows:
                found += [row.key for row in rows if holds(row, attributes)]

    def standing_beside(self, spot: Spot) -> Iterable[Row]:
        """The rows whose boxes decide for events of this spot."""
        return (*self.beside.get(spot, ()), *self.apart)


def holds(row: Row, attributes: Mapping[str, Any]) -> bool:
    return any(box.contains(attributes) for box in row.boxes)
