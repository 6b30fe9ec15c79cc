"""The meaning of a predicate, taken from its tree word by word: the yardstick of boxes and indexes.

SQL's logic of three: true, false and unknown (None). Comparing with an absent attribute, or values
of different kinds, is unknown; NOT leaves unknown unknown; AND is false if a part is, OR true if a
part is, and either is unknown if a part is and nothing decides. An event matches only if the whole
is true. Only IS NULL accepts absence.

The paper ("Parametric Subscriptions for Content-Based Publish/Subscribe Networks", Sec. 2 and 3.1)
gives every event every attribute; this logic is the one in which pushing NOT inwards, as the normal
form does, changes nothing when attributes are missing (E-C13).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from inorder.content.like import like
from inorder.content.tree import (
    And,
    Between,
    Compare,
    Constant,
    Exists,
    IsNull,
    Like,
    Member,
    Not,
    Operand,
    Or,
    Parameter,
    Tree,
    Truth,
)
from inorder.content.value import kind_of
from inorder.core.errors import PredicateError

Values = Mapping[str, Any]
Verdict = bool | None

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def matches(tree: Tree, values: Values, attributes: Values) -> bool:
    """Whether an event with these attributes matches, with these values of the parameters.

    >>> tree = Not(Compare("price", "<", Parameter("limit")))
    >>> [matches(tree, {"limit": 5}, event) for event in ({"price": 7}, {"price": 3}, {})]
    [True, False, False]
    """
    return verdict(tree, values, attributes) is True


def verdict(tree: Tree, values: Values, attributes: Values) -> Verdict:
    return _RULES[type(tree)](tree, values, attributes)


def value_of(operand: Operand, values: Values) -> Any:
    if isinstance(operand, Constant):
        return operand.value
    if operand.name not in values:
        raise PredicateError("UNBOUND_PARAMETER", f"parameter :{operand.name} has no value")
    return values[operand.name]


def _and(tree: And, values: Values, attributes: Values) -> Verdict:
    found: Verdict = True
    for part in tree.parts:
        one = verdict(part, values, attributes)
        if one is False:
            return False
        if one is None:
            found = None
    return found


def _or(tree: Or, values: Values, attributes: Values) -> Verdict:
    found: Verdict = False
    for part in tree.parts:
        one = verdict(part, values, attributes)
        if one is True:
            return True
        if one is None:
            found = None
    return found


def _not(tree: Not, values: Values, attributes: Values) -> Verdict:
    found = verdict(tree.part, values, attributes)
    return None if found is None else not found


def _compare(tree: Compare, values: Values, attributes: Values) -> Verdict:
    return _relate(attributes.get(tree.attribute), tree.op, value_of(tree.operand, values))


def _relate(left: Any, op: str, right: Any) -> Verdict:
    kind = kind_of(left)
    if kind is None or kind != kind_of(right):
        return None
    return _COMPARE[op](left, right)


def _between(tree: Between, values: Values, attributes: Values) -> Verdict:
    value = attributes.get(tree.attribute)
    low = _relate(value, ">=", value_of(tree.low, values))
    high = _relate(value, "<=", value_of(tree.high, values))
    if low is False or high is False:
        return False
    return None if low is None or high is None else True


def _member(tree: Member, values: Values, attributes: Values) -> Verdict:
    """A present attribute is in no empty list; an absent one is neither in nor out of any."""
    if isinstance(tree.operands, Parameter):
        members = value_of(tree.operands, values)
    else:
        members = [value_of(operand, values) for operand in tree.operands]
    value = attributes.get(tree.attribute)
    found: Verdict = None if kind_of(value) is None else False
    for member in members:
        one = _relate(value, "=", member)
        if one is True:
            return True
        if one is None:
            found = None
    return found


def _like(tree: Like, values: Values, attributes: Values) -> Verdict:
    value, pattern = attributes.get(tree.attribute), value_of(tree.operand, values)
    if kind_of(value) != "text" or kind_of(pattern) != "text":
        return None
    return like(str(value), pattern)


def _is_null(tree: IsNull, values: Values, attributes: Values) -> Verdict:
    return kind_of(attributes.get(tree.attribute)) is None


def _exists(tree: Exists, values: Values, attributes: Values) -> Verdict:
    return kind_of(attributes.get(tree.attribute)) is not None


def _truth(tree: Truth, values: Values, attributes: Values) -> Verdict:
    value = attributes.get(tree.attribute)
    return value if isinstance(value, bool) else None


_RULES: dict[type, Callable[[Any, Values, Values], Verdict]] = {
    And: _and,
    Or: _or,
    Not: _not,
    Compare: _compare,
    Between: _between,
    Member: _member,
    Like: _like,
    IsNull: _is_null,
    Exists: _exists,
    Truth: _truth,
}
