"""Texts nobody should write: refused with the right code, and before they cost anything."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from inorder.check import predicate as judge
from inorder.content import foreign
from inorder.content.logic import matches
from inorder.content.predicate import Predicate
from inorder.content.syntax import parse
from inorder.core.errors import Misuse, PredicateError
from inorder.core.limits import (
    CONTENT_NESTING_MAX,
    CONTENT_SET_MEMBERS_MAX,
    CONTENT_TEXT_BYTES_MAX,
    CONTENT_TOKENS_MAX,
)


def code_of(text: str) -> str:
    with pytest.raises(PredicateError) as caught:
        Predicate.parse(text)
    return caught.value.code


DEEP = CONTENT_NESTING_MAX + 1


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("(" * DEEP + "a" + ")" * DEEP, "SYNTAX"),
        ("(" * 20_000, "SYNTAX"),
        ("(" * 60_000, "PREDICATE_TOO_LARGE"),
        ("NOT " * DEEP + "a", "SYNTAX"),
        ("NOT (" * 51 + "a" + ")" * 51, "SYNTAX"),
        ("NOT NOT a = 1 AND " * 10 + "NOT " * DEEP + "a", "SYNTAX"),
        ("- " * 20_000 + "a", "SYNTAX"),
        ("a" + " = a" * 20_000, "PREDICATE_TOO_LARGE"),
        (" OR ".join(["a = 1"] * 50_000), "PREDICATE_TOO_LARGE"),
        (" AND ".join(["a"] * 12_000), "PREDICATE_TOO_LARGE"),
        ("a = '" + "x" * CONTENT_TEXT_BYTES_MAX + "'", "PREDICATE_TOO_LARGE"),
        ("é" * (CONTENT_TEXT_BYTES_MAX // 2 + 1), "PREDICATE_TOO_LARGE"),
        ("a " * (CONTENT_TOKENS_MAX + 1), "PREDICATE_TOO_LARGE"),
        ("a IN (" + "1," * CONTENT_SET_MEMBERS_MAX + "1)", "PREDICATE_TOO_LARGE"),
        (" OR ".join(["a = 1"] * 65), "PREDICATE_TOO_LARGE"),
        (" AND ".join(["(a OR b)"] * 7), "PREDICATE_TOO_LARGE"),
        (" AND ".join(["(a OR b)"] * 3000), "PREDICATE_TOO_LARGE"),
        ("NOT (" + " AND ".join(["a"] * 65) + ")", "PREDICATE_TOO_LARGE"),
        ("a = " + "9" * 60_000, "SYNTAX"),
        ("a = 1" + "0" * 25 + ".5e400", "SYNTAX"),
        ("a = 1 -- x", "SYNTAX"),
        ("a = /* x */ 1", "SYNTAX"),
        ("/*+ hint */ a = 1", "SYNTAX"),
        ("a /* x", "SYNTAX"),
        ("a = 1; DROP TABLE x", "SYNTAX"),
        ("a = 1;", "SYNTAX"),
        (";", "SYNTAX"),
        ("a = 1 # x", "SYNTAX"),
        ("a\u00a0= 1", "SYNTAX"),
        ("a\u2028= 1", "SYNTAX"),
        ("а = 1", "SYNTAX"),  # a Cyrillic letter
        ("a ＝ 1", "SYNTAX"),
        ("a = ‘x’", "SYNTAX"),
        ("a = １", "SYNTAX"),
        ("a\u200b = 1", "SYNTAX"),
        ("a = '\0'", "SYNTAX"),
        ("a = '\x1b[31m'", "SYNTAX"),
        ("a = '\x85'", "SYNTAX"),
        ("\x7fa = 1", "SYNTAX"),
        ("a = '\ud800'", "SYNTAX"),
        ("a = $1", "UNSUPPORTED_EXPRESSION"),
        ("a = ?", "UNSUPPORTED_EXPRESSION"),
        ("a = @x", "UNSUPPORTED_EXPRESSION"),
        ("a = N'x'", "UNSUPPORTED_EXPRESSION"),
        ("a || 'x' = 'y'", "UNSUPPORTED_EXPRESSION"),
        ("a <=> 1", "UNSUPPORTED_EXPRESSION"),
        ("a[0] = 1", "UNSUPPORTED_EXPRESSION"),
        ("(a, b) = (1, 2)", "UNSUPPORTED_EXPRESSION"),
        ("a = 1 UNION SELECT 2", "UNSUPPORTED_EXPRESSION"),
        ("a = 1 GROUP BY b", "UNSUPPORTED_EXPRESSION"),
        ("a = 1 LIMIT 5", "UNSUPPORTED_EXPRESSION"),
        ("CAST(a AS INT) = 1", "UNSUPPORTED_EXPRESSION"),
        ("a = current_date", "UNSUPPORTED_EXPRESSION"),
        ("a = INTERVAL '1' day", "UNSUPPORTED_EXPRESSION"),
        ("a RLIKE 'x'", "UNSUPPORTED_EXPRESSION"),
        ("a = ANY (1, 2)", "UNSUPPORTED_EXPRESSION"),
        ("a IS DISTINCT FROM 1", "UNSUPPORTED_EXPRESSION"),
        ("a XOR b", "SYNTAX"),
        ("a.* = 1", "UNSUPPORTED_EXPRESSION"),
    ],
    ids=lambda text: ascii(text)[:30],
)
def test_hostile_texts_are_refused(text: str, code: str) -> None:
    assert code_of(text) == code


@pytest.mark.parametrize("text", [None, b"a = 1", 5])
def test_what_is_no_text_is_refused(text: Any) -> None:
    assert code_of(text) == "SYNTAX"


def test_sqlglots_parser_is_never_asked_about_a_large_text(monkeypatch: pytest.MonkeyPatch) -> None:
    import sqlglot

    def forbidden(text: str) -> Any:
        assert len(text) < 10_000
        return parse_one(text)

    parse_one = sqlglot.parse_one
    monkeypatch.setattr(sqlglot, "parse_one", forbidden)
    for text in ("(" * 20_000, "- " * 12_000 + "a", "a = " + "(" * 90 + "1" + ")" * 90 + " b"):
        code_of(text)
    assert foreign.construct_of("(" * 17 + "a", 18) is None


def test_as_deep_and_as_large_as_allowed_is_read() -> None:
    for text in (
        "(" * CONTENT_NESTING_MAX + "a" + ")" * CONTENT_NESTING_MAX,
        "NOT " * CONTENT_NESTING_MAX + "a",
        "NOT (" * (CONTENT_NESTING_MAX // 2) + "a" + ")" * (CONTENT_NESTING_MAX // 2),
        " OR ".join(["(NOT NOT a)"] * 64),
        " AND ".join(["(a OR b)"] * 6),
        " AND ".join(["a"] * 10_000),
        "a OR b IN (" + "1," * (CONTENT_SET_MEMBERS_MAX - 1) + "1)",
    ):
        predicate = Predicate.parse(text)
        assert predicate.matches({}, {"a": True})
        assert any(box.contains({"a": True}) for box in predicate.bind({}))


def judged_otherwise(text: str) -> bool:
    """Whether we accept the text, and the judges either do not or read it differently."""
    try:
        tree = parse(text)
    except PredicateError:
        return False
    for event in ({}, {"a": 1, "b": True}, {"a": "x%", "b": False}, {"a": -2.5, "b": 1}):
        values = {"p": 1}
        try:
            expected = judge.matches(text, values, event)
        except Misuse:
            return True
        with suppress(TypeError):  # a single value where a list is wanted
            if matches(tree, values, event) != expected:
                return True
    return False


@settings(max_examples=400, deadline=None)
@given(st.text(max_size=60))
@example("a = '\ud800'")
@example("a = 1 /*")
def test_no_text_raises_anything_but_our_error(text: str) -> None:
    with suppress(PredicateError):
        Predicate.parse(text)


WORDS = """
a b :p 1 -2.5 'x%' TRUE NULL AND OR NOT ( ) = < >= <> IN LIKE BETWEEN IS EXISTS . , : ? * + ; " '
-- /* */ [ ] { } SELECT CASE a.b a.b "b"
"""
PHRASES = ["a = 1", "AND", "OR", "NOT", "(", ")", "b", "a LIKE 'x%'", "BETWEEN 1 AND", "-2.5", ">"]


@settings(max_examples=1500, deadline=None)
@given(
    st.lists(st.sampled_from(WORDS.split()), max_size=12)
    | st.lists(st.sampled_from(PHRASES), min_size=1, max_size=9)
)
def test_what_we_accept_the_judges_accept_with_the_same_meaning(words: list[str]) -> None:
    assert not judged_otherwise(" ".join(words))


def test_heaps_of_words_are_sometimes_predicates() -> None:
    """Otherwise the test above says nothing."""
    import random

    rng = random.Random(5)
    accepted = 0
    for _ in range(2000):
        with suppress(PredicateError):
            parse(" ".join(rng.choices(PHRASES, k=rng.randint(1, 6))))
            accepted += 1
    assert accepted > 50


def test_loading_the_room_does_not_load_sqlglot() -> None:
    code = "import sys, inorder.content.predicate; sys.exit('sqlglot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
