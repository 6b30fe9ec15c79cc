"""The poset engine: it answers as the naive one does, and its order is the order of covering."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inorder.content import order
from inorder.content.covering import NO, Level, covering, covers
from inorder.content.engine import Forms, Naive, forms_of
from inorder.content.order import Node, Order
from inorder.content.poset import Poset
from inorder.content.predicate import Predicate
from inorder.content.syntax import show
from inorder.core.errors import Misuse, PredicateError
from tests.content.strategies import draw_event, draw_tree, draw_values, edges_of_boxes, used

WINDOW = Predicate.parse("x BETWEEN :low AND :high")


def window(low: float, high: float) -> Forms:
    return forms_of(WINDOW, {"low": low, "high": high})


def draw_predicate(rng: random.Random) -> tuple[Predicate, dict[str, Any]]:
    """Half of them are simple enough to cover each other often."""
    if rng.random() < 0.5:
        texts = [
            "x < :n",
            "x >= :n",
            "x = :n AND y < :m",
            "x BETWEEN :n AND :m",
            "x < :n OR x > :m",
            "y < :n AND x > :m",
            "EXISTS x",
            "x IS NULL AND y = :n",
        ]
        predicate = Predicate.parse(rng.choice(texts))
        return predicate, used({"n": 0, "m": 0}, [use.name for use in predicate.parameters])
    while True:
        try:
            predicate = Predicate.parse(show(draw_tree(rng, 2)))
        except PredicateError:
            continue
        return predicate, used(draw_values(rng), [use.name for use in predicate.parameters])


def other_values(rng: random.Random, values: dict[str, Any]) -> dict[str, Any]:
    if set(values) <= {"n", "m"}:
        return {name: rng.randint(0, 8) for name in values}
    return used(draw_values(rng), values)


def step(rng: random.Random, known: dict[int, Any], engines: list[Any]) -> None:
    """One random call, the same on each engine."""
    key, what = rng.randint(0, 14), rng.random()
    if key not in known:
        predicate, values = draw_predicate(rng)
        known[key] = predicate, other_values(rng, values)
        for engine in engines:
            engine.add(key, forms_of(*known[key]))
    elif what < 0.5:
        predicate, values = known[key]
        known[key] = predicate, other_values(rng, values)
        for engine in engines:
            engine.set(key, predicate.values_of(known[key][1]))
    elif what < 0.75:
        predicate, values = draw_predicate(rng)
        known[key] = predicate, other_values(rng, values)
        for engine in engines:
            engine.replace(key, forms_of(*known[key]))
    else:
        del known[key]
        for engine in engines:
            engine.remove(key)


def disagreement(seed: int, steps: int = 30) -> Any:
    rng = random.Random(seed)
    known: dict[int, Any] = {}
    naive, poset = Naive(), Poset()
    for _ in range(steps):
        step(rng, known, [naive, poset])
        boxes = [box for predicate, values in known.values() for box in predicate.bind(values)]
        edges = [*edges_of_boxes(boxes[:10]), *range(9)]
        for _ in range(6):
            event = draw_event(rng, edges)
            if naive.match(event) != poset.match(event) or len(naive) != len(poset):
                return event, known
    return None


@settings(max_examples=120)
@given(st.integers(0, 2**32))
def test_it_answers_as_the_naive_engine_does(seed: int) -> None:
    assert disagreement(seed) is None


# The order itself.


def below(node: Node) -> set[int]:
    return {n for child in node.children.values() for n in (child.number, *below(child))}


def broken(found: Order) -> str | None:
    """Which invariant does not hold, if one does not."""
    nodes = found.nodes
    above = {(i, j): covers(nodes[i].boxes, nodes[j].boxes) for i in nodes for j in nodes if i != j}
    for i, node in nodes.items():
        if not node.owners:
            return "nobody's node"
        if {j for j in nodes if j != i and above[i, j]} != below(node):
            return "not all that is covered is below"
        if (i in found.roots) != (not any(above[j, i] for j in nodes if j != i)):
            return "roots are not the maximal nodes"
        for j, child in node.children.items():
            if child.parents.get(i) is not node:
                return "an edge of one direction"
            if any(above[i, k] and above[k, j] for k in nodes if k not in (i, j)):
                return "an edge that is not immediate"
        for j in nodes:
            if j != i and above[i, j] and above[j, i]:
                return "equivalent nodes"
    return None


def broken_after(seed: int, steps: int = 30) -> str | None:
    rng = random.Random(seed)
    known: dict[int, Any] = {}
    poset = Poset()
    for _ in range(steps):
        step(rng, known, [poset])
        if problem := broken(poset.order):
            return problem
        owners = sorted(key for node in poset.order.nodes.values() for key in node.owners)
        if owners != sorted(key for key, one in known.items() if one[0].bind(one[1])):
            return "owners"
    return None


@settings(max_examples=40)
@given(st.integers(0, 2**32))
def test_edges_are_immediate_roots_maximal_and_equals_shared(seed: int) -> None:
    assert broken_after(seed) is None


def _neighbours_only(self: Order, node: Node, boxes: Any) -> None:
    """UPDATE by the old neighbours alone, as the specification has it."""
    parents, children = node.parents.values(), node.children.values()
    stays = all(self._covers(one.boxes, boxes) for one in parents) and all(
        self._covers(boxes, one.boxes) for one in children
    )
    strangers = [one for one in self.nodes.values() if one is not node and one not in children]
    if stays and not any(self._covers(boxes, one.boxes) for one in strangers):
        del self._spelt[frozenset(node.boxes)]
        node.boxes = boxes
        self._spelt[frozenset(boxes)] = node
    else:
        (owner,) = node.owners
        self.drop(owner)
        self.put(owner, boxes)


_attach = Order._attach


@pytest.mark.parametrize(
    ("name", "defect"),
    [
        ("_update", _neighbours_only),
        ("_twin", lambda self, boxes, parents: None),
        ("_covered", lambda self, boxes, parents, known: {}),
        ("_attach", lambda self, node, parents, children: _attach(self, node, {}, children)),
    ],
)
def test_a_planted_defect_breaks_the_order(
    monkeypatch: pytest.MonkeyPatch, name: str, defect: Any
) -> None:
    monkeypatch.setattr(Order, name, defect)

    def found(seed: int) -> bool:
        try:
            return broken_after(seed) is not None
        except (KeyError, RecursionError):
            return True

    assert any(found(seed) for seed in range(60))


def test_an_invented_covering_loses_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    """The order may not be pruned by a covering that is none."""
    monkeypatch.setattr(order, "inside", lambda inner, outer: inner.slots[:1] >= outer.slots[:1])

    def found(seed: int) -> bool:
        try:
            return disagreement(seed) is not None
        except (KeyError, TypeError):
            return False

    assert any(found(seed) for seed in range(60))


@pytest.mark.parametrize("level", [Level.SINGLE, Level.PAIRWISE])
def test_a_weaker_test_of_covering_costs_edges_and_no_event(
    monkeypatch: pytest.MonkeyPatch, level: Level
) -> None:
    monkeypatch.setattr(order, "covering", lambda a, b: covering(a, b, level=level))
    assert all(disagreement(seed) is None for seed in range(30))
    assert any(broken_after(seed) for seed in range(60)), "pairs do not make the true order"


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_coverings_that_are_not_found_lose_no_event(
    monkeypatch: pytest.MonkeyPatch, share: float
) -> None:
    """As if the budget ended at random: then the relation is not even transitive."""
    rng = random.Random(3)

    def forgetful(self: Order, a: Any, b: Any) -> bool:
        if rng.random() < share:
            self.cut += 1
            return NO.covers
        return covering(a, b).covers

    monkeypatch.setattr(Order, "_covers", forgetful)
    assert all(disagreement(seed) is None for seed in range(60))


# Costs and cases.


def test_an_antichain_takes_two_comparisons_a_node() -> None:
    engine = Poset()
    for n in range(100):
        engine.add(n, window(10 * n, 10 * n + 5))
    before = engine.comparisons
    engine.add(100, window(2000, 2005))
    assert engine.comparisons - before == 200
    assert len(engine.order.roots) == 101
    before = engine.comparisons
    engine.remove(50)
    assert engine.comparisons == before


def test_a_chain_prunes_what_does_not_match() -> None:
    engine = Poset()
    for n in range(50):
        engine.add(n, window(n, 100 - n))
    assert next(iter(engine.order.roots.values())).owners == {0: None}
    before = engine.evaluations
    assert engine.match({"x": 2.5}) == [0, 1, 2]
    assert engine.evaluations - before == 4
    assert engine.match({"x": 50}) == list(range(50))


def test_equivalent_subscriptions_share_a_node_and_one_may_leave() -> None:
    """E-C10: the second must not overwrite the first."""
    halves = Predicate.parse("x BETWEEN 0 AND 5 OR x BETWEEN 5 AND 10")
    engine = Poset()
    engine.add(2, window(0, 10))
    engine.add(1, forms_of(halves, {}))
    engine.add(3, window(0, 10.0))
    assert [sorted(node.owners) for node in engine.order.nodes.values()] == [[1, 2, 3]]
    assert engine.match({"x": 5}) == [1, 2, 3]
    engine.remove(2)
    assert engine.match({"x": 5}) == [1, 3]
    engine.set(3, WINDOW.values_of({"low": 20, "high": 30}))
    assert engine.match({"x": 5}) == [1]
    engine.set(3, WINDOW.values_of({"low": 30, "high": 20}))
    assert len(engine.order.nodes) == 1
    assert len(engine) == 2


def test_a_narrower_window_comes_under_a_stranger() -> None:
    """Its parents still cover it, it has no child, and yet its place changes."""
    engine = Poset()
    engine.add(1, window(0, 10))
    engine.add(2, window(5, 20))
    assert len(engine.order.roots) == 2
    engine.set(1, WINDOW.values_of({"low": 6, "high": 10}))
    assert [sorted(node.owners) for node in engine.order.roots.values()] == [[2]]


def test_misuse_is_refused_and_changes_nothing() -> None:
    engine = Poset()
    engine.add(1, window(0, 10))
    with pytest.raises(Misuse):
        engine.add(1, window(0, 1))
    for call in (
        lambda: engine.remove(2),
        lambda: engine.set(2, []),
        lambda: engine.replace(2, ()),
    ):
        with pytest.raises(Misuse):
            call()
    with pytest.raises(ValueError, match="shorter"):
        engine.set(1, [])
    assert engine.match({"x": 10}) == [1]
