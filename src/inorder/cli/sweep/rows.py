"""What a sweep found: its rows as a DataFrame, and summed up over the seeds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from inorder.check import PROMISES
from inorder.cli.sweep.grid import Point
from inorder.cli.sweep.point import arrow_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

# Figures a summary has the mean and the spread of.
FIGURES = ("published", "delivered", "late_share", "delay_p50", "delay_p99", "seconds")


def rows(spark: SparkSession, folder: Path, points: Sequence[Point]) -> DataFrame:
    """A row per point: `point` counts combinations, then the grid's values, then what was found.

    A column is named by its dotted key, so Spark wants it in backticks: "`publishers.rate`".
    """
    from pyspark.sql import functions as F
    from pyspark.sql.pandas.types import from_arrow_schema

    found = (
        spark.read.schema(from_arrow_schema(arrow_schema()))
        .option("pathGlobFilter", "*.parquet")
        .parquet(str(folder))
        .drop("grid", "seed")
    )
    keys = list(points[0].values)
    kinds = {key: _kind([point.values[key] for point in points]) for key in keys}
    known = spark.createDataFrame(
        [_known(point, kinds) for point in points],
        ", ".join(
            ["digest string", "point bigint"]
            + [f"`{key}` {kind}" for key, kind in kinds.items()]
            + ["seed bigint"]
        ),
    )
    joined = F.broadcast(known).join(found, "digest")
    others = [name for name in found.columns if name != "digest"]
    named = ["point", *(f"`{key}`" for key in keys), "seed", *others, "digest"]
    return joined.select(*named).orderBy("point", "seed")


def _known(point: Point, kinds: dict[str, str]) -> tuple[Any, ...]:
    values = (_value(point.values[key], kind) for key, kind in kinds.items())
    return (point.digest, point.number, *values, point.seed)


def _kind(values: Sequence[Any]) -> str:
    """Spark's type for a grid's values; JSON text if they are not of one kind.

    >>> _kind([1, 5]), _kind([1, 0.5]), _kind(["none", "total"]), _kind([[1], "all"])
    ('bigint', 'double', 'string', 'string')
    """
    found = {type(value) for value in values}
    if found == {bool}:
        return "boolean"
    if found == {int}:
        return "bigint" if all(abs(value) < 2**63 for value in values) else "string"
    return "double" if found <= {int, float} else "string"


def _value(value: Any, kind: str) -> Any:
    if kind == "double":
        return float(value)
    if kind == "string" and not isinstance(value, str):
        return msgspec.json.encode(value).decode()
    return value


def summary(frame: DataFrame, points: Sequence[Point]) -> list[dict[str, Any]]:
    """For each combination: its values, how many seeds ran and failed, mean and standard deviation
    of every figure, and the violations of each promise over all seeds (None: not judged)."""
    from pyspark.sql import functions as F

    figures = [
        measure(name).alias(f"{name}_{word}")
        for name in FIGURES
        for word, measure in (("mean", F.mean), ("sd", F.stddev_samp))
    ]
    broken = [F.sum(F.col("violations")[name]).alias(name) for name in PROMISES]
    told = frame.groupBy("point").agg(
        F.count("*").alias("seeds"), F.count("error").alias("failed"), *figures, *broken
    )
    values = {point.number: point.values for point in points}
    lines = []
    for row in sorted(told.collect(), key=lambda row: int(row["point"])):
        line = {"values": values[row["point"]], "seeds": row["seeds"], "failed": row["failed"]}
        line |= {name: {"mean": row[f"{name}_mean"], "sd": row[f"{name}_sd"]} for name in FIGURES}
        line["violations"] = {name: row[name] for name in PROMISES if row[name] is not None}
        lines.append(line)
    return lines
