"""The embedded broker's file (brokers/sqlite/) as a log for Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import merge
from typing import Any

from inorder.bus.store.sqlite.file import File
from inorder.core.errors import Damaged
from inorder.core.limits import SOURCE_BYTES_AT_ONCE, SOURCE_EVENTS_AT_ONCE
from inorder.guarantee.registry import guarantee
from inorder.pipeline.source_log import EVENT_COLUMNS, Extent, Run, Slice
from inorder.pipeline.source_options import Settings

# Rows to begin with, before it is known how large they are.
_FIRST_ROWS = 100


class SqliteLog:
    """Reads beside whoever writes: a slice is read in one snapshot of the file."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._file = File(settings.place, create=False)
        self._names: dict[str, str] = {}

    def columns(self) -> dict[str, str]:
        return EVENT_COLUMNS

    def extents(self) -> dict[str, Extent]:
        found = self._file.topics()
        for row in found:
            guarantee(row.guarantee)  # who cannot be decoded is refused before anything is read
        return {row.topic: Extent(row.first, row.next) for row in found}

    def arrived(self, waiting: Sequence[Slice]) -> Iterator[Run]:
        topics = (self._file.places(each.topic, each.start, each.end) for each in waiting)
        return ((topic, offset, count) for _, topic, offset, count in merge(*topics))

    def batches(self, topic: str, start: int, end: int) -> Iterator[Any]:
        from inorder.pipeline.source_columns import Blobs, Decoding, collector_off

        settings = self._settings
        decoding = Decoding(settings.place, topic, self._guarantee(topic), settings.quarantine)
        fetch = self._file.fetcher(topic, start, end)
        position, number = start, _FIRST_ROWS
        while True:
            with collector_off():
                rows = fetch(number)
                if not rows:
                    break
                blobs = Blobs(*zip(*rows, strict=True))
                position = self._follow(topic, position, blobs)
                batch = decoding.batch(blobs)
                size = sum(map(len, blobs.messages))
            skipped = max(0, start - blobs.offsets[0])
            number = _rows_next(len(rows), batch.num_rows, size)
            yield batch.slice(skipped, batch.num_rows - skipped - max(0, position - end))
        if position < end and settings.fail_on_loss:
            raise self._lost(topic, position, end)

    def _guarantee(self, topic: str) -> str:
        """The name of a topic's guarantee; all are asked for at once, and once."""
        if topic not in self._names:
            self._names = {row.topic: row.guarantee for row in self._file.topics()}
        return self._names[topic]

    def _follow(self, topic: str, position: int, blobs: Any) -> int:
        """Where the topic goes on after these rows; they must leave nothing out."""
        following: int = blobs.offsets[-1] + blobs.counts[-1]
        if blobs.offsets[0] <= position and following - blobs.offsets[0] == sum(blobs.counts):
            return following
        for offset, count in zip(blobs.offsets, blobs.counts, strict=True):
            if offset > position and self._settings.fail_on_loss:
                raise self._lost(topic, position, offset)
            position = offset + count
        return position

    def _lost(self, topic: str, position: int, end: int) -> Damaged:
        told = f"topic {topic!r} has lost its offsets {position} to {end - 1}"
        return Damaged(self._settings.place, f"{told} (option failOnDataLoss = false reads on)")

    def close(self) -> None:
        self._file.close()


def _rows_next(rows: int, events: int, size: int) -> int:
    """How many rows to fetch so that a batch is neither small nor large."""
    by_events = SOURCE_EVENTS_AT_ONCE * rows // max(1, events)
    by_bytes = SOURCE_BYTES_AT_ONCE * rows // max(1, size)
    return max(1, min(by_events, by_bytes))
