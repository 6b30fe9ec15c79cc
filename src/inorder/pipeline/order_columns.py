"""The columns of rows that decide on their order, and what is wrong with rows.

Rule 1: nothing here fails on what a row holds: a row that cannot be used has a problem, in words.
Rule 2: a row that cannot be used still takes its place, if it tells whose it is and on what topic.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from inorder.core.limits import STAMP_NUMBER_MAX

NAMES = ("subscriber", "topic", "publisher", "seq", "stamp", "received_at", "matched", "offset")
NEEDED = ("topic", "publisher", "seq", "stamp")
KINDS = {"received_at": pa.float64(), "seq": pa.int64(), "offset": pa.int64()}


class Columns:
    """Rows of one feed; `columns` are Arrow arrays by name, those of NAMES that exist."""

    def __init__(self, columns: dict[str, Any], subscriber: str = "") -> None:
        self._columns = columns = {name: _small(each) for name, each in columns.items()}
        self._subscriber = subscriber
        self.count = len(columns["topic"])
        matched = columns.get("matched")
        self.is_matched = None
        if matched is not None:
            self.is_matched = pc.fill_null(matched, False).to_numpy(zero_copy_only=False)
        coded = pc.fill_null(columns["topic"], "").dictionary_encode()
        self.topics: list[str] = coded.dictionary.to_pylist()
        self.topic_codes: Any = coded.indices.to_numpy(zero_copy_only=False)

    @classmethod
    def of(cls, table: pa.Table, order: Any, subscriber: str = "") -> Columns:
        """The columns of a table whose rows arrived in this order."""
        found = {name: table.column(name) for name in NAMES if name in table.column_names}
        if "offset" in found and not pa.types.is_integer(found["offset"].type):
            del found["offset"]
        whole = {name: each.combine_chunks() for name, each in found.items()}
        if (np.diff(order) != 1).any():
            places = pa.array(order)
            whole = {name: each.take(places) for name, each in whole.items()}
        for name, kind in KINDS.items():
            if name in whole:
                whole[name] = whole[name].cast(kind)
        return cls(whole, subscriber)

    # What is wrong.

    @cached_property
    def _broken(self) -> dict[int, str]:
        found: dict[int, str] = {}
        for name in (*NEEDED, "subscriber", "received_at"):
            column = self._columns.get(name)
            if column is not None and column.null_count:
                for row in np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False)).tolist():
                    found.setdefault(row, f"no {name}")
        for row in np.flatnonzero(self._numbers("seq") < 1).tolist():
            found.setdefault(row, f"seq {self._columns['seq'][row].as_py()} is not above 0")
        for name in ("topic", "publisher"):
            empty = pc.fill_null(pc.equal(pc.binary_length(self._columns[name]), 0), False)
            if pc.any(empty).as_py():
                for row in np.flatnonzero(empty.to_numpy(zero_copy_only=False)).tolist():
                    found.setdefault(row, f"an empty {name}")
        if "received_at" in self._columns:
            for row in np.flatnonzero(np.isnan(self.times)).tolist():
                found.setdefault(row, "received_at is not a number")
        return found

    def problems(self) -> list[tuple[int, str]]:
        """Rows that cannot be used, and why."""
        return sorted(self._broken.items())

    @cached_property
    def is_told(self) -> Any:
        """Rows that somebody is told about: matched, and nothing wrong; None if all are."""
        if self.is_matched is None and not self._broken:
            return None
        told = np.ones(self.count, bool) if self.is_matched is None else self.is_matched.copy()
        told[[*self._broken]] = False
        return told

    @cached_property
    def homeless(self) -> set[int]:
        """Rows of no topic, or of no subscriber: they have no place."""
        return {row for row in self._broken if self._is_homeless(row)}

    def _is_homeless(self, row: int) -> bool:
        if not self._columns["topic"][row].as_py():
            return True
        subscribers = self._columns.get("subscriber")
        return subscribers is not None and not subscribers[row].is_valid

    def name(self, row: int) -> str:
        """What to call a row, whatever is missing of it."""
        publisher = self._columns["publisher"][row].as_py()
        seq = self._columns["seq"][row].as_py()
        return f"{'?' if publisher is None else publisher}:{'?' if seq is None else seq}"

    # Whose rows.

    def by_subscriber(self) -> Iterator[tuple[str, Any]]:
        """The rows of each subscriber that have a place, in order of arrival."""
        rows = np.arange(self.count)
        if self.homeless:
            rows = np.delete(rows, sorted(self.homeless))
        column = self._columns.get("subscriber")
        if column is None:
            if len(rows):
                yield self._subscriber, rows
            return
        coded = pc.fill_null(column, "").dictionary_encode()
        codes = coded.indices.to_numpy(zero_copy_only=False)[rows]
        if len(rows) > 1 and (np.diff(codes) < 0).any():
            order = np.argsort(codes, kind="stable")
            rows, codes = rows[order], codes[order]
        cuts = np.flatnonzero(np.diff(codes)) + 1
        names = coded.dictionary.to_pylist()
        if len(rows):
            for some, first in zip(np.split(rows, cuts), [0, *cuts.tolist()], strict=True):
                yield names[codes[first]], some

    def unmatched(self) -> Any:
        """Rows that only keep their place."""
        assert self.is_matched is not None
        return np.flatnonzero(~self.is_matched)

    def last_subscriber(self) -> str | None:
        column = self._columns.get("subscriber")
        return column[-1].as_py() if column is not None and self.count else None

    # What they say.

    @cached_property
    def times(self) -> Any:
        """The time of each row; NaN if it tells none."""
        column = self._columns.get("received_at")
        if column is None:
            return np.zeros(self.count)
        times = pc.fill_null(column, np.nan).to_numpy(zero_copy_only=False)
        return np.where(np.isfinite(times), times, np.nan)

    def latest(self) -> float:
        """The largest time of a usable row."""
        times = np.delete(self.times, [*self._broken]) if self._broken else self.times
        return float(times.max(initial=-np.inf))

    def last_time(self, rows: Any) -> float | None:
        """The time of the last of these rows that tells one."""
        times = self.times[rows]
        told = times[~np.isnan(times)]
        return float(told[-1]) if len(told) else None

    def _numbers(self, name: str) -> Any:
        return pc.fill_null(self._columns[name], 1).to_numpy(zero_copy_only=False)

    def stamps(self) -> bytes:
        """All stamps as one JSON array, or nothing if it might not have a stamp for each row: every
        row must begin with the only brace that opens."""
        column = self._columns["stamp"]
        if column.null_count or not pc.all(pc.starts_with(column, "{")).as_py():
            return b""
        ends = pa.array([0, len(column)], pa.int32())
        joined = pc.binary_join(pa.ListArray.from_arrays(ends, column), ",")[0].as_buffer()
        text = joined.to_pybytes()
        return b"[" + text + b"]" if text.count(b"{") == len(column) else b""

    def each(
        self, rows: Any
    ) -> Iterator[tuple[int, str, str | None, int, str | None, float, bool]]:
        """Row, topic, publisher, seq, stamp, time, and whether somebody is told."""
        taken = pa.array(rows)
        columns = [self._columns[name].take(taken).to_pylist() for name in NEEDED]
        times = self.times[rows].tolist()
        told = [True] * len(rows) if self.is_told is None else self.is_told[rows].tolist()
        return zip(rows.tolist(), *columns, times, told, strict=True)

    def offset(self, row: int) -> int | None:
        """The place in the topic, if the row tells."""
        column = self._columns.get("offset")
        offset = None if column is None else column[row].as_py()
        return offset if offset is not None and 0 <= offset < STAMP_NUMBER_MAX else None


def _small(column: Any) -> Any:
    """Texts as usual, though Spark was told to hand them over as large ones."""
    return column.cast(pa.string()) if pa.types.is_large_string(column.type) else column
