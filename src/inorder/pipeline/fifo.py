"""Fifo, by slice: in-order deliveries whose number is below one delivered before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from inorder.check.verdict import Verdict, judged, not_judged
from inorder.pipeline.coded import Array, Log, Rows
from inorder.pipeline.hashed import factorize, running_maximum

if TYPE_CHECKING:
    from pyspark.sql import Column

# Rows looked at together: a wholly disordered log needs ten numbers for each of them.
_PIECE_ROWS = 1_000_000

NEEDS = "needs the publisher and seq of each delivery"


NAMES = ("fifo", "per_publisher")


def check(log: Log) -> dict[str, Verdict]:
    """Both promises in one pass: within a topic, and over all topics of a publisher."""
    if not log.table.has("publisher", "seq"):
        return {name: not_judged(name, NEEDS) for name in NAMES}
    by_topic = log.table.has("topic")
    main, per_publisher = Late("fifo"), Late("per_publisher")
    for rows in log.slices(_columns(log), ("subscriber", "nth", "event", *_needed(log))):
        if rows.in_order is not None:
            rows = rows.take(np.flatnonzero(rows.in_order))
        publisher, _ = factorize(rows.more["publisher"])
        number = _numbers(rows)
        per_publisher.add(rows, publisher, number)
        if by_topic:
            topic, topics = factorize(rows.more["topic"])
            stream = publisher.astype(np.int64) * max(1, len(topics)) + topic
            main.add(rows, stream, number)
    if not by_topic:
        main.found, main.late, main.streams = (
            per_publisher.found,
            per_publisher.late,
            per_publisher.streams,
        )
    return {"fifo": main.verdict(log), "per_publisher": per_publisher.verdict(log)}


def _needed(log: Log) -> tuple[str, ...]:
    columns = ("publisher", "seq", "topic") if log.table.has("topic") else ("publisher", "seq")
    return (*columns, "epoch") if log.table.has("epoch") else columns


def _numbers(rows: Rows) -> Array:
    """What orders the events of a publisher: `seq`, of later lives behind those of earlier ones."""
    seq, epoch = rows.more["seq"], rows.more.get("epoch")
    if epoch is None or (epoch == epoch[:1]).all():
        return seq
    order = np.lexsort((seq, epoch))
    grows = np.diff(seq[order], prepend=0) != 0
    grows |= np.diff(epoch[order], prepend=0) != 0
    numbers = np.empty(len(seq), np.int64)
    numbers[order] = np.cumsum(grows)
    return numbers


def _columns(log: Log) -> dict[str, Column]:
    from pyspark.sql import functions as F

    columns = {"publisher": log.code("publisher"), "seq": F.col("seq")}
    if log.table.has("topic"):
        columns["topic"] = log.code("topic")
    if log.table.has("epoch"):
        columns["epoch"] = F.col("epoch")
    return columns


def late_rows(rows: Rows, stream: Array, number: Array) -> tuple[Array, int]:
    """The rows below a number delivered before in their (subscriber, stream), and how many streams.

    A running maximum per stream: linear, and nothing is sorted.
    """
    key = rows.subscriber.astype(np.int64) * (int(stream.max(initial=0)) + 1) + stream
    groups, streams = factorize(key)
    highest = running_maximum(number, groups)
    return np.flatnonzero(number < highest), len(streams)


class Late:
    """Counts late deliveries over slices; remembers each subscriber's closest one."""

    def __init__(self, promise: str) -> None:
        self.promise = promise
        self.late = 0
        self.streams = 0
        # (distance, subscriber, nth, place of the later one, events, numbers)
        self.found: list[tuple[int, int, int, int, tuple[int, int], tuple[int, int]]] = []

    def add(self, rows: Rows, stream: Array, number: Array) -> None:
        for piece in rows.pieces(_PIECE_ROWS):
            mine = rows.take(np.arange(piece.start, piece.stop))
            late, streams = late_rows(mine, stream[piece], number[piece])
            self.streams += streams
            self.late += len(late)
            if len(late):
                self._remember(mine, stream[piece], number[piece], late)

    def _remember(self, rows: Rows, stream: Array, number: Array, late: Array) -> None:
        """For each late row, the last row that raised its stream's number before it."""
        key = rows.subscriber.astype(np.int64) * (int(stream.max()) + 1) + stream
        concerned = np.flatnonzero(np.isin(key, key[late]))
        key, numbers = key[concerned], number[concerned]
        seq = rows.more["seq"]
        highest = running_maximum(numbers, key)
        raised = np.where(numbers >= highest, np.arange(len(key)), -1)
        later = running_maximum(raised, key)
        is_late = np.flatnonzero(numbers < highest)
        before, now = concerned[later[is_late]], concerned[is_late]
        distance = rows.nth[now] - rows.nth[before]
        order = np.lexsort((rows.nth[now], distance))
        owners, firsts = np.unique(rows.subscriber[now][order], return_index=True)
        for owner, first in zip(owners.tolist(), order[firsts].tolist(), strict=True):
            i, j = before[first], now[first]
            self.found.append(
                (
                    int(distance[first]),
                    int(rows.subscribers[owner]),
                    int(rows.nth[j]),
                    int(rows.nth[i]),
                    (int(rows.events[rows.event[i]]), int(rows.events[rows.event[j]])),
                    (int(seq[i]), int(seq[j])),
                )
            )

    def verdict(self, log: Log) -> Verdict:
        if self.late:
            log.verify()
        counts = {"late": self.late, "streams": self.streams}
        return judged(self.promise, self.late, counts, self._witness(log))

    def _witness(self, log: Log) -> dict[str, Any] | None:
        if not self.found:
            return None
        names = log.subscriber_names()
        closest = min(self.found, key=lambda each: (each[0], names[each[1]], each[2]))
        _, subscriber, nth, before, events, numbers = closest
        known = log.event_names(events)
        return {
            "subscriber": names[subscriber],
            "publisher": _publisher(log, names[subscriber], nth),
            "events": [known[event] for event in events],
            "numbers": list(numbers),
            "nths": [before, nth],
        }


def _publisher(log: Log, subscriber: str, nth: int) -> str:
    from pyspark.sql import functions as F

    row = log.table.frame.where((F.col("subscriber") == subscriber) & (F.col("nth") == nth)).first()
    assert row is not None, "a delivery that was just read"
    return str(row["publisher"])
