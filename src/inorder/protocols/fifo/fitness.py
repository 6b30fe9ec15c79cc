"""Which law of delays deserves belief: laws are fitted to one half and judged on the other.

Rule 1: a law is never judged on the samples it was fitted to: more parameters would always win, and
        the p-value of a Kolmogorov-Smirnov test would be far too kind.
Rule 2: every other sample is held out. Both halves see the same hours of the day, and no chance is
        needed; traffic that alternates in step with the halves is not for this.
Rule 3: no sample decides alone. Each law is mixed with a share 1/n of a uniform law over the range
        of all samples, or the first delay below a fitted shift would cost infinity; and the
        infinite peak that some Gamma laws have at their shift is capped.

Tied samples (a coarse clock) make every continuous law look worse and p too small; compare laws by
their likelihood then, not by p. A large p confirms nothing (E-F12): it is a statement about n too.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
from msgspec import Struct
from scipy import stats

from inorder.core.errors import Misuse
from inorder.core.limits import FIT_SAMPLES_MAX
from inorder.protocols.fifo.fit import (
    Fit,
    fit_exponential,
    fit_hypoexponential,
    fit_likeliest_gamma,
    ks_statistic,
    log_density,
)
from inorder.protocols.fifo.samples import Array, is_tied, thinned, varied

# The paper's example of a fit has this many phases (section III-C).
PHASES = 5
# Fewer samples cannot tell one law from another: each half has ten.
COMPARED_SAMPLES_MIN = 20
# Just below the largest logarithm of a double.
LOG_DENSITY_MAX = 700.0


class Score(Struct, frozen=True, gc=False):
    """A law on the samples it has not seen.

    `log_likelihood` is per sample, and `behind` says how far it is below that of the best law;
    less than twice `behind_error`, its standard error, is no difference.
    """

    fit: Fit
    log_likelihood: float
    behind: float
    behind_error: float
    ks: float
    p_value: float


def ks_p_value(ks: float, n: int) -> float:
    """The chance of so large a distance if the law is right and was NOT fitted to these n samples.

    >>> round(ks_p_value(0.0099, 6500), 2)
    0.54
    """
    if n < 1:
        raise Misuse(f"n is {n}, it must be at least 1")
    return float(stats.kstwo.sf(ks, n))


def compare_laws(samples: Any, phases: int = PHASES) -> list[Score]:
    """Every law that can be fitted, the likeliest on held-out samples first."""
    x = thinned(varied(samples), FIT_SAMPLES_MAX)
    if len(x) < COMPARED_SAMPLES_MIN:
        raise Misuse(f"samples has {len(x)} values, at least {COMPARED_SAMPLES_MIN} are needed")
    seen, held = x[::2], x[1::2]
    fits = _fits(seen, phases)
    values = [_forgiving(fit, held, x) for fit in fits]
    # On a tie the law with fewer parameters, which comes first, wins.
    best = max(range(len(fits)), key=lambda i: (float(values[i].mean()), -i))
    scores = []
    for fit, value in zip(fits, values, strict=True):
        lag = values[best] - value
        ks = ks_statistic(held, fit)
        scores.append(
            Score(
                fit=fit,
                log_likelihood=float(value.mean()),
                behind=float(lag.mean()),
                behind_error=float(lag.std() / len(held) ** 0.5),
                ks=ks,
                p_value=ks_p_value(ks, len(held)),
            )
        )
    return sorted(scores, key=lambda score: score.behind)


def _fits(seen: Array, phases: int) -> list[Fit]:
    if is_tied(seen):
        raise Misuse(f"more than half of the samples are {np.median(seen)}: no law has a density")
    fits = [fit_exponential(seen)]
    # Samples that are not skewed to the right have no Gamma law; the others do badly then, too.
    with suppress(Misuse):
        fits.append(fit_likeliest_gamma(seen))
    if phases != 1:
        fits.append(fit_hypoexponential(seen, phases))
    return fits


def _forgiving(fit: Fit, held: Array, everything: Array) -> Array:
    """The log density of each held-out sample under the law with a share of foreign samples."""
    foreign = 1.0 / len(everything)
    uniform = np.log(foreign) - np.log(np.ptp(everything))
    own = np.minimum(log_density(fit, held), LOG_DENSITY_MAX)
    return np.asarray(np.logaddexp(np.log1p(-foreign) + own, uniform))
