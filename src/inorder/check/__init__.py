"""Judges: a history in, a verdict out. One file a promise."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from inorder.check import (
    accepted,
    acyclic,
    causal,
    fifo,
    integrity,
    position,
    realtime,
    reliable,
    total,
    unique,
)
from inorder.check import filter as filter_
from inorder.check.history import History
from inorder.check.verdict import Verdict
from inorder.core.errors import UnknownName

__all__ = ["BROKE", "PROMISES", "History", "Verdict", "judge"]

PROMISES: dict[str, Callable[[History], Verdict]] = {
    "total": total.check,
    "causal": causal.check,
    "causal_across_topics": causal.check_across,
    "fifo": fifo.check,
    "per_publisher": fifo.check_per_publisher,
    "unique": unique.check,
    "reliable": reliable.check,
    "filter": filter_.check,
    "accepted": accepted.check,
    "realtime": realtime.check,
}

# What to say when a promise is broken, by `Verdict.promise`, those under `also` included.
BROKE: dict[str, str] = {
    "total": total.BROKE_TOTAL,
    "acyclic": acyclic.BROKE_ACYCLIC,
    "position": position.BROKE_POSITION,
    "causal": causal.BROKE_CAUSAL,
    "causal_across_topics": causal.BROKE_ACROSS,
    "fifo": fifo.BROKE_FIFO,
    "per_publisher": fifo.BROKE_PER_PUBLISHER,
    "unique": unique.BROKE_UNIQUE,
    "reliable": reliable.BROKE_RELIABLE,
    "integrity": integrity.BROKE_INTEGRITY,
    "filter": filter_.BROKE_FILTER,
    "accepted": accepted.BROKE_ACCEPTED,
    "realtime": realtime.BROKE_REALTIME,
}


def judge(history: History, promises: Iterable[str] | None = None) -> dict[str, Verdict]:
    """The verdicts on the named promises (all by default), in the order asked.

    >>> log = History.foreign([("a", 1, "x"), ("a", 2, "y"), ("b", 1, "y"), ("b", 2, "x")])
    >>> verdict = judge(log, ["total"])["total"]
    >>> verdict.violations, verdict.witness["events"]
    (1, ['x', 'y'])
    """
    names = list(PROMISES if promises is None else promises)
    for name in names:
        if name not in PROMISES:
            raise UnknownName("promise", name, list(PROMISES))
    return {name: PROMISES[name](history) for name in names}
