"""When a topic below deserves a higher place: the two measures of a topic's importance.

Busy topics belong high up: their events then have few stages to visit.

- `f` (section 5 of the report): f(x) = exp(-1 / (alpha (x + 1))) of the number of publications;
  swap when f of the lower exceeds f of the upper by beta. It saturates at 1: with alpha 0.1 and
  beta 0.2 a topic with 44 events can never be moved down (E6). Kept for reproduction.
- `rate`: publications a second, old ones counting less; swap when the lower's rate exceeds
  (1 + beta) times the upper's, by `rate_min` at least.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp

from inorder.protocols.total.manager import Manager
from inorder.protocols.total.messages import Fill
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
    fill: Fill,
    entries: Sequence[tuple[str, int]],
    rank: Mapping[str, int],
    now: float,
) -> str | None:
    """The topic to change places with, judged by a stamp that passes by."""
    mine = rank[manager.s.topic]
    if options.metric == "rate":
        bar = (1.0 + options.beta) * manager.rate(now) + options.rate_min
        return fill.topic if fill.rate > bar else None
    bar = f(manager.s.count, options.alpha) + options.beta
    for topic, number in sorted(entries):
        if rank[topic] > mine and f(number, options.alpha) > bar:
            return topic
    return None
