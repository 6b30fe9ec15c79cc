"""`sequence`: positions that Spark gives, so that all subscribers agree."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inorder.core.errors import Misuse
from inorder.pipeline.order_stage import order
from inorder.pipeline.sequence_rows import NumberedRows, Numbers
from inorder.pipeline.sequence_stage import sequence

TOPICS = ["orders", "payments", "stock", 'odd "one", é']


def numbered(rows: list[dict[str, Any]], cuts: list[int]) -> list[dict[str, Any]]:
    """In pieces, with a new life between any two of them."""
    numbers = Numbers()
    found: list[dict[str, Any]] = []
    edges = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    schema = pa.schema([("topic", pa.string()), ("publisher", pa.string()), ("seq", pa.int64())])
    for low, high in pairwise(edges):
        if low < high:
            some = pa.Table.from_pylist(rows[low:high], schema)
            found += NumberedRows(numbers).feed(some).to_pylist()
            numbers = Numbers.unpack(numbers.pack())
    return found


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "topic": st.sampled_from([*TOPICS, "", None]),
            "publisher": st.sampled_from(["p", "q", "spark", "", None]),
            "seq": st.sampled_from([7, 8, 0, None]),
        }
    ),
    max_size=40,
)


@settings(max_examples=150)
@given(ROWS, st.lists(st.integers(0, 40), max_size=4))
def test_positions_count_the_rows_that_have_a_topic_however_they_are_cut(rows, cuts):
    found = numbered(rows, cuts)
    placed = [row["position"] for row in found if row["topic"]]
    assert placed == list(range(len(placed)))
    assert {row["position"] for row in found if not row["topic"]} <= {None}
    own = 0
    for given_, row in zip(rows, found, strict=True):
        kept = given_["publisher"] in ("p", "q") and (given_["seq"] or 0) > 0
        own += not kept
        expected = (given_["publisher"], given_["seq"]) if kept else ("spark", own)
        assert (row["publisher"], row["seq"]) == expected


def test_a_restart_without_its_state_would_give_positions_twice():
    """Negative control."""
    rows = [{"topic": "a", "publisher": "p", "seq": 1}] * 4
    found = [row["position"] for half in (rows[:2], rows[2:]) for row in numbered(half, [])]
    assert found == [0, 1, 0, 1]


# Spark.


def rows_of(count: int, seed: int) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    return [
        {"topic": rng.choice(TOPICS), "received_at": float(n), "attributes": f"{n}"}
        for n in range(count)
    ]


def test_a_table(spark):
    rows = rows_of(300, 1)
    shuffled = random.Random(2).sample(rows, len(rows))
    df = spark.createDataFrame(pa.Table.from_pylist(shuffled))
    out = order(sequence(df)).sort("position").collect()
    assert [row.received_at for row in out] == [row["received_at"] for row in rows]
    assert [row.position for row in out] == list(range(300))
    assert [row.event for row in out] == [f"spark:1:{n}" for n in range(1, 301)]
    assert all(row.in_order for row in out)
    only = sequence(df, topics=["orders"]).select("topic", "position").collect()
    assert {row.topic for row in only} == {"orders"}
    assert sorted(row.position for row in only) == list(range(len(only)))


def test_a_stream_goes_on_with_its_positions_after_a_restart(spark, tmp_path: Path):
    rows = rows_of(200, 5)
    (tmp_path / "in").mkdir()
    schema = spark.createDataFrame(pa.Table.from_pylist(rows)).schema
    for number, (low, high) in enumerate([(0, 70), (70, 200)]):
        some = random.Random(number).sample(rows[low:high], high - low)
        pq.write_table(pa.Table.from_pylist(some), tmp_path / "in" / f"{number}.parquet")
        stream = spark.readStream.schema(schema).parquet(str(tmp_path / "in"))
        query = (
            sequence(stream)
            .writeStream.format("parquet")
            .option("path", str(tmp_path / "out"))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    out = spark.read.parquet(str(tmp_path / "out")).orderBy("received_at").collect()
    assert [row.position for row in out] == list(range(200))
    assert [row.seq for row in out] == list(range(1, 201))


def test_calls_that_cannot_be_are_refused(spark):
    df = spark.createDataFrame(pa.Table.from_pylist(rows_of(3, 1)))
    for change, words in (
        (df.drop("topic"), "needs a column topic"),
        (df.drop("received_at"), "do not tell their order of arrival"),
        (df.withColumnRenamed("attributes", "position"), "positions already"),
        (df.withColumnRenamed("attributes", "seq"), "seq is string"),
    ):
        with pytest.raises(Misuse, match=words):
            sequence(change)
