"""Text and trees: the grammar, the way back, and every refusal with its column."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inorder.check import predicate as judge
from inorder.content.logic import matches
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
    parse,
    read,
    show,
    spark_sql,
)
from inorder.core.errors import Misuse, PredicateError
from tests.content.strategies import SCHEMA, trees, typed_trees

A = Compare("a", "=", Constant(1))
B = Compare("b", "=", Constant(2))
C = Compare("c", "=", Constant(3))
AT_MOST_5, AT_LEAST_5 = Compare("a", "<=", Constant(5)), Compare("b", ">=", Constant(5))


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a = 1", A),
        ("a == 1", A),
        ("1 = a", A),
        ("a=1", A),
        ("(a = 1)", A),
        ("a != 1", Compare("a", "<>", Constant(1))),
        ("a <> 1", Compare("a", "<>", Constant(1))),
        ("5 > price", Compare("price", "<", Constant(5))),
        (":limit >= price", Compare("price", "<=", Parameter("limit"))),
        ("a = 1 AND b = 2 OR c = 3", Or((And((A, B)), C))),
        ("a = 1 and (b = 2 or c = 3)", And((A, Or((B, C))))),
        ("a = 1 AND b = 2 AND c = 3", And((A, B, C))),
        ("(a = 1 AND b = 2) AND c = 3", And((And((A, B)), C))),
        ("NOT a = 1 AND b = 2", And((Not(A), B))),
        ("NOT (a = 1 AND b = 2)", Not(And((A, B)))),
        ("NOT NOT a = 1", Not(Not(A))),
        ("a BETWEEN 1 AND :b AND b = 2", And((Between("a", Constant(1), Parameter("b")), B))),
        ("a NOT BETWEEN 1 AND 2", Not(Between("a", Constant(1), Constant(2)))),
        ("5 BETWEEN a AND b", And((AT_MOST_5, AT_LEAST_5))),
        ("a IN (1, :x, 'y')", Member("a", (Constant(1), Parameter("x"), Constant("y")))),
        ("a in :some", Member("a", Parameter("some"))),
        ("a NOT IN :some", Not(Member("a", Parameter("some")))),
        ("a LIKE 'x%'", Like("a", Constant("x%"))),
        ("a NOT LIKE :p", Not(Like("a", Parameter("p")))),
        ("a IS NULL", IsNull("a")),
        ("a is not null", Not(IsNull("a"))),
        ("EXISTS a.b", Exists("a.b")),
        ("exists a", Exists("a")),
        ("NOT EXISTS a", Not(Exists("a"))),
        ("open", Truth("open")),
        ("not (open)", Not(Truth("open"))),
        ("a.b.c.d.e = 1", Compare("a.b.c.d.e", "=", Constant(1))),
        ('"order id" = 1', Compare("order id", "=", Constant(1))),
        ('"a""b".c = 1', Compare('a"b.c', "=", Constant(1))),
        ('"select" = 1', Compare("select", "=", Constant(1))),
        ('"é" = 1', Compare("é", "=", Constant(1))),
        ("date = 1", Compare("date", "=", Constant(1))),
        ("timestamp > :end", Compare("timestamp", ">", Parameter("end"))),
        ("a = 'it''s'", Compare("a", "=", Constant("it's"))),
        ("a = ''", Compare("a", "=", Constant(""))),
        (r"a = 'x\'", Compare("a", "=", Constant("x\\"))),
        ("a = '-- no comment /* */ ; '", Compare("a", "=", Constant("-- no comment /* */ ; "))),
        ("a = -5", Compare("a", "=", Constant(-5))),
        ("a = - .5", Compare("a", "=", Constant(-0.5))),
        ("a = 1e3", Compare("a", "=", Constant(1000.0))),
        ("a = 5.", Compare("a", "=", Constant(5.0))),
        ("a = True", Compare("a", "=", Constant(True))),
        ("a\n=\t1\r\n", A),
        ("Price = 1", Compare("Price", "=", Constant(1))),
    ],
)  # fmt: skip
def test_the_grammar(text: str, tree: Tree) -> None:
    found = parse(text)
    assert found == tree
    assert repr(found) == repr(tree)  # 1, 1.0 and TRUE are equal to Python


def test_names_are_case_sensitive() -> None:
    assert parse("Price = 1") != parse("price = 1")


def test_parameters_in_order_of_use() -> None:
    found = read("a < :y AND b IN :xs AND c LIKE :z AND d = :y").parameters
    assert [(use.name, use.many, use.kind, use.column) for use in found] == [
        ("y", False, None, 5),
        ("xs", True, None, 17),
        ("z", False, "text", 32),
    ]


@settings(max_examples=800, deadline=None)
@given(trees)
def test_what_is_printed_parses_back(tree: Tree) -> None:
    text = show(tree)
    assert repr(parse(text)) == repr(tree)
    assert show(parse(text)) == text


names = st.text(st.characters(min_codepoint=32, exclude_categories=["Cs", "Cc"]), min_size=1)


@settings(max_examples=300)
@given(names, st.text(st.characters(min_codepoint=32, exclude_categories=["Cs", "Cc"])))
def test_any_name_and_any_text_can_be_written(name: str, text: str) -> None:
    tree = Compare(name, "=", Constant(text))
    assert parse(show(tree)) == tree


@given(st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False))
def test_any_number_can_be_written(number: float) -> None:
    found = parse(show(Compare("a", "=", Constant(number))))
    assert repr(found) == repr(Compare("a", "=", Constant(number)))


FORMS = """{} < 2; 1 = {}; {} IN (1); NOT {} < 0; EXISTS {}; ({} = 1); {} LIKE 'x' OR {} = 1"""


def test_whatever_word_is_a_name_is_one_to_the_judges_too() -> None:
    from sqlglot import Parser, Tokenizer

    words = {*Tokenizer.KEYWORDS, *Parser.FUNCTIONS, *Parser.NO_PAREN_FUNCTION_PARSERS}
    accepted = 0
    for word in sorted(filter(str.isidentifier, words)):
        try:
            parse(f"{word} = 1")
        except PredicateError:
            written = f'"{word}"'
        else:
            written = word
            accepted += 1
        assert show(Truth(word)) == written
        for form in FORMS.split(";"):
            text = form.strip().replace("{}", written)
            assert judge.matches(text, {}, {word: 1}), text
            assert matches(parse(text), {}, {word: 1}), text
    assert accepted > 500


@pytest.mark.parametrize(
    ("text", "code", "column"),
    [
        ("", "SYNTAX", 1),
        ("  ", "SYNTAX", 3),
        ("a =", "SYNTAX", 4),
        ("a = 1 AND", "SYNTAX", 10),
        ("a = 1 b = 2", "SYNTAX", 7),
        ("(a = 1", "SYNTAX", 7),
        ("a = 1)", "SYNTAX", 6),
        ("a = = 1", "SYNTAX", 5),
        ("a = 'x", "SYNTAX", 5),
        ("a = 'it''s' AND b = 'x", "SYNTAX", 21),
        ('"a = 1', "SYNTAX", 1),
        ('"" = 1', "SYNTAX", 1),
        ("a IN ()", "SYNTAX", 7),
        ("a IN (1,)", "SYNTAX", 9),
        ("a BETWEEN 1 OR 2", "SYNTAX", 13),
        ("a = :", "SYNTAX", 6),
        ("a = :1", "SYNTAX", 6),
        ("a = : x", "SYNTAX", 7),
        ("a = 1e", "SYNTAX", 5),
        ("a = 1e999", "SYNTAX", 5),
        ("a = 18446744073709551616", "SYNTAX", 5),
        ("a = b", "UNSUPPORTED_EXPRESSION", 5),
        ("a = 1 AND 1 = 1", "UNSUPPORTED_EXPRESSION", 15),
        ("TRUE", "UNSUPPORTED_EXPRESSION", 1),
        (":p", "UNSUPPORTED_EXPRESSION", 1),
        ("a + 1 = 2", "UNSUPPORTED_EXPRESSION", 3),
        ("a = 1 + 1", "UNSUPPORTED_EXPRESSION", 7),
        ("upper(a) = 'X'", "UNSUPPORTED_EXPRESSION", 6),
        ("a LIKE 5", "UNSUPPORTED_EXPRESSION", 8),
        ("a LIKE b", "UNSUPPORTED_EXPRESSION", 8),
        ("'x' LIKE a", "UNSUPPORTED_EXPRESSION", 1),
        ("a IN (b)", "UNSUPPORTED_EXPRESSION", 7),
        ("a IN (SELECT 1)", "UNSUPPORTED_EXPRESSION", 7),
        ("1 IN (1)", "UNSUPPORTED_EXPRESSION", 1),
        ("a BETWEEN b AND 2", "UNSUPPORTED_EXPRESSION", 11),
        ("a IS TRUE", "UNSUPPORTED_EXPRESSION", 6),
        ("a = NULL", "UNSUPPORTED_EXPRESSION", 5),
        ("a ILIKE 'x'", "UNSUPPORTED_EXPRESSION", 3),
        ("a LIKE 'x' ESCAPE '!'", "UNSUPPORTED_EXPRESSION", 12),
        ("CASE WHEN a THEN b END", "UNSUPPORTED_EXPRESSION", 1),
        ("a::int = 1", "UNSUPPORTED_EXPRESSION", 2),
        ("sum(a) OVER (PARTITION BY b) = 1", "UNSUPPORTED_EXPRESSION", 4),
        ("EXISTS (SELECT 1)", "UNSUPPORTED_EXPRESSION", 8),
        ("a = :p AND b IN :p", "PARAMETER_TYPE", 17),
    ],
)  # fmt: skip
def test_refusals_name_code_and_column(text: str, code: str, column: int) -> None:
    with pytest.raises(PredicateError) as caught:
        parse(text)
    error = caught.value
    assert (error.code, error.column, error.text) == (code, column, text)
    assert f"column {column}: " in str(error)
    assert isinstance(error, Misuse)
    assert isinstance(error, ValueError)


def test_a_refusal_says_what_was_expected_and_found() -> None:
    with pytest.raises(PredicateError, match=r"column 7: expected AND, OR or the end, found 'b'"):
        parse("a = 1 b")
    with pytest.raises(PredicateError, match=r"found '::' \(Cast\)"):
        parse("a::int = 1")


@pytest.mark.parametrize(
    ("text", "code", "column"),
    [
        ("i = 1 AND nowhere = 2", "UNKNOWN_ATTRIBUTE", 11),
        ("EXISTS nowhere", "UNKNOWN_ATTRIBUTE", 8),
        ("nowhere IS NULL", "UNKNOWN_ATTRIBUTE", 1),
        ("nowhere IN :p", "UNKNOWN_ATTRIBUTE", 1),
        ("nowhere", "UNKNOWN_ATTRIBUTE", 1),
        ("1 < nowhere", "UNKNOWN_ATTRIBUTE", 5),
        ("i = 'x'", "TYPE_MISMATCH", 5),
        ("i IN (1, TRUE)", "TYPE_MISMATCH", 10),
        ("f BETWEEN 1 AND 'x'", "TYPE_MISMATCH", 17),
        ("ok = 1", "TYPE_MISMATCH", 6),
        ("at = '2024'", "TYPE_MISMATCH", 6),
        ("i LIKE 'x'", "TYPE_MISMATCH", 1),
        ("i", "TYPE_MISMATCH", 1),
        ("i = :p AND s = :p", "TYPE_MISMATCH", 16),
    ],
)
def test_a_schema_is_kept(text: str, code: str, column: int) -> None:
    parse(text)  # without a schema all of these are predicates
    with pytest.raises(PredicateError) as caught:
        parse(text, SCHEMA)
    assert (caught.value.code, caught.value.column) == (code, column)


@settings(max_examples=200, deadline=None)
@given(typed_trees)
def test_what_keeps_to_the_schema_is_accepted(tree: Tree) -> None:
    assert parse(show(tree), SCHEMA) == tree


@pytest.mark.parametrize(
    ("text", "schema", "expected"),
    [
        ("a == 'it''s'", None, r"`a` = 'it\'s'"),
        (r"a LIKE 'x\%\y%'", None, r"`a` LIKE 'x\\%\\\\y%'"),
        ("a = '${env:HOME}'", None, r"`a` = '\u0024{env:HOME}'"),
        ("EXISTS a", {"a": "int"}, "`a` IS NOT NULL"),
        ('"odd`name" IS NULL', {"odd`name": "int"}, "`odd``name` IS NULL"),
        ("a.b > 1.5", {"a.b": "float"}, "nanvl(`a.b`, NULL) > 1.5D"),
        ("a IN :p", {"a": "int"}, "array_contains(:p, `a`)"),
        ("a AND NOT b", None, "(`a`) AND (NOT (`b`))"),
    ],
)
def test_spark_spelling(text: str, schema: Any, expected: str) -> None:
    assert spark_sql(parse(text), schema) == expected


def test_what_no_column_can_be_is_refused() -> None:
    with pytest.raises(PredicateError) as caught:
        spark_sql(parse("a IN (1, 'x')"))
    assert caught.value.code == "TYPE_MISMATCH"
    with pytest.raises(PredicateError):
        spark_sql(Exists("${x}"))
