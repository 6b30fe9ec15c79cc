"""A conjunction without its values: what stays when a parameter, or a constant, changes.

A skeleton is one disjunct with every constant and parameter replaced by a numbered place; the
values stand in a vector. So a change of values is a change of the vector, for constants too (the
step the paper omits, Sec. 3.1), and conjunctions of one shape share one skeleton whatever the order
and the names they were written with. Skeleton and vector together give the boxes (bind.py): a
broker can build them from a message.

Tests have one of four roles. Equality is `=`; a range is `<`, `<=`, `>`, `>=` or BETWEEN; a set is
IN; the residuals are the rest: `<>`, NOT IN, LIKE, NOT LIKE, EXISTS and IS NULL. A set written out
in constants takes one place, which holds the tuple of them, exactly like a list parameter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from inorder.content.tree import (
    OPERATORS,
    Between,
    Compare,
    Constant,
    Exists,
    IsNull,
    Like,
    Member,
    Not,
    Operand,
    Parameter,
    Tree,
)
from inorder.content.value import Value, fits, kind_of
from inorder.core.limits import CONTENT_SET_MEMBERS_MAX

Filling = Value | tuple[Value, ...]
Vector = tuple[Filling, ...]
Source = Parameter | Constant | tuple[Value, ...]

RANGES = ("<", "<=", ">", ">=", "between")
# How many places a test has; a set has as many as were written.
PLACES: dict[str, int | None] = {
    **dict.fromkeys(OPERATORS, 1),
    "between": 2,
    "in": None,
    "not in": None,
    "like": 1,
    "not like": 1,
    "exists": 0,
    "is null": 0,
}


class Condition(Struct, frozen=True, gc=False, array_like=True):
    """A test without its values; `places` are where in the vector they are.

    `op` is a comparison, or one of: between, in, not in, like, not like, exists, is null.
    """

    attribute: str
    op: str
    places: tuple[int, ...] = ()


class Skeleton(Struct, frozen=True, gc=False, array_like=True):
    """One disjunct; `whole` names the attributes that hold whole numbers by schema."""

    equality: tuple[Condition, ...] = ()
    ranges: tuple[Condition, ...] = ()
    sets: tuple[Condition, ...] = ()
    residuals: tuple[Condition, ...] = ()
    whole: tuple[str, ...] = ()

    def conditions(self) -> tuple[Condition, ...]:
        return self.equality + self.ranges + self.sets + self.residuals


class Sources(Struct, frozen=True):
    """Where the places of one skeleton get their values from."""

    places: tuple[Source, ...]

    def values_of(self, bindings: Mapping[str, Any]) -> Vector:
        return tuple(_filling(source, bindings) for source in self.places)


def skeleton_of(
    conjunction: Sequence[Tree], whole: frozenset[str] = frozenset()
) -> tuple[Skeleton, Sources]:
    """The skeleton of a disjunct of the normal form, and the sources of its vector.

    >>> from inorder.content.normal import normal
    >>> from inorder.content.syntax import parse
    >>> skeleton, sources = skeleton_of(normal(parse("price < :limit AND firm = 'IBM'"))[0])
    >>> skeleton.equality, skeleton.ranges
    ((Condition(attribute='firm', op='=', places=(0,)),), \
(Condition(attribute='price', op='<', places=(1,)),))
    >>> sources.values_of({"limit": 12.5})
    ('IBM', 12.5)
    """
    shapes = sorted((_shape(test) for test in conjunction), key=_rank)
    sources: list[Source] = []
    roles: list[list[Condition]] = [[], [], [], []]
    for attribute, op, operands in shapes:
        places = tuple(range(len(sources), len(sources) + len(operands)))
        roles[_role(op)].append(Condition(attribute, op, places))
        sources += operands
    names = tuple(sorted({attribute for attribute, _, _ in shapes} & whole))
    equality, ranges, sets, residuals = map(tuple, roles)
    return Skeleton(equality, ranges, sets, residuals, names), Sources(tuple(sources))


def problem(skeleton: Skeleton, vector: Vector) -> str | None:
    """Why these two, come from outside, give no boxes; None when they do.

    >>> problem(Skeleton(equality=(Condition("a", "=", (0,)),)), ())
    "'a' has a place that is not in the vector"
    """
    roles = (skeleton.equality, skeleton.ranges, skeleton.sets, skeleton.residuals)
    for role, conditions in enumerate(roles):
        for condition in conditions:
            if trouble := _trouble(condition, role, vector):
                return f"{condition.attribute[:80]!r} {trouble}"
    return None


def _trouble(condition: Condition, role: int, vector: Vector) -> str | None:
    if condition.op not in PLACES or _role(condition.op) != role:
        return f"has no test {condition.op[:20]!r} in this role"
    wanted = PLACES[condition.op]
    if wanted is not None and len(condition.places) != wanted:
        return f"needs {wanted} values for its {condition.op}"
    for place in condition.places:
        if not 0 <= place < len(vector):
            return "has a place that is not in the vector"
        filling = vector[place]
        if isinstance(filling, tuple) and wanted is not None:
            return "is compared with a list"
        members = filling if isinstance(filling, tuple) else (filling,)
        if len(members) > CONTENT_SET_MEMBERS_MAX:
            return f"has {len(members)} members, the limit is {CONTENT_SET_MEMBERS_MAX}"
        if any(kind_of(one) is None or not fits(one) for one in members):
            return "is compared with what is no value"
    return None


_Shape = tuple[str, str, tuple[Source, ...]]


def _rank(shape: _Shape) -> tuple[int, str, str, int]:
    attribute, op, operands = shape
    return _role(op), attribute, op, len(operands)


def _role(op: str) -> int:
    if op == "=":
        return 0
    if op in RANGES:
        return 1
    return 2 if op == "in" else 3


def _shape(test: Tree) -> _Shape:
    if isinstance(test, Not):
        attribute, op, operands = _shape(test.part)
        return attribute, f"not {op}", operands
    if isinstance(test, Compare):
        return test.attribute, test.op, (test.operand,)
    if isinstance(test, Between):
        return test.attribute, "between", (test.low, test.high)
    if isinstance(test, Member):
        return test.attribute, "in", _members(test.operands)
    if isinstance(test, Like):
        return test.attribute, "like", (test.operand,)
    assert isinstance(test, IsNull | Exists), "the normal form holds nothing else"
    return test.attribute, "is null" if isinstance(test, IsNull) else "exists", ()


def _members(operands: tuple[Operand, ...] | Parameter) -> tuple[Source, ...]:
    if isinstance(operands, Parameter):
        return (operands,)
    constants = tuple(one.value for one in operands if isinstance(one, Constant))
    return (constants,) if len(constants) == len(operands) else operands


def _filling(source: Source, bindings: Mapping[str, Any]) -> Filling:
    if isinstance(source, Parameter):
        filling: Filling = bindings[source.name]
        return filling
    return source.value if isinstance(source, Constant) else source
