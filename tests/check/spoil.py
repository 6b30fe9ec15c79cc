"""Ways to spoil a right history: each plants one error and says what the witness must name.

A spoiler returns None when the history gives it no occasion; the test then draws another one.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

import msgspec
from msgspec.structs import replace

from inorder.check import History, Verdict, judge
from inorder.check.trace import DeliveryRow, EventRow, SubscriptionRow


class Planted(msgspec.Struct):
    """`named` lists the events the witness may name; it must name one, or all when `exact`."""

    history: History
    promise: str
    named: list[str]
    exact: bool = True

    def verdict(self) -> Verdict:
        name, _, related = self.promise.partition(".")
        verdict = judge(self.history, [name])[name]
        return verdict.also[related] if related else verdict


Spoiler = Callable[[random.Random, History], Planted | None]


def swap_neighbours(rng: random.Random, history: History) -> Planted | None:
    """Two neighbours at one subscriber change places; another delivered both."""
    choices = [
        (first, then)
        for name, rows in history.by_subscriber.items()
        for first, then in pairwise([row for row in rows if row.in_order])
        if _others(history, name, first.event, then.event)
    ]
    if not choices:
        return None
    first, then = rng.choice(choices)
    return Planted(_swapped(history, first, then), "total", [first.event, then.event])


def swap_far_apart(rng: random.Random, history: History) -> Planted | None:
    choices = [
        pair for pair in _pairs(history) if _others(history, pair[0].subscriber, *_names(pair))
    ]
    if not choices:
        return None
    first, then = rng.choice(choices)
    named = [first.event, then.event]
    return Planted(_swapped(history, first, then), "total", named, exact=False)


def untag_a_late_one(rng: random.Random, history: History) -> Planted | None:
    """A late delivery claims to be in order, though its subscriber and another now disagree."""
    choices = []
    for late in history.deliveries:
        earlier = history.by_subscriber[late.subscriber]
        if not late.in_order and any(
            row.in_order
            and row.nth < late.nth
            and row.published_at > late.published_at
            and _others(history, late.subscriber, late.event, row.event)
            for row in earlier
        ):
            choices.append(late)
    if not choices:
        return None
    late = rng.choice(choices)
    rows = [replace(row, in_order=True) if row is late else row for row in history.deliveries]
    return Planted(_with(history, rows), "total", [late.event], exact=False)


def swap_one_publisher(rng: random.Random, history: History) -> Planted | None:
    choices = [
        (first, then)
        for first, then in _pairs(history)
        if (first.publisher, first.topic) == (then.publisher, then.topic)
    ]
    if not choices:
        return None
    first, then = rng.choice(choices)
    named = [first.event, then.event]
    return Planted(_swapped(history, first, then), "fifo", named, exact=False)


def drop_an_owed_one(rng: random.Random, history: History) -> Planted | None:
    """Owed for certain: the subscription did not change any more after the publication."""
    choices = [
        row
        for row in history.deliveries
        if history.event_rows[row.event].accepted_at is not None
        and not any(
            change.subscriber == row.subscriber
            and row.topic in change.topics
            and change.at >= row.published_at
            for change in history.subscriptions or ()
        )
    ]
    if not choices:
        return None
    lost = rng.choice(choices)
    rows = [row for row in history.deliveries if row is not lost]
    return Planted(_with(history, rows), "reliable", [lost.event])


def double_one(rng: random.Random, history: History) -> Planted | None:
    row = rng.choice(history.deliveries)
    before = rng.choice(history.by_subscriber[row.subscriber][row.nth - 1 :])
    copy = _moved(replace(row, in_order=rng.random() < 0.5), before)
    copy.nth += 1
    return Planted(_inserted(history, copy), "unique", [row.event])


def deliver_a_ghost(rng: random.Random, history: History) -> Planted | None:
    row = rng.choice(history.deliveries)
    ghost = replace(row, nth=row.nth + 1, event="ghost:1", publisher="ghost", seq=1)
    return Planted(_inserted(history, ghost), "reliable.integrity", ["ghost:1"])


def alter_one(rng: random.Random, history: History) -> Planted | None:
    row = rng.choice(history.deliveries)
    altered = replace(row, seq=row.seq + 1)
    rows = [altered if other is row else other for other in history.deliveries]
    return Planted(_with(history, rows), "reliable.integrity", [row.event])


def deliver_after_unsubscribe(rng: random.Random, history: History) -> Planted | None:
    choices = [
        (change, event)
        for change in history.subscriptions or ()
        for event in history.events or ()
        if change.op == "unsubscribe"
        and event.topic in change.topics
        and event.published_at < change.at
    ]
    if not choices:
        return None
    change, event = rng.choice(choices)
    late = _delivery(history, change.subscriber, event, change.at + 0.5)
    return Planted(_inserted(history, late), "reliable.integrity", [event.event])


def deliver_a_stranger(rng: random.Random, history: History) -> Planted | None:
    """An event that did not pass the filter in force is delivered all the same."""
    choices = []
    for (name, topic), holding in history.holdings.items():
        for event in history.events or ():
            in_force = [state for state in holding.states if state.at < event.published_at][-1:]
            if event.topic != topic or not in_force or in_force[0].where is None:
                continue
            if history.attributes(event)["x"] >= in_force[0].parameters["limit"]:
                choices.append((name, event))
    if not choices:
        return None
    name, event = rng.choice(choices)
    stranger = _delivery(history, name, event, event.published_at + 0.5)
    return Planted(_inserted(history, stranger), "filter", [event.event])


def effect_before_cause(rng: random.Random, history: History) -> Planted | None:
    """Cause and effect, by different publishers on one topic, change places at a subscriber."""
    return _effect_first(rng, history, "causal", one_topic=True)


def effect_before_cause_of_another_topic(rng: random.Random, history: History) -> Planted | None:
    return _effect_first(rng, history, "causal_across_topics", one_topic=False)


def drop_one_owed_to_a_closed_subscription(rng: random.Random, history: History) -> Planted | None:
    """It was handed over long before the subscriber left, and is missing now."""
    choices = []
    for (name, topic), holding in history.holdings.items():
        for period in holding.periods:
            for row in history.by_subscriber.get(name, ()):
                event = history.event_rows[row.event]
                if (
                    row.topic == topic
                    and period.until is not None
                    and event.accepted_at is not None
                    and period.since < event.published_at
                    and event.accepted_at < period.until
                    and len(period.states) == 1
                ):
                    choices.append(row)
    if not choices:
        return None
    lost = rng.choice(choices)
    rows = [row for row in history.deliveries if row is not lost]
    return Planted(_with(history, rows), "reliable", [lost.event])


def forget_an_answer(rng: random.Random, history: History) -> Planted | None:
    """Somebody was never told what became of a publication."""
    event = rng.choice(history.events or ())
    silent = replace(event, outcome=None, accepted_at=None)
    rows = [silent if row is event else row for row in history.events or ()]
    return Planted(_with(history, events=rows), "accepted", [event.event])


def accept_before_it_is_published(rng: random.Random, history: History) -> Planted | None:
    """What was delivered second had been accepted before the first was published."""
    choices = [
        (first, then)
        for first, then in _pairs(history)
        if history.event_rows[then.event].accepted_at is not None and first.event != then.event
    ]
    if not choices:
        return None
    first, then = rng.choice(choices)
    early = history.event_rows[first.event].published_at - 1.0
    rows = [
        replace(row, accepted_at=early) if row.event == then.event else row
        for row in history.events or ()
    ]
    named = [first.event, then.event]
    return Planted(_with(history, events=rows), "realtime", named, exact=False)


def swap_topics_of_one_publisher(rng: random.Random, history: History) -> Planted | None:
    choices = [
        (first, then)
        for first, then in _pairs(history)
        if first.publisher == then.publisher and first.topic != then.topic
    ]
    if not choices:
        return None
    first, then = rng.choice(choices)
    named = [first.event, then.event]
    return Planted(_swapped(history, first, then), "per_publisher", named, exact=False)


SPOILERS: list[Spoiler] = [
    drop_one_owed_to_a_closed_subscription,
    forget_an_answer,
    accept_before_it_is_published,
    swap_topics_of_one_publisher,
    swap_neighbours,
    swap_far_apart,
    untag_a_late_one,
    swap_one_publisher,
    drop_an_owed_one,
    double_one,
    deliver_a_ghost,
    alter_one,
    deliver_after_unsubscribe,
    deliver_a_stranger,
    effect_before_cause,
    effect_before_cause_of_another_topic,
]


def _effect_first(
    rng: random.Random, history: History, promise: str, one_topic: bool
) -> Planted | None:
    choices = [
        (first, then)
        for first, then in _pairs(history)
        if first.publisher != then.publisher
        and (first.topic == then.topic) == one_topic
        and _saw(history, then, first.event)
        # Had the subscriber published in between, its own events would get other causes.
        and not any(
            event.publisher == first.subscriber
            and first.delivered_at < event.published_at < then.delivered_at
            for event in history.events or ()
        )
    ]
    if not choices:
        return None
    first, then = rng.choice(choices)
    return Planted(_swapped(history, first, then), promise, list(_names((first, then))), False)


def _saw(history: History, effect: DeliveryRow, cause: str) -> bool:
    rows = history.by_subscriber.get(effect.publisher, [])
    return any(row.event == cause and row.delivered_at < effect.published_at for row in rows)


def _pairs(history: History) -> Iterator[tuple[DeliveryRow, DeliveryRow]]:
    """Every two in-order deliveries of a subscriber, as they came."""
    for rows in history.by_subscriber.values():
        in_order = [row for row in rows if row.in_order]
        for place, then in enumerate(in_order):
            for first in in_order[:place]:
                yield first, then


def _names(pair: tuple[DeliveryRow, DeliveryRow]) -> tuple[str, str]:
    return pair[0].event, pair[1].event


def _others(history: History, name: str, e: str, f: str) -> bool:
    """Somebody else delivered both in order."""
    return any(
        other != name and e in sequence and f in sequence
        for other, sequence in history.sequences.items()
    )


def _with(
    history: History,
    deliveries: Iterable[DeliveryRow] | None = None,
    events: Iterable[EventRow] | None = None,
    changes: Iterable[SubscriptionRow] | None = None,
) -> History:
    return History(
        history.deliveries if deliveries is None else deliveries,
        history.events if events is None else events,
        history.subscriptions if changes is None else changes,
        ending=history.ending,
        clock_error=history.clock_error,
    )


def _swapped(history: History, first: DeliveryRow, then: DeliveryRow) -> History:
    """Each takes the other's place and time."""
    moved = {id(first): _moved(first, then), id(then): _moved(then, first)}
    return _with(history, [moved.get(id(row), row) for row in history.deliveries])


def _moved(row: DeliveryRow, to: DeliveryRow) -> DeliveryRow:
    return replace(row, nth=to.nth, delivered_at=to.delivered_at)


def _delivery(history: History, name: str, event: EventRow, at: float) -> DeliveryRow:
    """A delivery of `event` at a time, at the place that time has in the sequence."""
    before = sum(row.delivered_at < at for row in history.by_subscriber.get(name, []))
    return DeliveryRow(
        name,
        before + 1,
        event.event,
        event.topic,
        event.publisher,
        event.seq,
        event.published_at,
        at,
        at,
    )


def _inserted(history: History, new: DeliveryRow) -> History:
    """Make room for a delivery: what the subscriber did from there on counts one more."""

    def later(row: Any, node: str, at: float) -> Any:
        if node == new.subscriber and row.after is not None and at > new.delivered_at:
            return replace(row, after=row.after + 1)
        return row

    def seen_later(row: EventRow) -> EventRow:
        if row.publisher == new.subscriber and row.published_at > new.delivered_at:
            counts = {name: count + 1 for name, count in json.loads(row.seen or "{}").items()}
            return replace(row, seen=json.dumps(counts))
        return row

    deliveries = [
        replace(row, nth=row.nth + 1)
        if row.subscriber == new.subscriber and row.nth >= new.nth
        else row
        for row in history.deliveries
    ]
    changes: list[SubscriptionRow] = [
        later(row, row.subscriber, row.at) for row in history.subscriptions or ()
    ]
    events = [seen_later(row) for row in history.events or ()]
    return _with(history, [*deliveries, new], events, changes)
