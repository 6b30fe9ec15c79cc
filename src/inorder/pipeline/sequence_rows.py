"""Rows that Spark numbers in their order of arrival.

Rule 1: the position of a row depends on the rows before it only, so cuts and restarts change
        nothing.
Rule 2: a row without publisher or number is published by `spark`, numbered in order of arrival. So
        is one that says it was: it might bear the name of another.
Rule 3: what gets a position can be put in order; a row without a topic gets none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from inorder.core.pack import pack, unpacker

PUBLISHER = "spark"

_unpack = unpacker(tuple[int, int])


class Numbers:
    """The state: how many rows have positions, and how many were nobody's."""

    def __init__(self, placed: int = 0, own: int = 0) -> None:
        self._placed = placed
        self._own = own

    def number(self, topics: pa.Array, publishers: Any, seqs: Any) -> dict[str, pa.Array]:
        """The columns of rows in their order of arrival."""
        placed = pc.fill_null(pc.greater(pc.binary_length(topics), 0), False)
        mask = placed.to_numpy(zero_copy_only=False)
        position = self._placed + np.cumsum(mask) - 1
        self._placed += int(mask.sum())
        publisher, seq = self._owners(len(topics), publishers, seqs)
        return {"position": pa.array(position, mask=~mask), "publisher": publisher, "seq": seq}

    def _owners(self, count: int, publishers: Any, seqs: Any) -> tuple[pa.Array, pa.Array]:
        publishers = pa.nulls(count, pa.string()) if publishers is None else publishers
        seqs = pa.nulls(count, pa.int64()) if seqs is None else seqs.cast(pa.int64())
        named = pc.and_(pc.not_equal(publishers, ""), pc.not_equal(publishers, PUBLISHER))
        nobodys = pc.invert(pc.fill_null(pc.and_(named, pc.greater(seqs, 0)), False))
        missing = nobodys.to_numpy(zero_copy_only=False)
        own = self._own + np.cumsum(missing)
        self._own += int(missing.sum())
        return (
            pc.if_else(nobodys, PUBLISHER, publishers),
            pc.if_else(nobodys, pa.array(own), seqs),
        )

    def pack(self) -> bytes:
        return pack((self._placed, self._own))

    @classmethod
    def unpack(cls, state: bytes) -> Numbers:
        return cls(*_unpack(state))


def numbering(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
    """For a table: topic, publisher and seq of sorted rows."""
    numbers = Numbers()
    for columns in batches:
        found = numbers.number(*columns)
        yield pa.StructArray.from_arrays([*found.values()], [*found])


class Sequencing(Struct, frozen=True):
    """The lane of a stream (order_stream.LaneProcessor)."""

    arrival: tuple[str, ...]

    def new(self) -> NumberedRows:
        return NumberedRows(Numbers())

    def old(self, state: bytes) -> NumberedRows:
        return NumberedRows(Numbers.unpack(state))


class NumberedRows:
    """Whole rows in, whole rows out."""

    def __init__(self, numbers: Numbers) -> None:
        self._numbers = numbers

    def feed(self, rows: pa.Table, order: Any = None) -> pa.Table:
        rows = rows if order is None else rows.take(pa.array(order))
        columns = [
            rows.column(name).combine_chunks() if name in rows.column_names else None
            for name in ("topic", "publisher", "seq")
        ]
        found = self._numbers.number(*columns)
        rows = rows.drop_columns([name for name in found if name in rows.column_names])
        for name, column in found.items():
            rows = rows.append_column(name, column)
        return rows

    def settle(self) -> None:
        """Nothing ever waits."""

    def pack(self) -> bytes:
        return self._numbers.pack()
