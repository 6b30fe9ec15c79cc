"""`df.write.format("inorder")` and `df.writeStream.format("inorder")`: rows become events of a log.

| option    | meaning                                                                          |
|-----------|----------------------------------------------------------------------------------|
| url       | sqlite:///relative.db or sqlite:////absolute.db; made if there is none             |
| topic     | the topic of all rows; without it the column `topic` says                        |
| publisher | who publishes, spark by default; sink and task are added                         |
| sink      | the name under which batches are counted; a query has one, a batch job a new one |
| batch     | the number of this batch of the sink: for writers in `foreachBatch`               |

Columns `key`, `headers` (a JSON object of texts), `published_at` and `attributes` (a JSON object)
or `value` (bytes) are used if they are there. With neither, all other columns are the attributes.
What else a row of our source says of itself (publisher, seq, position, ...) is what it was: here it
is a new event, of the sink.

Rule 1: a sink and a task are one publisher, and the number of an event says which batch it is of
        and which row of the task. A task that is tried again, or a batch that is run again, asks
        the log for its publisher's last number and appends what is missing. So every row is there
        once, provided that a batch run again is cut into the same tasks with the same rows: the
        source's are (source_plan.py).
Rule 2: before it appends, a task keeps a note of its rows, also of none. Rows that are not those of
        the note stop the query once any of them are stored. They may come in another order, unless
        the log has stored a part of them only.
Rule 3: a task appends its rows in their order, and other tasks append meanwhile. Who wants one
        order of all rows puts them into one task.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

import msgspec
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from inorder.brokers import broker_at
from inorder.core.errors import Misuse, Refused, UnknownName, Unsure
from inorder.core.limits import SINK_BATCHES_KEPT, SINK_WAIT_S_MAX
from inorder.logs.broker import Broker, Log, Run
from inorder.logs.topics import EVERYTHING, check_name
from inorder.pipeline.sink_rows import Encoding, Note, Plan, behind, packed
from inorder.pipeline.source_log import EVENT_COLUMNS
from inorder.pipeline.source_options import place_of

NAMES = ("url", "topic", "publisher", "sink", "batch")
# Spark's own, which it hands on to every sink.
_SPARKS = ("checkpointlocation", "path", "queryname", "outputmode")

_ROLES = ("topic", "key", "headers", "published_at", "attributes", "value")
_KINDS = ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string")

# So that all numbers fit into 63 bits.
_BATCHES_MAX = 2**31
# A broker that refuses, or does not answer, is asked so often before Spark tries the task again.
_TRIES = 4

_note = msgspec.msgpack.Decoder(Note).decode


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
    _, _, url = place_of({"url": given.get("url", "")})
    kinds = {field.name: field.dataType.simpleString() for field in schema.fields}
    roles = tuple(name for name in _ROLES if name in kinds)
    if "attributes" in kinds or "value" in kinds:
        others: tuple[str, ...] = ()
    else:
        others = tuple(name for name in kinds if name not in (*_ROLES, *EVENT_COLUMNS))
    _check_columns(kinds, others, given)
    found = Plan(
        url, given.get("topic", ""), given.get("publisher", ""), given.get("sink", ""),
        _batch(given), roles, others,
    )  # fmt: skip
    if found.topic:
        check_name(found.topic)
    _with_broker(url, _nothing)
    return found


async def _nothing(broker: Broker, log: Log) -> None:
    """Opening was enough."""


def _with_broker(url: str, call: Any) -> Any:
    """The answer of a coroutine that is given the broker, open, and its log."""

    async def opened() -> Any:
        broker = broker_at(url, SINK_WAIT_S_MAX)
        if not broker.traits.shares:
            raise Misuse(f"{url}: other processes cannot open it, and Spark's tasks are such")
        await broker.open()
        try:
            logs = await broker.logs(EVERYTHING)
            if len(logs) != 1:
                raise Misuse(f"{url} has {len(logs)} logs, and the sink appends to one")
            return await call(broker, logs[0])
        finally:
            await broker.close()

    return asyncio.run(opened())


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
    wanted = {
        "published_at": ("float", "double"),
        "value": ("binary",),
        **dict.fromkeys(("topic", "key", "headers", "attributes"), ("string",)),
        **dict.fromkeys(others, _KINDS),
    }
    for name, allowed in wanted.items():
        if name in kinds and kinds[name] not in allowed:
            told = f"is {kinds[name]}, not {' or '.join(allowed)}"
            raise Misuse(f"column {name!r} {told}")


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
        if self._plan.sink:
            _forget(self._plan.url, [self._sink], self._plan.batch - SINK_BATCHES_KEPT)
        else:  # a name that never comes again
            _forget(self._plan.url, [self._sink], self._plan.batch)


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
        _forget(self._plan.url, sinks, batchId - SINK_BATCHES_KEPT)


def _forget(url: str, sinks: list[str], batch: int) -> None:
    """The rows of that batch are in: its notes can go."""
    if batch < 0 or not sinks:
        return

    async def forget(broker: Broker, log: Log) -> None:
        facts = broker.coordinator
        assert facts is not None, "it kept the notes"
        for sink in sinks:
            for key in await facts.keys(_key(sink, batch, "")):
                await facts.drop(key)

    _with_broker(url, forget)


def _task() -> TaskContext:
    context = TaskContext.get()
    assert context is not None
    return context


def _key(sink: str, batch: int, task: int | str) -> str:
    """Quoted, so that no sink's keys begin like those of another."""
    return f"spark/{quote(sink, safe='')}/{batch}/{task}"


def append(plan: Plan, sink: str, batch: int, task: int, batches: Iterator[Any]) -> Written:
    """Append the rows of one task, unless they have been before."""
    rows = Encoding(plan, sink, batch, task)
    for each in batches:
        rows.take(each)
    runs = rows.runs()
    what = f"task {task} of batch {batch} of {sink}"

    async def call(broker: Broker, log: Log) -> None:
        await _append(broker, log, rows, runs, _key(sink, batch, task), f"{plan.url}: {what}")

    _with_broker(plan.url, call)
    return Written(sink)


async def _append(
    broker: Broker, log: Log, rows: Encoding, runs: list[Run], key: str, what: str
) -> None:
    facts = broker.coordinator
    if facts is None:
        raise Misuse(f"{what}: the broker keeps no notes, so rows could be there twice")
    kept = await facts.get(key)
    before, now = None if kept is None else _note(kept[0]), rows.note
    stored = await _stored(broker, log, rows, before, what)
    if before is not None and (stored or not before.count):
        _check_same(before, now, stored, what)
    elif before != now:
        await facts.put(key, packed(now), 1)
    for attempt in range(_TRIES):
        if stored >= now.count:
            return
        try:
            found = await broker.append(log, rows.author, behind(runs, rows.first + stored))
            stored += len(found.offsets)
            if found.reason:
                raise Refused(f"{what}: {found.reason}")
        except (Refused, Unsure):
            # Perhaps another life of this task was faster, perhaps only the answer was lost.
            stored = await _stored(broker, log, rows, now, what)
            if stored < now.count and attempt + 1 == _TRIES:
                raise


async def _stored(broker: Broker, log: Log, rows: Encoding, before: Note | None, what: str) -> int:
    """How many rows of this task and batch the log has."""
    last = await broker.last(log, rows.author)
    if last is None:
        if before is None:
            return 0
        raise Refused(f"{what}: the log does not say any more what of it is stored")
    return max(0, min(rows.note.count, last - rows.first + 1))  # all, if a later batch is


def _check_same(before: Note, now: Note, stored: int, what: str) -> None:
    if before.count != now.count:
        raise Refused(f"{what} had {before.count} rows before, and {now.count} now")
    if before.some != now.some:
        raise Refused(f"{what} had {now.count} rows before, as now, but not the same ones")
    if stored < now.count and before.ordered != now.ordered:
        raise Refused(f"{what}: {stored} rows are stored, and now they come in another order")
