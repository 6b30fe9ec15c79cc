"""What a query reads next, and in how many tasks: arithmetic on offsets, without Spark or a log.

Rule 1: a micro-batch reads [start, end) of every topic; its end is the next one's start. Together
        they read every event once, whatever the limits are.
Rule 2: a limit is shared out in proportion to what waits, to the last event: as long as anything
        waits, a batch is never empty.
Rule 3: a topic that is not in the start appeared later, and is read from its first event.
Rule 4: events that are gone before they were read stop the query, unless it was told to read on. A
        topic that ends before the start is another topic of that name, read from its first event.
Rule 5: the tasks are a pure function of the ranges and of how many are wanted. A sink that counts
        its batches by task relies on this: set `minPartitions` if a query may move to a machine
        with more or fewer cores.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from inorder.errors import Damaged, Misuse, UnknownName
from inorder.limits import SOURCE_ROWS_PER_TASK_MIN
from inorder.pipeline.source_log import Extent
from inorder.pipeline.source_options import EARLIEST, LATEST, Offsets, Settings


class Slice(Struct, frozen=True, gc=False):
    """Events of one topic, from `start` up to before `end`."""

    topic: str
    start: int
    end: int


def chosen(extents: Mapping[str, Extent], settings: Settings) -> dict[str, Extent]:
    """The topics the query subscribes to, by name; all of a trace's other tables."""
    if settings.subscribe:
        return {topic: extents[topic] for topic in settings.subscribe if topic in extents}
    matches = re.compile(settings.pattern or ".*", re.DOTALL).fullmatch
    return {topic: extents[topic] for topic in sorted(extents) if matches(topic)}


def check_names(extents: Mapping[str, Extent], settings: Settings) -> None:
    """Topics that were named must exist."""
    named = [*settings.subscribe, *(settings.starting or {}), *(settings.ending or {})]
    for topic in named:
        if topic and topic not in extents:
            raise UnknownName("topic", topic, sorted(extents))


def resolved(offsets: Offsets | None, extents: Mapping[str, Extent], default: int) -> Offsets:
    """Offsets of all topics as plain numbers.

    >>> resolved({"a": 5, "b": -1}, {"a": Extent(0, 9), "b": Extent(0, 9)}, EARLIEST)
    {'a': 5, 'b': 9}
    """
    said = offsets or {}
    found = {}
    for topic, extent in extents.items():
        offset = said.get(topic, said.get("", default))
        if offset > extent.next:
            raise Misuse(f"topic {topic!r} ends at offset {extent.next}, {offset} was asked for")
        found[topic] = {EARLIEST: extent.first, LATEST: extent.next}.get(offset, offset)
    return found


def ranges(
    place: str,
    start: Mapping[str, int],
    end: Mapping[str, int],
    extents: Mapping[str, Extent],
    fail_on_loss: bool,
) -> list[Slice]:
    """What lies between two offsets, by topic; speaks up about what is gone (Rules 3 and 4)."""
    found = []
    for topic in sorted(end):
        extent = extents.get(topic, Extent(0, 0))
        begin, stop = start.get(topic, extent.first), end[topic]
        if fail_on_loss:
            _check_loss(place, topic, begin, stop, extent)
        if begin > stop:
            begin = extent.first
        begin, stop = max(begin, extent.first), min(stop, extent.next)
        if begin < stop:
            found.append(Slice(topic, begin, stop))
    return found


def _check_loss(place: str, topic: str, begin: int, end: int, extent: Extent) -> None:
    if max(begin, end) > extent.next:
        told = f"ends at offset {extent.next}, but reached {max(begin, end)} before"
    elif begin > end:
        told = f"was read up to offset {begin}, and ended at {end} after that"
    elif begin < extent.first:
        told = f"has lost its offsets {begin} to {extent.first - 1}"
    else:
        return
    raise Damaged(place, f"topic {topic!r} {told} (option failOnDataLoss = false reads on)")


def admitted(waiting: list[Slice], limit: int | None) -> list[Slice]:
    """The first events of what waits, so many in all, in fair shares (Rule 2).

    >>> admitted([Slice("a", 0, 30), Slice("b", 5, 15)], 8)
    [Slice(topic='a', start=0, end=6), Slice(topic='b', start=5, end=7)]
    """
    total = sum(each.end - each.start for each in waiting)
    if limit is None or total <= limit:
        return waiting
    shares = [divmod(limit * (each.end - each.start), total) for each in waiting]
    left = limit - sum(share for share, _ in shares)
    largest = sorted(range(len(waiting)), key=lambda place: (-shares[place][1], place))
    more = set(largest[:left])
    return [
        Slice(each.topic, each.start, each.start + shares[place][0] + (place in more))
        for place, each in enumerate(waiting)
        if shares[place][0] or place in more
    ]


def tasks(slices: list[Slice], cores: int, at_least: int | None) -> list[list[Slice]]:
    """Cut a read into tasks of equal size; small topics share one, large ones take several.

    >>> [len(task) for task in tasks([Slice("a", 0, 3), Slice("b", 0, 1)], 8, at_least=2)]
    [1, 2]
    """
    total = sum(each.end - each.start for each in slices)
    wanted = min(cores, -(-total // SOURCE_ROWS_PER_TASK_MIN))
    number = min(total, max(wanted, at_least or 1))
    cuts = [total * task // number for task in range(1, number + 1)]
    found: list[list[Slice]] = [[] for _ in cuts]
    task = passed = 0
    for each in slices:
        start = each.start
        while start < each.end:
            end = min(each.end, start + cuts[task] - passed)
            found[task].append(Slice(each.topic, start, end))
            passed += end - start
            start = end
            if passed == cuts[task]:
                task += 1
    return found
