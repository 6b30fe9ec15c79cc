"""Total: two subscribers never deliver the same two in-order events in opposite orders.

Definitions. Only deliveries in order count, and of those a subscriber's first of each event.
Subscribers a and b *disagree* about e and f when both delivered both, a e before f, b f before e.

Counting. One violation is an unordered pair of events for an unordered pair of subscribers. The
witness is the closest such pair: the least distance of places at the first-named of the two
subscribers, then the earliest place there, then the subscribers' names.

Where events have positions, `position` is judged beside it, and counts: whoever delivers against
the one order of all breaks total, also alone.

Beside it, `acyclic` is reported. If the union of all orders has no cycle, nobody disagrees; and
events that two subscribers disagree about lie in one tangle of it, so only tangles are counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise
from typing import Any

from inorder.check import position
from inorder.check.acyclic import judge_tangles, tangles
from inorder.check.history import History
from inorder.check.verdict import Verdict, judged

BROKE_TOTAL = (
    "broke Total - two subscribers never deliver the same two in-order events in opposite orders"
)

# (distance, place of the first at a, a, b, place of the second at a)
_Closest = tuple[int, int, str, str, int]
_Places = dict[str, dict[str, int]]


def check(history: History) -> Verdict:
    found = tangles(history.sequences)
    also = {"acyclic": judge_tangles(history, found), "position": position.check(history)}
    tangled = {event for events in found for event in events}
    places = _places(history, tangled)
    violations = 0
    disagreeing = 0
    closest: _Closest | None = None
    for a, b in combinations(places, 2):
        order = _common(places[a], places[b])
        if all(first[1] < then[1] for first, then in pairwise(order)):
            continue
        violations += inversions([at_b for _, at_b in order])
        disagreeing += 1
        least = min((then - first, first, a, b, then) for first, then in _turns(order))
        closest = least if closest is None else min(closest, least)
    counts = {
        "subscribers": len(history.sequences),
        "in_order_deliveries": sum(map(len, history.sequences.values())),
        "disagreeing_subscriber_pairs": disagreeing,
    }
    witness = None if closest is None else _witness(places, closest)
    return judged("total", violations, counts, witness, also)


def _places(history: History, tangled: set[str]) -> _Places:
    """Each subscriber's first in-order place of each tangled event, by `nth`."""
    places: _Places = {}
    for name, rows in history.by_subscriber.items():
        mine: dict[str, int] = {}
        for row in rows:
            if row.in_order and row.event in tangled:
                mine.setdefault(row.event, row.nth)
        if len(mine) > 1:
            places[name] = mine
    return places


def _common(at_a: dict[str, int], at_b: dict[str, int]) -> list[tuple[int, int]]:
    """(place at a, place at b) of the events both delivered, in a's order."""
    return [(place, at_b[event]) for event, place in at_a.items() if event in at_b]


def _turns(order: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Neighbours in a's order that b delivered the other way round, as places at a.

    Between any two events in opposite orders lies such a turn, so the closest pair is one.
    """
    for first, then in pairwise(order):
        if first[1] > then[1]:
            yield first[0], then[0]


def inversions(values: list[int]) -> int:
    """Pairs of distinct numbers that stand in falling order, counted in O(n log n).

    >>> inversions([3, 1, 2])
    2
    """
    rank = {value: place for place, value in enumerate(sorted(values), 1)}
    size = len(values)
    tree = [0] * (size + 1)  # Fenwick: how many of the values to the right are below a rank
    total = 0
    for value in reversed(values):
        at = rank[value]
        below = at
        while below:
            total += tree[below]
            below &= below - 1
        while at <= size:
            tree[at] += 1
            at += at & -at
    return total


def _witness(places: _Places, closest: _Closest) -> dict[str, Any]:
    _, first, a, b, then = closest
    event_at = {place: event for event, place in places[a].items()}
    e, f = event_at[first], event_at[then]
    return {
        "events": [e, f],
        "subscribers": [a, b],
        "nths": {a: [first, then], b: [places[b][e], places[b][f]]},
    }
