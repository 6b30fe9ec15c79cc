"""Skeleton and vector into boxes: what happens on every change of a value, so it is kept short.

A conjunction is one box, except that an IN whose members are of several kinds needs a box for each
kind: a slot holds one kind only. Conjunctions that nothing can match give no box.
"""

from __future__ import annotations

from inorder.content.box import Box, Residual, box_of
from inorder.content.cuts import LINE, both, points, span, starting_with, without
from inorder.content.like import pattern_of
from inorder.content.skeleton import Condition, Skeleton, Vector
from inorder.content.slot import ABSENT, EXISTS, KINDS, NOTHING, TEXT, Slot, slot_of
from inorder.content.value import Kind, Value, kind_of
from inorder.core.errors import PredicateError
from inorder.core.limits import CONTENT_DISJUNCTS_MAX


def boxes_of(skeleton: Skeleton, vector: Vector) -> tuple[Box, ...]:
    """The boxes of a conjunction with these values; none when nothing can match.

    >>> price = Skeleton(ranges=(Condition("price", "between", (0, 1)),))
    >>> [box.contains({"price": 3}) for box in boxes_of(price, (1, 5))], boxes_of(price, (5, 1))
    ([True], ())
    """
    choices: list[dict[str, Slot]] = [{}]
    residuals: list[Residual] = []
    for condition in skeleton.conditions():
        attribute = condition.attribute
        slots, residual = _slots_of(condition, vector, attribute in skeleton.whole)
        if residual is not None:
            residuals.append(residual)
        narrowed: list[dict[str, Slot]] = []
        for slot in slots:
            for choice in choices:
                known = choice.get(attribute)
                met = slot if known is None else known.intersect(slot)
                if not met.is_empty():
                    narrowed.append({**choice, attribute: met})
        choices = narrowed
        if len(choices) > CONTENT_DISJUNCTS_MAX:
            problem = f"sets of several kinds make more than {CONTENT_DISJUNCTS_MAX} boxes"
            raise PredicateError("PREDICATE_TOO_LARGE", problem)
    boxes = (box_of(choice, residuals) for choice in choices)
    return tuple(box for box in boxes if not box.is_empty())


def _slots_of(
    condition: Condition, vector: Vector, whole: bool
) -> tuple[tuple[Slot, ...], Residual | None]:
    """The slots of a test, of which any may hold, and what the slots cannot say."""
    op = condition.op
    if op in ("exists", "is null"):
        return (EXISTS if op == "exists" else ABSENT,), None
    if op in ("in", "not in"):
        members = _members(condition, vector)
        return (_among(members, whole) if op == "in" else _outside(members, whole)), None
    value = vector[condition.places[0]]
    assert not isinstance(value, tuple), f"{op} compares with one value"
    kind = kind_of(value)
    if kind is None:
        return (NOTHING,), None
    if op in ("like", "not like"):
        return _fitting(condition.attribute, value, op == "not like")
    if op != "between":
        return (slot_of(kind, span(kind, op, value, whole)),), None
    high = vector[condition.places[1]]
    assert not isinstance(high, tuple), "BETWEEN compares with two values"
    if kind_of(high) != kind:
        return (NOTHING,), None
    cuts = both(span(kind, ">=", value, whole), span(kind, "<=", high, whole))
    return (slot_of(kind, cuts),), None


def _members(condition: Condition, vector: Vector) -> dict[Kind, list[Value]]:
    members: dict[Kind, list[Value]] = {}
    for place in condition.places:
        filling = vector[place]
        for value in filling if isinstance(filling, tuple) else (filling,):
            kind = kind_of(value)
            if kind is not None:
                members.setdefault(kind, []).append(value)
    return members


def _among(members: dict[Kind, list[Value]], whole: bool) -> tuple[Slot, ...]:
    return tuple(
        slot_of(kind, points(kind, members[kind], whole)) for kind in KINDS if kind in members
    )


def _outside(members: dict[Kind, list[Value]], whole: bool) -> tuple[Slot, ...]:
    """Unequal to all: of none, any value will do; of two kinds, no value is unequal to both."""
    if not members:
        return (EXISTS,)
    if len(members) > 1:
        return (NOTHING,)
    (kind,) = members
    return (slot_of(kind, without(LINE[kind], points(kind, members[kind], whole))),)


def _fitting(
    attribute: str, pattern: Value, negated: bool
) -> tuple[tuple[Slot, ...], Residual | None]:
    """LIKE: a prefix or a plain text is a set of its own; all else keeps its prefix beside it."""
    if not isinstance(pattern, str):
        return (NOTHING,), None
    if negated:
        return (TEXT,), Residual(attribute, pattern_of(pattern).text(), True)
    shape = pattern_of(pattern)
    if shape.is_plain:
        return (slot_of("text", span("text", "=", shape.prefix)),), None
    slot = slot_of("text", starting_with(shape.prefix))
    return (slot,), None if shape.is_prefix else Residual(attribute, shape.text(), False)
