"""What runs on executors: Arrow batches of events in, a row for each pair of event and subscriber
out.

Rule 1: input columns pass unchanged, and events keep their order within a partition.
Rule 2: a worker keeps the index of its last few sets of subscriptions. One that follows a table
        moves it from version to version; what it moves to is what it would have built.
Rule 3: memory is bounded: events are matched in slices, cut where enough pairs are expected.
"""

from __future__ import annotations

import gc
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import Struct
from numpy.typing import NDArray

from inorder.check.trace import SubscriptionRow
from inorder.core.errors import BadTrace, Misuse
from inorder.core.limits import (
    MATCH_EVENTS_AT_ONCE,
    MATCH_INDEXES_KEPT,
    MATCH_PAIRS_AT_ONCE,
    MATCH_ROWS_AT_ONCE,
)
from inorder.pipeline.match_events import Attributes, attributes_of, no_collection
from inorder.pipeline.match_index import Ints, Matcher
from inorder.pipeline.match_state import Holdings
from inorder.pipeline.subscriptions import SubscriptionTable

# Where Spark tells a task which micro-batch it belongs to. The id of a query outlives restarts.
QUERY_KEY = "sql.streaming.queryId"
BATCH_KEY = "streaming.sql.batchId"

Mask = NDArray[np.bool_]


class Shipped(Struct, frozen=True):
    """Subscriptions that travel with the plan: a broadcast of their rows, known by its digest."""

    digest: str
    rows: Any

    def matcher(self) -> Matcher:
        return _kept(self.digest, self._move).matcher

    def _move(self, kept: Kept) -> None:
        if not kept.version:
            decode = msgspec.json.Decoder(list[SubscriptionRow]).decode
            kept.take(1, decode(self.rows.value))


class Stored(Struct, frozen=True):
    """A table of subscriptions: at a version, or (None) at the version of each micro-batch."""

    path: str
    version: int | None

    def matcher(self) -> Matcher:
        table = SubscriptionTable(self.path, create=False)
        query, version = "", self.version
        if version is None:
            query, batch = micro_batch()
            version = table.pin(query, batch)
        # Those that stay and those that move on do not take each other's index away.
        key = f"{table.identity}/{query or version}"
        return _kept(key, lambda kept: kept.move(table, version)).matcher


class Kept:
    """An index and what it is the index of."""

    def __init__(self) -> None:
        self.version = 0
        self.matcher = Matcher()
        self._holdings = Holdings()

    def take(self, version: int, rows: list[SubscriptionRow]) -> None:
        changes = self._holdings.staged(rows)
        self._holdings.take(changes)
        self.matcher.advance(changes)
        self.version = version

    def move(self, table: SubscriptionTable, version: int) -> None:
        if version < self.version or not self.version:  # new, or a batch of long ago runs again
            self.version, self.matcher, self._holdings = version, Matcher(), table.at(version)
            self.matcher.advance(self._holdings.changes())
        while self.version < version:
            self.take(self.version + 1, table.changes(self.version + 1))


_indexes: OrderedDict[str, Kept] = OrderedDict()


def _kept(key: str, move: Callable[[Kept], None]) -> Kept:
    """The worker's index of this name, moved to where it should be."""
    kept = _indexes.pop(key, None) or Kept()
    before = kept.matcher, kept.version
    with no_collection():
        move(kept)  # on an error it is not put back: it may be half moved
    _indexes[key] = kept
    dropped = kept.matcher is not before[0]
    while len(_indexes) > MATCH_INDEXES_KEPT:
        _indexes.popitem(last=False)
        dropped = True
    if dropped or kept.version != before[1]:
        _settle(dropped)
    return kept


def _settle(dropped: bool) -> None:
    """Let the garbage collector pass over the indexes from now on: it walked over a hundred
    thousand subscriptions every few batches."""
    gc.unfreeze()
    if dropped:
        gc.collect()
    gc.freeze()


def micro_batch() -> tuple[str, int]:
    """The query and the batch that this task works for."""
    from pyspark import TaskContext

    context = TaskContext.get()
    query = context.getLocalProperty(QUERY_KEY) if context else None
    batch = context.getLocalProperty(BATCH_KEY) if context else None
    if query is None or batch is None:
        raise Misuse("this task belongs to no micro-batch, so no version can be pinned for it")
    return query, int(batch)


class Task(Struct, frozen=True):
    """The function for mapInArrow."""

    source: Shipped | Stored
    unmatched: bool
    quarantine: bool

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        matcher: Matcher | None = None
        for batch in batches:
            if matcher is None:  # an empty partition needs none
                matcher = self.source.matcher()
            yield from matched(batch, matcher, self.unmatched, self.quarantine)


def matched(batch: Any, matcher: Matcher, unmatched: bool, quarantine: bool) -> Iterator[Any]:
    """The rows of one batch of events."""
    topics = batch.column("topic").dictionary_encode()
    names = topics.dictionary.to_pylist()
    codes = topics.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    first = 0
    while first < len(codes):
        rows = _rows_to_take(matcher, names, codes[first:], unmatched)
        part = batch.slice(first, rows)
        attributes, reasons = attributes_of(part.column("attributes").fill_null("{}").to_pylist())
        here = codes[first : first + rows]
        for place in np.flatnonzero(here < 0).tolist():
            reasons[place] = "the topic is null"
        bad = np.array(sorted(reasons), np.int64)
        lost = np.full(len(here), -1, np.int64)
        lost[bad] = here[bad]
        here[bad] = -1
        if reasons and not quarantine:
            raise _refusal(part, int(bad[0]), reasons[int(bad[0])], first)
        places, keys, flags = _pairs(matcher, names, here, attributes, unmatched)
        if unmatched and reasons:
            # Whoever holds the topic must know that this place is taken.
            also, holders, _ = _pairs(matcher, names, lost, _nothing(len(lost)), True)
            places, keys = np.concatenate([places, also]), np.concatenate([keys, holders])
            flags = np.concatenate([flags, np.zeros(len(also), np.bool_)])
        for start in range(0, len(places), MATCH_ROWS_AT_ONCE):
            cut = slice(start, start + MATCH_ROWS_AT_ONCE)
            subscribers = matcher.arrow_names().take(pa.array(keys[cut]))
            told = flags[cut] if unmatched else None
            why = pa.nulls(len(subscribers), pa.string()) if quarantine else None
            yield _batch(part, places[cut], subscribers, told, why)
        if reasons:
            nobody = pa.nulls(len(bad), pa.string())
            told = np.zeros(len(bad), np.bool_) if unmatched else None
            why = pa.array([reasons[place] for place in bad.tolist()], pa.string())
            yield _batch(part, bad, nobody, told, why)
        first += rows


def _nothing(count: int) -> list[Attributes]:
    return attributes_of(["{}"] * count)[0]


def _rows_to_take(matcher: Matcher, names: list[str], codes: Ints, unmatched: bool) -> int:
    """How many events are matched next: as many as make a bearable number of pairs."""
    codes = codes[:MATCH_EVENTS_AT_ONCE]
    known = [matcher.topics.get(name) for name in names]
    expected = [each.pairs_expected(unmatched) if each else 0.0 for each in known]
    pairs = np.cumsum(np.array([*expected, 0.0])[codes])
    return max(1, int(np.searchsorted(pairs, MATCH_PAIRS_AT_ONCE, side="right")))


def _pairs(
    matcher: Matcher,
    names: list[str],
    codes: Ints,
    attributes: list[Attributes],
    unmatched: bool,
) -> tuple[Ints, Ints, Mask]:
    """The pairs of these events, by place; events with the code -1 concern nobody."""
    order = np.argsort(codes, kind="stable")
    present, starts = np.unique(codes[order], return_index=True)
    ends = [*starts[1:].tolist(), len(order)]
    found: list[tuple[Ints, Ints, Mask]] = [(_NONE, _NONE, np.empty(0, np.bool_))]
    for code, start, end in zip(present.tolist(), starts.tolist(), ends, strict=True):
        topic = matcher.topics.get(names[code]) if code >= 0 else None
        if topic is None:
            continue
        mine = order[start:end]
        rows = attributes if len(mine) == len(codes) else [attributes[at] for at in mine.tolist()]
        places, keys, flags = topic.pairs(rows, unmatched)
        found.append((mine[places], keys, flags))
    places, keys, flags = (np.concatenate(parts) for parts in zip(*found, strict=True))
    by_place = np.argsort(places, kind="stable")
    return places[by_place], keys[by_place], flags[by_place]


_NONE: Ints = np.empty(0, np.int64)


def _batch(part: Any, places: Ints, subscribers: Any, flags: Mask | None, why: Any) -> Any:
    rows = part.take(pa.array(places))
    columns, names = [*rows.columns, subscribers], [*part.schema.names, "subscriber"]
    if flags is not None:
        columns.append(pa.array(flags))
        names.append("matched")
    if why is not None:
        columns.append(why)
        names.append("quarantine")
    return pa.RecordBatch.from_arrays(columns, names)


def _refusal(part: Any, place: int, reason: str, first: int) -> BadTrace:
    """The error of a bad event, by name if it has one."""
    name = f"row {first + place} of a batch"
    if "event" in part.schema.names:
        name = f"event {part.column('event')[place].as_py()!r}"
    return BadTrace("events", f"{name}: {reason} (match(..., quarantine=True) sets such aside)")
