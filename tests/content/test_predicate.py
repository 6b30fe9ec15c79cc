"""The face of the language: values, boxes, skeletons, and the same answers on Spark."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inorder.content import predicate as face
from inorder.content.bind import boxes_of
from inorder.content.logic import verdict
from inorder.content.normal import normal
from inorder.content.predicate import Predicate
from inorder.content.skeleton import Condition, Skeleton, problem
from inorder.content.syntax import And, Not, Or, parse, show
from inorder.core.errors import Misuse, PredicateError
from inorder.core.limits import CONTENT_SET_MEMBERS_MAX
from inorder.core.wire import Decoder, encode
from tests.content.strategies import (
    SCHEMA,
    draw_event,
    draw_tree,
    draw_typed_tree,
    draw_values,
    edges_of,
    used,
)

QUOTE = Predicate.parse("firm = :firm AND price < :limit AND zone IN :zones")
GOOD = {"firm": "IBM", "limit": 10, "zones": ["a"]}


def test_what_a_predicate_tells_of_itself() -> None:
    assert QUOTE.text == "firm = :firm AND price < :limit AND zone IN :zones"
    assert [(use.name, use.many) for use in QUOTE.parameters] == [
        ("firm", False),
        ("limit", False),
        ("zones", True),
    ]
    assert QUOTE.attributes == ("firm", "price", "zone")
    assert Predicate.parse("  5>A  and(b)").text == "A < 5 AND b"


@pytest.mark.parametrize(
    ("change", "code", "column"),
    [
        ({"limit": None}, "PARAMETER_TYPE", 26),
        ({"limit": math.nan}, "PARAMETER_TYPE", 26),
        ({"limit": [1]}, "PARAMETER_TYPE", 26),
        ({"limit": {}}, "PARAMETER_TYPE", 26),
        ({"limit": b"x"}, "PARAMETER_TYPE", 26),
        ({"limit": 2**64}, "PARAMETER_TYPE", 26),
        ({"limit": True}, "PARAMETER_TYPE", 26),
        ({"limit": "10"}, "PARAMETER_TYPE", 26),
        ({"firm": "\ud800"}, "PARAMETER_TYPE", 8),
        ({"zones": "abc"}, "PARAMETER_TYPE", 45),
        ({"zones": {"a": 1}}, "PARAMETER_TYPE", 45),
        ({"zones": ["a", 1]}, "PARAMETER_TYPE", 45),
        ({"zones": ["a", None]}, "PARAMETER_TYPE", 45),
        ({"zones": [math.nan]}, "PARAMETER_TYPE", 45),
        ({"zones": [["a"]]}, "PARAMETER_TYPE", 45),
        ({"zones": [1]}, "PARAMETER_TYPE", 45),
        ({"zones": range(5)}, "PARAMETER_TYPE", 45),
        ({"zones": list(range(CONTENT_SET_MEMBERS_MAX + 1))}, "PREDICATE_TOO_LARGE", 45),
        ({"limits": 5}, "UNKNOWN_PARAMETER", None),
    ],
)
def test_a_bad_change_is_refused_whole(change: dict[str, Any], code: str, column: Any) -> None:
    before = QUOTE.check(GOOD)
    kept = dict(before)
    with pytest.raises(PredicateError) as caught:
        QUOTE.check({"firm": "SUN", **change}, before)
    assert (caught.value.code, caught.value.column) == (code, column)
    assert caught.value.text == QUOTE.source
    assert before == kept


def test_a_missing_value_is_named_with_its_place() -> None:
    for call in (QUOTE.check, QUOTE.bind, QUOTE.values_of):
        with pytest.raises(PredicateError, match=":limit") as caught:
            call({"firm": "x", "zones": []})
        assert (caught.value.code, caught.value.column) == ("UNBOUND_PARAMETER", 26)


def test_a_good_change_gives_all_values_in_one_spelling() -> None:
    before = QUOTE.check({"firm": "IBM", "limit": 10.0, "zones": {"b", "a"}})
    assert before == {"firm": "IBM", "limit": 10, "zones": ("a", "b")}
    assert type(before["limit"]) is int
    after = QUOTE.check({"limit": math.inf, "zones": ()}, before)
    assert after == {"firm": "IBM", "limit": math.inf, "zones": ()}
    assert QUOTE.check({"zones": [1]}, after)["zones"] == (1,), "an empty list has no kind"
    assert QUOTE.check({}, before) == before
    assert QUOTE.check({"zones": frozenset([2, 2.0, 1])} | {"firm": "a", "limit": 1})["zones"] == (
        1,
        2,
    )


def test_a_schema_rules_the_values_too() -> None:
    typed = Predicate.parse("i > :p AND s IN :names AND ok = :flag", SCHEMA)
    typed.check({"p": 1.5, "names": [], "flag": True})
    for bad in ({"p": "x"}, {"p": True}, {"names": [1]}, {"flag": 1}):
        with pytest.raises(PredicateError) as caught:
            typed.check({"p": 1, "names": ["x"], "flag": True, **bad})
        assert caught.value.code == "PARAMETER_TYPE"
    with pytest.raises(PredicateError) as caught:
        Predicate.parse("s LIKE :p").check({"p": 5})
    assert caught.value.code == "PARAMETER_TYPE"
    with pytest.raises(Misuse, match="decimal"):
        Predicate.parse("a = 1", {"a": "decimal"})


def test_kind_changes_are_noticed_because_they_are_looked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(face, "_kind", lambda filling: None)
    QUOTE.check({"limit": "10"}, QUOTE.check(GOOD))


def test_a_subscription_may_match_nothing_for_now() -> None:
    between = Predicate.parse("price BETWEEN :lo AND :hi OR zone IN :zones")
    assert between.bind({"lo": 5, "hi": 1, "zones": []}) == ()
    assert len(between.bind({"lo": 1, "hi": 5, "zones": []})) == 1
    assert len(between.bind({"lo": 1, "hi": 5, "zones": ["a"]})) == 2


def test_always_true_is_two_boxes() -> None:
    boxes = Predicate.parse("EXISTS a OR a IS NULL").bind({})
    for event in ({}, {"a": math.nan}, {"a": 1}, {"a": "x"}):
        assert sum(box.contains(event) for box in boxes) == 1


# The normal form and skeletons.


@settings(max_examples=500, deadline=None)
@given(st.integers(0, 2**32))
def test_the_normal_form_is_flat_and_means_the_same(seed: int) -> None:
    rng = random.Random(seed)
    tree, values = draw_tree(rng, 2), draw_values(rng)
    try:
        disjuncts = normal(tree)
    except PredicateError:
        return
    for test in (one for conjunction in disjuncts for one in conjunction):
        assert not isinstance(test, And | Or)
        assert not isinstance(test, Not) or type(test.part).__name__ in ("Like", "Member")
    edges = edges_of(tree, values)
    for _ in range(8):
        event = draw_event(rng, edges)
        flat = any(
            all(verdict(test, values, event) is True for test in conjunction)
            for conjunction in disjuncts
        )
        assert flat == (verdict(tree, values, event) is True)


def test_exactly_64_disjuncts() -> None:
    assert len(normal(parse(" AND ".join(["(a OR b)"] * 6)))) == 64
    assert len(normal(parse(" OR ".join(["a"] * 64)))) == 64
    with pytest.raises(PredicateError, match="65 disjuncts, the limit is 64"):
        normal(parse(" OR ".join(["a"] * 65)))
    assert len(normal(parse("a IN (1, 2, 3) AND b NOT IN (1, 2, 3)"))) == 1


def test_one_shape_has_one_skeleton() -> None:
    first = Predicate.parse("firm = 'IBM' AND price < 10")
    second = Predicate.parse(":most > price AND :who = firm")
    assert first.skeleton == second.skeleton
    assert hash(first.skeleton) == hash(second.skeleton)
    assert first.values_of({}) == (("IBM", 10),)
    assert second.values_of({"most": 5, "who": "SUN"}) == (("SUN", 5),)
    assert Predicate.parse("a IN (1, 2)").skeleton == Predicate.parse("a IN :p").skeleton
    assert Predicate.parse("a = 1 OR a = 2").skeleton[0] == Predicate.parse("a = 3").skeleton[0]
    assert Predicate.parse("a < 1").skeleton != Predicate.parse("a <= 1").skeleton
    assert Predicate.parse("a < 1").skeleton != Predicate.parse("a < 1", {"a": "int"}).skeleton


def test_roles() -> None:
    (one,) = Predicate.parse(
        "a = 1 AND b < 2 AND c IN (3) AND d LIKE 'x_' AND e <> 5 AND f NOT IN (1) AND g IS NULL"
    ).skeleton
    roles = (one.equality, one.ranges, one.sets, one.residuals)
    assert [[test.attribute for test in role] for role in roles] == [
        ["a"], ["b"], ["c"], ["d", "e", "f", "g"],
    ]  # fmt: skip
    places = [place for test in one.conditions() for place in test.places]
    assert places == list(range(len(places)))


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32))
def test_a_skeleton_and_a_vector_travel_and_give_the_boxes(seed: int) -> None:
    rng = random.Random(seed)
    predicate = Predicate.parse(show(draw_typed_tree(rng)), SCHEMA)
    values = used(draw_values(rng), [use.name for use in predicate.parameters])
    boxes = []
    for skeleton, vector in zip(predicate.skeleton, predicate.values_of(values), strict=True):
        there = Decoder(Skeleton).decode(encode(skeleton))
        assert there == skeleton
        assert problem(there, vector) is None
        boxes += boxes_of(there, vector)
    assert tuple(dict.fromkeys(boxes)) == predicate.bind(values)


@pytest.mark.parametrize(
    ("skeleton", "vector"),
    [
        (Skeleton(equality=(Condition("a", "=", (1,)),)), (5,)),
        (Skeleton(equality=(Condition("a", "=", (-1,)),)), (5,)),
        (Skeleton(equality=(Condition("a", "=", ()),)), (5,)),
        (Skeleton(equality=(Condition("a", "<", (0,)),)), (5,)),
        (Skeleton(equality=(Condition("a", "=", (0,)),)), ((5,),)),
        (Skeleton(equality=(Condition("a", "=", (0,)),)), (math.nan,)),
        (Skeleton(residuals=(Condition("a", "eval", (0,)),)), (5,)),
        (Skeleton(ranges=(Condition("a", "between", (0,)),)), (5,)),
        (Skeleton(sets=(Condition("a", "in", (0,)),)), ((1, 2**64),)),
        (Skeleton(sets=(Condition("a", "in", (0,)),)), (tuple(range(10_001)),)),
    ],
)
def test_what_would_give_no_boxes_is_recognised(skeleton: Skeleton, vector: Any) -> None:
    assert problem(skeleton, vector) is not None


# Spark.


def test_a_pattern_that_is_also_a_value_cannot_be_respelt() -> None:
    both = Predicate.parse("a LIKE :p AND b = :p")
    assert both.spark_values({"p": r"x\%"}) == {"p": r"x\%"}
    with pytest.raises(PredicateError) as caught:
        both.spark_values({"p": r"x\y"})
    assert caught.value.code == "UNSUPPORTED_EXPRESSION"
    assert Predicate.parse("a LIKE :p").spark_values({"p": r"x\y"}) == {"p": r"x\\y"}


ROWS: list[dict[str, Any]] = [
    {"i": i, "f": f, "s": s, "ok": ok, "at": at}
    for i, f, s, ok, at in [
        (0, 0.0, "", True, 0),
        (1, -0.0, "a", False, 1),
        (2, 1.5, "ab", None, 2),
        (3, math.nan, "abc", True, 3),
        (None, math.inf, "a\\b%", False, None),
        (-1, None, None, True, -1),
        (2**53 + 1, -math.inf, "50%", False, 2**53),
        (-3, 2.5, "it's", None, 4),
        (4, 1.0, "a\U0010ffff", True, 5),
        (5, 2.0, "${x}", False, 6),
        (6, 3.0, "\ud7ffz", True, 7),
    ]
]


def test_spark_says_the_same(spark: Any) -> None:
    """True, false and unknown alike, for every row: with a schema, and guessing the types."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    types = StructType()
    for name, kind in (("i", "long"), ("f", "double"), ("s", "string"), ("ok", "boolean")):
        types.add(name, kind)
    types.add("at", "long").add("row", "long")
    table = [(*row.values(), number) for number, row in enumerate(ROWS)]
    frame = spark.createDataFrame(table, types)
    rng = random.Random(7)
    values: dict[str, Any] = {"n": 1.5, "t": "ab", "b": True, "ns": [1, 2.5], "ts": ["ab", ""]}
    values |= {"shape": r"a\b\%", "none": []}
    fixed = [
        "s LIKE :shape", r"s LIKE 'a\b\%'", r"s LIKE '50\%'", "NOT f < 5", "f > 1", "EXISTS f",
        "f IS NULL", "s = '${x}'", "s = 'it''s'", "ok", "NOT ok", "i == 9007199254740993",
        "s IN :ts", "f IN :ns", "NOT s IN :ts", "f = 0", "i BETWEEN :n AND 3", "s > 'a'",
        "s LIKE 'a%' AND NOT s LIKE '%b'", "i IN :none", "NOT s IN :none",
        "f IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)",
    ]  # fmt: skip
    trees = [parse(text, SCHEMA) for text in fixed]
    trees += [draw_typed_tree(rng) for _ in range(50)]
    predicates = [
        Predicate.parse(show(tree), schema) for tree in trees for schema in (SCHEMA, None)
    ]
    args: dict[str, Any] = {}
    for one in predicates:
        args |= one.spark_values(used(values, [use.name for use in one.parameters]))
    assert args["shape"] == r"a\\b\%"
    args = {
        name: F.array(*map(F.lit, value)) if isinstance(value, list) else value
        for name, value in args.items()
    }
    columns = ", ".join(f"({one.spark_sql()}) AS c{at}" for at, one in enumerate(predicates))
    frame.createOrReplaceTempView("content_rows")
    rows = spark.sql(f"SELECT row, {columns} FROM content_rows", args).collect()
    seen = {True: 0, False: 0, None: 0}
    for row in rows:
        event = ROWS[row["row"]]
        for at, one in enumerate(predicates):
            expected = verdict(one.tree, values, event)
            seen[expected] += 1
            assert row[f"c{at}"] is expected, (one.spark_sql(), event)
    assert min(seen.values()) > 50
