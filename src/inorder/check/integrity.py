"""Integrity: a subscriber delivers only published events, unaltered, on topics it holds.

Counting. Three kinds, each delivery at most once in each; the violations are their sum.

- `never_published`: the event is not among the events.
- `altered`: the delivery's topic, publisher or number is not that of the event.
- `not_held`: the subscriber did not hold the delivery's topic at that moment (see `holding`).

When the end of the trace may be missing, an absent row proves nothing: an event is written once
its fate is known, after its first deliveries perhaps. Then only `altered` is judged.

A process of a live run reads what others have published, and what was published before it began. In
such a trace (`elsewhere`) an absent event is invented only if its number is none outside those that
its publisher has here, from the lowest to the highest; any other absent event was published
elsewhere. How many deliveries those are is counted, and breaks nothing.
"""

from __future__ import annotations

from inorder.check.history import History
from inorder.check.holding import NOT_HELD
from inorder.check.trace import DeliveryRow, EventRow
from inorder.check.verdict import Verdict, judged, not_judged

BROKE_INTEGRITY = (
    "broke Integrity - a subscriber delivers only published events, unaltered, on topics it holds"
)


def check(history: History) -> Verdict:
    if history.events is None or history.subscriptions is None:
        return not_judged("integrity", "needs the events and the subscriptions")
    if history.bare:
        return not_judged("integrity", "needs topic and time of each delivery")
    counts = dict.fromkeys((*KINDS, "deliveries", "elsewhere"), 0)
    counts["deliveries"] = len(history.deliveries)
    earliest: tuple[float, str, int, str] | None = None
    worst: DeliveryRow | None = None
    for row in history.deliveries:
        counts["elsewhere"] += row.event not in history.event_rows and not invented(history, row)
        for kind in faults(history, row):
            counts[kind] += 1
            key = (row.delivered_at, row.subscriber, row.nth, kind)
            if earliest is None or key < earliest:
                earliest, worst = key, row
    witness = None
    if earliest is not None and worst is not None:
        witness = {
            "fault": earliest[3],
            "event": worst.event,
            "subscriber": worst.subscriber,
            "topic": worst.topic,
            "nth": worst.nth,
        }
    return judged("integrity", sum(counts[kind] for kind in KINDS), counts, witness)


KINDS = ("never_published", "altered", "not_held")


def faults(history: History, row: DeliveryRow) -> list[str]:
    """What is wrong with one delivery."""
    found = []
    event = history.event_rows.get(row.event)
    if event is not None and _names(row) != _names(event):
        found.append("altered")
    if event is None and invented(history, row):
        found.append("never_published")
    if history.complete:
        holding = history.holdings.get((row.subscriber, row.topic))
        if not (NOT_HELD if holding is None else holding.at(row)).held:
            found.append("not_held")
    return found


def invented(history: History, row: DeliveryRow) -> bool:
    """Whether the event of a delivery, absent from the events, was published by nobody at all."""
    if not history.complete or not history.elsewhere:
        return history.complete
    lowest, highest = history.numbers.get((row.publisher, row.epoch), (row.seq + 1, row.seq))
    return lowest <= row.seq <= highest


def _names(row: DeliveryRow | EventRow) -> tuple[str, str, int, int]:
    return (row.topic, row.publisher, row.epoch, row.seq)
