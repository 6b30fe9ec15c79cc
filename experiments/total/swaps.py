"""Figures 16 to 20: a topic order that follows the publications.

10,000 nodes, 1000 topics, 100 topics a subscriber, one event a second; publications and
subscriptions follow the power law 0.901. The report leaves four things open; we choose and say so:

- which of several managers on a stamp's way gets its swap: `highest` (the topic goes as far up as
  any manager allows) or `first` (the next manager that allows it, one swap an event). We took
  `highest` because `first` gives hundreds of swaps where the report has tens.
- where the counters start. Subscriptions count in the published protocol, so they need not start at
  0. `start` is a free number, chosen after looking at the stated swaps: swap_fit.py searches it
  together with the others, and 3 comes nearest. It is a fit, not a prediction.
- how long a run is: 600 s for figures 18 to 20, twice the time of the one change the report dates.
- a swap is done at once and costs nothing: the report does not say what it charged for one.

Groups, walks and stamps are exact; `ens.py` gives the times.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import exp

import numpy as np

from experiments.points import Numbers, Settings, mean
from experiments.total.ens import Ens
from experiments.total.groups import sequenced
from experiments.total.laws import STEEP, Bools, Floats, Ints, generator, pareto, subscriptions
from experiments.total.overhead import ENTRY_BYTES

BIN = 10  # events a point of figures 16 to 20 averages
DECAY_S = 30.0  # the rate metric's memory


class Scene:
    """What all curves of one run share: who holds what, groups, network."""

    def __init__(self, nodes: int, topics: int, per: int, seed: int) -> None:
        self.topics = topics
        self.weights = pareto(topics, STEEP)
        self.held: Bools = subscriptions(self.weights, nodes, per, generator("held", seed, nodes))
        self.together = sequenced(self.held, 2)
        self.ens = Ens([f"{seed}/host{number}" for number in range(nodes)], f"{seed}")
        self.roots = [self.ens.root(f"t{topic}") for topic in range(topics)]
        self._joined: set[int] = set()

    def last_arrival(self, topic: int, rng: np.random.Generator) -> float:
        """Diffusion of one event to the last subscriber; the tree grows when first needed."""
        if not self.held[:, topic].any():
            return 0.0
        if topic not in self._joined:
            self._joined.add(topic)
            hosts = self.ens.hosts
            members = [hosts[place] for place in np.flatnonzero(self.held[:, topic]).tolist()]
            self.ens.join(f"t{topic}", members)
        return float(self.ens.last_arrivals(f"t{topic}", 1, rng)[0])


@lru_cache(maxsize=1)
def scene(nodes: int, topics: int, per: int, seed: int) -> Scene:
    return Scene(nodes, topics, per, seed)


class Order:
    """The topic order, its counters, and who asks for a swap."""

    def __init__(self, order: Ints, together: Bools, start: int) -> None:
        self.order = order.copy()
        self.rank = np.empty_like(order)
        self.rank[order] = np.arange(len(order))
        self._together = together
        self.counts = np.full(len(order), start)
        self._rates = np.zeros(len(order))
        self._rated_at = np.zeros(len(order))
        self.swaps = 0

    def climb(self, topic: int) -> Ints:
        """The managers a stamp visits, its own first, the highest last."""
        higher = self.order[: self.rank[topic]]
        return np.concatenate([[topic], higher[self._together[topic, higher]][::-1]])

    def publish(self, topic: int, now: float) -> None:
        self.counts[topic] += 1
        self._rates[topic] = (
            self._rates[topic] * exp((self._rated_at[topic] - now) / DECAY_S) + 1.0 / DECAY_S
        )
        self._rated_at[topic] = now

    def adapt(
        self, climb: Ints, metric: str, alpha: float, beta: float, rule: str, now: float
    ) -> None:
        """At most one swap: of a manager on the way with the weightiest topic below it."""
        if metric == "f":
            value = np.exp(-1.0 / (alpha * (self.counts[climb] + 1.0)))
            bar = value + beta
        else:
            value = self._rates[climb] * np.exp((self._rated_at[climb] - now) / DECAY_S)
            bar = (1.0 + beta) * value + 1.0 / DECAY_S
        heaviest = np.maximum.accumulate(value)
        willing = np.flatnonzero(heaviest[:-1] > bar[1:]) + 1
        if not len(willing):
            return
        upper = int(willing[-1] if rule == "highest" else willing[0])
        self._swap(int(climb[upper]), int(climb[np.argmax(value[:upper])]))

    def _swap(self, one: int, other: int) -> None:
        self.swaps += 1
        ranks = self.rank[one], self.rank[other]
        self.rank[other], self.rank[one] = ranks
        self.order[self.rank[one]] = one
        self.order[self.rank[other]] = other


def run(
    seed: int,
    *,
    begin: str = "random",
    metric: str = "",
    alpha: float = 0.1,
    beta: float = 0.2,
    rule: str = "highest",
    start: int = 3,
    shuffle_at: int = 0,
    events: int = 600,
    nodes: int = 10_000,
    topics: int = 1000,
    per: int = 100,
) -> Numbers:
    """One curve: latency and stamp size of every event, in bins; and the swaps."""
    stage = scene(nodes, topics, per, seed)
    order = Order(first_order(topics, begin, seed), stage.together, start)
    latencies: list[float] = []
    sizes: list[float] = []
    draws = generator("delays", seed)
    for now, topic in enumerate(picked(stage.weights, events, shuffle_at, seed), 1):
        climb = order.climb(topic)
        publisher = stage.ens.hosts[int(draws.integers(nodes))]
        stops = [publisher, *(stage.roots[each] for each in climb.tolist()), publisher]
        ways = [stage.ens.way(stops), stage.ens.leg(publisher, stage.roots[topic])]
        ordering, upward = stage.ens.durations(ways, draws).tolist()
        latencies.append(ordering + upward + stage.last_arrival(topic, draws))
        sizes.append(float(ENTRY_BYTES * len(climb)))
        order.publish(topic, float(now))
        if metric:
            order.adapt(climb, metric, alpha, beta, rule, float(now))
    curves = {"latency_curve": _binned(latencies), "bytes_curve": _binned(sizes)}
    return {"swaps": order.swaps} | summary(latencies, sizes) | curves


def first_order(topics: int, begin: str, seed: int) -> Ints:
    if begin == "best":
        return np.arange(topics)
    return generator("swaps", seed).permutation(topics)


def summary(latencies: list[float], sizes: list[float]) -> Numbers:
    """Means over parts of a run, event by event."""
    events = len(latencies)
    half = events // 2
    return {
        "early": mean(latencies[: events // 10]),
        "middle": mean(latencies[half - events // 6 : half]),
        "peak": mean(latencies[half : half + events // 20]),
        "late": mean(latencies[-events // 6 :]),
        "late_median": float(np.median(latencies[-events // 6 :])),
        "early_bytes": mean(sizes[: events // 10]),
        "late_bytes": mean(sizes[-events // 6 :]),
        "late_bytes_median": float(np.median(sizes[-events // 6 :])),
    }


def picked(weights: Floats, events: int, shuffle_at: int, seed: int) -> Iterator[int]:
    """Topics by popularity; from `shuffle_at` on, other topics are the popular ones."""
    rng = generator("picks", seed)
    names = np.arange(len(weights))
    for number, pick in enumerate(rng.choice(len(weights), size=events, p=weights).tolist()):
        if shuffle_at and number == shuffle_at:
            names = rng.permutation(len(weights))
        yield int(names[pick])


def _binned(values: list[float]) -> list[float]:
    return [mean(values[first : first + BIN]) for first in range(0, len(values), BIN)]


def size(quick: bool) -> Settings:
    """The quick size keeps the ratio of topics held to topics there are."""
    if quick:
        return {"nodes": 1000, "topics": 200, "per": 20, "events": 300}
    return {"nodes": 10_000, "topics": 1000, "per": 100, "events": 600}
