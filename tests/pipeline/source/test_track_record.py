"""What a review found in the source and the sink: the smallest input that shows each defect.

Most of them need no Spark: plans and sinks are driven as Spark would drive them.
"""

from __future__ import annotations

import json
import math
from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType

import inorder
from inorder.core.errors import InorderError, Misuse, Refused
from inorder.pipeline import sink, source
from inorder.pipeline.match_events import attributes_of
from inorder.pipeline.order_lane import Plan
from inorder.pipeline.order_rows import Rows
from inorder.pipeline.source_log import Extent, Slice, open_log
from inorder.pipeline.source_options import Settings
from inorder.pipeline.source_plan import admitted
from tests.pipeline.logs import write_run
from tests.pipeline.source import logs
from tests.pipeline.source.test_columns import read
from tests.pipeline.source.test_read import Collector
from tests.pipeline.source.test_read import source as load

TAG = {"mode": "tag"}


def row(place: int, topic: str, stamp: dict[str, int], **more: Any) -> dict[str, Any]:
    return {
        "subscriber": "s", "topic": topic, "offset": stamp.get(topic, 1) - 1, "arrival": place,
        "event": f"p:{place + 1}", "publisher": "p", "seq": place + 1,
        "received_at": float(place), "stamp": json.dumps(stamp), **more,
    }  # fmt: skip


def fed(plan: Plan, feeds: list[list[dict[str, Any]]], finish: bool = True) -> list[Any]:
    """Event, nth, in_order and reason of what leaves, with a restart behind every feed."""
    lane = Rows(plan)
    out: list[Any] = []
    for rows in feeds:
        out += lane.feed(pa.Table.from_pylist(rows)).to_pylist()
        out += lane.settle().to_pylist()
        lane = Rows.unpack(plan, lane.pack())
    out += lane.finish().to_pylist() if finish else []
    names = ("event", "nth", "in_order", "quarantine")
    return sorted(tuple(map(each.get, names)) for each in out)


def loose(options: dict[str, Any], start: Any = "beginning") -> Plan:
    return Plan("total", options, start=start, strict=False)


# Cuts.


def cut_by_the_source(rows: list[dict[str, Any]], limit: int) -> list[list[dict[str, Any]]]:
    """Micro-batches as maxOffsetsPerTrigger makes them, each in its order of arrival."""
    topics = sorted({each["topic"] for each in rows})
    log = {topic: [each for each in rows if each["topic"] == topic] for topic in topics}
    at = dict.fromkeys(topics, 0)
    arrived = [(each["topic"], each["offset"], 1) for each in rows]
    feeds = []
    while waiting := [Slice(t, at[t], len(log[t])) for t in topics if at[t] < len(log[t])]:
        batch = []
        for each in admitted(waiting, limit, iter(arrived)):
            batch += log[each.topic][each.start : each.end]
            at[each.topic] = each.end
        feeds.append(sorted(batch, key=lambda each: each["arrival"]))
    return feeds


@pytest.mark.parametrize("options", [TAG, {**TAG, "buffer": 2}, {**TAG, "buffer": 4, "ttl": 1.0}])
def test_a_limit_of_the_source_changes_no_tag(options):
    """maxOffsetsPerTrigger takes shares of topics, not the first arrivals: in a log where nothing
    is late, every batch overtakes, and the rest is tagged."""
    a = [row(n, "a", {"a": n + 1}) for n in range(4)]
    b = [row(4 + n, "b", {"a": 4, "b": n + 1}) for n in range(4)]
    whole = fed(loose(options), [[*a, *b]])
    assert all(in_order for _, _, in_order, _ in whole)
    assert fed(loose(options), cut_by_the_source([*a, *b], 2)) == whole


@pytest.mark.parametrize("limit", [1, 7, 50])
def test_a_limited_stream_reads_a_file_by_arrival(tmp_path, limit):
    """Topics of every guarantee in one file, read in micro-batches, without Spark."""
    logs.random_log(tmp_path / "a.db", seed=3)
    plain = sorted(logs.plain_rows(tmp_path / "a.db"), key=lambda row: (row[2], row[1]))
    check_stream({"url": f"sqlite:///{tmp_path}/a.db"}, limit, [row[:2] for row in plain])


@pytest.mark.parametrize("format", ["parquet", "jsonl"])
def test_a_limited_stream_reads_a_trace_by_row(tmp_path, format):
    write_run(tmp_path / "trace", seed=7, format=format)
    with closing(open_log(Settings("trace", str(tmp_path / "trace")))) as log:
        rows = [
            tuple(map(row.get, ("arrival", "topic", "offset")))
            for topic, each in log.extents().items()
            for part in log.batches(topic, 0, each.next)
            for row in part.to_pylist()
        ]
    check_stream({"path": str(tmp_path / "trace")}, 7, [row[1:] for row in sorted(rows)])


def check_stream(options: dict[str, str], limit: int, expected: list[Any]) -> None:
    reader = source.StreamReader({**options, "startingOffsets": "earliest"})
    at = reader.initialOffset()
    while expected:
        end = reader.latestOffset(at, ReadMaxRows(limit))
        found = {
            (each.topic, offset)
            for part in reader.partitions(at, end)
            for each in part.slices
            for offset in range(each.start, each.end)
        }
        assert found == {*expected[:limit]}
        expected, at = expected[limit:], end
    assert reader.latestOffset(at, ReadMaxRows(limit)) == at


# The sink.

_KINDS = {"s": StringType(), "n": LongType(), "x": DoubleType()}


def planned(path: Any, columns: dict[str, str], **options: str) -> sink.Plan:
    schema = StructType([StructField(name, _KINDS[kind]) for name, kind in columns.items()])
    return sink.plan({"url": f"sqlite:///{path}", **options}, schema, False)


def batch(**columns: Any) -> Any:
    return iter([pa.RecordBatch.from_pydict(columns)])


def test_a_task_that_is_empty_the_second_time_is_refused(tmp_path):
    """Rows that move to a task which was empty before: it has no receipt, and who lost them looks
    at none. They are there twice."""
    plan = planned(tmp_path / "a.db", {"topic": "s", "value": "n"})
    sink.append(plan, "s", 0, 0, batch(topic=["a"], value=[1]))
    sink.append(plan, "s", 0, 1, iter([]))
    try:
        sink.append(plan, "s", 0, 0, iter([]))
        sink.append(plan, "s", 0, 1, batch(topic=["a"], value=[1]))
    except InorderError:
        pass
    assert len(read(tmp_path / "a.db")) == 1


def test_a_sink_forgets_its_own_receipts_only(tmp_path):
    """The receipts of the sink `a/1` begin like those of batch 1 of the sink `a`."""
    plan = planned(tmp_path / "a.db", {"topic": "s", "value": "n"})
    sink.append(plan, "a/1", 7, 0, batch(topic=["t"], value=[1]))
    sink.StreamWriter(plan).commit([sink.Written("a")], 1 + sink.SINK_BATCHES_KEPT)
    sink.append(plan, "a/1", 7, 0, batch(topic=["t"], value=[1]))
    assert len(read(tmp_path / "a.db")) == 1


def test_two_jobs_of_one_publisher_publish_different_events(tmp_path):
    """Every batch job is batch 0: with the option publisher, the next one begins at 1 again."""
    plan = planned(tmp_path / "a.db", {"topic": "s", "value": "n"}, publisher="etl")
    for job in ("job-1", "job-2"):
        sink.append(plan, job, 0, 0, batch(topic=["t"], value=[1]))
    names = [each[3] for each in read(tmp_path / "a.db")]
    assert len(names) == len({*names}) == 2


def test_what_the_sink_takes_can_be_read(tmp_path):
    """A null in published_at is written as it is, and the log is damaged for every reader."""
    plan = planned(tmp_path / "a.db", {"topic": "s", "published_at": "x"})
    try:
        sink.append(plan, "s", 0, 0, batch(topic=["a"], published_at=pa.nulls(1, pa.float64())))
    except Misuse:
        return
    assert len(read(tmp_path / "a.db")) == 1


@pytest.mark.parametrize(
    ("columns", "options", "values"),
    [
        ({"attributes": "s"}, {}, {"attributes": [json.dumps({"n": 2**70})]}),
        ({"publisher": "s", "seq": "n", "stamp": "s"}, {"guarantee": "total"},
         {"publisher": ["p"], "seq": [1], "stamp": [json.dumps({"a": 1, "z": 2**70})]}),
    ],
    ids=["attribute", "stamp"],
)  # fmt: skip
def test_a_number_too_large_for_the_log_is_one_sentence(tmp_path, columns, options, values):
    plan = planned(tmp_path / "a.db", {"topic": "s", **columns}, **options)
    with pytest.raises(InorderError):
        sink.append(plan, "s", 0, 0, batch(topic=["a"], **values))


def test_a_task_with_other_rows_the_second_time_is_refused(tmp_path):
    """Equally many, so that their number does not tell; in another order they are the same."""
    plan = planned(tmp_path / "a.db", {"topic": "s", "value": "n"})
    sink.append(plan, "s", 0, 0, batch(topic=["a"] * 3, value=[1, 2, 2]))
    sink.append(plan, "s", 0, 0, batch(topic=["a"] * 3, value=[2, 1, 2]))
    for values in ([1, 2, 3], [1, 1, 2]):
        with pytest.raises(Refused, match="had 3 rows before, as now, but not the same ones"):
            sink.append(plan, "s", 0, 0, batch(topic=["a"] * 3, value=values))
    assert len(read(tmp_path / "a.db")) == 3


def test_without_a_digest_other_rows_would_pass(tmp_path, monkeypatch):
    """Negative control."""
    monkeypatch.setattr(sink.Encoding, "digest", "same")
    plan = planned(tmp_path / "a.db", {"topic": "s", "value": "n"})
    for value in (1, 2):
        sink.append(plan, "s", 0, 0, batch(topic=["a"], value=[value]))


def test_a_row_says_itself_what_is_in_the_digest(tmp_path, monkeypatch):
    """A batch run again later: the time that rows without one get is another."""
    plan = planned(tmp_path / "a.db", {"topic": "s", "published_at": "x"})
    for now in (1.0, 2.0):
        monkeypatch.setattr(sink.time, "time", lambda now=now: now)
        times = pa.array([None, 7.0], pa.float64())
        sink.append(plan, "s", 0, 0, batch(topic=["a", "a"], published_at=times))
    assert [each[6] for each in read(tmp_path / "a.db")] == [1.0, 7.0]


def test_text_the_log_cannot_hold_is_one_sentence(tmp_path):
    plan = planned(tmp_path / "a.db", {"topic": "s", "attributes": "s"})
    for text in ('{"n": NaN, "s": "\\ud800"}', json.dumps({"s": "x" * 2**20})):
        with pytest.raises(Misuse, match=r"event spark/.*/0:1 of topic 'a': "):
            sink.append(plan, "s", 0, 0, batch(topic=["a"], attributes=[text]))


# The source.


def test_an_infinite_attribute_stays_infinite(tmp_path):
    """Live subscribers match `price > 5`; the source makes null of it, and Spark does not."""
    with inorder.connect_sync(f"sqlite:///{tmp_path}/a.db", guarantee="total") as bus:
        assert bus.publish("t", {"price": math.inf}).outcome == "accepted"
    with closing(open_log(Settings("sqlite", str(tmp_path / "a.db")))) as log:
        [found] = [each for part in log.batches("t", 0, 1) for each in part.to_pylist()]
    assert json.loads(found["attributes"]) == {"price": math.inf}


def test_what_is_no_number_of_json_is_matched_and_written_again(tmp_path):
    text = '{"a":Infinity,"b":-Infinity,"c":NaN,"d":null}'
    plan = planned(tmp_path / "a.db", {"topic": "s", "attributes": "s"})
    sink.append(plan, "s", 0, 0, batch(topic=["t"], attributes=[text]))
    [found] = read(tmp_path / "a.db")
    assert found[8] == text
    [value], reasons = attributes_of([found[8]])
    assert not reasons
    assert (value["a"], value["b"], value["d"]) == (math.inf, -math.inf, None)
    assert math.isnan(value["c"])


@pytest.mark.parametrize(
    ("first", "limit"),
    [({"a": Extent(0, 0)}, ReadAllAvailable()),
     ({}, ReadAllAvailable()),
     ({"a": Extent(0, 1), "b": Extent(0, 100)}, ReadMaxRows(2))],
    ids=["empty", "gone", "beyond the limit"],
)  # fmt: skip
def test_another_topic_of_that_name_is_read_from_its_first_event(monkeypatch, first, limit):
    """It is noticed while it is shorter than what was read, but not remembered unless some of it
    is read at once; when it has grown, its first events are passed over."""
    reader = source.StreamReader({"url": "sqlite:////x.db", "failOnDataLoss": "false"})
    monkeypatch.setattr(source, "_extents", lambda _: first)
    # The other topic's events arrived before this one's.
    monkeypatch.setattr(source, "open_log", lambda _: Arrivals())
    before = reader.latestOffset({"a": 6}, limit)
    assert before != {"a": 6}
    grown = {"a": Extent(0, 8)}
    monkeypatch.setattr(source, "_extents", lambda _: grown)
    assert reader.partitions({"a": 6}, before) == []
    after = reader.latestOffset(before, ReadAllAvailable())
    found = source.ranges_of(reader._settings, before, after, grown)
    assert found == [Slice("a", 0, 8)]


class Arrivals:
    def arrived(self, waiting):
        return iter([("b", 0, 100), ("a", 0, 1)])

    def close(self):
        pass


def test_a_file_made_anew_is_read_from_its_first_event(spark, tmp_path):
    """Through Spark: the offsets go back although the first look finds nothing to read."""
    path, got = tmp_path / "a.db", Collector()
    logs.fill(path, "total", logs.batched(16, 8))
    stream = load(spark.readStream, path, startingOffsets="earliest", failOnDataLoss="false")
    assert got.run(stream, tmp_path / "c")
    for each in tmp_path.glob("a.db*"):
        each.unlink()
    logs.fill(path, "none", [])
    assert got.run(stream, tmp_path / "c")
    logs.fill(path, "total", logs.batched(24, 8))
    assert got.run(stream, tmp_path / "c")
    assert [len(got.rows[batch]) for batch in sorted(got.rows)] == [16, 0, 24]


def test_a_stream_from_the_latest_event_on_remembers_where_it_began(spark, tmp_path):
    """A first run finds nothing; what is published before the next one is that one's."""
    path, got = tmp_path / "a.db", Collector()
    logs.fill(path, "total", logs.batched(16, 8))
    for size in (0, 8):
        logs.fill(path, "total", logs.batched(size, 8))
        assert got.run(load(spark.readStream, path, startingOffsets="latest"), tmp_path / "c")
    assert [len(got.rows[batch]) for batch in sorted(got.rows)] == [0, 8]
