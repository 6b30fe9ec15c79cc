"""A skeleton, looked at once: where its forms are hashed, and which ends their ranges have.

Equalities and sets are hashed; each attribute counts once. Ranges of one attribute meet in at most
two ends. What this cannot say is left to boxes: tests of other sorts (LIKE, <>, NOT IN, EXISTS, IS
NULL), an attribute with two roles, and, form by form, ranges of text or truth values, ends that are
no floats, and sets too large to be hashed. Boxes are exact and slow; hashing still narrows them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from math import prod
from typing import Any

from msgspec import Struct

from inorder.content.bind import boxes_of
from inorder.content.box import Box
from inorder.content.index.ends import PLAIN, End, Spot, end_of, hashed, hashed_constant
from inorder.content.index.row import Bounds
from inorder.content.index.sheet import Side
from inorder.content.skeleton import Condition, Skeleton, Vector
from inorder.core.limits import INDEX_SPOTS_PER_FORM_MAX

_SIDES = {">": (True,), ">=": (True,), "<": (False,), "<=": (False,), "between": (True, False)}
_SETS_IN_DOUBT = 4  # so many sets of several kinds can make more boxes than are allowed


class Placement(Struct, frozen=True, gc=False):
    """Where a form stands. Without spots: anywhere (None) or nowhere (); with boxes: beside."""

    spots: tuple[Spot, ...] | None = ()
    bounds: Bounds = ()
    boxes: tuple[Box, ...] = ()


class Plan:
    """All that an index needs to know of a skeleton.

    >>> firm, price = Condition("firm", "=", (0,)), Condition("price", "<=", (1,))
    >>> plan = Plan(Skeleton((firm,), (price,)))
    >>> plan.hashed, plan.ranged, plan.sides
    (('firm',), ('price',), (Side(attribute=0, low=False),))
    >>> plan.place(("IBM", 10))
    Placement(spots=('IBM',), bounds=(10.0,), boxes=())
    """

    def __init__(self, skeleton: Skeleton) -> None:
        self.skeleton = skeleton
        keyed: dict[str, Condition] = {}
        for condition in skeleton.equality + skeleton.sets:
            keyed.setdefault(condition.attribute, condition)
        self._keyed = tuple(keyed.values())
        self.hashed = tuple(keyed)
        self.whole = tuple(name in skeleton.whole for name in keyed)
        # Whether boxes have the last word on every form.
        self.doubtful = (
            bool(skeleton.residuals)
            or len(keyed) < len(skeleton.equality) + len(skeleton.sets)
            or any(condition.attribute in keyed for condition in skeleton.ranges)
            or len(skeleton.sets) >= _SETS_IN_DOUBT
        )
        ends = {} if self.doubtful else _ends(skeleton)
        self.sides = tuple(ends)
        names = dict.fromkeys(name for name, _ in _ordered(skeleton))
        self.ranged = () if self.doubtful else tuple(names)
        self.windows = sum(Side(side.attribute, True) in ends for side in ends if not side.low)
        self.spot_of = _spot_of(self.hashed, self.whole)
        self.bounds_of = _bounds_of(ends)
        self.equal_places = tuple(one.places[0] for one in self._keyed if one.op == "=")
        self.set_places = tuple(p for one in self._keyed if one.op == "in" for p in one.places)

    def place(self, vector: Vector) -> Placement:
        """Where a form with these values stands; what is wrong with them is raised here."""
        bounds = None if self.doubtful else self.bounds_of(vector)
        boxes: tuple[Box, ...] = ()
        if bounds is None:
            boxes, bounds = boxes_of(self.skeleton, vector), ()
            if not boxes:
                return Placement()
        members = [self._members(condition, vector) for condition in self._keyed]
        if prod(map(len, members)) > INDEX_SPOTS_PER_FORM_MAX:
            return Placement(None, (), boxes or boxes_of(self.skeleton, vector))
        if len(members) == 1:
            return Placement(tuple(members[0]), bounds, boxes)
        return Placement(tuple(product(*members)), bounds, boxes)

    def _members(self, condition: Condition, vector: Vector) -> dict[Spot, None]:
        whole = condition.attribute in self.skeleton.whole
        members: dict[Spot, None] = {}
        for place in condition.places:
            filling = vector[place]
            assert condition.op == "in" or not isinstance(filling, tuple), "= compares with one"
            for value in filling if isinstance(filling, tuple) else (filling,):
                spot = hashed_constant(value, whole)
                if spot is not None:
                    members[spot] = None
        return members


def _ordered(skeleton: Skeleton) -> list[tuple[str, tuple[bool, ...]]]:
    """The ranged attributes with the ends they have, those with both first."""
    sides: dict[str, tuple[bool, ...]] = {}
    for condition in skeleton.ranges:
        sides[condition.attribute] = sides.get(condition.attribute, ()) + _SIDES[condition.op]
    ordered = [(name, tuple(sorted({*found}, reverse=True))) for name, found in sides.items()]
    return sorted(ordered, key=lambda one: (-len(one[1]), one[0]))


_Ends = dict[Side, tuple[tuple[int, End], ...]]


def _ends(skeleton: Skeleton) -> _Ends:
    """For each end the places of its values, and how these become one."""
    ends: _Ends = {}
    for attribute, (name, lows) in enumerate(_ordered(skeleton)):
        for low in lows:
            found: list[tuple[int, End]] = []
            for condition in skeleton.ranges:
                if condition.attribute != name or low not in _SIDES[condition.op]:
                    continue
                op = (">=" if low else "<=") if condition.op == "between" else condition.op
                place = condition.places[0 if low or condition.op != "between" else 1]
                found.append((place, end_of(op, name in skeleton.whole)))
            ends[Side(attribute, low)] = tuple(found)
    return ends


def _bounds_of(ends: _Ends) -> Callable[[Vector], Bounds | None]:
    """Values to ends; None when they are no floats, and boxes must decide."""
    if len(ends) == 1 and len(only := next(iter(ends.values()))) == 1:
        ((place, end_of_one),) = only

        def one(vector: Vector) -> Bounds | None:
            end = end_of_one(vector[place])
            return None if end is None else (end,)

        return one
    singles = [found[0] for found in ends.values() if len(found) == 1]
    if len(singles) == len(ends):

        def straight(vector: Vector) -> Bounds | None:
            bounds = tuple([end(vector[place]) for place, end in singles])
            return None if None in bounds else bounds  # type: ignore[return-value]

        return straight

    def tightest(vector: Vector) -> Bounds | None:
        bounds: list[float] = []
        for side, found in ends.items():
            known = [end(vector[place]) for place, end in found]
            exact = [end for end in known if end is not None]
            if len(exact) < len(known):
                return None
            bounds.append(max(exact) if side.low else min(exact))
        return tuple(bounds)

    return tightest


def _spot_of(
    names: tuple[str, ...], whole: tuple[bool, ...]
) -> Callable[[Mapping[str, Any]], Spot]:
    """How an event's spot is found."""
    if not names:
        return lambda attributes: ()
    if len(names) == 1 and not whole[0]:
        (name,) = names

        def one(attributes: Mapping[str, Any]) -> Spot:
            value = attributes.get(name)
            return value if type(value) in PLAIN else hashed(value)

        return one
    if len(names) == 1:
        return lambda attributes: hashed(attributes.get(names[0]), True)
    if any(whole):
        pairs = tuple(zip(names, whole, strict=True))
        return lambda attributes: tuple([hashed(attributes.get(name), w) for name, w in pairs])

    def several(attributes: Mapping[str, Any]) -> Spot:
        values = [attributes.get(name) for name in names]
        for value in values:
            if type(value) not in PLAIN:
                return tuple([hashed(value) for value in values])
        return tuple(values)

    return several
