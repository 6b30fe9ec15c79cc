"""Random small runs: orders that mostly agree, with every kind of fault mixed in."""

from __future__ import annotations

import json
import random
from pathlib import Path

from inorder.check.trace import DeliveryRow, EventRow, SubscriptionRow, TraceWriter

TOPICS = ["orders", "payments", "stock"]


def write_run(folder: Path, seed: int, format: str = "parquet", complete: bool = True) -> None:
    """A run of a few nodes; some publish and subscribe. Faults depend on the seed."""
    random_ = random.Random(seed)
    tidy = seed % 5 == 0
    nodes = [f"n{number}" for number in range(random_.randint(2, 5))]
    publishers = nodes[: random_.randint(1, len(nodes))] if seed % 3 else ["p1", "p2"]
    topics = TOPICS[: random_.randint(1, 3)]
    subscriptions, wheres = _subscriptions(random_, nodes, topics, filtered=seed % 4 == 1)
    events: list[EventRow] = []
    deliveries: list[DeliveryRow] = []
    made = dict.fromkeys(nodes, 0)
    pending: list[tuple[float, str, EventRow]] = []
    now = 1.0
    for _ in range(random_.randint(0, 25)):
        now += random_.random()
        while pending and pending[0][0] <= now:
            _deliver(random_, pending.pop(0), made, deliveries, tidy)
        event = _publish(random_, events, publishers, topics, made, now, by_time=seed % 2 == 0)
        for node in nodes:
            holds = event.topic in wheres[node]
            if holds and (tidy or random_.random() < 0.9):
                delay = 0.0 if tidy else random_.random() * 3
                pending.append((now + delay, node, event))
                if not tidy and random_.random() < 0.05:
                    pending.append((now + delay + 1, node, event))
        pending.sort(key=lambda each: (each[0], each[1]))
    while pending:
        _deliver(random_, pending.pop(0), made, deliveries, tidy)
    random_.shuffle(deliveries)
    writer = TraceWriter(
        folder, format="jsonl" if format == "jsonl" else "parquet", rows_per_part=7
    )
    for table, rows in (
        ("events", events),
        ("deliveries", deliveries),
        ("subscriptions", subscriptions),
    ):
        for row in rows:
            writer.write(table, row)
    if complete:
        writer.close()
    else:
        writer.flush()


def _subscriptions(
    random_: random.Random, nodes: list[str], topics: list[str], filtered: bool
) -> tuple[list[SubscriptionRow], dict[str, set[str]]]:
    rows: list[SubscriptionRow] = []
    held: dict[str, set[str]] = {node: set() for node in nodes}
    for node in nodes:
        for topic in topics:
            if random_.random() < 0.8:
                held[node].add(topic)
                where = "size > :floor" if filtered and random_.random() < 0.6 else None
                parameters = json.dumps({"floor": random_.randint(0, 5)}) if where else "{}"
                at = random_.choice([0.0, 0.5, 5.0])
                rows.append(SubscriptionRow(node, "subscribe", [topic], where, parameters, at, 0))
                if where and random_.random() < 0.5:
                    after = random_.choice([None, random_.randint(0, 6)])
                    change = json.dumps({"floor": random_.randint(0, 9)})
                    rows.append(SubscriptionRow(node, "set", [], None, change, at + 4, after))
                if random_.random() < 0.15:
                    rows.append(
                        SubscriptionRow(node, "unsubscribe", [topic], None, "{}", at + 6, None)
                    )
    return rows, held


def _publish(
    random_: random.Random,
    events: list[EventRow],
    publishers: list[str],
    topics: list[str],
    made: dict[str, int],
    now: float,
    by_time: bool,
) -> EventRow:
    publisher = random_.choice(publishers)
    seq = 1 + sum(event.publisher == publisher for event in events)
    after = None if by_time and random_.random() < 0.5 else made.get(publisher, 0)
    accepted = None if random_.random() < 0.1 else now + 0.1
    attributes = json.dumps({"size": random_.randint(0, 10)})
    event = EventRow(
        f"{publisher}:{seq}", random_.choice(topics), publisher, seq, now, accepted, after,
        attributes=attributes,
    )  # fmt: skip
    events.append(event)
    return event


def _deliver(
    random_: random.Random,
    item: tuple[float, str, EventRow],
    made: dict[str, int],
    deliveries: list[DeliveryRow],
    tidy: bool,
) -> None:
    at, node, event = item
    made[node] += 1 if tidy or random_.random() < 0.8 else 2  # places may have holes
    deliveries.append(
        DeliveryRow(
            node, made[node], event.event, event.topic, event.publisher, event.seq,
            event.published_at, at, at, in_order=tidy or random_.random() < 0.9,
        )
    )  # fmt: skip
