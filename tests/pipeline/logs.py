"""Random small runs: orders that mostly agree, with every kind of fault mixed in."""

from __future__ import annotations

import json
import random
from pathlib import Path

from inorder.check.ending import Ending
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
        event = _publish(random_, events, publishers, topics, made, now, tidy=tidy)
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
    about = {"clock": "simulated"} if seed % 2 else {}
    if seed % 6 == 1:  # one process of a live run: some of what it read others published
        about["driver"] = "live"
        events = [event for number, event in enumerate(events) if number % 4]
    writer = TraceWriter(
        folder, format="jsonl" if format == "jsonl" else "parquet", about=about, rows_per_part=7
    )
    for table, rows in (
        ("events", events),
        ("deliveries", deliveries),
        ("subscriptions", subscriptions),
    ):
        for row in rows:
            writer.write(table, row)
    if seed % 4:
        within = random_.choice([0.0, 0.5, 2.0])
        writer.ended(Ending(quiet=seed % 4 == 1, ended_at=now + 3, within=within))
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
    tidy: bool,
) -> EventRow:
    publisher = random_.choice(publishers)
    epoch = 1 + (len(events) > 12 and not tidy)  # another life: its numbers begin again
    seq = 1 + sum((row.publisher, row.epoch) == (publisher, epoch) for row in events)
    name = f"{publisher}:{seq}" if epoch == 1 else f"{publisher}:{epoch}:{seq}"
    position = 3 * len(events) if tidy else random_.choice([None, 3 * len(events), len(events)])
    seen = _seen(random_, publisher, made, tidy)
    accepted = None if random_.random() < 0.1 else now + random_.choice([0.1, 0.1, 1.5])
    silent = random_.choice(["refused", "unknown", None])
    attributes = json.dumps({"size": random_.randint(0, 10)})
    event = EventRow(
        name, random_.choice(topics), publisher, seq, now, accepted,
        silent if accepted is None else "accepted",
        random_.choice([None, publisher, "n0"]), seen, attributes=attributes, epoch=epoch,
        position=position,
    )  # fmt: skip
    events.append(event)
    return event


def _seen(random_: random.Random, publisher: str, made: dict[str, int], tidy: bool) -> str | None:
    """What the node of that name had been handed; now and then of others, or nothing is told."""
    if not tidy and random_.random() < 0.1:
        return None
    counts = {publisher: made[publisher]} if publisher in made else {}
    if not tidy and random_.random() < 0.3:
        other = random_.choice(sorted(made))
        counts[other] = random_.randint(0, made[other] + 1)
    return json.dumps(counts)


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
            epoch=event.epoch,
        )
    )  # fmt: skip
