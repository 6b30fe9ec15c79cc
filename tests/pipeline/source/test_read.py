"""Through Spark: batch, stream and plain Python read the same rows from the same log."""

from __future__ import annotations

import json
import math

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.streaming.datasource import ReadMaxRows

import inorder
from inorder.check.trace import TABLES, TraceWriter, read_table
from inorder.pipeline import source as pipeline_source
from inorder.pipeline import source_trace
from inorder.pipeline.order_stage import order
from inorder.pipeline.source_log import EVENT_COLUMNS
from tests.pipeline.logs import write_run
from tests.pipeline.source import logs


def source(reader, path, **options):
    return reader.format("inorder").option("url", f"sqlite:///{path}").options(**options).load()


def rows_of(frame):
    return sorted(map(tuple, frame.collect()), key=lambda row: row[1])


class Collector:
    """A sink that keeps rows by batch, and can fail before it has kept one."""

    def __init__(self, batches_per_run=None):
        self.rows = {}
        self._per_run = batches_per_run
        self._left = batches_per_run

    def __call__(self, frame, batch):
        if self._left == 0:
            raise RuntimeError("stopped here")
        if self._left is not None:
            self._left -= 1
        assert batch not in self.rows
        self.rows[batch] = rows_of(frame)

    def run(self, stream, checkpoint):
        """Until everything that is there has been read; returns whether it got so far."""
        self._left = self._per_run
        query = (
            stream.writeStream.foreachBatch(self).option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True).start()
        )  # fmt: skip
        try:
            query.awaitTermination()
        except PySparkException as error:
            if "stopped here" not in str(error):
                raise
            return False
        return True

    @property
    def all(self):
        return [row for batch in sorted(self.rows) for row in self.rows[batch]]


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "a.db"
    logs.random_log(path, seed=5)
    return path


def test_batch_is_what_plain_python_reads_however_it_is_cut(spark, log):
    """Nobody registered the format: Spark found it."""
    plain = logs.plain_rows(log)
    frame = source(spark.read, log)
    assert frame.columns == list(EVENT_COLUMNS)
    assert rows_of(frame) == plain
    cut = source(spark.read, log, minPartitions=7)
    assert cut.rdd.getNumPartitions() == 7
    assert rows_of(cut) == plain
    low, high = plain[4][1], plain[-5][1]
    some = source(spark.read, log, subscribe="orders.*", startingOffsets=low, endingOffsets=high)
    assert rows_of(some) == [
        row for row in plain if low < row[1] <= high and row[0].startswith("orders.")
    ]


def test_a_stream_stopped_at_every_batch_reads_every_row_once_in_order(spark, log, tmp_path):
    plain = [row for row in logs.plain_rows(log) if row[0] != "stock"]
    limit = -(-len(plain) // 3)
    sink = Collector(batches_per_run=1)
    topics = {"subscribe": "orders.*,payments", "startingOffsets": "earliest"}
    stream = source(spark.readStream, log, **topics, maxOffsetsPerTrigger=limit, minPartitions=3)
    runs = 1
    while not sink.run(order(stream).drop("in_order"), tmp_path / "c"):
        runs += 1
    assert sink.all == plain
    assert runs == len(sink.rows)
    assert all(0 < len(some) <= limit for some in sink.rows.values())


def test_a_running_stream_takes_new_rows_and_new_topics(spark, tmp_path):
    path = tmp_path / "a.db"
    logs.fill(path, logs.numbered("news.1", 10))
    sink = Collector()
    query = (
        source(spark.readStream, path, subscribe="news.*").writeStream.foreachBatch(sink)
        .option("checkpointLocation", str(tmp_path / "c")).start()
    )  # fmt: skip
    try:
        query.processAllAvailable()
        assert sink.all == []  # a stream starts at the latest event, as Kafka's does
        logs.fill(path, logs.numbered("news.1", 20))
        query.processAllAvailable()
        logs.fill(path, [*logs.numbered("other", 5), *logs.numbered("news.2", 5)])
        query.processAllAvailable()
    finally:
        query.stop()
    plain = logs.plain_rows(path)
    assert sink.all == [row for row in plain[10:] if row[0] != "other"]
    written = sorted((tmp_path / "c" / "offsets").glob("[0-9]*"), key=lambda each: int(each.name))
    kept = json.loads(written[-1].read_text().splitlines()[-1])
    assert (kept["order"], kept["position"], kept["born"]) == (plain[0][3], plain[-1][1], 0)


def test_a_file_put_in_the_place_of_another_is_noticed(spark, tmp_path):
    path = tmp_path / "a.db"
    logs.fill(path, logs.numbered("t", 50))
    stream = source(spark.readStream, path, startingOffsets="earliest")
    assert Collector().run(stream, tmp_path / "c")
    for each in tmp_path.glob("a.db*"):
        each.unlink()
    logs.fill(path, logs.numbered("t", 60))
    with pytest.raises(PySparkException, match="is another log than"):
        Collector().run(stream, tmp_path / "c")
    again = source(spark.readStream, path, startingOffsets="earliest", failOnDataLoss=False)
    sink = Collector()
    assert sink.run(again, tmp_path / "c")
    assert sink.all == logs.plain_rows(path)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"startingOffsets": "1000"}, "the log ends at position"),
        ({"startingOffset": "earliest"}, "unknown option 'startingoffset'"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence_at_load(spark, log, options, told):
    for reader in (spark.read, spark.readStream):
        with pytest.raises(PySparkException) as caught:
            source(reader, log, **options)
        assert told in str(caught.value)
        assert "Traceback" not in str(caught.value)


def test_a_stream_has_no_end(spark, log, tmp_path):
    endless = source(spark.readStream, log, endingOffsets="latest").writeStream
    query = endless.format("noop").option("checkpointLocation", str(tmp_path / "c")).start()
    with pytest.raises(PySparkException, match="option endingOffsets: a stream has no end"):
        query.awaitTermination()


def test_live_values_and_places_are_those_the_bus_hands_over(spark, tmp_path):
    """One order for both: a position from the bus is a place to start in Spark."""
    url = f"sqlite:///{tmp_path}/a.db"
    with inorder.connect_sync(url, name="shop") as bus:
        bus.publish("t", {"price": math.inf, "tags": ["a", {"b": 1}]}, key="k")
        bus.publish("t", b"\x00raw")
        with bus.subscribe("t", start="earliest") as events:
            first, second = events.next(5), events.next(5)
    rows = source(spark.read, tmp_path / "a.db").collect()
    assert [row.position for row in rows] == [first.position, second.position]
    assert [row.event for row in rows] == [first.id, second.id]
    assert json.loads(rows[0].attributes) == first.value
    assert (rows[0].key, bytes(rows[1].value)) == ("k", second.value)
    for place in (first.cursor, first.position):
        [left] = source(spark.read, tmp_path / "a.db", startingOffsets=place).collect()
        assert left.event == second.id


# Traces.


@pytest.mark.parametrize("format", ["parquet", "jsonl"])
def test_a_trace_is_read_as_it_was_written(spark, tmp_path, format):
    folder = tmp_path / "trace"
    write_run(folder, seed=8, format=format)
    for table in TABLES:
        frame = spark.read.format("inorder").option("table", table).load(str(folder))
        expected = list(read_table(folder, table))
        if table != "events":
            plain = [tuple(getattr(row, name) for name in frame.columns) for row in expected]
            assert sorted(map(repr, map(tuple, frame.collect()))) == sorted(map(repr, plain))
            continue
        assert frame.columns == list(source_trace.EVENT_COLUMNS)
        found = sorted(frame.collect(), key=lambda row: row["arrival"])
        for name, theirs in (("event", "event"), ("received_at", "accepted_at"),
                             ("epoch", "epoch"), ("position", "position")):  # fmt: skip
            assert [row[name] for row in found] == [getattr(row, theirs) for row in expected]
        for topic in {row.topic for row in expected}:
            offsets = [row["offset"] for row in found if row["topic"] == topic]
            assert offsets == list(range(len(offsets)))


@pytest.mark.parametrize("format", ["parquet", "jsonl"])
def test_a_limited_stream_reads_the_wanted_rows_of_a_trace(tmp_path, format):
    write_run(tmp_path / "trace", seed=8, format=format)
    rows = list(read_table(tmp_path / "trace", "events"))
    topic = rows[0].topic
    options = {"path": str(tmp_path / "trace"), "startingOffsets": "earliest", "subscribe": topic}
    query = pipeline_source.StreamReader(options)
    at, read = query.initialOffset(), []
    while (end := query.latestOffset(at, ReadMaxRows(3))) != at:
        parts = query.partitions(at, end)
        some = [row for part in parts for each in query.read(part) for row in each.to_pylist()]
        assert len(some) <= 3
        read += some
        at = end
    assert [row["event"] for row in read] == [row.event for row in rows if row.topic == topic]


def test_a_trace_streams_while_it_is_written(spark, tmp_path):
    folder = tmp_path / "trace"
    write_run(tmp_path / "whole", seed=8)
    rows = list(read_table(tmp_path / "whole", "events"))
    writer = TraceWriter(folder, about={"order": {"guarantee": "total"}}, rows_per_part=5)
    stream = None
    sink = Collector()
    for number, row in enumerate(rows):
        writer.write("events", row)
        if number in (len(rows) // 2, len(rows) - 1):
            writer.flush()
            stream = (
                stream
                or spark.readStream.format("inorder")
                .option("startingOffsets", "earliest")
                .option("url", f"trace:///{folder}")
                .load()
            )
            assert sink.run(stream, tmp_path / "c")
    names = list(source_trace.EVENT_COLUMNS)
    found = sorted(dict(zip(names, row, strict=True))["arrival"] for row in sink.all)
    assert found == list(range(len(rows)))
    assert {row[names.index("guarantee")] for row in sink.all} == {"total"}
    assert len(sink.rows) == 2


def test_nothing_is_read_of_an_empty_log(spark, tmp_path):
    logs.fill(tmp_path / "a.db", [])
    assert source(spark.read, tmp_path / "a.db").collect() == []
    sink = Collector()
    assert sink.run(source(spark.readStream, tmp_path / "a.db"), tmp_path / "c")
    assert sink.all == []
