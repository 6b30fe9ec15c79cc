"""How topics are picked: evenly, or by popularity.

The papers' power laws are stated by their masses ("40 % of the topics receive 80 % of the picks"),
not by an exponent, so that is how they are given here. The i-th most popular of n topics gets the
mass of its slice under x**a, with a chosen so that the first `share` of the topics gets 80 %.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate, pairwise
from math import log
from random import Random

POWER_MASS = 0.8


def power_weights(count: int, share: float) -> list[float]:
    """Weights whose first `share` of the topics holds 80 % of the mass.

    >>> weights = power_weights(1000, 0.4)
    >>> round(sum(weights[:400]), 3)
    0.8
    """
    if share >= POWER_MASS:
        return [1.0 / count] * count
    exponent = log(POWER_MASS) / log(share)
    edges = [(rank / count) ** exponent for rank in range(count + 1)]
    return [after - before for before, after in pairwise(edges)]


def zipf_weights(count: int, exponent: float) -> list[float]:
    """Weights proportional to 1 / rank ** exponent."""
    weights = [1.0 / rank**exponent for rank in range(1, count + 1)]
    total = sum(weights)
    return [weight / total for weight in weights]


def weights(law: str, count: int, share: float, exponent: float) -> list[float]:
    if law == "power":
        return power_weights(count, share)
    if law == "zipf":
        return zipf_weights(count, exponent)
    return [1.0 / count] * count


class Picker:
    """Draws topics with given weights, in logarithmic time."""

    def __init__(self, topics: Sequence[str], weights: Sequence[float]) -> None:
        self._topics = topics
        self._edges = list(accumulate(weights))

    def pick(self, rng: Random) -> str:
        index = bisect_left(self._edges, rng.random() * self._edges[-1])
        return self._topics[min(index, len(self._topics) - 1)]

    def pick_several(self, rng: Random, count: int) -> list[str]:
        """So many different topics, the popular ones likelier; in topic order."""
        chosen: dict[str, None] = {}
        tries = 0
        while len(chosen) < count and tries < 50 * count:
            chosen[self.pick(rng)] = None
            tries += 1
        for topic in self._topics:  # a steep law may never reach the tail: take the rest in order
            if len(chosen) >= count:
                break
            chosen[topic] = None
        return [topic for topic in self._topics if topic in chosen]
