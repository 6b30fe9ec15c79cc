"""Filter: a filtered subscription delivers only events that match it at that moment.

Definitions. The predicate and parameters in force at a delivery are those of the holding's state
then (see `holding`). An event matches when the predicate is true of its attributes; unknown is
not true (see `predicate`).

Counting. One violation is a delivery, tagged or not, of an event that does not match. Deliveries
on topics not held, and of events never published, are left to `integrity`. The witness is the
earliest violation by time, then by subscriber and `nth`.
"""

from __future__ import annotations

from inorder.check.history import History
from inorder.check.holding import State
from inorder.check.predicate import matches
from inorder.check.trace import DeliveryRow, EventRow
from inorder.check.verdict import Verdict, judged, not_judged
from inorder.core.errors import BadTrace, Misuse

BROKE_FILTER = (
    "broke Filter - a filtered subscription delivers only events that match it at that moment"
)


def check(history: History) -> Verdict:
    if why := missing(history):
        return not_judged("filter", why)
    checked = 0
    strangers = 0
    earliest: tuple[float, str, int] | None = None
    worst: tuple[DeliveryRow, State] | None = None
    for row in history.deliveries:
        holding = history.holdings.get((row.subscriber, row.topic))
        event = history.event_rows.get(row.event)
        if holding is None or event is None:
            continue
        state = holding.at(row)
        if state.where is None:
            continue
        checked += 1
        if matches_state(history, state, event):
            continue
        strangers += 1
        key = (row.delivered_at, row.subscriber, row.nth)
        if earliest is None or key < earliest:
            earliest, worst = key, (row, state)
    witness = None
    if worst is not None:
        row, state = worst
        witness = {
            "event": row.event,
            "subscriber": row.subscriber,
            "nth": row.nth,
            "where": state.where,
            "parameters": state.parameters,
            "attributes": history.attributes(history.event_rows[row.event]),
        }
    return judged("filter", strangers, {"checked": checked, "strangers": strangers}, witness)


def missing(history: History) -> str:
    """What the history lacks, or nothing."""
    if history.events is None or history.subscriptions is None:
        return "needs the events and the subscriptions"
    if history.bare:
        return "needs topic and time of each delivery"
    if not history.complete:
        return "the trace is not complete: a change of parameters may be missing"
    return ""


def matches_state(history: History, state: State, event: EventRow) -> bool:
    """Whether the event passes the filter of a state; a state without one passes everything."""
    if state.where is None:
        return True
    try:
        return matches(state.where, state.parameters, history.attributes(event))
    except Misuse as error:
        raise BadTrace(history.source, f"a subscription holds {state.where!r}: {error}") from None
