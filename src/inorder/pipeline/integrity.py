"""Integrity: deliveries of events nobody published, altered ones, and ones on topics not held.

The definition is that of `check/integrity.py`. What was published is a join; what was held is
looked up batch by batch in the subscriptions, which every worker gets as a whole: they are few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from inorder.check.holding import Holding
from inorder.check.trace import DeliveryRow
from inorder.check.verdict import Verdict, judged
from inorder.pipeline.boundary import boundary
from inorder.pipeline.tables import Table

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

NEEDED = ("topic", "publisher", "seq", "delivered_at")

# Of a faulty delivery: when, who, at which place, what is wrong, and with which event and topic.
_FAULT = (
    "delivered_at double, subscriber string, nth bigint, fault string, event string, topic string"
)
_KINDS = ("never_published", "altered", "not_held")
_ELSEWHERE = "elsewhere"

Holdings = Mapping[tuple[str, str], Holding]


def check(deliveries: Table, events: Table, holdings: Holdings, elsewhere: bool = False) -> Verdict:
    """Count the faulty deliveries of each kind; the witness is the earliest."""
    from pyspark.sql import functions as F

    with boundary(deliveries.path):
        faults = _not_published(deliveries, events, elsewhere)
        faults = faults.unionByName(_not_held(deliveries, holdings))
        faults = faults.groupBy("fault").agg(
            F.count("*").alias("count"),
            F.min(F.struct("delivered_at", "subscriber", "nth", "fault", "event", "topic")).alias(
                "first"
            ),
        )
        found = faults.collect()
    counts = dict.fromkeys((*_KINDS, _ELSEWHERE), 0)
    counts |= {row["fault"]: int(row["count"]) for row in found}
    counts["deliveries"] = deliveries.rows
    found = [row for row in found if row["fault"] != _ELSEWHERE]
    witness = None
    if found:
        first = min((row["first"] for row in found), key=tuple)
        names = ("fault", "event", "subscriber", "topic", "nth")
        witness = {name: first[name] for name in names}
    return judged("integrity", sum(counts[kind] for kind in _KINDS), counts, witness)


def _not_published(deliveries: Table, events: Table, elsewhere: bool) -> DataFrame:
    """Altered deliveries, and those of absent events (check/integrity.py: of two kinds)."""
    from pyspark.sql import functions as F

    known = events.frame.select(
        F.col("event"),
        *(F.col(name).alias(f"true_{name}") for name in ("topic", "publisher", "seq")),
        _epoch(events).alias("true_epoch"),
    )
    same = _epoch(deliveries) == F.col("true_epoch")
    for name in ("topic", "publisher", "seq"):
        same = same & (F.col(name) == F.col(f"true_{name}"))
    joined = deliveries.frame.join(known, "event", "left")
    absent = F.lit("never_published")
    if elsewhere:
        spans = events.frame.groupBy(_epoch(events).alias("life"), "publisher").agg(
            F.min("seq").alias("lowest"), F.max("seq").alias("highest")
        )
        joined = joined.withColumn("life", _epoch(deliveries))
        joined = joined.join(F.broadcast(spans), ["publisher", "life"], "left")
        between = F.col("seq").between(F.col("lowest"), F.col("highest"))
        absent = F.when(between, absent).otherwise(_ELSEWHERE)
    fault = F.when(F.col("true_seq").isNull(), absent).when(~same, "altered")
    joined = joined.withColumn("fault", fault)
    return joined.where("fault is not null").select(*_columns())


def _epoch(table: Table) -> Column:
    """The life of the publisher; the first one where nobody says."""
    from pyspark.sql import functions as F

    return F.coalesce("epoch", F.lit(1)) if table.has("epoch") else F.lit(1)


def _not_held(deliveries: Table, holdings: Holdings) -> DataFrame:
    rows = deliveries.frame.select("subscriber", "nth", "event", "topic", "delivered_at")
    return rows.mapInArrow(_finder(dict(holdings)), _FAULT)


def _finder(
    holdings: dict[tuple[str, str], Holding],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def find(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            chosen = _faulty(batch, holdings)
            if chosen:
                some = batch.take(pa.array(chosen))
                columns: list[Any] = [some.column(name) for name in _columns() if name != "fault"]
                columns.insert(3, pa.array(["not_held"] * len(chosen)))
                yield pa.RecordBatch.from_arrays(columns, names=_columns())

    return find


def _faulty(batch: pa.RecordBatch, holdings: dict[tuple[str, str], Holding]) -> list[int]:
    """The rows of a batch on topics not held, a subscriber and topic at a time."""
    import numpy as np

    who = batch.column("subscriber").dictionary_encode()
    what = batch.column("topic").dictionary_encode()
    pair = who.indices.to_numpy() * len(what.dictionary) + what.indices.to_numpy()
    order = np.argsort(pair, kind="stable")
    nth = batch.column("nth").to_numpy()
    at = batch.column("delivered_at").to_numpy()
    chosen: list[int] = []
    for rows in np.split(order, np.flatnonzero(np.diff(pair[order])) + 1):
        if not len(rows):
            continue
        subscriber = who.dictionary[int(pair[rows[0]]) // len(what.dictionary)].as_py()
        topic = what.dictionary[int(pair[rows[0]]) % len(what.dictionary)].as_py()
        held = _held(holdings.get((subscriber, topic)), nth[rows], at[rows])
        chosen.extend(int(row) for row in rows[~held])
    return sorted(chosen)


def _held(holding: Holding | None, nth: Any, at: Any) -> Any:
    """For each delivery of one subscriber and topic, whether the topic was held then."""
    import numpy as np

    if holding is None:
        return np.zeros(len(nth), dtype=np.bool_)
    afters = [state.after for state in holding.states if state.after is not None]
    flags = np.array([False, *(state.held for state in holding.states)])
    if len(afters) == len(holding.states) and afters == sorted(afters):
        return flags[np.searchsorted(np.array(afters), nth, side="left")]
    rows = zip(nth.tolist(), at.tolist(), strict=True)
    return np.array([holding.at(_row(place, when)).held for place, when in rows])


def _row(nth: int, delivered_at: float) -> DeliveryRow:
    return DeliveryRow("", nth, "", "", "", 0, 0.0, 0.0, delivered_at)


def _columns() -> list[str]:
    return ["delivered_at", "subscriber", "nth", "fault", "event", "topic"]
