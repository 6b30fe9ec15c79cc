"""Every schedule of small scenarios, most of them of the errata: four peers, unordered links."""

from __future__ import annotations

import os

import pytest

from tests.protocols.cube import published
from tests.protocols.cube.judge import Broken
from tests.protocols.cube.tiny import CASES, Case, Tiny, pool, search

WIDE = "INORDER_SCHEDULES" in os.environ

# Complete takes minutes or more: cut in the normal run.
LARGE = {"P6": 5_000, "silent": 5_000, "again": 5_000}
STATES_MAX = 30_000


@pytest.mark.parametrize("case", [case for case in CASES if case not in LARGE])
def test_no_schedule_breaks_a_property(case):
    found = search(pool(CASES[case]), STATES_MAX)
    assert found.violation is None, "\n".join(found.story)
    assert found.complete
    assert found.final_states >= 1
    assert found.schedules >= found.final_states


@pytest.mark.parametrize("case", LARGE)
def test_as_many_schedules_of_a_large_scenario_as_there_is_time_for(case):
    found = search(pool(CASES[case]), 1_000_000 if WIDE else LARGE[case])
    assert found.violation is None, "\n".join(found.story)
    assert found.complete == WIDE, "a search that was cut says so"
    assert found.states >= LARGE[case]


@pytest.mark.parametrize("case", ["P1b", "P2", "P3", "P4", "P5", "P7", "P11", "P12", "P13", "back"])
def test_the_network_alone_keeps_its_own_promises(case):
    found = search(pool(CASES[case], guarantee="none"), STATES_MAX)
    assert found.violation is None, "\n".join(found.story)
    assert found.complete


@pytest.mark.parametrize("case", ["P1", "P1b", "P5", "P7", "P13", "last"])
def test_a_window_of_two(case):
    found = search(pool(CASES[case], window=2), STATES_MAX)
    assert found.violation is None, "\n".join(found.story)
    assert found.complete


@pytest.mark.parametrize("case", ["P1", "P2", "P3", "P5", "P11", "P13", "session"])
def test_any_one_packet_may_come_twice(case):
    found = search(pool(CASES[case], doubles=1), STATES_MAX)
    assert found.violation is None, "\n".join(found.story)
    assert found.complete


def ends(made: Tiny) -> tuple[set[bytes], int]:
    """All states without a way on, and how many states there are."""
    first = made.fork()
    seen, finals, waiting = {first.key()}, set(), [first]
    while waiting:
        state = waiting.pop()
        steps = state.steps()
        if not steps:
            finals.add(state.key())
        for step in steps:
            after = state.fork()
            after.take(step)
            if (key := after.key()) not in seen:
                seen.add(key)
                waiting.append(after)
    return finals, len(seen)


@pytest.mark.parametrize("case", ["P1", "P2", "P3", "P5", "P11", "session"])
def test_steps_that_commute_may_be_taken_at_once(case):
    """The reduction finds the same ends as a search that leaves nothing out."""
    all_of_it = pool(CASES[case])
    all_of_it.eager = False
    (few, fewer), (every, more) = ends(pool(CASES[case])), ends(all_of_it)
    assert few == every
    assert fewer < more


def test_the_reduction_hides_no_violation(monkeypatch):
    published.own_views(monkeypatch)
    case: Case = CASES["P2"]
    for eager in (True, False):
        made = pool(case)
        made.eager = eager
        found = search(made, STATES_MAX)
        assert found.violation is not None
        assert found.violation.startswith("L1")
        assert not found.complete


def test_the_shortest_story_is_told(monkeypatch):
    published.own_views(monkeypatch)
    found = search(pool(CASES["P2"]), STATES_MAX)
    assert "a: publish t" in found.story
    assert any(line.startswith("c receives Pub t a:1") for line in found.story)
    assert not any(line.startswith("d receives Pub") for line in found.story), "that is the defect"


def test_a_state_that_breaks_a_property_at_once_is_the_end_of_its_branch():
    made = pool(CASES["P1"])
    made.judge.launched = lambda *given: (_ for _ in ()).throw(Broken("S1", "of a test"))  # type: ignore[method-assign]
    step = next(step for step in made.steps() if step.kind == "do")
    made.take(step)
    assert made.problem == "S1: of a test"
    assert made.steps() == []
