"""Causal: no subscriber delivers, in order, a cause after an effect it already delivered in order.

Definitions, from publish and deliver lines only (never from stamps). e -> f, "e is a cause of f",
when the application that published f had been handed e, tagged or not, before it published f (see
`seen`), or had itself published e earlier on the topic of f; and so on through chains. The order of
one publisher's events across topics is no cause: that is `per_publisher`.

Two promises. `causal` takes each topic by itself: only its events and deliveries make causes.
`causal_across_topics` takes all together.

Counting. One violation is an in-order delivery of e at a place where some f with e -> f has been
delivered in order before (a repeated delivery counts like any other). The witness is, of each
subscriber's first, the one closest to an effect of it, then by subscriber and `nth`. `untold` are
events that do not say what their application had been handed: their causes are not all known.
`absent` are deliveries in order of events that are not among the events: they are not judged.

How. With an event, all earlier ones of its application and topic (its *stream*) are causes: the
highest rank per stream says it all. What an application had been handed rises in steps (*rows*);
components of the rows come causes first, and a loop (only in a forged trace) is one component.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from inorder.check.graph import components
from inorder.check.history import History
from inorder.check.seen import handed
from inorder.check.trace import DeliveryRow, EventRow
from inorder.check.verdict import Verdict, judged, not_judged

BROKE_CAUSAL = (
    "broke Causal - no subscriber delivers in order a cause after an effect it already "
    "delivered in order"
)
BROKE_ACROSS = "broke Causal across topics - the same, with causes through any topic"

UNTOLD = "needs `seen` of the events: what their applications had been handed before they published"

_Vector = dict[tuple[str, str], int]

# (distance, subscriber, place of the cause, cause, effect, place of the effect)
_Closest = tuple[int, str, int, str, str, int]


def check(history: History) -> Verdict:
    return _check("causal", history, lambda event: event.topic)


def check_across(history: History) -> Verdict:
    return _check("causal_across_topics", history, lambda event: "")


def missing(history: History) -> str:
    """What the history lacks, or nothing."""
    if history.events is None:
        return "needs the events: who published what, and what they had seen"
    if history.events and all(event.seen is None for event in history.events):
        return UNTOLD
    return ""


def _check(promise: str, history: History, part: Callable[[EventRow], str]) -> Verdict:
    if why := missing(history):
        return not_judged(promise, why)
    late = caused = 0
    closest: _Closest | None = None
    for relation in _relations(history, part):
        caused += relation.caused
        for rows in relation.in_order():
            places = list(relation.late(rows))
            late += len(places)
            if places:
                found = relation.explain(rows, places[0])
                closest = found if closest is None else min(closest, found)
    known = [event in history.event_rows for row in history.sequences.values() for event in row]
    counts = {
        "late": late,
        "in_order_deliveries": sum(known),
        "absent": len(known) - sum(known),
        "events": len(history.events or ()),
        "caused": caused,
        "untold": sum(event.seen is None for event in history.events or ()),
    }
    return judged(promise, late, counts, None if closest is None else _witness(closest))


def _relations(history: History, part: Callable[[EventRow], str]) -> list[_Relation]:
    """The relation of each part of the events, with the deliveries of that part."""
    fresh = handed(history)
    relations: dict[str, _Relation] = {}
    for name, events in history.applications.items():
        waiting: dict[str, list[str]] = {}  # by part: handed over, and not yet a cause of anything
        for event in events:
            for row in fresh.get(event.event, ()):
                if row.event in history.event_rows:
                    at = part(history.event_rows[row.event])
                    waiting.setdefault(at, []).append(row.event)
            relation = relations.setdefault(part(event), _Relation())
            relation.add(name, event, waiting.pop(part(event), []))
    for subscriber, deliveries in history.by_subscriber.items():
        for row in deliveries:
            known = history.event_rows.get(row.event)
            if known is not None:  # an event never published is left to `integrity`
                relations[part(known)].deliveries.setdefault(subscriber, []).append(row)
    for relation in relations.values():
        relation.fill()
    return [relations[name] for name in sorted(relations)]


def _witness(closest: _Closest) -> dict[str, Any]:
    _, name, nth, cause, effect, before = closest
    return {
        "cause": cause,
        "effect": effect,
        "subscriber": name,
        "nths": {"effect": before, "cause": nth},
    }


class _Relation:
    """The causes among some events, as the highest rank of each stream in an event's past."""

    def __init__(self) -> None:
        self.deliveries: dict[str, list[DeliveryRow]] = {}
        self._stream: dict[str, tuple[str, str]] = {}
        self._rank: dict[str, int] = {}
        self._last: dict[tuple[str, str], int] = {}
        # Rows: what an application had been handed at last, and what before it. Row 0 is empty.
        self._row: dict[str, int] = {}
        self._row_of: dict[str, int] = {}
        self._fresh: list[list[str]] = [[]]
        self._previous: list[int] = [0]
        self._base: list[_Vector] = []

    def add(self, application: str, event: EventRow, fresh: list[str]) -> None:
        """The next event of an application, and what it was handed since the one before."""
        stream = (application, event.topic)
        self._stream[event.event] = stream
        self._rank[event.event] = self._last[stream] = self._last.get(stream, 0) + 1
        if fresh:
            self._previous.append(self._row_of.get(application, 0))
            self._fresh.append(fresh)
            self._row_of[application] = len(self._fresh) - 1
        self._row[event.event] = self._row_of.get(application, 0)

    @property
    def caused(self) -> int:
        """Events with a cause."""
        return sum(row > 0 or self._rank[event] > 1 for event, row in self._row.items())

    def in_order(self) -> Iterator[list[DeliveryRow]]:
        """Each subscriber's deliveries in order, by `nth`."""
        for rows in self.deliveries.values():
            yield [row for row in rows if row.in_order]

    def late(self, rows: list[DeliveryRow]) -> Iterator[int]:
        """The places in `rows` of causes that come after an effect of theirs."""
        past: _Vector = {}
        merged: dict[str, int] = {}  # the last row taken in, by application of the effect
        for at, row in enumerate(rows):
            stream, rank = self._stream[row.event], self._rank[row.event]
            if past.get(stream, 0) >= rank:
                yield at
            base = self._row[row.event]
            if base and merged.get(stream[0]) != base:
                _raise_to(past, self._base[base])
                merged[stream[0]] = base
            _raise_one(past, stream, rank - 1)

    def explain(self, rows: list[DeliveryRow], at: int) -> _Closest:
        """The late delivery with the nearest effect before it; sorts by distance."""
        late = rows[at]
        stream, rank = self._stream[late.event], self._rank[late.event]
        for row in reversed(rows[:at]):
            own = self._rank[row.event] - 1 if self._stream[row.event] == stream else 0
            if max(own, self._base[self._row[row.event]].get(stream, 0)) >= rank:
                distance = late.nth - row.nth
                return (distance, late.subscriber, late.nth, late.event, row.event, row.nth)
        raise AssertionError("a late delivery has an effect before it")

    def fill(self) -> None:
        """Give every row its vector, causes first."""
        successors = [
            [previous, *(self._row[event] for event in fresh)]
            for previous, fresh in zip(self._previous, self._fresh, strict=True)
        ]
        self._base = [{} for _ in successors]
        for component in components(successors):
            vector: _Vector = {}
            for row in component:
                for other in successors[row]:
                    _raise_to(vector, self._base[other])
                for event in self._fresh[row]:
                    _raise_one(vector, self._stream[event], self._rank[event])
            for row in component:
                self._base[row] = vector


def _raise_to(past: _Vector, other: _Vector) -> None:
    for stream, rank in other.items():
        if past.get(stream, 0) < rank:
            past[stream] = rank


def _raise_one(past: _Vector, stream: tuple[str, str], rank: int) -> None:
    if past.get(stream, 0) < rank:
        past[stream] = rank
