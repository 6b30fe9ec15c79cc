"""Causal: no subscriber delivers, in order, a cause after an effect it already delivered in order.

Definitions, from publish and deliver lines only (never from stamps). e -> f, "e is a cause of f",
when the publisher of f had published e earlier (a smaller number), or had delivered e, tagged or
not, before it published f; and so on through chains. A node has one name as publisher and as
subscriber. A delivery comes before a publication of the same node when its `nth` is not beyond
the publication's `after`; where that is null, when its time is not later.

Counting. One violation is an in-order delivery of e at a place where some f with e -> f has been
delivered in order before (a repeated delivery counts like any other). The witness is, of each
subscriber's first, the one closest to an effect of it, then by subscriber and `nth`. The main
verdict takes each topic by itself: only its events and deliveries make causes. `across_topics`
takes all together.

How. The causes of f hold, with an event, all earlier ones of its publisher: the highest number per
publisher says it all. Components of the cause graph come causes first; a loop of causes (only in
a forged trace) makes each of its events a cause of all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from inorder.check.graph import components
from inorder.check.history import History
from inorder.check.trace import DeliveryRow, EventRow
from inorder.check.verdict import Verdict, judged, not_judged

BROKE_CAUSAL = (
    "broke Causal - no subscriber delivers in order a cause after an effect it already "
    "delivered in order"
)
BROKE_ACROSS = "broke Causal across topics - the same, with causes through any topic"

_Vector = dict[str, int]
_Deliveries = dict[str, list[DeliveryRow]]

# (distance, subscriber, place of the cause, cause, effect, place of the effect)
_Closest = tuple[int, str, int, str, str, int]


def check(history: History) -> Verdict:
    if why := missing(history):
        return not_judged("causal", why)
    verdict = _verdict("causal", history, _relations(history, lambda event: event.topic))
    across = _verdict("across_topics", history, _relations(history, lambda event: ""))
    verdict.also["across_topics"] = across
    return verdict


def missing(history: History) -> str:
    """What the history lacks, or nothing."""
    if history.events is None:
        return "needs the events: who published what, and after which deliveries"
    if history.bare and any(event.after is None for event in history.events):
        return "needs `after` on every event, since the deliveries carry no times"
    return ""


def _relations(history: History, part: Callable[[EventRow], str]) -> list[_Relation]:
    """The relation of each part of the events, with the deliveries of that part."""
    events: dict[str, list[EventRow]] = {}
    for event in history.events or ():
        events.setdefault(part(event), []).append(event)
    rows: dict[str, _Deliveries] = {name: {} for name in events}
    for subscriber, deliveries in history.by_subscriber.items():
        for row in deliveries:
            found = history.event_rows.get(row.event)
            if found is not None:  # an event never published is left to `integrity`
                rows[part(found)].setdefault(subscriber, []).append(row)
    return [_Relation(events[name], rows[name]) for name in sorted(events)]


def _verdict(promise: str, history: History, relations: list[_Relation]) -> Verdict:
    late = 0
    closest: _Closest | None = None
    for relation in relations:
        for rows in relation.in_order():
            places = list(relation.late(rows))
            late += len(places)
            if places:
                found = relation.explain(rows, places[0])
                closest = found if closest is None else min(closest, found)
    checked = sum(map(len, history.sequences.values()))
    counts = {"late": late, "in_order_deliveries": checked}
    return judged(promise, late, counts, None if closest is None else _witness(closest))


def _witness(closest: _Closest) -> dict[str, Any]:
    _, name, nth, cause, effect, before = closest
    return {
        "cause": cause,
        "effect": effect,
        "subscriber": name,
        "nths": {"effect": before, "cause": nth},
    }


class _Relation:
    """The causes among some events, as the highest number of each publisher in an event's past."""

    def __init__(self, events: list[EventRow], deliveries: _Deliveries) -> None:
        self._deliveries = deliveries
        self._events = {row.event: row for row in sorted(events, key=_number)}
        # The past of an event is its base and what its publisher published before it. Bases are
        # shared by events between which the publisher delivered nothing.
        self._base: dict[str, _Vector] = {}
        self._before: dict[str, int] = {}
        self._fill()

    def in_order(self) -> Iterator[list[DeliveryRow]]:
        """Each subscriber's deliveries in order, by `nth`."""
        for rows in self._deliveries.values():
            yield [row for row in rows if row.in_order]

    def late(self, rows: list[DeliveryRow]) -> Iterator[int]:
        """The places in `rows` of causes that come after an effect of theirs."""
        past: _Vector = {}
        merged: dict[str, _Vector] = {}  # the last base taken in, by publisher of the effect
        for at, row in enumerate(rows):
            event = self._events[row.event]
            if past.get(event.publisher, 0) >= event.seq:
                yield at
            base = self._base[event.event]
            if merged.get(event.publisher) is not base:
                _raise_to(past, base)
                merged[event.publisher] = base
            _raise_one(past, event.publisher, self._before[event.event])

    def explain(self, rows: list[DeliveryRow], at: int) -> _Closest:
        """The late delivery with the nearest effect before it; sorts by distance."""
        late = rows[at]
        cause = self._events[late.event]
        for row in reversed(rows[:at]):
            effect = self._events[row.event]
            own = self._before[row.event] if effect.publisher == cause.publisher else 0
            if max(own, self._base[row.event].get(cause.publisher, 0)) >= cause.seq:
                distance = late.nth - row.nth
                name, nth = late.subscriber, late.nth
                return (distance, name, nth, cause.event, effect.event, row.nth)
        raise AssertionError("a late delivery has an effect before it")

    def _fill(self) -> None:
        """Give every event its past, causes first."""
        names = list(self._events)
        number = {name: place for place, name in enumerate(names)}
        before = self._previous()
        seen = self._seen_before()
        causes = [
            [number[name] for name in [*before.get(event, ()), *seen.get(event, ())]]
            for event in names
        ]
        for component in components(causes):
            members = [names[member] for member in component]
            fresh = [name for event in members for name in seen.get(event, ())]
            if len(members) > 1 or causes[component[0]].count(component[0]):
                fresh += members
            previous = [name for event in members for name in before.get(event, ())]
            base = self._merge(previous, fresh)
            for event in members:
                self._base[event] = base
                self._before[event] = max(
                    (self._events[name].seq for name in before.get(event, ())), default=0
                )

    def _merge(self, previous: list[str], fresh: list[str]) -> _Vector:
        """The base shared by the events of a component."""
        if not fresh and previous:
            return self._base[previous[0]]
        base: _Vector = {}
        for name in previous + fresh:
            event = self._events[name]
            _raise_to(base, self._base.get(name, {}))
            _raise_one(base, event.publisher, event.seq)
        return base

    def _previous(self) -> dict[str, list[str]]:
        """The event its publisher published just before, if any."""
        last: dict[str, str] = {}
        found = {}
        for event in self._events.values():
            if event.publisher in last:
                found[event.event] = [last[event.publisher]]
            last[event.publisher] = event.event
        return found

    def _seen_before(self) -> dict[str, list[str]]:
        """What its publisher delivered before an event, and not before an earlier one of its own.

        Positions and times are walked apart, for nothing says that they rise together.
        """
        found: dict[str, list[str]] = {}
        walks: dict[str, _Walk] = {}
        for event in self._events.values():
            if event.publisher not in walks:
                walks[event.publisher] = _Walk(self._deliveries.get(event.publisher, []))
            fresh = walks[event.publisher].upto(event)
            if fresh:
                found[event.event] = fresh
        return found


class _Walk:
    """One node's deliveries, handed out once, up to each of its publications in turn."""

    def __init__(self, rows: list[DeliveryRow]) -> None:
        self._by_nth = rows
        self._by_time = sorted(rows, key=lambda row: row.delivered_at)
        self._at_nth = 0
        self._at_time = 0

    def upto(self, event: EventRow) -> list[str]:
        fresh = []
        if event.after is not None:
            rows, at = self._by_nth, self._at_nth
            while at < len(rows) and rows[at].nth <= event.after:
                fresh.append(rows[at].event)
                at += 1
            self._at_nth = at
        else:
            rows, at = self._by_time, self._at_time
            while at < len(rows) and rows[at].delivered_at <= event.published_at:
                fresh.append(rows[at].event)
                at += 1
            self._at_time = at
        return fresh


def _number(event: EventRow) -> tuple[str, int]:
    return (event.publisher, event.seq)


def _raise_to(past: _Vector, other: _Vector) -> None:
    for publisher, seq in other.items():
        if past.get(publisher, 0) < seq:
            past[publisher] = seq


def _raise_one(past: _Vector, publisher: str, seq: int) -> None:
    if past.get(publisher, 0) < seq:
        past[publisher] = seq
