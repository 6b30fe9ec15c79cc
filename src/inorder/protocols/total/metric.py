"""The report's measure of a topic's importance (section 5), kept for its figures 16 to 20.

f(x) = exp(-1 / (alpha (x + 1))) of the number x of publications. A manager asks to change places
with a topic below whose f exceeds its own by beta. f saturates at 1: with alpha 0.1 and beta 0.2 a
topic with 44 events can never be moved down (E6). rates.py is what we use instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp

from inorder.protocols.total.manager import Manager
from inorder.protocols.total.options import Options


def f(count: int, alpha: float) -> float:
    """
    >>> round(f(9, 0.1), 3)
    0.368
    """
    return exp(-1.0 / (alpha * (count + 1)))


def wants_swap(
    options: Options,
    manager: Manager,
    entries: Sequence[tuple[str, int]],
    rank: Mapping[str, int],
) -> str | None:
    """The topic to change places with, judged by a stamp that passes by."""
    mine = rank[manager.s.topic]
    bar = f(manager.s.count, options.alpha) + options.beta
    for topic, number in sorted(entries):
        if rank[topic] > mine and f(number, options.alpha) > bar:
            return topic
    return None
