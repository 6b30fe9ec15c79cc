"""From the blobs of a log to the columns of events, many at a time.

Rule 1: what is whole takes the fast way: one checksum call a blob, one decoding call for all of
        them, one list a column. Only when something is wrong are the messages looked at one by one.
Rule 2: a damaged message costs its own events only. Each of them leaves a row with its topic,
        offset and arrival, no event, and the reason; or the first one raises `Damaged`.

The garbage collector rests meanwhile: it would look through every decoded object several times, and
none of them is part of a cycle. That alone halves the time.
"""

from __future__ import annotations

import gc
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any
from zlib import crc32

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from inorder.core import wire
from inorder.core.errors import BadFrame, Damaged
from inorder.core.event import Event, Scalar
from inorder.core.limits import FRAME_BYTES_MAX
from inorder.guarantee.registry import guarantee
from inorder.pipeline.source_log import EVENT_COLUMNS, QUARANTINE

_ARROW = {"string": pa.string(), "bigint": pa.int64(), "double": pa.float64()}
_LINE_BREAK = ord("\n")
_encoder = msgspec.json.Encoder()
_encode_all = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

# The events of a message with their stamps; none for a place whose message cannot be read.
Pairs = list[tuple[Event | None, str | None]]


class Blobs(Struct, frozen=True, gc=False):
    """Rows of a log, column by column."""

    ids: Sequence[int]
    offsets: Sequence[int]
    counts: Sequence[int]
    ats: Sequence[float]
    messages: Sequence[bytes]
    checksums: Sequence[int]


def schema(quarantine: bool) -> Any:
    """The Arrow schema of events."""
    names = {**EVENT_COLUMNS, QUARANTINE: "string"} if quarantine else EVENT_COLUMNS
    return pa.schema([(name, _ARROW[kind]) for name, kind in names.items()])


@contextmanager
def collector_off() -> Iterator[None]:
    """Let the garbage collector rest."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class Decoding:
    """Turns the rows of one topic into record batches."""

    def __init__(self, place: str, topic: str, name: str, quarantine: bool) -> None:
        log = guarantee(name).log
        self._place, self._topic, self._name = place, topic, name
        self._quarantine = quarantine
        self._schema = schema(quarantine)
        self._one = wire.Decoder(log.messages).decode
        messages: Any = log.messages
        self._many = msgspec.msgpack.Decoder(list[messages]).decode
        self._stamped = log.stamped

    def batch(self, blobs: Blobs) -> Any:
        groups = self._whole(blobs)
        reasons = None
        if groups is None:
            groups, reasons = self._one_by_one(blobs)
        pairs = list(chain.from_iterable(groups))
        counts = np.array(blobs.counts, np.int64)
        before = np.cumsum(counts) - counts
        shift = np.array(blobs.offsets, np.int64) - before
        rows = len(pairs)
        events = _event_columns(pairs, broken=reasons is not None)
        columns = {
            "topic": pa.repeat(self._topic, rows),
            "offset": np.repeat(shift, counts) + np.arange(rows),
            "arrival": np.repeat(np.array(blobs.ids, np.int64), counts),
            "received_at": np.repeat(np.array(blobs.ats, np.float64), counts),
            "guarantee": pa.repeat(self._name, rows),
            **events,
        }
        if self._quarantine:
            columns[QUARANTINE] = _reasons(reasons, blobs.counts, rows)
        arrays = [pa.array(columns[field.name], field.type) for field in self._schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _whole(self, blobs: Blobs) -> list[Pairs] | None:
        """The events of every message, or None if anything is wrong with any of them."""
        messages = blobs.messages
        if max(map(len, messages)) > FRAME_BYTES_MAX:
            return None
        if list(map(crc32, messages)) != list(blobs.checksums):
            return None
        # MessagePack: an array of so many (32 bits) elements, which are the messages.
        joined = b"\xdd" + len(messages).to_bytes(4, "big") + b"".join(messages)
        try:
            groups: list[Any] = list(map(self._stamped, self._many(joined)))
        except Exception:
            return None
        return groups if list(map(len, groups)) == list(blobs.counts) else None

    def _one_by_one(self, blobs: Blobs) -> tuple[list[Pairs], list[str | None]]:
        groups: list[Pairs] = []
        reasons: list[str | None] = []
        for offset, count, message, checksum in zip(
            blobs.offsets, blobs.counts, blobs.messages, blobs.checksums, strict=True
        ):
            group, reason = self._read(message, count, checksum)
            if reason and not self._quarantine:
                raise Damaged(self._place, f"topic {self._topic!r}, offset {offset}: {reason}")
            groups.append(group)
            reasons.append(reason)
        return groups, reasons

    def _read(self, message: bytes, count: int, checksum: int) -> tuple[Pairs, str | None]:
        nothing: Pairs = [(None, None)] * count
        if crc32(message) != checksum:
            return nothing, "the message does not match its checksum"
        try:
            group: Pairs = list(self._stamped(self._one(message)))
        except BadFrame as error:
            return nothing, str(error)
        if len(group) != count:
            return nothing, f"the message holds {len(group)} events, its row says {count}"
        return group, None


def _event_columns(pairs: Pairs, broken: bool) -> dict[str, Any]:
    """What the events themselves say; nulls where there is none."""
    stamps = [stamp for _, stamp in pairs]
    if broken:
        found = [event for event, _ in pairs]
        whole = [event for event in found if event is not None]
        places = iter(range(len(whole)))
        take = pa.array([None if event is None else next(places) for event in found], pa.int64())
        columns = _event_columns([(event, None) for event in whole], broken=False)
        taken = {name: pa.array(values).take(take) for name, values in columns.items()}
        return {**taken, "stamp": pa.array(stamps, pa.string())}
    events: list[Any] = [event for event, _ in pairs]
    publisher = pa.array([each.publisher for each in events], pa.string())
    seq = pa.array([each.seq for each in events], pa.int64())
    return {
        "event": pc.binary_join_element_wise(publisher, seq.cast(pa.string()), ":"),
        "publisher": publisher,
        "seq": seq,
        "published_at": pa.array([each.published_at for each in events], pa.float64()),
        "attributes": _texts([each.value for each in events]),
        "stamp": pa.array(stamps, pa.string()),
    }


def _texts(values: list[Mapping[str, Scalar]]) -> Any:
    """Attributes as JSON; numbers that JSON does not have are NaN and Infinity, as matching and
    the judges of traces read them. msgspec would make null of them."""
    lines = _encoder.encode_lines(values)
    if b"null" in lines and not all(_is_finite(n) for value in values for n in value.values()):
        return pa.array(map(_encode_all, values), pa.string())
    # Texts lie one behind the other, as Arrow wants them. No JSON has a line break inside.
    ends = np.flatnonzero(np.frombuffer(lines, np.uint8) == _LINE_BREAK) - np.arange(len(values))
    offsets = np.append(0, ends).astype(np.int32)
    joined = lines.replace(b"\n", b"")
    return pa.StringArray.from_buffers(
        len(values), pa.py_buffer(offsets.tobytes()), pa.py_buffer(joined)
    )


def _is_finite(value: Scalar) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


def _reasons(reasons: list[str | None] | None, counts: Sequence[int], rows: int) -> Any:
    if reasons is None:
        return pa.nulls(rows, pa.string())
    told = [reason for reason, count in zip(reasons, counts, strict=True) for _ in range(count)]
    return pa.array(told, pa.string())
