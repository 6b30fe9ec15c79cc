"""The causes of events, as the highest number of each stream in an event's past.

A *stream* is what one application published on one topic. With an event, all earlier ones of its
stream are causes too, so one number a stream says it all. The own stream's number is implied (the
event before), so events between which their application was handed nothing share one row of
numbers, their *base*; row 0 is empty. Columns do not depend on each other: when rows x streams is
too large, they are computed some at a time.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from inorder.pipeline import bounds
from inorder.pipeline.coded import Array, edges_of
from inorder.pipeline.handed import Handed
from inorder.pipeline.hashed import factorize
from inorder.pipeline.published import Published


class Past:
    """The pasts of some events (`members`: numbers in Published), from what was handed to their
    applications of each other.

    Events have local numbers in the order of `Handed.chain`, written to `local` at their numbers in
    Published (disjoint parts share one array). `number` is an event's place in its stream, from 1;
    `stream` is dense.
    """

    def __init__(
        self, published: Published, members: Array, handed: Handed, pairs: Array, local: Array
    ) -> None:
        self.members = members[np.argsort(handed.chain[members], kind="stable")]
        application = handed.application[self.members].astype(np.int64)
        topics = max(1, len(published.topics))
        keys = application * topics + published.topic[self.members]
        self.stream, streams = factorize(keys)
        self.streams = len(streams)
        self.number = _ranks(self.stream, self.streams)
        self.local = local
        self.local[self.members] = np.arange(len(self.members))
        self.base = np.zeros(len(self.members), dtype=np.int64)
        self._fresh: list[Array] = []  # for each row but 0: local events taken in
        self._previous: list[int] = []  # for each row but 0: the row before
        self._number_rows(published, application, handed.holder[pairs], handed.event[pairs])

    @property
    def rows(self) -> int:
        return len(self._fresh) + 1

    @property
    def caused(self) -> int:
        """Events with a cause."""
        return int(np.count_nonzero((self.base > 0) | (self.number > 1)))

    def tables(self) -> Iterator[tuple[int, Array]]:
        """(first stream, numbers by row and stream), for some streams at a time."""
        step = max(1, bounds.PAST_CELLS_MAX // self.rows)
        for low in range(0, self.streams, step):
            yield low, self._table(low, min(self.streams, low + step))

    def _number_rows(
        self, published: Published, application: Array, holders: Array, events: Array
    ) -> None:
        """Give each publication that follows deliveries a row, in the order of publication."""
        holders, events = self.local[holders], self.local[events]
        order = np.argsort(holders, kind="stable")
        taking, starts = np.unique(holders[order], return_index=True)
        parts = np.split(events[order], starts[1:]) if len(taking) else []
        times = published.published_at[self.members[taking]]
        row_at = np.zeros(len(self.members), dtype=np.int64)
        for row, place in enumerate(np.lexsort((taking, times)).tolist(), 1):
            row_at[taking[place]] = row
            self._fresh.append(parts[place])
        self._previous = [0] * len(self._fresh)
        last: dict[int, int] = {}
        for event in taking.tolist():
            owner, row = int(application[event]), int(row_at[event])
            self._previous[row - 1] = last.get(owner, 0)
            last[owner] = row
        # Members of an application stand together: each has the row of the last one that took in.
        begins = np.maximum.accumulate(
            np.where(np.diff(application, prepend=-1) != 0, np.arange(len(application)), 0)
        )
        latest = np.maximum.accumulate(np.where(row_at > 0, np.arange(len(row_at)), -1))
        self.base = np.where(latest >= begins, row_at[np.maximum(latest, 0)], 0)

    def _table(self, low: int, high: int) -> Array:
        """The columns low..high. Rows mostly need earlier rows only: then one round is enough."""
        table = np.zeros((self.rows, high - low), dtype=np.int32)
        rises = all(
            previous < row and (self.base[fresh] < row).all()
            for row, (previous, fresh) in enumerate(
                zip(self._previous, self._fresh, strict=True), 1
            )
        )
        while True:
            changed = False
            for row, fresh in enumerate(self._fresh, 1):
                sources = np.unique(np.append(self.base[fresh], self._previous[row - 1]))
                numbers = table[sources].max(axis=0)
                ours = fresh[(self.stream[fresh] >= low) & (self.stream[fresh] < high)]
                np.maximum.at(numbers, self.stream[ours] - low, self.number[ours].astype(np.int32))
                if not rises and (numbers > table[row]).any():
                    changed = True
                np.maximum(table[row], numbers, out=table[row])
            if not changed:  # a loop of causes, or clocks apart, takes more rounds
                return table


def _ranks(numbers: Array, count: int) -> Array:
    """For each place, how many of its number there are up to there."""
    order = np.argsort(numbers, kind="stable")
    starts = edges_of(numbers[order], count)
    ranks = np.empty(len(numbers), dtype=np.int64)
    ranks[order] = np.arange(len(numbers)) - starts[numbers[order]] + 1
    return ranks
