"""Laws of measured delays: the curve, the fits, who wins, whose spread is larger, the summary."""

from __future__ import annotations

from functools import cache
from math import inf, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from inorder.core.errors import Misuse, TooLarge
from inorder.core.limits import DELAY_HOPS_MAX, FIT_SAMPLES_MAX
from inorder.protocols.fifo import fitness, hypoexponential
from inorder.protocols.fifo.delays import describe
from inorder.protocols.fifo.fit import (
    fit_exponential,
    fit_hypoexponential,
    fit_likeliest_gamma,
    fit_shifted_gamma,
    ks_statistic,
    log_density,
)
from inorder.protocols.fifo.fitness import compare_laws, ks_p_value
from inorder.protocols.fifo.spread import compare_spread

MEANS = [4.0, 6.0, 8.0, 10.0, 22.0]


@cache
def five_hops(seed: int) -> np.ndarray:
    """6,500 delays in ms over five brokers and 100 ms of wire, as in the paper's figure 1b."""
    rng = np.random.default_rng(seed)
    return 100.0 + sum(rng.exponential(mean, 6500) for mean in MEANS)


@cache
def fitted(seed: int):
    return fit_hypoexponential(five_hops(seed), 5)


def by_partial_fractions(x: np.ndarray, means: list[float]) -> np.ndarray:
    weights = [np.prod([a / (a - b) for b in means if b != a]) for a in means]
    return 1 - sum(w * np.exp(-x / m) for w, m in zip(weights, means, strict=True))


def worst_of_the_curve() -> float:
    """The largest error of the distribution function where a closed form exists."""
    x = np.linspace(0.0, 400.0, 3001)
    distinct = hypoexponential.cdf(x, MEANS) - by_partial_fractions(x, MEANS)
    equal = hypoexponential.cdf(x, [10.0] * 5) - stats.gamma.cdf(x, 5, scale=10.0)
    single = hypoexponential.cdf(x, [10.0]) - stats.expon.cdf(x, scale=10.0)
    return float(np.abs([distinct, equal, single]).max())


def test_the_curve_is_the_closed_form_for_equal_and_distinct_means():
    assert worst_of_the_curve() < 1e-6
    x = np.linspace(0.0, 3000.0, 2000)
    density = hypoexponential.density(x, [10.0] * 5)
    assert np.abs(density - stats.gamma.pdf(x, 5, scale=10.0)).max() < 1e-6


def test_a_grid_that_ends_too_early_is_caught(monkeypatch):
    monkeypatch.setattr(hypoexponential, "GRID_TAIL", 4.0)
    assert worst_of_the_curve() > 1e-3


def test_nearly_equal_means_and_a_dominant_one_stay_on_the_curve():
    x = np.linspace(0.0, 30.0, 1000)
    near = hypoexponential.cdf(x, [1.0, 1.0 + 1e-12, 1.0 - 1e-12])
    assert np.abs(near - stats.gamma.cdf(x, 3)).max() < 1e-6
    dominant = hypoexponential.cdf(x, [1.0, 1e-5, 1e-4])
    assert np.abs(dominant - stats.expon.cdf(x)).max() < 1e-3


@given(st.lists(st.floats(0.01, 100.0), min_size=1, max_size=8))
@settings(max_examples=40)
def test_a_distribution_function_rises_from_zero_to_one(means):
    x = np.linspace(-1.0, 100.0 * max(means), 500)
    values = hypoexponential.cdf(x, means)
    assert np.all(np.diff(values) >= -1e-12)
    assert values[0] == 0.0
    assert values[-1] == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("means", [[], [0.0], [1.0, -1.0], [nan], [1.0, inf]])
def test_means_that_make_no_law_are_refused(means):
    with pytest.raises(Misuse, match="means"):
        hypoexponential.Curve(means)


@pytest.mark.parametrize("seed", [1, 2, 5])
def test_the_hypoexponential_fit_follows_the_curve(seed):
    fit = fitted(seed)
    truth = hypoexponential.Curve(MEANS).log_density_at(five_hops(seed) - 100.0).sum()
    assert fit.ks < 0.01
    assert fit.log_likelihood >= truth
    assert fit.shift + sum(fit.means) == pytest.approx(five_hops(seed).mean(), rel=0.005)


def test_the_means_are_not_identifiable():
    """Two samples of one law, both fitted well, disagree on their fastest broker sixfold."""
    assert min(fitted(5).means) > 6 * min(fitted(2).means)


@pytest.mark.parametrize("phases", [8, 15, 20])
def test_more_phases_than_hops_do_no_harm(phases):
    """The search must not get stuck: spare phases can always be made small."""
    x = five_hops(1)[:1500]
    worse = fit_hypoexponential(x, 5).log_likelihood - fit_hypoexponential(x, phases).log_likelihood
    assert worse < 1.0


def test_a_wrong_fit_is_caught():
    """With two phases the same samples cannot be followed."""
    assert fit_hypoexponential(five_hops(1), 2).ks > 0.05


def test_a_shifted_gamma_comes_close():
    """Its distance from the true law is 0.0144, so a test on 6,500 samples often passes it."""
    found = [fit_shifted_gamma(five_hops(seed)) for seed in range(1, 9)]
    assert 0.008 < min(fit.ks for fit in found) < 0.013
    assert max(fit.ks for fit in found) < 0.03
    assert sum(ks_p_value(fit.ks, 6500) > 0.05 for fit in found) >= 2


def test_a_gamma_by_moments_forbids_delays_that_happened():
    for seed in (1, 2, 3):
        x = five_hops(seed)
        moments, likeliest = fit_shifted_gamma(x), fit_likeliest_gamma(x)
        assert moments.shift > x.min() > likeliest.shift
        assert moments.log_likelihood == -inf
        assert likeliest.ks < 0.02
        assert likeliest.log_likelihood < fitted(seed).log_likelihood - 5


def test_a_shifted_gamma_has_three_moments_of_the_samples():
    x = five_hops(3)
    fit = fit_shifted_gamma(x)
    mean, variance, skewness = stats.gamma.stats(fit.shape, fit.shift, fit.means[0], moments="mvs")
    assert (mean, variance, skewness) == pytest.approx((x.mean(), x.var(), stats.skew(x)))


def test_the_exponential_fit_finds_its_law():
    x = 3.0 + np.random.default_rng(4).exponential(2.0, 5000)
    fit = fit_exponential(x)
    assert fit.means[0] == pytest.approx(2.0, rel=0.05)
    assert fit.shift == pytest.approx(3.0, abs=0.005)
    assert fit.shift < x.min()
    assert fit.ks < 0.02
    assert fit_hypoexponential(x, 1).means == fit.means


def test_ks_is_that_of_scipy_also_with_ties():
    fit = fit_exponential(five_hops(1))
    for x in (five_hops(1), np.round(five_hops(1), -1)):
        theirs = stats.kstest(x, stats.expon(fit.shift, fit.means[0]).cdf)
        assert ks_statistic(x, fit) == pytest.approx(theirs.statistic, abs=1e-12)
        assert ks_p_value(theirs.statistic, len(x)) == pytest.approx(theirs.pvalue, abs=1e-12)


@pytest.mark.parametrize(
    "fit", [fit_exponential, fit_shifted_gamma, lambda x: fit_hypoexponential(x, 3)]
)
def test_a_fit_does_not_depend_on_unit_or_clock(fit):
    x = five_hops(1)[:500]
    here, there = fit(x), fit(x * 1e-3 - 7.0)
    assert there.ks == pytest.approx(here.ks, abs=1e-3)
    assert there.shift == pytest.approx(here.shift * 1e-3 - 7.0, abs=1e-3)


@pytest.mark.parametrize(
    "samples", [[], [1.0], [2.0] * 9, [1.0, nan], [1.0, inf], ["a", "b"], [1e200, 1.0]]
)
def test_samples_without_a_law_are_refused(samples):
    for fit in (
        fit_exponential,
        fit_shifted_gamma,
        lambda x: fit_hypoexponential(x, 3),
        compare_laws,
    ):
        with pytest.raises(Misuse, match="samples"):
            fit(samples)


def test_what_a_law_cannot_be_is_refused():
    with pytest.raises(Misuse, match="skewness"):
        fit_shifted_gamma([0.0, 5.0, 6.0, 6.5])
    with pytest.raises(Misuse, match="phases is 0"):
        fit_hypoexponential([1.0, 2.0, 4.0], 0)
    with pytest.raises(TooLarge):
        fit_hypoexponential([1.0, 2.0, 4.0], DELAY_HOPS_MAX + 1)
    with pytest.raises(Misuse, match="phases is 0"):
        describe(five_hops(1)[:50], phases=0)
    with pytest.raises(Misuse, match="n is 0"):
        ks_p_value(0.1, 0)


def test_the_true_law_wins_on_samples_it_has_not_seen():
    for seed in (1, 2):
        best, *others = compare_laws(five_hops(seed))
        assert best.fit.law == "hypoexponential"
        assert (best.behind, best.behind_error) == (0.0, 0.0)
        gamma, exponential = others
        assert (gamma.fit.law, exponential.fit.law) == ("gamma", "exponential")
        assert 0 < gamma.behind < 4 * gamma.behind_error
        assert exponential.behind > 20 * exponential.behind_error
        assert best.p_value > 0.05 > exponential.p_value


def test_a_gamma_law_wins_where_it_is_the_truth():
    """Shape 0.5: more spread than any sum of exponentials can have."""
    x = np.random.default_rng(6).gamma(0.5, 10.0, 3000)
    assert compare_laws(x)[0].fit.law == "gamma"


def test_more_parameters_do_not_win_by_themselves():
    x = np.random.default_rng(8).exponential(1.0, 2000)
    scores = {score.fit.law: score for score in compare_laws(x)}
    assert scores["exponential"].behind <= 2 * scores["exponential"].behind_error
    gained = fit_likeliest_gamma(x).log_likelihood - fit_exponential(x).log_likelihood
    assert gained > 0  # on its own samples it does


def test_one_foreign_sample_does_not_decide(monkeypatch):
    x = np.random.default_rng(9).exponential(1.0, 400)
    x[1] = -50.0
    assert all(np.isfinite(score.log_likelihood) for score in compare_laws(x))
    monkeypatch.setattr(fitness, "_forgiving", lambda fit, held, _: log_density(fit, held))
    with np.errstate(invalid="ignore"):
        assert not any(np.isfinite(score.log_likelihood) for score in compare_laws(x))


def test_wilcoxon_does_not_see_spread_and_the_others_do():
    rng = np.random.default_rng(10)
    wilcoxon, ansari, levene, covered = 0, 0, 0, 0
    for _ in range(100):
        first, second = (scale * rng.laplace(size=(2, 400)).sum(axis=0) for scale in (1.0, 3.0))
        wilcoxon += stats.ranksums(first, second).pvalue < 0.05
        found = compare_spread(first, second)
        ansari += found.ansari_p < 0.05
        levene += found.levene_p < 0.05
        covered += found.low <= 3.0 <= found.high
    assert wilcoxon <= 15
    assert (ansari, levene) == (100, 100)
    assert covered >= 87


def test_equal_spreads_are_rejected_as_often_as_promised():
    """The middles differ by far, which must not matter."""
    rng = np.random.default_rng(12)
    trials = [
        compare_spread(rng.laplace(size=400), 50.0 + rng.laplace(size=300)) for _ in range(200)
    ]
    assert sum(found.ansari_p < 0.05 for found in trials) <= 22
    assert sum(found.levene_p < 0.05 for found in trials) <= 22
    assert sum(found.low <= 1.0 <= found.high for found in trials) >= 178


def test_spread_of_constants_and_ties():
    assert compare_spread([1.0, 1.0], [5.0, 5.0, 5.0]).ratio == 1.0
    assert compare_spread([1.0, 1.0], [5.0, 6.0]).ratio == inf
    assert compare_spread([5.0, 6.0], [1.0, 1.0]).high == 0.0
    tied = compare_spread([0, 1] * 40, [0, 4] * 40)
    assert tied.ratio == 4.0
    assert tied.levene_p < 1e-6
    for bad in ([], [1.0], [1.0, nan]):
        with pytest.raises(Misuse, match="samples"):
            compare_spread(bad, [1.0, 2.0])


def test_a_description_of_five_hops():
    x = five_hops(1)
    found = describe(x)
    assert (found.n, found.law) == (6500, "hypoexponential")
    assert (found.mean, found.sd) == pytest.approx((x.mean(), x.std()))
    assert (found.median, found.p99) == pytest.approx(tuple(np.quantile(x, [0.5, 0.99])))
    assert (found.least, found.most) == (x.min(), x.max())
    assert found.ks is not None
    assert found.ks < 0.025
    assert found.p_value == pytest.approx(ks_p_value(found.ks, 3250))


@pytest.mark.parametrize(
    ("samples", "law"),
    [
        ([1.0], "too few"),
        ([1.0, 2.0], "too few"),
        ([0.1] * 30, "constant"),
        ([1e9, 1e9 + 1e-7] * 20, "constant"),
        ([1.0, 2.0] * 30, "no law"),
        ([1.0] * 100 + [7.0], "no law"),
    ],
)
def test_a_description_without_a_law(samples, law):
    found = describe(samples)
    assert found.law == law
    assert (found.shift, found.ks, found.p_value, found.log_likelihood) == (None,) * 4
    assert found.least <= found.median <= found.p90 <= found.p99 <= found.most


@pytest.mark.parametrize("samples", [[], [nan], [1.0, -inf], [None], [[1.0, 2.0]], [1e200]])
def test_samples_without_a_description_are_refused(samples):
    with pytest.raises(Misuse, match="samples"):
        describe(samples)


def test_long_samples_are_thinned_before_they_are_fitted():
    x = np.random.default_rng(13).exponential(1.0, 3 * FIT_SAMPLES_MAX)
    found = describe(x, phases=1)
    assert found.n == 3 * FIT_SAMPLES_MAX
    assert found.ks is not None
    assert found.p_value == pytest.approx(ks_p_value(found.ks, FIT_SAMPLES_MAX // 2))


@pytest.mark.filterwarnings("error")
@settings(max_examples=40)
@given(
    st.lists(
        st.one_of(st.integers(-5, 5).map(float), st.floats(-1e6, 1e6)), min_size=1, max_size=60
    )
)
def test_any_finite_samples_have_a_description_of_finite_numbers(samples):
    found = describe(samples, phases=3)
    marks = (found.shift, found.ks, found.p_value, found.log_likelihood)
    plain = (found.mean, found.sd, found.least, found.p99)
    assert np.isfinite([*plain, *(mark for mark in marks if mark is not None)]).all()
    assert found.p_value is None or 0.0 <= found.p_value <= 1.0
    assert describe(samples, phases=3) == found
