"""The Spark side of a job: what subscribers were handed as tables, and the stream itself."""

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
from inorder.pipeline.order_positions import has_positions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


# The subscriber of a job that has none of its own.
EVERYTHING = "pipeline"

SUBSCRIPTIONS = (
    "subscriber string, op string, topics array<string>, where string, parameters string,"
    " at double, after bigint"
)
_DELIVERY = {
    "subscriber": "string", "nth": "bigint", "event": "string", "topic": "string",
    "publisher": "string", "seq": "bigint", "published_at": "double", "received_at": "double",
    "delivered_at": "double", "in_order": "boolean", "epoch": "bigint",
}  # fmt: skip
# What a row of an events table says, as far as the source knows it.
_PUBLISHED = {
    "event": "string", "topic": "string", "publisher": "string", "seq": "bigint",
    "published_at": "double", "application": "string", "seen": "string", "attributes": "string",
    "stamp": "string", "epoch": "bigint", "key": "string", "headers": "string", "log": "string",
    "offset": "bigint", "position": "bigint",
}  # fmt: skip


def read_log(spark: SparkSession, options: Mapping[str, str]) -> DataFrame:
    """Everything the source holds now and that can be read."""
    batch = {name: value for name, value in options.items() if name != "maxOffsetsPerTrigger"}
    events = spark.read.format("inorder").options(**batch).option("quarantine", "true").load()
    return events.where("quarantine IS NULL").drop("quarantine")


def handed_over(spark: SparkSession, folder: Path) -> DataFrame:
    """What live subscribers were handed, each counting for itself."""
    columns = ", ".join(f"{name} {kind}" for name, kind in _DELIVERY.items())
    return spark.read.schema(columns).json(f"{folder.absolute()}/*/deliveries.jsonl")


def live_subscriptions(spark: SparkSession, folder: Path) -> DataFrame:
    """What the live subscribers asked for, and when.

    They listened until nothing came any more: that they unsubscribed afterwards is no part of the
    story, and would leave nothing that is owed to them.
    """
    rows = spark.read.schema(SUBSCRIPTIONS).json(f"{folder.absolute()}/*/subscriptions.jsonl")
    return rows.where("op = 'subscribe'")


class Simulated:
    """The trace of a simulated network, whose subscribers were handed everything as it came."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.events = spark.read.format("inorder").load(str(folder.absolute()))
        read = spark.read.option("recursiveFileLookup", "true")
        self.subscriptions = read.parquet(str((folder / "subscriptions").absolute()))
        seen = read.parquet(str((folder / "deliveries").absolute()))
        seen = seen.select(
            "subscriber", seen["nth"].alias("arrived"), "event", "received_at", "delivered_at"
        )
        facts = self.events.select(
            "event", "topic", "publisher", "seq", "published_at", "attributes", "stamp", "epoch"
        )
        self.arrivals = seen.join(facts, "event")

    def starts(self) -> dict[str, dict[str, int]]:
        """How many events of each topic came before the first that a subscriber was handed."""
        from pyspark.sql import functions as F

        numbers = F.from_json("stamp", "map<string, bigint>")
        first = self.arrivals.withColumn("number", numbers[F.col("topic")])
        found: dict[str, dict[str, int]] = {}
        for row in first.groupBy("subscriber", "topic").agg(F.min("number").alias("n")).collect():
            found.setdefault(row.subscriber, {})[row.topic] = row.n - 1
        return found


def moment(events: DataFrame) -> str:
    """The column that says when an event was accepted."""
    return "stored_at" if "stored_at" in events.columns else "received_at"


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
    at = moment(events)
    published = events.select(
        *(
            F.col(name) if name in events.columns else F.lit(None).cast(kind).alias(name)
            for name, kind in _PUBLISHED.items()
        ),
        F.col(at).alias("accepted_at"),
        F.lit("accepted").alias("outcome"),
        F.length("attributes").cast("bigint").alias("bytes"),
    )
    # A trace without stamps says so as every other.
    published = published.fillna({"stamp": "{}", "epoch": 1})
    tables = {"events": published, "subscriptions": subscriptions}
    if deliveries is not None:
        tables["deliveries"] = deliveries.select(*_DELIVERY)
    for name, table in tables.items():
        table.write.mode("overwrite").parquet(str((folder / name).absolute()))
    last = events.agg(F.max(at)).collect()[0][0]
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


def first_position(options: Mapping[str, str], out: Path) -> int:
    """The position above which the job reads, as its first run found it.

    "latest" is a moment: whoever comes back must not start at a later one.
    """
    file = out / "first-position.json"
    if file.exists():
        return msgspec.json.decode(file.read_bytes(), type=int)
    first, _ = _reach(options)
    _keep(file, first)
    return first


def events_waiting(options: Mapping[str, str], done: int) -> int:
    """How far the log reaches beyond a position."""
    _, last = _reach(options)
    return max(0, last - done)


def _reach(options: Mapping[str, str]) -> tuple[int, int]:
    """The position above which a job would begin, and the last one there is."""
    from contextlib import closing

    from inorder.pipeline.source_log import open_log
    from inorder.pipeline.source_options import EARLIEST, read_options
    from inorder.pipeline.source_plan import begin

    settings = read_options(options)
    with closing(open_log(settings)) as log:
        extent = log.extent()
        return begin(settings, log, extent, EARLIEST) - 1, extent.next - 1


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


def last_position(out: Path) -> int | None:
    """How far the stream has come, as its checkpoint says; None if it has done nothing."""
    folder = out / "checkpoint"
    done = [int(path.name) for path in (folder / "commits").glob("*") if path.name.isdigit()]
    if not done:
        return None
    lines = (folder / "offsets" / str(max(done))).read_text().splitlines()
    return int(msgspec.json.decode(lines[2], type=dict[str, Any])["position"])


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
    ) -> None:
        self._options = options
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
        matched = match(events, table, unmatched=self._waits(events), quarantine=True)
        ordered = self._ordered(matched.withColumnRenamed("quarantine", "not_matched"))
        reason = F.coalesce("not_read", "not_matched", "quarantine")
        return ordered.withColumn("quarantine", reason).drop("not_read", "not_matched")

    def _for_all(self, events: DataFrame) -> DataFrame:
        """Everything for one subscriber."""
        from pyspark.sql import functions as F

        ordered = self._ordered(events.withColumn("subscriber", F.lit(EVERYTHING)))
        reason = F.coalesce("not_read", "quarantine")
        return ordered.withColumn("quarantine", reason).drop("not_read")

    def _waits(self, events: DataFrame) -> bool:
        """Whether rows that a filter keeps back are waited for: where stamps number all."""
        if has_positions(events):
            return False
        kind = self._guarantee
        return kind.rows is not None and kind.rows.waits_for_all(kind.options(**self._order))

    def _ordered(self, rows: DataFrame) -> DataFrame:
        """With `nth`, which rows with positions get when they are handed over (`_save`)."""
        from inorder.pipeline.order_stage import order

        name = self._guarantee.name
        if has_positions(rows):
            return order(rows, name, quarantine=True)
        starts: Any = "first"
        if self._members and self._options.get("startingOffsets") in ("earliest", "-1"):
            starts = {each.name: dict.fromkeys(each.topics, 0) for each in self._members}
        lanes = self._run.lanes if self._members else 1
        return order(rows, name, lanes=lanes, start=starts, quarantine=True, **self._order)

    def _counted(self, rows: DataFrame, batch: int) -> DataFrame:
        """The rows of a batch with `nth`: handed over by position, counted on from the batches
        before. How far each subscriber is stands in a file a batch, so that a batch that comes
        again counts as it did."""
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        file = self._out / "counts" / f"{batch:09d}.json"
        earlier = [path for path in sorted(file.parent.glob("*.json")) if path.name < file.name]
        counts: dict[str, int] = {}
        if earlier:
            counts = msgspec.json.decode(earlier[-1].read_bytes(), type=dict[str, int])
        new = {row.subscriber: row["count"] for row in rows.groupBy("subscriber").count().collect()}
        _keep(file, {**counts, **{name: counts.get(name, 0) + new[name] for name in sorted(new)}})
        turn = F.row_number().over(Window.partitionBy("subscriber").orderBy("position"))
        known = [(name, counts[name]) for name in sorted(new) if name in counts]
        if not known:
            return rows.withColumn("nth", turn.cast("bigint"))
        before = rows.sparkSession.createDataFrame(known, "subscriber string, before bigint")
        joined = rows.join(F.broadcast(before), "subscriber", "left")
        nth = F.coalesce("before", F.lit(0)) + turn
        return joined.withColumn("nth", nth.cast("bigint")).drop("before")

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
                at = F.col(moment(frame))
                good = frame.where("quarantine IS NULL")
                good = good.withColumns({"received_at": at, "delivered_at": at})
                if "nth" not in good.columns:
                    good = self._counted(good, batch)
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
    facts = [name for name in ("key", "headers", "attributes", "value") if name in kept.columns]
    return kept.select(F.col("subscriber").alias("topic"), *facts)


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
