"""`sequence`: stamps that Spark gives, so that all subscribers agree."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from inorder.check import judge
from inorder.check.history import History
from inorder.check.trace import DeliveryRow
from inorder.core.effect import Diffuse
from inorder.core.errors import Misuse
from inorder.core.event import Event
from inorder.guarantee.registry import guarantee
from inorder.pipeline.order_lane import Plan
from inorder.pipeline.order_rows import Rows
from inorder.pipeline.order_stage import order
from inorder.pipeline.sequence_rows import Stamper
from inorder.pipeline.sequence_stage import sequence
from inorder.protocols.total import Directory, Options, Stage, on_log
from inorder.protocols.total.messages import Create

TOPICS = ["orders", "payments", "stock", 'odd "one", é']


def by_the_stage(topics: list[str]) -> list[str]:
    """The stamps a log's stage gives, event by event."""
    options = replace(on_log(Options()), links="trusted")
    stage = Stage("stage1", Directory((), 0), options)
    found = []
    for seq, topic in enumerate(topics, 1):
        effects = stage.receive("p", Create(topic, (Event("p", seq, topic),)), 0.0)
        for effect in effects:
            if isinstance(effect, Diffuse):
                found += [text for _, text in guarantee("total").log.stamped(effect.message)]
    return found


def stamped(topics: list[str], cuts: list[int]) -> list[dict[str, Any]]:
    """In pieces, with a new life between any two of them."""
    stamper = Stamper("total")
    rows: list[dict[str, Any]] = []
    edges = [0, *sorted(min(cut, len(topics)) for cut in cuts), len(topics)]
    for low, high in pairwise(edges):
        if low < high:
            some = pa.array(topics[low:high])
            found = stamper.stamp(some, None, None)
            columns = {"topic": some, **found}
            rows += pa.table(columns).to_pylist()
            stamper = Stamper.unpack("total", stamper.pack())
    return rows


@settings(max_examples=150)
@given(st.lists(st.sampled_from(TOPICS), max_size=40), st.lists(st.integers(0, 40), max_size=4))
def test_stamps_are_those_of_the_stage_however_rows_are_cut(topics, cuts):
    rows = stamped(topics, cuts)
    assert [row["stamp"] for row in rows] == by_the_stage(topics)
    assert [row["seq"] for row in rows] == list(range(1, len(topics) + 1))
    for topic in TOPICS:
        offsets = [row["offset"] for row in rows if row["topic"] == topic]
        assert offsets == list(range(len(offsets)))


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from(TOPICS), min_size=1, max_size=60),
    st.lists(st.sets(st.sampled_from(TOPICS), min_size=1), min_size=2, max_size=4),
    st.sampled_from(["hold", "tag"]),
    st.randoms(use_true_random=False),
)
def test_subscribers_of_any_topics_agree(topics, held, mode, rng):
    """Each is handed the rows of its topics in an order of its own."""
    rows = stamped(topics, [])
    deliveries: list[DeliveryRow] = []
    for number, mine in enumerate(held):
        name = f"s{number}"
        some = [{**row, "subscriber": name} for row in rows if row["topic"] in mine]
        rng.shuffle(some)
        if not some:
            continue
        plan = Plan("total", {"mode": mode}, start=dict.fromkeys(sorted(mine), 0))
        lane = Rows(plan)
        out = [lane.feed(pa.Table.from_pylist(some)), lane.finish()]
        for row in (row for table in out for row in table.to_pylist()):
            if row["in_order"]:
                event = f"{row['publisher']}:{row['seq']}"
                deliveries.append(
                    DeliveryRow(name, row["nth"], event, row["topic"], row["publisher"],
                                row["seq"], 0.0, 0.0, 0.0, True)
                )  # fmt: skip
            else:
                assert mode == "tag"
    # Of tagged rows nothing is promised; in hold mode nobody may lack any, so that agreement is
    # never empty.
    if mode == "hold":
        owed = [sum(row["topic"] in mine for row in rows) for mine in held]
        assert len(deliveries) == sum(owed)
    if deliveries:
        verdict = judge(History(deliveries, [], []))["total"]
        assert verdict.judged
        assert verdict.kept


def test_without_the_stamps_they_would_not_agree():
    """What the test above would find: two subscribers, each in its own order of arrival."""
    rows = [
        DeliveryRow("s1", 1, "p:1", "a", "p", 1, 0.0, 0.0, 0.0, True),
        DeliveryRow("s1", 2, "q:1", "b", "q", 1, 0.0, 0.0, 0.0, True),
        DeliveryRow("s2", 1, "q:1", "b", "q", 1, 0.0, 0.0, 0.0, True),
        DeliveryRow("s2", 2, "p:1", "a", "p", 1, 0.0, 0.0, 0.0, True),
    ]
    assert not judge(History(rows, [], []))["total"].kept


def test_a_long_run_of_one_topic_is_numbered_without_a_hole():
    topics = pa.array(["a"] * 70_000 + ["b"])
    found = Stamper("total").stamp(topics, None, None)
    assert found["stamp"][-1].as_py() == '{"a":70000,"b":1}'
    assert np.array_equal(found["offset"].to_numpy()[:-1], np.arange(70_000))


def test_owners_are_kept_where_there_are_any():
    topics = pa.array(["a", "a", "a"])
    found = Stamper("total").stamp(topics, pa.array(["p", None, "q"]), pa.array([7, 8, None]))
    assert found["publisher"].to_pylist() == ["p", "spark", "spark"]
    assert found["seq"].to_pylist() == [7, 1, 2]


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
    out = sequence(df).orderBy("received_at").collect()
    assert [row.stamp for row in out] == by_the_stage([row["topic"] for row in rows])
    assert [row.event for row in out] == [f"spark:{n}" for n in range(1, 301)]
    assert [row.arrival for row in out] == list(range(300))
    ordered = order(sequence(df), "total").orderBy("nth").collect()
    assert [row.received_at for row in ordered] == [row["received_at"] for row in rows]
    assert all(row.in_order for row in ordered)
    only = sequence(df, topics=["orders"]).select("topic", "stamp").distinct().collect()
    assert {row.topic for row in only} == {"orders"}
    assert all('"stock"' not in row.stamp for row in only)


def test_a_stream_goes_on_with_its_numbers_after_a_restart(spark, tmp_path: Path):
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
    assert [row.stamp for row in out] == by_the_stage([row["topic"] for row in rows])
    assert [row.seq for row in out] == list(range(1, 201))


def test_calls_that_cannot_be_are_refused(spark):
    df = spark.createDataFrame(pa.Table.from_pylist(rows_of(3, 1)))
    for change, options, words in (
        (df.drop("topic"), {}, "needs a column topic"),
        (df.drop("received_at"), {}, "do not tell their order of arrival"),
        (df.withColumnRenamed("attributes", "stamp"), {}, "stamps already"),
        (df.withColumnRenamed("attributes", "seq"), {}, "seq is string"),
        (df, {"guarantee": "fifo"}, "has no stamps that somebody else could give"),
    ):
        with pytest.raises(Misuse, match=words):
            sequence(change, **options)
