"""The judges once more, slow and obvious, for the tests to compare with.

Nothing here is shared with the fast judges but the rows themselves: every definition is written
down again as directly as it can be said, and counted by brute force.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import combinations

from inorder.check.history import History
from inorder.check.predicate import matches
from inorder.check.trace import DeliveryRow, EventRow, SubscriptionRow

Filter = tuple[str | None, dict[str, object]]


def total(history: History) -> int:
    count = 0
    for a, b in combinations(_subscribers(history), 2):
        at_a, at_b = _places(history, a), _places(history, b)
        for e, f in combinations(sorted(set(at_a) & set(at_b)), 2):
            count += (at_a[e] < at_a[f]) != (at_b[e] < at_b[f])
    return count


def acyclic(history: History) -> int:
    before = set()
    for name in _subscribers(history):
        at = _places(history, name)
        before |= {(e, f) for e in at for f in at if at[e] < at[f]}
    before = _closure(before)
    events = sorted({e for pair in before for e in pair})
    tangles = {
        frozenset(f for f in events if (e, f) in before and (f, e) in before)
        for e in events
        if (e, e) in before
    }
    return len(tangles)


def position(history: History) -> int:
    at = {event.event: event.position for event in history.events or ()}
    count = 0
    for name in _subscribers(history):
        places = {e: nth for e, nth in _places(history, name).items() if at.get(e) is not None}
        count += sum(
            any(places[e] < places[f] and at[e] >= at[f] for e in places)  # type: ignore[operator]
            for f in places
        )
    return count


def causal(history: History) -> int:
    topics = sorted({event.topic for event in history.events or ()})
    return sum(
        _late(history, [event for event in history.events or () if event.topic == topic])
        for topic in topics
    )


def causal_across_topics(history: History) -> int:
    return _late(history, list(history.events or ()))


def fifo(history: History) -> int:
    return _late_numbers(history, lambda d, e: (d.publisher, d.topic) == (e.publisher, e.topic))


def per_publisher(history: History) -> int:
    return _late_numbers(history, lambda d, e: d.publisher == e.publisher)


def unique(history: History) -> int:
    return sum(
        any(_earlier(other, row) and other.event == row.event for other in history.deliveries)
        for row in history.deliveries
    )


def reliable(history: History) -> int:
    return sum(owed and not got for _, owed, got in _pairs(history))


def deliverable(history: History) -> int:
    return sum(may for may, _, _ in _pairs(history))


def owed(history: History) -> int:
    return sum(owed for _, owed, _ in _pairs(history))


def accepted(history: History) -> int:
    end = history.ending
    return sum(
        event.outcome is None
        and event.accepted_at is None
        and (end is None or end.quiet or end.ended_at - event.published_at >= end.within)
        for event in history.events or ()
    )


def realtime(history: History) -> int:
    events = {event.event: event for event in history.events or ()}
    error = history.clock_error or 0.0
    precedes = {
        (e.event, f.event)
        for e in events.values()
        for f in events.values()
        if e.accepted_at is not None and e.accepted_at + error < f.published_at
    }
    in_order = [row for row in history.deliveries if row.in_order]
    return sum(
        any(_earlier(other, row) and (row.event, other.event) in precedes for other in in_order)
        for row in in_order
    )


def integrity(history: History) -> int:
    count = 0
    published = {event.event: event for event in history.events or ()}
    for row in history.deliveries:
        event = published.get(row.event)
        if event is not None:
            names = (event.topic, event.publisher, event.epoch, event.seq)
            count += (row.topic, row.publisher, row.epoch, row.seq) != names
        if history.complete:
            count += event is None and not _from_elsewhere(history, row)
            count += _at(history, row) is None
    return count


def _from_elsewhere(history: History, row: DeliveryRow) -> bool:
    life = (row.publisher, row.epoch)
    mine = [each.seq for each in history.events or () if (each.publisher, each.epoch) == life]
    before, after = (any(n <= row.seq for n in mine), any(n >= row.seq for n in mine))
    return history.elsewhere and not (before and after)


def filter(history: History) -> int:
    count = 0
    published = {event.event: event for event in history.events or ()}
    for row in history.deliveries:
        held = _at(history, row)
        if row.event in published and held is not None:
            count += not _passes(held, published[row.event])
    return count


SLOW: dict[str, Callable[[History], int]] = {
    "total": total,
    "acyclic": acyclic,
    "position": position,
    "causal": causal,
    "causal_across_topics": causal_across_topics,
    "fifo": fifo,
    "per_publisher": per_publisher,
    "unique": unique,
    "reliable": reliable,
    "integrity": integrity,
    "filter": filter,
    "accepted": accepted,
    "realtime": realtime,
}


def _subscribers(history: History) -> list[str]:
    return sorted({row.subscriber for row in history.deliveries})


def _earlier(row: DeliveryRow, other: DeliveryRow) -> bool:
    return row.subscriber == other.subscriber and row.nth < other.nth


def _places(history: History, name: str) -> dict[str, int]:
    """The place of each event's first delivery in order."""
    places: dict[str, int] = {}
    for row in history.deliveries:
        if row.subscriber == name and row.in_order:
            places[row.event] = min(row.nth, places.get(row.event, row.nth))
    return places


def _closure(edges: set[tuple[str, str]]) -> set[tuple[str, str]]:
    nodes = sorted({node for edge in edges for node in edge})
    closed = set(edges)
    for middle in nodes:
        for first in nodes:
            if (first, middle) in closed:
                closed |= {(first, last) for last in nodes if (middle, last) in closed}
    return closed


def _late(history: History, events: list[EventRow]) -> int:
    names = {event.event for event in events}
    causes = set()
    for f in events:
        for e in events:
            if e.topic == f.topic and _published_before(history, e, f):
                causes.add((e.event, f.event))
        for row in history.deliveries:
            if row.event in names and row.nth <= _handed(history, f, row.subscriber):
                causes.add((row.event, f.event))
    causes = _closure(causes)
    in_order = [row for row in history.deliveries if row.in_order]
    return sum(
        any(_earlier(effect, row) and (row.event, effect.event) in causes for effect in in_order)
        for row in in_order
    )


def _handed(history: History, f: EventRow, subscriber: str) -> int:
    """How many deliveries of the subscriber the application of f had been handed by then."""
    told = [
        json.loads(e.seen).get(subscriber, 0)
        for e in history.events or ()
        if e.seen is not None and (e is f or _published_before(history, e, f))
    ]
    return max(told, default=0)


def _published_before(history: History, e: EventRow, f: EventRow) -> bool:
    """By the same application: by number, or by its clock if it has several publishers."""
    ours = _application(f)
    if _application(e) != ours:
        return False
    publishers = {row.publisher for row in history.events or () if _application(row) == ours}
    if len(publishers) == 1:
        return (e.epoch, e.seq) < (f.epoch, f.seq)
    number_e, number_f = (e.publisher, e.epoch, e.seq), (f.publisher, f.epoch, f.seq)
    return (e.published_at, number_e) < (f.published_at, number_f)


def _application(event: EventRow) -> str:
    return event.publisher if event.application is None else event.application


def _late_numbers(history: History, same: Callable[[DeliveryRow, DeliveryRow], bool]) -> int:
    in_order = [row for row in history.deliveries if row.in_order]
    return sum(
        any(
            _earlier(other, row)
            and same(other, row)
            and (other.epoch > row.epoch or (other.epoch == row.epoch and other.seq > row.seq))
            for other in in_order
        )
        for row in in_order
    )


def _changes(history: History, name: str) -> list[SubscriptionRow]:
    rows = [row for row in history.subscriptions or () if row.subscriber == name]
    return sorted(rows, key=lambda row: (row.at, row.after or 0))


def _replay(rows: list[SubscriptionRow], topic: str) -> Filter | None:
    """The filter with which the topic is held after these rows; None when it is not held."""
    held: Filter | None = None
    for row in rows:
        if topic not in row.topics and (row.topics or row.op == "subscribe"):
            continue
        given = json.loads(row.parameters)
        if row.op == "subscribe":
            held = (row.where, given)
        elif row.op == "unsubscribe":
            held = None
        elif held is not None:
            where, parameters = held
            held = (row.where or where, {**parameters, **given})
    return held


def _at(history: History, delivery: DeliveryRow) -> Filter | None:
    """What was held of the delivery's topic: all up to the last row about it that came before."""
    rows = _changes(history, delivery.subscriber)
    for count in range(len(rows), 0, -1):
        row = rows[count - 1]
        until, held = (_replay(rows[:end], delivery.topic) for end in (count - 1, count))
        all_held = not row.topics and row.op != "subscribe"
        about = delivery.topic in row.topics or (all_held and until is not None)
        if about and _before(row, delivery, held is not None):
            return held
    return None


def _before(row: SubscriptionRow, delivery: DeliveryRow, held: bool) -> bool:
    if row.after is not None:
        return delivery.nth > row.after
    return row.at <= delivery.delivered_at if held else row.at < delivery.delivered_at


def _pairs(history: History) -> list[tuple[bool, bool, bool]]:
    """Of every subscriber and accepted event: may it be delivered, is it owed, was it delivered?"""
    found = []
    for name in sorted({row.subscriber for row in history.subscriptions or ()}):
        mine = {row.event for row in history.deliveries if row.subscriber == name}
        for event in history.events or ():
            if event.accepted_at is not None or not history.accepted_known:
                found.append((*_due(history, name, event), event.event in mine))
    return found


def _due(history: History, name: str, event: EventRow) -> tuple[bool, bool]:
    """The time between any two changes is looked at by itself: what was held, and did it match?"""
    begin, published = event.published_at - history.within, event.published_at
    accepted = published if event.accepted_at is None else event.accepted_at
    until = max(accepted, published) + history.within
    end = history.ending
    last = history.latest if end is None else end.ended_at
    rows = _changes(history, name)
    changed = [row.at for row in rows]
    spans = []  # from when, until when, what was held meanwhile
    for count in range(1, len(rows) + 1):
        after = changed[count] if count < len(rows) else None
        spans.append((changed[count - 1], after, _replay(rows[:count], event.topic)))
    forever = end is not None and end.quiet
    deliverable = owed = False
    run: list[tuple[float, float | None, Filter]] = []

    def close(ended: float | None) -> None:
        nonlocal deliverable, owed
        if not run or run[0][0] > until or (ended is not None and ended < published):
            return
        fits = [
            _passes(held, event)
            for since, to, held in run
            if since <= until and (to is None or to >= begin)
        ]
        deliverable = deliverable or any(fits)
        long_enough = ended > until if ended is not None else forever or last >= until
        owed = owed or (run[0][0] < published and long_enough and all(fits))

    for since, to, held in spans:
        if held is None:
            close(since)
            run = []
        else:
            run.append((since, to, held))
    close(None)
    return deliverable, owed


def _passes(held: Filter, event: EventRow) -> bool:
    where, parameters = held
    return where is None or matches(where, parameters, json.loads(event.attributes))
