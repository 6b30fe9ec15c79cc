"""The columns of rows that decide on their order, and what is wrong with rows.

Rule 1: nothing here fails on what a row holds: a row that cannot be used has a problem, in words.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

NAMES = ("subscriber", "topic", "publisher", "seq", "stamp", "received_at", "matched")
NEEDED = ("topic", "publisher", "seq", "stamp")


class Columns:
    """Rows of one feed; `columns` are Arrow arrays by name, those of NAMES that exist."""

    def __init__(self, columns: dict[str, Any], subscriber: str = "") -> None:
        self._columns = columns
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
    def of(cls, table: pa.Table, subscriber: str = "") -> Columns:
        """The columns of a table."""
        found = {name: table.column(name) for name in NAMES if name in table.column_names}
        return cls({name: each.combine_chunks() for name, each in found.items()}, subscriber)

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
            for row in np.flatnonzero(~np.isfinite(self.times)).tolist():
                found.setdefault(row, "received_at is not a number")
        return found

    def problems(self) -> list[tuple[int, str]]:
        """Rows that cannot be used, and why."""
        return sorted(self._broken.items())

    def name(self, row: int) -> str:
        """What to call a row, whatever is missing of it."""
        publisher = self._columns["publisher"][row].as_py()
        seq = self._columns["seq"][row].as_py()
        return f"{'?' if publisher is None else publisher}:{'?' if seq is None else seq}"

    # Whose rows.

    def by_subscriber(self) -> Iterator[tuple[str, Any]]:
        """The usable rows of each subscriber, in order of arrival."""
        rows = np.arange(self.count)
        if self._broken:
            rows = np.delete(rows, [*self._broken])
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
        """Usable rows that only keep their place."""
        assert self.is_matched is not None
        rows = np.flatnonzero(~self.is_matched)
        return rows[~np.isin(rows, [*self._broken])] if self._broken else rows

    def last_subscriber(self) -> str | None:
        column = self._columns.get("subscriber")
        return column[-1].as_py() if column is not None and self.count else None

    # What they say.

    @cached_property
    def times(self) -> Any:
        column = self._columns.get("received_at")
        if column is None:
            return np.zeros(self.count)
        return pc.fill_null(column, 0.0).to_numpy(zero_copy_only=False)

    def latest(self) -> float:
        """The largest time of a usable row."""
        times = np.delete(self.times, [*self._broken]) if self._broken else self.times
        return float(times.max(initial=-np.inf))

    def _numbers(self, name: str) -> Any:
        return pc.fill_null(self._columns[name], 1).to_numpy(zero_copy_only=False)

    def stamps(self) -> bytes:
        """All stamps as one JSON array, or nothing if it might not have a stamp for each row: every
        row must begin with the only brace that opens."""
        column = self._columns["stamp"]
        if self._broken or not pc.all(pc.starts_with(column, "{")).as_py():
            return b""
        ends = pa.array([0, len(column)], pa.int32())
        joined = pc.binary_join(pa.ListArray.from_arrays(ends, column), ",")[0].as_buffer()
        text = joined.to_pybytes()
        return b"[" + text + b"]" if text.count(b"{") == len(column) else b""

    def each(self, rows: Any) -> Iterator[tuple[int, str, str, int, str, float, bool]]:
        """Row, topic, publisher, seq, stamp, time, and whether it is matched."""
        taken = pa.array(rows)
        columns = [self._columns[name].take(taken).to_pylist() for name in NEEDED]
        times = self.times[rows].tolist()
        matched = [True] * len(rows) if self.is_matched is None else self.is_matched[rows].tolist()
        return zip(rows.tolist(), *columns, times, matched, strict=True)
