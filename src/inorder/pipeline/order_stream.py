"""`order` on a stream: rows travel to their lane in blobs, and one value of state is a lane.

Spark hands rows to a stateful Python function one by one; a blob of some ten thousand rows counts
as one. So rows are packed before (`packing`), a lane is a key with few values, and what leaves is
taken apart again behind it (`unpacking`). A lane's state is read and written once a micro-batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
from msgspec import Struct
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from inorder.limits import ORDER_ROWS_PER_BLOB
from inorder.pipeline.order_lane import Plan
from inorder.pipeline.order_rows import Rows, arrival_order, blob, unblob

LANE = "_lane"
PACKED = "lane int, rows binary"
STATE = "state binary"


def packing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows with the number of their lane, as blobs of one lane each."""
    for batch in batches:
        lanes = batch.column(LANE).to_numpy(zero_copy_only=False)
        rows = batch.drop_columns([LANE])
        order = np.argsort(lanes, kind="stable")
        cuts = np.flatnonzero(np.diff(lanes[order])) + 1
        whole = len(cuts) == 0
        blobs = [
            (int(lanes[places[0]]), blob(rows if whole else rows.take(pa.array(places))))
            for places in np.split(order, cuts)
            if len(places)
        ]
        yield pa.record_batch(
            [pa.array([n for n, _ in blobs], pa.int32()), pa.array([b for _, b in blobs])],
            names=["lane", "rows"],
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

    def __init__(self, orderly: Any) -> None:
        self._orderly = orderly

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("lane", STATE)

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        blobs = [each for some in rows for each in some["rows"]]
        packed = self._state.get()
        orderly = self._orderly
        lane = orderly.new() if packed is None else orderly.old(bytes(packed[0]))
        table = pa.concat_tables([unblob(each) for each in blobs])
        order = arrival_order(table, orderly.arrival)
        if (np.diff(order) != 1).any():
            table = table.combine_chunks().take(pa.array(order))
        for out in (lane.feed(table), lane.settle()):
            yield from _pieces(out)
        self._state.update((lane.pack(),))

    def close(self) -> None:
        pass


def _pieces(table: pa.Table | None) -> Iterator[pd.DataFrame]:
    if table is None:
        return
    for start in range(0, table.num_rows, ORDER_ROWS_PER_BLOB):
        piece = table.slice(start, ORDER_ROWS_PER_BLOB).combine_chunks()
        yield pd.DataFrame({"rows": [blob(piece)]})
