"""Predicates, values and events for the tests of content subscriptions.

Everything is drawn from one seeded generator, so that a strategy is a seed and a negative control
can walk the same seeds. Events stand on the edges of what a predicate says: the constant itself,
one ulp or one step beside it, the prefix and its successor, absent, NaN, another kind.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st

from inorder.content.box import Box
from inorder.content.syntax import (
    And,
    Between,
    Compare,
    Constant,
    Exists,
    IsNull,
    Like,
    Member,
    Not,
    Or,
    Parameter,
    Tree,
    Truth,
)
from inorder.content.tree import OPERATORS

NAMES = ["x", "y", "z.w"]
NUMBERS: list[Any] = [0, -0.0, 1, 1.0, 1.5, 2, -3, 2**53, 2**53 + 1, 2.0**53, 2**63 + 1, 1e300]
TEXTS = ["", "a", "ab", "abc", "b", "50%", "it's", "\ud7ff", "a\U0010ffff", "\U0010ffff", "é"]
PATTERNS = [
    "a%",
    "ab%",
    "%",
    "",
    "a",
    "a_%",
    "%b",
    "a%c",
    r"50\%",
    r"a\b%",
    "\ud7ff%",
    "a\U0010ffff%",
]
TRUTHS = [True, False]

SCHEMA = {"i": "int", "f": "float", "s": "string", "ok": "bool", "at": "timestamp"}

randoms = st.integers(0, 2**32).map(random.Random)


def draw_constant(rng: random.Random) -> Any:
    return rng.choice(rng.choice([NUMBERS, NUMBERS, TEXTS, TRUTHS]))


def draw_values(rng: random.Random) -> dict[str, Any]:
    """A value for every parameter a drawn predicate may use."""
    return {
        "n": rng.choice([*NUMBERS, math.inf, -math.inf]),
        "t": rng.choice([*TEXTS, *PATTERNS]),
        "b": rng.choice(TRUTHS),
        "ns": rng.sample([*NUMBERS, math.inf], rng.randint(0, 4)),
        "ts": rng.sample(TEXTS, rng.randint(0, 3)),
    }


def used(values: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: values[name] for name in names}


def draw_tree(rng: random.Random, depth: int = 3) -> Tree:
    """Any predicate over NAMES, with no thought for kinds."""
    if depth and rng.random() < 0.65:
        if rng.random() < 0.3:
            return Not(draw_tree(rng, depth - 1))
        parts = tuple(draw_tree(rng, depth - 1) for _ in range(rng.choice([2, 2, 3])))
        return And(parts) if rng.random() < 0.5 else Or(parts)
    name = rng.choice(NAMES)
    operand = lambda: (  # noqa: E731
        Parameter(rng.choice("ntb")) if rng.random() < 0.3 else Constant(draw_constant(rng))
    )
    sort = rng.random()
    if sort < 0.45:
        return Compare(name, rng.choice(OPERATORS), operand())
    if sort < 0.55:
        return Between(name, operand(), operand())
    if sort < 0.7:
        listed = rng.random() < 0.4
        some = tuple(operand() for _ in range(rng.randint(1, 3)))
        return Member(name, Parameter(rng.choice(["ns", "ts"])) if listed else some)
    if sort < 0.85:
        pattern = Parameter("t") if rng.random() < 0.3 else Constant(rng.choice(PATTERNS))
        return Like(name, pattern)
    return rng.choice([IsNull, Exists, Truth])(name)


def draw_typed_tree(rng: random.Random, depth: int = 2) -> Tree:
    """A predicate that keeps to SCHEMA."""
    if depth and rng.random() < 0.6:
        if rng.random() < 0.3:
            return Not(draw_typed_tree(rng, depth - 1))
        parts = tuple(draw_typed_tree(rng, depth - 1) for _ in range(2))
        return And(parts) if rng.random() < 0.5 else Or(parts)
    name = rng.choice(sorted(SCHEMA))
    pool: list[Any] = [0, 1, 2, 3, 1.5, 2.5, -1]
    parameter, many = "n", "ns"
    if name == "s":
        pool, parameter, many = TEXTS, "t", "ts"
    elif name == "ok":
        pool, parameter, many = TRUTHS, "b", ""
    operand = lambda: (  # noqa: E731
        Parameter(parameter) if rng.random() < 0.25 else Constant(rng.choice(pool))
    )
    sort = rng.random()
    if sort < 0.5:
        return Compare(name, rng.choice(OPERATORS), operand())
    if sort < 0.6:
        return Between(name, operand(), operand())
    if sort < 0.75:
        if many and rng.random() < 0.4:
            return Member(name, Parameter(many))
        return Member(name, tuple(operand() for _ in range(rng.randint(1, 3))))
    if name == "s" and sort < 0.9:
        return Like(name, Constant(rng.choice(PATTERNS)))
    return rng.choice([IsNull, Exists, Truth if name == "ok" else Exists])(name)


trees = randoms.map(draw_tree)
typed_trees = randoms.map(draw_typed_tree)


def neighbours(value: Any) -> list[Any]:
    """A value, what lies just beside it, and what looks like it but is of another kind."""
    if isinstance(value, bool):
        return [value, not value, int(value)]
    if isinstance(value, str):
        beside = [value, value + "\0", value + "a", value[:-1], value + "\U0010ffff"]
        if value and value[-1] < "\U0010ffff" and not 0xD7FF <= ord(value[-1]) <= 0xDFFF:
            beside.append(value[:-1] + chr(ord(value[-1]) + 1))
        return [*beside, value.replace("%", "b").replace("_", "c"), "\ue000"]
    beside = [value, str(value)]
    if math.isfinite(value):
        beside += [math.nextafter(value, math.inf), math.nextafter(value, -math.inf), float(value)]
        beside += [int(value) - 1, int(value), int(value) + 1, bool(value)]
    return beside


ALWAYS: list[Any] = [None, math.nan, math.inf, -math.inf, "", True, 0, -0.0]


def draw_event(
    rng: random.Random, edges: list[Any], names: Iterable[str] = NAMES
) -> dict[str, Any]:
    return {
        name: rng.choice(rng.choice([edges, ALWAYS]) or ALWAYS)
        for name in names
        if rng.random() < 0.85
    }


def edges_of(tree: Tree, values: dict[str, Any]) -> list[Any]:
    """All values on the edges of a predicate."""
    found: list[Any] = []
    waiting: list[Any] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, And | Or):
            waiting += node.parts
        elif isinstance(node, Not):
            waiting.append(node.part)
        elif isinstance(node, Constant):
            found.append(node.value)
        elif isinstance(node, Parameter):
            value = values[node.name]
            found += value if isinstance(value, list) else [value]
        elif isinstance(node, tuple):
            waiting += node
        else:
            parts = ("operand", "low", "high", "operands")
            waiting += [getattr(node, part) for part in parts if hasattr(node, part)]
    return [beside for value in found for beside in neighbours(value)]


def edges_of_boxes(boxes: Iterable[Box]) -> list[Any]:
    return [
        beside
        for box in boxes
        for _, slot in box.slots
        for value, _ in slot.cuts
        for beside in neighbours(value)
    ] + ["abc", "axc", "xb", "50%", "\\"]
