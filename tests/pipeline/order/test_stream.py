"""`order` on streams: micro-batches cut and restarted anywhere give the table's answers."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F
from pyspark.sql.streaming.tws_tester import TwsTester

from inorder.core.errors import Misuse
from inorder.core.limits import ORDER_LANES_MAX
from inorder.pipeline.lane_keys import lane_key
from inorder.pipeline.order_lane import Plan
from inorder.pipeline.order_rows import Rows, blob, unblob
from inorder.pipeline.order_stage import order
from inorder.pipeline.order_stream import LaneProcessor, Orderly, packing, unpacking
from tests.pipeline.order.traces import WAYS, Delivery, delivered, looped, simulated, table_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ARRIVAL = ("arrival", "topic", "offset")


class Query:
    """A lane of a stream without Spark; `run` is one micro-batch, `restart` a new process."""

    def __init__(self, plan: Plan, flat: bool = True) -> None:
        self._plan = plan
        self._flat = flat
        self._state: Any = None
        self._restart()

    def _restart(self) -> None:
        self._tester = TwsTester(LaneProcessor(Orderly(self._plan, ARRIVAL), 2, self._flat))
        if self._state is not None:
            self._tester.updateValueState("lane", 0, self._state)

    def run(self, rows: list[dict[str, Any]], pieces: int = 2) -> list[Delivery]:
        blobs = [blob(table_of(rows[n::pieces])) for n in range(pieces)]
        out = self._tester.testInPandas(0, pd.DataFrame({"lane": 0, "rows": blobs}))
        self._state = self._tester.peekValueState("lane", 0)
        self._restart()
        if self._flat:
            return delivered(pa.Table.from_pandas(out, preserve_index=False)) if len(out) else []
        return [each for data in out.get("rows", ()) for each in delivered(unblob(data))]

    def left(self) -> list[Delivery]:
        return delivered(Rows.unpack(self._plan, self._state[1]).finish())


@settings(max_examples=30)
@given(
    st.sampled_from(sorted(WAYS)),
    st.integers(0, 10_000),
    st.lists(st.integers(0, 150), max_size=5),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_any_cut_and_a_restart_after_every_batch(way, seed, cuts, flat, rng):
    run = simulated(way, seed, duration=1.5)
    edges = [0, *sorted(cuts), len(run.rows)]
    query = Query(run.plan, flat)
    found: list[Delivery] = []
    for low, high in pairwise(edges):
        rows = run.rows[low:high]
        rng.shuffle(rows)
        if rows:
            found += query.run(rows)
    assert sorted(found + query.left()) == looped(run.plan, run.rows)


def test_without_sorting_the_difference_is_seen(monkeypatch):
    from inorder.pipeline import order_stream

    run = simulated("tag", 2)
    shuffled = random.Random(1).sample(run.rows, len(run.rows))
    assert sorted(Query(run.plan).run(shuffled)) == run.deliveries
    monkeypatch.setattr(order_stream, "arrival_order", lambda rows, _: np.arange(rows.num_rows))
    assert sorted(Query(run.plan).run(shuffled)) != run.deliveries


def test_packing_and_back_keeps_rows_with_their_lane():
    rows = simulated("hold", 1).table
    lanes = pa.array([n % 3 for n in range(rows.num_rows)], pa.int32())
    batches = rows.append_column("_lane", lanes).combine_chunks().to_batches()
    greeting, *packed = packing(3)(iter(batches))
    assert greeting.column(0).to_pylist() == [lane_key(n) for n in range(3)]
    assert greeting.column(1).to_pylist() == [b""] * 3
    assert [batch.column(0).to_pylist() for batch in packed] == [[lane_key(n) for n in range(3)]]
    only = [batch.select(["rows"]) for batch in packed]
    back = pa.Table.from_batches(unpacking(iter(only)))
    by_arrival = [("arrival", "ascending")]
    assert back.sort_by(by_arrival).equals(rows.sort_by(by_arrival))


def test_a_column_with_a_dot_in_its_name_is_refused_on_a_stream(spark, tmp_path):
    table = simulated("hold", 1).table
    pq.write_table(table, tmp_path / "a.parquet")
    stream = spark.readStream.schema(spark.createDataFrame(table).schema).parquet(str(tmp_path))
    with pytest.raises(Misuse, match=r"'a.b' has a dot in its name"):
        order(stream.withColumn("a.b", F.lit(1)))


def test_large_texts_are_texts():
    run = simulated("hold", 1)
    kinds = [
        pa.field(each.name, pa.large_string() if pa.types.is_string(each.type) else each.type)
        for each in run.table.schema
    ]
    lane = Rows(run.plan)
    out = [lane.feed(run.table.cast(pa.schema(kinds))), lane.finish()]
    assert sorted(each for some in out for each in delivered(some)) == run.deliveries


# Real queries.


def test_lanes_are_spread_evenly_over_any_number_of_tasks(spark):
    lanes = [*range(64), ORDER_LANES_MAX - 1]
    keys = spark.createDataFrame([(lane, lane_key(lane)) for lane in lanes], "lane int, key int")
    wrong = [f"pmod(hash(key), {tasks}) <> pmod(lane, {tasks})" for tasks in (2, 3, 4, 7, 200)]
    assert keys.where(" OR ".join(["hash(key) <> lane", *wrong])).count() == 0
    assert keys.where("pmod(hash(lane), 4) <> pmod(lane, 4)").count() > 0


def write(folder: Path, batches: list[list[dict[str, Any]]]) -> None:
    folder.mkdir(exist_ok=True)
    for number, rows in enumerate(batches):
        pq.write_table(table_of(rows), folder / f"{number:03d}.parquet")


def run_query(
    spark: SparkSession, folder: Path, schema: Any, plan: Plan, files: int, lanes: int = 2
) -> None:
    """As many micro-batches as there are files that no earlier query has read."""
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    stream = stream.parquet(str(folder / "in"))
    out = order(
        stream, plan.guarantee, lanes=lanes, start=plan.start, quarantine=True, **plan.options
    )
    query = (
        out.writeStream.format("parquet")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert len([each for each in query.recentProgress if each["numInputRows"]]) == files


def test_a_checkpoint_goes_on_with_as_many_lanes_as_it_began_with(spark, tmp_path):
    run = simulated("hold", 6, duration=1.0)
    rows = run.rows
    schema = spark.createDataFrame(run.table).schema
    write(tmp_path / "in", [rows[:40]])
    run_query(spark, tmp_path, schema, run.plan, 1, lanes=2)
    write(tmp_path / "in", [rows[:40], rows[40:]])
    for other in (1, 3):
        with pytest.raises(StreamingQueryException, match=f"begun with 2 lanes, not with {other}"):
            run_query(spark, tmp_path, schema, run.plan, 1, lanes=other)
    run_query(spark, tmp_path, schema, run.plan, 1, lanes=2)
    found = delivered(spark.read.parquet(str(tmp_path / "out")).toArrow())
    held = [each for each in looped(run.plan, rows) if each not in found]
    assert sorted(found + held) == looped(run.plan, rows)
    assert len(held) < 5


@pytest.mark.parametrize("way", ["hold"])
def test_a_query_restarted_at_every_batch_is_the_table(spark, tmp_path, way):
    """Late rows included: they come in a later micro-batch than their place."""
    runs = [simulated(way, seed, prefix=f"{seed}/", duration=1.5) for seed in (3, 4)]
    rows = sorted((r for run in runs for r in run.rows), key=lambda row: row["received_at"])
    rows = [{**row, "arrival": n} for n, row in enumerate(rows)]
    plan = runs[0].plan
    third = len(rows) // 3
    batches = [rows[:third], rows[third : 2 * third], rows[2 * third :]]
    schema = spark.createDataFrame(table_of(rows)).schema
    for number, batch in enumerate(batches):
        random.Random(number).shuffle(batch)
        write(tmp_path / "in", batches[: number + 1])
        run_query(spark, tmp_path, schema, plan, 1)
    out = spark.read.parquet(str(tmp_path / "out")).toArrow()
    found = delivered(out)
    expected = looped(plan, rows)
    # What is held at the end stays in the state of a stream; a table hands it over.
    held = [each for each in expected if each not in found]
    assert sorted(found + held) == expected
    assert len(held) < 10
    for each in held:
        assert all(o.nth < each.nth for o in found if o.subscriber == each.subscriber)
    assert out.num_rows == len(rows) - len(held)
    table = order(spark.createDataFrame(table_of(rows)), plan.guarantee, start=plan.start,
                  **plan.options)  # fmt: skip
    assert sorted(delivered(table.toArrow())) == expected


def test_rows_late_by_a_whole_batch_are_waited_for_or_tagged():
    """A row of the first batch comes with the last one: hold waits, tag says that it is late."""
    run = simulated("hold", 7, subscribers=1, duplicate=0.0, reorder=0.0)
    rows = run.rows
    late = {**rows[5], "arrival": 10**6, "received_at": 99.0}
    batches = [[*rows[:5], *rows[6:30]], rows[30:45], [*rows[45:], late]]
    arrived = [row for batch in batches for row in batch]
    for mode in ("hold", "tag"):
        plan = Plan("total", {"mode": mode}, start=run.plan.start)
        query = Query(plan)
        found = [query.run(batch) for batch in batches]
        assert sorted([*found[0], *found[1], *found[2]]) == looped(plan, arrived)
        if mode == "hold":
            assert not found[1]
            assert all(each.in_order for each in found[2])
        else:
            assert [each.event for each in found[2] if not each.in_order][-1] == late["event"]


FLAT = (
    "timestamp_micros(arrival * 1000003) t", "CAST(timestamp_micros(arrival) AS timestamp_ntz) n",
    "date_add(date'2024-02-28', CAST(arrival AS int)) d", "CAST(arrival AS decimal(9,2)) m",
    "CAST(event AS binary) b", "CAST(arrival AS smallint) i", "CAST(arrival AS float) f",
    "arrival % 2 = 0 y", "if(arrival % 3 = 0, NULL, arrival) v", "NULLIF(event, 'p0:1') w",
)  # fmt: skip
NESTED = (
    "array(event, NULL) a", "named_struct('x', arrival, 'y', NULLIF(event, 'p0:1')) s",
    "map(event, arrival) k", "if(arrival % 2 = 0, NULL, array(timestamp_micros(arrival))) l",
)  # fmt: skip


@pytest.mark.parametrize("columns", [FLAT, (*FLAT, *NESTED)], ids=["flat", "nested"])
def test_columns_of_every_kind_come_through_as_they_are(spark, tmp_path, columns):
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/St_Johns")
    try:
        run = simulated("hold", 5, duration=1.5)
        rows = spark.createDataFrame(run.table).selectExpr("*", *columns)
        rows.coalesce(1).write.parquet(str(tmp_path / "in"))
        run_query(spark, tmp_path, rows.schema, run.plan, 1)
        out = spark.read.parquet(str(tmp_path / "out"))
        given = spark.read.parquet(str(tmp_path / "in"))
        assert out.count() > 50
        fields = [field.name for field in given.schema]
        assert out.select(fields).schema == given.schema
        whole = F.to_json(F.struct(*fields))
        assert out.select(whole).exceptAll(given.select(whole)).count() == 0
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
