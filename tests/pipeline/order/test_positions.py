"""Rows that have positions are ordered already: `order` projects them, on tables and streams."""

from __future__ import annotations

import random
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from inorder.core.errors import Misuse
from inorder.pipeline.match_stage import match
from inorder.pipeline.order_stage import order

SCHEMA = "event string, topic string, position bigint, attributes string"
HELD = [
    {"subscriber": name, "op": "subscribe", "topics": topics, "where": where, "parameters": "{}",
     "at": 0.0, "after": 0}
    for name, topics, where in (("a", ["t", "u"], None), ("b", ["u"], "n > 2"))
]  # fmt: skip


def rows(count: int, seed: int = 1) -> list[tuple[Any, ...]]:
    rng = random.Random(seed)
    found = [(f"p:{n}", rng.choice("tu"), 3 * n, f'{{"n":{n}}}') for n in range(count)]
    rng.shuffle(found)
    return found


def plan_of(df: Any) -> str:
    return str(df._jdf.queryExecution().executedPlan().toString())


@pytest.mark.parametrize("guarantee", ["total", "fifo", "none", "causal"])
def test_rows_leave_as_they_came_under_any_guarantee(spark, guarantee):
    given = rows(20)
    out = order(spark.createDataFrame(given, SCHEMA), guarantee)
    assert out.columns == ["event", "topic", "position", "attributes", "in_order"]
    assert [tuple(row) for row in out.collect()] == [(*row, True) for row in given]


def test_nothing_is_shuffled_sorted_or_kept(spark):
    """Control: the same rows with stamps cost all of it."""
    frame = spark.createDataFrame(rows(5), SCHEMA).withColumn("subscriber", F.lit("s"))
    plan = plan_of(order(frame))
    assert not any(word in plan for word in ("Exchange", "Sort", "Python", "State"))
    stamped = frame.withColumns({
        "stamp": F.lit("{}"), "publisher": F.lit("p"), "seq": F.lit(1), "received_at": F.lit(0.0),
    })  # fmt: skip
    assert all(word in plan_of(order(stamped, "none")) for word in ("Exchange", "Sort", "Python"))


def test_before_and_behind_match_is_the_same(spark):
    frame = spark.createDataFrame(rows(12), SCHEMA)
    columns = ["subscriber", "event", "position", "in_order"]
    behind = order(match(frame, HELD)).select(columns)
    before = match(order(frame), HELD).select(columns)
    assert sorted(behind.collect()) == sorted(before.collect())
    kept = order(match(frame, HELD, unmatched=True)).select(columns)
    assert sorted(kept.collect()) == sorted(behind.collect())
    assert {row.subscriber for row in behind.collect()} == {"a", "b"}


def test_a_stream_is_the_same_projection(spark, tmp_path):
    spark.createDataFrame(rows(30), SCHEMA).repartition(3).write.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    seen: list[Any] = []
    query = (
        order(stream.parquet(str(tmp_path / "in")))
        .writeStream.foreachBatch(lambda frame, number: seen.extend(frame.collect()))
        .option("checkpointLocation", str(tmp_path / "c"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert sorted(tuple(row) for row in seen) == sorted((*row, True) for row in rows(30))
    assert query.lastProgress["stateOperators"] == []


def test_a_row_without_a_position_ends_the_query_or_is_put_aside(spark):
    frame = spark.createDataFrame([*rows(3), ("p:9", "t", None, "{}")], SCHEMA)
    with pytest.raises(PySparkException, match="event p:9 has no position"):
        order(frame).select("event").collect()  # whatever of it is asked for
    out = order(frame, quarantine=True).collect()
    assert [(row.event, row.quarantine, row.in_order) for row in out][-1] == (
        "p:9", "no position", None,
    )  # fmt: skip
    assert [row.quarantine for row in out][:-1] == [None] * 3


@pytest.mark.parametrize(
    "given",
    [{"lanes": 2}, {"mode": "hold"}, {"start": "first"}, {"arrival": "event"}, {"subscriber": "s"}],
)
def test_what_only_stamps_have_a_use_for_is_refused_by_name(spark, given):
    [name] = given
    with pytest.raises(Misuse, match=f"the rows have positions.*: {name} is for rows with stamps"):
        order(spark.createDataFrame(rows(1), SCHEMA), **given)


def test_what_is_no_position_or_a_name_that_is_taken_is_refused(spark):
    frame = spark.createDataFrame(rows(1), SCHEMA)
    with pytest.raises(Misuse, match="column position is string"):
        order(frame.withColumn("position", F.lit("1")))
    with pytest.raises(Misuse, match="a column in_order already"):
        order(frame.withColumn("in_order", F.lit(True)))
