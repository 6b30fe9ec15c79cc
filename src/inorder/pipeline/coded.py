"""Deliveries as numbers: what one process can hold of a log that is too long to hold as text.

Spark reads the log, turns names into 64-bit codes and streams the coded rows to this process as
Arrow batches. That costs about as much as counting the rows, several times less than moving them to
Python workers, and NumPy then does in one process what a shuffle and a window would do slowly.
A log beyond `bounds.SLICE_ROWS_MAX` is taken in slices of whole subscribers; all judges but `total`
look at one subscriber at a time, so slices are independent. A few slices are read by scanning again
(a third of the time of a shuffle, at 50 million rows); for many the log is shuffled once
and kept on disk.

Two names with one code could make a kept promise look broken, never a broken one kept (see
`Log.verify`). Before anything is called broken the codes are therefore verified; if two names do
share one, the log is read again with other codes.
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


class Recode(Exception):
    """Two names share a code, or a number does not fit its bits: read again, coded otherwise."""


@dataclass(slots=True)
class Rows:
    """Deliveries of whole subscribers, sorted by (subscriber, nth).

    `subscriber` and `event` index `subscribers` and `events`, which hold the codes. Subscriber s
    has the rows `bounds[s]:bounds[s + 1]`. `more` holds further columns in the same order.
    """

    subscriber: Array
    nth: Array
    event: Array
    in_order: Array | None
    bounds: Array
    subscribers: Array
    events: Array
    more: dict[str, Array]

    def __len__(self) -> int:
        return len(self.nth)

    def take(self, chosen: Array) -> Rows:
        """Some of the rows, in their order; subscribers keep their numbers."""
        subscriber = self.subscriber[chosen]
        return Rows(
            subscriber,
            self.nth[chosen],
            self.event[chosen],
            None if self.in_order is None else self.in_order[chosen],
            edges_of(subscriber, len(self.subscribers)),
            self.subscribers,
            self.events,
            {name: column[chosen] for name, column in self.more.items()},
        )

    def pieces(self, size: int) -> Iterator[slice]:
        """Ranges of whole subscribers with about `size` rows each."""
        low = 0
        while low < len(self):
            after = int(np.searchsorted(self.bounds, low + size))
            high = int(self.bounds[min(after, len(self.bounds) - 1)])
            yield slice(low, high)
            low = high

    def pair_keys(self) -> Array:
        """One number for each (subscriber, event)."""
        return self.subscriber.astype(np.int64) * max(1, len(self.events)) + self.event


class Log:
    """A deliveries table, ready to be read as `Rows` with any further columns.

    The first coding (`attempt` 0) packs subscriber, nth and tag into one number of 64 bits:
    32, 31 and 1. Later ones have a column for each, and codes of 64 bits.
    """

    def __init__(self, table: Table, attempt: int = 0) -> None:
        self.table = table
        self.attempt = attempt
        self._names: dict[int, str] | None = None
        self._nodes: dict[int, int] = {}
        self._verified = False

    def slices(
        self, more: dict[str, Column] | None = None, required: Sequence[str] = REQUIRED
    ) -> Iterator[Rows]:
        """All deliveries, some whole subscribers at a time.

        A null in any column is refused; `required` are the columns to look at for the reason.
        """
        import pyarrow as pa

        count = -(-self.table.rows // bounds.SLICE_ROWS_MAX)
        with boundary(self.table.path):
            for frame in self._frames(more or {}, count):
                rows = self._rows(frame, list(more or {}), required)
                del frame  # hold one form of the rows at a time while they are judged
                pa.default_memory_pool().release_unused()
                yield rows
                del rows

    def code(self, name: str) -> Column:
        """The code of a column: null stays null."""
        return code(name, self.attempt)

    def subscriber_names(self) -> dict[int, str]:
        """The name behind each subscriber's code."""
        if self._names is None:
            columns = (self._subscriber(), self.code("subscriber"), "subscriber")
            with boundary(self.table.path):
                found = self.table.frame.select("subscriber").distinct().select(*columns).collect()
            self._names = {row[0]: row[2] for row in found}
            self._nodes = {row[0]: row[1] for row in found}
            if len(self._names) < len(found):
                raise Recode
        return self._names

    def nodes(self, subscribers: Array) -> Array:
        """Subscribers' codes as a publisher of the same name is coded."""
        self.subscriber_names()
        return np.array([self._nodes[each] for each in subscribers.tolist()], dtype=np.int64)

    def event_names(self, codes: Sequence[int]) -> dict[int, str]:
        """The names behind some events' codes."""
        from pyspark.sql import functions as F

        wanted = F.col("code").isin(sorted(set(map(int, codes))))
        coded = self.table.frame.select(self.code("event").alias("code"), "event")
        with boundary(self.table.path):
            return dict(map(tuple, coded.where(wanted).distinct().collect()))

    def coded(self) -> DataFrame:
        """Subscriber, nth, event as codes, in-order deliveries only."""
        frame = self.table.frame
        if self.table.has("in_order"):
            frame = frame.where("in_order")
        return frame.select(
            self._subscriber().alias("subscriber"), "nth", self.code("event").alias("event")
        )

    def verify(self) -> None:
        """Make sure that no two names share a code; to be asked before calling anything broken.

        Nothing is ever called kept wrongly: two names taken for one only add repeats and
        constraints (no order between others is lost), so a verdict "kept" needs no proof.
        """
        from pyspark.sql import functions as F

        if self._verified:
            return
        self.subscriber_names()
        check = F.hash("name")
        for name in ("event", "publisher", "topic"):
            if not self.table.has(name):
                continue
            pairs = self.table.frame.select(
                self.code(name).alias("code"), F.col(name).alias("name")
            )
            doubtful = pairs.groupBy("code").agg(
                F.min(check).alias("low"), F.max(check).alias("high")
            )
            with boundary(self.table.path):
                if not doubtful.where("low != high").isEmpty():
                    raise Recode
        self._verified = True

    def _subscriber(self) -> Column:
        from pyspark.sql import functions as F

        if self.attempt:
            return self.code("subscriber")
        return F.when(F.col("subscriber").isNotNull(), F.hash("subscriber").cast("bigint"))

    def _coded(self, more: dict[str, Column]) -> DataFrame:
        from pyspark.sql import functions as F

        in_order = F.col("in_order") if self.table.has("in_order") else F.lit(True)
        nth = F.col("nth")
        if self.attempt:
            places = [self._subscriber().alias("subscriber"), nth, in_order.alias("in_order")]
        else:
            fits = (nth >= 0) & (nth < 2**31)
            low = F.shiftleft(nth, 1).bitwiseOR(in_order.cast("bigint"))
            packed = F.shiftleft(self._subscriber(), 32).bitwiseOR(low)
            places = [F.when(fits, packed).alias("packed")]
        further = [column.alias(name) for name, column in more.items()]
        return self.table.frame.select(*places, self.code("event").alias("event"), *further)

    def _frames(self, more: dict[str, Column], count: int) -> Iterator[Any]:
        """The rows as Arrow tables, `count` of them."""
        coded = self._coded(more)
        if count <= 1:
            yield coded.toArrow()
            return
        from pyspark import StorageLevel
        from pyspark.sql import functions as F

        owner = F.col("subscriber") if self.attempt else F.shiftright("packed", 32)
        place = F.pmod(F.coalesce(owner, F.lit(0)), F.lit(count)).cast("int")
        coded = coded.withColumn(_SLICE, place)
        if count <= bounds.RESCANS_MAX:
            for number in range(count):
                yield coded.where(F.col(_SLICE) == number).drop(_SLICE).toArrow()
            return
        # A slice is several partitions: the JVM holds the result of a task as one piece.
        parts = -(-self.table.rows // (count * bounds.TASK_ROWS))
        part = F.pmod(F.coalesce("event", F.lit(0)), F.lit(parts)).cast("int")
        kept = coded.repartitionById(count * parts, F.col(_SLICE) * parts + part)
        # The cache prunes by the least and greatest slice of a batch: one slice is read at a time.
        kept = kept.persist(StorageLevel.DISK_ONLY)
        try:
            for number in range(count):
                yield kept.where(F.col(_SLICE) == number).drop(_SLICE).toArrow()
        finally:
            kept.unpersist()

    def _rows(self, frame: Any, more: list[str], required: Sequence[str]) -> Rows:
        if any(frame[name].null_count for name in frame.column_names):
            self.table.explain([*required, "in_order"])
            assert not self.attempt, "a null that no column explains"
            raise Recode  # an `nth` of more than 31 bits
        codes, nth, in_order = self._places(frame)
        subscriber, subscribers = factorize(codes)
        event, events = factorize(_column(frame, "event"))
        order, starts = order_by_nth(subscriber, nth, len(subscribers))
        rows = Rows(
            np.repeat(np.arange(len(subscribers), dtype=np.int32), np.diff(starts)),
            nth[order],
            event[order],
            None if in_order.all() else in_order[order],
            starts,
            subscribers.astype(np.int64),
            events,
            {name: _column(frame, name)[order] for name in more},
        )
        if _repeats_nth(rows):
            self.table.explain_nths()
            raise Recode  # two subscribers share a code: by name no `nth` repeats
        return rows

    def _places(self, frame: Any) -> tuple[Array, Array, Array]:
        """Subscriber codes, places and tags."""
        if self.attempt:
            names = ("subscriber", "nth", "in_order")
            codes, nth, in_order = (_column(frame, name) for name in names)
            return codes, nth, in_order
        low, high = _halves(_column(frame, "packed"))
        return high, (low >> 1).astype(np.int32), (low & 1).astype(np.bool_)


def _halves(packed: Array) -> tuple[Array, Array]:
    """The lower 32 bits, unsigned, and the upper 32 bits, signed."""
    halves = np.ascontiguousarray(packed, dtype="<i8").view("<i4").reshape(-1, 2)
    return halves[:, 0].view("<u4"), np.ascontiguousarray(halves[:, 1])


def code(name: str, attempt: int) -> Column:
    """The 64-bit code of a column; null stays null."""
    from pyspark.sql import functions as F

    hashed = F.xxhash64(F.lit(attempt), F.col(name)) if attempt else F.xxhash64(name)
    return F.when(F.col(name).isNotNull(), hashed)


def order_by_nth(subscriber: Array, nth: Array, count: int) -> tuple[Array, Array]:
    """The permutation that sorts by (subscriber, nth), and where each subscriber begins.

    Logs are mostly written in order: after grouping, only subscribers out of order are sorted.
    """
    small = np.int16 if count < 2**15 else np.int32
    order = np.argsort(subscriber.astype(small), kind="stable")  # a radix sort for int16
    ordered = nth[order]
    starts = np.concatenate([[0], np.cumsum(np.bincount(subscriber, minlength=count))])
    falls = np.flatnonzero(ordered[1:] < ordered[:-1]) + 1
    owners = np.unique(np.searchsorted(starts, falls, side="right") - 1)
    for owner in owners.tolist():
        low, high = starts[owner], starts[owner + 1]
        mine = np.argsort(ordered[low:high], kind="stable")
        order[low:high] = order[low:high][mine]
    return order, starts


def edges_of(sorted_numbers: Array, count: int) -> Array:
    """Where each of 0..count-1 begins in sorted numbers, and the end."""
    wanted = np.arange(count + 1, dtype=sorted_numbers.dtype)  # another type would copy them all
    return np.searchsorted(sorted_numbers, wanted)


def parts_of(sorted_numbers: Array, values: Array) -> list[tuple[int, Array]]:
    """The values of each number."""
    numbers, starts = np.unique(sorted_numbers, return_index=True)
    parts = np.split(values, starts[1:]) if len(numbers) else []
    return list(zip(numbers.tolist(), parts, strict=True))


def _column(frame: Any, name: str) -> Array:
    column = frame[name]
    return np.asarray(column.to_numpy())


def _repeats_nth(rows: Rows) -> bool:
    same = rows.nth[1:] == rows.nth[:-1]
    if not same.any():
        return False
    return bool((same & (rows.subscriber[1:] == rows.subscriber[:-1])).any())
