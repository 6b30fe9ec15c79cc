"""Whether two samples of delay differences vary alike.

Theory. The paper (section IV-A) compares delay VARIATION with and without congestion by Wilcoxon's
rank sum test and takes p = 0.35 for a confirmation. That test sees location only, and differences
of delays have mean zero by construction: a scale ratio of 3 passes it two times out of three
(E-F12). Ansari-Bradley and Levene (about the median) see scale. And since no p-value confirms
equality, the ratio of the spreads comes with its interval: equal for one's purpose means that the
whole interval is near 1.
"""

from __future__ import annotations

import warnings
from math import exp, inf, log
from typing import Any

import numpy as np
from msgspec import Struct
from scipy import stats

from inorder.protocols.fifo.samples import Array, cleaned

# Standard errors on either side of a 95 % interval.
NORMAL_95 = 1.959964


class Spread(Struct, frozen=True, gc=False):
    """`ratio` is the second sample's mean distance from its median over the first's."""

    ratio: float
    low: float
    high: float
    ansari_p: float
    levene_p: float


def compare_spread(first: Any, second: Any) -> Spread:
    """How differently two samples scatter, wherever their middles are.

    >>> compare_spread([1.0, 2.0, 3.0, 4.0], [10.0, 30.0, 50.0, 70.0]).ratio
    20.0
    """
    a, b = (x - np.median(x) for x in (cleaned(first, 2), cleaned(second, 2)))
    wide_a, wide_b = float(np.abs(a).mean()), float(np.abs(b).mean())
    if wide_a == 0.0 and wide_b == 0.0:
        return Spread(1.0, 1.0, 1.0, 1.0, 1.0)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        # SciPy says that ties rule out the exact test; the approximation is what is wanted then.
        warnings.simplefilter("ignore")
        ansari, levene = float(stats.ansari(a, b).pvalue), float(stats.levene(a, b).pvalue)
    if wide_a == 0.0 or wide_b == 0.0:
        ratio = inf if wide_a == 0.0 else 0.0
        return Spread(ratio, ratio, ratio, ansari, levene)
    ratio = wide_b / wide_a
    margin = NORMAL_95 * (_log_variance(a) + _log_variance(b)) ** 0.5
    low, high = exp(log(ratio) - margin), exp(log(ratio) + margin)
    return Spread(ratio, low, high, ansari, levene)


def _log_variance(centred: Array) -> float:
    """The variance of the logarithm of the mean distance, to first order."""
    distance = np.abs(centred)
    return float(distance.var(ddof=1) / distance.mean() ** 2 / len(distance))
