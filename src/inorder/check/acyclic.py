"""Is there one order of all events that every subscriber's order is a part of?

Definitions. The *union* is the graph over events with an edge e -> f for each subscriber that
delivered e before f, both in order (its first in-order delivery of each). One common order exists
exactly when the union has no cycle. Pairwise agreement (`total`) is weaker: three subscribers may
agree on all they share and still form a ring.

Counting. Each strongly connected component of more than one event is one violation. The witness is
a shortest cycle of the smallest component: its events, and for each step who delivered so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from inorder.check.graph import components
from inorder.check.history import History
from inorder.check.verdict import Verdict, judged

BROKE_ACYCLIC = "broke Acyclic - some one order of all events contains every subscriber's order"

# Beyond this many starting events of one component the shortest cycle may be missed by a step;
# the count never is. It keeps the search of a wholly disordered trace in seconds.
CYCLE_STARTS_MAX = 1000

Sequences = dict[str, list[str]]


def check(history: History) -> Verdict:
    return judge_tangles(history, tangles(history.sequences))


def judge_tangles(history: History, found: list[list[str]]) -> Verdict:
    """The verdict, given the tangles (so that `total` finds them only once)."""
    counts = {"tangles": len(found), "events_in_tangles": sum(map(len, found))}
    witness = None
    if found:
        smallest = min(found, key=lambda events: (len(events), events))
        witness = _witness(history, smallest)
    return judged("acyclic", len(found), counts, witness)


def tangles(sequences: Sequences) -> list[list[str]]:
    """The components of more than one event of the union, each sorted, sorted by first event.

    Edges between neighbours suffice: the others follow from them.
    """
    names = sorted({event for sequence in sequences.values() for event in sequence})
    number = {event: place for place, event in enumerate(names)}
    successors: list[list[int]] = [[] for _ in names]
    for sequence in sequences.values():
        numbers = [number[event] for event in sequence]
        for first, then in pairwise(numbers):
            successors[first].append(then)
    return sorted(
        [names[member] for member in sorted(component)]
        for component in components(successors)
        if len(component) > 1
    )


def _witness(history: History, events: list[str]) -> dict[str, Any]:
    inside = set(events)
    lines = [
        (name, [event for event in sequence if event in inside])
        for name, sequence in history.sequences.items()
    ]
    steps = _shortest([line for line in lines if len(line[1]) > 1], events)
    place = _first_places(history, {name for _, _, name in steps})
    return {
        "cycle": [first for first, _, _ in steps],
        "because": [
            {
                "subscriber": name,
                "first": first,
                "then": then,
                "nths": [place(name, first), place(name, then)],
            }
            for first, then, name in steps
        ],
    }


def _shortest(lines: list[tuple[str, list[str]]], events: list[str]) -> list[tuple[str, str, str]]:
    """The shortest cycle as steps (first, then, subscriber); two steps cannot be beaten."""
    places: dict[str, list[tuple[int, int]]] = {event: [] for event in events}
    for number, (_, sequence) in enumerate(lines):
        for place, event in enumerate(sequence):
            places[event].append((number, place))
    best: list[tuple[str, str, str]] = []
    for start in events[:CYCLE_STARTS_MAX]:
        cycle = _cycle_through(start, lines, places, len(best) or len(events) + 1)
        if cycle:
            best = cycle
        if len(best) == 2:
            break
    assert best, "a component of more than one event holds a cycle"
    return best


def _cycle_through(
    start: str,
    lines: list[tuple[str, list[str]]],
    places: dict[str, list[tuple[int, int]]],
    below: int,
) -> list[tuple[str, str, str]]:
    """A shortest cycle through `start` of fewer than `below` steps, breadth first, or nothing.

    Whatever a subscriber delivered after a visited event has been visited too, so each subscriber
    is walked once, backwards from its end: `uncovered` is where that walk has come to.
    """
    uncovered = [len(sequence) for _, sequence in lines]
    came: dict[str, tuple[str, str]] = {}
    queue = deque([(start, 0)])
    while queue:
        event, depth = queue.popleft()
        if depth + 1 >= below:
            return []
        for number, place in places[event]:
            name, sequence = lines[number]
            for other in sequence[place + 1 : uncovered[number]]:
                if other in came:
                    continue
                came[other] = (event, name)
                if other == start:
                    return _walk_back(start, came)
                queue.append((other, depth + 1))
            uncovered[number] = min(uncovered[number], place + 1)
    return []


def _walk_back(start: str, came: dict[str, tuple[str, str]]) -> list[tuple[str, str, str]]:
    steps = []
    then = start
    while True:
        first, name = came[then]
        steps.append((first, then, name))
        if first == start:
            return steps[::-1]
        then = first


def _first_places(history: History, names: set[str]) -> Callable[[str, str], int]:
    """Where a subscriber delivered an event in order for the first time."""
    found: dict[tuple[str, str], int] = {}
    for name in sorted(names):
        for row in history.by_subscriber[name]:
            if row.in_order:
                found.setdefault((name, row.event), row.nth)
    return lambda name, event: found[name, event]
