"""Rows with stamps that Spark gives them: one sequencer, fed in the order of arrival.

Rule 1: the stamp of a row depends on the rows before it only, so cuts and restarts change nothing.
Rule 2: a row without publisher or number is published by `spark`, numbered in order of arrival. So
        is one that says it was: it might bear the name of another.
Rule 3: what gets a number can be put in order; a row without a topic gets none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from inorder.core.pack import pack, unpacker
from inorder.guarantee.registry import guarantee

PUBLISHER = "spark"

_unpack = unpacker(tuple[bytes, int, int])
_json = msgspec.json.Encoder().encode


class Stamper:
    """The state: the sequencer's, rows seen, and rows that were nobody's."""

    def __init__(self, name: str) -> None:
        self._name = name
        build = guarantee(name).log.sequencer
        assert build is not None
        self._sequencer = build()
        self._rows = 0
        self._own = 0

    def stamp(self, topics: pa.Array, publishers: Any, seqs: Any) -> dict[str, pa.Array]:
        """The columns of rows in their order of arrival."""
        placed = pc.fill_null(pc.greater(pc.binary_length(topics), 0), False)
        rows = np.flatnonzero(placed.to_numpy(zero_copy_only=False))
        stamps, numbers = self._number(topics.filter(placed))
        place = np.full(len(topics), -1, np.int64)
        place[rows] = np.arange(len(rows))
        taken = pa.array(place, mask=place < 0)
        arrival = self._rows + np.arange(len(topics))
        self._rows += len(topics)
        publisher, seq = self._owners(len(topics), publishers, seqs)
        return {
            "stamp": stamps.take(taken),
            "offset": pa.array(numbers - 1).take(taken),
            "arrival": pa.array(arrival),
            "publisher": publisher,
            "seq": seq,
        }

    def _number(self, topics: pa.Array) -> tuple[pa.Array, Any]:
        """Stamps and numbers."""
        coded = topics.dictionary_encode()
        codes = coded.indices.to_numpy(zero_copy_only=False)
        names = coded.dictionary.to_pylist()
        texts: list[pa.Array] = []
        numbers = np.zeros(len(codes), np.int64)
        for low, high, known, table in self._sequencer.sequence(names, codes):
            place = np.array([known.index(name) if name in known else -1 for name in names])
            numbers[low:high] = table[place[codes[low:high]], np.arange(high - low)]
            texts.append(_texts(known, table))
        return (pa.concat_arrays(texts) if texts else pa.array([], pa.string())), numbers

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
        return pack((self._sequencer.snapshot(), self._rows, self._own))

    @classmethod
    def unpack(cls, name: str, state: bytes) -> Self:
        stamper = cls(name)
        snapshot, stamper._rows, stamper._own = _unpack(state)
        stamper._sequencer = type(stamper._sequencer).restore(snapshot)
        return stamper


def _texts(known: list[str], table: Any) -> pa.Array:
    """Stamps as text: entries by topic."""
    pieces: list[Any] = []
    for place, topic in enumerate(sorted(known)):
        opening = "{" if place == 0 else ","
        pieces += [f"{opening}{_json(topic).decode()}:",
                   pa.array(table[known.index(topic)]).cast(pa.string())]  # fmt: skip
    return pc.binary_join_element_wise(*pieces, "}", "")


class Sequencing(Struct, frozen=True):
    """The lane of a stream (order_stream.LaneProcessor); `added` are the columns it gives rows."""

    guarantee: str
    arrival: tuple[str, ...]
    added: tuple[str, ...]

    def new(self) -> StampedRows:
        return StampedRows(self, Stamper(self.guarantee))

    def old(self, state: bytes) -> StampedRows:
        return StampedRows(self, Stamper.unpack(self.guarantee, state))

    def __call__(self, batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        """For a table: topic, publisher and seq of sorted rows."""
        stamper = Stamper(self.guarantee)
        for topics, publishers, seqs in batches:
            found = stamper.stamp(topics, publishers, seqs)
            yield pa.StructArray.from_arrays([found[name] for name in self.added], [*self.added])


def stamping(sequencing: Sequencing) -> Any:
    """The same as a function with the hints that Spark asks for."""

    def stamps(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        return sequencing(batches)

    return stamps


class StampedRows:
    """Whole rows in, whole rows out."""

    def __init__(self, sequencing: Sequencing, stamper: Stamper) -> None:
        self._sequencing = sequencing
        self._stamper = stamper

    def feed(self, rows: pa.Table, order: Any = None) -> pa.Table:
        rows = rows if order is None else rows.take(pa.array(order))
        columns = {
            name: rows.column(name).combine_chunks() if name in rows.column_names else None
            for name in ("topic", "publisher", "seq")
        }
        found = self._stamper.stamp(*columns.values())
        added = self._sequencing.added
        rows = rows.drop_columns([name for name in added if name in rows.column_names])
        for name in added:
            rows = rows.append_column(name, found[name])
        return rows

    def settle(self) -> None:
        """Nothing ever waits."""

    def pack(self) -> bytes:
        return self._stamper.pack()
