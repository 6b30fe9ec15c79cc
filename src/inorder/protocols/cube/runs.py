"""Sets of numbers as runs: first and last of each, rising, none touching another.

The same shape as in messages, so that what a peer says of its numbers can be compared as it stands.
"""

from __future__ import annotations

from collections.abc import Iterable

from inorder.protocols.cube.messages import Runs


def union(runs: Iterable[tuple[int, int]]) -> Runs:
    """
    >>> union([(5, 6), (1, 2), (3, 3), (6, 9)])
    ((1, 3), (5, 9))
    """
    joined: list[tuple[int, int]] = []
    for first, last in sorted(runs):
        if first > last:
            continue
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return tuple(joined)


def without(runs: Runs, others: Runs) -> Runs:
    """
    >>> without(((1, 9),), ((1, 2), (5, 5), (8, 12)))
    ((3, 4), (6, 7))
    """
    left: list[tuple[int, int]] = []
    for first, last in runs:
        for low, high in others:
            if high < first or low > last:
                continue
            if low > first:
                left.append((first, low - 1))
            first = high + 1
        if first <= last:
            left.append((first, last))
    return tuple(left)


def within(runs: Runs, low: int, high: int) -> Runs:
    """
    >>> within(((1, 4), (6, 9)), 3, 7)
    ((3, 4), (6, 7))
    """
    cut = ((max(first, low), min(last, high)) for first, last in runs)
    return tuple((first, last) for first, last in cut if first <= last)


def holds(runs: Runs, number: int) -> bool:
    return any(first <= number <= last for first, last in runs)
