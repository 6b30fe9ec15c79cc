from __future__ import annotations

import pytest

from inorder.check import BROKE, History, Verdict, judge
from inorder.core.errors import BadTrace

from .build import build, change, deliver, publish, subscribe


def filtered(*rows: object, **flags: bool) -> Verdict:
    return judge(build(*rows, **flags), ["filter"])["filter"]


HELD = subscribe("a", where="x < :limit", limit=5)
SMALL = publish("p:1", x=1)
LARGE = publish("p:2", x=7)


def test_what_matches_may_be_delivered() -> None:
    verdict = filtered(HELD, SMALL, deliver("a", "p:1"))
    assert verdict.kept, BROKE["filter"]
    assert verdict.counts == {"checked": 1, "strangers": 0}


def test_what_does_not_match_must_not_be_delivered_not_even_tagged() -> None:
    verdict = filtered(HELD, LARGE, deliver("a", "?p:2"))
    assert verdict.witness == {
        "event": "p:2",
        "subscriber": "a",
        "nth": 1,
        "where": "x < :limit",
        "parameters": {"limit": 5},
        "attributes": {"x": 7},
    }


def test_the_parameters_of_the_moment_count() -> None:
    rows = (HELD, LARGE, publish("p:3", x=7), deliver("a", "p:2 p:3"))
    assert filtered(*rows).violations == 2
    assert filtered(*rows, change("a", after=1, limit=9)).violations == 1
    assert filtered(*rows, change("a", at=0.5, after=None, limit=9)).kept
    assert filtered(*rows, change("a", at=1.015, after=None, limit=9)).violations == 1
    assert filtered(*rows, change("a", "", after=1, limit=9)).violations == 1


def test_a_set_keeps_the_parameters_it_does_not_name() -> None:
    held = subscribe("a", where="x BETWEEN :lo AND :hi", lo=0, hi=5)
    assert filtered(held, LARGE, change("a", at=0.5, hi=9), deliver("a", "p:2")).kept


def test_a_set_may_replace_the_predicate() -> None:
    other = subscribe("a", at=0.5, where="x > :low", op="set", low=6)
    assert filtered(HELD, LARGE, other, deliver("a", "p:2")).kept


def test_an_unfiltered_subscription_delivers_anything() -> None:
    assert filtered(subscribe("a"), LARGE, deliver("a", "p:2")).counts["checked"] == 0


def test_a_predicate_that_cannot_be_read_is_the_fault_of_the_trace() -> None:
    with pytest.raises(BadTrace, match="Anonymous"):
        filtered(subscribe("a", where="f(x) = 1"), SMALL, deliver("a", "p:1"))
    with pytest.raises(BadTrace, match=":limit has no value"):
        filtered(subscribe("a", where="x < :limit"), SMALL, deliver("a", "p:1"))


def test_it_is_not_judged_without_what_it_needs() -> None:
    assert not judge(History.foreign([("a", 1, "x")]), ["filter"])["filter"].judged
    assert not filtered(HELD, SMALL, complete=False).judged
    bare = History([], [SMALL], [HELD], bare=True)
    assert not judge(bare, ["filter"])["filter"].judged
