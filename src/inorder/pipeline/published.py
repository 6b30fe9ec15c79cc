"""The events table as numbers, for the promises that need to know what was published."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from inorder.check import accepted
from inorder.check.seen import NOTHING
from inorder.core.errors import BadTrace
from inorder.pipeline import bounds
from inorder.pipeline.boundary import boundary
from inorder.pipeline.coded import Array, Recode, Rows, code
from inorder.pipeline.hashed import all_different, factorize, find
from inorder.pipeline.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import Column

_MAY_BE_NULL = ("accepted_at", "seen")
# The position of an event that has none, or of which nobody knows it.
UNPLACED = -1

# Outcomes by their place here; 0 is none.
OUTCOMES = ("", *accepted.OUTCOMES)


class Published:
    """The events of a trace; all arrays are parallel. Codes are those of the deliveries.

    Where nobody recorded fates (not `fates_known`, and none is told), all count as accepted, and
    `accepted_at` is not a number. `outcome` is a place in OUTCOMES; `untold` counts the events
    without `seen`, `told_of` holds it where it tells of something.
    """

    def __init__(self, table: Table, attempt: int, fates_known: bool = True) -> None:
        self.table = table
        self.attempt = attempt
        frame = self._read(attempt)
        self.code = _column(frame, "code")
        self.publisher = _column(frame, "publisher")
        self.epoch = _column(frame, "epoch")
        self.seq = _column(frame, "seq")
        self.position = _column(frame, "position")
        self.published_at = _column(frame, "published_at")
        self.application = _column(frame, "application")
        self.outcome = _column(frame, "outcome")
        self.accepted_at = np.asarray(frame["accepted_at"].to_numpy(), dtype=np.float64)
        self.accepted = ~np.isnan(self.accepted_at)
        if not table.has("accepted_at"):
            fates_known = False
        self.fates_known = fates_known or bool(self.accepted.any())
        if not self.fates_known:
            self.accepted = np.ones(len(self.accepted), dtype=np.bool_)
        self.untold = int(np.count_nonzero(~_column(frame, "told")))
        self.told_of = _texts(frame["seen"])
        if (self.outcome < 0).any():
            raise BadTrace(table.path, f"column 'outcome' holds none of {OUTCOMES[1:]}")
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

    def publisher_names(self) -> dict[int, str]:
        """The name behind each publisher's code."""
        columns = (code("publisher", self.attempt), "publisher")
        with boundary(self.table.path):
            found = self.table.frame.select(*columns).distinct().collect()
        return {row[0]: row[1] for row in found}

    def _read(self, attempt: int) -> Any:
        from pyspark.sql import functions as F

        def if_any(name: str, kind: str) -> Column:
            return F.col(name) if self.table.has(name) else F.lit(None).cast(kind)

        topic = code("topic", attempt) if self.table.has("topic") else F.lit(0)
        application = code("publisher", attempt)
        if self.table.has("application"):
            application = F.coalesce(code("application", attempt), application)
        outcome = F.lit(-1)
        for number, word in enumerate(OUTCOMES):
            outcome = F.when(if_any("outcome", "string") == word, number).otherwise(outcome)
        outcome = F.when(if_any("outcome", "string").isNull(), 0).otherwise(outcome)
        seen = if_any("seen", "string")
        with boundary(self.table.path):
            frame = self.table.frame.select(
                code("event", attempt).alias("code"),
                code("publisher", attempt).alias("publisher"),
                F.coalesce(if_any("epoch", "bigint"), F.lit(1)).alias("epoch"),
                "seq",
                F.coalesce(if_any("position", "bigint"), F.lit(UNPLACED)).alias("position"),
                "published_at",
                application.alias("application"),
                outcome.alias("outcome"),
                if_any("accepted_at", "double").alias("accepted_at"),
                seen.isNotNull().alias("told"),
                F.when(seen != NOTHING, seen).alias("seen"),
                topic.alias("topic"),
            ).toArrow()
        if any(frame[name].null_count for name in frame.column_names if name not in _MAY_BE_NULL):
            self.table.explain(["event", "publisher", "seq", "published_at", "topic"])
            raise AssertionError("nulls that no column explains")
        return frame

    def _refuse_doubles(self) -> None:
        from pyspark.sql import functions as F

        if all_different(self.code) and all_different(self.publisher, self.epoch, self.seq):
            return
        numbers = ["publisher", *(["epoch"] if self.table.has("epoch") else []), "seq"]
        for names in (["event"], numbers):
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


def _texts(column: Any) -> dict[int, str]:
    """The texts that are there, by row."""
    rows = np.flatnonzero(column.is_valid().to_numpy()).tolist()
    return dict(zip(rows, column.drop_null().to_pylist(), strict=True))


def _column(frame: Any, name: str) -> Array:
    return np.asarray(frame[name].to_numpy())
