"""One order for rows that have none: positions for events of no log of ours.

Rule 1: one lane numbers everything, in the order of arrival; that is what makes it one order. The
        rows themselves stay spread on a table, and travel in blobs on a stream.
Rule 2: a restarted query goes on with the positions where its checkpoint ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from inorder.core.errors import Misuse
from inorder.pipeline.order_stage import arrival_columns, check_store, quoted, tie_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TYPES = {"position": "bigint", "publisher": "string", "seq": "bigint"}
WHOLE = ("bigint", "int", "smallint", "tinyint")


def sequence(
    df: DataFrame,
    *,
    topics: Sequence[str] | None = None,
    arrival: str | Sequence[str] | None = None,
) -> DataFrame:
    """The rows of `df` (of these topics only, if named) with a `position`, so that everybody who
    reads any of the topics by `order` has the same order.

    Rows are numbered in the order of the columns `arrival`. Added, or replaced: `position`, from 0,
    `publisher`, `seq`, and `event`. A row without publisher or seq is published by "spark", and
    what claims to be is numbered anew. A row without a topic gets no position: `order` puts it
    aside.
    """
    from pyspark.sql import functions as F

    _check(df)
    if topics is not None:
        df = df.where(F.col("topic").isin(list(topics)))
    keys = arrival_columns(df, arrival)
    numbered = (_stream if df.isStreaming else _table)(df, keys)
    life = F.col("epoch").cast("string") if "epoch" in df.columns else F.lit("1")
    return numbered.withColumn("event", F.concat_ws(":", "publisher", life, "seq"))


def _check(df: DataFrame) -> None:
    types = dict(df.dtypes)
    if types.get("topic") != "string":
        raise Misuse("sequence needs a column topic, which is text")
    if "position" in types:
        raise Misuse(
            "the rows have positions already: drop the column position to number them anew"
        )
    for name, allowed in (("publisher", ("string",)), ("seq", WHOLE)):
        if name in types and types[name] not in allowed:
            raise Misuse(f"column {name} is {types[name]}, and should be {allowed[0]}")
    if taken := [name for name in ("_lane", "_numbered") if name in types]:
        raise Misuse(f"the rows have a column {taken[0]} already: rename or drop it")


def _table(df: DataFrame, keys: list[str]) -> DataFrame:
    from pyspark.sql import functions as F

    from inorder.pipeline.order_batch import beside_rows
    from inorder.pipeline.sequence_rows import numbering

    kind = ", ".join(f"{name} {type_}" for name, type_ in TYPES.items())
    given = [
        F.col("topic"),
        F.col("publisher") if "publisher" in df.columns else F.lit(None).cast("string"),
        F.col("seq").cast("bigint") if "seq" in df.columns else F.lit(None).cast("bigint"),
    ]
    sorting = [quoted(name) for name in (*keys, *tie_columns(df, keys))]
    ordered = df.repartition(1).sortWithinPartitions(*sorting)
    found = ordered.withColumn("_numbered", beside_rows(numbering, kind)(*given))
    kept = [quoted(name) for name in df.columns if name not in TYPES]
    return found.select(*kept, *(F.col(f"_numbered.{name}") for name in TYPES))


def _stream(df: DataFrame, keys: list[str]) -> DataFrame:
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType, _parse_datatype_string

    from inorder.pipeline.order_stream import through_lanes
    from inorder.pipeline.sequence_rows import Sequencing

    check_store(df)
    schema = StructType([field for field in df.schema.fields if field.name not in TYPES])
    for name, kind in TYPES.items():
        schema.add(name, _parse_datatype_string(kind))
    return through_lanes(df, F.lit(0), 1, Sequencing(tuple(keys)), schema)
