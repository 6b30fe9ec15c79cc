"""Simulated runs as recorded rows: what the network handed to each subscriber, and what it did."""

from __future__ import annotations

from typing import Any

import msgspec
import pyarrow as pa
from msgspec import Struct

from inorder.core.effect import CancelTimer, Deliver, SetTimer
from inorder.pipeline.order_lane import Plan
from inorder.sim import simulate as simulation
from inorder.sim.memory import Memory
from inorder.sim.scenario import parse
from inorder.sim.world import World
from tests.protocols.stamped import stamped

SCHEMA = pa.schema(
    [
        ("subscriber", pa.string()), ("topic", pa.string()), ("offset", pa.int64()),
        ("arrival", pa.int64()), ("event", pa.string()), ("publisher", pa.string()),
        ("seq", pa.int64()), ("published_at", pa.float64()), ("received_at", pa.float64()),
        ("attributes", pa.string()), ("stamp", pa.string()), ("guarantee", pa.string()),
    ]
)  # fmt: skip

# Until then nobody publishes: all have subscribed, so that topics start at their beginning.
QUIET_S = 1.0

TOPICS = ["t1", "t2", "t3"]

# The ways to order, by name: a guarantee and its options.
WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "tag": ("total", {"mode": "tag", "buffer": 0}),
    "buffer": ("total", {"mode": "tag", "buffer": 6}),
    "ttl": ("total", {"mode": "tag", "buffer": 20, "ttl": 0.05}),
    "hold": ("total", {"mode": "hold"}),
    "fifo": ("fifo", {"record": 5}),
    "latch": ("fifo", {"estimator": "static", "latch": 0.08, "record": 0}),
    "none": ("none", {}),
}

# Stamps made in other ways, which a lane reads too: those that leave out what stands lower, and
# those with epochs, of an order that has a ranking.
OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "compact": ("total", {"mode": "tag", "buffer": 0, "stamp": "compact", "path": "sg"}),
    "forest": ("total", {"mode": "hold", "path": "forest"}),
}

SCENARIO = """
duration = {duration}
topics = 3
[order]
guarantee = "{guarantee}"
{options}
[network]
model = "delay"
fifo = false
delay = {{law = "exponential", mean = 0.03}}
[publishers]
count = 3
rate = {rate}
[[subscribers]]
count = {subscribers}
[faults]
list = [{{kind="weather", at=1.0, until={duration}, duplicate={duplicate}, reorder={reorder}}}]
"""


class Delivery(Struct, frozen=True, order=True):
    subscriber: str
    nth: int
    event: str
    in_order: bool


class Run(Struct):
    """Rows that arrived at subscribers, in order of time, and what the simulator delivered."""

    plan: Plan
    rows: list[dict[str, Any]]
    deliveries: list[Delivery]

    @property
    def table(self) -> pa.Table:
        return pa.Table.from_pylist(self.rows, SCHEMA)


def table_of(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, SCHEMA)


def simulated(
    way: str, seed: int, *, duplicate: float = 0.2, reorder: float = 0.3, duration: float = 3.0,
    rate: float = 8.0, subscribers: int = 2, prefix: str = "",
) -> Run:  # fmt: skip
    """A run in which everybody subscribes before the first event."""
    name, options = (WAYS | OTHERS)[way]
    written = "\n".join(f"{key} = {msgspec.json.encode(value).decode()}" for key, value in
                        options.items())  # fmt: skip
    text = SCENARIO.format(
        guarantee=name, options=written, duration=QUIET_S + duration, rate=rate,
        duplicate=duplicate, reorder=reorder, subscribers=subscribers,
    )  # fmt: skip
    rows: list[dict[str, Any]] = []
    memory = Memory()

    class Tapped(World):
        def publish(self, name, topic, value):
            return self.agenda.now > QUIET_S and super().publish(name, topic, value)

        def _hand_over(self, source, target, message, size, sent_at, arrives):
            if arrives and target.startswith("s") and not target.startswith("stage"):
                for event, stamp in stamped(message):
                    rows.append(_row(prefix + target, len(rows), self.agenda.now, event, stamp,
                                     name))  # fmt: skip
            super()._hand_over(source, target, message, size, sent_at, arrives)

    original, simulation.World = simulation.World, Tapped
    try:
        simulation.simulate(parse(text), seed, memory)
    finally:
        simulation.World = original
    deliveries = sorted(
        Delivery(prefix + row.subscriber, row.nth, row.event, row.in_order)
        for row in memory.rows["deliveries"]
    )
    start = dict.fromkeys(TOPICS, 0) if name == "total" else "beginning"
    return Run(Plan(name, options, start=start, strict=False), rows, deliveries)


def _row(
    subscriber: str, arrival: int, now: float, event: Any, stamp: str, name: str
) -> dict[str, Any]:
    return {
        "subscriber": subscriber, "topic": event.topic, "offset": 0, "arrival": arrival,
        "event": event.id, "publisher": event.publisher, "seq": event.seq,
        "published_at": event.published_at, "received_at": now, "attributes": "{}",
        "stamp": stamp, "guarantee": name,
    }  # fmt: skip


def looped(plan: Plan, rows: list[dict[str, Any]]) -> list[Delivery]:
    """What a plain loop over each subscriber's rows delivers, held events included."""
    recorded = plan.rows()
    found: list[Delivery] = []
    for subscriber in sorted({row["subscriber"] for row in rows}):
        reader = plan.reader(subscriber)
        timers: dict[str, float] = {}
        count = 0

        def carry_out(effects: list[Any], now: float, timers=timers, subscriber=subscriber) -> None:
            nonlocal count
            for effect in effects:
                if isinstance(effect, Deliver):
                    count += 1
                    event = effect.event.id
                    found.append(Delivery(subscriber, count, event, effect.in_order))
                elif isinstance(effect, SetTimer):
                    timers[effect.name] = now + effect.after_s
                elif isinstance(effect, CancelTimer):
                    timers.pop(effect.name, None)

        def let_pass(until: float, timers=timers, reader=reader, carry_out=carry_out) -> None:
            while timers:
                at, name = min((at, name) for name, at in timers.items())
                if at > until:
                    return
                del timers[name]
                carry_out(reader.fire(name, at), at)

        for row in rows:
            if row["subscriber"] == subscriber:
                event = Event_of(row)
                let_pass(row["received_at"])
                message = recorded.message(event, row["stamp"])
                effects = reader.receive(event.publisher, message, row["received_at"])
                carry_out(effects, row["received_at"])
        let_pass(float("inf"))
        carry_out(reader.finish(0.0), 0.0)
    return sorted(found)


def Event_of(row: dict[str, Any]) -> Any:
    from inorder.core.event import Event

    return Event(row["publisher"], row["seq"], row["topic"])


def delivered(table: pa.Table | None) -> list[Delivery]:
    """The deliveries among rows that came out."""
    if table is None:
        return []
    columns = (table.column(n).to_pylist() for n in ("subscriber", "nth", "event", "in_order"))
    return [Delivery(*row) for row in zip(*columns, strict=True) if row[1] is not None]
