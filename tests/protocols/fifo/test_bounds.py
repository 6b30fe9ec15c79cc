"""Bounds without a distribution: the table, and that they bound."""

from __future__ import annotations

from math import exp, inf, log, nan, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inorder.core.errors import Misuse, TooLarge
from inorder.core.limits import DELAY_HOPS_MAX
from inorder.protocols.fifo.bounds import (
    cantelli,
    chernoff,
    exact,
    symmetric_chebyshev,
    vysochanskij_petunin,
)
from inorder.protocols.fifo.laplace import tail_distinct, tail_equal

TABLE = [
    (symmetric_chebyshev, 3.16, 7.07),
    (cantelli, 4.36, 9.95),
    (vysochanskij_petunin, 2.11, 4.71),
    (chernoff(1), 3.55, 4.89),
    (chernoff(5), 2.75, 3.58),
    (exact(1), 1.63, 2.77),
    (exact(2), 1.64, 2.60),
    (exact(5), 1.64, 2.45),
]
SAFE = [symmetric_chebyshev, cantelli, vysochanskij_petunin, chernoff(1)]


def sigma_of(scales: list[float]) -> float:
    return sqrt(2 * sum(scale * scale for scale in scales))


@pytest.mark.parametrize(("bound", "at_5", "at_1"), TABLE)
def test_the_table_of_the_specification(bound, at_5, at_1):
    assert round(bound(0.05, 1.0), 2) == at_5
    assert round(bound(0.01, 1.0), 2) == at_1
    assert bound(0.05, 8.0) == pytest.approx(8 * bound(0.05, 1.0), rel=1e-12)
    assert bound(0.05, 0.0) == 0.0


@given(st.lists(st.floats(0.05, 20.0), min_size=1, max_size=6), st.floats(1e-9, 1 / 12))
def test_the_safe_bounds_hold_for_any_exponential_hops(scales, share):
    for bound in SAFE:
        assert tail_distinct(bound(share, sigma_of(scales)), scales) <= share * (1 + 1e-9)


@given(st.integers(1, 12), st.floats(1e-9, 0.5))
def test_chernoff_holds_for_its_own_equal_hops_and_exact_is_tight(h, share):
    b = 1 / sqrt(2 * h)
    assert tail_equal(chernoff(h)(share, 1.0), b, h) <= share
    assert exact(h)(share, 1.0) <= chernoff(h)(share, 1.0)
    assert tail_equal(exact(h)(share, 1.0), b, h) == pytest.approx(share, rel=1e-6)


def test_the_hop_count_alone_is_not_enough():
    """Five hops of which one has all the variance: the bound for five equal ones is broken."""
    share = 1e-6
    scales = [1.0, 1e-3, 1.1e-3, 1.2e-3, 1.3e-3]
    assert tail_distinct(chernoff(5)(share, sigma_of(scales)), scales) > 10 * share
    assert tail_distinct(chernoff(1)(share, sigma_of(scales)), scales) < share


def test_unimodality_is_needed():
    """Half of all pairs tie, the rest differ by far: symmetric but not unimodal."""
    share, sigma = 0.05, sqrt(0.1001 * 9)
    # |X| = 3 with probability 0.1001, otherwise 0.
    assert vysochanskij_petunin(share, sigma) < 3.0
    assert symmetric_chebyshev(share, sigma) > 3.0


@pytest.mark.parametrize("h", [1, 2, 5, 20])
@pytest.mark.parametrize("share", [0.4, 0.05, 1e-3, 1e-12])
def test_chernoffs_best_exponent_is_the_best(h, share):
    b = 1 / sqrt(2 * h)
    tried = min(
        (-log(share) - h * log(1 - t * t)) / (t / b) for t in (i / 20_000 for i in range(1, 20_000))
    )
    assert chernoff(h)(share, 1.0) == pytest.approx(tried, rel=1e-6)
    assert chernoff(h)(share, 1.0) <= tried * (1 + 1e-12)


def test_chernoff_for_one_hop_by_hand():
    x = chernoff(1)(0.05, sqrt(2))
    s = (sqrt(1 + x * x) - 1) / x
    assert exp(-s * x) / (1 - s * s) == pytest.approx(0.05, rel=1e-12)


@pytest.mark.parametrize("share", [0.0, -0.1, 0.51, 1.0, nan, inf])
@pytest.mark.parametrize("bound", [row[0] for row in TABLE])
def test_a_share_out_of_range_is_refused_by_name(bound, share):
    with pytest.raises(Misuse, match=r"share is .*\(0, 0.5\]"):
        bound(share, 1.0)


@pytest.mark.parametrize("sigma", [-1.0, nan, inf])
@pytest.mark.parametrize("bound", [row[0] for row in TABLE])
def test_a_deviation_out_of_range_is_refused_by_name(bound, sigma):
    with pytest.raises(Misuse, match="sigma is"):
        bound(0.05, sigma)


def test_vysochanskij_petunin_stops_at_a_twelfth():
    assert vysochanskij_petunin(1 / 12, 1.0) == pytest.approx(sqrt(8 / 3))
    with pytest.raises(Misuse, match=r"share is 0.0834.*1/12"):
        vysochanskij_petunin(0.0834, 1.0)


@pytest.mark.parametrize("make", [chernoff, exact])
def test_hops_out_of_range_are_refused(make):
    with pytest.raises(Misuse, match="hops is 0"):
        make(0)
    with pytest.raises(TooLarge):
        make(DELAY_HOPS_MAX + 1)
