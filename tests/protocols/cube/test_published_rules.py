"""Each published rule put back, and each of ours taken away, must be noticed (published.py).

Two nets: every schedule of a small scenario, and random schedules of eight peers and more with
windows of two, where most rules show within a few. What no schedule needs is said so, with proof
that the rule was really off.
"""

from __future__ import annotations

import pytest

from inorder.sim.script import play
from tests.protocols.cube import published
from tests.protocols.cube.tiny import CASES, pool, search
from tests.protocols.cube.world import broken, draw
from tests.scripts.test_scripts import HERE

# Rules (together), scenario, what breaks first.
SMALL = [
    (["own_views"], "P2", "L1"),
    (["own_views"], "P3", "L1"),
    (["own_views"], "P4", "L1"),
    (["text_rule"], "P1b", "S2"),
    (["code_rule"], "P1b", "L3"),
    (["one_wave"], "P14", "S2"),
    (["no_act_positions"], "P14", "S2"),
    (["tombstones_forgotten"], "P11", "L4"),
    (["last_writer_wins"], "P11", "L4"),
    (["member_while_leaving"], "P11", "L4"),
    (["leaves_at_the_call"], "P7", "L1"),
    (["leaves_before_it_is_in"], "P3", "L4"),
    (["processes_before_in"], "P1b", "L3"),
    (["early_ones_are_dropped"], "P1b", "L3"),
    (["answers_only_the_first_question"], "P13", "L1"),
    (["numbers_begin_again"], "P13", "L1"),
    (["does_not_learn_of_joins"], "P2", "L4"),
    (["joiners_do_not_count"], "source", "L1"),
    (["who_has_left_does_not_help"], "P4", "L5"),
    (["clears_the_barrier"], "P18", "S2"),
    # Line 80 alone is harmless here: when `Uns` leaves, everybody has the last publication.
    (["forgets_a_leaver", "leaves_with_publications_under_way"], "last", "L1"),
    (["everything_from_the_first"], "P1b", "L3"),
    (["wants_across_memberships"], "back", "S10"),
]


@pytest.mark.parametrize(("rules", "case", "what"), SMALL)
def test_a_small_scenario_breaks_without_the_rule(rules, case, what, monkeypatch):
    for rule in rules:
        getattr(published, rule)(monkeypatch)
    found = search(pool(CASES[case]), 12_000)
    assert found.violation is not None
    assert found.violation.startswith(what), found.violation
    assert len(found.story) > 3


# What random schedules find, and within how many.
RANDOM = {
    "own_views": 20, "tombstones_forgotten": 20, "last_writer_wins": 20,
    "member_while_leaving": 30, "leaves_at_the_call": 100, "leaves_before_it_is_in": 20,
    "processes_before_in": 50, "early_ones_are_dropped": 100, "counts_acknowledgements": 50,
    "numbers_begin_again": 50, "answers_only_the_first_question": 20, "joiners_do_not_count": 20,
    "does_not_learn_of_joins": 10, "who_has_left_does_not_help": 20, "text_rule": 20,
    "code_rule": 20, "wants_across_memberships": 300, "one_wave": 1000, "no_act_positions": 1000,
    "clears_the_barrier": 2000, "everything_from_the_first": 50,
}  # fmt: skip


@pytest.mark.parametrize("rule", RANDOM)
def test_random_schedules_break_without_the_rule(rule, monkeypatch):
    getattr(published, rule)(monkeypatch)
    for seed in range(RANDOM[rule]):
        what = broken(draw(seed, counts=(8, 9, 12, 16), window=2))
        if what and what != "machine":
            return
    raise AssertionError("no schedule needs the rule")


def test_a_publication_that_comes_twice_is_handed_over_twice_without_the_filter(monkeypatch):
    published.no_filter_of_doubles(monkeypatch)
    plans = (draw(seed, guarantee="none") for seed in range(300))
    assert any(broken(plan) == "S1" for plan in plans if plan.doubled)


# Scripts that tell of a rule, and what becomes of their last word.
SCRIPTS = [
    ("gone_between_two_questions", "the_silent_count", "c: b:2 d:1"),
    ("back_between_two_questions", "counts_without_a_beginning", "c notes unannounced b:1"),
    ("thesis_5_3_barriers", "code_rule", "p2: p2:1 p0:1 p1:1 p1:2"),
]


@pytest.mark.parametrize(("name", "rule", "last"), SCRIPTS)
def test_a_script_tells_another_story_without_its_rule(name, rule, last, monkeypatch):
    text = (HERE / "cube" / f"{name}.txt").read_text()
    assert play(text) == text
    getattr(published, rule)(monkeypatch)
    played = play(text)
    assert played != text
    assert last in played.rpartition("delivered\n----\n")[2]


# What no schedule needs.


@pytest.mark.parametrize(
    "rule",
    ["leaves_with_publications_under_way", "standing_when_the_ack_leaves", "returns_at_once"],
)
def test_no_schedule_needs_the_rule(rule, monkeypatch):
    """They are kept: a peer that has left with nothing under way may forget everything (line 80
    above), and proofs are shorter when an answer is of one instant and one change follows another.
    """
    published.TAKEN.clear()
    getattr(published, rule)(monkeypatch)
    for seed in range(1500):
        assert not broken(draw(seed)), f"seed {seed}"
    for case in ("P4", "P5", "P7", "P13", "last", "all leave"):
        assert search(pool(CASES[case]), 2_000).violation is None
    assert published.TAKEN[rule] > 100, "the rule was not off"
