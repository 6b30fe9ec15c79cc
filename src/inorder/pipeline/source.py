"""`spark.read.format("inorder")` and `spark.readStream.format("inorder")`.

    events = (spark.readStream.format("inorder")
              .option("url", "sqlite:////data/broker.db").option("subscribe", "orders,payments")
              .load())

Rule 1: everything that can be known to be wrong is said at `load`, in one sentence.
Rule 2: the driver plans with offsets alone (source_plan.py); tasks open the log and read it.
Rule 3: positions live in Spark's checkpoint, as {"orders": 17, "payments": 5}. `commit` is not
        used: it lags one batch behind, and the last one never comes.

What can be said is in source_options.py; what comes, in source_log.py. Writing is in sink.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cached_property
from typing import Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from inorder.core.errors import InorderError, Misuse
from inorder.pipeline.source_log import QUARANTINE, Extent, Slice, open_log
from inorder.pipeline.source_options import EARLIEST, LATEST, Settings, read_options
from inorder.pipeline.source_plan import (
    admitted,
    check_names,
    chosen,
    followed,
    ranges,
    resolved,
    tasks,
)


@contextmanager
def plainly() -> Iterator[None]:
    """Our errors as one sentence: Spark is told to leave out the trace through its own workers.

    It looks at the variable when it reports an error, and ends the worker after that.
    """
    try:
        yield
    except InorderError:
        os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        raise


class Part(InputPartition):
    """What one task reads."""

    def __init__(self, slices: list[Slice]) -> None:
        self.slices = slices


class DefaultSource(DataSource):
    """The format `inorder`."""

    @classmethod
    def name(cls) -> str:
        return "inorder"

    def schema(self) -> str:
        with plainly():
            settings = read_options(self.options)
            with closing(open_log(settings)) as log:
                extents = log.extents()
                columns = dict(log.columns())
            check_names(extents, settings)
            resolved(settings.starting, chosen(extents, settings), EARLIEST)
            if settings.quarantine:
                columns[QUARANTINE] = "string"
            return ", ".join(f"`{name}` {kind}" for name, kind in columns.items())

    def reader(self, schema: StructType) -> DataSourceReader:
        with plainly():
            return BatchReader(read_options(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return StreamReader(dict(self.options))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from inorder.pipeline.sink import BatchWriter, plan

        with plainly():
            return BatchWriter(plan(self.options, schema, overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from inorder.pipeline.sink import StreamWriter, plan

        with plainly():
            return StreamWriter(plan(self.options, schema, overwrite))


class BatchReader(DataSourceReader):
    """From the starting to the ending offsets, as they are when the query is planned."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def partitions(self) -> list[InputPartition]:
        settings = self._settings
        with plainly():
            extents = _extents(settings)
            check_names(extents, settings)
            wanted = chosen(extents, settings)
            start = resolved(settings.starting, wanted, EARLIEST)
            end = resolved(settings.ending, wanted, LATEST)
            for topic, offset in start.items():
                if offset > end[topic]:
                    told = f"starts at offset {offset} and ends at {end[topic]}"
                    raise Misuse(f"the query is to read topic {topic!r} backwards: it {told}")
            return _parts(settings, ranges_of(settings, start, end, extents)) or [Part([])]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_part(self._settings, partition)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Micro-batches, from the checkpoint on."""

    def __init__(self, options: dict[str, str]) -> None:
        self._options = options
        self._target: dict[str, Extent] | None = None

    @cached_property
    def _settings(self) -> Settings:
        """Read when first asked for: Spark loses an error that is raised where a reader is made."""
        with plainly():
            settings = read_options(self._options)
            if settings.ending is not None:
                raise Misuse("option endingOffsets: a stream has no end")
            return settings

    def initialOffset(self) -> dict[str, int]:
        settings = self._settings
        with plainly():
            extents = _extents(settings)
            check_names(extents, settings)
            return resolved(settings.starting, chosen(extents, settings), LATEST)

    def getDefaultReadLimit(self) -> ReadLimit:
        rows = self._settings.rows_per_trigger
        return ReadAllAvailable() if rows is None else ReadMaxRows(rows)

    def prepareForTriggerAvailableNow(self) -> None:
        with plainly():
            self._target = _extents(self._settings)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        settings = self._settings
        with plainly():
            extents = _extents(settings) if self._target is None else self._target
            end = {topic: extent.next for topic, extent in chosen(extents, settings).items()}
            for topic in sorted(start):
                if topic not in extents:
                    end[topic] = start[topic]
            at = start if settings.fail_on_loss else followed(start, extents)
            waiting = ranges_of(settings, at, end, extents)
            rows = limit.max_rows if isinstance(limit, ReadMaxRows) else None
            reached = {**at, **{each.topic: each.end for each in _first(settings, waiting, rows)}}
            # Spark compares texts: the same offsets in another order would be news.
            return start if reached == start else dict(sorted(reached.items()))

    def reportLatestOffset(self) -> dict[str, int]:
        found = chosen(_extents(self._settings), self._settings)
        return {topic: extent.next for topic, extent in found.items()}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        with plainly():
            extents = _extents(self._settings)
            return _parts(self._settings, ranges_of(self._settings, start, end, extents))

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_part(self._settings, partition)


def _extents(settings: Settings) -> dict[str, Extent]:
    """The log as it is now; opened anew, so that a file put in its place is seen."""
    with closing(open_log(settings)) as log:
        return log.extents()


def _first(settings: Settings, waiting: list[Slice], limit: int | None) -> list[Slice]:
    """What of all that waits is read next; the log is only asked if there is a limit."""
    if limit is None:
        return waiting
    with closing(open_log(settings)) as log:
        return admitted(waiting, limit, log.arrived(waiting))


def ranges_of(
    settings: Settings,
    start: Mapping[str, int],
    end: Mapping[str, int],
    extents: Mapping[str, Extent],
) -> list[Slice]:
    return ranges(settings.place, start, end, extents, settings.fail_on_loss)


def _parts(settings: Settings, slices: list[Slice]) -> list[InputPartition]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return [Part(each) for each in tasks(slices, cores or 1, settings.min_partitions)]


def read_part(settings: Settings, partition: InputPartition) -> Iterator[Any]:
    """What a task gives Spark: Arrow batches, topic by topic."""
    assert isinstance(partition, Part)
    with plainly(), closing(open_log(settings)) as log:
        for each in partition.slices:
            yield from log.batches(each.topic, each.start, each.end)
