"""The estimators by themselves: ranks, shares, clock steps, and delays nobody expects."""

from __future__ import annotations

import random
from math import ceil, inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inorder.core.event import Event
from inorder.protocols.fifo import Options
from inorder.protocols.fifo.header import Header
from inorder.protocols.fifo.laplace2 import Laplace2
from inorder.protocols.fifo.predictive import MEMORIES, SCALE_MIN, Predictive
from inorder.protocols.fifo.static import Static
from tests.protocols.fifo.drive import receiver

# Predictive.


def predictive(**options: Any) -> Predictive:
    return Predictive.from_options(Options(**options))


def feed(estimator: Any, delays: list[float], start: int = 0) -> int:
    for turn, delay in enumerate(delays, start):
        estimator.sample(turn * 0.01, turn * 0.01 + delay)
    return start + len(delays)


def jitter(seed: int, count: int, mean: float = 0.01, base: float = 0.02) -> list[float]:
    rng = random.Random(seed)
    return [base + rng.expovariate(1.0 / mean) for _ in range(count)]


@pytest.mark.parametrize("late", [0.5, 0.1, 0.05, 0.01, 0.001])
def test_the_quantile_is_the_conformal_rank(late):
    estimator = predictive(late=late)
    feed(estimator, jitter(1, 700))
    quantile = estimator.gauges()["quantile"]
    ranked = sorted(estimator.residuals)
    assert len(ranked) == 500
    assert ranked == estimator.ranked
    rank = ceil(501 * (1 - late))
    assert quantile == (ranked[rank - 1] if rank <= 500 else pytest.approx(1.1 * ranked[-1]))
    if rank <= 500:
        assert sum(each <= quantile for each in ranked) / 500 >= 1 - late - 1e-12


def test_residuals_are_predictions_made_before_the_delay_was_known():
    """Of delays that repeat, a memory of one foretells each; the outcome of a coin it does not."""
    estimator = predictive()
    delays = [0.02, 0.03] * 50
    feed(estimator, delays)
    estimator.gauges()
    assert min(abs(each) for each in estimator.residuals[-40:]) > 0.3


@pytest.mark.parametrize("target", [0.01, 0.05, 0.2])
def test_adapting_balances_at_the_target(target):
    estimator = predictive(late=target, adapt=True)
    period = round(1 / target)
    for turn in range(200 * period):
        estimator.feedback(turn % period == 0)
    assert estimator.share == pytest.approx(target, rel=target + 0.5)
    before = estimator.share
    for turn in range(period):
        estimator.feedback(turn == 0)
    assert estimator.share == pytest.approx(before)
    for _ in range(10_000):
        estimator.feedback(True)
    assert estimator.share == pytest.approx(1e-4)
    for _ in range(10_000):
        estimator.feedback(False)
    assert estimator.share == 0.5


def test_not_adapting_leaves_the_share_alone():
    estimator = predictive(late=0.05)
    for turn in range(100):
        estimator.feedback(turn % 2 == 0)
    assert estimator.share == 0.05


@pytest.mark.parametrize("late", [0.02, 0.1])
def test_adapting_reaches_the_target_when_lateness_follows_the_quantile(late):
    """Residuals far from exchangeable: the spread doubles again and again."""
    estimator = predictive(late=late, adapt=True)
    rng = random.Random(4)
    late_ones = 0
    for turn in range(20_000):
        delay = rng.expovariate(100.0 / (1 + (turn // 700) % 5))
        if turn > 20:
            departure_s = turn * 0.01
            is_late = departure_s + delay > estimator.deadline(departure_s, 0.0, 0.0)
            late_ones += is_late
            estimator.feedback(is_late)
        estimator.sample(turn * 0.01, turn * 0.01 + delay)
    assert late_ones / 20_000 == pytest.approx(late, rel=0.06)


def test_the_memory_is_long_for_noise_and_short_for_a_trend():
    noise = predictive()
    feed(noise, jitter(5, 1500))
    trend = predictive()
    feed(trend, [0.02 + 0.004 * turn for turn in range(600)])
    assert noise.gauges()["memory"] >= 16
    assert trend.gauges()["memory"] == 1
    assert {float(each) for each in MEMORIES} >= {1.0, noise.gauges()["memory"]}


@pytest.mark.parametrize("step", [2.0, -4.0])
def test_a_clock_step_is_recognised_at_the_third_event(step):
    estimator = predictive()
    turn = feed(estimator, jitter(6, 300))
    before = estimator.gauges()
    window = list(estimator.residuals)
    moved = [delay + step for delay in jitter(7, 40)]
    turn = feed(estimator, moved[:2], turn)
    assert estimator.gauges() == before
    feed(estimator, moved[2:3], turn)
    assert estimator.steps == 1
    assert estimator.level == pytest.approx(before["level"] + step, abs=0.05)
    assert (estimator.residuals, estimator.scale) == (window, before["scale"])
    feed(estimator, moved[3:], turn + 1)
    assert estimator.steps == 1


@pytest.mark.parametrize("seed", range(5))
def test_no_step_is_seen_where_there_is_none(seed):
    estimator = predictive()
    delays = jitter(seed, 3000)
    rng = random.Random(seed)
    for place in rng.sample(range(100, 3000, 10), 40):
        delays[place] += rng.uniform(1.5, 9.0)
    feed(estimator, delays)
    assert estimator.steps == 0
    assert estimator.level < 0.2


def test_eight_in_a_row_that_do_not_agree_are_real():
    estimator = predictive()
    turn = feed(estimator, jitter(8, 300))
    estimator.gauges()
    feed(estimator, [2.0 * 1.5**turn for turn in range(7)], turn)
    assert estimator.gauges()["level"] < 0.1
    feed(estimator, [60.0], turn + 7)
    assert estimator.gauges()["level"] > 1.0
    assert estimator.steps == 0


def test_the_scale_is_never_zero():
    estimator = predictive()
    for turn in range(2000):
        estimator.sample(turn / 64, turn / 64 + 0.5)
        assert not estimator.residuals or estimator.scale >= SCALE_MIN
    assert estimator.deadline(1.0, 1.0, 1.0) == pytest.approx(1.5)
    assert estimator.share_for(0.1) == 0.0


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=80), st.floats(1e-4, 0.5))
def test_any_delays_give_a_finite_deadline(delays, late):
    estimator = predictive(late=late, min_samples=1)
    feed(estimator, delays)
    if estimator.warm:
        assert abs(estimator.deadline(0.0, 0.0, 0.0)) < 1e300
        assert estimator.scale >= SCALE_MIN
        assert estimator.ranked == sorted(estimator.residuals)


def test_the_dial_turns_both_ways():
    estimator = predictive()
    feed(estimator, jitter(9, 800))
    for share in (0.01, 0.05, 0.2):
        assert estimator.share_for(estimator.wait_for(share)) == pytest.approx(share, abs=0.004)


# Laplace2 and static.


def test_laplace2_samples_every_arrival_late_ones_too():
    held = receiver(estimator="laplace2", record=0, window=1000, max_pair_gap=inf)
    for seq in (1, 2, 9, 3, 5, 4, 10):
        held.receive(Header(0, seq, seq * 1000, 1000), Event("p", seq, "t"), seq * 0.001)
        if held.deadline is not None:
            held.fire(held.deadline)
    assert held.counters.late == 3
    assert len(held.estimator.spans) == 6


def test_laplace2_skips_pairs_far_apart_and_goes_on_from_the_latter():
    estimator = Laplace2.from_options(Options(estimator="laplace2", max_pair_gap=1.0))
    for departure_s, arrived_s in ((0.0, 0.1), (0.5, 0.7), (9.0, 9.9), (9.25, 10.25), (8.5, 10.5)):
        estimator.sample(departure_s, arrived_s)
    assert estimator.spans == pytest.approx([0.1, 0.1, 1.0])
    assert estimator.scale == pytest.approx(2 / 3 * 0.4)
    estimator.rebase()
    estimator.sample(9.5, 10.6)
    assert len(estimator.spans) == 3


def test_laplace2_waits_the_quantile_less_the_lead():
    estimator = Laplace2.from_options(Options(estimator="laplace2", late=0.05))
    feed(estimator, [0.0, 0.015] * 20)
    assert len(estimator.spans) == 25
    assert estimator.scale == pytest.approx(0.01)
    assert estimator.deadline(1.0, 1.0, 5.0) == pytest.approx(5.0 + 0.03271812)
    assert estimator.deadline(0.99, 1.0, 5.0) == pytest.approx(5.0 + 0.02271812)
    assert estimator.deadline(0.9, 1.0, 5.0) == 5.0


def test_static_waits_the_same_whatever_it_saw():
    estimator = Static.from_options(Options(estimator="static", latch=0.3))
    feed(estimator, jitter(1, 50))
    assert estimator.warm
    assert estimator.deadline(0.0, 7.0, 2.0) == pytest.approx(2.3)
