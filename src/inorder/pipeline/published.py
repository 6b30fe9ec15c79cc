"""The events table as numbers, for the promises that need to know what was published."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from inorder.core.errors import BadTrace
from inorder.pipeline import bounds
from inorder.pipeline.boundary import boundary
from inorder.pipeline.coded import Array, Recode, Rows, code
from inorder.pipeline.hashed import all_different, factorize, find
from inorder.pipeline.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import Column

NO_AFTER = -1  # where `after` is null; real ones count from 0


class Published:
    """The events of a trace; all arrays are parallel. Codes are those of the deliveries.

    Where nobody recorded fates (not `fates_known`, and none is told), all count as accepted.
    """

    def __init__(self, table: Table, attempt: int, fates_known: bool = True) -> None:
        self.table = table
        self.attempt = attempt
        frame = self._read(attempt)
        self.code = _column(frame, "code")
        self.publisher = _column(frame, "publisher")
        self.seq = _column(frame, "seq")
        self.published_at = _column(frame, "published_at")
        self.after = _column(frame, "after")
        self.accepted = _column(frame, "accepted")
        if not fates_known and not self.accepted.any():
            self.accepted = np.ones(len(self.accepted), dtype=np.bool_)
        self.topic, self.topics = factorize(_column(frame, "topic"))
        self._refuse_doubles()

    def __len__(self) -> int:
        return len(self.code)

    def find(self, rows: Rows) -> Array:
        """For each number of an event in `rows`, the event here, or -1."""
        return find(rows.events, self.code)

    def names(self, codes: list[int]) -> dict[int, str]:
        """The names behind some events' codes."""
        from pyspark.sql import functions as F

        coded = self.table.frame.select(code("event", self.attempt).alias("code"), "event")
        with boundary(self.table.path):
            return dict(map(tuple, coded.where(F.col("code").isin(codes)).collect()))

    def _read(self, attempt: int) -> Any:
        from pyspark.sql import functions as F

        def or_else(name: str, value: Column) -> Column:
            return F.coalesce(name, value) if self.table.has(name) else value

        topic = code("topic", attempt) if self.table.has("topic") else F.lit(0)
        accepted = F.lit(True)
        if self.table.has("accepted_at"):
            accepted = F.col("accepted_at").isNotNull()
        with boundary(self.table.path):
            frame = self.table.frame.select(
                code("event", attempt).alias("code"),
                code("publisher", attempt).alias("publisher"),
                "seq",
                "published_at",
                or_else("after", F.lit(NO_AFTER)).cast("bigint").alias("after"),
                accepted.alias("accepted"),
                topic.alias("topic"),
            ).toArrow()
        if any(frame[name].null_count for name in frame.column_names):
            self.table.explain(["event", "publisher", "seq", "published_at", "topic"])
            raise AssertionError("nulls that no column explains")
        return frame

    def _refuse_doubles(self) -> None:
        from pyspark.sql import functions as F

        if all_different(self.code) and all_different(self.publisher, self.seq):
            return
        for names in (["event"], ["publisher", "seq"]):
            with boundary(self.table.path):
                doubled = self.table.frame.groupBy(*names).count().where("count > 1")
                count, first = doubled.agg(F.count("*"), F.min(F.struct(*names))).collect()[0]
            if count:
                what = " ".join(str(value) for value in first)
                told = f"column {' and '.join(map(repr, names))} repeats: {count} events"
                raise BadTrace(self.table.path, f"{told} are published twice (for instance {what})")
        raise Recode


def missing(events: Table | None, names: tuple[str, ...]) -> str:
    """Why the events do not suffice, or nothing."""
    if events is None:
        return f"needs the events table with {', '.join(names)}"
    lacking = [name for name in names if not events.has(name)]
    if lacking:
        return f"needs the column {lacking[0]} of the events"
    if events.rows > bounds.EVENTS_MAX:
        return f"not judged (limit): more than {bounds.EVENTS_MAX} events"
    return ""


def _column(frame: Any, name: str) -> Array:
    return np.asarray(frame[name].to_numpy())
