"""The delays of one publisher-subscriber pair in a few plain numbers.

Rule 1: any finite sample has a description, however small; a law stands in it only if there are
        enough samples to choose one, and not all alike.
Rule 2: the marks of the law come from samples it has not seen (fitness.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct

from inorder.core.limits import FIT_SAMPLES_MAX
from inorder.protocols.fifo.fitness import COMPARED_SAMPLES_MIN, PHASES, compare_laws
from inorder.protocols.fifo.samples import Array, cleaned, is_constant, is_tied, thinned

TOO_FEW = "too few"
CONSTANT = "constant"
# Most of the samples a law would be fitted to are equal.
NO_LAW = "no law"


class Described(Struct, frozen=True, gc=False):
    """Times are in the unit of the samples; without a law the last four are None.

    `law` is "exponential", "gamma", "hypoexponential", "constant", "too few" or "no law";
    `log_likelihood` is per held-out sample.
    """

    n: int
    mean: float
    sd: float
    least: float
    median: float
    p90: float
    p99: float
    most: float
    law: str
    shift: float | None = None
    ks: float | None = None
    p_value: float | None = None
    log_likelihood: float | None = None


def describe(samples: Any, phases: int = PHASES) -> Described:
    """What a sample of delays looks like, and which law it follows best.

    >>> describe([0.25, 0.25]).law
    'constant'
    """
    x = cleaned(samples)
    least, median, p90, p99, most = np.quantile(x, [0.0, 0.5, 0.9, 0.99, 1.0]).tolist()
    plain = (len(x), float(x.mean()), _sd(x), least, median, p90, p99, most)
    if is_constant(x):
        return Described(*plain, law=CONSTANT if len(x) > 1 else TOO_FEW)
    fitted = thinned(x, FIT_SAMPLES_MAX)
    if len(x) < COMPARED_SAMPLES_MIN:
        return Described(*plain, law=TOO_FEW)
    if is_tied(fitted[::2]):
        return Described(*plain, law=NO_LAW)
    best = compare_laws(fitted, phases)[0]
    return Described(
        *plain,
        law=best.fit.law,
        shift=best.fit.shift,
        ks=best.ks,
        p_value=best.p_value,
        log_likelihood=best.log_likelihood,
    )


def _sd(x: Array) -> float:
    """Exactly zero for equal samples, whose mean may be off by a bit."""
    return float(x.std()) if x.min() < x.max() else 0.0
