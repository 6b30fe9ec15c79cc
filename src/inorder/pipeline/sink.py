"""`df.write.format("inorder")` and `df.writeStream.format("inorder")`: rows become events of a log.

| option    | meaning                                                                          |
|-----------|----------------------------------------------------------------------------------|
| url       | sqlite:///relative.db or sqlite:////absolute.db; made if there is none             |
| topic     | the topic of all rows; without it the column `topic` says                        |
| guarantee | under which the column `stamp` is to be read; none, without stamps               |
| publisher | who publishes rows without columns `publisher` and `seq`; sink and task are added   |
| sink      | the name under which batches are counted; a query has one, a batch job a new one |
| batch     | the number of this batch of the sink: for writers in `foreachBatch`               |

Columns `publisher` and `seq`, `published_at`, `stamp` and `attributes` (a JSON object) are used if
they are there. Without `attributes`, all other columns are the attributes.

Rule 1: a task appends all its rows or none, in one transaction that also keeps a receipt under
        sink, batch and task, with a digest of the rows; a task without rows keeps one, too. A task
        that is tried again, or a batch that is run again, finds the receipt and appends nothing. So
        every row is there once, provided that a batch run again is cut into the same tasks with the
        same rows, in any order: the source's are (source_plan.py), and a receipt over other rows
        stops the query.
Rule 2: a topic keeps the guarantee of its first use.
Rule 3: where stamps number the events of a topic (total order), the numbers must go on where the
        log stands. Two sinks that number one topic would contradict each other: the second is
        refused. So all rows of such a topic belong into one task, in their order.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import Struct
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from inorder.bus.store.rows import Append, Turn
from inorder.bus.store.sqlite.file import File
from inorder.core import wire
from inorder.core.errors import BadFrame, Misuse, Refused, TooLarge, UnknownName
from inorder.core.event import Event, Scalar
from inorder.core.limits import SINK_BATCHES_KEPT, SINK_WAIT_S_MAX, TOPIC_BYTES_MAX
from inorder.guarantee.registry import guarantee
from inorder.pipeline.source_options import place_of

NAMES = ("url", "topic", "guarantee", "publisher", "sink", "batch")
# Spark's own, which it hands on to every sink.
_SPARKS = ("checkpointlocation", "path", "queryname", "outputmode")

_ROLES = ("topic", "publisher", "seq", "published_at", "stamp", "attributes")
_KINDS = ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string")
_NO_STAMP = "{}"

# Rows of one task in one batch stay below this, so that numbers of later batches are larger.
_ROWS_PER_BATCH = 2**32
# So that all numbers fit into 63 bits.
_BATCHES_MAX = 2**31

_attributes = msgspec.json.Decoder(dict[str, Scalar]).decode
_packed = msgspec.msgpack.Encoder(order="deterministic").encode


class Plan(Struct, frozen=True):
    """Where rows go, and which columns mean what. `attributes` names the column that holds them
    all, or `others` those that are one each."""

    place: str
    topic: str
    guarantee: str
    publisher: str
    sink: str
    batch: int
    roles: tuple[str, ...]
    others: tuple[str, ...]


class Written(WriterCommitMessage):
    """What a task tells the driver: the name under which this query's batches are counted."""

    def __init__(self, sink: str) -> None:
        self.sink = sink


def plan(options: Mapping[str, str], schema: StructType, overwrite: bool) -> Plan:
    """The options and columns, checked; the file is made if there is none."""
    given = {key.lower(): value for key, value in options.items()}
    for key in sorted(given):
        if key not in NAMES and key not in _SPARKS:
            raise UnknownName("option", key, list(NAMES))
    if overwrite:
        raise Misuse("a log is only appended to: use mode append")
    scheme, place = place_of({"url": given.get("url", "")})
    if scheme != "sqlite":
        raise UnknownName("scheme of a url to write to", scheme, ["sqlite"])
    kinds = {field.name: field.dataType.simpleString() for field in schema.fields}
    roles = tuple(name for name in _ROLES if name in kinds)
    others = () if "attributes" in kinds else tuple(n for n in kinds if n not in _ROLES)
    _check_columns(kinds, others, given)
    found = Plan(
        place, given.get("topic", ""), given.get("guarantee", "none"), given.get("publisher", ""),
        given.get("sink", ""), _batch(given), roles, others,
    )  # fmt: skip
    _check_guarantee(found, given)
    file = File(place)
    try:
        if found.topic:
            _declare(file, found.topic, found.guarantee)
    finally:
        file.close()
    return found


def _batch(given: dict[str, str]) -> int:
    said = given.get("batch", "0")
    if not (said.isascii() and said.isdigit() and int(said) < _BATCHES_MAX):
        raise Misuse(f"option batch is a number from 0 on, not {said!r}")
    if "batch" in given and not given.get("sink"):
        raise Misuse("option batch counts the batches of a sink: name it, option sink")
    return int(said)


def _check_columns(kinds: dict[str, str], others: tuple[str, ...], given: dict[str, str]) -> None:
    if "topic" not in kinds and not given.get("topic"):
        raise Misuse("there is neither a column topic nor an option topic")
    if ("publisher" in kinds) != ("seq" in kinds):
        raise Misuse("columns publisher and seq go together: give both or none")
    wanted = {
        "seq": ("tinyint", "smallint", "int", "bigint"),
        "published_at": ("float", "double"),
        **dict.fromkeys(("topic", "publisher", "stamp", "attributes"), ("string",)),
        **dict.fromkeys(others, _KINDS),
    }
    for name, allowed in wanted.items():
        if name in kinds and kinds[name] not in allowed:
            told = f"is {kinds[name]}, not {' or '.join(allowed)}"
            raise Misuse(f"column {name!r} {told}")


def _check_guarantee(found: Plan, given: dict[str, str]) -> None:
    log = guarantee(found.guarantee).log
    if "stamp" in found.roles:
        if "guarantee" not in given:
            raise Misuse("the rows carry stamps: option guarantee must say how to read them")
        return
    try:
        log.restamped(Event("p", 1, "t"), _NO_STAMP)
    except BadFrame:
        raise Misuse(f"guarantee {found.guarantee!r} needs a column stamp") from None


def _declare(file: File, topic: str, name: str) -> None:
    size = len(topic.encode())
    if not 0 < size <= TOPIC_BYTES_MAX:
        raise TooLarge("name of a topic in bytes", size, TOPIC_BYTES_MAX)
    kept = file.declare(topic, name)
    if kept != name:
        told = f"is published under guarantee {kept!r}, not {name!r}"
        raise Misuse(f"{file.path}: topic {topic!r} {told}")


class BatchWriter(DataSourceArrowWriter):
    """A whole data frame; under a `sink` of its own if it has no other."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._sink = plan.sink or f"job-{uuid.uuid4().hex}"

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        from inorder.pipeline.source import plainly

        with plainly():
            plan = self._plan
            return append(plan, self._sink, plan.batch, _task().partitionId(), iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        _forget(self._plan.place, [self._sink], self._plan.batch)


class StreamWriter(DataSourceStreamArrowWriter):
    """Micro-batches; Spark tells a task which query and batch it belongs to."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        from inorder.pipeline.source import plainly

        task = _task()
        with plainly():
            sink = self._plan.sink or task.getLocalProperty("sql.streaming.queryId")
            batch = task.getLocalProperty("streaming.sql.batchId")
            if not sink or batch is None:
                raise Misuse("Spark does not say which query and batch this is")
            return append(self._plan, sink, int(batch), task.partitionId(), iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        sinks = sorted({each.sink for each in messages if isinstance(each, Written)})
        _forget(self._plan.place, sinks, batchId)


def _forget(place: str, sinks: list[str], batch: int) -> None:
    """The rows are in already; receipts of long ago can go."""
    old = batch - SINK_BATCHES_KEPT
    if old < 0 or not sinks:
        return
    file = File(place, busy_s=SINK_WAIT_S_MAX)
    try:
        for sink in sinks:
            file.forget(_key(sink, old, ""))
    finally:
        file.close()


def _task() -> TaskContext:
    context = TaskContext.get()
    assert context is not None
    return context


def _key(sink: str, batch: int, task: int | str) -> str:
    """Quoted, so that no sink's keys begin like those of another."""
    return f"spark/{quote(sink, safe='')}/{batch}/{task}"


def append(plan: Plan, sink: str, batch: int, task: int, batches: Iterator[Any]) -> Written:
    """Append the rows of one task, unless they have been before."""
    key = _key(sink, batch, task)
    rows = Encoding(plan, sink, batch, task)
    for each in batches:
        rows.take(each)
    file = File(plan.place, create=False, busy_s=SINK_WAIT_S_MAX)
    try:
        for topic in rows.topics:
            _declare(file, topic, plan.guarantee)
        if not file.write(Turn(appends=rows.appends, key=key), rows.expected, rows.digest):
            # Appended before, or nothing to append: now or then.
            before, now = file.receipt(key), len(rows.appends)
            if before != now:
                told = f"had {before} rows before, and {now} now"
                raise Refused(f"{plan.place}: task {task} of batch {batch} of {sink} {told}")
            if file.receipt(key, rows.digest) is None:
                told = f"had {now} rows before, as now, but not the same ones"
                raise Refused(f"{plan.place}: task {task} of batch {batch} of {sink} {told}")
    finally:
        file.close()
    return Written(sink)


class Encoding:
    """Turns the rows of a task into messages of the log."""

    def __init__(self, plan: Plan, sink: str, batch: int, task: int) -> None:
        self._plan = plan
        self._restamped = guarantee(plan.guarantee).log.restamped
        # Every sink counts its batches from 0: its name keeps its events apart from other sinks'.
        tag = blake2b(sink.encode(), digest_size=8).hexdigest()
        self._publisher = f"{plan.publisher or 'spark'}/{tag}/{task}"
        self._seq = batch * _ROWS_PER_BATCH
        self._now = time.time()
        self._following: dict[str, int] = {}
        self._sum = 0
        self.appends: list[Append] = []
        self.topics: dict[str, None] = {}
        # Offsets the first numbered event of each topic must get.
        self.expected: dict[str, int] = {}

    @property
    def digest(self) -> str:
        """Says which rows these are, in whatever order they came: Spark may shuffle them."""
        return f"{self._sum:032x}"

    def take(self, batch: Any) -> None:
        columns = {name: batch.column(name).to_pylist() for name in self._plan.roles}
        rows = batch.num_rows
        topics = [self._plan.topic] * rows if self._plan.topic else columns["topic"]
        first = self._seq + len(self.appends) + 1
        publishers = columns.get("publisher") or [self._publisher] * rows
        seqs = columns.get("seq") or range(first, first + rows)
        said = columns.get("published_at") or [None] * rows
        times = [self._now if time is None else time for time in said]
        stamps = columns.get("stamp") or [_NO_STAMP] * rows
        if "attributes" in columns:
            values = [self._decoded(text) for text in columns["attributes"]]
        else:
            values = self._gathered(batch)
        for event, stamp in zip(
            map(Event, publishers, seqs, topics, values, times), stamps, strict=True
        ):
            self._add(event, stamp)
        unnumbered = [None] * rows
        names = (columns.get(name) or unnumbered for name in ("publisher", "seq"))
        for row in zip(topics, *names, said, stamps, values, strict=True):
            self._count(row)

    def _count(self, row: tuple[Any, ...]) -> None:
        """Into the digest goes what the row says itself: neither the time nor the number it got."""
        found = blake2b(_packed(row), digest_size=16).digest()
        self._sum = (self._sum + int.from_bytes(found)) % 2**128

    def _add(self, event: Event, stamp: str | None) -> None:
        if event.topic is None or event.publisher is None or event.seq is None or stamp is None:
            raise Misuse(f"row {len(self.appends) + 1} of a task: topic, publisher, seq or stamp "
                         f"is null ({event.topic}, {event.publisher}, {event.seq})")  # fmt: skip
        try:
            message = self._restamped(event, stamp)
            self._check_number(event, getattr(message, "first", None))
            frame = wire.encode(message)
        except (BadFrame, TooLarge, UnicodeError) as error:
            raise Misuse(f"event {event.id} of topic {event.topic!r}: {error}") from None
        except OverflowError:
            told = "its attributes or its stamp hold a whole number beyond 64 bits"
            raise Misuse(f"event {event.id} of topic {event.topic!r}: {told}") from None
        self.topics[event.topic] = None
        self.appends.append(Append(event.topic, frame, 1))

    def _check_number(self, event: Event, number: int | None) -> None:
        """A message that says which number of its topic it is must be the next one (Rule 3)."""
        if number is None:
            return
        due = self._following.get(event.topic)
        if due is None:
            self.expected[event.topic] = number - 1
        elif number != due:
            told = f"has number {number} of its topic {event.topic!r} where {due} is due"
            hint = 'repartition by topic and sortWithinPartitions("topic", "offset")'
            raise Misuse(f"event {event.id} {told}: {hint}")
        self._following[event.topic] = number + 1

    def _decoded(self, text: str | None) -> dict[str, Scalar]:
        try:
            return _attributes(text or "{}")
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            pass  # perhaps NaN or Infinity, which the source writes
        try:
            return msgspec.convert(json.loads(text or "{}"), dict[str, Scalar])
        except (ValueError, RecursionError, msgspec.MsgspecError):
            told = "is not a JSON object of single values"
            raise Misuse(f"column attributes: {str(text)[:60]!r} {told}") from None

    def _gathered(self, batch: Any) -> list[dict[str, Scalar]]:
        names = self._plan.others
        lists = [batch.column(name).to_pylist() for name in names]
        if not lists:
            return [{} for _ in range(batch.num_rows)]
        return [
            {name: value for name, value in zip(names, row, strict=True) if value is not None}
            for row in zip(*lists, strict=True)
        ]
