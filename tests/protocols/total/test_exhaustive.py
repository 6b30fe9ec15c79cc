"""Every schedule of the errata's small scenarios, in every form of delivery."""

from __future__ import annotations

import os

import pytest

from inorder.protocols.session.incoming import Incoming
from tests.protocols.total.small import CASES, FORMS, LARGE, SWAPS, pool, search, wander

WIDE = "INORDER_SCHEDULES" in os.environ


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", [case for case in CASES if case != "add"])
def test_no_schedule_breaks_the_order(case, form):
    result = search(pool(FORMS[form], *CASES[case]))
    assert result.violation is None, "\n".join(result.story)
    assert result.complete


@pytest.mark.parametrize("form", ["hold", "tag compact"])
@pytest.mark.parametrize("case", ["R1b", "S9", "S13"])
def test_no_schedule_of_a_larger_scenario_breaks_the_order(case, form):
    result = search(pool(FORMS[form], *LARGE[case]))
    assert result.violation is None, "\n".join(result.story)
    assert result.complete


@pytest.mark.parametrize("form", ["hold", "tag", "tag compact"])
@pytest.mark.parametrize("case", ["E1", "E2", "E3", "E4", "E5"])
def test_no_schedule_breaks_the_order_while_topics_change_places(case, form):
    *parts, order = SWAPS[case]
    result = search(pool({**FORMS[form], "swaps": "on"}, *parts, reorder=order))
    assert result.violation is None, "\n".join(result.story)
    assert result.complete


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", ["add", "S8", "S13 both"])
def test_no_random_walk_through_a_scenario_too_large_to_exhaust_breaks_the_order(case, form):
    made = pool(FORMS[form], *{**CASES, **LARGE}[case])
    for seed in range(2000 if WIDE else 150):
        problem, _ = wander(made, seed)
        assert problem is None, f"seed {seed}"


def test_the_ring_is_acyclic_on_a_forest():
    """S8 without A: pairwise agreement would allow a circle, the common path does not."""
    topics, setup, programs = LARGE["S8"]
    ring = {name: held for name, held in setup.items() if name != "A"}
    made = pool({"mode": "hold", "path": "forest"}, topics, ring, programs)
    for seed in range(200):
        assert wander(made, seed)[0] is None


@pytest.mark.parametrize("form", FORMS)
def test_two_who_add_the_same_topic_at_once(form):
    """Complete takes minutes: cut in the normal run, complete under `make explore`."""
    result = search(pool(FORMS[form], *CASES["add"]), states_max=300_000 if WIDE else 6_000)
    assert result.violation is None, "\n".join(result.story)
    assert result.complete or not WIDE


# Links that do not keep their order: sessions make up for it.
ANY_ORDER = {
    "one publishes twice": (1, {"A": "1"}, {"p": ["publish 1", "publish 1"]}),
    "two publish": (2, {"A": "12"}, {"p": ["publish 2"], "q": ["publish 1"]}),
    "two for two": (2, {"A": "12", "B": "12"}, {"p": ["publish 2"], "q": ["publish 1"]}),
}
# Complete takes half a minute.
WALKING = (2, {"B": "12"}, {"A": ["subscribe 12"], "p": ["publish 2"]})


@pytest.mark.parametrize("form", ["hold", "tag"])
@pytest.mark.parametrize("case", ANY_ORDER)
def test_sessions_over_links_that_keep_no_order(case, form):
    result = search(pool(FORMS[form], *ANY_ORDER[case], ordered=False))
    assert result.violation is None, "\n".join(result.story)
    assert result.complete


def test_a_walk_over_links_that_keep_no_order():
    found = search(
        pool(FORMS["hold"], *WALKING, ordered=False), states_max=30_000 if WIDE else 3_000
    )
    assert found.violation is None, "\n".join(found.story)
    assert found.complete == WIDE, "a search that was cut says so"


def test_without_the_window_the_same_search_finds_a_disorder(monkeypatch):
    """The negative control: whatever comes is next."""

    def place(self, number):
        return "again" if number in self.come else "next"

    monkeypatch.setattr(Incoming, "place", place)
    monkeypatch.setattr(Incoming, "take", lambda self, number: self.come.cover(number, number) or 0)
    found = search(pool(FORMS["hold"], *ANY_ORDER["one publishes twice"], ordered=False))
    assert found.violation is not None
