"""Fifo: a subscriber delivers in order no event of a publisher and topic after a later one of them.

Definitions. Events of one publisher on one topic are ordered by its sequence number, those of a
later life (epoch) behind those of an earlier one. Gaps are no violation here: a loss is judged by
`reliable`.

Counting. One violation is an in-order delivery whose number is below one already delivered in
order by that subscriber for that publisher and topic (a repeated delivery counts like any other).
`per_publisher` is the promise of a publisher's own order over all its topics. The witness is the
delivery that comes soonest after the one it should have preceded, then by subscriber, then the
earliest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from inorder.check.history import History
from inorder.check.trace import DeliveryRow
from inorder.check.verdict import Verdict, judged, not_judged

BROKE_FIFO = (
    "broke Fifo - a subscriber delivers in order no event of a publisher and topic after a later "
    "one of them"
)
BROKE_PER_PUBLISHER = "broke Fifo per publisher - the same, over all topics of a publisher"

NEEDS = "needs the publisher, topic and number of each delivery"


def check(history: History) -> Verdict:
    if history.bare:
        return not_judged("fifo", NEEDS)
    return _verdict("fifo", history, lambda row: (row.publisher, row.topic))


def check_per_publisher(history: History) -> Verdict:
    if history.bare:
        return not_judged("per_publisher", NEEDS)
    return _verdict("per_publisher", history, lambda row: (row.publisher, ""))


def _verdict(
    promise: str, history: History, stream: Callable[[DeliveryRow], tuple[str, str]]
) -> Verdict:
    violations = 0
    streams = 0
    closest: tuple[int, str, int] | None = None
    pair: tuple[DeliveryRow, DeliveryRow] | None = None
    for name, rows in history.by_subscriber.items():
        highest: dict[tuple[str, str], DeliveryRow] = {}
        for row in rows:
            if not row.in_order:
                continue
            key = stream(row)
            later = highest.get(key)
            if later is None or (row.epoch, row.seq) >= (later.epoch, later.seq):
                highest[key] = row
                continue
            violations += 1
            distance = (row.nth - later.nth, name, row.nth)
            if closest is None or distance < closest:
                closest, pair = distance, (later, row)
        streams += len(highest)
    counts = {"late": violations, "streams": streams}
    return judged(promise, violations, counts, _witness(pair))


def _witness(pair: tuple[DeliveryRow, DeliveryRow] | None) -> dict[str, Any] | None:
    if pair is None:
        return None
    later, earlier = pair
    return {
        "subscriber": earlier.subscriber,
        "publisher": earlier.publisher,
        "events": [later.event, earlier.event],
        "numbers": [later.seq, earlier.seq],
        "nths": [later.nth, earlier.nth],
    }
