"""Whole rows through a lane: those that wait are kept, the others pass with what became of them.

Rule 1: rows leave in the order of delivery of each subscriber.
Rule 2: only rows that wait are kept. They are packed with the lane, as Arrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from inorder.core.pack import pack, unpacker
from inorder.pipeline.order_columns import Columns
from inorder.pipeline.order_lane import Answers, Lane, Plan

_unpack = unpacker(tuple[bytes, bytes, bytes])
_WITH_LZ4 = pa.ipc.IpcWriteOptions(compression="lz4")


class Rows:
    """A lane and the rows that wait in it."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._lane = Lane(plan)
        # Rows that wait, in no order, and where the one of each ticket is; None before the first
        # row of all.
        self._kept: pa.Table | None = None
        self._tickets = np.zeros(0, np.int64)
        self._places = np.zeros(0, np.int64)

    def feed(self, rows: pa.Table, order: Any = None) -> pa.Table:
        """Rows, and their places in the order of arrival (as they come, if None); what leaves now,
        with its `nth` and so on.

        Only the columns that decide are put in that order: the others move once, when they leave.
        """
        first = self._lane.fed
        order = np.arange(rows.num_rows) if order is None else order
        answers = self._lane.feed(Columns.of(rows, order, self._plan.subscriber))
        before = 0 if self._kept is None else self._kept.num_rows
        if before:
            assert self._kept is not None
            rows = pa.concat_tables([self._kept, rows.cast(self._kept.schema)])
        self._kept = rows
        self._tickets = np.append(self._tickets, first + np.arange(len(order)))
        self._places = np.append(self._places, before + order)
        return self._leave(answers)

    def settle(self) -> pa.Table | None:
        """The end of a micro-batch."""
        return self._leave(self._lane.settle()) if self._kept is not None else None

    def finish(self) -> pa.Table | None:
        """Nothing will come any more."""
        return self._leave(self._lane.finish()) if self._kept is not None else None

    def _leave(self, answers: Answers) -> pa.Table:
        assert self._kept is not None
        refused = [] if self._plan.strict else answers.refused
        reasons = [None] * len(answers.tickets) + [reason for _, reason in refused]
        tickets = np.append(answers.tickets, np.array([t for t, _ in refused], np.int64))
        gone = [ticket for ticket, _ in answers.refused]
        leaving = np.searchsorted(self._tickets, tickets)
        leaves = np.zeros(len(self._tickets), bool)
        leaves[leaving] = True
        for others in (answers.passed_over, np.array(gone, np.int64)):
            leaves[np.searchsorted(self._tickets, others)] = True
        out = _taken(self._kept, self._places[leaving])
        told = len(answers.tickets)
        columns: list[tuple[str, Any]] = [
            ("nth", _padded(answers.nths, pa.int64(), len(tickets) - told)),
            ("in_order", _padded(answers.in_order, pa.bool_(), len(tickets) - told)),
        ]
        if not self._plan.strict:
            columns.append(("quarantine", pa.array(reasons, pa.string())))
        for name, column in columns:
            out = out.append_column(name, column)
        self._kept = _taken(self._kept, self._places[~leaves])
        self._tickets = self._tickets[~leaves]
        self._places = np.arange(len(self._tickets))
        return out

    def pack(self) -> bytes:
        kept = b"" if self._kept is None else blob(self._kept.combine_chunks())
        return pack((self._lane.pack(), self._tickets.tobytes(), kept))

    @classmethod
    def unpack(cls, plan: Plan, state: bytes) -> Self:
        lane, tickets, kept = _unpack(state)
        rows = cls(plan)
        rows._lane = Lane.unpack(plan, lane)
        rows._tickets = np.frombuffer(tickets, np.int64)
        rows._places = np.arange(len(rows._tickets))
        rows._kept = unblob(kept) if kept else None
        return rows


def _taken(rows: pa.Table, places: Any) -> pa.Table:
    if len(places) == rows.num_rows and (np.diff(places) == 1).all():
        return rows
    return rows.combine_chunks().take(pa.array(places))


def _padded(values: Any, kind: Any, nulls: int) -> Any:
    column = pa.array(values, kind)
    return pa.concat_arrays([column, pa.nulls(nulls, kind)]) if nulls else column


def blob(rows: pa.Table | pa.RecordBatch) -> bytes:
    """Rows as bytes, compressed: what is smaller is copied faster, and blobs are copied often."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=_WITH_LZ4) as stream:
        stream.write(rows)
    return bytes(sink.getvalue().to_pybytes())


def unblob(data: Any) -> pa.Table:
    return pa.ipc.open_stream(data).read_all()


def arrival_order(rows: pa.Table, columns: Sequence[str]) -> Any:
    """The places of rows such that those of each subscriber are in their order of arrival.

    Mostly the first column tells already; the others are only there to break ties, and behind them
    all that can be compared: where rows lie must not matter.
    """
    whose = []
    if "subscriber" in rows.column_names:
        coded = rows.column("subscriber").combine_chunks().dictionary_encode()
        whose = [pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False)]
    rest = sorted(
        name
        for name in rows.column_names
        if name not in columns and _comparable(rows.column(name).type)
    )
    order = np.zeros(0, np.intp)
    for some in (columns[:1], columns, [*columns, *rest]):
        keys = [*_keys(rows, some), *whose]
        order = np.lexsort(keys)
        if not _any_tie(keys, order):
            break
    return order


def _any_tie(keys: list[Any], order: Any) -> bool:
    tied = np.ones(max(0, len(order) - 1), bool)
    for key in keys:
        ordered = key[order]
        same = ordered[1:] == ordered[:-1]
        if ordered.dtype.kind == "f":
            same |= np.isnan(ordered[1:]) & np.isnan(ordered[:-1])
        tied &= same
    return bool(tied.any())


def _comparable(kind: Any) -> bool:
    """What Spark would sort by in the same way (order.SORTABLE)."""
    types = pa.types
    checks = (
        types.is_string, types.is_large_string, types.is_integer, types.is_floating,
        types.is_boolean, types.is_timestamp, types.is_date32,
    )  # fmt: skip
    return any(check(kind) for check in checks)


def _keys(rows: pa.Table, columns: Sequence[str]) -> list[Any]:
    """Keys for a sort, the last first; nulls come first, as Spark has it."""
    keys: list[Any] = []
    for name in reversed(columns):
        column = rows.column(name).combine_chunks()
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            coded = column.dictionary_encode()
            ranks = np.argsort(pc.sort_indices(coded.dictionary).to_numpy())
            column = pa.array(ranks, pa.int64()).take(coded.indices)
        elif not pa.types.is_floating(column.type):
            if pa.types.is_date32(column.type):
                column = column.cast(pa.int32())
            column = column.cast(pa.int64())
        keys.append(pc.fill_null(column, 0).to_numpy(zero_copy_only=False))
        if column.null_count:
            keys.append(column.is_valid().to_numpy(zero_copy_only=False))
    return keys
