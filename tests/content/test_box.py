"""Boxes: they mean what the predicate means, and their algebra is that of sets."""

from __future__ import annotations

import math
import random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inorder.content import bind, box, cuts, slot
from inorder.content.box import Box, Residual, box_of
from inorder.content.cuts import points, span, starting_with
from inorder.content.predicate import Predicate
from inorder.content.slot import ABSENT, ANY, EXISTS, NOTHING, Slot
from inorder.content.syntax import show
from inorder.content.value import kind_of
from inorder.core.errors import PredicateError
from inorder.core.wire import Decoder, encode
from tests.content.strategies import (
    NAMES,
    SCHEMA,
    draw_event,
    draw_tree,
    draw_typed_tree,
    draw_values,
    edges_of,
    edges_of_boxes,
    used,
)


def bound(text: str, schema: dict[str, str] | None = None, **values: Any) -> tuple[Box, ...]:
    return Predicate.parse(text, schema).bind(values)


def slot_in(text: str, schema: dict[str, str] | None = None, **values: Any) -> Slot:
    (one,) = bound(text, schema, **values)
    return one.slot("a")


# Boxes against the naive evaluator.


def misread(seed: int) -> tuple[str, Any, Any] | None:
    """An event that boxes and predicate see differently, if this seed has one."""
    rng = random.Random(seed)
    tree, values = draw_tree(rng, 2), draw_values(rng)
    try:
        predicate = Predicate.parse(show(tree))
    except PredicateError as error:
        return None if error.code == "PREDICATE_TOO_LARGE" else (error.text, None, None)
    values = used(values, [use.name for use in predicate.parameters])
    boxes = predicate.bind(values)
    edges = edges_of(tree, values)
    for _ in range(12):
        event = draw_event(rng, edges)
        if any(one.contains(event) for one in boxes) != predicate.matches(values, event):
            return predicate.text, values, event
    return None


@settings(max_examples=1500, deadline=None)
@given(st.integers(0, 2**32))
def test_boxes_mean_what_the_predicate_means(seed: int) -> None:
    assert misread(seed) is None


@settings(max_examples=500, deadline=None)
@given(st.integers(0, 2**32))
def test_with_a_schema_too(seed: int) -> None:
    rng = random.Random(seed)
    tree, values = draw_typed_tree(rng), draw_values(rng)
    predicate = Predicate.parse(show(tree), SCHEMA)
    values = used(values, [use.name for use in predicate.parameters])
    boxes = predicate.bind(values)
    for _ in range(12):
        event: dict[str, Any] = {
            "i": rng.choice([-2, -1, 0, 1, 2, 3, 4, 2**53 + 1, 2**63, None]),
            "at": rng.choice([-1, 0, 1, 2, 3, 2**53, 2**64 - 1, None]),
            "f": rng.choice([0.0, -0.0, 1.5, math.nextafter(1.5, 2), 2, math.nan, math.inf]),
            "s": rng.choice(["", "a", "ab", "abc", "a\U0010ffff", "\ue000", None]),
            "ok": rng.choice([True, False, None]),
        }
        assert any(one.contains(event) for one in boxes) == predicate.matches(values, event)


def _old(name: str) -> Any:
    return getattr(bind, name)


_starting_with, _between_both, _span = _old("starting_with"), _old("both"), _old("span")


@pytest.mark.parametrize(
    ("room", "name", "defect"),
    [
        (slot, "kind_of", lambda v: "number" if isinstance(v, float) else kind_of(v)),
        (slot, "kind_of", lambda v: "number" if isinstance(v, bool) else kind_of(v)),
        (bind, "ABSENT", ANY),
        (bind, "EXISTS", ANY),
        (box, "like", lambda text, pattern: True),
        (bind, "both", lambda a, b: a),
        (bind, "starting_with", lambda prefix: ((prefix, -1),)),
        (bind, "starting_with", lambda prefix: _starting_with(prefix.rstrip("\U0010ffff"))),
        (bind, "span", lambda k, op, v, w=False: _span(k, op.replace("<=", "<"), v, w)),
        (cuts, "plain", lambda v: float(v) if kind_of(v) == "number" else v),
    ],
)  # fmt: skip
def test_a_planted_defect_is_found(
    monkeypatch: pytest.MonkeyPatch, room: Any, name: str, defect: Any
) -> None:
    monkeypatch.setattr(room, name, defect)

    def found(seed: int) -> bool:
        try:
            return misread(seed) is not None
        except TypeError:  # a defect may also make cuts of two kinds meet
            return False

    assert any(found(seed) for seed in range(1500))


# The algebra.


def draw_boxes(rng: random.Random, values: dict[str, Any]) -> list[Box]:
    for _ in range(100):
        predicate = Predicate.parse(show(draw_tree(rng, 2)))
        try:
            boxes = predicate.bind(used(values, [use.name for use in predicate.parameters]))
        except PredicateError:
            continue
        if boxes:
            return list(boxes[:4])
    raise AssertionError("a hundred predicates without a box")


def broken_law(seed: int) -> tuple[str, Box, Box, Any] | None:
    rng = random.Random(seed)
    values = draw_values(rng)
    a, b = rng.choice(draw_boxes(rng, values)), rng.choice(draw_boxes(rng, values))
    if rng.random() < 0.3:
        b = b.intersect(a)
    both, pieces, included = a.intersect(b), b.subtract(a), a.includes(b)
    edges = edges_of_boxes([a, b])
    for _ in range(25):
        event = draw_event(rng, edges)
        in_a, in_b = a.contains(event), b.contains(event)
        laws = {
            "intersect": both.contains(event) == (in_a and in_b),
            "includes": not included or in_a or not in_b,
            "subtract": sum(p.contains(event) for p in pieces) == (in_b and not in_a),
            "is_empty": not (b.is_empty() and in_b),
            "nothing left": not included or not pieces,
        }
        for law, holds in sorted(laws.items()):
            if not holds:
                return law, a, b, event
    return None


@settings(max_examples=1500, deadline=None)
@given(st.integers(0, 2**32))
def test_the_algebra_is_that_of_sets(seed: int) -> None:
    assert broken_law(seed) is None


@pytest.mark.parametrize(
    ("where", "name", "defect", "law"),
    [
        (Slot, "includes", lambda self, other: self.state in (other.state, "exists"), "includes"),
        (Slot, "minus", lambda self, other: (), "subtract"),
        (Slot, "intersect", lambda self, other: self, "intersect"),
        (box, "opposite", lambda test: test, "subtract"),
        (slot, "within", lambda inner, outer: inner[0] >= outer[0], "includes"),
    ],
)
def test_a_planted_defect_breaks_a_law(
    monkeypatch: pytest.MonkeyPatch, where: Any, name: str, defect: Any, law: str
) -> None:
    monkeypatch.setattr(where, name, defect)
    found = (broken_law(seed) for seed in range(1500))
    assert any(one is not None and one[0] in (law, "nothing left") for one in found)


@settings(max_examples=500, deadline=None)
@given(st.integers(0, 2**32))
def test_subtraction_finds_every_covering_of_one_line(seed: int) -> None:
    """Sets of whole numbers, by schema: nothing is left exactly when every number is covered."""
    rng = random.Random(seed)

    def draw() -> Box:
        low, high = sorted(rng.sample(range(8), 2))
        signs = rng.choice([(">", "<"), (">=", "<="), (">=", "<")])
        text = f"a {signs[0]} {low} AND a {signs[1]} {high}"
        return (bound(text, {"a": "int"}) or bound("a = 3", {"a": "int"}))[0]

    inner, cover = draw(), [draw() for _ in range(3)]
    left = [inner]
    for outer in cover:
        left = [piece for one in left for piece in one.subtract(outer)]
    numbers = range(-1, 10)
    covered = all(
        any(one.contains({"a": n}) for one in cover) for n in numbers if inner.contains({"a": n})
    )
    assert (not left) == covered


# Spelling.


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_boxes_travel_and_hash(seed: int) -> None:
    rng = random.Random(seed)
    values = draw_values(rng)
    for one in draw_boxes(rng, values):
        back = Decoder(Box).decode(encode(one))
        assert back == one
        assert hash(back) == hash(one)
        assert encode(back) == encode(one)
        assert box.problem(one) is None


def test_equal_boxes_have_equal_bytes() -> None:
    assert encode(bound("a = 1")) == encode(bound("a = 1.0")) == encode(bound("a IN (1.0, 1)"))
    assert encode(bound("a = 0")) == encode(bound("a = -0.0"))
    assert bound("a = 1") != bound("a = TRUE")
    assert bound("a = TRUE") == bound("a") == bound("a > FALSE") == bound("a <> FALSE")
    assert bound("b = 1 AND a = 2") == bound("a = 2 AND b = 1")
    assert bound("a LIKE 'x'") == bound("a = 'x'")
    assert bound("a >= :top", top=math.inf) == bound("a = :top", top=math.inf)
    assert bound("a <= :top", top=math.inf)[0].slot("a") == Slot("number", ((-math.inf, -1),))


def test_whole_numbers_are_tightened() -> None:
    whole = {"a": "int"}
    assert slot_in("a > 3 AND a < 5", whole) == slot_in("a = 4", whole)
    assert slot_in("a > 3 AND a < 5", whole).single(whole=True) == 4
    assert slot_in("a > 3.5", whole) == slot_in("a >= 4", whole)
    assert bound("a = 3.5", whole) == ()
    assert bound("a > 3 AND a < 4", whole) == ()
    assert slot_in("a IN (3, 4, 5)", whole) == slot_in("a BETWEEN 3 AND 5", whole)
    assert slot_in("a > :p", whole, p=-math.inf) == slot_in("a < :p", whole, p=math.inf)
    assert bound("a >= :p", whole, p=math.inf) == ()
    assert slot_in("a <= :p", whole, p=2**64 - 1).contains(2**64 - 1)
    assert not slot_in("a < :p", whole, p=1e300).contains(1e300)
    assert slot_in("a > 3 AND a < 5").contains(3.5), "without a schema there are fractions"


@pytest.mark.parametrize(
    ("prefix", "inside", "outside"),
    [
        ("abc", ["abc", "abc\0", "abc\U0010ffff"], ["ab", "abd", "abb\U0010ffff"]),
        ("", ["", "\U0010ffff\U0010ffff"], []),
        ("\U0010ffff", ["\U0010ffff", "\U0010ffffa"], ["\U0010fffe", "z"]),
        ("a\U0010ffff", ["a\U0010ffff\U0010ffff"], ["a", "b", "a\U0010fffe"]),
        ("\ud7ff", ["\ud7ff", "\ud7ffz"], ["\ud7fe", "\ue000"]),
    ],
)
def test_prefixes_are_intervals(prefix: str, inside: list[str], outside: list[str]) -> None:
    found = starting_with(prefix)
    assert all(cuts.holds(found, text) for text in inside)
    assert not any(cuts.holds(found, text) for text in outside)
    encode(found)


def test_covering_cases_of_the_errata() -> None:
    """E-C13 and E-C24: halves cover the whole, a line does not cover absence."""
    (whole,) = bound("a BETWEEN 0 AND 10")
    (low,), (high,) = bound("a BETWEEN 0 AND 5"), bound("a BETWEEN 5 AND 10")
    assert not low.includes(whole)
    assert not high.includes(whole)
    assert [rest for piece in whole.subtract(low) for rest in piece.subtract(high)] == []
    numbers = bound("a < 5 OR a >= 5")
    left = [Box()]
    for one in numbers:
        left = [piece for rest in left for piece in rest.subtract(one)]
    states = sorted(piece.slot("a").state for piece in left)
    assert states == ["absent", "text", "truth"]
    assert Box().includes(whole)
    assert not EXISTS.includes(ANY)


def test_like_beside_like() -> None:
    (short,), (long) = bound("a LIKE 'ab%'"), bound("a LIKE 'abc%'")[0]
    assert short.includes(long)
    assert not long.includes(short)
    (odd,), (same) = bound("a LIKE 'ab%d'"), bound("a LIKE 'ab%d' AND b = 1")[0]
    assert odd.includes(same)
    assert short.includes(odd)
    assert not odd.includes(short)
    assert odd.subtract(same) != ()
    assert same.subtract(odd) == ()
    assert bound("a LIKE 'a_' AND NOT a LIKE 'a_'") == ()


def test_four_states() -> None:
    number = Slot("number", span("number", "<", 5))
    assert ANY.minus(ABSENT) == (EXISTS,)
    assert ANY.minus(EXISTS) == (ABSENT,)
    assert EXISTS.minus(ABSENT) == (EXISTS,)
    assert [part.state for part in EXISTS.minus(number)] == ["truth", "number", "text"]
    assert number.intersect(EXISTS) == number
    assert number.intersect(ABSENT) == NOTHING == number.intersect(Slot("text", (("", -1),)))
    assert NOTHING.is_empty()
    assert not ABSENT.is_empty()
    assert box_of({"a": ANY}) == Box()


def test_sets() -> None:
    assert bound("a IN :some", some=[]) == ()
    assert slot_in("a NOT IN :some", some=[]) == EXISTS
    assert len(bound("a IN (1, 'x', TRUE)")) == 3
    assert bound("a NOT IN (1, 'x')") == ()
    assert points("truth", [True, True, False]) == ((False, -1),)
    many = slot_in("a IN :some", some=list(range(0, 20_000, 2)))
    assert many.contains(19_998)
    assert not many.contains(19_999)
    assert len(many.cuts) == 20_000


@pytest.mark.parametrize(
    "bad",
    [
        Box((("b", EXISTS), ("a", EXISTS))),
        Box((("a", EXISTS), ("a", EXISTS))),
        Box((("a", ANY),)),
        Box((("a", Slot("absent", ((1, -1),))),)),
        Box((("a", Slot("number", (("x", -1),))),)),
        Box((("a", Slot("number", ((True, -1),))),)),
        Box((("a", Slot("number", ((2, -1), (1, -1)))),)),
        Box((("a", Slot("number", ((1.0, -1),))),)),
        Box((("a", Slot("number", ((math.nan, -1),))),)),
        Box((("a", Slot("number", ((1, 0),))),)),
        Box((("a", Slot("truth", ((False, 1),))),)),
        Box((("a", EXISTS),), (Residual("a", "x_"),)),
        Box((), (Residual("a", "x_"),)),
    ],
)
def test_a_box_of_another_spelling_is_recognised(bad: Box) -> None:
    assert box.problem(bad) is not None


def test_a_box_with_a_strange_state_is_not_decoded() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(msgspec.msgpack.encode(["some", []]), type=Slot)


def test_names_are_those_of_the_strategies() -> None:
    """The events of these tests must name what the predicates name, or they test nothing."""
    rng = random.Random(1)
    seen = {name for _ in range(50) for name in draw_event(rng, [1], NAMES)}
    assert seen == set(NAMES)
    matched = 0
    for seed in range(300):
        rng = random.Random(seed)
        tree, values = draw_tree(rng, 2), draw_values(rng)
        predicate = Predicate.parse(show(tree))
        values = used(values, [use.name for use in predicate.parameters])
        edges = edges_of(tree, values)
        matched += sum(predicate.matches(values, draw_event(rng, edges)) for _ in range(10))
    assert 500 < matched < 2500
