"""The entries of a link: what they are now, what the neighbour was told, and the difference.

An entry is opened with a form, rewritten with other values of the same skeleton, and closed. The
difference is looked for only among entries that were touched since the last time, and only it is
compared with what was sent: never predicates with each other (E-C9b).
"""

from __future__ import annotations

from inorder.content.engine import Form
from inorder.content.same import alike
from inorder.content.skeleton import Vector
from inorder.content.summary import Delta

_NOTHING = Delta()


class Ledger:
    """Numbers entries from 1; no number is used twice.

    >>> from inorder.content.skeleton import Condition, Skeleton
    >>> cheap, ledger = Skeleton(ranges=(Condition("price", "<", (0,)),)), Ledger()
    >>> rid = ledger.open((cheap, (10,)))
    >>> len(ledger.delta().added), ledger.delta() == Delta()
    (1, True)
    >>> ledger.rewrite(rid, (20,))
    >>> ledger.delta().moved
    ((1, (20,)),)
    """

    def __init__(self) -> None:
        self._now: dict[int, Form] = {}
        self._told: dict[int, Form] = {}
        self._touched: dict[int, None] = {}
        self._next = 1

    def __len__(self) -> int:
        return len(self._now)

    def __getitem__(self, rid: int) -> Form:
        return self._now[rid]

    def open(self, form: Form) -> int:
        rid = self._next
        self._next += 1
        self._now[rid] = form
        self._touched[rid] = None
        return rid

    def rewrite(self, rid: int, vector: Vector) -> None:
        skeleton, _ = self._now[rid]
        self._now[rid] = (skeleton, vector)
        self._touched[rid] = None

    def close(self, rid: int) -> None:
        del self._now[rid]
        self._touched[rid] = None

    def delta(self) -> Delta:
        """What the neighbour does not know yet; from now on it does."""
        if not self._touched:
            return _NOTHING
        now, told = self._now, self._told
        touched = sorted(self._touched)
        change = Delta(
            tuple(rid for rid in touched if rid in told and rid not in now),
            tuple((rid, now[rid]) for rid in touched if rid in now and rid not in told),
            tuple(
                (rid, now[rid][1])
                for rid in touched
                if rid in now and rid in told and not alike(now[rid][1], told[rid][1])
            ),
        )
        self._touched.clear()
        for rid in change.deleted:
            del told[rid]
        for rid, form in change.added:
            told[rid] = form
        for rid, _ in change.moved:
            told[rid] = now[rid]
        return change

    def everything(self) -> list[tuple[int, Form]]:
        self._touched.clear()
        self._told = dict(self._now)
        return sorted(self._now.items(), key=lambda entry: entry[0])
