from __future__ import annotations

import json
import math
import random
import subprocess
import sys
from contextlib import suppress
from itertools import product
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from inorder.check.like import like
from inorder.check.predicate import matches
from inorder.core.errors import Misuse, TooLarge
from inorder.core.limits import PREDICATE_BYTES_MAX, PREDICATE_DEPTH_MAX

TRUE, FALSE, UNKNOWN = "x = 1", "x = 2", "absent = 1"
TRUTH = {TRUE: True, FALSE: False, UNKNOWN: None}


def truth(where: str, attributes: dict[str, Any], **parameters: Any) -> bool | None:
    """True, false or unknown, seen from outside: unknown matches neither way."""
    if matches(where, parameters, attributes):
        return True
    return False if matches(f"NOT ({where})", parameters, attributes) else None


@pytest.mark.parametrize(("a", "b"), list(product(TRUTH, repeat=2)))
def test_and_and_or_follow_the_table_of_three_truths(a: str, b: str) -> None:
    found = {TRUTH[a], TRUTH[b]}
    both = False if False in found else None if None in found else True
    either = True if True in found else None if None in found else False
    assert truth(f"{a} AND {b}", {"x": 1}) is both
    assert truth(f"{a} OR {b}", {"x": 1}) is either


@pytest.mark.parametrize("a", TRUTH)
def test_not_keeps_the_unknown(a: str) -> None:
    inner = TRUTH[a]
    assert truth(f"NOT {a}", {"x": 1}) is (None if inner is None else not inner)
    assert truth(f"NOT NOT {a}", {"x": 1}) is inner


@pytest.mark.parametrize(
    ("where", "attributes"),
    [
        ("price < 5", {}),
        ("price <> 5", {"price": "5"}),
        ("price <> 5", {"price": None}),
        ("price = 1", {"price": True}),
        ("flag = TRUE", {"flag": 1}),
        ("price < 5", {"price": math.nan}),
        ("a < 5 OR a >= 5", {}),
        ("a < 5 OR a >= 5", {"a": "x"}),
        ("flag", {}),
        ("flag", {"flag": 1}),
        ("x IN (1, 'a')", {"x": 2}),
        ("x NOT IN (1, 2)", {}),
        ("x NOT IN (1, 2)", {"x": "1"}),
        ("x BETWEEN 1 AND 'z'", {"x": 2}),
        ("x LIKE 'a%'", {"x": 5}),
        ("x NOT LIKE 'a%'", {}),
    ],
)
def test_what_cannot_be_compared_is_unknown(where: str, attributes: dict[str, Any]) -> None:
    assert truth(where, attributes) is None


@pytest.mark.parametrize(
    ("where", "attributes", "expected"),
    [
        ("price < 5", {"price": 4.5}, True),
        ("5 > price", {"price": 4.5}, True),
        ("price = 5", {"price": 5.0}, True),
        ("price == 5.0", {"price": 5}, True),
        ("price != 5", {"price": 6}, True),
        ("price > -5", {"price": -4}, True),
        ("-5 < price", {"price": -6}, False),
        ("big = 9007199254740993", {"big": 9007199254740992.0}, False),
        ("firm = 'IBM'", {"firm": "IBM"}, True),
        ("firm = 'IBM'", {"firm": "ibm"}, False),
        ("firm < 'b'", {"firm": "a"}, True),
        ("it = 'it''s'", {"it": "it's"}, True),
        ("Firm = 1", {"firm": 1}, None),
        ('"a b" = 1', {"a b": 1}, True),
        ('a."b c".d.e.f.g = 1', {"a.b c.d.e.f.g": 1}, True),
        ("flag", {"flag": True}, True),
        ("NOT flag", {"flag": False}, True),
        ("flag = FALSE", {"flag": False}, True),
        ("x IS NULL", {}, True),
        ("x IS NULL", {"x": math.nan}, True),
        ("x IS NOT NULL", {"x": 0}, True),
        ("x IS NOT NULL", {}, False),
        ("EXISTS x", {"x": 0}, True),
        ("EXISTS x", {}, False),
        ('a = 1 AND NOT EXISTS é."b c" OR b', {"a": 1, "é.b c": 2, "b": False}, False),
        ('a = 1 AND NOT EXISTS é."b c" OR b', {"a": 1, "b": False}, True),
        ("EXISTS(x)", {"x": ""}, True),
        ("x BETWEEN 1 AND 2 AND y = 3", {"x": 2, "y": 3}, True),
        ("x NOT BETWEEN 1 AND 2", {"x": 3}, True),
        ("x NOT BETWEEN 5 AND 'z'", {"x": 3}, True),
        ("5 BETWEEN x AND y", {"x": 1, "y": 9}, True),
        ("x IN (1, 2, 'a')", {"x": 2.0}, True),
        ("x IN (1, 2)", {"x": 3}, False),
        ("x NOT IN (1, 2)", {"x": 3}, True),
        ("x = 1 or y = 2 and y = 3", {"x": 1, "y": 0}, True),
        ("(x = 1 or y = 2) and y = 3", {"x": 1, "y": 0}, False),
        ("not x = 1 and y = 3", {"x": 2, "y": 0}, False),
    ],
)
def test_meaning(where: str, attributes: dict[str, Any], expected: bool | None) -> None:
    assert truth(where, attributes) is expected


def test_parameters_stand_for_constants() -> None:
    assert truth("x < :limit", {"x": 4}, limit=5) is True
    assert truth(":limit <= x", {"x": 4}, limit=5) is False
    assert truth("x < :limit", {"x": 4}, limit=None) is None
    assert truth("x < :limit", {"x": 4}, limit="5") is None
    assert truth("x IN (:a, 7)", {"x": 4}, a=4) is True
    assert truth("x LIKE :shape", {"x": "abc"}, shape="%c") is True
    assert truth("x LIKE :shape", {"x": "abc"}, shape=3) is None


def test_a_list_parameter_stands_for_a_list() -> None:
    assert truth("x IN :some", {"x": 4}, some=[1, 4]) is True
    assert truth("x NOT IN :some", {"x": 4}, some=[1, None]) is None
    assert truth("x IN :some AND y", {"x": 4, "y": True}, some=[]) is False
    assert truth("x NOT IN :some", {"x": 4}, some=[]) is True
    assert truth("x NOT IN :some", {}, some=[]) is None


@pytest.mark.parametrize(
    "where",
    [
        "", " ", ";", "a = 1; b = 2", "a = 1;", "SELECT 1", "DROP TABLE x", "f(a) = 1", "a + 1 = 2",
        "a = b", "1 = 1", "TRUE", "5", "'x'", ":flag", "a = NULL", "a IS TRUE", "a IN ()",
        "a IN (SELECT 1)", "a IN (b)", "EXISTS (SELECT 1)", "EXISTS", "EXISTS 5", "a <=> 1",
        "a := 1", "(a, b) = (1, 2)", "a = @x", "a = ?", "a = $1", "a = :1", "a ILIKE 'x'",
        "a LIKE 'x' ESCAPE '!'", "a LIKE b", "a BETWEEN SYMMETRIC 1 AND 2", "a.* = 1", "*",
        "a[0] = 1", "CASE WHEN a THEN b END", "a AS b", "a b", "a = 'x' 'y'", "a = 'x", "a = 1 AND",
        "a = b = c", "a::int = 1", "CAST(a AS INT) = 1", "a = DATE '2024-01-01'", "a = 1e999",
        "a = - -5", "a = -'5'", "a BETWEEN 1", "a XOR b", "a = 0x1F", "a = N'x'", "a || 'x' = 'y'",
        "a REGEXP 'x'", "a SIMILAR TO 'x'", "a IS DISTINCT FROM 1", "a = ANY (1, 2)", "a IN b",
        "a IN 5", "NOT", "(", ")", "a = (1)", "current_date = 1", "a = 1 -- \n OR", "\0", "a = '\0",
        "WITH x AS (SELECT 1) SELECT 1", "a = INTERVAL '1' day", "a.b() = 1", "a = {x: 1}",
    ],
)  # fmt: skip
def test_whatever_else_sql_can_say_is_refused(where: str) -> None:
    with pytest.raises(Misuse):
        matches(where, {"flag": True}, {"a": 1, "b": True})


def test_the_refusal_names_the_construct() -> None:
    with pytest.raises(Misuse, match="Anonymous"):
        matches("f(a) = 1", {}, {})
    with pytest.raises(Misuse, match="ILike"):
        matches("a ILIKE 'x'", {}, {})
    with pytest.raises(Misuse, match=":limit has no value"):
        matches("a < :limit", {}, {"a": 1})
    with pytest.raises(Misuse, match="must be a list"):
        matches("a IN :some", {"some": 5}, {"a": 1})
    with pytest.raises(Misuse, match="holds a list"):
        matches("a = :some", {"some": [5]}, {"a": 1})
    with pytest.raises(Misuse, match="holds a dict"):
        matches("a = 1", {}, {"a": {}})


@pytest.mark.parametrize(
    "where",
    [
        "a = '" + "x" * PREDICATE_BYTES_MAX + "'",
        "é" * (PREDICATE_BYTES_MAX // 2 + 1),
        "(" * 2000 + "a" + ")" * 2000,
        "(" * 4000,
        "NOT " * 1000 + "a",
        "NOT (" * 500 + "a" + ")" * 500,
        "a IN (" + "(" * 100 + "1" + ")" * 101,
    ],
)
def test_what_is_too_large_or_too_deep_is_refused_before_it_is_read(where: str) -> None:
    with pytest.raises(TooLarge):
        matches(where, {}, {})


@pytest.mark.parametrize(
    "where", ["a" + " = a" * 900, "- " * 1900 + "a", "a" + ".a" * 1900 + " = b", "a " * 2000]
)
def test_long_nonsense_is_refused_too(where: str) -> None:
    with pytest.raises(Misuse):
        matches(where, {}, {})


def test_as_deep_and_as_long_as_allowed_is_read() -> None:
    deep = "(" * PREDICATE_DEPTH_MAX + "a" + ")" * PREDICATE_DEPTH_MAX
    assert matches(deep, {}, {"a": True})
    assert matches("NOT " * PREDICATE_DEPTH_MAX + "a", {}, {"a": True})
    assert matches(" OR ".join(["b"] * 500 + ["a"]), {}, {"a": True})
    assert matches(" AND ".join(["a"] * 500), {}, {"a": True})


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=60))
@example("a = '\ud800'")
def test_no_text_raises_anything_but_misuse(where: str) -> None:
    with suppress(Misuse):
        matches(where, {}, {})


WORDS = """
a b :p 1 -2.5 'x%' TRUE NULL AND OR NOT ( ) = < >= <> IN LIKE BETWEEN IS EXISTS . , : ? * + ; " '
-- /* */ [ ] { } SELECT CASE
"""


@settings(max_examples=400, deadline=None)
@given(
    st.lists(
        st.sampled_from(WORDS.split()),
        max_size=12,
    )
)
def test_no_heap_of_words_raises_anything_but_misuse(words: list[str]) -> None:
    with suppress(Misuse):
        matches(" ".join(words), {"p": 1}, {"a": 1, "b": True})


def test_loading_the_judges_does_not_load_sqlglot() -> None:
    code = "import sys, inorder.check; sys.exit('sqlglot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# A second evaluator: trees instead of text, and a table instead of rules.

KINDS: dict[type, str] = {int: "number", float: "number", str: "text", bool: "truth"}
SIGNS = ["=", "<>", "<", "<=", ">", ">="]


def draw_tree(rng: random.Random, depth: int) -> Any:
    if depth and rng.random() < 0.6:
        if rng.random() < 0.3:
            return ("NOT", draw_tree(rng, depth - 1))
        return (rng.choice(["AND", "OR"]), draw_tree(rng, depth - 1), draw_tree(rng, depth - 1))
    name = rng.choice("xyz")
    if rng.random() < 0.2:
        return (rng.choice(["IS NULL", "EXISTS", "BARE"]), name)
    if rng.random() < 0.3:
        return ("IN", name, [draw_value(rng) for _ in range(rng.randint(1, 3))])
    return (rng.choice(SIGNS), name, draw_value(rng))


def draw_value(rng: random.Random) -> Any:
    return rng.choice([0, 1, 2, 1.0, 1.5, "a", "b", "1", True, False])


def text_of(tree: Any) -> str:
    match tree:
        case ("NOT", inner):
            return f"NOT ({text_of(inner)})"
        case ("AND" | "OR" as sign, a, b):
            return f"({text_of(a)}) {sign} ({text_of(b)})"
        case ("BARE", name):
            return str(name)
        case ("EXISTS", name):
            return f"EXISTS {name}"
        case ("IS NULL", name):
            return f"{name} IS NULL"
        case ("IN", name, values):
            return f"{name} IN ({', '.join(map(constant, values))})"
        case (sign, name, value):
            return f"{name} {sign} {constant(value)}"
    raise AssertionError(tree)


def constant(value: Any) -> str:
    if isinstance(value, str):
        return f"'{value}'"
    return json.dumps(value).upper()


def value_of(tree: Any, attributes: dict[str, Any]) -> float:
    """1 is true, 0 is false, one half is unknown: AND is the least, OR the greatest."""
    match tree:
        case ("NOT", inner):
            return 1 - value_of(inner, attributes)
        case ("AND" | "OR" as sign, a, b):
            both = (value_of(a, attributes), value_of(b, attributes))
            return min(both) if sign == "AND" else max(both)
        case ("BARE", name):
            return value_of(("=", name, True), attributes)
        case ("EXISTS", name):
            return float(attributes.get(name) is not None)
        case ("IS NULL", name):
            return float(attributes.get(name) is None)
        case ("IN", name, values):
            return max(value_of(("=", name, value), attributes) for value in values)
        case (sign, name, value):
            have = attributes.get(name)
            if have is None or KINDS[type(have)] != KINDS[type(value)]:
                return 0.5
            less, equal = have < value, have == value
            table = [equal, not equal, less, less or equal, not (less or equal), not less]
            return float(table[SIGNS.index(sign)])
    raise AssertionError(tree)


@settings(max_examples=400, deadline=None)
@given(st.randoms(use_true_random=False))
def test_every_predicate_means_what_the_second_evaluator_says(rng: random.Random) -> None:
    tree = draw_tree(rng, 4)
    attributes = {name: draw_value(rng) for name in "xyz" if rng.random() < 0.8}
    assert matches(text_of(tree), {}, attributes) == (value_of(tree, attributes) == 1)


# LIKE.


def slow_like(text: str, pattern: str) -> bool:
    if not pattern:
        return not text
    head, rest = pattern[0], pattern[1:]
    if head == "%":
        return any(slow_like(text[at:], rest) for at in range(len(text) + 1))
    if head == "\\" and rest[:1] and rest[0] in "%_\\":
        return text[:1] == rest[0] and slow_like(text[1:], rest[1:])
    return bool(text) and head in ("_", text[0]) and slow_like(text[1:], rest)


@settings(max_examples=1000)
@given(st.text("ab%_\\", max_size=8), st.text("ab%_\\", max_size=6))
@example("", "")
@example("", "%")
@example("a", "a%a")
@example("aab", "%_b")
def test_like_agrees_with_trying_everything(text: str, pattern: str) -> None:
    assert like(text, pattern) == slow_like(text, pattern)


def test_like_stays_quick_on_hostile_patterns() -> None:
    text = "a" * 100_000
    assert not like(text, "%a" * 500 + "b")
    assert not like(text, "%" + "a" * 1000 + "b%")
    assert not like(text, "%" + "_a" * 500 + "b%")
