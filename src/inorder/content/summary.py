"""What a broker tells a neighbour about everybody behind it: the one interface of all policies.

Rule 1: a summary contains everything it summarises. It may contain more (clients filter); never
        less, or events are lost.
Rule 2: an entry keeps its link-local number, the *rid*, as long as it lives. A change of values is
        a change of the entry, not a new one.

`delta` says what changed since it was last asked, so that one message can carry all of it.
`Everything` is the policy that summarises nothing: the yardstick for the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from inorder.content.engine import Form, Forms
from inorder.content.same import alike
from inorder.content.skeleton import Vector


class Delta(Struct, frozen=True, gc=False, array_like=True):
    """One atomic change of the entries on a link."""

    deleted: tuple[int, ...] = ()
    added: tuple[tuple[int, Form], ...] = ()
    # Entries whose skeleton stays: rid and the whole new vector.
    moved: tuple[tuple[int, Vector], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.deleted or self.added or self.moved)


class Summary(Protocol):
    """Summarises interests that are known by any hashable, sortable key."""

    def put(self, key: tuple[str, int], forms: Forms) -> None:
        """Take an interest in, or change it, structure and all."""

    def drop(self, key: tuple[str, int]) -> None:
        """Forget an interest; one that is not known is none."""

    def delta(self) -> Delta:
        """What the neighbour must be told to be up to date; it counts as told."""

    def everything(self) -> Sequence[tuple[int, Form]]:
        """All entries, for a neighbour that begins anew; they count as told."""


class Everything:
    """Each form is an entry of its own."""

    def __init__(self) -> None:
        self._rids: dict[tuple[str, int], dict[int, int]] = {}
        self._now: dict[int, Form] = {}
        self._told: dict[int, Form] = {}
        self._next = 1

    def put(self, key: tuple[str, int], forms: Forms) -> None:
        rids = self._rids.setdefault(key, {})
        for place in range(len(forms), len(rids)):
            del self._now[rids.pop(place)]
        for place, form in enumerate(forms):
            known = self._now.get(rids.get(place, 0))
            if known is None or known[0] != form[0]:
                self._now.pop(rids.get(place, 0), None)
                rids[place] = self._next
                self._next += 1
            self._now[rids[place]] = form

    def drop(self, key: tuple[str, int]) -> None:
        for rid in self._rids.pop(key, {}).values():
            del self._now[rid]

    def delta(self) -> Delta:
        told, now = self._told, self._now
        change = Delta(
            tuple(sorted(rid for rid in told if rid not in now)),
            tuple((rid, now[rid]) for rid in sorted(now) if rid not in told),
            tuple(
                (rid, now[rid][1])
                for rid in sorted(now)
                if rid in told and not alike(told[rid][1], now[rid][1])
            ),
        )
        self._told = dict(now)
        return change

    def everything(self) -> Sequence[tuple[int, Form]]:
        self._told = dict(self._now)
        return sorted(self._now.items())
