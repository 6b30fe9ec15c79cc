"""Who wants which events: a matching index for each topic, moved from version to version.

Rule 1: subscribers are numbers here; the number of one who holds nothing any more is given anew.
Rule 2: a change of values is an update of the index, not a new one.

Theory: the index finds what matches without looking at what does not (content/index). Topics are
not part of it, for it is asked topic by topic anyway: events of one topic are gathered first. What
an answer needs in memory is not known before it is there, so each topic remembers how many pairs an
event of it gave, and the next slice of events is cut accordingly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inorder.content.engine import forms_of
from inorder.content.index import Index
from inorder.core.limits import MATCH_SINGLE_EVENTS_MAX
from inorder.pipeline.match_events import Attributes, column_of
from inorder.pipeline.match_state import Changes, Held, parsed

Ints = NDArray[np.int64]
Pairs = tuple[Ints, Ints, "NDArray[np.bool_]"]  # places of events, subscribers, whether they match

_SAFETY = 2.0  # so many times the pairs seen are expected of the next events
_FORGET = 8.0  # and at least so small a part of what was expected before


class TopicIndex:
    """The holders of one topic."""

    def __init__(self) -> None:
        self._index = Index()
        self._held: dict[int, Held] = {}
        self._uses: dict[str, int] = {}  # in how many filters an attribute stands
        self._whole: Ints | None = None
        self._holders: Ints | None = None
        self._expected = 0.0

    def __len__(self) -> int:
        return len(self._held)

    def change(self, key: int, held: Held | None) -> int:
        """Hold the topic otherwise, or not at all; by how many its holders have become more."""
        before = self._held.pop(key, None)
        if held is not None:
            self._held[key] = held
        old = None if before is None else before.where
        new = None if held is None else held.where
        if held is not None and old is not None and old == new:
            self._index.set(key, parsed(old).values_of(held.values))
        else:
            self._whole = self._holders = None
            if old is not None:
                self._index.remove(key)
                self._count(old, -1)
            if held is not None and new is not None:
                self._index.add(key, forms_of(parsed(new), held.values))
                self._count(new, 1)
        self._expected = float(len(self._index))  # anything may match now
        return (held is not None) - (before is not None)

    def _count(self, where: str, by: int) -> None:
        for name in parsed(where).attributes:
            self._uses[name] = self._uses.get(name, 0) + by
            if not self._uses[name]:
                del self._uses[name]

    @property
    def whole(self) -> Ints:
        """Who holds the topic without a filter."""
        if self._whole is None:
            found = [key for key, held in self._held.items() if held.where is None]
            self._whole = np.array(sorted(found), np.int64)
        return self._whole

    @property
    def holders(self) -> Ints:
        if self._holders is None:
            self._holders = np.array(sorted(self._held), np.int64)
        return self._holders

    def pairs_expected(self, unmatched: bool) -> float:
        """How many pairs an event of this topic may give."""
        return float(len(self)) if unmatched else len(self.whole) + self._expected

    def pairs(self, rows: Sequence[Attributes], unmatched: bool) -> Pairs:
        """For these events of the topic; with `unmatched` every holder of every event."""
        places, keys = self._filtered(rows)
        found = len(places) / len(rows)
        self._expected = max(found * _SAFETY, self._expected / _FORGET)
        whole = self.whole
        if len(whole):
            places = np.concatenate((places, np.repeat(np.arange(len(rows)), len(whole))))
            keys = np.concatenate((keys, np.tile(whole, len(rows))))
        if not unmatched:
            return places, keys, np.ones(len(places), np.bool_)
        holders = self.holders
        matched = np.zeros((len(rows), len(holders)), np.bool_)
        matched[places, np.searchsorted(holders, keys)] = True
        every = np.repeat(np.arange(len(rows)), len(holders))
        return every, np.tile(holders, len(rows)), matched.ravel()

    def _filtered(self, rows: Sequence[Attributes]) -> tuple[Ints, Ints]:
        if not len(self._index):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        if len(rows) <= MATCH_SINGLE_EVENTS_MAX:
            each = [self._index.match(row) for row in rows]
            places = np.repeat(np.arange(len(rows)), [len(keys) for keys in each])
            return places, np.array([key for keys in each for key in keys], np.int64)
        columns: dict[str, Any] = {name: column_of(rows, name) for name in sorted(self._uses)}
        # Filters that look at nothing still need to know how many events there are.
        return self._index.match_batch(columns or {"": [None] * len(rows)})


class Matcher:
    """Every topic's holders.

    >>> from inorder.pipeline.match_state import Holdings, rows_of
    >>> rows = rows_of([{"subscriber": "s", "topics": ["t"], "where": "x < 3"}])
    >>> matcher = Matcher()
    >>> matcher.advance(Holdings().staged(rows))
    >>> places, keys, matched = matcher.topics["t"].pairs([{"x": 1}, {"x": 5}], unmatched=True)
    >>> places.tolist(), [matcher.names[key] for key in keys], matched.tolist()
    ([0, 1], ['s', 's'], [True, False])
    """

    def __init__(self) -> None:
        self.topics: dict[str, TopicIndex] = {}
        self.names: list[str] = []
        self._numbers: dict[str, int] = {}
        self._holds: list[int] = []  # how many topics, by number
        self._free: list[int] = []  # numbers of those who hold nothing any more
        self._arrow: Any = None

    def advance(self, changes: Changes) -> None:
        for subscriber, mine in changes.items():
            number = self._numbers.get(subscriber)
            if number is None:
                number = self._new(subscriber)
            for topic, held in mine.items():
                known = self.topics.get(topic)
                if known is None:
                    known = self.topics[topic] = TopicIndex()
                self._holds[number] += known.change(number, held)
                if not len(known):
                    del self.topics[topic]
            if not self._holds[number]:
                del self._numbers[subscriber]
                self._free.append(number)

    def _new(self, subscriber: str) -> int:
        if self._free:
            number = self._free.pop()
            self.names[number] = subscriber
        else:
            number = len(self.names)
            self.names.append(subscriber)
            self._holds.append(0)
        self._numbers[subscriber] = number
        self._arrow = None
        return number

    def arrow_names(self) -> Any:
        """The subscribers' names as an Arrow array, by number."""
        if self._arrow is None:
            import pyarrow as pa

            self._arrow = pa.array(self.names, pa.string())
        return self._arrow
