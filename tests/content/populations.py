"""Large seeded populations of subscriptions, for the tests and the bench of matching.

Trading: a firm and a price limit, 35 % at most, 33 % at least, 32 % exactly, as the paper has it.
Traffic: a window around a place. The events are drawn from the same ranges.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from inorder.content.engine import Form
from inorder.content.predicate import Predicate

TRADING = {op: Predicate.parse(f"firm = :f AND price {op} :x") for op in ("<=", ">=", "=")}
TRAFFIC = Predicate.parse("lat BETWEEN :a AND :b AND lon BETWEEN :c AND :d")
SIDED = {
    (x, y): Predicate.parse(f"lat {x} :x AND lon {y} :y")
    for x in ("<=", ">=", "=")
    for y in ("<=", ">=", "=")
}
SINGLE = Predicate.parse("price < :x")
SPAN = Predicate.parse("price BETWEEN :x AND :y")
FIRM_SPAN = Predicate.parse("firm = :f AND price > :x AND price < :y")
LISTED = Predicate.parse("firm IN :f AND price >= :x")
WORDED = Predicate.parse("firm = :f AND name LIKE :n AND price <> :x")

Draw = Callable[[random.Random], Form]


def price(rng: random.Random) -> float:
    return round(rng.uniform(0, 100), 2)


def firm(rng: random.Random, firms: int = 1000) -> str:
    return f"F{rng.randrange(firms)}"


def trading(rng: random.Random, firms: int = 1000) -> Form:
    (op,) = rng.choices(("<=", ">=", "="), (35, 33, 32))
    return TRADING[op].skeleton[0], (firm(rng, firms), price(rng))


def traffic(rng: random.Random, width: float = 1.0) -> Form:
    x, y = rng.uniform(0, 100), rng.uniform(0, 100)
    return TRAFFIC.skeleton[0], (x, x + width, y, y + width)


def sided(rng: random.Random) -> Form:
    """Traffic as the paper counts its operators: 40 % at least, 40 % at most, 20 % exactly."""
    x, y = rng.choices((">=", "<=", "="), (40, 40, 20), k=2)
    return SIDED[x, y].skeleton[0], (float(rng.randrange(100)), float(rng.randrange(100)))


def single(rng: random.Random) -> Form:
    return SINGLE.skeleton[0], (price(rng),)


def span(rng: random.Random) -> Form:
    low = price(rng)
    return SPAN.skeleton[0], (low, low + 0.5)


def mixed(rng: random.Random) -> Form:
    """All of the above, and what only boxes can decide."""
    low = price(rng)
    return rng.choice(
        [
            trading(rng, 20),
            traffic(rng),
            sided(rng),
            single(rng),
            span(rng),
            (FIRM_SPAN.skeleton[0], (firm(rng, 5), low, low + 9)),
            (LISTED.skeleton[0], (low, tuple(sorted({firm(rng, 20) for _ in range(3)})))),
            (WORDED.skeleton[0], (firm(rng, 5), rng.choice(["a%", "%b", "_"]), low)),
        ]
    )


def quote(rng: random.Random, firms: int = 1000) -> dict[str, Any]:
    return {"firm": firm(rng, firms), "price": price(rng)}


def position(rng: random.Random) -> dict[str, Any]:
    return {"lat": rng.uniform(0, 100), "lon": rng.uniform(0, 100)}


def anything(rng: random.Random) -> dict[str, Any]:
    event = {**quote(rng, 20), **position(rng), "name": rng.choice(["a", "ab", "b", "", 5])}
    if rng.random() < 0.5:  # on the edges of `sided`
        event["lat"], event["lon"] = rng.randrange(100), float(rng.randrange(100))
    return {name: value for name, value in event.items() if rng.random() < 0.9}
