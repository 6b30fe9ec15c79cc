"""Every schedule of the errata's small scenarios, in every form of delivery."""

from __future__ import annotations

import os

import pytest

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
