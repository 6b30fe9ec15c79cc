"""The laws of delay differences: quantile, scale, and the exact laws for any number of hops."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from math import exp, inf, log, nan, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import lambertw

from inorder.core.errors import Misuse, TooLarge
from inorder.core.limits import DELAY_HOPS_MAX
from inorder.protocols.fifo import hops
from inorder.protocols.fifo.laplace import (
    cdf,
    density,
    quantile,
    quantile_distinct,
    quantile_equal,
    scale_by_likelihood,
    scale_by_moments,
    tail_distinct,
    tail_equal,
)
from inorder.protocols.fifo.race import race

GRID = [
    0.5,
    0.5 + 1e-9,
    *(i / 1000 for i in range(501, 1000)),
    *(1 - 10.0**-k for k in range(3, 16)),
]
CONSTANTS = {0.2: 1.466203, 0.1: 2.397276, 0.05: 3.271812, 0.01: 5.191820, 0.001: 7.804280}

scales_of_a_path = st.lists(st.floats(0.05, 20.0), min_size=1, max_size=6)


def printed_quantile(p: float, b: float) -> float:
    """Equation 5 as it stands in the paper, with the branch libraries take unasked."""
    return b * (lambertw(4 * exp(-2) * (p - 1)).real + 2)


def worst_round_trip(inverse: Callable[[float, float], float]) -> float:
    return max(abs(cdf(inverse(p, b), b) - p) for p in GRID for b in (0.01, 1.0, 7.5))


def test_the_quantile_inverts_the_distribution_function():
    assert worst_round_trip(quantile) < 1e-12


def test_the_printed_quantile_is_caught():
    assert worst_round_trip(printed_quantile) > 0.13
    assert printed_quantile(0.95, 1.0) == pytest.approx(1.97217, abs=5e-6)
    assert 1 - cdf(printed_quantile(0.95, 1.0), 1.0) == pytest.approx(0.138, abs=5e-4)
    assert 1 - cdf(printed_quantile(1 - 1e-15, 1.0), 1.0) == pytest.approx(0.1353, abs=1e-4)


def test_the_quantile_is_that_of_the_lower_branch():
    for p in GRID[1:]:
        by_lambert = -(lambertw(-4 * exp(-2) * (1 - p), -1).real + 2)
        assert quantile(p, 1.0) == pytest.approx(by_lambert, abs=1e-12)


@pytest.mark.parametrize(("share", "u"), CONSTANTS.items())
def test_the_constants_of_the_specification(share, u):
    assert quantile(1 - share, 1.0) == pytest.approx(u, abs=5e-7)
    assert quantile(1 - share, 0.25) == pytest.approx(u / 4, abs=5e-7)


@pytest.mark.parametrize("p", [-0.1, 0.0, 0.4999999, 1.0, 1.5, nan, inf])
def test_a_probability_out_of_range_is_refused_by_name(p):
    for call in (lambda: quantile(p, 1.0), lambda: quantile_equal(p, 1.0, 3)):
        with pytest.raises(Misuse, match=r"p is .*\[0.5, 1\)"):
            call()


@pytest.mark.parametrize("b", [-1.0, nan, inf])
def test_a_scale_out_of_range_is_refused_by_name(b):
    for call in (density, cdf, quantile):
        with pytest.raises(Misuse, match="b is"):
            call(0.7, b)
    with pytest.raises(Misuse, match="b is"):
        tail_equal(1.0, b, 2)
    with pytest.raises(Misuse, match="scales is"):
        tail_distinct(1.0, [1.0, b])


def test_delays_that_are_all_alike_need_no_latch():
    assert quantile(0.999, 0.0) == 0.0
    assert scale_by_moments([0.0] * 25) == scale_by_likelihood([0.0] * 25) == 0.0


def test_the_density_is_the_slope_of_the_distribution_function():
    step = 1e-5
    for x in (-30.0, -2.0, -0.5, 0.0, 0.1, 1.0, 3.0, 12.0):
        slope = (cdf(x + step, 1.3) - cdf(x - step, 1.3)) / (2 * step)
        assert slope == pytest.approx(density(x, 1.3), abs=1e-9)


@given(st.floats(-100, 100), st.floats(0.01, 50))
def test_the_law_is_symmetric_and_that_of_two_hops(x, b):
    assert cdf(x, b) + cdf(-x, b) == pytest.approx(1.0, abs=1e-15)
    assert tail_equal(x, b, 2) == pytest.approx(1 - cdf(x, b), abs=1e-14)


def test_one_sample_tells_moments_from_likelihood():
    assert scale_by_moments([-5.0]) == pytest.approx(5 * 0.6667, abs=5e-4)
    assert scale_by_likelihood([-5.0]) == pytest.approx(5 * (sqrt(5) - 1) / 2, rel=1e-14)


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=30).filter(lambda x: any(x)))
def test_no_scale_is_likelier_than_the_likeliest(samples):
    if max(map(abs, samples)) < 1e-6:
        return

    def likelihood(b: float) -> float:
        return sum(log(abs(x) + b) - 2 * log(b) - abs(x) / b for x in samples)

    best = scale_by_likelihood(samples)
    for rival in (best * 0.99, best * 1.01, scale_by_moments(samples)):
        assert likelihood(rival) <= likelihood(best) + 1e-9 * len(samples)


def test_moments_are_nearly_as_efficient_as_likelihood():
    rng = np.random.default_rng(11)
    samples = rng.laplace(size=(2000, 25)) + rng.laplace(size=(2000, 25))
    moments = np.std([scale_by_moments(row) for row in samples.tolist()])
    likelihood = np.std([scale_by_likelihood(row) for row in samples.tolist()])
    # The theory says 0.1755 and 0.1734 for large n; three standard errors of 2,000 trials.
    assert moments == pytest.approx(0.1755, abs=0.009)
    assert likelihood == pytest.approx(0.1734, abs=0.009)
    assert likelihood < moments * 1.01


@pytest.mark.parametrize("estimate", [scale_by_moments, scale_by_likelihood])
@pytest.mark.parametrize("samples", [[], [1.0, nan], [inf], [1.7e308, 1.7e308]])
def test_samples_without_a_scale_are_refused(estimate, samples):
    with pytest.raises(Misuse, match="samples"):
        estimate(samples)


def worst_against_chance(tail: Callable[[float], float], scales: list[float]) -> float:
    """The largest distance from the share of a million seeded sums beyond x."""
    rng = np.random.default_rng(7)
    total = sum(rng.laplace(0.0, scale, 1_000_000) for scale in scales)
    points = (-8.0, -1.0, 0.0, 0.3, 1.0, 2.0, 4.0, 8.0, 20.0)
    return max(abs(tail(x) - float(np.mean(total > x))) for x in points)


# Four standard deviations of a share of a million.
CHANCE = 4 * sqrt(0.25 / 1_000_000)


@pytest.mark.parametrize("h", [1, 2, 3, 5, 8])
def test_the_law_of_equal_hops_is_what_chance_does(h):
    assert worst_against_chance(lambda x: tail_equal(x, 1.5, h), [1.5] * h) < CHANCE


@pytest.mark.parametrize("scales", [[0.5], [1.0, 3.0], [4.0, 0.6, 0.8, 1.0, 2.2], [1.0, 1.0, 3.0]])
def test_the_law_of_distinct_hops_is_what_chance_does(scales):
    assert worst_against_chance(lambda x: tail_distinct(x, scales), scales) < CHANCE


def test_a_wrong_weight_is_caught(monkeypatch):
    right = hops.comb
    monkeypatch.setattr(hops, "comb", lambda n, k: right(n, k) * (1.02 if n == k else 1.0))
    assert worst_against_chance(lambda x: tail_equal(x, 1.5, 3), [1.5] * 3) > CHANCE


@pytest.mark.parametrize("apart", [0.0, 1e-15, 1e-12, 1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize("x", [0.0, 0.1, 2.0, 10.0, 60.0])
def test_nearly_equal_scales_lose_no_digits(apart, x):
    scales = [1.0 + i * apart for i in range(5)]
    low, high = tail_equal(x, 1.0, 5), tail_equal(x, max(scales), 5)
    assert low * (1 - 1e-11) <= tail_distinct(x, scales) <= high * (1 + 1e-11)


def test_partial_fractions_alone_would_lose_them(monkeypatch):
    scales = [1.0 + i * 1e-6 for i in range(5)]
    monkeypatch.setattr(hops, "race", lambda r, scales: hops._partial_fractions(r, scales)[0])
    assert abs(tail_distinct(2.0, scales) - tail_equal(2.0, 1.0, 5)) > 1e-3


@given(scales_of_a_path, st.floats(0.0, 60.0))
def test_the_race_agrees_with_partial_fractions(scales, x):
    largest = max(scales)
    units = sorted((scale / largest for scale in scales), reverse=True)
    assert race(x / largest, units) == pytest.approx(tail_distinct(x, scales), rel=1e-10)


@given(scales_of_a_path, st.floats(0.0, 60.0), st.floats(0.0, 10.0))
def test_a_tail_falls_and_is_symmetric(scales, x, more):
    assert tail_distinct(x + more, scales) <= tail_distinct(x, scales) * (1 + 1e-9)
    assert tail_distinct(x, scales) + tail_distinct(-x, scales) == pytest.approx(1.0)
    assert tail_distinct(0.0, scales) == pytest.approx(0.5)


@settings(max_examples=30)
@given(scales_of_a_path, st.floats(0.5, 0.9999))
def test_the_quantiles_invert_the_tails(scales, p):
    assert tail_distinct(quantile_distinct(p, scales), scales) == pytest.approx(1 - p, abs=1e-12)
    b, h = scales[0], len(scales)
    assert tail_equal(quantile_equal(p, b, h), b, h) == pytest.approx(1 - p, abs=1e-12)


def test_the_quantile_of_two_equal_hops_is_the_papers():
    for p in (0.5, 0.6, 0.95, 0.999):
        assert quantile_equal(p, 2.0, 2) == pytest.approx(quantile(p, 2.0), abs=1e-12)
        assert quantile_distinct(p, [2.0, 2.0]) == pytest.approx(quantile(p, 2.0), abs=1e-12)


def test_the_far_tail_neither_vanishes_early_nor_hangs():
    assert 0.0 < tail_equal(740.0, 1.0, DELAY_HOPS_MAX) < 1e-200
    assert tail_equal(1e300, 1.0, 3) == tail_distinct(inf, [1.0, 1.0]) == 0.0
    assert tail_equal(-inf, 1.0, 3) == 1.0


def test_too_many_hops_and_hopeless_scales_are_refused():
    with pytest.raises(TooLarge) as caught:
        tail_equal(1.0, 1.0, DELAY_HOPS_MAX + 1)
    assert (caught.value.size, caught.value.limit) == (DELAY_HOPS_MAX + 1, DELAY_HOPS_MAX)
    with pytest.raises(Misuse, match="h is 0"):
        tail_equal(1.0, 1.0, 0)
    with pytest.raises(Misuse, match="h is 0"):
        quantile_distinct(0.9, [])
    with pytest.raises(Misuse, match="smallest scale is"):
        tail_distinct(1.0, [1.0, 1e-7])


def test_the_hot_path_loads_no_numpy():
    code = (
        "import sys, inorder.protocols.fifo.laplace, inorder.protocols.fifo.bounds\n"
        "print(sorted({'numpy', 'scipy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
