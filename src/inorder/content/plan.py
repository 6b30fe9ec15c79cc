"""How forms of one skeleton are summarised: which values decide the group, and which ones widen.

The bounds of ranges widen: the place of a `<` takes the greatest value of the group, that of a `>`
the least, so that the conjunction with those values contains each of the group. All else, that is
equality, IN, `<>`, NOT IN and LIKE, is the same for all of a group. Values of another kind make
another group too: no number is above all texts.

Rule 1: a place that two conditions read cannot widen for both and stays fixed. Skeletons of ours
        have no such place; what a peer sends may.
Rule 2: nothing widens beside an IN of several kinds: the boxes of such a form multiply, and those
        of a wider one might be too many (bind.py).
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from msgspec import Struct

from inorder.content.cuts import Cuts, both, span
from inorder.content.skeleton import Condition, Filling, Skeleton, Vector
from inorder.content.value import Kind, Value, kind_of

GroupKey = tuple[tuple[Any, ...], tuple[Kind | None, ...]]


class Bound(Struct, frozen=True, gc=False):
    """A place of a range; `op` is the comparison of the attribute with the value there."""

    place: int
    attribute: str
    op: str

    @property
    def is_upper(self) -> bool:
        return self.op in ("<", "<=")


class Plan(Struct, frozen=True, gc=False):
    """`bounds` widen, `fixed` places stay; `window` when the bounds are the two ends of one."""

    skeleton: Skeleton
    bounds: tuple[Bound, ...]
    fixed: tuple[int, ...]
    window: bool

    def values(self, vector: Vector) -> tuple[Any, ...]:
        return tuple([vector[bound.place] for bound in self.bounds])

    def key(self, vector: Vector, values: tuple[Any, ...]) -> GroupKey:
        """What forms must share to be in one group; a None among the kinds: nothing can match."""
        fixed = tuple([_exact(vector[place]) for place in self.fixed])
        if self.skeleton.sets and self._is_mixed(vector):
            fixed += tuple([_exact(value) for value in values])
        return fixed, tuple([kind_of(value) for value in values])

    def vector(self, like: Vector, values: tuple[Value, ...]) -> Vector:
        """The vector of a form of the group with these values at the bounds."""
        found: list[Filling] = list(like)
        for bound, value in zip(self.bounds, values, strict=True):
            found[bound.place] = value
        return tuple(found)

    def interval(self, kind: Kind, values: tuple[Any, ...]) -> Cuts:
        """The window between these values; for windows only."""
        whole = self.bounds[0].attribute in self.skeleton.whole
        a, b = (span(kind, one.op, v, whole) for one, v in zip(self.bounds, values, strict=True))
        return both(a, b) if a and b else ()

    def _is_mixed(self, vector: Vector) -> bool:
        """Whether an IN has members of several kinds: one box for each kind."""
        for condition in self.skeleton.sets:
            fillings = [vector[place] for place in condition.places]
            members = [one for f in fillings for one in (f if isinstance(f, tuple) else (f,))]
            if len({kind_of(one) for one in members}) > 1:
                return True
        return False


def plan_of(skeleton: Skeleton, places: int) -> Plan:
    """The plan of a skeleton whose vectors have so many places.

    >>> window = Skeleton(ranges=(Condition("p", "<", (0,)), Condition("p", ">=", (1,))))
    >>> plan = plan_of(window, 2)
    >>> plan.window, plan.interval("number", (5, 3)), plan.fixed
    (True, ((3, -1), (5, -1)), ())
    """
    uses = Counter(place for one in skeleton.conditions() for place in one.places)
    bounds = [bound for one in skeleton.ranges for bound in _bounds(one) if uses[bound.place] == 1]
    widening = {bound.place for bound in bounds}
    fixed = tuple(place for place in range(places) if place not in widening)
    window = (
        len(bounds) == 2
        and len({bound.attribute for bound in bounds}) == 1
        and bounds[0].is_upper != bounds[1].is_upper
        and sum(len(one.places) for one in skeleton.ranges) == 2
    )
    return Plan(skeleton, tuple(bounds), fixed, window)


def _bounds(condition: Condition) -> list[Bound]:
    if condition.op == "between":
        low, high = condition.places
        attribute = condition.attribute
        return [Bound(low, attribute, ">="), Bound(high, attribute, "<=")]
    return [Bound(condition.places[0], condition.attribute, condition.op)]


def _exact(filling: Any) -> Any:
    """A filling such that True is not 1; the order of a set does not matter."""
    if isinstance(filling, tuple):
        return frozenset([_exact(value) for value in filling])
    return ("truth", filling) if isinstance(filling, bool) else filling
