"""Through Spark: batch, stream and plain Python read the same rows from the same log."""

from __future__ import annotations

import json
import shutil
import uuid

import pytest
from pyspark.errors import PySparkException

from inorder.check.trace import TABLES, TraceWriter, read_table
from inorder.pipeline.source_log import EVENT_COLUMNS
from tests.pipeline.logs import write_run
from tests.pipeline.source import logs


def source(reader, path, **options):
    return reader.format("inorder").option("url", f"sqlite:///{path}").options(**options).load()


def rows_of(frame):
    return sorted(tuple(row) for row in frame.collect())


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
        return sorted(row for rows in self.rows.values() for row in rows)


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "a.db"
    logs.random_log(path, seed=5)
    return path


def test_batch_is_what_plain_python_reads_however_it_is_cut(spark, log):
    """Nobody registered the format: Spark found it."""
    plain = sorted(logs.plain_rows(log))
    frame = source(spark.read, log)
    assert frame.columns == list(EVENT_COLUMNS)
    assert rows_of(frame) == plain
    cut = source(spark.read, log, minPartitions=7)
    assert cut.rdd.getNumPartitions() == 7
    assert rows_of(cut) == plain
    some = source(spark.read, log, subscribe="f1,t2", startingOffsets='{"f1": 5}',
                  endingOffsets='{"t2": 7}')  # fmt: skip
    assert rows_of(some) == [
        row for row in plain
        if (row[0] == "f1" and row[1] >= 5) or (row[0] == "t2" and row[1] < 7)
    ]  # fmt: skip


def test_a_stream_stopped_at_every_batch_reads_every_row_once(spark, log, tmp_path):
    plain = sorted(logs.plain_rows(log))
    limit = -(-len(plain) // 3)
    sink = Collector(batches_per_run=1)
    stream = source(spark.readStream, log, startingOffsets="earliest", maxOffsetsPerTrigger=limit,
                    minPartitions=3)  # fmt: skip
    runs = 1
    while not sink.run(stream, tmp_path / "c"):
        runs += 1
    assert runs == 3
    assert [len(sink.rows[batch]) for batch in range(2)] == [limit] * 2
    assert sink.all == plain


def test_a_running_stream_takes_new_rows_and_new_topics(spark, tmp_path):
    path = tmp_path / "a.db"
    values = [("news-1", {"n": n}) for n in range(30)]
    messages = logs.diffused("none", values)
    logs.fill(path, "none", messages[:10])
    sink = Collector()
    query = (
        source(spark.readStream, path, subscribePattern="news-.*").writeStream.foreachBatch(sink)
        .option("checkpointLocation", str(tmp_path / "c")).start()
    )  # fmt: skip
    try:
        query.processAllAvailable()
        assert sink.all == []  # a stream starts at the latest event, as Kafka's does
        logs.fill(path, "none", messages[10:])
        query.processAllAvailable()
        total = logs.diffused("total", [("news-2", {"n": n}) for n in range(20)])
        logs.fill(path, "total", total)
        logs.fill(path, "fifo", logs.diffused("fifo", [("other", {"n": 1})]))
        query.processAllAvailable()
    finally:
        query.stop()
    plain = logs.plain_rows(path, start={"news-1": 10})
    assert sink.all == sorted(row for row in plain if row[0] != "other")
    written = sorted((tmp_path / "c" / "offsets").glob("[0-9]*"), key=lambda each: int(each.name))
    assert json.loads(written[-1].read_text().splitlines()[-1]) == {"news-1": 30, "news-2": 20}


def test_a_file_put_in_the_place_of_another_is_noticed(spark, tmp_path):
    path = tmp_path / "a.db"
    stream = source(spark.readStream, path_of(path, 50), startingOffsets="earliest")
    sink = Collector()
    assert sink.run(stream, tmp_path / "c")
    for each in tmp_path.glob("a.db*"):
        each.unlink()
    path_of(path, 20)
    with pytest.raises(PySparkException, match="ends at offset 20, but reached 50 before"):
        stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c")).trigger(
            availableNow=True
        ).start().awaitTermination()
    again = source(spark.readStream, path, startingOffsets="earliest", failOnDataLoss=False)
    sink = Collector()
    assert sink.run(again, tmp_path / "c")
    assert sink.all == sorted(logs.plain_rows(path))


def path_of(path, rows):
    logs.fill(path, "total", logs.batched(rows, 8))
    return path


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"subscribe": "nothing"}, "unknown topic 'nothing'; known: f1, f2, plain, t1, t2"),
        ({"startingOffsets": '{"f1": 1000}'}, "topic 'f1' ends at offset"),
        ({"startingOffset": "earliest"}, "unknown option 'startingoffset'"),
        ({"maxOffsetsPerTrigger": "-1"}, "option maxOffsetsPerTrigger: '-1'"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence_at_load(spark, log, options, told):
    for reader in (spark.read, spark.readStream):
        with pytest.raises(PySparkException) as caught:
            source(reader, log, **options)
        assert told in str(caught.value)
        assert "Traceback" not in str(caught.value)


def test_files_that_cannot_be_read_are_refused_at_load(spark, tmp_path):
    text = tmp_path / "text.db"
    text.write_text("no database\n" * 1000)
    for path, told in ((tmp_path / "no.db", "there is no such file"), (text, "not a database")):
        with pytest.raises(PySparkException, match=told):
            source(spark.read, path)
    path_of(tmp_path / "a.db", 3)
    endless = source(spark.readStream, tmp_path / "a.db", endingOffsets="latest").writeStream
    query = endless.format("noop").option("checkpointLocation", str(tmp_path / "c")).start()
    with pytest.raises(PySparkException, match="option endingOffsets: a stream has no end"):
        query.awaitTermination()


def test_a_flipped_bit_is_an_error_or_a_quarantined_row(spark, tmp_path):
    path = path_of(tmp_path / "a.db", 40)
    logs.spoil(path, "orders", 16)
    with pytest.raises(PySparkException) as caught:
        source(spark.read, path).collect()
    assert "topic 'orders', offset 16: the message does not match its checksum" in str(caught.value)
    frame = source(spark.read, path, quarantine=True)
    held = frame.where("quarantine IS NOT NULL").collect()
    assert sorted(row["offset"] for row in held) == list(range(16, 24))
    assert {row["event"] for row in held} == {None}
    assert frame.where("quarantine IS NULL").count() == 32


@pytest.mark.parametrize("format", ["parquet", "jsonl"])
def test_a_trace_is_read_as_it_was_written(spark, tmp_path, format):
    folder = tmp_path / "trace"
    write_run(folder, seed=7, format=format)
    for table in TABLES:
        frame = spark.read.format("inorder").option("table", table).load(str(folder))
        expected = list(read_table(folder, table))
        if table != "events":
            plain = [tuple(getattr(row, name) for name in frame.columns) for row in expected]
            assert sorted(map(repr, map(tuple, frame.collect()))) == sorted(map(repr, plain))
            continue
        assert frame.columns == list(EVENT_COLUMNS)
        found = sorted(frame.collect(), key=lambda row: row["arrival"])
        assert [row["event"] for row in found] == [row.event for row in expected]
        assert [row["received_at"] for row in found] == [row.accepted_at for row in expected]
        for topic in {row.topic for row in expected}:
            offsets = [row["offset"] for row in found if row["topic"] == topic]
            assert offsets == list(range(len(offsets)))


def test_a_trace_streams_while_it_is_written(spark, tmp_path):
    folder = tmp_path / "trace"
    write_run(tmp_path / "whole", seed=8)
    rows = list(read_table(tmp_path / "whole", "events"))
    order = {"guarantee": "total"}
    writer = TraceWriter(folder, about={"order": order}, rows_per_part=5)
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
    batch = spark.read.format("inorder").option("url", f"trace:///{folder}").load()
    assert sink.all == rows_of(batch)
    assert {row[-1] for row in sink.all} == {"total"}
    assert len(sink.rows) == 2


def test_nothing_is_read_of_an_empty_log(spark, tmp_path):
    logs.fill(tmp_path / "a.db", "none", [])
    assert source(spark.read, tmp_path / "a.db").collect() == []
    sink = Collector()
    assert sink.run(source(spark.readStream, tmp_path / "a.db"), tmp_path / uuid.uuid4().hex)
    assert sink.all == []
    shutil.rmtree(tmp_path)
