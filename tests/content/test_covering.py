"""Covering: "yes" is never wrong, subtraction finds what there is to find, pairs find less."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inorder.content import covering, slot
from inorder.content.box import Box
from inorder.content.covering import Boxes, Level, covers
from inorder.content.predicate import Predicate
from inorder.content.slot import Slot
from inorder.content.syntax import show
from inorder.core.errors import PredicateError
from inorder.core.limits import CONTENT_COVER_BOXES_MAX
from tests.content.strategies import (
    draw_event,
    draw_tree,
    draw_values,
    edges_of_boxes,
    used,
)

INTS = {"a": "int", "b": "int"}


def bound(text: str, schema: dict[str, str] | None = None, **values: Any) -> Boxes:
    return Predicate.parse(text, schema).bind(values)


def holds(boxes: Boxes, event: dict[str, Any]) -> bool:
    return any(one.contains(event) for one in boxes)


def draw_boxes(rng: random.Random, values: dict[str, Any]) -> Boxes:
    """The boxes of a drawn predicate that has some."""
    while True:
        predicate = Predicate.parse(show(draw_tree(rng, 2)))
        try:
            boxes = predicate.bind(used(values, [use.name for use in predicate.parameters]))
        except PredicateError:
            continue
        if boxes:
            return boxes[:6]


def draw_pairs(rng: random.Random) -> list[tuple[Boxes, Boxes]]:
    """Two box sets, and what they have in common: that is covered by both, if it is found out."""
    values = draw_values(rng)
    a, b = draw_boxes(rng, values), draw_boxes(rng, values)
    met = [one.intersect(other) for one in a for other in b]
    common = tuple(one for one in met if not one.is_empty())[:6]
    return [(a, b), (b, a), (a, common), (common, b), (a + b, common), (common + a, a)]


def unsound(seed: int, level: Level = Level.SUBTRACTION, draws: int = 1) -> Any:
    """A covering that was found and is none."""
    rng = random.Random(seed)
    for _ in range(draws):
        for a, b in draw_pairs(rng):
            if not covers(a, b, level=level):
                continue
            edges = edges_of_boxes([*a, *b])
            for _ in range(6):
                event = draw_event(rng, edges)
                if holds(b, event) and not holds(a, event):
                    return a, b, event
    return None


# Soundness: 21,600 pairs, and as many on a grid below.


@pytest.mark.parametrize("level", list(Level))
def test_yes_is_true_on_every_edge(level: Level) -> None:
    assert unsound(20 + level, level, draws=1200) is None


@settings(max_examples=300)
@given(st.integers(0, 2**32))
def test_yes_is_true_for_any_seed(seed: int) -> None:
    assert unsound(seed) is None


_minus = Slot.minus


@pytest.mark.parametrize(
    ("where", "name", "defect"),
    [
        (Slot, "includes", lambda self, other: self.state in (other.state, "exists")),
        (Slot, "minus", lambda self, other: ()),
        (slot, "within", lambda inner, outer: inner[0] >= outer[0]),
        (Slot, "minus", lambda a, b: tuple(p for p in _minus(a, b) if p.state != "absent")),
        (covering, "inside", lambda inner, outer: not inner.intersect(outer).is_empty()),
    ],
)
def test_a_planted_defect_is_unsound(
    monkeypatch: pytest.MonkeyPatch, where: Any, name: str, defect: Any
) -> None:
    monkeypatch.setattr(where, name, defect)
    assert any(unsound(seed, draws=10) for seed in range(300))


# Completeness: tests over small whole numbers, where one event of each sort can be tried. Texts and
# truth values are in a set all or none.

SIDES = [None, *range(-1, 6), "x", True]
GRID = [
    {name: value for name, value in (("a", a), ("b", b)) if value is not None}
    for a, b in itertools.product(SIDES, SIDES)
]


def draw_test(rng: random.Random, name: str) -> str:
    low, high = sorted(rng.sample(range(5), 2))
    return rng.choice(
        [
            f"{name} BETWEEN {low} AND {high}",
            f"{name} > {low} AND {name} < {high}",
            f"{name} {rng.choice(['<', '<=', '>', '>=', '=', '<>'])} {low}",
            f"{name} IN ({low}, {high})",
            f"{name} IS NULL",
            f"EXISTS {name}",
        ]
    )


def draw_grid_boxes(rng: random.Random, disjuncts: int) -> Boxes:
    text = " OR ".join(
        " AND ".join(draw_test(rng, name) for name in rng.choice(["a", "b", "ab", "ab"]))
        for _ in range(disjuncts)
    )
    return bound(text, INTS) or bound("a = 1", INTS)


def inside_of(boxes: Boxes) -> frozenset[int]:
    return frozenset(n for n, event in enumerate(GRID) if holds(boxes, event))


Pairs = list[tuple[Boxes, Boxes, bool]]


@pytest.fixture(scope="module")
def pairs() -> Pairs:
    """Over 20,000 pairs with the truth: small sets in larger ones, and the other way round."""
    rng = random.Random(7)
    sets = [draw_grid_boxes(rng, rng.choice([1, 2, 4, 7, 10])) for _ in range(150)]
    seen = [inside_of(one) for one in sets]
    numbers = itertools.permutations(range(len(sets)), 2)
    return [(sets[i], sets[j], seen[j] <= seen[i]) for i, j in numbers]


def test_subtraction_finds_exactly_what_is_true_on_a_grid(pairs: Pairs) -> None:
    assert len(pairs) >= 20_000
    for a, b, true in pairs:
        assert covers(a, b) == true
    assert 1000 < sum(true for _, _, true in pairs) < 10_000


def test_pairs_find_less_than_subtraction(pairs: Pairs) -> None:
    found = {level: sum(covers(a, b, level=level) for a, b, _ in pairs) for level in Level}
    assert found[Level.SINGLE] < found[Level.PAIRWISE] < found[Level.SUBTRACTION]
    # 3,585 of 5,040, or 71 %: these sets have more disjuncts than those of the specification, which
    # measured 89 %.
    assert 0.6 < found[Level.PAIRWISE] / found[Level.SUBTRACTION] < 0.8
    assert all(true for a, b, true in pairs if covers(a, b, level=Level.PAIRWISE))


def test_pairs_where_subtraction_is_needed_are_found_out(
    monkeypatch: pytest.MonkeyPatch, pairs: Pairs
) -> None:
    monkeypatch.setattr(covering, "_nothing_left", lambda a, b, budget: covering.NO)
    with pytest.raises(AssertionError):
        test_subtraction_finds_exactly_what_is_true_on_a_grid(pairs)


# The examples of the specification.


def test_halves_cover_the_whole() -> None:
    whole, halves = bound("p BETWEEN 0 AND 10"), bound("p BETWEEN 0 AND 5 OR p BETWEEN 5 AND 10")
    assert covers(halves, whole)
    assert covers(whole, halves)
    assert not covers(halves, whole, level=Level.PAIRWISE)
    assert not covers(bound("p < 5 OR p > 5"), bound("p < 10"))
    assert covers(bound("p < 5 OR p > 5 OR p = 5"), bound("p < 10"))


def test_whole_numbers_between_three_and_five_are_four() -> None:
    assert covers(bound("a = 4", INTS), bound("a > 3 AND a < 5", INTS))
    assert not covers(bound("a = 4"), bound("a > 3 AND a < 5"))


def test_a_line_does_not_cover_truth() -> None:
    numbers = bound("p < 5 OR p >= 5")
    everything = (Box(),)
    assert not covers(numbers, everything)
    assert not covers(numbers, bound("EXISTS p"))
    assert covers(everything, numbers)
    assert covers(bound("EXISTS p OR p IS NULL"), everything)
    all_kinds = "p < 5 OR p >= 5 OR p >= '' OR p = TRUE OR p = FALSE"
    assert covers(bound(all_kinds), bound("EXISTS p"))
    assert covers(bound(f"{all_kinds} OR p IS NULL"), everything)
    assert not covers(bound(all_kinds), everything)


def test_like() -> None:
    assert covers(bound("p LIKE 'ab%'"), bound("p LIKE 'abc%'"))
    assert covers(bound("p LIKE 'a%c'"), bound("p LIKE 'a%c' AND q = 1"))
    assert not covers(bound("p LIKE 'a%'"), bound("p LIKE '%a'"))
    assert covers(bound("p LIKE '%a' OR p NOT LIKE '%a'"), bound("p >= ''"))
    assert not covers(bound("p LIKE '%a'"), bound("p LIKE '_%a'")), "true, but not by the text"


def test_nothing_is_covered_by_everything_and_covers_nothing() -> None:
    some = bound("p = 1")
    for level in Level:
        assert covers(some, (), level=level)
        assert covers((), (), level=level)
        assert not covers((), some, level=level)


# The budget.


def stripes(number: int) -> Boxes:
    """A box for each of `number` columns and one for each row: they cover all when together."""
    columns = [f"(a >= {n} AND a < {n + 1})" for n in range(number)]
    rows = [f"(b >= {n} AND b < {n + 1})" for n in range(number)]
    return bound(" OR ".join([*rows, *columns]))


def test_beyond_the_budget_the_answer_is_no_and_says_so() -> None:
    a, b = stripes(20), bound("a >= 0 AND a < 20")
    done = covering.covering(a, b)
    assert done.covers
    assert not done.cut
    short = covering.covering(a, b, budget=done.visited - 1)
    assert (short.covers, short.cut, short.visited) == (False, True, done.visited - 1)
    assert covering.covering(a, b, budget=done.visited).covers
    assert done.visited < CONTENT_COVER_BOXES_MAX


def test_the_work_ends() -> None:
    """Boxes with holes in many dimensions: the pieces multiply, the budget holds."""
    names = [f"x{n}" for n in range(12)]
    holes = " OR ".join(f"{name} < 0 OR {name} > 1" for name in names)
    full = bound(f"{holes} OR ({' AND '.join(f'{name} BETWEEN 0 AND 1' for name in names)})")
    everything = bound(" AND ".join(f"{name} BETWEEN -9 AND 9" for name in names))
    assert covers(full, everything)
    rng = random.Random(5)
    cluttered = bound(
        " OR ".join(
            " AND ".join(
                f"{name} BETWEEN {rng.randint(0, 4)} AND {rng.randint(5, 9)}"
                for name in rng.sample(names, 4)
            )
            for _ in range(60)
        )
    )
    verdict = covering.covering(cluttered, everything)
    assert not verdict.covers
    assert verdict.visited <= CONTENT_COVER_BOXES_MAX
