"""Who subscribes to what, and how it changes: the two benchmarks and the scalability run.

| workload | tree of 20 brokers          | publishers | subscribers          | updates    |
|----------|-----------------------------|------------|----------------------|------------|
| htm      | spanning tree, random graph | 10 each    | 5 at each broker     | per broker |
| at       | hierarchy of 1, 4, 15       | 5 at top   | 10 at each of the 15 | per broker |
| scale    | spanning tree, random graph | 100        | 150                  | each       |

Traffic: `road = :road AND place >= :low AND place <= :high`, which has the paper's share of
operators, 40 % at least, 40 % at most, 20 % exactly. A vehicle's window moves by half its width, to
or fro, between the ends of the road. Trading: 35 % `price <= :x`, 33 % `price >= :x`, 32 %
`rating = :x`, each for one of five kinds; an update draws the threshold anew. Scalability: traffic
in steps of a hundredth of the width, as a thousand updates a second would be.

An event matches a subscription with probability 0.1 (trading: an event of its kind does). Updates
keep that: a window keeps its width, a threshold stays between 0 and 0.2 of the range.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, Literal

from msgspec import Struct

from inorder.content.predicate import Predicate
from inorder.sim.graphs import Graph, tree

Benchmark = Literal["htm", "at", "scale"]
Values = dict[str, Any]

TOPIC = "events"
BROKERS = 20
ROADS, KINDS, RATINGS = 2, 5, 10
# How far a window moves, in widths.
STEP: dict[Benchmark, float] = {"htm": 0.5, "scale": 0.01}
WINDOW = Predicate.parse("road = :road AND place >= :low AND place <= :high")
LIMITS = {
    "<=": Predicate.parse("kind = :kind AND price <= :x"),
    ">=": Predicate.parse("kind = :kind AND price >= :x"),
    "=": Predicate.parse("kind = :kind AND rating = :x"),
}


class Workload(Struct, frozen=True):
    """Names of publishers and subscribers with their brokers; events a second of all publishers."""

    benchmark: Benchmark
    graph: Graph
    publishers: Mapping[str, str]
    subscribers: Mapping[str, str]
    event_rate: float

    def at_each(self) -> float:
        """Subscribers at a broker that has any."""
        return len(self.subscribers) / len({*self.subscribers.values()})


def workload(benchmark: Benchmark, event_rate: float, seed: int) -> Workload:
    if benchmark == "at":
        graph = hierarchy()
        publishers = {f"p{number}": "b1" for number in range(1, 6)}
        subscribers = {f"s{number}": f"b{6 + number % 15}" for number in range(1, 151)}
    else:
        graph = tree("random", BROKERS, None, f"{benchmark}/{seed}")
        counts = (200, 100) if benchmark == "htm" else (100, 150)
        publishers, subscribers = (
            {f"{kind}{number}": f"b{1 + number % BROKERS}" for number in range(1, count + 1)}
            for kind, count in zip("ps", counts, strict=True)
        )
    return Workload(benchmark, graph, publishers, subscribers, event_rate)


def hierarchy() -> Graph:
    """One market data system, four clearing houses, fifteen brokerages.

    >>> [len(others) for others in hierarchy()][:6]
    [4, 5, 5, 5, 4, 1]
    """
    edges = [(0, house) for house in range(1, 5)]
    edges += [(1 + (place - 5) % 4, place) for place in range(5, BROKERS)]
    graph: Graph = [[] for _ in range(BROKERS)]
    for one, other in edges:
        graph[one].append(other)
        graph[other].append(one)
    return graph


def event(benchmark: Benchmark, rng: Random) -> dict[str, Any]:
    if benchmark == "at":
        price, rating = rng.random(), rng.randrange(RATINGS)
        return {"kind": rng.randrange(KINDS), "price": price, "rating": rating}
    return {"road": rng.randrange(ROADS), "place": rng.random()}


def first(benchmark: Benchmark, rng: Random) -> tuple[Predicate, Values]:
    """What a subscriber wants to begin with."""
    if benchmark == "at":
        (operator,) = rng.choices(("<=", ">=", "="), (35, 33, 32))
        return LIMITS[operator], {"kind": rng.randrange(KINDS), "x": _threshold(operator, rng)}
    width = rng.uniform(0.1, 0.3)
    low = rng.uniform(0.0, 1.0 - width)
    return WINDOW, {"road": rng.randrange(ROADS), "low": low, "high": low + width}


def moved(benchmark: Benchmark, predicate: Predicate, values: Values, rng: Random) -> Values:
    """What it wants next."""
    if predicate is not WINDOW:
        operator = next(one for one, known in LIMITS.items() if known is predicate)
        drawn = _threshold(operator, rng)
        while drawn == values["x"]:
            drawn = _threshold(operator, rng)
        return {**values, "x": drawn}
    low, high = values["low"], values["high"]
    width = high - low
    step = rng.choice((-1.0, 1.0)) * STEP[benchmark] * width
    low = low - step if low + step < 0.0 or high + step > 1.0 else low + step
    return {**values, "low": low, "high": low + width}


def _threshold(operator: str, rng: Random) -> float:
    if operator == "=":
        return rng.randrange(RATINGS)
    x = rng.uniform(0.0, 0.2)
    return x if operator == "<=" else 1.0 - x
