"""Unique, by slice: deliveries of an event its subscriber has delivered before."""

from __future__ import annotations

from typing import Any

import numpy as np

from inorder.check.verdict import Verdict, judged
from inorder.pipeline.coded import Array, Log, Rows
from inorder.pipeline.hashed import least, repeats

# Cells (subscribers x events) of a table of booleans that is cheaper than hashing.
_SEEN_CELLS_MAX = 256_000_000


def repeated(rows: Rows) -> Array | None:
    """Which rows repeat an earlier one's (subscriber, event); None when none does."""
    keys = rows.pair_keys()
    cells = len(rows.subscribers) * len(rows.events)
    if cells <= _SEEN_CELLS_MAX:
        seen = np.zeros(cells, dtype=np.bool_)
        seen[keys] = True
        if np.count_nonzero(seen) == len(keys):
            return None
    mask = repeats(keys)
    return mask if mask.any() else None


class Repeats:
    """Counts over slices; remembers each subscriber's closest repeat."""

    def __init__(self) -> None:
        self.deliveries = 0
        self.repeats = 0
        self._closest: list[tuple[int, int, int, int]] = []  # distance, subscriber, nth, event

    def add(self, rows: Rows, mask: Array | None) -> None:
        self.deliveries += len(rows)
        if mask is None:
            return
        self.repeats += int(np.count_nonzero(mask))
        keys = rows.pair_keys()
        concerned = rows.take(np.flatnonzero(np.isin(keys, keys[mask])))
        distance = concerned.nth - least(concerned.nth, concerned.pair_keys())
        for owner in np.unique(concerned.subscriber).tolist():
            mine = slice(int(concerned.bounds[owner]), int(concerned.bounds[owner + 1]))
            away = np.where(distance[mine] > 0, distance[mine], np.iinfo(distance.dtype).max)
            at = int(np.argmin(away)) + mine.start
            self._closest.append(
                (
                    int(distance[at]),
                    int(rows.subscribers[owner]),
                    int(concerned.nth[at]),
                    int(rows.events[concerned.event[at]]),
                )
            )

    def verdict(self, log: Log) -> Verdict:
        if self.repeats:
            log.verify()
        counts = {"deliveries": self.deliveries, "repeats": self.repeats}
        return judged("unique", self.repeats, counts, self._witness(log))

    def _witness(self, log: Log) -> dict[str, Any] | None:
        if not self._closest:
            return None
        names = log.subscriber_names()
        distance, subscriber, nth, event = min(
            self._closest, key=lambda each: (each[0], names[each[1]], each[2])
        )
        return {
            "event": log.event_names([event])[event],
            "subscriber": names[subscriber],
            "nths": [nth - distance, nth],
        }
