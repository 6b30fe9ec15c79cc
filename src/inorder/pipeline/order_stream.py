"""`order` on a stream: rows travel to their lane in blobs, and one value of state is a lane.

Spark hands rows to a stateful Python function one by one; a blob of some ten thousand rows counts
as one. So rows are packed before (`packing`), and a lane is a key with few values. What leaves goes
straight back to Spark, as columns of Arrow inside of pandas, which cost nothing to turn back. Only
rows with nested columns, which Spark would take apart one by one there, leave as blobs too and are
taken apart behind (`unpacking`). A lane's state is read and written once a micro-batch.

Rule: which lane has whose state depends on how many lanes there are, so a checkpoint keeps the
      number it began with. Every micro-batch asks every lane, if only with an empty blob: whoever
      comes back with another number hears it before anything is committed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
from msgspec import Struct
from pyspark import TaskContext
from pyspark.sql import types
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from inorder.core.errors import Misuse
from inorder.core.limits import ORDER_ROWS_PER_BLOB
from inorder.pipeline.lane_keys import lane_key
from inorder.pipeline.order_lane import Plan
from inorder.pipeline.order_rows import Rows, arrival_order, blob, unblob

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

LANE = "_lane"
PACKED = "lane int, rows binary"
BLOBS = "rows binary"
STATE = "lanes int, state binary"
# Columns that go back to Spark as they are.
FLAT = (
    types.StringType, types.BooleanType, types.IntegralType, types.DoubleType, types.FloatType,
    types.BinaryType, types.TimestampType, types.TimestampNTZType, types.DateType,
    types.DecimalType,
)  # fmt: skip


def through_lanes(
    df: DataFrame, lane: Column, count: int, lanes: Any, schema: types.StructType
) -> DataFrame:
    """The rows of a stream, each through the lane of its number, of so many; `schema` is what
    leaves."""
    if dotted := [name for name in df.columns if "." in name]:
        raise Misuse(f"column {dotted[0]!r} has a dot in its name: on a stream Spark would look "
                     "for a field of a column there; rename it")  # fmt: skip
    packed = df.withColumn(LANE, lane).mapInArrow(packing(count), PACKED).groupBy("lane")
    if all(isinstance(field.dataType, FLAT) for field in schema):
        processor = LaneProcessor(lanes, count, flat=True)
        return packed.transformWithStateInPandas(processor, schema, "Append", "None")
    processor = LaneProcessor(lanes, count, flat=False)
    blobs = packed.transformWithStateInPandas(processor, BLOBS, "Append", "None")
    return blobs.mapInArrow(unpacking, schema)


def packing(count: int) -> Any:
    """Rows with the number of their lane, as blobs of one lane each; one task greets all lanes."""

    def packed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        if task is None or task.partitionId() == 0:
            yield _keyed([(lane, b"") for lane in range(count)])
        for batch in batches:
            yield _keyed(_blobs(batch))

    return packed


def _blobs(batch: pa.RecordBatch) -> list[tuple[int, bytes]]:
    lanes = batch.column(LANE).to_numpy(zero_copy_only=False)
    rows = batch.drop_columns([LANE])
    order = np.argsort(lanes, kind="stable")
    cuts = np.flatnonzero(np.diff(lanes[order])) + 1
    whole = len(cuts) == 0
    return [
        (int(lanes[places[0]]), blob(rows if whole else rows.take(pa.array(places))))
        for places in np.split(order, cuts)
        if len(places)
    ]


def _keyed(blobs: list[tuple[int, bytes]]) -> pa.RecordBatch:
    keys = pa.array([lane_key(lane) for lane, _ in blobs], pa.int32())
    return pa.record_batch(
        [keys, pa.array([data for _, data in blobs], pa.binary())], names=["lane", "rows"]
    )


def unpacking(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows in blobs."""
    for batch in batches:
        for each in batch.column(0):
            yield from unblob(each.as_buffer()).to_batches()


class Orderly(Struct, frozen=True):
    """What a lane of a stream needs to know."""

    plan: Plan
    arrival: tuple[str, ...]

    def new(self) -> Rows:
        return Rows(self.plan)

    def old(self, state: bytes) -> Rows:
        return Rows.unpack(self.plan, state)


class LaneProcessor(StatefulProcessor):
    """Feeds a lane with the blobs of a micro-batch."""

    def __init__(self, lanes: Any, count: int, flat: bool) -> None:
        self._lanes = lanes
        self._count = count
        self._pieces = _as_they_are if flat else _as_blobs

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("lane", STATE)

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        lanes = self._lanes
        found = self._state.get()
        if found is not None and found[0] != self._count:
            told = f"the checkpoint was begun with {found[0]} lanes, not with {self._count}"
            raise Misuse(f"{told}: go on with as many, or begin a new one")
        lane = lanes.new() if found is None else lanes.old(bytes(found[1]))
        blobs = [each for some in rows for each in some["rows"] if len(each)]
        if blobs:
            yield from self._fed(lane, blobs)
        if blobs or found is None:
            self._state.update((self._count, lane.pack()))

    def _fed(self, lane: Any, blobs: list[bytes]) -> Iterator[pd.DataFrame]:
        """What leaves the lane in this micro-batch."""
        lanes = self._lanes
        table = pa.concat_tables([unblob(each) for each in blobs]).combine_chunks()
        for out in (lane.feed(table, arrival_order(table, lanes.arrival)), lane.settle()):
            if out is not None:
                yield from self._pieces(out)

    def close(self) -> None:
        pass


def _as_they_are(rows: pa.Table) -> Iterator[pd.DataFrame]:
    for piece in _cut(rows):
        yield piece.to_pandas(types_mapper=pd.ArrowDtype)


def _as_blobs(rows: pa.Table) -> Iterator[pd.DataFrame]:
    for piece in _cut(rows):
        yield pd.DataFrame({"rows": [blob(piece.combine_chunks())]})


def _cut(rows: pa.Table) -> Iterator[pa.Table]:
    for start in range(0, rows.num_rows, ORDER_ROWS_PER_BLOB):
        yield rows.slice(start, ORDER_ROWS_PER_BLOB)
