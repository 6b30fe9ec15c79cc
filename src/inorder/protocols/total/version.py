"""Versions of a subscriber's topic set: larger is newer, over crashes too.

A subscriber counts its changes from 1 in each of its lives (a crash begins the next one). The
version holds both, so that a change of an older life never replaces one of a newer.
"""

from __future__ import annotations

LIFE_BITS = 32


def version_of(life: int, change: int) -> int:
    """
    >>> version_of(2, 1) > version_of(1, 999)
    True
    """
    assert 0 <= change < 1 << LIFE_BITS
    return life << LIFE_BITS | change


def life_of(version: int) -> int:
    """
    >>> life_of(version_of(7, 3))
    7
    """
    return version >> LIFE_BITS
