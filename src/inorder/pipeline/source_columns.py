"""From runs of events to Arrow columns, many at a time.

Rule 1: all values of a read are decoded in one call and become JSON in one call; every other column
        is made from what the runs say, without a Python object an event.
Rule 2: what cannot be decoded costs its own run only. It leaves one row with its place, no event,
        and the reason; or it raises `Damaged`.
Rule 3: an event that was erased has no row: its place stays, its value is nobody's any more.

The garbage collector rests meanwhile: it would look through every decoded object several times, and
none of them is part of a cycle. That alone halves the time.
"""

from __future__ import annotations

import gc
import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from inorder.core.errors import Damaged
from inorder.logs.broker import Run
from inorder.pipeline.source_log import EVENT_COLUMNS, QUARANTINE

_ARROW = {
    "string": pa.string(), "bigint": pa.int64(), "double": pa.float64(), "binary": pa.binary(),
}  # fmt: skip
_LINE_BREAK = ord("\n")
_encoder = msgspec.json.Encoder()
_decode = msgspec.msgpack.Decoder(list[list[Any]]).decode
_NOTHING: dict[str, Any] = {}


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


class Columns:
    """Makes record batches of the events of one log."""

    def __init__(self, log: str, place: str, quarantine: bool) -> None:
        self._log, self._place, self._quarantine = log, place, quarantine
        names = {**EVENT_COLUMNS, QUARANTINE: "string"} if quarantine else EVENT_COLUMNS
        self._schema = pa.schema([(name, _ARROW[kind]) for name, kind in names.items()])

    def batch(self, runs: Sequence[Run], start: int, stop: int) -> Any:
        """The events of these runs from `start` up to before `stop`."""
        try:
            return self._batch(runs, start, stop)
        except (msgspec.MsgspecError, UnicodeError, TypeError, OverflowError) as error:
            if len(runs) > 1:
                each = [self.batch([run], start, stop) for run in runs]
                return pa.Table.from_batches(each).combine_chunks().to_batches()[0]
            [run] = runs
            problem = f"its values cannot be read: {error}"
            if not self._quarantine:
                raise Damaged(
                    self._place, f"offset {run.offset}: {problem}",
                    run.offset, run.offset + run.count,
                ) from None  # fmt: skip
            return self.damaged(run.offset, problem, run.topic)

    def damaged(self, offset: int, reason: str, topic: str | None = None) -> Any:
        """One row for what cannot be read from an offset on."""
        known = {
            "topic": topic, "offset": offset, "position": offset, "log": self._log,
            QUARANTINE: reason,
        }  # fmt: skip
        return pa.RecordBatch.from_pylist([known], schema=self._schema)

    def _batch(self, runs: Sequence[Run], start: int, stop: int) -> Any:
        # MessagePack: an array of so many (32 bits) elements, each the array of a run.
        opening = b"\xdd" + len(runs).to_bytes(4, "big")
        groups = _decode(opening + b"".join([run.values for run in runs]))
        counts = np.array([run.count for run in runs], np.int64)
        if list(map(len, groups)) != counts.tolist():
            raise msgspec.DecodeError("there are not as many as there should be")
        values = list(chain.from_iterable(groups))
        before = np.cumsum(counts) - counts
        ramp = np.arange(len(values)) - np.repeat(before, counts)
        which = pa.array(np.repeat(np.arange(len(runs)), counts))

        def told(column: list[Any], kind: Any) -> Any:
            return pa.array(column, kind).take(which)

        offset = np.repeat([run.offset for run in runs], counts) + ramp
        seq = pa.array(np.repeat([run.sequence for run in runs], counts) + ramp)
        lives = told([f"{run.publisher}:{run.epoch}:" for run in runs], pa.string())
        raw = [value if isinstance(value, bytes) else None for value in values]
        columns = {
            "topic": told([run.topic for run in runs], pa.string()),
            "offset": offset,
            "position": offset,
            "log": pa.repeat(self._log, len(values)),
            "event": pc.binary_join_element_wise(lives, seq.cast(pa.string()), ""),
            "publisher": told([run.publisher for run in runs], pa.string()),
            "epoch": told([run.epoch for run in runs], pa.int64()),
            "seq": seq,
            "key": _facts([run.keys for run in runs], runs, str),
            "headers": _facts([run.headers for run in runs], runs, _json),
            "published_at": told([run.published_at for run in runs], pa.float64()),
            "stored_at": told([run.stored_at for run in runs], pa.float64()),
            "attributes": _texts([v if isinstance(v, dict) else _NOTHING for v in values]),
            "value": pa.array(raw, pa.binary()),
            QUARANTINE: pa.nulls(len(values), pa.string()),
        }
        arrays = [pa.array(columns[field.name], field.type) for field in self._schema]
        found = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        low, high = np.searchsorted(offset, [start, stop])
        found = found.slice(low, high - low)
        if None in values[low:high]:
            found = found.filter(pa.array([value is not None for value in values[low:high]]))
        return found


def _facts(columns: list[Any], runs: Sequence[Run], text: Any) -> Any:
    """Keys or headers, which few events have."""
    if not any(columns):
        return pa.nulls(sum(run.count for run in runs), pa.string())
    found: list[str | None] = []
    for column, run in zip(columns, runs, strict=True):
        each = column or (None,) * run.count
        found += [None if one is None else text(one) for one in each]
    return pa.array(found, pa.string())


def _json(headers: Any) -> str:
    return _encoder.encode(headers).decode()


def _texts(values: list[dict[str, Any]]) -> Any:
    """Attributes as JSON; numbers that JSON does not have are NaN and Infinity, as matching and
    the judges of traces read them. msgspec would make null of them."""
    lines = _encoder.encode_lines(values)
    if b"null" in lines and not all(map(_is_finite, values)):
        return pa.array(map(_with_infinities, values), pa.string())
    # Texts lie one behind the other, as Arrow wants them. No JSON has a line break inside.
    ends = np.flatnonzero(np.frombuffer(lines, np.uint8) == _LINE_BREAK) - np.arange(len(values))
    offsets = np.append(0, ends).astype(np.int32)
    joined = lines.replace(b"\n", b"")
    return pa.StringArray.from_buffers(
        len(values), pa.py_buffer(offsets.tobytes()), pa.py_buffer(joined)
    )


def _is_finite(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    if isinstance(value, list):
        return all(map(_is_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def _with_infinities(value: dict[str, Any]) -> str:
    plain = msgspec.to_builtins(value, str_keys=True)
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
