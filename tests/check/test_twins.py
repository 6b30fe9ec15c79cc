"""Every judge agrees with its slow and obvious twin, on histories of every kind."""

from __future__ import annotations

import random
from itertools import combinations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inorder.check import BROKE, PROMISES, History, Verdict, judge
from inorder.check.slow import SLOW, deliverable, owed
from inorder.check.total import inversions

from .random_history import any_history, right_history


def all_verdicts(history: History) -> dict[str, Verdict]:
    found = judge(history)
    for verdict in list(found.values()):
        found.update(verdict.also)
    return found


# Which history they cannot judge is said by tests of their own.
UNJUDGED = ("causal", "causal_across_topics", "accepted", "realtime", "position")


@settings(max_examples=400, deadline=None)
@given(st.randoms(use_true_random=False))
def test_every_judge_counts_what_its_slow_twin_counts(rng: random.Random) -> None:
    history = any_history(rng)
    for name, verdict in all_verdicts(history).items():
        if verdict.judged:
            assert verdict.violations == SLOW[name](history), BROKE[name]
        elif name in ("reliable", "filter"):
            assert not history.complete
        else:
            assert name in UNJUDGED


@pytest.mark.parametrize("seed", range(300))
def test_every_judge_counts_what_its_slow_twin_counts_by_seed(seed: int) -> None:
    history = any_history(random.Random(seed))
    for name, verdict in all_verdicts(history).items():
        if verdict.judged:
            assert verdict.violations == SLOW[name](history), (name, seed)


@pytest.mark.parametrize("seed", range(300))
def test_what_may_be_delivered_and_what_is_owed_is_counted_alike(seed: int) -> None:
    history = any_history(random.Random(seed))
    counts = judge(history, ["reliable"])["reliable"].counts
    if history.complete:
        assert counts["deliverable"] == deliverable(history)
        assert counts["owed"] == owed(history)


@pytest.mark.parametrize("seed", range(50))
def test_a_right_history_is_kept_by_slow_twins_too(seed: int) -> None:
    history = right_history(random.Random(seed))
    assert {name: slow(history) for name, slow in SLOW.items()} == dict.fromkeys(SLOW, 0)


@pytest.mark.parametrize("seed", range(50))
def test_the_order_of_the_rows_changes_no_verdict(seed: int) -> None:
    rng = random.Random(seed)
    history = right_history(rng) if seed % 2 else any_history(rng)
    assert history.events is not None
    assert history.subscriptions is not None
    deliveries, events = list(history.deliveries), list(history.events)
    rng.shuffle(deliveries)
    rng.shuffle(events)
    again = History(
        deliveries,
        events,
        history.subscriptions,
        complete=history.complete,
        accepted_known=history.accepted_known,
        ending=history.ending,
        clock_error=history.clock_error,
        elsewhere=history.elsewhere,
    )
    assert msgspec.json.encode(judge(again)) == msgspec.json.encode(judge(history))


def test_every_promise_and_every_related_one_has_a_text_and_a_twin() -> None:
    names = set(all_verdicts(any_history(random.Random(0))))
    assert names == set(BROKE) == set(SLOW)
    assert set(PROMISES) < names


@given(st.lists(st.integers(), unique=True, max_size=50))
def test_inversions_are_counted_like_pairs(values: list[int]) -> None:
    assert inversions(values) == sum(a > b for a, b in combinations(values, 2))
