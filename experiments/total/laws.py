"""The report's publication and subscription models.

"Shape 0.269" and "shape 0.901" are Pareto laws: with 1000 topics the whole part of a Pareto
variable of shape 0.901 is at most 5 (0.5 % of the topics) with probability 1 - 6**-0.901 = 0.801,
and of shape 0.269 at most 400 (40 %) with probability 1 - 401**-0.269 = 0.801: exactly the two
masses the report states. Picks beyond the last topic (0.2 % at 0.901) are drawn again. No figure
uses shape 0.269, where they would be 16 %.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

STEEP = 0.901

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def generator(*parts: object) -> np.random.Generator:
    """A random stream of its own for every purpose, the same everywhere."""
    text = "/".join(map(str, parts))
    return np.random.default_rng(int.from_bytes(blake2b(text.encode()).digest()[:16], "big"))


def pareto(topics: int, shape: float) -> Floats:
    """How often each topic is picked, the most popular first.

    >>> weights = pareto(1000, STEEP)
    >>> round(float(weights[:5].sum()), 2)
    0.8
    """
    ranks = np.arange(1.0, topics + 1)
    weights = ranks**-shape - (ranks + 1) ** -shape
    return np.asarray(weights / weights.sum())


def uniform(topics: int) -> Floats:
    return np.full(topics, 1.0 / topics)


def subscriptions(weights: Floats, subscribers: int, per: int, rng: np.random.Generator) -> Bools:
    """Who holds what: each subscriber picks until it has `per` different topics.

    Drawing with replacement until `per` are different picks the same sets as a race of exponential
    clocks with these rates, of which the first `per` count.
    """
    held = np.zeros((subscribers, len(weights)), dtype=bool)
    for first in range(0, subscribers, 1000):
        rows = slice(first, min(first + 1000, subscribers))
        clocks = rng.exponential(size=(rows.stop - first, len(weights))) / weights
        chosen = np.argpartition(clocks, per - 1, axis=1)[:, :per]
        np.put_along_axis(held[rows], chosen, True, axis=1)
    return held
