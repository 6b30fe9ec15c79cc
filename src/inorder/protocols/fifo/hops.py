"""The exact law of the difference of two delays over h hops: a sum of h Laplacians.

Rule 1: `tail(x)` is the chance that the difference exceeds x, for every real x.
Rule 2: no formula here may lose digits to cancellation without noticing it.

Theory. Over one hop with exponential processing times of mean b two messages differ by a Laplacian
of scale b; over h hops by the sum of h of them. "Probabilistic FIFO Ordering In Publish/Subscribe
Networks" calls the law of that sum open for more than two (section III-D); it is not (E-F10).

Equal scales: the sum is a mixture of Erlang laws of 1..h phases on either side of zero, with the
weights C(2h-2-j, h-1) / 2^(2h-1-j) for j+1 phases. All terms are positive.

Distinct scales: partial fractions give `sum_i A_i/2 exp(-x/b_i)` with
`A_i = prod_{j != i} b_i^2 / (b_i^2 - b_j^2)`. When scales come close the A_i explode with both
signs. The sum of the magnitudes tells how many digits are lost; when more than three are, race.py
answers instead, slower and without a minus anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import comb, exp, isfinite, lgamma, log

from inorder.core.errors import Misuse, TooLarge
from inorder.core.limits import DELAY_HOPS_MAX
from inorder.protocols.fifo.race import race

# Partial fractions may cancel this much: 1e3 leaves twelve digits of a double's fifteen.
CANCELLATION_MAX = 1e3
# Scales this far apart: the race loses a digit for each factor of ten between them.
SCALE_RATIO_MAX = 1e6

# Further out than this many scales no double is small enough, even with DELAY_HOPS_MAX hops.
VANISHED = 2000.0


def out_of_range(field: str, value: float, allowed: str) -> Misuse:
    return Misuse(f"{field} is {value}, it must be {allowed}")


def tail_equal(x: float, b: float, h: int) -> float:
    """P(X > x) for the sum of h Laplacians of scale b.

    >>> tail_equal(0.0, 2.0, 5)
    0.5
    """
    _check_hops(h)
    _check_scale("b", b)
    if x < 0.0:
        return 1.0 - tail_equal(-x, b, h)
    r = x / b
    if r > VANISHED:
        return 0.0
    total = erlang = 0.0
    for j in range(h):
        erlang += _poisson(j, r)
        total += comb(2 * h - 2 - j, h - 1) / 2 ** (2 * h - 1 - j) * erlang
    return total


def tail_distinct(x: float, scales: Sequence[float]) -> float:
    """P(X > x) for a sum of Laplacians of these scales; equal ones are allowed.

    >>> round(tail_distinct(3.0, [1.0, 2.0]), 6) == round(2 / 3 * exp(-1.5) - exp(-3) / 6, 6)
    True
    """
    largest = _check_scales(scales)
    if x < 0.0:
        return 1.0 - tail_distinct(-x, scales)
    units = sorted((scale / largest for scale in scales), reverse=True)
    r = x / largest
    if r > VANISHED:
        return 0.0
    total, magnitude = _partial_fractions(r, units)
    # Written so that an overflow (nan) chooses the race too.
    if magnitude <= CANCELLATION_MAX * total:
        return total
    return race(r, units)


def quantile_equal(p: float, b: float, h: int) -> float:
    """The x which the sum of h Laplacians of scale b exceeds with probability 1 - p.

    >>> round(quantile_equal(0.95, 1.0, 2), 6)
    3.271812
    """
    _check_hops(h)
    _check_scale("b", b)
    return _where(lambda x: tail_equal(x, b, h), p, b)


def quantile_distinct(p: float, scales: Sequence[float]) -> float:
    """The x which a sum of Laplacians of these scales exceeds with probability 1 - p."""
    return _where(lambda x: tail_distinct(x, scales), p, _check_scales(scales))


def _where(tail: Callable[[float], float], p: float, unit: float) -> float:
    """The x >= 0 at which a falling tail reaches 1 - p, by bisection down to the last bit."""
    if not 0.5 <= p < 1.0:
        raise out_of_range("p", p, "in [0.5, 1)")
    share = 1.0 - p
    low, high = 0.0, unit
    if tail(low) <= share:
        return low
    while tail(high) > share:
        low, high = high, 2.0 * high
    while low < (middle := (low + high) / 2.0) < high:
        if tail(middle) > share:
            low = middle
        else:
            high = middle
    return high


def _poisson(count: int, mean: float) -> float:
    """By logarithms: exp(-mean) alone would vanish long before the tail does."""
    if mean == 0.0:
        return 1.0 if count == 0 else 0.0
    return exp(count * log(mean) - mean - lgamma(count + 1))


def _partial_fractions(r: float, scales: Sequence[float]) -> tuple[float, float]:
    """The sum and the sum of the magnitudes of its terms; (0, inf) if two scales are equal."""
    total = magnitude = 0.0
    for i, mine in enumerate(scales):
        weight = 0.5 * exp(-r / mine)
        for j, other in enumerate(scales):
            if i != j:
                if mine == other:
                    return 0.0, float("inf")
                weight *= mine / (mine - other) * (mine / (mine + other))
        total += weight
        magnitude += abs(weight)
    return total, magnitude


def _check_hops(h: int) -> None:
    if h < 1:
        raise out_of_range("h", h, "at least 1")
    if h > DELAY_HOPS_MAX:
        raise TooLarge("hops of a delay", h, DELAY_HOPS_MAX)


def _check_scale(field: str, scale: float) -> None:
    if not (isfinite(scale) and scale > 0.0):
        raise out_of_range(field, scale, "above 0 and finite")


def _check_scales(scales: Sequence[float]) -> float:
    """The largest scale, once all of them are fit for use."""
    _check_hops(len(scales))
    for scale in scales:
        _check_scale("scales", scale)
    largest, smallest = max(scales), min(scales)
    if largest / smallest > SCALE_RATIO_MAX:
        ratio = largest / smallest
        raise out_of_range("largest / smallest scale", ratio, f"at most {SCALE_RATIO_MAX:g}")
    return largest
