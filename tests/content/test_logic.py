"""The naive evaluator: the rules one by one, and against the judges' evaluator on anything."""

from __future__ import annotations

import math
import random
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from inorder.check import predicate as judge
from inorder.content import like as like_module
from inorder.content import logic
from inorder.content.like import like, pattern_of
from inorder.content.logic import verdict
from inorder.content.syntax import parse, show
from inorder.content.value import kind_of, plain
from inorder.core.errors import PredicateError
from tests.content.strategies import draw_event, draw_tree, draw_values, edges_of, randoms

NAN = math.nan


def truth(where: str, attributes: dict[str, Any], **values: Any) -> bool | None:
    return verdict(parse(where), values, attributes)


@pytest.mark.parametrize(
    ("where", "attributes", "expected"),
    [
        ("NOT price < 5", {}, None),
        ("NOT price < 5", {"price": NAN}, None),
        ("NOT price < 5", {"price": 5}, True),
        ("price <> 5", {"price": "5"}, None),
        ("price <> 5", {}, None),
        ("a < 5 OR a >= 5", {"a": 3}, True),
        ("a < 5 OR a >= 5", {}, None),
        ("a < 5 OR a >= 5", {"a": "x"}, None),
        ("a = 1", {"a": True}, None),
        ("a = TRUE", {"a": 1}, None),
        ("a = 1", {"a": 1.0}, True),
        ("a < 1e308", {"a": math.inf}, False),
        ("a = 0", {"a": -0.0}, True),
        ("a > 9007199254740992", {"a": 2**53 + 1}, True),
        ("a = 9007199254740993", {"a": 2.0**53}, False),
        ("a IS NULL", {}, True),
        ("a IS NULL", {"a": NAN}, True),
        ("a IS NULL", {"a": [1]}, True),
        ("EXISTS a", {"a": None}, False),
        ("EXISTS a", {"a": "\ud800"}, False),
        ("a", {"a": True}, True),
        ("a", {"a": 1}, None),
        ("NOT a", {"a": False}, True),
        ("a IN (1, 'x')", {"a": 2}, None),
        ("a NOT IN (1, 2)", {"a": 3}, True),
        ("a NOT IN (1, 2)", {"a": "x"}, None),
        ("a = 1 AND b = 1", {"a": 2}, False),
        ("a = 1 AND b = 1", {"a": 1}, None),
        ("a = 1 OR b = 1", {"a": 1}, True),
        ("a BETWEEN 1 AND 'x'", {"a": 0}, False),
        ("a LIKE 'x%'", {"a": 5}, None),
        ("a < 'b'", {"a": "Z"}, True),
        ("a > '\ud7ff'", {"a": "\U00010000"}, True),
    ],
)
def test_the_rules(where: str, attributes: dict[str, Any], expected: bool | None) -> None:
    assert truth(where, attributes) is expected


def test_lists() -> None:
    assert truth("a IN :some", {"a": 1}, some=[1, 2]) is True
    assert truth("a IN :some", {"a": 1}, some=[]) is False
    assert truth("a IN :some", {}, some=[]) is None
    assert truth("a NOT IN :some", {"a": "x"}, some=()) is True


def test_a_missing_value_is_named() -> None:
    with pytest.raises(PredicateError, match=":limit") as caught:
        truth("a < :limit", {"a": 1})
    assert caught.value.code == "UNBOUND_PARAMETER"


def test_kinds() -> None:
    class Colour(str):
        pass

    assert [kind_of(one) for one in (True, 1, 2**70, math.inf, "", Colour("x"))] == [
        "truth", "number", "number", "number", "text", "text",
    ]  # fmt: skip
    assert [kind_of(one) for one in (None, NAN, b"", [], {}, 1j, "a\udfff")] == [None] * 7
    assert type(plain(Colour("x"))) is str
    assert (repr(plain(-0.0)), repr(plain(3.0)), repr(plain(2.0**64))) == ("0", "3", repr(2.0**64))


def disagreement(seed: int) -> tuple[str, Any, Any] | None:
    """A predicate and an event the two evaluators see differently, if this seed has one."""
    rng = random.Random(seed)
    tree, values = draw_tree(rng), draw_values(rng)
    text = show(tree)
    edges = edges_of(tree, values)
    for _ in range(12):
        event = draw_event(rng, edges)
        if logic.matches(tree, values, event) != judge.matches(text, values, event):
            return text, values, event
    return None


@settings(max_examples=1500, deadline=None)
@given(st.integers(0, 2**32))
def test_the_judges_read_every_predicate_alike(seed: int) -> None:
    assert disagreement(seed) is None


def _nan_is_a_number(value: Any) -> Any:
    return "number" if isinstance(value, float) else kind_of(value)


def _truth_is_a_number(value: Any) -> Any:
    return "number" if isinstance(value, bool) else kind_of(value)


_relate = logic._relate


def _absent_is_false(left: Any, op: str, right: Any) -> bool | None:
    return False if kind_of(left) is None else _relate(left, op, right)


def _floats_only(left: Any, op: str, right: Any) -> bool | None:
    if kind_of(left) == kind_of(right) == "number":
        return _relate(float(left), op, float(right))
    return _relate(left, op, right)


@pytest.mark.parametrize(
    ("name", "defect"),
    [
        ("kind_of", _nan_is_a_number),
        ("kind_of", _truth_is_a_number),
        ("_relate", _absent_is_false),
        ("_relate", _floats_only),
        ("like", lambda text, pattern: like(text, pattern.replace("\\", ""))),
    ],
)
def test_a_planted_defect_is_found(monkeypatch: pytest.MonkeyPatch, name: str, defect: Any) -> None:
    monkeypatch.setattr(logic, name, defect)
    assert any(disagreement(seed) for seed in range(500))


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


@settings(max_examples=600)
@given(st.text("ab%_\\", max_size=8), st.text("ab%_\\", max_size=6))
@example("", "%")
@example("a", "a%a")
@example("aab", "%_b")
@example("\\", "\\")
def test_like_agrees_with_trying_everything(text: str, pattern: str) -> None:
    assert like(text, pattern) == slow_like(text, pattern)
    assert like(text, pattern_of(pattern).text()) == slow_like(text, pattern)


def test_like_tries_no_place_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not timed: the search of every piece starts where the one before it ended."""
    searched: list[tuple[int, int]] = []
    after = like_module._after

    def watched(piece: Any, text: str, start: int, end: int) -> int:
        found = after(piece, text, start, end)
        searched.append((start, end if found < 0 else found))
        return found

    monkeypatch.setattr(like_module, "_after", watched)
    for pattern in ("%a" * 300 + "%b%", "%_a" * 300 + "%b%", "%" + "_a" * 300 + "b%"):
        searched.clear()
        assert not like("a" * 20_000, pattern)
        assert all(a[1] <= b[0] for a, b in pairwise(searched))


@given(randoms)
@settings(max_examples=50)
def test_the_shape_of_a_pattern_is_told_rightly(rng: random.Random) -> None:
    pattern = "".join(rng.choice("ab%_\\") for _ in range(rng.randint(0, 5)))
    shape = pattern_of(pattern)
    for _ in range(20):
        text = "".join(rng.choice("ab%_\\") for _ in range(rng.randint(0, 6)))
        fits = like(text, pattern)
        assert not fits or text.startswith(shape.prefix)
        if shape.is_plain:
            assert fits == (text == shape.prefix)
        if shape.is_prefix:
            assert fits == text.startswith(shape.prefix)
