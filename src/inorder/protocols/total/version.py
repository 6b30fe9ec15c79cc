"""Versions of a subscriber's topic set: larger is newer, over crashes too.

A subscriber counts its changes from 1 in each of its lives (a crash begins the next one). The
version holds both, so that a change of an older life never replaces one of a newer.
"""

from __future__ import annotations

LIFE_BITS = 32

# Where the life stands in the number of a session (../session/book.py).
SESSION_BITS = 16
LIVES_MAX = 1 << 24


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


def session_of(life: int) -> int:
    """The number of the session that a life begins with: above all of earlier lives.

    >>> session_of(2) > session_of(1)
    True
    """
    return life % LIVES_MAX << SESSION_BITS


def begun_by(session: int, life: int) -> bool:
    """Whether a session belongs to this life.

    >>> begun_by(session_of(2), 2), begun_by(session_of(2), 3)
    (True, False)
    """
    return (session >> SESSION_BITS) % LIVES_MAX == life % LIVES_MAX
