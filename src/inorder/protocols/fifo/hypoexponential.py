"""The law of a sum of exponentials: what a delay over several brokers is taken for.

Rule 1: any means, equal ones and nearly equal ones too.
Rule 2: it is a curve for looking at and fitting. Its distribution function is right to 1e-6 while
        every mean is above a hundredth of the largest; where all but one are far smaller the law
        jumps at zero, and it is right to 1e-3 only.

Theory ("Probabilistic FIFO Ordering In Publish/Subscribe Networks", section III-C). Partial
fractions lose all digits when two means come close. The characteristic function, the product of
`1 / (1 - i w m)`, does not care, so the density is its inverse Fourier transform on a grid. The
highest frequencies of the grid are damped (Lanczos), or the corner at zero would ring; the price is
an error of the order of the squared step. One mean alone has its closed form.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, log
from typing import Any

import numpy as np

from inorder.core.errors import Misuse, TooLarge
from inorder.core.limits import DELAY_HOPS_MAX
from inorder.protocols.fifo.samples import Array, cleaned

# Points of the grid for a curve that is looked at; a fit, which draws hundreds, takes fewer.
CURVE_POINTS = 2**16
# The grid ends this many largest means after the sum of the means. Half-way there the transform's
# rounding error is still a millionth of the density; beyond, an exponential tail takes over.
GRID_TAIL = 40.0
# Densities below this share of the peak are rounding errors of the transform.
NOISE = 1e-13


class Curve:
    """Density and distribution function of one sum of exponentials, on a grid."""

    def __init__(self, means: Sequence[float], points: int = CURVE_POINTS) -> None:
        _check(means)
        self.slowest = max(means)
        length = sum(means) + GRID_TAIL * self.slowest
        step = length / points
        waves = np.arange(points // 2 + 1)
        transform = np.sinc(waves / (points / 2)).astype(np.complex128)
        for mean in means:
            transform /= 1.0 + (2j * np.pi * mean / length) * waves
        grid: Array = np.fft.irfft(transform, points).astype(np.float64) / step
        kept = int(points * (length - GRID_TAIL / 2.0 * self.slowest) / length)
        self.x: Array = np.arange(kept, dtype=np.float64) * float(step)
        self.density: Array = np.maximum(grid[:kept], NOISE * grid.max())
        area = np.cumsum((self.density[1:] + self.density[:-1]) * (step / 2.0))
        # The corner at zero costs a little area, so what is left is made 1 again.
        whole = area[-1] + self.density[-1] * self.slowest
        self.cdf: Array = np.concatenate(([0.0], area / whole))

    def log_density_at(self, x: Array) -> Array:
        inside = np.log(np.interp(x, self.x, self.density)) - self._beyond(x)
        return np.where(x >= 0.0, inside, -np.inf)

    def cdf_at(self, x: Array) -> Array:
        left = 1.0 - np.interp(x, self.x, self.cdf)
        return np.asarray(1.0 - left * np.exp(-self._beyond(x)))

    def _beyond(self, x: Array) -> Array:
        """How far past the grid, in units of the slowest mean."""
        return np.asarray(np.maximum(x - self.x[-1], 0.0) / self.slowest)


class Exponential:
    """The same for one mean."""

    def __init__(self, mean: float) -> None:
        _check([mean])
        self.mean = mean

    def log_density_at(self, x: Array) -> Array:
        return np.where(x >= 0.0, -x / self.mean - log(self.mean), -np.inf)

    def cdf_at(self, x: Array) -> Array:
        return -np.expm1(-np.maximum(x, 0.0) / self.mean)


def law(means: Sequence[float]) -> Curve | Exponential:
    return Exponential(means[0]) if len(means) == 1 else Curve(means)


def density(x: Any, means: Sequence[float]) -> Array:
    """The density of a sum of exponentials of these means, at each x.

    >>> density([1.0], [1.0, 1.0]).round(4).tolist()
    [0.3679]
    """
    return np.exp(law(means).log_density_at(cleaned(x)))


def cdf(x: Any, means: Sequence[float]) -> Array:
    """The chance that a sum of exponentials of these means is at most x, at each x.

    >>> cdf([-1.0, 1.0], [1.0, 1.0]).round(4).tolist()
    [0.0, 0.2642]
    """
    return law(means).cdf_at(cleaned(x))


def _check(means: Sequence[float]) -> None:
    if not len(means):
        raise Misuse("means is empty, at least 1 is needed")
    if len(means) > DELAY_HOPS_MAX:
        raise TooLarge("phases of a delay", len(means), DELAY_HOPS_MAX)
    for mean in means:
        if not (isfinite(mean) and mean > 0.0):
            raise Misuse(f"means has {mean}, each must be above 0 and finite")
