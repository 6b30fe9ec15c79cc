"""Many rows of a log judged at once, with the same outcome as one by one.

Rule 1: a reader skims rows only if it can prove that `receive`, row by row, would have done the
        same. Otherwise it says so (None), with its state unchanged, and the driver goes slowly.
Rule 2: what waits at the end is not skimmed: it is handed back, to be received in the usual way.

Theory. A stamp of a log names all topics (`threshold = 0`): it is the vector of counters right
after its event. So the stamps of the topics held, put in order, grow by one in one entry from event
to event, and their sum is the event's place in the order. That is the proof for hold: sort by the
sum; as long as each vector is the one before plus one for its own topic, no event is ready before
its predecessor, so the engine can release them in no other order, whatever order they came in.

For tag without a buffer nothing moves. An event is in order if its number is above the clock of its
topic and no other entry is below `last` (engine.py). Late events change no clock, so the clocks
before each row are running maxima over the rows in order; over all rows they are the same, if no
late row exceeds them. That is checked. Who is in order depends on `last`, and `last` on who is in
order: a guess that reproduces itself is right, by induction along the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from inorder.core.limits import SKIM_TOPICS_MAX
from inorder.protocols.total.skim_text import read_alike
from inorder.protocols.total.stamp import EPOCH

if TYPE_CHECKING:
    from inorder.core.event import Event
    from inorder.protocols.total.reader import Reader

_decode = msgspec.json.Decoder(list[dict[str, int]]).decode

# What a skim says: rows delivered, in this order (-1 - n stands for the n-th of `freed`), whether
# they are in order, rows that are duplicates, rows still to be received, and events that waited.
Skimmed = tuple[Any, Any, Any, Any, "list[Event]"]

# Guesses at who is in order before the slow way is taken.
GUESSES_MAX = 4


def read(names: Sequence[str], codes: Any, stamps: bytes) -> Stamps | None:
    """A JSON array of stamps as a table; None if any of them is odd.

    >>> found = read(["b"], np.array([0, 0]), b'[{"a":1,"b":3},{"a":1,"b":4}]')
    >>> found.numbers.tolist(), read(["b"], np.array([0]), b'[{"a":1}]')
    ([3, 4], None)
    """
    found = read_alike(stamps, len(codes)) if len(codes) else None
    if found is None:
        found = _read_each(names, len(codes), stamps)
    if found is None:
        return None
    topics, table = found
    if len(topics) > SKIM_TOPICS_MAX or EPOCH in topics or not {*names} <= {*topics}:
        return None
    own = np.array([topics.index(name) for name in names], np.intp)[codes]
    numbers = table[own, np.arange(len(codes))]
    return None if (numbers < 1).any() else Stamps(topics, own, numbers, table)


def _read_each(names: Sequence[str], count: int, stamps: bytes) -> tuple[list[str], Any] | None:
    """The same for stamps of any kind."""
    try:
        rows = _decode(stamps)
    except Exception:
        return None
    if len(rows) != count:
        return None
    topics = list(dict.fromkeys([*names, *(topic for row in rows[:1] for topic in row)]))
    wanted = sum(map(len, rows))
    try:
        table = _table(rows, topics)
        if int((table >= 0).sum()) != wanted:
            topics = sorted({topic for row in rows for topic in row}.union(names))
            if len(topics) > SKIM_TOPICS_MAX:
                return None
            table = _table(rows, topics)
    except OverflowError:
        return None
    return (topics, table) if int((table >= 0).sum()) == wanted else None


def _table(rows: list[dict[str, int]], topics: list[str]) -> Any:
    """A line for each topic; -1 where a stamp does not name it."""
    table = np.empty((len(topics), len(rows)), np.int64)
    for line, topic in enumerate(topics):
        try:
            table[line] = np.fromiter(map(itemgetter(topic), rows), np.int64, len(rows))
        except KeyError:
            table[line] = [row.get(topic, -1) for row in rows]
    return table


class Stamps:
    """Stamps of many rows; `skim` is asked with the rows of one subscriber, as they arrived."""

    def __init__(self, topics: list[str], own: Any, numbers: Any, table: Any) -> None:
        self.topics = topics
        self.own = own
        self.numbers = numbers
        self.table = table

    def skim(self, reader: Reader, rows: Any) -> Skimmed | None:
        from inorder.protocols.total.skim_run import Run

        if reader.options.patience is not None or reader.options.stamp != "full":
            return None
        run = Run(reader, self.topics, self.own[rows], self.numbers[rows], self.table[:, rows])
        found = run.held_back() if reader.options.buffered else run.as_they_come()
        if found is None:
            return None
        order, in_order, rest, freed = found
        order = np.where(order >= 0, rows[np.maximum(order, 0)], order)
        return order, in_order, rows[run.duplicates], rows[rest], freed


def beyond_at_most(arrivals: Any, count: int) -> int:
    """How many wait at most, if those of `arrivals` leave one after the other in that order, each
    when it and all before it have come, and `count` come altogether.

    >>> beyond_at_most(np.array([0, 2, 1]), 3), beyond_at_most(np.array([1, 2]), 3)
    (1, 1)
    """
    left_at = np.maximum.accumulate(arrivals)
    left = np.searchsorted(left_at, np.arange(count), side="right")
    return int((np.arange(1, count + 1) - left).max(initial=0))
