"""The bounded summary, how much a delta looks at, the extremes behind it all, and their names."""

from __future__ import annotations

import random
from typing import Any

import pytest

from inorder.content.bounded import Bounded
from inorder.content.engine import forms_of
from inorder.content.extreme import Extreme
from inorder.content.grouped import Grouped
from inorder.content.policies import POLICIES, policy
from inorder.content.predicate import Predicate
from inorder.content.skeleton import Skeleton
from inorder.content.summary import Summary
from inorder.core.errors import Misuse, UnknownName
from tests.content.test_summaries import FIRM, WINDOW, Neighbour, draw_bound


def firms(summary: Summary, number: int) -> None:
    for n in range(number):
        summary.put(("client", n), forms_of(FIRM, {"firm": f"f{n}", "limit": n}))


def test_bounded_gives_up_the_most_selective_attribute_and_takes_it_back() -> None:
    summary, neighbour = Bounded(5), Neighbour()
    firms(summary, 5)
    neighbour.apply(summary.delta())
    assert len(neighbour.entries) == 5
    firms(summary, 30)
    neighbour.apply(summary.delta())
    assert [vector for _, vector in neighbour.entries.values()] == [(29,)]
    for n in range(4, 30):
        summary.drop(("client", n))
    neighbour.apply(summary.delta())
    assert sorted(v for _, v in neighbour.entries.values()) == [(f"f{n}", n) for n in range(4)]


def test_bounded_tries_again_without_a_word() -> None:
    """As wide as before, and hence nothing to tell, however often it is tried."""
    summary = Bounded(5)
    firms(summary, 30)
    summary.delta()
    for n in range(200):
        summary.put(("client", n % 29), forms_of(FIRM, {"firm": f"g{n}", "limit": n % 29}))
        assert not summary.delta()


def test_bounded_ends_with_the_whole_topic() -> None:
    summary = Bounded(1)
    firms(summary, 3)
    summary.put(("other", 1), forms_of(Predicate.parse("size > 5"), {}))
    assert [form for _, form in summary.everything()] == [(Skeleton(), ())]


def test_bounded_makes_hulls_of_windows_first() -> None:
    summary = Bounded(3)
    for n in range(5):
        summary.put(("client", n), forms_of(WINDOW, {"low": 10 * n, "high": 10 * n + 1}))
    assert [vector for _, (_, vector) in summary.everything()] == [(0, 41)]


def test_bounded_with_a_thousand_shapes() -> None:
    summary = Bounded(10)
    for n in range(1000):
        predicate = Predicate.parse(f"a{n} = 1 AND b{n % 7} < :limit")
        summary.put(("client", n), forms_of(predicate, {"limit": n}))
    assert len(summary.everything()) <= 10
    with pytest.raises(Misuse):
        Bounded(0)


def test_only_what_changed_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cost of a delta does not grow with the interests."""
    shown: list[Any] = []
    show = Grouped._show
    monkeypatch.setattr(Grouped, "_show", lambda self, one: shown.append(one) or show(self, one))
    for make in (Grouped, lambda: Bounded(500)):
        summary = make()
        firms(summary, 400)
        summary.delta()
        shown.clear()
        summary.put(("client", 7), forms_of(FIRM, {"firm": "f7", "limit": 1000}))
        summary.delta()
        assert len(shown) == 1


# Extremes, and names.


@pytest.mark.parametrize("kind", ["number", "text", "truth"])
@pytest.mark.parametrize("greatest", [True, False])
def test_extremes_are_those_of_a_list(kind: Any, greatest: bool) -> None:
    rng = random.Random(9)
    found, held = Extreme(greatest, kind), []
    for _ in range(4000):
        if held and rng.random() < (0.6 if len(held) > 300 else 0.45):
            found.remove(held.pop(rng.randrange(len(held))))
        else:
            held.append(draw_bound(rng, kind) if rng.random() < 0.5 else held_value(rng, kind))
            found.add(held[-1])
        if held:
            best = found.value()
            assert best == (max if greatest else min)(held)
            assert isinstance(best, bool) == (kind == "truth")


def held_value(rng: random.Random, kind: str) -> Any:
    number = rng.randint(-1000, 1000)
    return {"number": number, "text": str(number), "truth": number > 0}[kind]


def test_policies_have_names() -> None:
    assert sorted(POLICIES) == ["bounded", "everything", "exact", "grouped"]
    assert isinstance(policy()(), Grouped)
    small = policy("bounded(7)")()
    assert isinstance(small, Bounded)
    assert small.entries == 7
    for name in ("best", "bounded()", "bounded(0)", "bounded(-1)", "bounded(x)", "bounded(7", ""):
        with pytest.raises(UnknownName):
            policy(name)
