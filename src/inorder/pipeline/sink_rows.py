"""The rows of one task of the sink as events: what they say, their numbers, and a note of them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import groupby
from typing import Any

import msgspec
from msgspec import Struct

from inorder.core.errors import Misuse, TooLarge
from inorder.core.limits import EVENT_BYTES_MAX
from inorder.logs.broker import Author, Run
from inorder.logs.topics import check_name

# Rows of one task in one batch stay below this, so that numbers of later batches are larger.
ROWS_PER_BATCH = 2**32

_attributes = msgspec.json.Decoder(dict[str, Any]).decode
_headers = msgspec.json.Decoder(dict[str, str]).decode
# For notes: equal rows look alike. Events keep their attributes as they came.
packed = msgspec.msgpack.Encoder(order="deterministic").encode
_encode = msgspec.msgpack.Encoder().encode


class Plan(Struct, frozen=True):
    """Where rows go, and which columns mean what. `others` are the attributes that are a column
    each."""

    url: str
    topic: str
    publisher: str
    sink: str
    batch: int
    roles: tuple[str, ...]
    others: tuple[str, ...]


class Note(Struct, frozen=True, array_like=True):
    """Which rows a task has: how many, which in any order, and which in this order."""

    count: int
    some: str
    ordered: str


def behind(runs: Sequence[Run], sequence: int) -> list[Run]:
    """The events from a sequence on."""
    found = []
    for run in runs:
        passed = sequence - run.sequence
        if passed >= run.count:
            continue
        if passed > 0:
            values = msgspec.msgpack.decode(run.values, type=list[msgspec.Raw])[passed:]
            run = msgspec.structs.replace(
                run, sequence=sequence, count=len(values), values=_encode(values),
                keys=run.keys and run.keys[passed:], headers=run.headers and run.headers[passed:],
            )  # fmt: skip
        found.append(run)
    return found


class Encoding:
    """Turns the rows of a task into runs of events."""

    def __init__(self, plan: Plan, sink: str, batch: int, task: int) -> None:
        self._plan = plan
        # Every sink counts its batches from 0: its name keeps its events apart from other sinks'.
        tag = blake2b(sink.encode(), digest_size=8).hexdigest()
        # Who has a name is remembered for ever; a name that never comes again need not be.
        lasting = not sink.startswith("job-") or bool(plan.sink)
        self.author = Author(f"{plan.publisher or 'spark'}/{tag}/{task}", 1, lasting)
        self.first = batch * ROWS_PER_BATCH + 1
        self._now = time.time()
        self._rows: list[tuple[Any, ...]] = []  # topic, published_at, key, headers, value
        self._sum = 0
        self._ordered = blake2b(digest_size=16)

    @property
    def note(self) -> Note:
        return Note(len(self._rows), f"{self._sum:032x}", self._ordered.hexdigest())

    def take(self, batch: Any) -> None:
        columns = {name: batch.column(name).to_pylist() for name in self._plan.roles}
        count = batch.num_rows
        nothing = [None] * count
        topics = [self._plan.topic] * count if self._plan.topic else columns["topic"]
        told = columns.get("published_at", nothing)
        keys = columns.get("key", nothing)
        headers = columns.get("headers", nothing)
        for row in zip(topics, told, keys, headers, self._values(batch, columns), strict=True):
            self._count(row)
            self._rows.append(self._checked(row))

    def _count(self, row: tuple[Any, ...]) -> None:
        """Into the note goes what the row says itself: neither the time nor the number it got."""
        try:
            found = blake2b(packed(row), digest_size=16).digest()
        except (UnicodeError, OverflowError, msgspec.MsgspecError, RecursionError) as error:
            raise self._wrong(row[0], error, self.first + len(self._rows)) from None
        self._sum = (self._sum + int.from_bytes(found)) % 2**128
        self._ordered.update(found)

    def _checked(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        topic, at, key, headers, value = row
        if topic is None:
            raise Misuse(f"row {len(self._rows) + 1} of a task: topic is null")
        check_name(topic)
        if headers is not None:
            try:
                headers = _headers(headers)
            except (msgspec.MsgspecError, UnicodeError):
                told = f"{headers[:60]!r} is not a JSON object of texts"
                raise Misuse(f"column headers: {told}") from None
        return topic, self._now if at is None else at, key, headers, value

    def _sized(self, topic: str, sequence: int, values: Sequence[Any]) -> bytes:
        """Values as the log takes them; who is too large is named."""
        array = _encode(values)
        if len(array) > EVENT_BYTES_MAX:
            for place, value in enumerate(values):
                if (size := len(_encode(value))) > EVENT_BYTES_MAX:
                    large = TooLarge("event, in bytes,", size, EVENT_BYTES_MAX)
                    raise self._wrong(topic, large, sequence + place)
        return array

    def _wrong(self, topic: Any, error: Exception, sequence: int) -> Misuse:
        name = f"{self.author.publisher}:{self.author.epoch}:{sequence}"
        return Misuse(f"event {name} of topic {topic!r}: {error}")

    def runs(self) -> list[Run]:
        """Rows side by side with one topic and time, as the log takes them."""
        found = []
        sequence = self.first
        for (topic, at), some in groupby(self._rows, key=lambda row: row[:2]):
            _, _, keys, headers, values = zip(*some, strict=True)
            array = self._sized(topic, sequence, values)
            run = Run(
                topic, self.author.publisher, self.author.epoch, sequence, len(values),
                array, at,
                keys if any(key is not None for key in keys) else None,
                headers if any(headers) else None,
            )  # fmt: skip
            found.append(run)
            sequence += len(values)
        return found

    def _values(self, batch: Any, columns: dict[str, list[Any]]) -> Iterator[Any]:
        raw, texts = columns.get("value"), columns.get("attributes")
        if raw is None and texts is None:
            yield from self._gathered(batch)
            return
        for place in range(batch.num_rows):
            if raw is not None and raw[place] is not None:
                yield raw[place]
            else:
                yield self._decoded(texts[place] if texts is not None else None)

    def _decoded(self, text: str | None) -> dict[str, Any]:
        try:
            return _attributes(text or "{}")
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            pass  # perhaps NaN or Infinity, which the source writes
        try:
            return msgspec.convert(json.loads(text or "{}"), dict[str, Any])
        except (ValueError, RecursionError, msgspec.MsgspecError):
            raise Misuse(f"column attributes: {str(text)[:60]!r} is not a JSON object") from None

    def _gathered(self, batch: Any) -> list[dict[str, Any]]:
        names = self._plan.others
        lists = [batch.column(name).to_pylist() for name in names]
        if not lists:
            return [{} for _ in range(batch.num_rows)]
        return [
            {name: value for name, value in zip(names, row, strict=True) if value is not None}
            for row in zip(*lists, strict=True)
        ]
