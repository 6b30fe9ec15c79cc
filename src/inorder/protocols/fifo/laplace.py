"""How much two delays of one path differ: the sum of two i.i.d. Laplacians, the paper's model.

Rule 1: all times have one unit, the caller's; `b` is the scale of either Laplacian.
Rule 2: a scale of zero (all delays alike) has quantile zero; it has no density.

Theory ("Probabilistic FIFO Ordering In Publish/Subscribe Networks", section III-D and III-E). Each
broker's processing time is taken as exponential, so two messages differ by one Laplacian a hop. The
paper uses two whatever the number of hops: density `(|x| + b) / (4 b^2) exp(-|x| / b)`, variance
4 b^2, mean of |X| 3 b / 2. hops.py has the exact laws.

Quantile. With u = x / b and x >= 0, F(x) = p reads `(2 + u) exp(-u) = 4 (1 - p)`. The substitution
w = -(2 + u) gives `w exp(w) = -4 exp(-2) (1 - p)` with w <= -2: the lower branch of Lambert's W,
and x = -b (W + 2). The printed equation 5 has the opposite sign; with the principal branch, which
libraries take unasked, it stays below 2 b for every p and leaves at least 13.5 % (E-F2). Here
Newton's method solves the logarithm of the equation. It is concave and falls, so every step after
the first comes from the right and cannot overshoot.

Scale. `2 / (3 n) sum |x|` is the estimate by moments; the paper calls it maximum likelihood (E-F3).
The true one solves `mean|x| - b - mean(|x| b / (|x| + b)) = 0`. The left side is convex and falls,
so Newton's method from mean|x| / 2 climbs to the root. Moments are 99 % as efficient; keep them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, isfinite, log

from inorder.core.errors import Misuse
from inorder.protocols.fifo.hops import (
    out_of_range,
    quantile_distinct,
    quantile_equal,
    tail_distinct,
    tail_equal,
)

__all__ = [
    "cdf",
    "density",
    "quantile",
    "quantile_distinct",
    "quantile_equal",
    "scale_by_likelihood",
    "scale_by_moments",
    "tail_distinct",
    "tail_equal",
]

# Newton doubles its digits each step and starts with one or two: six steps reach the last bit.
NEWTON_STEPS = 6
# The likelihood's start may be off by a factor of two, hence a few more.
LIKELIHOOD_STEPS = 12


def density(x: float, b: float) -> float:
    """The density of the sum of two Laplacians of scale b.

    >>> density(0.0, 1.0)
    0.25
    """
    _check_scale(b)
    r = abs(x) / b
    return (r + 1.0) / (4.0 * b) * exp(-r)


def cdf(x: float, b: float) -> float:
    """The chance that the sum of two Laplacians of scale b is at most x.

    >>> cdf(0.0, 1.0)
    0.5
    """
    _check_scale(b)
    r = abs(x) / b
    tail = (2.0 + r) / 4.0 * exp(-r)
    return tail if x < 0.0 else 1.0 - tail


def quantile(p: float, b: float) -> float:
    """The x with cdf(x, b) = p, for 0.5 <= p < 1.

    >>> round(quantile(0.95, 1.0), 6)
    3.271812
    """
    if not 0.5 <= p < 1.0:
        raise out_of_range("p", p, "in [0.5, 1)")
    if not (isfinite(b) and b >= 0.0):
        raise out_of_range("b", b, "at least 0 and finite")
    c = -log(4.0 * (1.0 - p))
    u = max(0.0, c + log(2.0 + c))
    for _ in range(NEWTON_STEPS):
        u += (log(2.0 + u) - u + c) * (2.0 + u) / (1.0 + u)
    return b * max(0.0, u)


def scale_by_moments(samples: Sequence[float]) -> float:
    """The scale whose mean of |X| is that of the samples (the paper's estimate).

    >>> scale_by_moments([-3.0, 6.0])
    3.0
    """
    return 2.0 / 3.0 * _mean_magnitude(samples)


def scale_by_likelihood(samples: Sequence[float]) -> float:
    """The scale under which the samples are likeliest.

    >>> round(scale_by_likelihood([1.0]), 6)
    0.618034
    """
    mean = _mean_magnitude(samples)
    b = mean / 2.0
    if b == 0.0:
        return 0.0
    n = len(samples)
    for _ in range(LIKELIHOOD_STEPS):
        # share = |x| / (|x| + b), so that nothing is squared that could overflow.
        shares = [abs(x) / (abs(x) + b) for x in samples]
        value = mean - b - b * sum(shares) / n
        slope = -1.0 - sum(share * share for share in shares) / n
        b -= value / slope
    return b


def _mean_magnitude(samples: Sequence[float]) -> float:
    if not len(samples):
        raise Misuse("samples is empty, at least 1 is needed")
    total = sum(abs(x) for x in samples)
    if not isfinite(total):
        raise out_of_range("the sum of |samples|", total, "finite")
    return total / len(samples)


def _check_scale(b: float) -> None:
    if not (isfinite(b) and b > 0.0):
        raise out_of_range("b", b, "above 0 and finite")
