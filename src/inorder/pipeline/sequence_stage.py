"""Spark as the topic manager: stamps for events whose publishers do not stamp.

Rule 1: one lane numbers everything, in the order of arrival; that is what makes it one order. The
        rows themselves stay spread on a table, and travel in blobs on a stream.
Rule 2: a restarted query goes on with the numbers where its checkpoint ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from inorder.core.errors import Misuse
from inorder.guarantee.registry import guarantee as guarantee_of
from inorder.pipeline.order_stage import arrival_columns, check_store, quoted, tie_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TYPES = {
    "stamp": "string", "offset": "bigint", "publisher": "string", "seq": "bigint",
    "arrival": "bigint",
}  # fmt: skip
WHOLE = ("bigint", "int", "smallint", "tinyint")


def sequence(
    df: DataFrame,
    *,
    topics: Sequence[str] | None = None,
    arrival: str | Sequence[str] | None = None,
    guarantee: str = "total",
) -> DataFrame:
    """The rows of `df` (of these topics only, if named) with a stamp, so that `order` gives every
    subscriber of any of the topics the same order.

    Rows are numbered in the order of the columns `arrival`. Added, or replaced: `stamp`, `offset`
    (the place in the topic), `publisher`, `seq`, `event`, `guarantee`, and `arrival` if there is
    none. A row without publisher or seq is published by "spark", and what claims to be is numbered
    anew. A row without a topic gets no stamp: `order` puts it aside.
    """
    from pyspark.sql import functions as F

    if guarantee_of(guarantee).log.sequencer is None:
        raise Misuse(f"guarantee {guarantee!r} has no stamps that somebody else could give")
    _check(df)
    if topics is not None:
        df = df.where(F.col("topic").isin(list(topics)))
    keys = arrival_columns(df, arrival)
    added = tuple(name for name in TYPES if name != "arrival" or name not in df.columns)
    stamped = (_stream if df.isStreaming else _table)(df, guarantee, keys, added)
    named = stamped.withColumn("event", F.concat_ws(":", "publisher", "seq"))
    return named.withColumn("guarantee", F.lit(guarantee))


def _check(df: DataFrame) -> None:
    types = dict(df.dtypes)
    if types.get("topic") != "string":
        raise Misuse("sequence needs a column topic, which is text")
    if "stamp" in types:
        raise Misuse("the rows have stamps already: drop the column stamp to give them new ones")
    for name, allowed in (("publisher", ("string",)), ("seq", WHOLE)):
        if name in types and types[name] not in allowed:
            raise Misuse(f"column {name} is {types[name]}, and should be {allowed[0]}")
    if taken := [name for name in ("_lane", "_stamped") if name in types]:
        raise Misuse(f"the rows have a column {taken[0]} already: rename or drop it")


def _table(df: DataFrame, guarantee: str, keys: list[str], added: tuple[str, ...]) -> DataFrame:
    from pyspark.sql import functions as F

    from inorder.pipeline.order_batch import beside_rows
    from inorder.pipeline.sequence_rows import Sequencing, stamping

    kind = ", ".join(f"{name} {TYPES[name]}" for name in added)
    stamps = beside_rows(stamping(Sequencing(guarantee, tuple(keys), added)), kind)
    given = [
        F.col("topic"),
        F.col("publisher") if "publisher" in df.columns else F.lit(None).cast("string"),
        F.col("seq").cast("bigint") if "seq" in df.columns else F.lit(None).cast("bigint"),
    ]
    sorting = [quoted(name) for name in (*keys, *tie_columns(df, keys))]
    ordered = df.repartition(1).sortWithinPartitions(*sorting)
    found = ordered.withColumn("_stamped", stamps(*given))
    kept = [quoted(name) for name in df.columns if name not in added]
    return found.select(*kept, *(F.col(f"_stamped.{name}") for name in added))


def _stream(df: DataFrame, guarantee: str, keys: list[str], added: tuple[str, ...]) -> DataFrame:
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType, _parse_datatype_string

    from inorder.pipeline.order_stream import through_lanes
    from inorder.pipeline.sequence_rows import Sequencing

    check_store(df)
    schema = StructType([field for field in df.schema.fields if field.name not in added])
    for name in added:
        schema.add(name, _parse_datatype_string(TYPES[name]))
    return through_lanes(df, F.lit(0), 1, Sequencing(guarantee, tuple(keys), added), schema)
