"""Fits laws to measured delays: exponential, shifted Gamma, hypoexponential.

Rule 1: every law is `shift + sum of parts`. Each part is a Gamma law of the common `shape` and of
        its own mean per unit of shape; shape 1 makes it exponential. One struct holds all three.
Rule 2: the shift is free, also below zero: the clocks of publisher and subscriber do not agree.
Rule 3: nothing is drawn at random: the same samples give the same fit.

Theory ("Probabilistic FIFO Ordering In Publish/Subscribe Networks", section III-C). A broker's
processing time is taken as exponential, so a delay over h brokers is a constant plus h exponential
phases. Only the curve is identifiable, not the means: quite different means have nearly the same
likelihood (E-F20), so nobody should read a broker's speed off a fit. A shifted Gamma law, which the
paper dismisses, comes close: with the three moments of phases of 4, 6, 8, 10 and 22 ms it is never
further off than 0.0144, and a Kolmogorov-Smirnov test on 6,500 samples passed it in 95 of 200
trials. Yet it started after the least sample in all of them, so moments alone are no fair trial:
fitness.py lets the likeliest laws compete.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from scipy import optimize, stats

from inorder.core.errors import Misuse, TooLarge
from inorder.core.limits import DELAY_HOPS_MAX
from inorder.protocols.fifo.hypoexponential import Curve, law
from inorder.protocols.fifo.samples import Array, cleaned, varied

# Points of the grid while fitting: enough for a likelihood, and hundreds of them are needed.
FIT_POINTS = 2**12
FIT_STEPS_MAX = 200
# The step of a numeric slope. SciPy's own, 1e-8, drowns in the transform's rounding errors and
# leaves searches over many phases stuck.
SLOPE_STEP = 1e-5
# A phase may be this small or large, as logarithms of (mean - least sample): below, the grid no
# longer sees it.
LOG_RANGE = (-7.0, 3.0)
# A search starts with the shift at least this far before the least sample, in the same unit.
SHIFT_START = 0.05
# A Gamma law with a larger shape is a normal law; its three parameters say nothing any more.
SHAPE_MAX = 1e6
SHAPE_RANGE = (-3.0, log(SHAPE_MAX))
SCALE_RANGE = (-14.0, 14.0)
# Not too close to the least sample: a shape below 1 has an infinite peak at the shift.
SHIFT_RANGE = (-7.0, 14.0)


class Fit(Struct, frozen=True, gc=False):
    """A fitted law and how well it did on its own samples; the order of `means` says nothing."""

    law: str
    means: tuple[float, ...]
    shape: float
    shift: float
    ks: float = 0.0
    log_likelihood: float = 0.0


def log_density(fit: Fit, x: Any) -> Array:
    """The logarithm of the fitted density at each x; -inf before the shift."""
    late = cleaned(x) - fit.shift
    if fit.shape == 1.0:
        return law(fit.means).log_density_at(late)
    return _gamma_log_density(late, fit.shape, fit.means[0])


def cdf(fit: Fit, x: Any) -> Array:
    """The fitted chance of at most x, at each x."""
    late = cleaned(x) - fit.shift
    if fit.shape == 1.0:
        return law(fit.means).cdf_at(late)
    return np.asarray(stats.gamma.cdf(late, fit.shape, scale=fit.means[0]))


def ks_statistic(samples: Any, fit: Fit) -> float:
    """The largest distance between the law and the samples' own distribution function."""
    x = np.sort(cleaned(samples))
    model = cdf(fit, x)
    above = np.arange(1, len(x) + 1) / len(x) - model
    below = model - np.arange(len(x)) / len(x)
    return float(max(above.max(), below.max()))


def fit_exponential(samples: Any) -> Fit:
    """The shifted exponential, unbiased: it starts a little before the least sample."""
    x = varied(samples)
    n, least = len(x), float(x.min())
    mean = (float(x.mean()) - least) * n / (n - 1)
    return _judged(Fit("exponential", (mean,), 1.0, least - mean / n), x)


def fit_shifted_gamma(samples: Any) -> Fit:
    """The Gamma law with the mean, variance and skewness of the samples.

    It may start after the least of them; its log-likelihood is -inf then. Samples that are not
    skewed to the right are refused.
    """
    x = varied(samples)
    mean, sd = float(x.mean()), float(x.std())
    skewness = float(np.mean(((x - mean) / sd) ** 3))
    needed = 2.0 / SHAPE_MAX**0.5
    if not skewness > needed:
        raise Misuse(f"samples has skewness {skewness:.3g}, a Gamma law needs over {needed:g}")
    shape = (2.0 / skewness) ** 2
    return _judged(Fit("gamma", (sd * skewness / 2.0,), shape, mean - 2.0 * sd / skewness), x)


def fit_likeliest_gamma(samples: Any) -> Fit:
    """The likeliest shifted Gamma law: the fair rival of another likelihood fit."""
    x = varied(samples)
    least, unit, late = _late(x)
    # From three moments, or from two of them if that law starts too late.
    before = max((least - fit_shifted_gamma(x).shift) / unit, SHIFT_START)
    deviation = float(late.std())

    def cost(logarithms: Array) -> float:
        shape, scale, before = np.exp(logarithms).tolist()
        return -float(_gamma_log_density(late + before, shape, scale).mean())

    start = [((1.0 + before) / deviation) ** 2, deviation**2 / (1.0 + before), before]
    shape, scale, before = _cheapest(cost, start, [SHAPE_RANGE, SCALE_RANGE, SHIFT_RANGE])
    return _judged(Fit("gamma", (scale * unit,), shape, least - before * unit), x)


def fit_hypoexponential(samples: Any, phases: int) -> Fit:
    """The likeliest shift and means for this many phases."""
    x = varied(samples)
    if phases < 1:
        raise Misuse(f"phases is {phases}, it must be at least 1")
    if phases > DELAY_HOPS_MAX:
        raise TooLarge("phases of a delay", phases, DELAY_HOPS_MAX)
    if phases == 1:
        return replace(fit_exponential(x), law="hypoexponential")
    least, unit, late = _late(x)

    def cost(logarithms: Array) -> float:
        *means, before = np.exp(logarithms).tolist()
        return -float(Curve(means, FIT_POINTS).log_density_at(late + before).mean())

    # Phases with the variance of the samples; the more of them, the further before these they
    # start, or the transform's noise would be all that the search sees of the first samples.
    profile = np.linspace(0.5, 1.5, phases) / phases
    before = max(float(late.std() / np.sqrt(np.square(profile).sum())) - 1.0, SHIFT_START)
    start = [*(profile * (1.0 + before)).tolist(), before]
    *means, before = _cheapest(cost, start, [LOG_RANGE] * (phases + 1))
    scaled = tuple(mean * unit for mean in sorted(means))
    return _judged(Fit("hypoexponential", scaled, 1.0, least - before * unit), x)


def _late(x: Array) -> tuple[float, float, Array]:
    """The least sample, how far the mean is above it, and the samples in these terms."""
    least = float(x.min())
    unit = float(x.mean()) - least
    return least, unit, (x - least) / unit


def _cheapest(
    cost: Callable[[Array], float], start: list[float], ranges: list[tuple[float, float]]
) -> list[float]:
    """The positive parameters with the least cost; cost and ranges are in their logarithms."""
    inside = [min(max(log(s), low), high) for s, (low, high) in zip(start, ranges, strict=True)]
    options = {"maxiter": FIT_STEPS_MAX, "eps": SLOPE_STEP}
    best = optimize.minimize(cost, inside, method="L-BFGS-B", bounds=ranges, options=options)
    return [exp(logarithm) for logarithm in best.x]


def _gamma_log_density(x: Array, shape: float, scale: float) -> Array:
    return np.asarray(stats.gamma.logpdf(x, shape, scale=scale))


def _judged(fit: Fit, x: Array) -> Fit:
    """The fit with its marks."""
    return replace(fit, ks=ks_statistic(x, fit), log_likelihood=float(log_density(fit, x).sum()))
