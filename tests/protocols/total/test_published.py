"""Negative controls: each published rule, put back alone, is found out.

If one of these fails, the tests have become too weak (or the rule harmless): find out which.
"""

from __future__ import annotations

import pytest

from inorder.core.errors import InorderError
from tests.protocols.total import published
from tests.protocols.total.schedules import MODES, draw, reorder, run
from tests.protocols.total.small import CASES, FORMS, LARGE, SWAPS, pool, search, wander

# rule, form, scenario: the exhaustive explorer finds it.
FOUND_BY_SEARCH = [
    ("increment_on_subscribe", "hold", "R6"),
    ("threshold_two", "hold", "R3"),
    ("threshold_two", "tag compact", "R2"),
    ("overwrite_clocks", "hold", "S5"),
    ("overwrite_clocks", "tag compact", "R4"),
    ("pending_does_not_block", "hold", "R2"),
    ("group_only_path", "hold", "S9"),
    ("definition_3", "tag compact", "third"),
    ("forget_at_unsubscribe", "tag compact", "R3"),
    ("ttl_runs_while_pending", "ttl", "R2"),
    ("discard_old_epochs", "tag compact", "E2"),
    ("no_epoch_check", "tag compact", "E5"),
]


@pytest.mark.parametrize(("rule", "form", "case"), FOUND_BY_SEARCH)
def test_a_published_rule_is_found_out_by_search(rule, form, case, monkeypatch):
    getattr(published, rule)(monkeypatch)
    made = _pool(form, case)
    assert search(made).violation is not None


@pytest.mark.parametrize(
    ("form", "case"), sorted({(form, case) for _, form, case in FOUND_BY_SEARCH})
)
def test_without_the_published_rule_the_same_search_finds_nothing(form, case):
    assert search(_pool(form, case)).violation is None


def _pool(form, case):
    if case in SWAPS:
        *parts, order = SWAPS[case]
        return pool({**FORMS[form], "swaps": "on"}, *parts, reorder=order)
    return pool(FORMS[form], *{**CASES, **LARGE}[case])


# rule, mode, extra options, how schedules are drawn, first seed (one known to be near a finding).
FOUND_BY_CHANCE = [
    ("equality", "hold", {}, {}, 30),
    ("no_duplicate_filter", "hold", {}, {}, 0),
    ("no_cut", "hold", {"swaps": "on"}, {"lively": True, "faulty": False}, 0),
    ("keep_old_clocks_with_compact", "compact", {}, {"lively": True, "faulty": False}, 1500),
]


@pytest.mark.parametrize(("rule", "mode", "extra", "how", "first"), FOUND_BY_CHANCE)
def test_a_published_rule_is_found_out_by_chance(rule, mode, extra, how, first, monkeypatch):
    getattr(published, rule)(monkeypatch)
    act = reorder if extra else None
    assert _first_failure(range(first, first + 200), {**MODES[mode], **extra}, how, act) is not None


def test_inferring_the_order_gives_two_orders(monkeypatch):
    """E1. Discarding old stamps, which it needs, loses events but gives no two orders: so what
    is found is the inference."""
    published.infer_the_order(monkeypatch)
    found = search(_pool("tag compact", "E1 both"), safety=True)
    assert found.violation is not None


def test_joining_after_the_walk_is_found_out_where_nobody_repairs(monkeypatch):
    """Our repair would mend it; the papers have none. Without either rule nothing is missing."""
    published.no_repair(monkeypatch)
    how = {"lively": True, "faulty": False}
    assert _first_failure(range(40), MODES["hold"], how) is None
    published.walk_before_join(monkeypatch)
    assert _first_failure(range(40), MODES["hold"], how) is not None


def test_updates_without_versions_are_found_out(monkeypatch):
    """S13. Direct updates are harmless as long as there are versions."""
    published.direct_updates(monkeypatch)
    made = pool(FORMS["hold"], *LARGE["S13 both"])
    seeds = range(2100, 2400)
    assert all(wander(made, seed)[0] is None for seed in seeds)
    published.no_versions(monkeypatch)
    assert any(wander(made, seed)[0] is not None for seed in seeds)


def test_write_behind_is_found_out():
    """F4: a number is given twice, because others saw the first and the disk did not."""
    how = {"sync": 0.2}
    assert _first_failure(range(560, 600), MODES["hold"], how) is None
    found = _first_failure(range(560, 600), MODES["hold"], how, write_behind=True)
    assert found is not None
    assert any(wrong.startswith("numbering") for wrong in found[1])


def _first_failure(seeds, order, how, act=None, write_behind=False):
    for seed in seeds:
        try:
            wrong = run(draw(seed, order, **how), seed, act=act, write_behind=write_behind)[2]
        except InorderError:
            continue  # a machine noticed: no proof that a promise was broken
        if wrong:
            return seed, wrong
    return None
