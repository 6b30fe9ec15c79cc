"""Position: a subscriber delivers events in the order of their positions.

Where events have positions (offsets of one log, or cuts over several), there is one order that
stands for everybody. `total` asks whether subscribers agree with each other; this judge asks
whether they agree with that order, so that it also judges a subscriber that is alone.

What a subscriber was handed is read by `nth`, which it counted itself. Read by position, every log
would look total.

Definitions. Only deliveries in order count, and of those a subscriber's first of each event.
Counting. One violation is such a delivery at a position that is not above those of all delivered
before it. Two events at one position are one, too. The witness is the closest pair: the least
distance of places, then by subscriber, then the earliest.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from inorder.check.history import History
from inorder.check.verdict import Verdict, judged, not_judged

BROKE_POSITION = "broke Position - a subscriber delivers events in the order of their positions"

NO_POSITIONS = "needs the positions of events: of a network they have none"

# (distance, subscriber, place of the late one, place before)
_Closest = tuple[int, str, int, int]


def check(history: History) -> Verdict:
    positions = {
        row.event: row.position for row in history.events or () if row.position is not None
    }
    if not positions:
        return not_judged("position", NO_POSITIONS)
    counts = dict.fromkeys(("late", "in_order_deliveries", "unplaced"), 0)
    closest: _Closest | None = None
    for name, rows in history.by_subscriber.items():
        first = {row.event: row.nth for row in reversed(rows) if row.in_order}
        counts["in_order_deliveries"] += len(first)
        placed = sorted((nth, positions[e]) for e, nth in first.items() if e in positions)
        counts["unplaced"] += len(first) - len(placed)
        highest = -1
        for _, position in placed:
            counts["late"] += position <= highest
            highest = max(highest, position)
        for (before, above), (nth, position) in pairwise(placed):
            if position <= above:
                found = (nth - before, name, nth, before)
                closest = found if closest is None else min(closest, found)
    witness = None if closest is None else _witness(history, positions, closest)
    return judged("position", counts["late"], counts, witness)


def _witness(history: History, positions: dict[str, int], closest: _Closest) -> dict[str, Any]:
    _, name, nth, before = closest
    event = {row.nth: row.event for row in history.by_subscriber[name]}
    events = [event[before], event[nth]]
    return {
        "events": events,
        "subscriber": name,
        "nths": [before, nth],
        "positions": [positions[each] for each in events],
    }
