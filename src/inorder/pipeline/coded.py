"""Deliveries as numbers: what one process can hold of a log that is too long to hold as text.

Spark reads the log, turns names into 64-bit codes and streams the coded rows to this process as
Arrow batches. That costs about as much as counting the rows, several times less than moving them to
Python workers, and NumPy then does in one process what a shuffle and a window would do slowly.
A log beyond `bounds.SLICE_ROWS_MAX` is shuffled once by subscriber, kept on disk, and taken slice
by slice; all judges but `total` look at one subscriber at a time, so slices are independent.

Two names with one code would make the verdict wrong. A second, independent hash travels along for
events; if it ever differs under one code, the log is coded again with another salt.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from inorder.pipeline import bounds
from inorder.pipeline.boundary import boundary
from inorder.pipeline.hashed import factorize
from inorder.pipeline.tables import REQUIRED, Table

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Array = npt.NDArray[Any]

_SLICE = "_slice"


class Collision(Exception):
    """Two different names have one code: try again with another salt."""


@dataclass(slots=True)
class Rows:
    """Deliveries of whole subscribers, sorted by (subscriber, position).

    `subscriber` and `event` index `subscribers` and `events`, which hold the codes. Subscriber s
    has the rows `bounds[s]:bounds[s + 1]`. `more` holds further columns in the same order.
    """

    subscriber: Array
    position: Array
    event: Array
    in_order: Array | None
    bounds: Array
    subscribers: Array
    events: Array
    more: dict[str, Array]

    def __len__(self) -> int:
        return len(self.position)

    def take(self, chosen: Array) -> Rows:
        """Some of the rows, in their order; subscribers keep their numbers."""
        subscriber = self.subscriber[chosen]
        return Rows(
            subscriber,
            self.position[chosen],
            self.event[chosen],
            None if self.in_order is None else self.in_order[chosen],
            edges_of(subscriber, len(self.subscribers)),
            self.subscribers,
            self.events,
            {name: column[chosen] for name, column in self.more.items()},
        )

    def pair_keys(self) -> Array:
        """One number for each (subscriber, event)."""
        return self.subscriber.astype(np.int64) * max(1, len(self.events)) + self.event


class Log:
    """A deliveries table, ready to be read as `Rows` with any further columns."""

    def __init__(self, table: Table, salt: int = 0) -> None:
        self.table = table
        self.salt = salt
        self._names: dict[int, str] | None = None
        self._checks: dict[int, int] = {}

    def slices(
        self, more: dict[str, Column] | None = None, required: Sequence[str] = REQUIRED
    ) -> Iterator[Rows]:
        """All deliveries, some whole subscribers at a time.

        A null in any column is refused; `required` are the columns to look at for the reason.
        """
        count = -(-self.table.rows // bounds.SLICE_ROWS_MAX)
        with boundary(self.table.path):
            for frame in self._frames(self._coded(more or {}), count):
                yield self._rows(frame, list(more or {}), required)

    def subscriber_names(self) -> dict[int, str]:
        """The name behind each subscriber's code."""
        if self._names is None:
            with boundary(self.table.path):
                names = self.table.frame.select("subscriber").distinct()
                found = names.select(code("subscriber", self.salt), "subscriber").collect()
            self._names = {row[0]: row[1] for row in found}
            if len(self._names) < len(found):
                raise Collision
        return self._names

    def event_names(self, codes: Sequence[int]) -> dict[int, str]:
        """The names behind some events' codes."""
        from pyspark.sql import functions as F

        if not codes:
            return {}
        wanted = F.col("code").isin(sorted(set(map(int, codes))))
        coded = self.table.frame.select(code("event", self.salt).alias("code"), "event")
        with boundary(self.table.path):
            found = coded.where(wanted).distinct().collect()
        return {row[0]: row[1] for row in found}

    def coded(self) -> DataFrame:
        """Subscriber, position, event as codes, in-order deliveries only."""
        frame = self.table.frame
        if self.table.has("in_order"):
            frame = frame.where("in_order")
        return frame.select(
            code("subscriber", self.salt).alias("subscriber"),
            "position",
            code("event", self.salt).alias("event"),
        )

    def _coded(self, more: dict[str, Column]) -> DataFrame:
        from pyspark.sql import functions as F

        columns = [
            code("subscriber", self.salt).alias("subscriber"),
            F.col("position"),
            code("event", self.salt).alias("event"),
            F.hash("event").alias("check"),
        ]
        if self.table.has("in_order"):
            columns.append(F.col("in_order"))
        return self.table.frame.select(
            *columns, *(column.alias(name) for name, column in more.items())
        )

    def _frames(self, coded: DataFrame, count: int) -> Iterator[Any]:
        """The rows as Arrow tables, `count` of them."""
        if count <= 1:
            yield coded.toArrow()
            return
        from pyspark import StorageLevel
        from pyspark.sql import functions as F

        place = F.pmod(F.coalesce("subscriber", F.lit(0)), F.lit(count)).cast("int")
        kept = coded.withColumn(_SLICE, place).repartitionById(count, _SLICE)
        # The cache prunes by the least and greatest slice of a batch: one slice is read at a time.
        kept = kept.persist(StorageLevel.DISK_ONLY)
        try:
            for number in range(count):
                yield kept.where(F.col(_SLICE) == number).drop(_SLICE).toArrow()
        finally:
            kept.unpersist()

    def _rows(self, frame: Any, more: list[str], required: Sequence[str]) -> Rows:
        nulls = [name for name in frame.column_names if frame[name].null_count]
        if nulls:
            self.table.explain([*required, "in_order"])
            raise AssertionError(f"nulls in {nulls} that no column explains")
        subscriber, subscribers = factorize(_column(frame, "subscriber"))
        event, events = factorize(_column(frame, "event"))
        self._refuse_collisions(event, events, _column(frame, "check"))
        position = _column(frame, "position")
        order = order_by_position(subscriber, position, len(subscribers))
        in_order = _column(frame, "in_order") if "in_order" in frame.column_names else None
        if in_order is not None:
            in_order = None if in_order.all() else in_order[order]
        rest = {name: _column(frame, name)[order] for name in more}
        subscriber, position = subscriber[order], position[order]
        starts = edges_of(subscriber, len(subscribers))
        rows = Rows(subscriber, position, event[order], in_order, starts, subscribers, events, rest)
        if _repeats_position(rows):
            self.table.explain_positions()
            raise Collision  # of two subscribers: by name no position repeats
        return rows

    def _refuse_collisions(self, event: Array, events: Array, check: Array) -> None:
        """One code, one check, in this slice and in all before."""
        of_event = np.zeros(len(events), dtype=check.dtype)
        of_event[event] = check
        if not np.array_equal(of_event[event], check):
            raise Collision
        if self.table.rows > bounds.SLICE_ROWS_MAX:
            found = dict(zip(events.tolist(), of_event.tolist(), strict=True))
            if any(self._checks.get(each, known) != known for each, known in found.items()):
                raise Collision
            self._checks.update(found)


def code(name: str, salt: int) -> Column:
    """The 64-bit code of a column; null stays null."""
    from pyspark.sql import functions as F

    hashed = F.xxhash64(F.lit(salt), F.col(name)) if salt else F.xxhash64(name)
    return F.when(F.col(name).isNotNull(), hashed)


def order_by_position(subscriber: Array, position: Array, count: int) -> Array:
    """The permutation that sorts by (subscriber, position).

    Logs are mostly written in order: after grouping, only subscribers out of order are sorted.
    """
    small = np.int16 if count < 2**15 else np.int32
    order = np.argsort(subscriber.astype(small), kind="stable")  # a radix sort for int16
    ordered = position[order]
    starts = edges_of(subscriber[order], count)
    falls = np.flatnonzero(ordered[1:] < ordered[:-1]) + 1
    owners = np.unique(np.searchsorted(starts, falls, side="right") - 1)
    for owner in owners.tolist():
        low, high = starts[owner], starts[owner + 1]
        mine = np.argsort(ordered[low:high], kind="stable")
        order[low:high] = order[low:high][mine]
    return order


def edges_of(sorted_numbers: Array, count: int) -> Array:
    """Where each of 0..count-1 begins in sorted numbers, and the end."""
    return np.searchsorted(sorted_numbers, np.arange(count + 1))


def parts_of(sorted_numbers: Array, values: Array) -> list[tuple[int, Array]]:
    """The values of each number."""
    numbers, starts = np.unique(sorted_numbers, return_index=True)
    parts = np.split(values, starts[1:]) if len(numbers) else []
    return list(zip(numbers.tolist(), parts, strict=True))


def _column(frame: Any, name: str) -> Array:
    column = frame[name]
    return np.asarray(column.to_numpy())


def _repeats_position(rows: Rows) -> bool:
    same = rows.position[1:] == rows.position[:-1]
    if not same.any():
        return False
    return bool((same & (rows.subscriber[1:] == rows.subscriber[:-1])).any())
