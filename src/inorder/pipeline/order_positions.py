"""`order` of rows that have positions: a projection.

An event of a log has a position, the same for every subscriber, and it came to stand there before
anybody could read it. So nothing has to wait, nothing comes too late, and there is no state, no
shuffle and no sort: the same on a table and on a stream, before `match` or behind it.

Example: three rows at the positions 4, 9 and 7 leave at 4, 9 and 7, as they came, each in order by
its position. To look at them in their order, sort by `position`.

Rule: a row without a position has no place in any order. It ends the query, or says so in the
      column `quarantine`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from inorder.core.errors import Misuse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ADDED = ("in_order", "quarantine")


def has_positions(df: DataFrame) -> bool:
    """Whether rows are ordered by position. Those with stamps too are rows of a trace."""
    return "position" in df.columns and "stamp" not in df.columns


def by_position(df: DataFrame, given: Mapping[str, Any], quarantine: bool) -> DataFrame:
    """The rows with `in_order`; `given` are the arguments that only stamps have a use for."""
    from pyspark.sql import functions as F

    if named := sorted(name for name, value in given.items() if value is not None):
        raise Misuse(
            f"the rows have positions, so nothing waits: {named[0]} is for rows with stamps"
        )
    types = dict(df.dtypes)
    if types["position"] not in ("bigint", "int", "smallint", "tinyint"):
        raise Misuse(f"column position is {types['position']}, and should be bigint")
    if taken := [name for name in ADDED if name in types]:
        raise Misuse(f"the rows have a column {taken[0]} already: rename or drop it")
    placed = F.col("position").isNotNull()
    if "matched" in types:  # a row that is for nobody only kept its place
        df = df.where(F.col("matched") | ~placed if quarantine else F.col("matched"))
    if quarantine:
        reason = F.when(~placed, "no position")
        return df.withColumn("in_order", F.when(placed, True)).withColumn("quarantine", reason)
    name = F.coalesce("event", F.lit("?")) if types.get("event") == "string" else F.lit("?")
    failing = F.raise_error(F.concat(F.lit("event "), name, F.lit(" has no position")))
    return df.where(placed | failing.isNull()).withColumn("in_order", F.lit(True))
