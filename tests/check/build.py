"""Small histories, written as one would say them.

>>> history = build(
...     publish("p:1", "t"), publish("p:2", "t"),
...     deliver("a", "p:1 p:2"),
... )
"""

from __future__ import annotations

import json
from typing import Any

from inorder.check import History
from inorder.check.ending import Ending
from inorder.check.trace import DeliveryRow, EventRow, SubscriptionRow

# A run that ended with nothing under way, timed by one clock; and no window, so that a test says
# what it means to the moment.
QUIET = {"ending": Ending(quiet=True, ended_at=100.0, within=0.0), "clock_error": 0.0}


def publish(
    event: str,
    topic: str = "t",
    at: float = 1.0,
    seen: str | None = "",
    accepted: bool = True,
    application: str | None = None,
    outcome: str | None = None,
    took: float = 0.5,
    position: int | None = None,
    **attributes: Any,
) -> EventRow:
    """`p:1` is of the first life, `p:2:1` of the second.

    `seen` in short: `"b 1 c 2"` is one delivery of b and two of c; None is not recorded."""
    publisher, *epoch, seq = event.split(":")
    words = (seen or "").split()
    counts = {name: int(count) for name, count in zip(words[::2], words[1::2], strict=True)}
    return EventRow(
        event,
        topic,
        publisher,
        int(seq),
        at,
        at + took if accepted else None,
        outcome,
        application,
        None if seen is None else json.dumps(counts),
        attributes=json.dumps(attributes),
        epoch=int(epoch[0]) if epoch else 1,
        position=position,
    )


def deliver(subscriber: str, events: str) -> list[tuple[str, str]]:
    """A subscriber's deliveries in turn; `?p:1` is one that was tagged late."""
    return [(subscriber, event) for event in events.split()]


def subscribe(
    subscriber: str,
    topics: str = "t",
    at: float = 0.0,
    after: int | None = 0,
    where: str | None = None,
    op: str = "subscribe",
    **parameters: Any,
) -> SubscriptionRow:
    return SubscriptionRow(subscriber, op, topics.split(), where, json.dumps(parameters), at, after)


def unsubscribe(
    subscriber: str, topics: str = "t", at: float = 5.0, after: int | None = 0
) -> SubscriptionRow:
    return subscribe(subscriber, topics, at, after, op="unsubscribe")


def change(
    subscriber: str, topics: str = "t", at: float = 5.0, after: int | None = 0, **parameters: Any
) -> SubscriptionRow:
    return subscribe(subscriber, topics, at, after, op="set", **parameters)


def build(*rows: Any, **flags: Any) -> History:
    """A history; deliveries take topic and time from the event, and count their places."""
    events = [row for row in rows if isinstance(row, EventRow)]
    changes = [row for row in rows if isinstance(row, SubscriptionRow)]
    published = {row.event: row for row in events}
    places: dict[str, int] = {}
    deliveries = []
    for subscriber, word in [pair for row in rows if isinstance(row, list) for pair in row]:
        event = word.removeprefix("?")
        row = published.get(event) or publish(event, at=0.0)
        place = places[subscriber] = places.get(subscriber, 0) + 1
        at = row.published_at + place / 100
        deliveries.append(
            DeliveryRow(
                subscriber,
                place,
                event,
                row.topic,
                row.publisher,
                row.seq,
                row.published_at,
                at,
                at,
                in_order=not word.startswith("?"),
                epoch=row.epoch,
            )
        )
    return History(deliveries, events, changes, **{**QUIET, **flags})
