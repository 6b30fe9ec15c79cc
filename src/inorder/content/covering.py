"""Covering: is every event that one set of boxes holds held by another one too?

Rule 1: "yes" is always true. "No" may mean "cannot tell": a covering that is missed costs state,
        one that is invented loses events.
Rule 2: the boxes are those of bind.py, of current values and none of them empty. When a value
        changes, every answer about it is void.

Theory (paper, Sec. 3.1, and E-C13): a box lies in a union when nothing is left after taking every
box of the union away. Taking one away cuts the rest into disjoint pieces, absence being a piece of
its own, and each piece goes on with the boxes that follow. That finds every covering, LIKE apart:
two patterns are compared by their text only. In general the question is co-NP-complete, hence the
budget. Comparing boxes one with one is quicker and misses about a tenth.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from msgspec import Struct

from inorder.content.box import Box
from inorder.core.limits import CONTENT_COVER_BOXES_MAX

Boxes = tuple[Box, ...]


class Level(IntEnum):
    """How hard to look. SINGLE knows one box in one box, PAIRWISE each box in some box."""

    SINGLE = 0
    PAIRWISE = 1
    SUBTRACTION = 2


class Verdict(Struct, frozen=True, gc=False):
    """`visited` pieces were looked at by subtraction; `cut` says that the budget was used up."""

    covers: bool
    visited: int = 0
    cut: bool = False


YES, NO = Verdict(True), Verdict(False)


def covers(
    a: Boxes,
    b: Boxes,
    budget: int = CONTENT_COVER_BOXES_MAX,
    level: Level = Level.SUBTRACTION,
) -> bool:
    """Whether `a` holds all that `b` holds.

    >>> from inorder.content.predicate import Predicate
    >>> halves = Predicate.parse("p BETWEEN 0 AND 5 OR p BETWEEN 5 AND 10").bind({})
    >>> whole = Predicate.parse("p BETWEEN 0 AND 10").bind({})
    >>> covers(halves, whole), covers(halves, whole, level=Level.PAIRWISE)
    (True, False)
    """
    return covering(a, b, budget, level).covers


def covering(
    a: Boxes,
    b: Boxes,
    budget: int = CONTENT_COVER_BOXES_MAX,
    level: Level = Level.SUBTRACTION,
) -> Verdict:
    """The same, and what it took to find out."""
    if len(a) == 1 and len(b) == 1:
        return YES if inside(b[0], a[0]) else NO
    if level == Level.SINGLE:
        return NO if b else YES
    left = [inner for inner in b if not any(inside(inner, outer) for outer in a)]
    if not left:
        return YES
    if level == Level.PAIRWISE or len(a) < 2:
        return NO
    return _nothing_left(a, left, budget)


def inside(inner: Box, outer: Box) -> bool:
    """Box.includes for boxes that are not empty, which spares it a second look at each slot."""
    theirs = dict(inner.slots)
    for attribute, slot in outer.slots:
        other = theirs.get(attribute)
        if other is None or not slot.includes(other):
            return False
    return not outer.residuals or all(test in inner.residuals for test in outer.residuals)


def _nothing_left(a: Boxes, b: Iterable[Box], budget: int) -> Verdict:
    waiting = [(box, 0) for box in b]
    visited = 0
    while waiting:
        piece, at = waiting.pop()
        if visited == budget:
            return Verdict(False, visited, True)
        visited += 1
        for at in range(at, len(a)):  # noqa: B020
            rest = piece.subtract(a[at])
            if len(rest) != 1 or rest[0] is not piece:  # else the two do not meet
                waiting += [(one, at + 1) for one in rest]
                break
        else:
            return Verdict(False, visited)
    return Verdict(True, visited)
