"""`spark.read.format("inorder")` and `spark.readStream.format("inorder")`.

    events = (spark.readStream.format("inorder")
              .option("url", "sqlite:////data/broker.db").option("subscribe", "orders,payments")
              .load())

Rule 1: everything that can be known to be wrong is said at `load`, in one sentence.
Rule 2: the driver plans with offsets alone (source_plan.py); tasks open the log and read it.
Rule 3: what is done lives in Spark's checkpoint as one cursor, however many topics are read.
        `commit` is not used: it lags one batch behind, and the last one never comes.

What can be said is in source_options.py; what comes, in source_log.py. Writing is in sink.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
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
from inorder.pipeline.source_log import QUARANTINE, Extent, open_log
from inorder.pipeline.source_options import EARLIEST, LATEST, Settings, read_options
from inorder.pipeline.source_plan import Kept, above, begin, between, gone_on, kept, tasks


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
    """What one task reads: offsets from `start` up to before `stop`."""

    def __init__(self, start: int, stop: int) -> None:
        self.start, self.stop = start, stop


class DefaultSource(DataSource):
    """The format `inorder`."""

    @classmethod
    def name(cls) -> str:
        return "inorder"

    def schema(self) -> str:
        with plainly():
            settings = read_options(self.options)
            with closing(open_log(settings)) as log:
                begin(settings, log, log.extent(), EARLIEST)
                columns = dict(log.columns())
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
    """From the starting to the ending position, as they are when the query is planned."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def partitions(self) -> list[InputPartition]:
        settings = self._settings
        with plainly(), closing(open_log(settings)) as log:
            extent = log.extent()
            start = begin(settings, log, extent, EARLIEST)
            stop = above(LATEST if settings.ending is None else settings.ending, log, extent)
            if start > stop:
                told = f"from position {start} to {stop - 1}"
                raise Misuse(f"the query is to read backwards, {told}")
            return _parts(settings, start, stop) or [Part(0, 0)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_part(self._settings, partition)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Micro-batches, from the checkpoint on."""

    def __init__(self, options: dict[str, str]) -> None:
        self._options = options
        self._target: Extent | None = None

    @cached_property
    def _settings(self) -> Settings:
        """Read when first asked for: Spark loses an error that is raised where a reader is made."""
        with plainly():
            settings = read_options(self._options)
            if settings.ending is not None:
                raise Misuse("option endingOffsets: a stream has no end")
            return settings

    def initialOffset(self) -> Kept:
        settings = self._settings
        with plainly(), closing(open_log(settings)) as log:
            extent = log.extent()
            return kept(log, extent, begin(settings, log, extent, LATEST))

    def getDefaultReadLimit(self) -> ReadLimit:
        rows = self._settings.rows_per_trigger
        return ReadAllAvailable() if rows is None else ReadMaxRows(rows)

    def prepareForTriggerAvailableNow(self) -> None:
        with plainly(), closing(open_log(self._settings)) as log:
            self._target = log.extent()

    def latestOffset(self, start: Kept, limit: ReadLimit) -> Kept:
        settings = self._settings
        with plainly(), closing(open_log(settings)) as log:
            extent = self._target or log.extent()
            at = gone_on(settings, log, extent, start)
            stop = extent.next
            if isinstance(limit, ReadMaxRows) and stop - at > limit.max_rows:
                stop = log.reach(at, stop, limit.max_rows)
            # Spark compares texts, and the same cursor is no news.
            same = start["order"] == extent.order and start["position"] == stop - 1
            return start if same else kept(log, extent, stop)

    def reportLatestOffset(self) -> Kept:
        with closing(open_log(self._settings)) as log:
            extent = log.extent()
            return kept(log, extent, extent.next)

    def partitions(self, start: Kept, end: Kept) -> list[InputPartition]:
        with plainly(), closing(open_log(self._settings)) as log:
            return _parts(self._settings, *between(self._settings, log, log.extent(), start, end))

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_part(self._settings, partition)


def _parts(settings: Settings, start: int, stop: int) -> list[InputPartition]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return [Part(*each) for each in tasks(start, stop, cores or 1, settings.min_partitions)]


def read_part(settings: Settings, partition: InputPartition) -> Iterator[Any]:
    """What a task gives Spark: Arrow batches, in the order of the log."""
    assert isinstance(partition, Part)
    if partition.start < partition.stop:
        with plainly(), closing(open_log(settings)) as log:
            yield from log.batches(partition.start, partition.stop)
