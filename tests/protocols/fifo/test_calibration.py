"""Does the share asked for come out? Statistics over ten streams, seeded, tolerances stated.

The streams S1 to S10 are those of sim/path.py. Standard errors: 60,000 publications leave 12,000
received events (S1: 60,000), so a share of 1 % has one of 0.09 percentage points, 5 % one of 0.2.
"""

from __future__ import annotations

from functools import lru_cache

import pytest

from inorder.protocols.fifo import laplace2
from inorder.protocols.fifo.options import Options
from inorder.sim.lane import Arrival, Heard, arrivals, listen
from inorder.sim.path import STREAMS, stream

COUNT = 60_000
WARM_UP = 2000


@lru_cache(maxsize=2)
def heard_of(name: str, record: int = 25) -> list[Arrival]:
    return arrivals(stream(STREAMS[name], COUNT, seed=1), record)


def late_share(heard: Heard, skip: int = WARM_UP) -> float:
    tags = heard.in_order[skip:]
    return 1.0 - sum(tags) / len(tags)


def mean_wait_s(heard: Heard) -> float:
    return sum(heard.waits_s) / len(heard.waits_s)


@pytest.mark.parametrize("name", STREAMS)
def test_predictive_keeps_the_share_asked_for(name):
    for late in (0.05, 0.01):
        heard = listen(heard_of(name), Options(late=late))
        assert late_share(heard) <= 1.25 * late
        assert len(heard.numbers) == len(heard_of(name))


@pytest.mark.parametrize("name", STREAMS)
def test_with_adaptation_the_share_is_the_target(name):
    for late in (0.05, 0.01):
        heard = listen(heard_of(name), Options(late=late, adapt=True))
        assert late_share(heard) == pytest.approx(late, abs=0.002)


def test_laplace2_misses_its_target_as_the_paper_has_it():
    """A known deficiency, kept: 8.8 % late at 5 % asked when everything matches (E-F5, E-F6)."""
    heard = listen(heard_of("S1"), Options(estimator="laplace2", late=0.05))
    assert late_share(heard) == pytest.approx(0.088, abs=0.005)


def test_laplace2_misses_one_percent_under_heavy_tails():
    heard = listen(heard_of("S6"), Options(estimator="laplace2", late=0.01))
    assert late_share(heard) > 0.03


def test_the_printed_quantile_leaves_twice_as_many_late(monkeypatch):
    """E-F2: with the principal branch the wait stays below 2 b whatever is asked."""
    corrected = listen(heard_of("S2"), Options(estimator="laplace2", late=0.05))
    monkeypatch.setattr(laplace2, "quantile", lambda p, b: 1.97217 * b)
    printed = listen(heard_of("S2"), Options(estimator="laplace2", late=0.05))
    assert printed.counters.late > 2 * corrected.counters.late


def test_sampling_only_what_came_in_order_waits_too_short(monkeypatch):
    """E-F13: the spread of those that came in order is not the spread of all."""
    options = Options(estimator="laplace2", late=0.05)
    every = listen(heard_of("S1"), options)
    highest = 0.0

    def only_in_order(self: laplace2.Laplace2, departure_s: float, arrived_s: float) -> None:
        nonlocal highest
        if departure_s >= highest:
            highest = departure_s
            sample(self, departure_s, arrived_s)

    sample = laplace2.Laplace2.sample
    monkeypatch.setattr(laplace2.Laplace2, "sample", only_in_order)
    some = listen(heard_of("S1"), options)
    assert some.counters.late > 1.3 * every.counters.late


@pytest.mark.parametrize("estimator", ["predictive", "laplace2"])
@pytest.mark.parametrize("name", ["S2", "S4", "S7"])
def test_a_record_never_makes_the_wait_longer(name, estimator):
    options = {"estimator": estimator, "late": 0.05}
    with_record = listen(heard_of(name), Options(**options))
    without = listen(heard_of(name), Options(**options, use_record=False))
    assert mean_wait_s(with_record) <= mean_wait_s(without)
    # What it is for: several times less.
    assert mean_wait_s(with_record) < 0.5 * mean_wait_s(without)


@pytest.mark.parametrize("latch", [0.001, 0.03, 0.25])
def test_a_static_wait_is_never_exceeded(latch):
    heard = listen(heard_of("S2"), Options(estimator="static", latch=latch))
    assert max(heard.waits_s) <= latch + 1e-9


def test_the_dial_says_what_will_happen():
    """Predicted and measured, on a stream that stays as it is."""
    heard = listen(heard_of("S1"), Options(late=0.05))
    estimator = heard.receiver.estimator
    wait_s = estimator.wait_for(0.05)
    assert estimator.share_for(wait_s) == pytest.approx(late_share(heard), abs=0.015)
    assert estimator.wait_for(0.01) > wait_s > estimator.wait_for(0.2)
    assert estimator.share_for(2 * wait_s) < estimator.share_for(wait_s)


def test_clock_steps_are_recognised_and_cost_little():
    heard = listen(heard_of("S10"), Options(late=0.01))
    calm = listen(heard_of("S2"), Options(late=0.01))
    assert heard.receiver.clock_steps == 2
    assert calm.receiver.clock_steps == 0
    assert mean_wait_s(heard) < 1.5 * mean_wait_s(calm)


@pytest.mark.parametrize("name", ["S6", "S7"])
def test_a_rough_network_is_not_taken_for_a_clock_step(name):
    assert listen(heard_of(name), Options(late=0.01)).receiver.clock_steps == 0
