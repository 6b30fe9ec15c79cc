"""What a query reads next, and in how many tasks: arithmetic on offsets, without Spark or a log.

Rule 1: a micro-batch reads [start, end) of every topic; its end is the next one's start. Together
        they read every event once, whatever the limits are.
Rule 2: a limit admits the first arrivals, over all topics: a limit cuts what a stream reads, and
        changes nothing in its order. As long as anything waits, a batch is never empty.
Rule 3: a topic that is not in the start appeared later, and is read from its first event.
Rule 4: events that are gone before they were read stop the query, unless it was told to read on. A
        topic that ends before the start is another topic of that name, read from its first event;
        the offsets say so from then on, even if none of it can be read yet.
Rule 5: the tasks are a pure function of the ranges and of how many are wanted. A sink that counts
        its batches by task relies on this: set `minPartitions` if a query may move to a machine
        with more or fewer cores.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from inorder.core.errors import Damaged, Misuse, UnknownName
from inorder.core.limits import SOURCE_ROWS_PER_TASK_MIN
from inorder.pipeline.source_log import Extent, Run, Slice
from inorder.pipeline.source_options import EARLIEST, LATEST, Offsets, Settings


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


def followed(start: Mapping[str, int], extents: Mapping[str, Extent]) -> Offsets:
    """Where a query that may lose events goes on: what is gone is forgotten, and what ends before
    its start begins anew (Rule 4).

    >>> followed({"a": 6, "b": 6, "c": 6}, {"a": Extent(0, 9), "b": Extent(0, 2)})
    {'a': 6, 'b': 0}
    """
    return {
        topic: offset if offset <= extents[topic].next else extents[topic].first
        for topic, offset in start.items()
        if topic in extents
    }


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


def admitted(waiting: list[Slice], limit: int, arrived: Iterable[Run]) -> list[Slice]:
    """The first arrivals of what waits, so many in all (Rule 2).

    >>> waiting = [Slice("a", 0, 30), Slice("b", 5, 15)]
    >>> admitted(waiting, 8, [("b", 0, 7), ("a", 0, 5), ("b", 7, 8), ("a", 5, 25)])
    [Slice(topic='a', start=0, end=5), Slice(topic='b', start=5, end=8)]
    """
    left = limit
    if sum(each.end - each.start for each in waiting) <= left:
        return waiting
    if len(waiting) == 1:  # nobody to overtake: the log need not be asked
        [only] = waiting
        return [Slice(only.topic, only.start, only.start + limit)]
    wanted = {each.topic: each for each in waiting}
    ends: dict[str, int] = {}
    for topic, offset, count in arrived:
        if topic not in wanted:
            continue
        begin = max(offset, wanted[topic].start)
        taken = min(offset + count, wanted[topic].end, begin + left) - begin
        if taken > 0:
            ends[topic] = begin + taken
            left -= taken
        if not left:
            return [Slice(t, wanted[t].start, ends[t]) for t in wanted if t in ends]
    # Some of what waits is not there any more, and all that is there is admitted.
    return waiting


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
