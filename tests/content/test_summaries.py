"""Summaries: they contain the union, deltas tell exactly what changed, and little is told."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inorder.content import grouped, ledger
from inorder.content.bind import boxes_of
from inorder.content.bounded import Bounded
from inorder.content.box import Box
from inorder.content.engine import Form, Forms, forms_of
from inorder.content.exact import Exact
from inorder.content.extreme import Extreme
from inorder.content.grouped import Grouped
from inorder.content.ledger import Ledger
from inorder.content.predicate import Predicate
from inorder.content.same import alike
from inorder.content.skeleton import Condition, Skeleton, problem
from inorder.content.summary import Delta, Everything, Summary
from inorder.core.errors import PredicateError
from inorder.core.limits import CONTENT_SUMMARY_PIECES_MAX, CONTENT_SUMMARY_SWEPT_MAX
from tests.content.strategies import NUMBERS, TEXTS, draw_event, draw_values, edges_of_boxes, used
from tests.content.test_poset import draw_predicate

Make = Callable[[], Summary]
MAKES: dict[str, Make] = {
    "everything": Everything,
    "exact": Exact,
    "grouped": Grouped,
    "bounded(1)": lambda: Bounded(1),
    "bounded(3)": lambda: Bounded(3),
    "bounded(8)": lambda: Bounded(8),
}

CHEAP = Predicate.parse("price < :limit")
FIRM = Predicate.parse("firm = :firm AND price < :limit")
WINDOW = Predicate.parse("x BETWEEN :low AND :high")


class Neighbour:
    """The other side of a link: knows only what it was told."""

    def __init__(self) -> None:
        self.entries: dict[int, Form] = {}

    def apply(self, delta: Delta) -> None:
        for rid in delta.deleted:
            del self.entries[rid]
        for rid, form in delta.added:
            assert rid not in self.entries
            self.entries[rid] = form
        for rid, vector in delta.moved:
            skeleton, before = self.entries[rid]
            assert not alike(before, vector), "told what it knew"
            self.entries[rid] = (skeleton, vector)

    def boxes(self) -> list[Box]:
        return [box for form in self.entries.values() for box in boxes_of(*form)]


# Interests that share skeletons often, of all roles and kinds.

TEXTS_OF_INTERESTS = [
    "x < :n",
    "x <= :n AND x < :m",
    "x > :n AND x <= :m",
    "x BETWEEN :n AND :m",
    "x >= :n AND x < :m AND y = :e",
    "x = :e AND x < :n",
    "x = :e AND y >= :n",
    "x < :n AND y > :m AND z.w <> :e",
    "x IN :es AND y < :n",
    "x IN (1, 'a', TRUE) AND y BETWEEN :n AND :m",
    "x NOT IN :es",
    "x LIKE :t AND y < :n",
    "x NOT LIKE :t",
    "EXISTS x AND y < :n",
    "x IS NULL OR y > :n",
    "x < :n OR y < :m",
]
WHOLE = {"x": "int", "y": "int", "z.w": "int"}


def draw_bound(rng: random.Random, kind: str) -> Any:
    if kind == "number":
        return rng.choice([*range(8), 1.5, 2.5, rng.choice([*NUMBERS, math.inf, -math.inf])])
    return rng.choice(TEXTS) if kind == "text" else rng.choice([True, False])


# Parsed once, for a change of values keeps the skeleton object: policies take short cuts then.
PLAIN = [Predicate.parse(text) for text in TEXTS_OF_INTERESTS]
TYPED = [Predicate.parse(text, WHOLE) for text in TEXTS_OF_INTERESTS[:9]]


def draw_interest(rng: random.Random, like: Predicate | None = None) -> tuple[Any, Forms]:
    """Any interest, or other values of a known one."""
    if like is None and rng.random() < 0.15:
        predicate, values = draw_predicate(rng)
        try:
            return None, forms_of(predicate, used({**draw_values(rng), "m": 3}, values))
        except PredicateError:
            return None, ()
    predicate = like or rng.choice(TYPED if rng.random() < 0.3 else PLAIN)
    kinds = ["number"] if predicate.schema else ["number", "number", "number", "text", "truth"]
    kind = rng.choice(kinds)
    values = {
        "n": draw_bound(rng, kind),
        "m": draw_bound(rng, kind),
        "e": draw_bound(rng, kind),
        "es": rng.sample(range(4), rng.randint(0, 3)),
        "t": rng.choice(["a%", "%b", "a_%"]),
    }
    names = [use.name for use in predicate.parameters]
    return predicate, forms_of(predicate, used(values, names))


Known = dict[tuple[str, int], tuple[Any, Forms]]


def step(rng: random.Random, known: Known, summary: Summary) -> None:
    key, what = (rng.choice("ab"), rng.randint(0, 9)), rng.random()
    if key in known and what < 0.2:
        del known[key]
        summary.drop(key)
    else:
        known[key] = draw_interest(rng, known[key][0] if key in known and what < 0.7 else None)
        summary.put(key, known[key][1])


def defect_of(make: Make, seed: int, steps: int = 40) -> str | None:
    """What a policy does wrong on the walk of this seed, if anything."""
    rng = random.Random(seed)
    known: Known = {}
    summary, neighbour = make(), Neighbour()
    for at in range(steps):
        for _ in range(rng.choice([1, 1, 1, 4])):
            step(rng, known, summary)
        if rng.random() < 0.05:
            neighbour.entries = dict(summary.everything())
        else:
            neighbour.apply(summary.delta())
        if summary.delta():
            return f"step {at}: told twice"
        if any(problem(*form) for form in neighbour.entries.values()):
            return f"step {at}: an entry that no neighbour accepts"
        union = [box for _, forms in known.values() for form in forms for box in boxes_of(*form)]
        shown = neighbour.boxes()
        edges = [*edges_of_boxes(rng.sample(union, min(len(union), 6))), *range(9)]
        for _ in range(12):
            event = draw_event(rng, edges)
            wanted, passes = (any(b.contains(event) for b in boxes) for boxes in (union, shown))
            if wanted and not passes:
                return f"step {at}: {event} is lost"
            if passes and not wanted and isinstance(summary, Exact | Everything):
                return f"step {at}: {event} passes and nobody wants it"
        if isinstance(summary, Bounded) and len(neighbour.entries) > summary.entries:
            return f"step {at}: {len(neighbour.entries)} entries"
    told = dict(neighbour.entries)
    now = dict(summary.everything())
    same = told.keys() == now.keys() and all(
        told[rid][0] == now[rid][0] and alike(told[rid][1], now[rid][1]) for rid in told
    )
    return None if same else "the deltas do not add up to everything"


@pytest.mark.parametrize("name", sorted(MAKES))
@settings(max_examples=60)
@given(seed=st.integers(0, 2**32))
def test_the_union_is_contained_and_deltas_add_up(name: str, seed: int) -> None:
    assert defect_of(MAKES[name], seed) is None


@pytest.mark.parametrize("name", sorted(MAKES))
def test_the_union_is_contained_on_fixed_seeds(name: str) -> None:
    assert [defect_of(MAKES[name], seed) for seed in range(40)] == [None] * 40


def _one_less(self: Extreme) -> Any:
    top = _value(self)
    return top - 1 if isinstance(top, int | float) and not isinstance(top, bool) else top


def _least_first(self: Extreme, greatest: bool, kind: Any) -> None:
    _init(self, not greatest, kind)


_value, _init, _open, _delta = Extreme.value, Extreme.__init__, Ledger.open, Ledger.delta


def _only_skeletons(self: Ledger) -> Delta:
    """A change is told only if the predicate is another one, values aside."""
    return Delta(_delta(self).deleted, (), ())


def _forgotten(self: Ledger, rid: int, vector: Any) -> None:
    pass


@pytest.mark.parametrize(
    ("where", "name", "defect"),
    [
        (Extreme, "value", _one_less),
        (Extreme, "__init__", _least_first),
        (grouped.Group, "_union", lambda self: sorted(self._windows)[:1]),
        (grouped, "_can_match", lambda plan, key, vector, values: len(values) < 2),
        (grouped, "_is_same", lambda a, b: True),
        (grouped, "_is_same_kind", lambda a, b: True),
        (Ledger, "rewrite", _forgotten),
        (ledger, "alike", lambda a, b: a[:1] == b[:1]),
        (Ledger, "delta", _only_skeletons),
    ],
)
def test_a_summary_smaller_than_the_union_is_found_out(
    monkeypatch: pytest.MonkeyPatch, where: Any, name: str, defect: Any
) -> None:
    monkeypatch.setattr(where, name, defect)

    def found(seed: int) -> bool:
        try:
            return defect_of(Grouped, seed) is not None
        except (KeyError, TypeError, AssertionError):
            return True

    assert any(found(seed) for seed in range(60))


def test_what_looks_alike_to_python_is_told() -> None:
    """`x < 1` and `x < TRUE` have equal vectors in Python and no event in common."""
    less = Predicate.parse("x < :n")
    for make in MAKES.values():
        summary, neighbour = make(), Neighbour()
        for value, event in ((1, {"x": 0}), (True, {"x": False}), (1, {"x": 0})):
            summary.put(("a", 1), forms_of(less, {"n": value}))
            neighbour.apply(summary.delta())
            assert any(box.contains(event) for box in neighbour.boxes())


# What is told.


def thresholds(make: Make, limits: Sequence[float]) -> Summary:
    summary = make()
    for number, limit in enumerate(limits):
        summary.put(("client", number), forms_of(CHEAP, {"limit": limit}))
    summary.delta()
    return summary


@pytest.mark.parametrize("name", ["exact", "grouped", "bounded(1)", "bounded(8)"])
def test_the_maximum_moves_between_clients_as_one_value(name: str) -> None:
    """E-C8: not an entry that goes and one that comes."""
    summary = thresholds(MAKES[name], [5, 10])
    summary.put(("client", 0), forms_of(CHEAP, {"limit": 20}))
    assert summary.delta() == Delta(moved=((1, (20,)),))
    summary.put(("client", 0), forms_of(CHEAP, {"limit": 3}))
    assert summary.delta() == Delta(moved=((1, (10,)),))
    summary.put(("client", 0), forms_of(CHEAP, {"limit": 4}))
    assert not summary.delta()
    summary.drop(("client", 1))
    assert summary.delta() == Delta(moved=((1, (4,)),))
    summary.drop(("client", 0))
    assert summary.delta() == Delta(deleted=(1,))
    summary.drop(("client", 0))
    assert not summary.delta()
    assert list(summary.everything()) == []


@pytest.mark.parametrize("name", sorted(MAKES))
def test_equal_values_from_a_constant_and_a_parameter(name: str) -> None:
    """E-C9b: the constant leaves, then the parameter moves; the neighbour must not miss it."""
    summary, neighbour = MAKES[name](), Neighbour()

    def told() -> list[float]:
        neighbour.apply(summary.delta())
        return [p for p in (5, 15, 25) if any(b.contains({"price": p}) for b in neighbour.boxes())]

    summary.put(("one", 1), forms_of(Predicate.parse("price < 10"), {}))
    assert told() == [5]
    summary.put(("two", 1), forms_of(CHEAP, {"limit": 10}))
    assert told() == [5]
    summary.drop(("one", 1))
    assert told() == [5]
    summary.put(("two", 1), forms_of(CHEAP, {"limit": 20}))
    assert told() == [5, 15]


def test_of_a_hundred_thresholds_few_moves_are_told() -> None:
    rng = random.Random(11)
    summary = thresholds(Grouped, [rng.random() for _ in range(100)])
    told = 0
    for _ in range(5000):
        limit = rng.random()
        summary.put(("client", rng.randrange(100)), forms_of(CHEAP, {"limit": limit}))
        told += bool(summary.delta())
    # About 2 %: the old value or the new one must be the greatest of a hundred.
    assert 50 < told < 200


def test_the_paper_would_send_a_disjunct_for_each_firm() -> None:
    """E-C11: one entry a group here, and a change touches one of them."""
    summary = Grouped()
    for number in range(300):
        forms = forms_of(FIRM, {"firm": f"f{number % 20}", "limit": number})
        summary.put(("client", number), forms)
    assert len(summary.delta().added) == 20
    summary.put(("client", 7), forms_of(FIRM, {"firm": "f7", "limit": 999}))
    assert summary.delta().moved == ((8, ("f7", 999)),)


# Windows.


def windows(*ends: tuple[float, float], schema: dict[str, str] | None = None) -> list[Any]:
    summary = Grouped()
    predicate = Predicate.parse("x BETWEEN :low AND :high", schema)
    for number, (low, high) in enumerate(ends):
        summary.put(("client", number), forms_of(predicate, {"low": low, "high": high}))
    return sorted(vector for _, (_, vector) in summary.everything())


def test_windows_that_meet_become_one() -> None:
    assert windows((0, 5), (5, 10)) == [(0, 10)]
    assert windows((0, 5), (6, 10)) == [(0, 5), (6, 10)]
    assert windows((0, 5), (6, 10), schema={"x": "int"}) == [(0, 10)]
    assert windows((0, 9), (1, 2), (3, 4)) == [(0, 9)]
    assert windows((0, math.inf), (1, 2), (-3, -2)) == [(-3, -2), (0, math.inf)]
    assert windows((9, 0), (1, 2)) == [(1, 2)]


def test_open_ends_do_not_meet() -> None:
    summary = Grouped()
    predicate = Predicate.parse("x > :low AND x < :high")
    for number, (low, high) in enumerate([(0, 5), (5, 10), (9, 12)]):
        summary.put(("client", number), forms_of(predicate, {"low": low, "high": high}))
    shown = [box for _, form in summary.everything() for box in boxes_of(*form)]
    assert len(shown) == 2
    assert not any(box.contains({"x": 5}) for box in shown)
    assert any(box.contains({"x": 10}) for box in shown)


def test_too_many_pieces_become_their_hull_and_come_back() -> None:
    most = CONTENT_SUMMARY_PIECES_MAX
    ends = [(10 * n, 10 * n + 1) for n in range(most)]
    assert windows(*ends) == ends
    assert windows(*ends, (-9, -8)) == [(-9, 10 * most - 9)]
    many = [(0, 1 + n / 1000) for n in range(CONTENT_SUMMARY_SWEPT_MAX)]
    assert windows((5, 6), *many[1:]) == [(0, many[-1][1]), (5, 6)]
    assert windows((5, 6), *many) == [(0, 6)]
    summary = Grouped()
    for number, (low, high) in enumerate([*ends, (-9, -8)]):
        summary.put(("client", number), forms_of(WINDOW, {"low": low, "high": high}))
    assert len(summary.delta().added) == 1
    summary.drop(("client", most))
    change = summary.delta()
    assert (len(change.added), len(change.moved), change.deleted) == (most - 1, 1, ())


def test_a_window_that_moves_is_a_value() -> None:
    summary = Grouped()
    for number, low in enumerate((0, 20, 40)):
        summary.put(("client", number), forms_of(WINDOW, {"low": low, "high": low + 10}))
    summary.delta()
    summary.put(("client", 1), forms_of(WINDOW, {"low": 60, "high": 70}))
    assert summary.delta() == Delta(moved=((2, (60, 70)),))


# What a group may not mix.


def test_kinds_sets_patterns_and_schemas_are_kept_apart() -> None:
    def entries(*interests: Forms) -> int:
        summary = Grouped()
        for number, forms in enumerate(interests):
            summary.put(("client", number), forms)
        return len(summary.everything())

    def of(text: str, schema: dict[str, str] | None = None, **values: Any) -> Forms:
        return forms_of(Predicate.parse(text, schema), values)

    assert entries(of("x < :n", n=1), of("x < :n", n="a"), of("x < :n", n=True)) == 3
    assert entries(of("x = :n", n=1), of("x = :n", n=True), of("x = :n", n=1.0)) == 2
    assert entries(of("x IN :s", s=[1, 2]), of("x IN :s", s=[2, 1]), of("x IN :s", s=[3])) == 2
    assert entries(of("x IN (1, 2)"), of("x IN (TRUE, 2)")) == 2
    assert entries(of("x LIKE '%a' AND y < 1"), of("x LIKE '%b' AND y < 1")) == 2
    assert entries(of("x > 3 AND y < 5"), of("x > 1 AND y < 2")) == 1
    assert entries(of("x < 3"), of("x < 3", {"x": "int"})) == 2
    assert entries(of("x IN :s", s=[]), of("x = 1 AND x = 2"), of("x = 3 AND x < :n", n=1)) == 0
    assert entries(of("x BETWEEN 5 AND 1"), of("x < 5 AND x > 'a'"), ()) == 0


def test_a_place_that_is_read_twice_does_not_widen() -> None:
    """A peer may send it: the greatest value would narrow the other test."""
    twice = Skeleton(ranges=(Condition("x", "<", (0,)), Condition("y", ">", (0,))))
    summary = Grouped()
    for number in range(3):
        summary.put(("peer", number), ((twice, (number,)),))
    shown = [box for _, form in summary.everything() for box in boxes_of(*form)]
    assert all(any(b.contains({"x": n - 1, "y": n + 1}) for b in shown) for n in range(3))
    assert not any(b.contains({"x": 5, "y": 9}) for b in shown)


def test_a_refused_interest_changes_nothing() -> None:
    """Too many boxes: the sets of several kinds multiply."""
    mixed = " AND ".join(f"a{n} IN (1, 'x')" for n in range(7))
    for make in (Exact, Grouped, Bounded):
        summary = thresholds(make, [5])
        with pytest.raises(PredicateError):
            summary.put(("client", 0), forms_of(Predicate.parse(f"{mixed} AND b < 1"), {}))
        assert not summary.delta()
        summary.drop(("client", 0))
        assert summary.delta().deleted == (1,)
