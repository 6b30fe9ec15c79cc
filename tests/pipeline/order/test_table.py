"""`order` on tables: Spark says what the simulator said, however the rows lie about."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from inorder.check import judge
from inorder.check.history import History
from inorder.check.trace import DeliveryRow
from inorder.pipeline.order_stage import order
from tests.pipeline.order.traces import WAYS, Delivery, looped, simulated, table_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def frame(spark: SparkSession, rows: list[dict[str, Any]]) -> DataFrame:
    return spark.createDataFrame(table_of(rows))


def found(df: DataFrame) -> list[Delivery]:
    rows = df.select("subscriber", "nth", "event", "in_order").collect()
    return sorted(Delivery(*row) for row in rows if row[1] is not None)


@pytest.mark.parametrize("way", WAYS)
def test_many_runs_in_one_job(spark, way):
    """Each run has subscribers of its own; one of them holds half of all rows."""
    runs = [simulated(way, seed, prefix=f"{seed}/", duration=1.5) for seed in range(4)]
    runs.append(simulated(way, 9, prefix="9/", duration=12.0, rate=25, subscribers=1))
    rows = [row for run in runs for row in run.rows]
    assert sum(row["subscriber"] == "9/s1" for row in rows) > len(rows) * 0.4
    random.Random(4).shuffle(rows)
    plan = runs[0].plan
    out = order(frame(spark, rows), plan.guarantee, start=plan.start, lanes=3, **plan.options)
    expected = sorted(each for run in runs for each in run.deliveries)
    assert found(out) == expected
    assert set(out.columns) == {*rows[0], "nth", "in_order"}


def test_every_row_comes_out_once(spark):
    run = simulated("hold", 5, duplicate=0.5)
    rows = [*run.rows, {**run.rows[7], "arrival": 10**6, "stamp": "{"}]
    out = order(frame(spark, rows), quarantine=True, start=run.plan.start).collect()
    assert sorted(row.arrival for row in out) == sorted(row["arrival"] for row in rows)
    reasons = {row.quarantine for row in out}
    assert {None, "duplicate"} < reasons
    assert all((row.nth is None) == (row.quarantine is not None) for row in out)


def test_doubled_rows_change_no_delivery(spark):
    run = simulated("hold", 6, duplicate=0.0)
    doubled = [*run.rows, *run.rows[::3]]
    once = order(frame(spark, run.rows), start=run.plan.start)
    twice = order(frame(spark, doubled), start=run.plan.start)
    assert found(twice) == found(once)


def test_the_judges_find_what_they_find_in_the_simulator(spark):
    """Rows displaced and doubled, and still one order for everybody (F16)."""
    run = simulated("hold", 8, subscribers=3, reorder=0.5)
    out = found(order(frame(spark, run.rows), start=run.plan.start))
    for deliveries in (out, run.deliveries):
        verdicts = judge(History([_delivery(each) for each in deliveries], [], []))
        assert verdicts["total"].judged
        assert verdicts["total"].kept
        assert verdicts["unique"].kept


def _delivery(each: Delivery) -> DeliveryRow:
    publisher, _, seq = each.event.partition(":")
    return DeliveryRow(
        each.subscriber, each.nth, each.event, "t", publisher, int(seq), 0.0, 0.0, 0.0,
        each.in_order,
    )  # fmt: skip


def test_one_subscriber_without_a_column(spark):
    run = simulated("hold", 3, subscribers=1)
    rows = frame(spark, run.rows).drop("subscriber")
    out = order(rows, start=run.plan.start, subscriber="me").collect()
    assert sorted((row.nth, row.event) for row in out) == sorted(
        (each.nth, each.event) for each in run.deliveries
    )


def test_arrival_can_be_told_otherwise(spark):
    run = simulated("fifo", 3)
    rows = frame(spark, run.rows).drop("arrival", "offset")
    expected = looped(run.plan, run.rows)
    assert found(order(rows, "fifo", **run.plan.options)) == expected
    named = rows.withColumnRenamed("received_at", "when it.came").selectExpr(
        "*", "`when it.came` as received_at"
    )
    assert found(order(named, "fifo", arrival="when it.came", **run.plan.options)) == expected


def test_rows_that_are_not_matched_stay_inside(spark):
    from pyspark.sql import functions as F

    run = simulated("hold", 2)
    rows = frame(spark, run.rows).withColumn("matched", F.col("seq") % 3 != 0)
    out = found(order(rows, start=run.plan.start))
    assert {int(each.event.split(":")[1]) % 3 for each in out} == {1, 2}
    kept = [each for each in run.deliveries if int(each.event.split(":")[1]) % 3]
    assert [each.event for each in out] == [each.event for each in kept]


def test_answers_that_come_late_find_their_rows(spark):
    """Small Arrow batches, and a row that waits through many of them."""
    run = simulated("hold", 1, duration=4.0, duplicate=0.1)
    first = run.rows[0]
    rows = [*run.rows[1:], {**first, "arrival": 10**6, "received_at": 99.0}]
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "7")
    try:
        out = found(order(frame(spark, rows), start=run.plan.start))
    finally:
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "100000")
    assert out == looped(run.plan, rows)
