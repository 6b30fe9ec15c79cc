"""The tests of a predicate: sqlglot's nodes made into functions of true, false and unknown.

Rule 1: what is not listed here is refused, by the name of its node; and so is a listed node with a
part we do not know, since the part could change its meaning.
Rule 2: None is unknown. NOT keeps it; AND and OR yield it unless another part decides.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from inorder.check.like import like
from inorder.check.operand import (
    Read,
    Values,
    attribute_of,
    comparable,
    constant_of,
    is_attribute,
    list_of,
    parts_of,
)
from inorder.core.errors import Misuse

Truth = bool | None
Test = Callable[[Values, Values], Truth]  # of parameters and attributes

COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "EQ": operator.eq,
    "NEQ": operator.ne,
    "LT": operator.lt,
    "LTE": operator.le,
    "GT": operator.gt,
    "GTE": operator.ge,
}


def test_of(node: Any) -> Test:
    kind = type(node).__name__
    if kind == "Paren":
        return test_of(parts_of(node, "this")["this"])
    if kind in ("And", "Or"):
        return _chain(node, decisive=kind == "Or")
    if kind == "Not":
        return _not(test_of(parts_of(node, "this")["this"]))
    if kind in COMPARE:
        sides = parts_of(node, "this", "expression")
        return _comparison(sides["this"], sides["expression"], COMPARE[kind])
    if kind in ("Column", "Dot"):
        return _bare(attribute_of(node))
    maker = _ATOMS.get(kind)
    if maker is None:
        raise Misuse(f"a predicate cannot hold {kind}")
    return maker(node)


def _chain(node: Any, decisive: bool) -> Test:
    """AND or OR of any number of tests; the first decisive one settles it, else unknown wins."""
    kind = type(node)
    parts: list[Test] = []
    waiting = [node]
    while waiting:  # not by recursion: a long chain is a deep tree
        part = waiting.pop()
        if type(part) is kind:
            sides = parts_of(part, "this", "expression")
            waiting += [sides["expression"], sides["this"]]
        else:
            parts.append(test_of(part))

    def test(parameters: Values, attributes: Values) -> Truth:
        truth: Truth = not decisive
        for part in parts:
            found = part(parameters, attributes)
            if found is decisive:
                return decisive
            if found is None:
                truth = None
        return truth

    return test


def _not(inner: Test) -> Test:
    def test(parameters: Values, attributes: Values) -> Truth:
        found = inner(parameters, attributes)
        return None if found is None else not found

    return test


def _bare(attribute: Read) -> Test:
    def test(parameters: Values, attributes: Values) -> Truth:
        value = attribute(parameters, attributes)
        return value if isinstance(value, bool) else None

    return test


def _comparison(left: Any, right: Any, compare: Callable[[Any, Any], bool]) -> Test:
    read_left, read_right = _value(left), _value(right)
    if is_attribute(left) == is_attribute(right):
        raise Misuse("a comparison needs one attribute and one constant or parameter")

    def test(parameters: Values, attributes: Values) -> Truth:
        a, b = read_left(parameters, attributes), read_right(parameters, attributes)
        return compare(a, b) if comparable(a, b) else None

    return test


def _value(node: Any) -> Read:
    return attribute_of(node) if is_attribute(node) else constant_of(node)


def _between(node: Any) -> Test:
    parts = parts_of(node, "this", "low", "high")
    low = _comparison(parts["this"], parts["low"], operator.ge)
    high = _comparison(parts["this"], parts["high"], operator.le)

    def test(parameters: Values, attributes: Values) -> Truth:
        a, b = low(parameters, attributes), high(parameters, attributes)
        if a is False or b is False:
            return False
        return None if a is None or b is None else True

    return test


def _in(node: Any) -> Test:
    """Some value equals the attribute; an absent attribute is in no list and out of none."""
    if node.args.get("field") is not None:
        parts = parts_of(node, "this", "field")
        values = list_of(parts["field"])
    else:
        parts = parts_of(node, "this", "expressions")
        values = _all([constant_of(part) for part in parts["expressions"]])
    attribute = attribute_of(parts["this"])

    def test(parameters: Values, attributes: Values) -> Truth:
        value = attribute(parameters, attributes)
        truth: Truth = None if value is None else False
        for other in values(parameters, attributes):
            if not comparable(value, other):
                truth = None
            elif value == other:
                return True
        return truth

    return test


def _all(reads: list[Read]) -> Read:
    return lambda parameters, attributes: [read(parameters, attributes) for read in reads]


def _like(node: Any) -> Test:
    negate = bool(node.args.get("negate"))  # how newer versions of sqlglot spell NOT LIKE
    parts = parts_of(node, "this", "expression", ignore="negate")
    attribute, pattern = attribute_of(parts["this"]), constant_of(parts["expression"])

    def test(parameters: Values, attributes: Values) -> Truth:
        value, shape = attribute(parameters, attributes), pattern(parameters, attributes)
        if not isinstance(value, str) or not isinstance(shape, str):
            return None
        return like(value, shape) != negate

    return test


def _is_null(node: Any) -> Test:
    parts = parts_of(node, "this", "expression")
    if type(parts["expression"]).__name__ != "Null":
        raise Misuse("a predicate knows IS NULL and IS NOT NULL, no other IS")
    attribute = attribute_of(parts["this"])
    return lambda parameters, attributes: attribute(parameters, attributes) is None


def _exists(node: Any) -> Test:
    attribute = attribute_of(parts_of(node, "this")["this"])
    return lambda parameters, attributes: attribute(parameters, attributes) is not None


_ATOMS: dict[str, Callable[[Any], Test]] = {
    "Between": _between,
    "In": _in,
    "Like": _like,
    "Is": _is_null,
    "Exists": _exists,
}
