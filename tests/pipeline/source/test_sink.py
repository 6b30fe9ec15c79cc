"""Writing: what goes in comes out, once, and only where it fits."""

from __future__ import annotations

import itertools
import sqlite3
from contextlib import closing

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from inorder.bus.store.sqlite.file import File
from inorder.core.errors import InorderError, Misuse, Refused
from inorder.core.limits import SINK_BATCHES_KEPT
from inorder.pipeline import sink
from tests.pipeline.source import logs

KINDS = {"string": StringType(), "bigint": LongType(), "timestamp": TimestampType()}
SCHEMAS = {
    "stamped": "topic string, publisher string, seq bigint, stamp string, attributes string",
    "plain": "topic string, n bigint, name string",
}


def planned(path, schema="plain", overwrite=False, **options):
    columns = [each.split() for each in SCHEMAS.get(schema, schema).split(", ")]
    found = StructType([StructField(name, KINDS[kind]) for name, kind in columns])
    return sink.plan({"url": f"sqlite:///{path}", **options}, found, overwrite)


def rows(count, topic="orders", low=0):
    numbers = list(range(low, low + count))
    return pa.RecordBatch.from_pydict(
        {"topic": [topic] * count, "n": numbers, "name": [f"é{n}" for n in numbers]}
    )


def numbered(numbers, topic="orders"):
    return pa.RecordBatch.from_pydict(
        {
            "topic": [topic] * len(numbers),
            "publisher": ["p"] * len(numbers),
            "seq": list(numbers),
            "stamp": [f'{{"{topic}":{number}}}' for number in numbers],
            "attributes": [f'{{"n":{number}}}' for number in numbers],
        }
    )


def events(path):
    return [row[3] for row in logs.plain_rows(path)]


def test_a_task_that_is_tried_again_appends_nothing(tmp_path):
    plan = planned(tmp_path / "a.db")
    for _ in range(3):
        for task in (0, 1):
            sink.append(plan, "s", 4, task, iter([rows(5), rows(5, low=5)]))
    found = events(tmp_path / "a.db")
    assert len(found) == len(set(found)) == 20
    assert [row[8] for row in logs.plain_rows(tmp_path / "a.db")][:2] == [
        '{"n":0,"name":"é0"}', '{"n":1,"name":"é1"}',
    ]  # fmt: skip
    sink.append(plan, "s", 5, 0, iter([rows(5)]))
    sink.append(plan, "other", 4, 0, iter([rows(5)]))
    found = events(tmp_path / "a.db")
    assert len(found) == len(set(found)) == 30


def test_a_batch_with_a_number_is_written_once_and_its_receipts_go_after_a_while(spark, tmp_path):
    path = tmp_path / "a.db"
    late = SINK_BATCHES_KEPT
    frame = spark.createDataFrame([("orders", n) for n in range(4)], "topic string, n bigint")
    for batch in (0, 0, 1, late, late, late + 1):
        writer = frame.coalesce(1).write.format("inorder").mode("append")
        writer.option("url", f"sqlite:///{path}").option("sink", "s").option("batch", batch).save()
    found = events(path)
    assert len(found) == len(set(found)) == 16
    with closing(sqlite3.connect(path)) as db:
        keys = {key.partition("=")[0] for (key,) in db.execute("SELECT key FROM receipts")}
    assert keys == {f"spark/s/{late}/0", f"spark/s/{late + 1}/0"}


@pytest.mark.parametrize(
    ("options", "told"),
    [({"batch": "1"}, "name it, option sink"), ({"batch": "-1", "sink": "s"}, "from 0 on"),
     ({"batch": "x", "sink": "s"}, "from 0 on"), ({"batch": str(2**31), "sink": "s"}, "from 0")],
)  # fmt: skip
def test_a_batch_that_is_no_number_is_refused(tmp_path, options, told):
    with pytest.raises(Misuse, match=told):
        planned(tmp_path / "a.db", **options)


def test_without_receipts_the_test_above_would_fail(tmp_path, monkeypatch):
    """Negative control."""
    numbers = itertools.count()
    monkeypatch.setattr(sink, "_key", lambda *place: f"new-{next(numbers)}")
    plan = planned(tmp_path / "a.db")
    for _ in range(2):
        sink.append(plan, "s", 4, 0, iter([rows(5)]))
    assert len(events(tmp_path / "a.db")) == 10


def test_a_batch_that_is_cut_differently_the_second_time_is_refused(tmp_path):
    plan = planned(tmp_path / "a.db")
    sink.append(plan, "s", 0, 0, iter([rows(5)]))
    with pytest.raises(Refused, match="task 0 of batch 0 of s had 5 rows before, and 4 now"):
        sink.append(plan, "s", 0, 0, iter([rows(4)]))
    assert len(events(tmp_path / "a.db")) == 5


def test_a_task_fails_as_a_whole(tmp_path):
    plan = planned(tmp_path / "a.db", "stamped", guarantee="total")
    with pytest.raises(Misuse, match=r"event p:5 has number 5 .* where 4 is due"):
        sink.append(plan, "s", 0, 0, iter([numbered([1, 2, 3]), numbered([5])]))
    assert events(tmp_path / "a.db") == []
    sink.append(plan, "s", 0, 0, iter([numbered([1, 2, 3]), numbered([4])]))
    assert events(tmp_path / "a.db") == ["p:1", "p:2", "p:3", "p:4"]


def test_two_sinks_cannot_number_one_topic(tmp_path):
    plan = planned(tmp_path / "a.db", "stamped", guarantee="total")
    sink.append(plan, "one", 0, 0, iter([numbered([1, 2])]))
    with pytest.raises(Refused, match="topic 'orders' goes on at offset 2, not at 0"):
        sink.append(plan, "two", 0, 0, iter([numbered([1, 2])]))
    sink.append(plan, "one", 0, 0, iter([numbered([1, 2])]))
    sink.append(plan, "one", 1, 0, iter([numbered([3])]))
    assert events(tmp_path / "a.db") == ["p:1", "p:2", "p:3"]


def test_a_topic_keeps_its_guarantee(tmp_path):
    sink.append(planned(tmp_path / "a.db"), "s", 0, 0, iter([rows(1)]))
    plan = planned(tmp_path / "a.db", "stamped", guarantee="total")
    with pytest.raises(Misuse, match="'orders' is published under guarantee 'none', not 'total'"):
        sink.append(plan, "t", 0, 0, iter([numbered([2])]))
    with pytest.raises(Misuse, match="under guarantee 'none'"):
        planned(tmp_path / "a.db", "stamped", guarantee="total", topic="orders")


@pytest.mark.parametrize(
    ("schema", "options", "told"),
    [
        ("n bigint", {}, "neither a column topic nor an option topic"),
        ("topic string, publisher string", {}, "columns publisher and seq go together"),
        ("topic string, at timestamp", {}, "column 'at' is timestamp, not boolean or"),
        ("topic string, seq string, publisher string", {}, "column 'seq' is string"),
        ("stamped", {}, "option guarantee must say"),
        ("plain", {"guarantee": "fifo"}, "guarantee 'fifo' needs a column stamp"),
        ("plain", {"guarantee": "magic"}, "unknown guarantee 'magic'"),
        ("plain", {"topics": "x"}, "unknown option 'topics'"),
        ("plain", {"overwrite": True}, "only appended to"),
        ("plain", {"url": "trace:////x"}, "unknown scheme of a url to write to 'trace'"),
        ("plain", {"url": ""}, "option url is missing"),
    ],
)
def test_what_does_not_fit_is_said_when_the_query_is_planned(tmp_path, schema, options, told):
    with pytest.raises(InorderError, match=told):
        planned(tmp_path / "a.db", schema, **options)


@pytest.mark.parametrize("text", ["[1]", "{", '{"a": {"b": 1}}', "\ud800"])
def test_attributes_that_are_no_object_of_single_values_are_refused(tmp_path, text):
    plan = planned(tmp_path / "a.db", "topic string, attributes string")
    with pytest.raises(Misuse, match="is not a JSON object of single values"):
        sink.Encoding(plan, "s", 0, 0)._decoded(text)


def test_nulls_where_a_row_needs_a_value_are_refused(tmp_path):
    plan = planned(tmp_path / "a.db")
    nameless = rows(1).set_column(0, "topic", pa.nulls(1, pa.string()))
    with pytest.raises(Misuse, match="row 1 of a task: topic, publisher, seq or stamp is null"):
        sink.append(plan, "s", 0, 0, iter([nameless]))


def test_receipts_of_long_ago_are_dropped(tmp_path):
    plan = planned(tmp_path / "a.db")
    for batch in (0, 1, 10, 1000):
        written = sink.append(plan, "s", batch, 0, iter([rows(1)]))
        sink.StreamWriter(plan).commit([written, None], batch)
    file = File(tmp_path / "a.db")
    kept = [batch for batch in (0, 1, 10, 1000) if file.receipt(sink._key("s", batch, 0))]
    assert kept == [1, 10, 1000]
    file.close()


@pytest.mark.parametrize("name", ["none", "fifo", "total"])
def test_what_was_read_can_be_written_again(spark, tmp_path, name):
    values = logs.random_values(3, 60, ["t1", "t2"])
    logs.fill(tmp_path / "a.db", name, logs.diffused(name, values))
    frame = spark.read.format("inorder").option("url", f"sqlite:///{tmp_path}/a.db").load()
    one = frame.repartition(2, "topic").sortWithinPartitions("topic", "offset")
    one.write.format("inorder").mode("append").option("url", f"sqlite:///{tmp_path}/b.db").option(
        "guarantee", name
    ).save()
    keep = [0, 1, 3, 4, 5, 6, 8, 9, 10]
    copy = [[row[place] for place in keep] for row in logs.plain_rows(tmp_path / "b.db")]
    assert copy == [[row[place] for place in keep] for row in logs.plain_rows(tmp_path / "a.db")]


def test_a_frame_of_scalars_becomes_events(spark, tmp_path):
    frame = spark.range(100).selectExpr("id", "id / 4 as share", "id % 2 = 0 as even")
    writer = frame.write.format("inorder").mode("append").option("topic", "numbers")
    writer = writer.option("url", f"sqlite:///{tmp_path}/a.db").option("publisher", "loader")
    writer.option("sink", "once").save()
    writer.option("sink", "once").save()  # the same job under the same name
    found = logs.plain_rows(tmp_path / "a.db")
    assert len(found) == 100
    assert len({row[3] for row in found}) == 100
    assert {row[4].partition("/")[0] for row in found} == {"loader"}
    assert '{"even":false,"id":3,"share":0.75}' in {row[8] for row in found}
    with pytest.raises(PySparkException, match="only appended to"):
        frame.write.format("inorder").mode("overwrite").option("topic", "numbers").option(
            "url", f"sqlite:///{tmp_path}/a.db"
        ).save()


def test_a_crash_in_the_middle_of_a_transaction_leaves_nothing(tmp_path):
    plan = planned(tmp_path / "a.db")
    db = sqlite3.connect(tmp_path / "a.db")
    db.execute(
        "CREATE TRIGGER full BEFORE INSERT ON log WHEN new.offset = 7"
        " BEGIN SELECT raise(ABORT, 'stop'); END"
    )
    db.close()
    with pytest.raises(InorderError, match="stop"):
        sink.append(plan, "s", 0, 0, iter([rows(10)]))
    assert events(tmp_path / "a.db") == []
    db = sqlite3.connect(tmp_path / "a.db")
    db.execute("DROP TRIGGER full")
    db.close()
    sink.append(plan, "s", 0, 0, iter([rows(10)]))
    assert len(events(tmp_path / "a.db")) == 10
