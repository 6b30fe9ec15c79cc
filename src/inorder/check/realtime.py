"""Realtime: what was accepted before another event was published is delivered before it.

Definitions. e *precedes* f when e was accepted strictly before f was published. Times of two hosts
differ by up to the error of their clocks, so between hosts e precedes f only when the error lies
between the two moments. Within one simulated run, or on one host, there is one clock.

Counting. One violation is an in-order delivery of e at a place where some f that e precedes has
been delivered in order before. The witness is, of each subscriber's first, the one closest to such
an f, then by subscriber and `nth`. Events whose acceptance nobody recorded precede nothing, and are
counted (`unaccepted`); so are deliveries of events that are not among the events (`absent`).
"""

from __future__ import annotations

from math import inf
from typing import Any

from inorder.check.history import History
from inorder.check.trace import DeliveryRow
from inorder.check.verdict import Verdict, judged, not_judged

BROKE_REALTIME = (
    "broke Realtime - an event accepted before another was published is delivered before it"
)

NO_TIMES = "needs the events with the times of their publication and acceptance"
CLOCKS = "the events were timed by clocks that may differ: name their error (--clock-error)"

# (distance, subscriber, place of the late one, late event, event before, its place)
_Closest = tuple[int, str, int, str, str, int]


def check(history: History) -> Verdict:
    if why := missing(history):
        return not_judged("realtime", why)
    assert history.clock_error is not None, "`missing` was asked first"
    accepted, published = times(history)
    late = unaccepted = checked = absent = 0
    closest: _Closest | None = None
    for rows in history.by_subscriber.values():
        in_order = [row for row in rows if row.in_order and row.event in published]
        checked += len(in_order)
        absent += sum(row.in_order and row.event not in published for row in rows)
        unaccepted += sum(accepted[row.event] == inf for row in in_order)
        places = _late(in_order, accepted, published)
        late += len(places)
        if places:
            found = _explain(in_order, places[0], accepted, published)
            closest = found if closest is None else min(closest, found)
    counts = {"late": late, "in_order_deliveries": checked, "absent": absent}
    counts["unaccepted"] = unaccepted
    witness = None if closest is None else _witness(closest, history)
    return judged("realtime", late, counts, witness)


def missing(history: History) -> str:
    """What the history lacks, or nothing."""
    if history.events is None or not history.accepted_known:
        return NO_TIMES
    return CLOCKS if history.clock_error is None else ""


def times(history: History) -> tuple[dict[str, float], dict[str, float]]:
    """By event: the moment behind which it precedes what is published, and its publication."""
    error = history.clock_error or 0.0
    accepted = {
        event.event: inf if event.accepted_at is None else event.accepted_at + error
        for event in history.events or ()
    }
    return accepted, {event.event: event.published_at for event in history.events or ()}


def _late(
    rows: list[DeliveryRow], accepted: dict[str, float], published: dict[str, float]
) -> list[int]:
    latest = -inf
    found = []
    for at, row in enumerate(rows):
        if accepted[row.event] < latest:
            found.append(at)
        latest = max(latest, published[row.event])
    return found


def _explain(
    rows: list[DeliveryRow], at: int, accepted: dict[str, float], published: dict[str, float]
) -> _Closest:
    late = rows[at]
    before = next(row for row in reversed(rows[:at]) if accepted[late.event] < published[row.event])
    distance = late.nth - before.nth
    return (distance, late.subscriber, late.nth, late.event, before.event, before.nth)


def _witness(closest: _Closest, history: History) -> dict[str, Any]:
    _, name, nth, late, before, place = closest
    return {
        "late": late,
        "before": before,
        "subscriber": name,
        "accepted_at": history.event_rows[late].accepted_at,
        "published_at": history.event_rows[before].published_at,
        "nths": {"before": place, "late": nth},
    }
