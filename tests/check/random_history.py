"""Histories drawn at random: any history at all, to compare judges; and right ones, to spoil."""

from __future__ import annotations

import json
import random
from typing import Any

from inorder.check import History
from inorder.check.ending import Ending
from inorder.check.trace import DeliveryRow, EventRow, SubscriptionRow

OUTCOMES = [None, None, "refused", "unknown"]
WHERES = [None, None, "x < :a", "NOT x = :a AND y LIKE 'b%'", "x IS NULL OR flag"]


def any_history(rng: random.Random) -> History:
    """No rule holds but those `History` insists on; names and times are few, so that they meet."""
    topics = ["t", "u", "v"][: rng.randint(1, 3)]
    nodes = ["a", "b", "c", "d"][: rng.randint(1, 4)]
    publishers = [*nodes, "p"]
    events = _any_events(rng, topics, publishers)
    deliveries = [
        row for node in nodes for row in _any_deliveries(rng, node, topics, publishers, events)
    ]
    changes = [_any_change(rng, rng.choice(nodes), topics) for _ in range(rng.randint(0, 10))]
    if rng.random() < 0.7:
        changes += [
            SubscriptionRow(node, "subscribe", topics, None, "{}", 0.0, 0) for node in nodes
        ]
    for table in (events, deliveries, changes):
        rng.shuffle(table)
    return History(
        deliveries,
        events,
        changes,
        complete=rng.random() < 0.9,
        accepted_known=rng.random() < 0.8,
        ending=rng.choice([None, _any_ending(rng), _any_ending(rng)]),
        clock_error=rng.choice([None, 0.0, 0.0, 1.0, 2.0]),
        elsewhere=rng.random() < 0.3,
    )


def _any_ending(rng: random.Random) -> Ending:
    within = rng.choice([0.0, 1.0, 2.0, 10.0])
    return Ending(quiet=rng.random() < 0.5, ended_at=float(rng.randint(5, 12)), within=within)


def _any_events(rng: random.Random, topics: list[str], publishers: list[str]) -> list[EventRow]:
    events = []
    for publisher in publishers:
        seq, epoch = 0, 1
        for _ in range(rng.randint(0, 4)):
            seq += rng.choice([1, 1, 1, 2])
            if rng.random() < 0.1:
                seq, epoch = rng.choice([1, 2]), epoch + 1
            events.append(
                EventRow(
                    f"{publisher}:{seq}" if epoch == 1 else f"{publisher}:{epoch}:{seq}",
                    rng.choice(topics),
                    publisher,
                    seq,
                    float(rng.randint(0, 6)),
                    accepted := rng.choice([None, 7.0, 7.0, float(rng.randint(seq, 9))]),
                    rng.choice(OUTCOMES) if accepted is None else "accepted",
                    rng.choice([None, None, "a", "b", "p"]),
                    rng.choice([None, "{}", _any_seen(rng), _any_seen(rng)]),
                    attributes=json.dumps(any_attributes(rng)),
                    epoch=epoch,
                    position=rng.choice([None, rng.randint(0, 9), rng.randint(0, 9)]),
                )
            )
    return events


def _any_seen(rng: random.Random) -> str:
    names = rng.sample(["a", "b", "c", "nobody"], rng.randint(0, 2))
    return json.dumps({name: rng.randint(0, 6) for name in names})


def any_attributes(rng: random.Random) -> dict[str, Any]:
    values = {"x": rng.choice([1, 2, 2.0, "1", None]), "y": rng.choice(["b", "bc", "", 3])}
    values["flag"] = rng.choice([True, False, 1])
    return {name: values[name] for name in values if rng.random() < 0.8}


def _any_deliveries(
    rng: random.Random,
    node: str,
    topics: list[str],
    publishers: list[str],
    events: list[EventRow],
) -> list[DeliveryRow]:
    drawn = list(events)
    if rng.random() < 0.5:
        rng.shuffle(drawn)
    drawn = [row for row in drawn if rng.random() < 0.8]
    for _ in range(rng.choice([0, 0, 1, 3]) if drawn else 0):
        kind = rng.choice(["swap", "double", "stranger", "alter"])
        at = rng.randrange(len(drawn))
        row = drawn[at]
        if kind == "swap":
            other = rng.randrange(len(drawn))
            drawn[at], drawn[other] = drawn[other], drawn[at]
        elif kind == "double":
            drawn.insert(rng.randrange(len(drawn) + 1), row)
        elif kind == "stranger":
            drawn.insert(at, EventRow("p:99", rng.choice(topics), "p", 99, 0.0))
        else:
            other_seq, epoch = rng.randint(1, 5), rng.choice([1, 1, 2])
            drawn[at] = EventRow(row.event, rng.choice(topics), "p", other_seq, 0.0, epoch=epoch)
    places = sorted(rng.sample(range(1, 2 * len(drawn) + 1), len(drawn)))
    return [
        DeliveryRow(
            node,
            place,
            row.event,
            row.topic,
            row.publisher,
            row.seq,
            row.published_at,
            0.0,
            float(rng.randint(0, 8)),
            rng.random() < 0.85,
            row.epoch,
        )
        for place, row in zip(places, drawn, strict=True)
    ]


def _any_change(rng: random.Random, node: str, topics: list[str]) -> SubscriptionRow:
    op = rng.choice(["subscribe", "subscribe", "unsubscribe", "set"])
    named = rng.sample(topics, rng.randint(0, len(topics)))
    return SubscriptionRow(
        node,
        op,
        named,
        None if op == "unsubscribe" else rng.choice(WHERES),
        json.dumps({"a": rng.choice([1, 2, "1"])}),
        float(rng.randint(0, 6)),
        rng.choice([None, rng.randint(0, 8), rng.randint(0, 8)]),
    )


def right_history(rng: random.Random) -> History:
    """A run that keeps every promise.

    There is one order of all events and every node delivers its part of it. A node publishes after
    what it has delivered, so that causes come first in that order. Now and then a delivery is made
    too late, which is legal when it is tagged. Some subscriptions are filtered, some come and go.
    """
    return _Run(rng).history()


class _Run:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.now = 0.0
        self.topics = ["t", "u", "v"][: rng.randint(1, 3)]
        self.nodes = ["a", "b", "c", "d"][: rng.randint(2, 4)]
        self.events: list[EventRow] = []
        self.deliveries: list[DeliveryRow] = []
        self.changes: list[SubscriptionRow] = []
        self.held: dict[str, dict[str, int | None]] = {node: {} for node in self.nodes}
        self.made = dict.fromkeys(self.nodes, 0)
        self.told: dict[str, int] = {}
        self.seqs = dict.fromkeys([*self.nodes, "p"], 0)
        self.belated: dict[str, list[EventRow]] = {node: [] for node in self.nodes}

    def history(self) -> History:
        for node in self.nodes:
            for topic in self.rng.sample(self.topics, self.rng.randint(1, len(self.topics))):
                self.subscribe(node, topic)
        for _ in range(self.rng.randint(15, 30)):
            self.step()
        for node in self.nodes:
            self.catch_up(node)
        # Whoever goes is handed all that was due first, so the window may be as short as can be.
        ending = Ending(quiet=True, ended_at=self.now, within=0.0)
        return History(self.deliveries, self.events, self.changes, ending=ending, clock_error=0.0)

    def step(self) -> None:
        if self.rng.random() < 0.8:
            self.publish()
            return
        node, topic = self.rng.choice(self.nodes), self.rng.choice(self.topics)
        self.catch_up(node)
        if topic not in self.held[node]:
            self.subscribe(node, topic)
        elif self.held[node][topic] is not None and self.rng.random() < 0.7:
            self.held[node][topic] = limit = self.rng.randint(2, 9)
            self.change(node, "set", topic, None, {"limit": limit})
        elif len(self.held[node]) > 1:
            del self.held[node][topic]
            self.change(node, "unsubscribe", topic, None, {})

    def subscribe(self, node: str, topic: str) -> None:
        if self.rng.random() < 0.4:
            self.held[node][topic] = limit = self.rng.randint(2, 9)
            self.change(node, "subscribe", topic, "x < :limit", {"limit": limit})
        else:
            self.held[node][topic] = None
            self.change(node, "subscribe", topic, None, {})

    def change(
        self, node: str, op: str, topic: str, where: str | None, parameters: dict[str, Any]
    ) -> None:
        self.now += 1
        after = self.made[node] if self.rng.random() < 0.7 else None
        text = json.dumps(parameters)
        self.changes.append(SubscriptionRow(node, op, [topic], where, text, self.now, after))
        self.now += 1

    def publish(self) -> None:
        """The next event of the one order, delivered at once to all, but for the belated."""
        publisher = self.rng.choice(list(self.seqs))
        self.now += 1
        self.seqs[publisher] += 1
        seq = self.seqs[publisher]
        seen = self.seen(publisher)
        x = self.rng.randint(0, 9)
        topic = self.rng.choice(self.topics)
        accepted = self.now if self.rng.random() < 0.9 else None
        event = EventRow(
            f"{publisher}:{seq}",
            topic,
            publisher,
            seq,
            self.now,
            accepted,
            "accepted" if accepted else self.rng.choice(["refused", "unknown"]),
            publisher if self.rng.random() < 0.5 else None,
            seen,
            attributes=json.dumps({"x": x}),
            position=2 * len(self.events),
        )
        self.events.append(event)
        self.now += 1
        for node in self.nodes:
            limit = self.held[node].get(topic, -1)
            if limit is not None and x >= limit:
                continue
            if self.rng.random() < 0.1:
                self.belated[node].append(event)
            else:
                self.deliver(node, event, in_order=True)
                if self.rng.random() < 0.5:
                    self.catch_up(node)

    def seen(self, publisher: str) -> str:
        """What has moved since the event before; now and then everything is told again."""
        made = self.made.get(publisher, 0)
        if made == self.told.get(publisher, 0) and self.rng.random() < 0.8:
            return "{}"
        self.told[publisher] = made
        return json.dumps({publisher: made})

    def catch_up(self, node: str) -> None:
        for event in self.belated[node]:
            self.deliver(node, event, in_order=False)
        self.belated[node] = []

    def deliver(self, node: str, event: EventRow, in_order: bool) -> None:
        self.now += 1
        self.made[node] += 1
        self.deliveries.append(
            DeliveryRow(
                node,
                self.made[node],
                event.event,
                event.topic,
                event.publisher,
                event.seq,
                event.published_at,
                self.now,
                self.now,
                in_order,
            )
        )
