"""What a box says of one attribute: any, absent, exists, or a set of values of one kind.

`any` also accepts absence; it is not the whole line, which requires a value (E-C24). A set of one
kind never holds a value of another: `a < 5 OR a >= 5` is "a is a number", not "true".
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from inorder.content.cuts import LINE, Cuts, both, holds, within, without
from inorder.content.value import Kind, Value, kind_of

State = Literal["any", "absent", "exists", "truth", "number", "text"]
KINDS: tuple[Kind, ...] = ("truth", "number", "text")
_SINGLE_TRUTHS: dict[Cuts, Value] = {((True, -1),): True, ((False, -1), (True, -1)): False}


class Slot(Struct, frozen=True, gc=False, array_like=True):
    """`cuts` belongs to a state that is a kind; without a cut such a slot is empty.

    >>> number = Slot("number", ((3, -1), (5, 1)))
    >>> number.contains(5.0), number.contains("4"), number.contains(None)
    (True, False, False)
    """

    state: State
    cuts: Cuts = ()

    def contains(self, value: Any) -> bool:
        if self.state == "any":
            return True
        kind = kind_of(value)
        if self.state == "absent":
            return kind is None
        if self.state == "exists":
            return kind is not None
        return kind == self.state and holds(self.cuts, value)

    def is_empty(self) -> bool:
        return not self.cuts and self.state in KINDS

    def intersect(self, other: Slot) -> Slot:
        if self.state == "any" or self == other:
            return other
        if other.state == "any":
            return self
        if self.state == "absent" or other.state == "absent":
            return NOTHING
        if self.state == "exists":
            return other
        if other.state == "exists":
            return self
        if self.state != other.state:
            return NOTHING
        return slot_of(self.state, both(self.cuts, other.cuts))

    def includes(self, other: Slot) -> bool:
        """Whether every value of the other one, absence counted as one, is here."""
        if self.state == "any" or other.is_empty():
            return True
        if self.state == "exists":
            return other.state not in ("any", "absent")
        if self.state != other.state:
            return False
        return self.state == "absent" or within(other.cuts, self.cuts)

    def minus(self, other: Slot) -> tuple[Slot, ...]:
        """What is here and not there, in disjoint slots; absence is a slot of its own.

        >>> [part.state for part in ANY.minus(Slot("number", ((3, -1),)))]
        ['absent', 'truth', 'number', 'text']
        """
        if other.includes(self):
            return ()
        if other.state == "absent":
            return (EXISTS,) if self.state == "any" else (self,)
        parts: list[Slot] = [ABSENT] if self.state in ("any", "absent") else []
        if other.state == "exists":
            return tuple(parts)
        for kind in KINDS:
            if self.state not in ("any", "exists", kind):
                continue
            here = self.cuts if self.state == kind else LINE[kind]
            left = without(here, other.cuts) if other.state == kind else here
            if left:
                parts.append(Slot(kind, left))
        return tuple(parts)

    def single(self, whole: bool = False) -> Value | None:
        """The only value there is room for, if that is so; `whole` when fractions cannot occur.

        >>> Slot("number", ((4, -1), (4, 1))).single(), Slot("number", ((4, -1),)).single()
        (4, None)
        >>> Slot("number", ((4, -1), (5, -1))).single(whole=True)
        4
        """
        if self.state == "truth":
            return _SINGLE_TRUTHS.get(self.cuts)
        if len(self.cuts) != 2:
            return None
        (low, _), (high, _) = self.cuts
        if whole and isinstance(low, int) and isinstance(high, int) and high == low + 1:
            return low
        return low if low == high else None


ANY = Slot("any")
ABSENT = Slot("absent")
EXISTS = Slot("exists")
NOTHING = Slot("number", ())
TEXT = Slot("text", LINE["text"])


def slot_of(kind: State, cuts: Cuts) -> Slot:
    """The slot of a set; every empty set is the one slot NOTHING."""
    return Slot(kind, cuts) if cuts else NOTHING
