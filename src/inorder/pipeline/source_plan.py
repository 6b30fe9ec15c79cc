"""What a query reads next, and in how many tasks.

Rule 1: a micro-batch reads what lies above one cursor, up to and with another. Together they read
        every event once, whatever the limits are.
Rule 2: a limit cuts what a stream reads, and changes nothing in its order. It counts the rows that
        are wanted, so no batch is empty while one of them waits.
Rule 3: events that are gone before they were read stop the query, unless it was told to read on. So
        does another log in the place of the one that was read; told to read on, a query reads it
        from its first event. A log that lost its tail is read on where it ends now. What was
        removed in between, the read itself is told.
Rule 4: the tasks are a pure function of the range and of how many are wanted. A sink that counts
        its batches by task relies on this: set `minPartitions` if a query may move to a machine
        with more or fewer cores.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from inorder.core.errors import Damaged, Misuse
from inorder.core.limits import SOURCE_ROWS_PER_TASK_MIN
from inorder.logs.cursor import Cursor
from inorder.pipeline.source_log import Extent, Log
from inorder.pipeline.source_options import EARLIEST, LATEST, READS_ON, Place, Settings

# As Spark keeps it in a checkpoint: the fields of a cursor, its digest in hexadecimal.
Kept = dict[str, Any]


def kept(log: Log, extent: Extent, offset: int) -> Kept:
    """The cursor that says: done below this offset."""
    return {
        "order": extent.order, "position": offset - 1, "digest": log.mark(offset), "born": 0,
    }  # fmt: skip


def begin(settings: Settings, log: Log, extent: Extent, default: Place) -> int:
    """The first offset of a query."""
    if settings.since is not None:
        return min(max(log.at(settings.since), extent.first), extent.next)
    return above(default if settings.starting is None else settings.starting, log, extent)


def above(place: Place, log: Log, extent: Extent) -> int:
    """The offset behind a place.

    >>> above(5, None, Extent("log", 0, 9)), above("latest", None, Extent("log", 0, 9))
    (6, 9)
    """
    if isinstance(place, Cursor):
        if place.order != extent.order:
            raise Misuse("the cursor is of another log")
        digest = log.mark(place.position + 1) if place.position < extent.next else ""
        if place.digest and digest and digest != place.digest.hex():
            raise Misuse("the cursor is of a tail that this log has lost")
        place = place.position
    if isinstance(place, int):
        if place >= extent.next:
            raise Misuse(f"the log ends at position {extent.next - 1}, {place} was asked for")
        return place + 1
    return {EARLIEST: extent.first, LATEST: extent.next}[place]


def gone_on(settings: Settings, log: Log, extent: Extent, done: Mapping[str, Any]) -> int:
    """The offset at which a query goes on behind a cursor of its own (Rule 3)."""
    at: int = done["position"] + 1
    if done["order"] != extent.order:
        if settings.fail_on_loss:
            told = f"is another log than {done['order']}, which was read before"
            raise Damaged(settings.place, f"{told} {READS_ON}")
        return extent.first
    if not settings.fail_on_loss:
        return min(max(at, extent.first), extent.next)
    told = ""
    if at > extent.next:
        told = f"ends at position {extent.next - 1}, but reached {at - 1} before"
    else:
        digest = log.mark(at)
        if done["digest"] and digest and digest != done["digest"]:
            told = f"holds another event at position {at - 1} than the one that was read"
    if told:
        raise Damaged(settings.place, f"{told} {READS_ON}")
    return at


def between(
    settings: Settings, log: Log, extent: Extent, start: Mapping[str, Any], end: Mapping[str, Any]
) -> tuple[int, int]:
    """The offsets of a batch that was planned, perhaps in an earlier life of the query."""
    stop = gone_on(settings, log, extent, end)
    if end["order"] != extent.order:  # planned in a log that is gone, and told to read on
        return stop, stop
    if start["order"] != end["order"]:
        return extent.first, stop
    return gone_on(settings, log, extent, start), stop


def tasks(start: int, stop: int, cores: int, at_least: int | None) -> list[tuple[int, int]]:
    """Cut a read into tasks of equal size.

    >>> tasks(3, 9, 8, at_least=2)
    [(3, 6), (6, 9)]
    """
    total = stop - start
    wanted = min(cores, -(-total // SOURCE_ROWS_PER_TASK_MIN))
    number = min(total, max(wanted, at_least or 1))
    cuts = [start + total * task // number for task in range(number + 1)] if number else [start]
    return list(pairwise(cuts))
