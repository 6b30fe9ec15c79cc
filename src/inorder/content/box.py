"""A conjunction with its values: for each attribute a slot, and the LIKE tests no slot can say.

Theory: an event is a point, a conjunction a box, a subscription a union of boxes (paper, Sec. 3.1).
Covering is inclusion of boxes. `includes` compares one box with one: sound, and complete but for
LIKE. `subtract` cuts a box into the disjoint pieces outside another one; a box lies in a union when
nothing is left after subtracting all of it, which is how `[0, 10]` is found inside `[0, 5]` and
`[5, 10]` together (E-C13). An attribute without a slot may be anything, also absent.

Rule 1: the slots are sorted by attribute and none of them is `any`: equal boxes have equal bytes.
Rule 2: the attribute of a residual has a slot of text, so that where the slots hold a residual is
        true or false and never unknown. `box_of` sees to both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from msgspec import Struct

from inorder.content.cuts import Cuts
from inorder.content.like import like
from inorder.content.slot import ANY, KINDS, TEXT, Slot
from inorder.content.value import fits, kind_of, plain


class Residual(Struct, frozen=True, gc=False, array_like=True, order=True):
    """A LIKE, or a NOT LIKE, that is tested after the slots."""

    attribute: str
    pattern: str
    negated: bool = False

    def holds(self, value: Any) -> bool:
        return kind_of(value) == "text" and like(str(value), self.pattern) != self.negated


class Box(Struct, frozen=True, gc=False, array_like=True):
    """Make one with `box_of`.

    >>> price = Slot("number", ((10, -1), (20, -1)))
    >>> box = box_of({"price": price})
    >>> box.contains({"price": 15.5}), box.contains({"price": 20}), box.contains({})
    (True, False, False)
    """

    slots: tuple[tuple[str, Slot], ...] = ()
    residuals: tuple[Residual, ...] = ()

    def contains(self, attributes: Mapping[str, Any]) -> bool:
        for attribute, slot in self.slots:
            if not slot.contains(attributes.get(attribute)):
                return False
        return all(test.holds(attributes.get(test.attribute)) for test in self.residuals)

    def slot(self, attribute: str) -> Slot:
        for name, slot in self.slots:
            if name == attribute:
                return slot
        return ANY

    def is_empty(self) -> bool:
        """Whether nothing can be inside: an empty slot, or a LIKE beside its own NOT LIKE."""
        if any(slot.is_empty() for _, slot in self.slots):
            return True
        return any(opposite(test) in self.residuals for test in self.residuals if test.negated)

    def intersect(self, other: Box) -> Box:
        slots = dict(self.slots)
        for attribute, slot in other.slots:
            mine = slots.get(attribute)
            slots[attribute] = slot if mine is None else mine.intersect(slot)
        return box_of(slots, (*self.residuals, *other.residuals))

    def includes(self, other: Box) -> bool:
        """Whether every event in the other box is in this one; "no" may also mean "cannot tell"."""
        theirs = dict(other.slots)
        for attribute, slot in self.slots:
            if not slot.includes(theirs.get(attribute, ANY)):
                return other.is_empty()
        return all(test in other.residuals for test in self.residuals) or other.is_empty()

    def subtract(self, other: Box) -> tuple[Box, ...]:
        """This box without the other one, in disjoint boxes.

        >>> low, high = Slot("number", ((0, -1), (5, -1))), Slot("number", ((3, -1), (9, -1)))
        >>> [piece.slots[0][1].cuts for piece in box_of({"a": low}).subtract(box_of({"a": high}))]
        [((0, -1), (3, -1))]
        """
        if self.intersect(other).is_empty():
            return () if self.is_empty() else (self,)
        pieces: list[Box] = []
        rest = dict(self.slots)
        for attribute, slot in other.slots:
            mine = rest.get(attribute, ANY)
            for part in mine.minus(slot):
                pieces.append(box_of({**rest, attribute: part}, self.residuals))
            rest[attribute] = mine.intersect(slot)
        tests = list(self.residuals)
        for test in other.residuals:
            pieces.append(box_of(rest, (*tests, opposite(test))))
            tests.append(test)
        return tuple(piece for piece in pieces if not piece.is_empty())


def opposite(test: Residual) -> Residual:
    return Residual(test.attribute, test.pattern, not test.negated)


def box_of(slots: Mapping[str, Slot], residuals: Iterable[Residual] = ()) -> Box:
    """The one spelling of a box with these slots and residuals.

    >>> box_of({"b": ANY, "a": Slot("exists")}).slots
    (('a', Slot(state='exists', cuts=())),)
    """
    tests = tuple(sorted({*residuals})) if residuals else ()
    if tests:
        slots = dict(slots)
        for test in tests:
            slots[test.attribute] = slots.get(test.attribute, ANY).intersect(TEXT)
    kept = [(attribute, slots[attribute]) for attribute in sorted(slots)]
    return Box(tuple(one for one in kept if one[1].state != "any"), tests)


def problem(box: Box) -> str | None:
    """What is wrong with a box that came from outside, if anything: boxes travel in messages."""
    names = [attribute for attribute, _ in box.slots]
    if any(a >= b for a, b in pairwise(names)):
        return "attributes are not in order"
    for attribute, slot in box.slots:
        if slot.state == "any" or (slot.state not in KINDS and slot.cuts):
            return f"{attribute[:80]!r} has a slot of no use"
        if slot.state in KINDS and (trouble := _trouble(slot.state, slot.cuts)):
            return f"{attribute[:80]!r} {trouble}"
    if list(box.residuals) != sorted({*box.residuals}):
        return "residuals are not in order"
    for test in box.residuals:
        if not box.slot(test.attribute).is_empty() and box.slot(test.attribute).state != "text":
            return f"{test.attribute[:80]!r} has a LIKE but no text"
    return None


def _trouble(kind: str, cuts: Cuts) -> str | None:
    for value, side in cuts:
        if kind_of(value) != kind or side not in (-1, 1):
            return f"has a cut that is no {kind}"
        if not fits(value) or type(plain(value)) is not type(value):
            return "has a number in another spelling"
        if (kind == "truth" and side > 0) or (value == float("inf") and side > 0):
            return "has a cut at the end of the line"
    if any(a >= b for a, b in pairwise(cuts)):
        return "has cuts that do not rise"
    return None
