"""Schedules in which not everybody shares topics with everybody, while the order changes.

A few parts that have no subscriber in common, a way between them on the chain, and an operator who
changes the order again and again: what goes on must notice nothing.
"""

from __future__ import annotations

from random import Random
from typing import Any

from inorder.sim.scenario import Scenario, from_table
from inorder.sim.world import World
from tests.protocols.total.schedules import SETTLE_S

# Parts over the topics 1 to 6, by who holds what. A ring of pairs makes circles possible.
PARTS = (
    ("13", "31", "24", "5"),
    ("13", "46", "25"),
    ("123", "12", "456", "45"),
    ("32", "24", "45", "51", "13"),
    ("14", "25", "36"),
    ("12", "12", "34", "345", "6"),
)


def draw(seed: int, order: dict[str, Any], *, churn: float = 0.3, faulty: bool = True) -> Scenario:
    rng = Random(f"{seed}/apart")
    parts = PARTS[seed % len(PARTS)]
    topics = [f"t{number}" for number in range(1, 7)]
    table: dict[str, Any] = {
        "topics": topics,
        "duration": 4.0,
        "settle": SETTLE_S,
        "messages": False,
        "order": {"guarantee": "total", "swaps": "on", "metric": "f", "beta": 10.0, **order},
        "network": {
            "model": "biased",
            "mean": rng.choice((0.05, 0.3, 1.0)),
            "fifo": rng.random() < 0.7,
        },
        "publishers": {"count": 6, "rate": rng.choice((1.0, 3.0)), "topics": "own"},
        "subscribers": [
            {"name": f"s{number}", "topics": [f"t{digit}" for digit in sorted({*held})]}
            for number, held in enumerate(parts)
        ],
    }
    if rng.random() < churn:
        table["churn"] = {"rate": rng.choice((1.0, 4.0))}
    if faulty and rng.random() < 0.4:
        table["faults"] = {"until": 5.0, "draw": ["partition", "pause", "crash", "weather"]}
    return from_table(table)


def reorder(world: World, rng: Random) -> None:
    """Changes small and large: a topic moves, two change places, all are shuffled."""

    def go() -> None:
        node = world.nodes["ranking"]
        if node.absent:
            return
        machine: Any = node.machine
        order = list(machine.s.order)
        kind = rng.randrange(3)
        if kind == 0:
            order.insert(rng.randrange(len(order)), order.pop(rng.randrange(len(order))))
        elif kind == 1:
            one, other = rng.sample(range(len(order)), 2)
            order[one], order[other] = order[other], order[one]
        else:
            rng.shuffle(order)
        world._carry_out(node, machine.reorder(order, world.agenda.now + node.skew_s))

    for _ in range(rng.randint(2, 6)):
        world.agenda.at(rng.uniform(0.1, 4.0), go)
