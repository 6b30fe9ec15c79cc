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


def causal(history: History) -> int:
    topics = sorted({event.topic for event in history.events or ()})
    return sum(
        _late(history, [event for event in history.events or () if event.topic == topic])
        for topic in topics
    )


def across_topics(history: History) -> int:
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
    count = 0
    for name in sorted({row.subscriber for row in history.subscriptions or ()}):
        mine = {row.event for row in history.deliveries if row.subscriber == name}
        for event in history.events or ():
            accepted = event.accepted_at is not None or not history.accepted_known
            if accepted and event.event not in mine:
                count += _owed(history, name, event)
    return count


def integrity(history: History) -> int:
    count = 0
    published = {event.event: event for event in history.events or ()}
    for row in history.deliveries:
        event = published.get(row.event)
        if event is not None:
            names = (event.topic, event.publisher, event.seq)
            count += (row.topic, row.publisher, row.seq) != names
        if history.complete:
            count += event is None
            count += _at(history, row) is None
    return count


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
    "causal": causal,
    "across_topics": across_topics,
    "fifo": fifo,
    "per_publisher": per_publisher,
    "unique": unique,
    "reliable": reliable,
    "integrity": integrity,
    "filter": filter,
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
            if e.publisher == f.publisher and e.seq < f.seq:
                causes.add((e.event, f.event))
        for row in history.deliveries:
            if row.subscriber == f.publisher and row.event in names and _seen(row, f):
                causes.add((row.event, f.event))
    causes = _closure(causes)
    in_order = [row for row in history.deliveries if row.in_order]
    return sum(
        any(_earlier(effect, row) and (row.event, effect.event) in causes for effect in in_order)
        for row in in_order
    )


def _seen(row: DeliveryRow, event: EventRow) -> bool:
    if event.after is not None:
        return row.nth <= event.after
    return row.delivered_at <= event.published_at


def _late_numbers(history: History, same: Callable[[DeliveryRow, DeliveryRow], bool]) -> int:
    in_order = [row for row in history.deliveries if row.in_order]
    return sum(
        any(_earlier(other, row) and same(other, row) and other.seq > row.seq for other in in_order)
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


def _owed(history: History, name: str, event: EventRow) -> bool:
    """Held by a row before the publication, and held and matching after that and each later one."""
    rows = _changes(history, name)
    before = sum(row.at < event.published_at for row in rows)
    return all(
        (held := _replay(rows[:count], event.topic)) is not None and _passes(held, event)
        for count in range(before, len(rows) + 1)
    )


def _passes(held: Filter, event: EventRow) -> bool:
    where, parameters = held
    return where is None or matches(where, parameters, json.loads(event.attributes))
