"""Latches that need no distribution: bounds on the difference X of two delays.

Each bound takes `(share, sigma)` and gives the latch: the x that X exceeds with probability at most
`share`, if `sigma` is the true standard deviation of X. In units of sigma:

    bound                      latch                 .05    .01   holds if
    symmetric_chebyshev        1 / sqrt(2 P)         3.16   7.07  X symmetric: i.i.d. delays
    cantelli                   sqrt(1 / P - 1)       4.36   9.95  always
    vysochanskij_petunin       sqrt(2 / (9 P))       2.11   4.71  symmetric, unimodal, P <= 1/12
    chernoff(1)                least over s          3.55   4.89  any number of exponential hops
    chernoff(5)                least over s          2.75   3.58  5 EQUAL exponential hops
    exact(1)                   hops.py               1.63   2.77  one exponential hop
    exact(2)                                         1.64   2.60  2 equal hops: the paper's model
    exact(5)                                         1.64   2.45  5 equal hops

Theory. The paper (section III-B) proposes Chebyshev's inequality, and Bernstein's or Hoeffding's
once the number of hops is known. Hoeffding does not apply: it needs bounded summands, and the
exponential processing times of the model are unbounded (E-F11). Nor does the hop count alone help:
for a given sigma unequal hops have heavier tails than equal ones, up to one hop with all of the
variance, so only `chernoff(1)` is safe when the hops are not known to be alike.

Chernoff. P(X > x) <= exp(-s x) (1 - b^2 s^2)^-h for every s in (0, 1/b), sigma^2 = 2 h b^2. At the
best s, with y = 1 / (1 - b^2 s^2), the latch is sigma sqrt(2 h y (y - 1)), where y solves
`2 (y - 1) - ln y = -ln(P) / h`: convex and rising, so Newton's method from the right is safe.

A bound with the standard deviation of 25 SAMPLES is no guarantee: the sample may be too narrow.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite, log, sqrt

from inorder.core.errors import TooLarge
from inorder.core.limits import DELAY_HOPS_MAX
from inorder.protocols.fifo.hops import out_of_range, quantile_equal

Bound = Callable[[float, float], float]

# Beyond this share (x < sqrt(8/3) sigma) the inequality has another, weaker form.
UNIMODAL_SHARE_MAX = 1 / 12
# Newton's method from a start that is right to a factor of two.
NEWTON_STEPS = 12


def symmetric_chebyshev(share: float, sigma: float) -> float:
    """
    >>> round(symmetric_chebyshev(0.05, 1.0), 2)
    3.16
    """
    _check(share, sigma)
    return sigma / sqrt(2.0 * share)


def cantelli(share: float, sigma: float) -> float:
    """
    >>> round(cantelli(0.05, 1.0), 2)
    4.36
    """
    _check(share, sigma)
    return sigma * sqrt(1.0 / share - 1.0)


def vysochanskij_petunin(share: float, sigma: float) -> float:
    """
    >>> round(vysochanskij_petunin(0.05, 1.0), 2)
    2.11
    """
    _check(share, sigma)
    if share > UNIMODAL_SHARE_MAX:
        raise out_of_range("share", share, "at most 1/12 for this bound")
    return sigma * sqrt(2.0 / (9.0 * share))


def chernoff(hops: int) -> Bound:
    """The bound for this many equal exponential hops.

    >>> round(chernoff(5)(0.05, 1.0), 2)
    2.75
    """
    _check_hops(hops)

    def latch(share: float, sigma: float) -> float:
        _check(share, sigma)
        level = -log(share) / hops
        y = 1.0 + level
        for _ in range(NEWTON_STEPS):
            y -= (2.0 * (y - 1.0) - log(y) - level) / (2.0 - 1.0 / y)
        return sigma * sqrt(2.0 * hops * y * (y - 1.0))

    return latch


def exact(hops: int) -> Bound:
    """No bound but the law itself, for this many equal exponential hops.

    >>> round(exact(5)(0.01, 1.0), 2)
    2.45
    """
    _check_hops(hops)

    def latch(share: float, sigma: float) -> float:
        _check(share, sigma)
        return sigma * quantile_equal(1.0 - share, 1.0 / sqrt(2.0 * hops), hops)

    return latch


def _check(share: float, sigma: float) -> None:
    if not 0.0 < share <= 0.5:
        raise out_of_range("share", share, "in (0, 0.5]")
    if not (isfinite(sigma) and sigma >= 0.0):
        raise out_of_range("sigma", sigma, "at least 0 and finite")


def _check_hops(hops: int) -> None:
    if hops < 1:
        raise out_of_range("hops", hops, "at least 1")
    if hops > DELAY_HOPS_MAX:
        raise TooLarge("hops of a delay", hops, DELAY_HOPS_MAX)
