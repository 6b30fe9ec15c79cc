"""Writing: what goes in comes out, once, and only where it fits."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql.types import (
    BinaryType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from inorder.core.errors import InorderError, Misuse, Refused, Unsure
from inorder.core.limits import SINK_BATCHES_KEPT
from inorder.logs.broker import Stored
from inorder.pipeline import sink, sink_rows
from inorder.pipeline.match_events import attributes_of
from tests.pipeline.source import logs
from tests.pipeline.source.test_columns import read

KINDS = {"string": StringType(), "bigint": LongType(), "timestamp": TimestampType(),
         "double": DoubleType(), "binary": BinaryType()}  # fmt: skip
PLAIN = "topic string, n bigint, name string"


def planned(path: Any, schema: str = PLAIN, overwrite: bool = False, **options: str) -> sink.Plan:
    columns = [each.split() for each in schema.split(", ")]
    found = StructType([StructField(name, KINDS[kind]) for name, kind in columns])
    return sink.plan({"url": f"sqlite:///{path}", **options}, found, overwrite)


def rows(count: int, topic: str = "orders", low: int = 0) -> Any:
    numbers = list(range(low, low + count))
    return pa.RecordBatch.from_pydict(
        {"topic": [topic] * count, "n": numbers, "name": [f"é{n}" for n in numbers]}
    )


def batch(**columns: Any) -> Any:
    return iter([pa.RecordBatch.from_pydict(columns)])


def events(path: Any) -> list[str]:
    return [row[4] for row in logs.plain_rows(path)]


def attributes(path: Any) -> list[Any]:
    return [json.loads(row[12]) for row in logs.plain_rows(path)]


def test_a_task_that_is_tried_again_appends_nothing(tmp_path):
    plan = planned(tmp_path / "a.db")
    for _ in range(3):
        for task in (0, 1):
            sink.append(plan, "s", 4, task, iter([rows(5), rows(5, low=5)]))
    assert len(events(tmp_path / "a.db")) == len({*events(tmp_path / "a.db")}) == 20
    assert attributes(tmp_path / "a.db")[1] == {"n": 1, "name": "é1"}
    sink.append(plan, "s", 5, 0, iter([rows(5)]))
    sink.append(plan, "s", 4, 0, iter([rows(5), rows(5, low=5)]))  # behind a later batch, too
    sink.append(plan, "other", 4, 0, iter([rows(5)]))
    assert len(events(tmp_path / "a.db")) == len({*events(tmp_path / "a.db")}) == 30


def test_without_a_publisher_of_its_own_rows_would_be_there_twice(tmp_path, monkeypatch):
    """Negative control: a task that comes back under another name knows nothing."""
    numbers = itertools.count()
    honest = sink_rows.blake2b
    plan = planned(tmp_path / "a.db")
    monkeypatch.setattr(sink, "_key", lambda *place: f"new-{next(numbers)}")
    monkeypatch.setattr(
        sink_rows, "blake2b", lambda data=b"", digest_size=16: honest(
            data + (str(next(numbers)).encode() if digest_size == 8 else b""),
            digest_size=digest_size,
        ),
    )  # fmt: skip
    for _ in range(2):
        sink.append(plan, "s", 4, 0, iter([rows(5)]))
    assert len(events(tmp_path / "a.db")) == 10


def test_a_batch_that_is_cut_differently_the_second_time_is_refused(tmp_path):
    plan = planned(tmp_path / "a.db")
    sink.append(plan, "s", 0, 0, iter([rows(5)]))
    sink.append(plan, "s", 0, 1, iter([]))
    with pytest.raises(Refused, match="task 0 of batch 0 of s had 5 rows before, and 4 now"):
        sink.append(plan, "s", 0, 0, iter([rows(4)]))
    with pytest.raises(Refused, match="task 1 of batch 0 of s had 0 rows before, and 1 now"):
        sink.append(plan, "s", 0, 1, iter([rows(1)]))
    assert len(events(tmp_path / "a.db")) == 5


def test_a_task_with_other_rows_the_second_time_is_refused(tmp_path):
    """Equally many, so that their number does not tell; in another order they are the same."""
    plan = planned(tmp_path / "a.db", "topic string, n bigint")
    sink.append(plan, "s", 0, 0, batch(topic=["a"] * 3, n=[1, 2, 2]))
    sink.append(plan, "s", 0, 0, batch(topic=["a"] * 3, n=[2, 1, 2]))
    for values in ([1, 2, 3], [1, 1, 2]):
        with pytest.raises(Refused, match="had 3 rows before, as now, but not the same ones"):
            sink.append(plan, "s", 0, 0, batch(topic=["a"] * 3, n=values))
    assert len(events(tmp_path / "a.db")) == 3


class Faulty:
    """A broker that stores a part, or does not answer; it keeps notes like every other."""

    def __init__(self, faults: list[str]) -> None:
        self.faults = faults
        self.stored: list[int] = []
        self.notes: dict[str, bytes] = {}
        self.coordinator = self

    async def get(self, key: str) -> Any:
        return (self.notes[key], 1) if key in self.notes else None

    async def put(self, key: str, value: bytes, epoch: int) -> None:
        self.notes[key] = value

    async def last(self, log: Any, author: Any) -> int:
        return max(self.stored, default=0)

    async def append(self, log: Any, author: Any, runs: Any) -> Stored:
        fault = self.faults.pop(0) if self.faults else ""
        new = [run.sequence + n for run in runs for n in range(run.count)]
        for run in runs:
            assert len(msgspec.msgpack.decode(run.values)) == run.count
        if fault == "refused":
            raise Refused("not now")
        if fault.startswith("part"):
            new = new[:2]
        self.stored += new
        assert self.stored == list(range(1, len(self.stored) + 1)), "twice, or with a hole"
        if fault.endswith("unsure"):
            raise Unsure("no answer")
        if fault == "killed":
            raise KeyboardInterrupt
        return Stored(range(len(new)), "full" if fault == "part" else "")


def fed(broker: Faulty, values: list[int]) -> None:
    import asyncio

    plan = sink.Plan("u", "t", "", "s", 0, (), ("n",))
    encoding = sink.Encoding(plan, "s", 0, 0)
    encoding.take(pa.RecordBatch.from_pydict({"n": values}))
    asyncio.run(sink._append(broker, None, encoding, encoding.runs(), "key", "task"))


@pytest.mark.parametrize(
    "faults",
    [["unsure"], ["refused", "unsure"], ["part"], ["part-unsure", "part"], ["part", "refused"]],
)
def test_parts_and_lost_answers_are_made_up_for(faults):
    broker = Faulty(faults)
    fed(broker, [1, 2, 3, 4, 5])
    assert len(broker.stored) == 5


def test_a_task_killed_behind_a_part_goes_on_with_the_same_rows_only():
    broker = Faulty(["part-unsure", *["refused"] * 3])
    with pytest.raises(Refused):
        fed(broker, [1, 2, 3, 4, 5])
    assert len(broker.stored) == 2
    with pytest.raises(Refused, match="2 rows are stored, and now they come in another order"):
        fed(broker, [1, 2, 5, 4, 3])
    fed(broker, [1, 2, 3, 4, 5])
    assert len(broker.stored) == 5


def test_a_task_killed_before_anything_was_stored_may_have_other_rows():
    broker = Faulty(["refused"] * 4)
    with pytest.raises(Refused):
        fed(broker, [1, 2])
    fed(broker, [7])
    assert len(broker.stored) == 1


def test_notes_of_long_ago_are_dropped_and_only_those_of_this_sink(tmp_path):
    plan = planned(tmp_path / "a.db")
    late = SINK_BATCHES_KEPT
    for name in ("s", "s/1"):
        for number in (0, 1, late):
            sink.append(plan, name, number, 0, iter([rows(1)]))
    sink.StreamWriter(plan).commit([sink.Written("s"), None], late)
    kept = logs.with_log(tmp_path / "a.db", lambda broker, log: broker.coordinator.keys("spark/"))
    assert sorted(kept) == sorted(
        [sink._key("s", 1, 0), sink._key("s", late, 0)]
        + [sink._key("s/1", number, 0) for number in (0, 1, late)]
    )


@pytest.mark.parametrize(
    ("options", "told"),
    [({"batch": "1"}, "name it, option sink"), ({"batch": "-1", "sink": "s"}, "from 0 on"),
     ({"batch": "x", "sink": "s"}, "from 0 on"), ({"batch": str(2**31), "sink": "s"}, "from 0")],
)  # fmt: skip
def test_a_batch_that_is_no_number_is_refused(tmp_path, options, told):
    with pytest.raises(Misuse, match=told):
        planned(tmp_path / "a.db", **options)


@pytest.mark.parametrize(
    ("schema", "options", "told"),
    [
        ("n bigint", {}, "neither a column topic nor an option topic"),
        ("topic string, at timestamp", {}, "column 'at' is timestamp, not boolean or"),
        ("topic string, published_at string", {}, "column 'published_at' is string"),
        ("topic string, value string", {}, "column 'value' is string"),
        (PLAIN, {"topics": "x"}, "unknown option 'topics'"),
        (PLAIN, {"topic": "orders.*"}, "is a pattern"),
        (PLAIN, {"overwrite": True}, "only appended to"),
        (PLAIN, {"url": "trace:////x"}, "leads to no broker"),
        (PLAIN, {"url": "memory:///x"}, "."),
        (PLAIN, {"url": ""}, "option url is missing"),
    ],
)
def test_what_does_not_fit_is_said_when_the_query_is_planned(tmp_path, schema, options, told):
    with pytest.raises(InorderError, match=told):
        planned(tmp_path / "a.db", schema, **options)


@pytest.mark.parametrize("text", ["[1]", "{", "\ud800", "7"])
def test_attributes_that_are_no_object_are_refused(tmp_path, text):
    plan = planned(tmp_path / "a.db", "topic string, attributes string")
    with pytest.raises(Misuse, match="is not a JSON object"):
        sink.Encoding(plan, "s", 0, 0)._decoded(text)


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"topic": [None], "attributes": ["{}"]}, "row 1 of a task: topic is null"),
        ({"topic": ["a.>"], "attributes": ["{}"]}, "is a pattern"),
        ({"topic": ["a"], "attributes": [json.dumps({"n": 2**70})]}, "event spark/.*/0:1:1 of"),
        ({"topic": ["a"], "attributes": [json.dumps({"s": "x" * 2**20})]},
         r"event spark/.*/0:1:1 of topic 'a': event, in bytes"),
        ({"topic": ["a"], "attributes": ['{"n": NaN, "s": "\\ud800"}']}, "event spark/.*/0:1:1"),
        ({"topic": ["a"], "attributes": ["{}"], "headers": ['{"a": 1}']}, "column headers"),
    ],
)  # fmt: skip
def test_what_the_log_cannot_hold_is_one_sentence_and_nothing_is_stored(tmp_path, columns, told):
    schema = ", ".join(f"{name} string" for name in columns)
    plan = planned(tmp_path / "a.db", schema)
    with pytest.raises(Misuse, match=told):
        sink.append(plan, "s", 0, 0, batch(**columns))
    assert events(tmp_path / "a.db") == []


def test_keys_headers_times_and_bytes_come_out_as_they_went_in(tmp_path):
    schema = "topic string, key string, headers string, published_at double, value binary"
    plan = planned(tmp_path / "a.db", schema)
    sink.append(plan, "s", 0, 0, batch(
        topic=["a", "a"], key=["k", None], headers=[None, '{"x":"y"}'], published_at=[7.0, 8.0],
        value=[b"\xff", None],
    ))  # fmt: skip
    found = [(row[8], row[9], row[10], row[13]) for row in logs.plain_rows(tmp_path / "a.db")]
    assert found == [("k", None, 7.0, b"\xff"), (None, '{"x":"y"}', 8.0, None)]


def test_a_row_says_itself_what_is_in_the_note(tmp_path, monkeypatch):
    """A batch run again later: the time that rows without one get is another."""
    plan = planned(tmp_path / "a.db", "topic string, published_at double")
    for now in (1.0, 2.0):
        monkeypatch.setattr(sink_rows.time, "time", lambda now=now: now)
        times = pa.array([None, 7.0], pa.float64())
        sink.append(plan, "s", 0, 0, batch(topic=["a", "a"], published_at=times))
    assert [row[10] for row in logs.plain_rows(tmp_path / "a.db")] == [1.0, 7.0]


def test_two_jobs_of_one_publisher_publish_different_events(tmp_path):
    """Every batch job is batch 0: with the option publisher, the next one begins at 1 again."""
    plan = planned(tmp_path / "a.db", publisher="etl")
    for job in ("job-1", "job-2"):
        sink.append(plan, job, 0, 0, iter([rows(1)]))
    names = events(tmp_path / "a.db")
    assert len({*names}) == 2
    assert {name.partition("/")[0] for name in names} == {"etl"}


def test_what_is_no_number_of_json_is_matched_and_written_again(tmp_path):
    text = '{"a":Infinity,"b":-Infinity,"c":NaN,"d":null}'
    plan = planned(tmp_path / "a.db", "topic string, attributes string")
    sink.append(plan, "s", 0, 0, batch(topic=["t"], attributes=[text]))
    [found] = read(tmp_path / "a.db")
    assert found[12] == text
    [value], reasons = attributes_of([found[12]])
    assert not reasons
    assert (value["a"], value["b"], value["d"]) == (math.inf, -math.inf, None)
    assert math.isnan(value["c"])


# Through Spark.


def test_a_frame_of_scalars_becomes_events_once(spark, tmp_path):
    frame = spark.range(100).selectExpr("id", "id / 4 as share", "id % 2 = 0 as even")
    writer = frame.write.format("inorder").mode("append").option("topic", "numbers")
    writer = writer.option("url", f"sqlite:///{tmp_path}/a.db").option("publisher", "loader")
    writer.option("sink", "once").save()
    writer.option("sink", "once").save()  # the same job under the same name
    found = logs.plain_rows(tmp_path / "a.db")
    assert len(found) == len({row[4] for row in found}) == 100
    assert {row[5].partition("/")[0] for row in found} == {"loader"}
    assert {"even": False, "id": 3, "share": 0.75} in attributes(tmp_path / "a.db")
    with pytest.raises(PySparkException, match="only appended to"):
        frame.write.format("inorder").mode("overwrite").option("topic", "numbers").option(
            "url", f"sqlite:///{tmp_path}/a.db"
        ).save()


def test_what_was_read_can_be_written_again_as_events_of_the_sink(spark, tmp_path):
    logs.random_log(tmp_path / "a.db", 3)
    frame = spark.read.format("inorder").option("url", f"sqlite:///{tmp_path}/a.db").load()
    writer = frame.coalesce(1).sortWithinPartitions("position").write.format("inorder")
    writer.mode("append").option("url", f"sqlite:///{tmp_path}/b.db").save()
    copied, given = (logs.plain_rows(tmp_path / name) for name in ("b.db", "a.db"))
    keep = [0, 8, 9, 10, 12, 13]
    assert [[row[place] for place in keep] for row in copied] == [
        [row[place] for place in keep] for row in given
    ]
    assert {row[5].partition("/")[0] for row in copied} == {"spark"}
    left = logs.with_log(tmp_path / "b.db", lambda broker, log: broker.coordinator.keys("spark/"))
    assert [*left] == [], "a job that never comes again needs no notes"


def test_a_batch_with_a_number_is_written_once(spark, tmp_path):
    path = tmp_path / "a.db"
    frame = spark.createDataFrame([("orders", n) for n in range(4)], "topic string, n bigint")
    for number in (0, 0, 1):
        writer = frame.coalesce(1).write.format("inorder").mode("append").option("sink", "s")
        writer.option("url", f"sqlite:///{path}").option("batch", number).save()
    assert len(events(path)) == len({*events(path)}) == 8
