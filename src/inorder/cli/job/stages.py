"""The Spark side of a job: what live subscribers got put in order, and the stream itself."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from inorder.check.ending import Ending
from inorder.check.trace import SUMMARY_FILE
from inorder.cli.job.tables import Member, RunTable, SinkTable
from inorder.core.errors import BadScenario
from inorder.guarantee.registry import Guarantee

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from inorder.pipeline.source_log import Extent

# The subscriber of a job that has none of its own.
EVERYTHING = "pipeline"

_ARRIVALS = "subscriber string, nth bigint, event string, received_at double, delivered_at double"
SUBSCRIPTIONS = (
    "subscriber string, op string, topics array<string>, where string, parameters string,"
    " at double, after bigint"
)
_DELIVERY = (
    "subscriber", "nth", "event", "topic", "publisher", "seq", "published_at", "received_at",
    "delivered_at", "in_order",
)  # fmt: skip


def read_log(spark: SparkSession, options: Mapping[str, str]) -> DataFrame:
    """Everything the source holds now and that can be read."""
    batch = {name: value for name, value in options.items() if name != "maxOffsetsPerTrigger"}
    events = spark.read.format("inorder").options(**batch).option("quarantine", "true").load()
    return events.where("quarantine IS NULL").drop("quarantine")


def arrivals(spark: SparkSession, folder: Path, events: DataFrame) -> DataFrame:
    """What live subscribers were handed, in their own order (`arrived`), with its stamps."""
    seen = spark.read.schema(_ARRIVALS).json(f"{folder.absolute()}/*/deliveries.jsonl")
    facts = events.select(
        "event", "topic", "publisher", "seq", "published_at", "attributes", "stamp"
    )
    return seen.withColumnRenamed("nth", "arrived").join(facts, "event")


def live_subscriptions(spark: SparkSession, folder: Path) -> DataFrame:
    """What the live subscribers asked for, and when.

    They listened until nothing came any more: that they unsubscribed afterwards is no part of the
    story, and would leave nothing that is owed to them.
    """
    rows = spark.read.schema(SUBSCRIPTIONS).json(f"{folder.absolute()}/*/subscriptions.jsonl")
    return rows.where("op = 'subscribe'")


def write_trace(
    folder: Path,
    deliveries: DataFrame | None,
    events: DataFrame,
    subscriptions: DataFrame,
    about: dict[str, Any],
) -> None:
    """The tables of a trace; `deliveries` is None when they are there already.

    The job has read all there was, and everybody has been given his part: the run ended quiet.
    """
    from pyspark.sql import functions as F

    folder.mkdir(parents=True, exist_ok=True)
    published = events.select(
        "event", "topic", "publisher", "seq", "published_at",
        F.col("received_at").alias("accepted_at"),
        F.lit("accepted").alias("outcome"), F.lit(None).cast("string").alias("application"),
        F.lit(None).cast("string").alias("seen"),
        F.length("attributes").cast("bigint").alias("bytes"), "attributes", "stamp",
    )  # fmt: skip
    tables = {"events": published, "subscriptions": subscriptions}
    if deliveries is not None:
        tables["deliveries"] = deliveries.select(*_DELIVERY)
    for name, table in tables.items():
        table.write.mode("overwrite").parquet(str((folder / name).absolute()))
    last = events.agg(F.max("received_at")).collect()[0][0]
    ending = Ending(quiet=True, ended_at=float(last or 0.0), within=0.0)
    facts = {**about, **ending.to_json(), "complete": True}
    summary = json.dumps(facts, indent=2, sort_keys=True)
    (folder / SUMMARY_FILE).write_text(summary + "\n")


def subscription_rows(members: Sequence[Member]) -> list[dict[str, Any]]:
    """Members as rows of the trace's subscriptions table."""
    return [
        {
            "subscriber": member.name,
            "op": "subscribe",
            "topics": member.topics,
            "where": member.where,
            "parameters": json.dumps(member.parameters),
            "at": 0.0,
            "after": 0,
        }
        for member in members
    ]


def starts_of(
    members: Sequence[Member], first: Mapping[str, int] | None = None
) -> dict[str, dict[str, int]]:
    """Which topics each of them holds, and where they start: at their beginning if not said."""
    known = first or {}
    return {
        member.name: {topic: known.get(topic, 0) for topic in member.topics} for member in members
    }


def first_offsets(options: Mapping[str, str], out: Path) -> dict[str, int]:
    """The offsets at which the job starts to read topics, as its first run found them.

    "latest" is a moment: whoever comes back must not start at a later one.
    """
    from inorder.pipeline.source_options import EARLIEST, read_options
    from inorder.pipeline.source_plan import resolved

    file = out / "first-offsets.json"
    if file.exists():
        return msgspec.json.decode(file.read_bytes(), type=dict[str, int])
    first = resolved(read_options(options).starting, _extents(options), EARLIEST)
    _keep(file, first)
    return first


def events_waiting(options: Mapping[str, str], out: Path) -> int:
    """How many events the stream has still to read."""
    from inorder.pipeline.source_options import EARLIEST, read_options
    from inorder.pipeline.source_plan import resolved

    extents = _extents(options)
    done = last_offsets(out) or resolved(read_options(options).starting, extents, EARLIEST)
    return sum(max(0, each.next - done.get(topic, each.first)) for topic, each in extents.items())


def _extents(options: Mapping[str, str]) -> dict[str, Extent]:
    """The topics of the source that the job reads, and how far they reach."""
    from contextlib import closing

    from inorder.pipeline.source_log import open_log
    from inorder.pipeline.source_options import read_options
    from inorder.pipeline.source_plan import chosen

    settings = read_options(options)
    with closing(open_log(settings)) as log:
        return chosen(log.extents(), settings)


def _keep(file: Path, value: Any) -> None:
    """Whole or not at all: a job that is killed here begins again, and reads no half of it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    aside = file.with_name(f".{file.name}.aside")
    aside.write_bytes(msgspec.json.encode(value))
    os.replace(aside, file)


def identity_of(out: Path) -> str:
    """The name of this job for others, as long as it goes on from its checkpoint."""
    file = out / "identity.json"
    if not file.exists():
        _keep(file, f"job-{uuid.uuid4().hex}")
    return msgspec.json.decode(file.read_bytes(), type=str)


def last_offsets(out: Path) -> dict[str, int]:
    """How far the stream has come, as its checkpoint says; nothing if it has done nothing."""
    folder = out / "checkpoint"
    done = [int(path.name) for path in (folder / "commits").glob("*") if path.name.isdigit()]
    if not done:
        return {}
    lines = (folder / "offsets" / str(max(done))).read_text().splitlines()
    return msgspec.json.decode(lines[2], type=dict[str, int])


class Stream:
    """The streaming query of a job: source, match, order, sink."""

    def __init__(
        self,
        options: Mapping[str, str],
        members: Sequence[Member],
        ordered: Guarantee,
        order: Mapping[str, Any],
        sink: SinkTable,
        run: RunTable,
        out: Path,
        first: Mapping[str, int] | None = None,
    ) -> None:
        self._options = options
        # The offsets at which topics start that do not start at their beginning.
        self._first = first
        self._members = members
        self._guarantee = ordered
        self._order = order
        self._sink = sink
        self._run = run
        self._out = out
        self.folder = out / "pipeline"
        self.quarantine = out / "quarantine"

    def start(self, spark: SparkSession) -> StreamingQuery:
        """Build and start the query; it goes on where its checkpoint stands."""
        frame = self._frame(spark)
        self.folder.mkdir(parents=True, exist_ok=True)
        writer = frame.writeStream.outputMode("append").option(
            "checkpointLocation", str((self._out / "checkpoint").absolute())
        )
        if self._run.trigger == "available-now":
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=self._run.trigger)
        return writer.foreachBatch(self._save()).start()

    def _frame(self, spark: SparkSession) -> DataFrame:
        from pyspark.sql import functions as F

        from inorder.pipeline.match_stage import match
        from inorder.pipeline.order_stage import order
        from inorder.pipeline.subscriptions import SubscriptionTable

        reader = spark.readStream.format("inorder").options(**self._options)
        events = reader.option("quarantine", "true").load()
        events = events.withColumnRenamed("quarantine", "not_read")
        if not self._members:
            return self._for_all(events)
        # What could not be read is no event for anybody: match must put it aside.
        unreadable = F.when(F.col("not_read").isNull(), F.col("attributes")).otherwise("?")
        events = events.withColumn("attributes", unreadable)
        table = SubscriptionTable(str((self._out / "subscription-table").absolute()))
        rows = subscription_rows(self._members)
        if table.latest() == 0:
            table.append(rows)
        elif [msgspec.to_builtins(row) for row in table.changes(1)] != rows:
            raise BadScenario(
                "subscriptions", f"are not those with which {self._out} began: give another out"
            )
        kind = self._guarantee
        options = kind.log.options(kind.options(**self._order))
        matched = match(events, table, unmatched=kind.log.wants_all(options), quarantine=True)
        ordered = order(
            matched.withColumnRenamed("quarantine", "not_matched"), kind.name,
            lanes=self._run.lanes, start=starts_of(self._members, self._first), quarantine=True,
            **self._order,
        )  # fmt: skip
        reason = F.coalesce("not_read", "not_matched", "quarantine")
        return ordered.withColumn("quarantine", reason).drop("not_read", "not_matched")

    def _for_all(self, events: DataFrame) -> DataFrame:
        """Everything for one subscriber."""
        from pyspark.sql import functions as F

        from inorder.pipeline.order_stage import order

        ordered = order(
            events.withColumn("subscriber", F.lit(EVERYTHING)), self._guarantee.name,
            lanes=1, start=dict(self._first) if self._first else "beginning", quarantine=True,
            **self._order,
        )  # fmt: skip
        reason = F.coalesce("not_read", "quarantine")
        return ordered.withColumn("quarantine", reason).drop("not_read")

    def _save(self) -> Callable[[DataFrame, int], None]:
        """What to do with a micro-batch: the same again when it comes again.

        A batch has folders of its own, named by its number and written over: a batch that is
        repeated after a failure replaces itself.
        """
        folder, quarantine = self.folder.absolute(), self.quarantine.absolute()
        sink = self._sink
        target = Path(sink.path).absolute() if sink.path else None
        own = sink.format == "inorder"
        identity = identity_of(self._out) if own else ""
        lanes = self._run.lanes

        def save(frame: DataFrame, batch: int) -> None:
            from pyspark.sql import functions as F

            frame.persist()
            try:
                good = frame.where("quarantine IS NULL").withColumn(
                    "delivered_at", F.col("received_at")
                )
                name = f"batch-{batch:09d}"
                deliveries = good.select(*_DELIVERY)
                deliveries.write.mode("overwrite").parquet(str(folder / "deliveries" / name))
                if own:
                    # A batch that is repeated finds its receipts, and is not written again.
                    again = _as_events(good, lanes).write.format(sink.format).mode("append")
                    again = again.options(**{"sink": identity, **sink.options})
                    again.option("batch", batch).save()
                elif target is not None:
                    copy = good.drop("quarantine").write.format(sink.format).mode("overwrite")
                    copy.options(**sink.options).save(str(target / name))
                bad = frame.where("quarantine IS NOT NULL")
                if not bad.isEmpty():
                    bad.write.mode("overwrite").json(str(quarantine / name))
            finally:
                frame.unpersist()

        return save


def _as_events(deliveries: DataFrame, parts: int) -> DataFrame:
    """What each subscriber got, to be published on a topic of its name, in its order."""
    from pyspark.sql import functions as F

    kept = deliveries.repartition(parts, "subscriber").sortWithinPartitions("nth")
    return kept.select(F.col("subscriber").alias("topic"), "attributes")


def wait_for(query: StreamingQuery, expected: int, progress: Callable[[float], None]) -> None:
    """Wait until the query ends, or somebody interrupts it."""
    done = 0
    seen = -1
    try:
        while not query.awaitTermination(0.2):  # type: ignore[arg-type]
            for each in query.recentProgress:
                if each["batchId"] > seen:
                    seen = each["batchId"]
                    done += each["numInputRows"]
            progress(min(1.0, done / expected) if expected else 0.0)
    except KeyboardInterrupt:
        query.stop()


def remove(path: Path) -> None:
    """A file or folder the job made itself."""
    import shutil

    if path.is_dir():
        shutil.rmtree(path)
    elif path.exists():
        os.unlink(path)
