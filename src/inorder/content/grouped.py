"""The policy "grouped": forms that differ only in the bounds of their ranges share an entry.

A group is a skeleton with fixed values for all but its bounds (plan.py). Its entry holds:
- one-sided range: the extreme value, which is exact;
- one window: the union of the windows, in up to 16 pieces, each an entry; beyond, their hull;
- several ranges: the hull, bound by bound.
A hull contains more than the forms it is made of; clients drop what they did not ask for.

Rule 1: entries keep their number while their group has members: when another client becomes the
        maximum, the neighbour is told a value and nothing else (E-C8).
Rule 2: what is shown depends on the present members only, never on how they came together.

Theory: the least upper bound always exists, it is the union (E-C11); any set that contains it may
be sent, and this one changes rarely. Of 100 clients that move their thresholds at random, about 2 %
of the moves change the extreme. A move costs a few dictionary lookups whatever the group's size.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from msgspec import Struct

from inorder.content.bind import boxes_of
from inorder.content.cuts import Cuts
from inorder.content.engine import Form, Forms
from inorder.content.extreme import Extreme
from inorder.content.ledger import Ledger
from inorder.content.plan import GroupKey, Plan, plan_of
from inorder.content.skeleton import Skeleton, Vector
from inorder.content.summary import Delta
from inorder.content.value import plain
from inorder.core.limits import CONTENT_SUMMARY_PIECES_MAX, CONTENT_SUMMARY_SWEPT_MAX

Key = tuple[str, int]
Values = tuple[Any, ...]
_NUMBERS = (int, float)


class Group:
    """The members of one group: their values at the bounds, and how many there are."""

    __slots__ = ("_windows", "entries", "extremes", "key", "members", "plan", "slide", "template")

    def __init__(self, plan: Plan, key: GroupKey, template: Vector) -> None:
        self.plan = plan
        self.key = key
        self.template = template
        self.slide = plan.bounds[0].place if len(key[1]) == 1 and not plan.skeleton.sets else None
        self.members = 0
        self.entries: dict[Values, int] = {}  # the number of each entry shown
        self.extremes = [
            Extreme(bound.is_upper, kind)
            for bound, kind in zip(plan.bounds, key[1], strict=True)
            if kind is not None
        ]
        self._windows: dict[Values, tuple[Cuts, int]] = {}

    def join(self, vector: Vector) -> None:
        values = self.plan.values(vector)
        self.members += 1
        for extreme, value in zip(self.extremes, values, strict=True):
            extreme.add(value)
        if self.plan.window:
            cuts, count = self._windows.get(values) or (self._interval(values), 0)
            self._windows[values] = cuts, count + 1

    def leave(self, vector: Vector) -> None:
        values = self.plan.values(vector)
        self.members -= 1
        for extreme, value in zip(self.extremes, values, strict=True):
            extreme.remove(value)
        if self.plan.window:
            cuts, count = self._windows.pop(values)
            if count > 1:
                self._windows[values] = cuts, count - 1

    def pieces(self, most: int) -> list[Values]:
        """The values at the bounds of each entry to show, at most so many of them."""
        if not self.members:
            return []
        if self.plan.window and len(self._windows) <= CONTENT_SUMMARY_SWEPT_MAX:
            pieces = self._union()
            if len(pieces) <= most:
                return pieces
        return [tuple([extreme.value() for extreme in self.extremes])]

    def _interval(self, values: Values) -> Cuts:
        kind = self.key[1][0]
        assert kind is not None, "nothing without a kind is placed"
        return self.plan.interval(kind, values)

    def _union(self) -> list[Values]:
        """Windows that meet become one; a window without a second cut runs to the end."""
        upper = 0 if self.plan.bounds[0].is_upper else 1
        pieces: list[tuple[Cuts, Values]] = []
        for cuts, values in sorted((cuts, one) for one, (cuts, _) in self._windows.items()):
            last, known = pieces[-1] if pieces else ((), ())
            if not pieces or (len(last) == 2 and cuts[0] > last[1]):
                pieces.append((cuts, values))
            elif len(last) == 2 and (len(cuts) == 1 or cuts[1] > last[1]):
                ends = (values[0], known[1]) if upper == 0 else (known[0], values[1])
                pieces[-1] = ((last[0], *cuts[1:]), ends)
        return [tuple([plain(value) for value in values]) for _, values in pieces]


class Placed(Struct):
    """Where a form is; None is nowhere, because nothing can match it."""

    skeleton: Skeleton
    vector: Vector
    group: Group | None


class Grouped:
    """Implements `Summary`.

    >>> from inorder.content.engine import forms_of
    >>> from inorder.content.predicate import Predicate
    >>> cheap, summary = Predicate.parse("firm = :firm AND price < :limit"), Grouped()
    >>> for number, limit in enumerate((5, 10, 7)):
    ...     summary.put(("client", number), forms_of(cheap, {"firm": "IBM", "limit": limit}))
    >>> [vector for _, (_, vector) in summary.everything()]
    [('IBM', 10)]
    >>> summary.put(("client", 0), forms_of(cheap, {"firm": "IBM", "limit": 20}))
    >>> summary.delta()
    Delta(deleted=(), added=(), moved=((1, ('IBM', 20)),))
    """

    def __init__(self, pieces: int = CONTENT_SUMMARY_PIECES_MAX) -> None:
        self.groups: dict[Skeleton, dict[GroupKey, Group]] = {}
        self._pieces = pieces
        self._placed: dict[Key, tuple[Placed, ...]] = {}
        self._stale: dict[Group, None] = {}
        self._ledger = Ledger()

    def put(self, key: Key, forms: Forms) -> None:
        before = self._placed.get(key, ())
        if len(before) == len(forms) and all(map(self._slide, before, forms)):
            return
        known = (*before, *(None,) * len(forms))
        after = tuple([self._place(*form, old) for form, old in zip(forms, known, strict=False)])
        self._placed[key] = after
        self._move(before, after)

    def drop(self, key: Key) -> None:
        self._move(self._placed.pop(key, ()), ())

    def delta(self) -> Delta:
        self.settle()
        return self._ledger.delta()

    def everything(self) -> Sequence[tuple[int, Form]]:
        self.settle()
        return self._ledger.everything()

    def settle(self) -> int:
        """Bring the entries up to date with the groups that changed; how many entries there are."""
        for group in self._stale:
            self._show(group)
            if not group.members:
                groups = self.groups[group.plan.skeleton]
                del groups[group.key]
                if not groups:
                    del self.groups[group.plan.skeleton]
        self._stale.clear()
        return len(self._ledger)

    def keep_apart(self, pieces: int) -> None:
        """From now on show unions in at most so many pieces."""
        if pieces == self._pieces:
            return
        self._pieces = pieces
        for groups in self.groups.values():
            self._stale.update(dict.fromkeys(groups.values()))

    # Members.

    def _place(self, skeleton: Skeleton, vector: Vector, old: Placed | None) -> Placed:
        """Where a form belongs; forms of one skeleton mostly stay where they are."""
        home = old.group if old is not None and old.skeleton is skeleton else None
        if home is not None and len(home.template) != len(vector):
            home = None
        plan = home.plan if home is not None else self._plan(skeleton, vector)
        values = plan.values(vector)
        key = plan.key(vector, values)
        if not _can_match(plan, key, vector, values):
            return Placed(skeleton, vector, None)
        if home is None or home.key != key:
            groups = self.groups.setdefault(skeleton, {})
            home = groups.get(key)
            if home is None:
                home = groups[key] = Group(plan, key, vector)
                self._stale[home] = None
        return Placed(skeleton, vector, home)

    def _slide(self, placed: Placed, form: Form) -> bool:
        """The short way for what happens most: one bound moves, all else is as it was.

        False when that is not so, or not seen to be so at a glance; then nothing has happened.
        """
        skeleton, vector = form
        group, old = placed.group, placed.vector
        if skeleton is not placed.skeleton or group is None or group.slide is None:
            return False
        if len(vector) != len(old):
            return False
        for place in group.plan.fixed:
            if not _is_same(vector[place], old[place]):
                return False
        value, before = vector[group.slide], old[group.slide]
        if not _is_same_kind(value, before):
            return False
        extreme = group.extremes[0]
        extreme.add(value)
        extreme.remove(before)
        placed.vector = vector
        self._stale[group] = None
        return True

    def _plan(self, skeleton: Skeleton, vector: Vector) -> Plan:
        first = next(iter(self.groups.get(skeleton, {}).values()), None)
        if first is not None and len(first.template) == len(vector):
            return first.plan
        return plan_of(skeleton, len(vector))

    def _move(self, before: tuple[Placed, ...], after: tuple[Placed, ...]) -> None:
        for old, new in zip_longest(before, after):
            if new is not None and new.group is not None:
                new.group.join(new.vector)
                self._stale[new.group] = None
            if old is not None and old.group is not None:
                old.group.leave(old.vector)
                self._stale[old.group] = None

    # Entries.

    def _show(self, group: Group) -> None:
        """Entries that are the same stay as they are; the others take over each other's numbers."""
        plan, known, entries = group.plan, group.entries, {}
        fresh: list[tuple[Values, Vector]] = []
        for values in group.pieces(self._pieces):
            if values in known:
                entries[values] = known[values]
            else:
                vector = plan.vector(group.template, values)
                if boxes_of(plan.skeleton, vector):
                    fresh.append((values, vector))
        spare = [rid for values, rid in known.items() if values not in entries]
        for values, vector in fresh:
            if spare:
                entries[values] = spare.pop(0)
                self._ledger.rewrite(entries[values], vector)
            else:
                entries[values] = self._ledger.open((plan.skeleton, vector))
        for rid in spare:
            self._ledger.close(rid)
        group.entries = entries


def _is_same(a: Any, b: Any) -> bool:
    """Surely the same value; of sets only if they are the same object, for True is not 1."""
    return a is b or (type(a) is type(b) and type(a) is not tuple and a == b)


def _is_same_kind(a: Any, b: Any) -> bool:
    if type(a) in _NUMBERS:
        return type(b) in _NUMBERS and a == a  # NaN is of no kind
    return type(a) is str and type(b) is str and a.isascii()


def _can_match(plan: Plan, key: GroupKey, vector: Vector, values: Values) -> bool:
    """Whether a form counts: one that matches nothing must not widen a hull.

    Those of a group with one bound lie in each other, so there it is enough to look at the entry.
    """
    kinds = key[1]
    if plan.skeleton.sets or (len(kinds) > 1 and not plan.window):
        return bool(boxes_of(plan.skeleton, vector))
    if not plan.window:
        return None not in kinds
    kind = kinds[0]
    return kind is not None and kind == kinds[1] and bool(plan.interval(kind, values))
