"""The causes of events, as the highest number of each publisher in an event's past.

With an event, all earlier ones of its publisher are causes too, so one number a publisher says it
all. The own publisher's number is implied (the event before), so events between which their
publisher delivered nothing share one row of numbers, their *base*; row 0 is empty. Columns do not
depend on each other: when rows x publishers is too large, they are computed some at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from inorder.pipeline import bounds
from inorder.pipeline.coded import Array, edges_of
from inorder.pipeline.published import NO_AFTER, Published


@dataclass(slots=True)
class Seen:
    """What nodes that publish delivered, sorted by (node, nth). `node` is a code."""

    node: Array
    nth: Array
    event: Array  # numbers in Published
    delivered_at: Array | None

    def take(self, chosen: Array) -> Seen:
        times = None if self.delivered_at is None else self.delivered_at[chosen]
        return Seen(self.node[chosen], self.nth[chosen], self.event[chosen], times)


class Past:
    """The pasts of some events (`members`: numbers in Published), from what publishers saw of them.

    Events have local numbers by (publisher, seq), written to `local` at their numbers in Published
    (disjoint parts share one array). `number` is an event's place among its publisher's, from 1;
    `publisher` is dense.
    """

    def __init__(self, published: Published, members: Array, seen: Seen, local: Array) -> None:
        order = np.lexsort((published.seq[members], published.publisher[members]))
        self.members = members[order]
        codes, self.publisher = np.unique(published.publisher[self.members], return_inverse=True)
        self.publishers = len(codes)
        starts = edges_of(self.publisher, len(codes))
        self.number = np.arange(len(self.members)) - starts[self.publisher] + 1
        self.local = local
        self.local[self.members] = np.arange(len(self.members))
        self.base = np.zeros(len(self.members), dtype=np.int64)
        self._fresh: list[Array] = []  # for each row but 0: local events taken in
        self._previous: list[int] = []  # for each row but 0: the row before
        self._number_rows(published, codes, starts, seen)

    @property
    def rows(self) -> int:
        return len(self._fresh) + 1

    def tables(self) -> Iterator[tuple[int, Array]]:
        """(first publisher, numbers by row and publisher), for some publishers at a time."""
        step = max(1, bounds.PAST_CELLS_MAX // self.rows)
        for low in range(0, self.publishers, step):
            yield low, self._table(low, min(self.publishers, low + step))

    def _number_rows(self, published: Published, codes: Array, starts: Array, seen: Seen) -> None:
        """Give each publication that follows deliveries a row, in the order of publication."""
        found: list[tuple[int, Array]] = []
        for publisher in np.flatnonzero(np.isin(codes, seen.node)).tolist():
            code = codes[publisher]
            mine = np.arange(
                np.searchsorted(seen.node, code, side="left"),
                np.searchsorted(seen.node, code, side="right"),
            )
            low, high = int(starts[publisher]), int(starts[publisher + 1])
            found += self._seen_before(published, np.arange(low, high), seen, mine)
        found.sort(key=lambda each: (float(published.published_at[self.members[each[0]]]), each[0]))
        row_at = {event: row for row, (event, _) in enumerate(found, 1)}
        for publisher in sorted({int(self.publisher[event]) for event, _ in found}):
            row = 0
            for event in range(int(starts[publisher]), int(starts[publisher + 1])):
                row = row_at.get(event, row)
                self.base[event] = row
        for event, fresh in found:
            first = self.number[event] == 1
            self._previous.append(0 if first else int(self.base[event - 1]))
            self._fresh.append(fresh)

    def _seen_before(
        self, published: Published, events: Array, seen: Seen, mine: Array
    ) -> Iterator[tuple[int, Array]]:
        """What one publisher delivered before an event and not before an earlier one.

        Positions and times are walked apart, for nothing says that they rise together.
        """
        after = published.after[self.members[events]]
        timed = after == NO_AFTER
        by_time = mine
        upto = np.searchsorted(seen.nth[mine], after, side="right")
        if timed.any():
            assert seen.delivered_at is not None, "asked for when `after` is null"
            by_time = mine[np.argsort(seen.delivered_at[mine], kind="stable")]
            moments = published.published_at[self.members[events]]
            upto_time = np.searchsorted(seen.delivered_at[by_time], moments, side="right")
            upto = np.where(timed, upto_time, upto)
        done = {False: 0, True: 0}
        for event, by_clock, end in zip(
            events.tolist(), timed.tolist(), upto.tolist(), strict=True
        ):
            if end > done[by_clock]:
                source = by_time if by_clock else mine
                yield event, self.local[seen.event[source[done[by_clock] : end]]]
                done[by_clock] = end

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
                ours = fresh[(self.publisher[fresh] >= low) & (self.publisher[fresh] < high)]
                np.maximum.at(
                    numbers, self.publisher[ours] - low, self.number[ours].astype(np.int32)
                )
                if not rises and (numbers > table[row]).any():
                    changed = True
                np.maximum(table[row], numbers, out=table[row])
            if not changed:  # a loop of causes, or clocks apart, takes more rounds
                return table
