"""Rows in the order that a guarantee keeps: `order`, for tables and for streams.

Rule 1: whatever is wrong with a call is said before anything starts; what is wrong with a row is
        said in the column `quarantine`, or ends the query.
Rule 2: every row leaves exactly once, with its `nth` among the deliveries of its subscriber, or
        is a duplicate, or could not be used. Rows that are not matched only keep their place, and
        so does what could not be used: by its stamp, or else by its `offset`.
Rule 3: on a table, what is held at the end of the input is handed over. A stream has no end: there
        it stays in the state until what is missing comes, or until its time is up.

`nth` tells the order. The rows of a table come in their order of arrival, those of a
micro-batch in the order of delivery.

All this is for rows with stamps, which networks need. Rows that have positions are ordered already
(order_positions.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from inorder.core.errors import Misuse, TooLarge
from inorder.core.limits import ORDER_LANES_MAX, STAMP_NUMBER_MAX
from inorder.core.settings import convert
from inorder.guarantee.registry import guarantee as guarantee_of
from inorder.pipeline.order_positions import by_position, has_positions

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from inorder.pipeline.order_lane import Plan, Start

LANES = 8
# The types that columns must have, as Spark calls them.
TEXT = ("string",)
WHOLE = ("bigint", "int", "smallint", "tinyint")
NUMBER = (*WHOLE, "double", "float")
SORTABLE = (*TEXT, *NUMBER, "timestamp", "timestamp_ntz", "date", "boolean")
TYPES = {
    "subscriber": TEXT, "topic": TEXT, "publisher": TEXT, "seq": WHOLE, "stamp": TEXT,
    "received_at": NUMBER, "matched": ("boolean",),
}  # fmt: skip
CASTS = {"seq": "bigint", "received_at": "double", "offset": "bigint"}
ADDED = ("nth", "in_order", "quarantine", "_lane", "_answer")
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def order(
    df: DataFrame,
    guarantee: str = "total",
    *,
    subscriber: str | None = None,
    arrival: str | Sequence[str] | None = None,
    lanes: int | None = None,
    start: Start | None = None,
    quarantine: bool = False,
    **options: Any,
) -> DataFrame:
    """The rows of `df` as each subscriber would be given them.

    Rows with a column `position` (and none `stamp`) leave as they came, with `in_order`: this does
    not sort them. `position` tells the order, whatever the guarantee, and nothing below counts.

    Rows with stamps get `nth` and `in_order`. They arrive in the order of the columns `arrival`.
    `lanes` is how many parts subscribers are spread over: values of state on a stream, partitions
    of a table. `start` says where topics start: at their "beginning" (the default), at the "first"
    row of each, or a mapping from each topic to the number of its events that come before the first
    given; for all subscribers alike, or one such mapping for each subscriber. A topic that is named
    there is waited for from the first row on.
    `quarantine` adds a column that says why a row could not be used; without it, duplicates are
    left out and anything else ends the query. `options` are those of the guarantee.
    """
    from inorder.pipeline.order_lane import Plan

    chosen = guarantee_of(guarantee)
    convert(options, chosen.options, "order")
    if has_positions(df):
        given = {"subscriber": subscriber, "arrival": arrival, "lanes": lanes, "start": start}
        return by_position(df, {**given, **options}, quarantine)
    start = "beginning" if start is None else start
    if chosen.rows is not None and not chosen.rows.needs_stamps and "stamp" not in df.columns:
        return _without_stamp(df, guarantee, subscriber, arrival, lanes, start, quarantine, options)
    _check_columns(df)
    keys = arrival_columns(df, arrival)
    if "subscriber" in df.columns and subscriber is not None:
        raise Misuse("there is a column subscriber: leave out the argument of that name")
    if lanes is not None and not 1 <= lanes <= ORDER_LANES_MAX:
        raise TooLarge("lanes", lanes, ORDER_LANES_MAX)
    _check_start(start)
    plan = Plan(guarantee, options, subscriber or "all", start, not quarantine)
    plan.rows()
    if df.isStreaming:
        return _stream(df, plan, keys, lanes or LANES)
    return _table(df, plan, keys, lanes)


def _without_stamp(
    df: DataFrame, guarantee: str, subscriber: Any, arrival: Any, lanes: Any, start: Any,
    quarantine: bool, options: dict[str, Any],
) -> DataFrame:  # fmt: skip
    """A guarantee that needs no stamps gets empty ones."""
    from pyspark.sql import functions as F

    stamped = df.withColumn("stamp", F.lit("{}"))
    ordered = order(
        stamped, guarantee, subscriber=subscriber, arrival=arrival, lanes=lanes, start=start,
        quarantine=quarantine, **options,
    )  # fmt: skip
    return ordered.drop("stamp")


# Checks.


def arrival_columns(df: DataFrame, arrival: str | Sequence[str] | None) -> list[str]:
    """The columns that tell the order of arrival; ties are broken, so that it is always the same
    order."""
    types = dict(df.dtypes)
    if arrival is None:
        chosen = ["arrival" if "arrival" in types else "received_at"]
        if chosen[0] not in types:
            raise Misuse("the rows do not tell their order of arrival: they have neither a column "
                         "arrival nor received_at; name the columns: arrival=[...]")  # fmt: skip
    else:
        chosen = [arrival] if isinstance(arrival, str) else list(arrival)
        if missing := [name for name in chosen if name not in types] or not chosen:
            raise Misuse(f"arrival: there is no column {missing}")
    chosen += [name for name in ("topic", "offset", "publisher", "seq") if name in types]
    chosen = list(dict.fromkeys(chosen))
    for name in chosen:
        if types[name] not in SORTABLE:
            raise Misuse(f"arrival: rows cannot be sorted by {name}, which is {types[name]}")
    return chosen


def tie_columns(df: DataFrame, chosen: Sequence[str]) -> list[str]:
    """All others that rows can be sorted by: where rows lie must not matter."""
    types = dict(df.dtypes)
    return sorted(name for name in types if name not in chosen and types[name] in SORTABLE)


def _check_columns(df: DataFrame) -> None:
    types = dict(df.dtypes)
    missing = [name for name in ("topic", "publisher", "seq", "stamp") if name not in types]
    if missing:
        raise Misuse(f"order needs the columns {', '.join(missing)}: see sequence for events "
                     "without stamps")  # fmt: skip
    for name, allowed in TYPES.items():
        if name in types and types[name] not in allowed:
            raise Misuse(f"column {name} is {types[name]}, and should be {allowed[0]}")
    if taken := [name for name in ADDED if name in types]:
        raise Misuse(f"the rows have a column {taken[0]} already: rename or drop it")
    if doubled := sorted({name for name in df.columns if df.columns.count(name) > 1}):
        raise Misuse(f"there are two columns {doubled[0]}")


def _check_start(start: Any) -> None:
    if isinstance(start, str):
        if start not in ("beginning", "first"):
            raise Misuse(f"start: {start!r} is not one of beginning, first")
        return
    try:
        values = [*start.values()]
        nested = [hasattr(value, "values") for value in values]
        numbers = (
            [number for value in values for number in value.values()] if all(nested) else values
        )
        fine = all(
            isinstance(number, int) and 0 <= number <= STAMP_NUMBER_MAX for number in numbers
        )
    except (AttributeError, TypeError):
        fine = False
    if not fine:
        raise Misuse("start: should be beginning, first, or the events before each topic's first, "
                     "for all subscribers alike or for each")  # fmt: skip


def check_store(df: DataFrame) -> None:
    """Spark keeps this kind of state in RocksDB only, and says so at the first micro-batch."""
    provider = str(df.sparkSession.conf.get(PROVIDER))
    if not provider.endswith("RocksDBStateStoreProvider"):
        raise Misuse(f"order and sequence of a stream keep their state in RocksDB: set {PROVIDER} "
                     f"to {ROCKSDB}")  # fmt: skip


# Plans.


def quoted(name: str) -> Column:
    from pyspark.sql import functions as F

    return F.col(f"`{name.replace('`', '``')}`")


def _judged(df: DataFrame) -> dict[str, Column]:
    """The columns that decide, with the types the lane knows."""
    types = dict(df.dtypes)
    names = [name for name in TYPES if name in types]
    if types.get("offset") in WHOLE:
        names.append("offset")
    return {
        name: quoted(name).cast(CASTS[name]) if name in CASTS else quoted(name) for name in names
    }


def _table(df: DataFrame, plan: Plan, arrival: list[str], lanes: int | None) -> DataFrame:
    from pyspark.sql import functions as F

    from inorder.pipeline.order_batch import answering, beside_rows

    keys = [quoted(name) for name in (*arrival, *tie_columns(df, arrival))]
    if "subscriber" not in df.columns:
        spread = df.coalesce(1) if df.rdd.getNumPartitions() == 1 else df.repartition(1)
    elif lanes is None:
        spread = df.repartition("subscriber")
    else:
        spread = df.repartition(lanes, "subscriber")
    if "subscriber" in df.columns:
        keys = [F.col("subscriber"), *keys]
    columns = _judged(df)
    kind = "bigint" if plan.strict else "answer bigint, reason string"
    judged = beside_rows(answering(plan, tuple(columns)), kind)
    found = spread.sortWithinPartitions(*keys).withColumn("_answer", judged(*columns.values()))
    answer = F.col("_answer") if plan.strict else F.col("_answer.answer")
    found = found.where(
        answer > 0 if plan.strict else (answer > 0) | F.col("_answer.reason").isNotNull()
    )
    out = [
        *(quoted(name) for name in df.columns),
        F.when(answer > 0, F.shiftright(answer, 1)).alias("nth"),
        F.when(answer > 0, answer.bitwiseAND(F.lit(1)) == 1).alias("in_order"),
    ]
    if not plan.strict:
        out.append(F.col("_answer.reason").alias("quarantine"))
    return found.select(*out)


def _stream(df: DataFrame, plan: Plan, arrival: list[str], lanes: int) -> DataFrame:
    from pyspark.sql import functions as F
    from pyspark.sql.types import BooleanType, LongType, StringType, StructType

    from inorder.pipeline.order_stream import Orderly, through_lanes

    check_store(df)
    lane = F.lit(0)
    if "subscriber" in df.columns:
        lane = F.pmod(F.hash("subscriber"), F.lit(lanes))
    schema = StructType([*df.schema.fields])
    schema.add("nth", LongType()).add("in_order", BooleanType())
    if not plan.strict:
        schema.add("quarantine", StringType())
    if "subscriber" not in df.columns:
        lanes = 1
    return through_lanes(df, lane, lanes, Orderly(plan, tuple(arrival)), schema)
