"""Position, by slice: deliveries at a position that is not above all delivered before."""

from __future__ import annotations

from typing import Any

import numpy as np

from inorder.check.position import NO_POSITIONS
from inorder.check.verdict import Verdict, judged, not_judged
from inorder.pipeline.coded import Array, Log, Rows
from inorder.pipeline.hashed import running_maximum
from inorder.pipeline.published import UNPLACED, Published

COLUMNS = ("event", "publisher", "seq", "published_at", "position")


class Positions:
    """Compares what subscribers were handed, slice by slice, with where events stand."""

    def __init__(self, published: Published) -> None:
        self._published = published
        self._counts = dict.fromkeys(("late", "in_order_deliveries", "unplaced"), 0)
        # (distance, subscriber, nth, place before, events, positions)
        self._found: list[tuple[int, int, int, int, tuple[int, int], tuple[int, int]]] = []

    def add(self, rows: Rows) -> None:
        """Each subscriber's first delivery in order of each event, sorted by subscriber, `nth`."""
        events = self._published.find(rows)[rows.event]
        position = np.where(events < 0, UNPLACED, self._published.position[events])
        self._counts["in_order_deliveries"] += len(rows)
        placed = np.flatnonzero(position != UNPLACED)
        self._counts["unplaced"] += len(rows) - len(placed)
        rows, position = rows.take(placed), position[placed]
        together = rows.subscriber[1:] == rows.subscriber[:-1]
        highest = running_maximum(position, rows.subscriber)
        self._counts["late"] += int(np.count_nonzero(together & (position[1:] <= highest[:-1])))
        then = np.flatnonzero(together & (position[1:] <= position[:-1])) + 1
        self._remember(rows, position, then)

    def _remember(self, rows: Rows, position: Array, then: Array) -> None:
        """Of each subscriber the closest two neighbours that stand the other way round."""
        distance = rows.nth[then] - rows.nth[then - 1]
        order = np.lexsort((rows.nth[then], distance))
        owners, firsts = np.unique(rows.subscriber[then][order], return_index=True)
        for owner, first in zip(owners.tolist(), order[firsts].tolist(), strict=True):
            at = then[first]
            pair = [at - 1, at]
            codes, places = rows.events[rows.event[pair]].tolist(), position[pair].tolist()
            who, nths = int(rows.subscribers[owner]), rows.nth[pair].tolist()
            self._found.append(
                (int(distance[first]), who, nths[1], nths[0], tuple(codes), tuple(places))
            )

    def verdict(self, log: Log) -> Verdict:
        if not (self._published.position != UNPLACED).any():
            return not_judged("position", NO_POSITIONS)
        if self._counts["late"]:
            log.verify()
        return judged("position", self._counts["late"], self._counts, self._witness(log))

    def _witness(self, log: Log) -> dict[str, Any] | None:
        if not self._found:
            return None
        names = log.subscriber_names()
        closest = min(self._found, key=lambda each: (each[0], names[each[1]], each[2]))
        _, subscriber, nth, before, events, positions = closest
        known = log.event_names(events)
        return {
            "events": [known[event] for event in events],
            "subscriber": names[subscriber],
            "nths": [before, nth],
            "positions": list(positions),
        }
