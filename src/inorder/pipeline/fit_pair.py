"""One pair's delays: what `fifo.delays.describe` says of them, the law's parameters, the dial.

The dial. An event is expected after the mean delay, so the wait for a share P is how far the delay
exceeds its mean with probability P at most: of n samples the ceil((n + 1)(1 - P))-th smallest, the
conformal rank of fifo/predictive.py. Too few samples for that share have no such rank; then the
fitted law answers, if there is one. Clocks that disagree move all delays and the mean alike.
"""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np
from scipy import stats

from inorder.core.errors import Misuse
from inorder.core.limits import FIT_SAMPLES_MAX
from inorder.protocols.fifo.delays import CONSTANT, NO_LAW, TOO_FEW
from inorder.protocols.fifo.fit import Fit
from inorder.protocols.fifo.fitness import COMPARED_SAMPLES_MIN, PHASES, Score, compare_laws
from inorder.protocols.fifo.hypoexponential import law
from inorder.protocols.fifo.samples import Array, cleaned, is_constant, is_tied, thinned

# The shares every pair has a wait for.
DIAL = (0.1, 0.05, 0.01, 0.001)

# Halvings of an interval until a quantile is known to the last digits anybody reads.
HALVINGS = 50


def arrow_schema() -> Any:
    """The types of a fitted row; the names are those of `fit.FITTED`."""
    import pyarrow as pa

    number, text = pa.float64(), pa.string()
    turn = pa.struct([("late", number), ("wait", number), ("from_law", pa.bool_())])
    return pa.schema(
        [("publisher", text), ("subscriber", text), ("used", pa.int64())]
        + [(name, number) for name in ("mean", "sd", "p50", "p90", "p99")]
        + [("law", text), ("shift", number), ("shape", number), ("means", pa.list_(number))]
        + [(name, number) for name in ("ks", "p_value", "log_likelihood", "late", "wait")]
        + [("dial", pa.list_(turn)), ("trouble", text)]
    )


def fit_pair(departed: Any, delays: Any, late: float, phases: int | None = None) -> dict[str, Any]:
    """The row of one pair; `trouble` says what could not be told, and why.

    >>> row = fit_pair([1.0, 2.0, 3.0], [0.1, 0.3, 0.2], 0.5)
    >>> row["used"], row["p50"], row["law"], round(row["wait"], 3)
    (3, 0.2, 'too few', 0.0)
    """
    try:
        x = thinned(_in_order(departed, delays), FIT_SAMPLES_MAX)
        name, best, trouble = _law(x, PHASES if phases is None else phases)
    except (Misuse, ArithmeticError, ValueError) as error:
        return {"used": 0, "late": late, "trouble": str(error)}
    # As numpy.quantile does it in fifo/delays.py: five quantiles in one call give the same bits.
    _, median, p90, p99, _ = np.quantile(x, [0.0, 0.5, 0.9, 0.99, 1.0]).tolist()
    fit = best.fit if best else None
    dial = [_turn(share, x, fit) for share in (late, *DIAL)]
    return {
        "used": len(x),
        "mean": float(x.mean()),
        "sd": float(x.std()) if x.min() < x.max() else 0.0,
        "p50": median,
        "p90": p90,
        "p99": p99,
        "law": name,
        "shift": fit and fit.shift,
        "shape": fit and fit.shape,
        "means": fit and list(fit.means),
        "ks": best and best.ks,
        "p_value": best and best.p_value,
        "log_likelihood": best and best.log_likelihood,
        "late": late,
        "wait": dial[0]["wait"],
        "dial": dial[1:],
        "trouble": trouble,
    }


def _in_order(departed: Any, delays: Any) -> Array:
    """By departure; equal ones by their delay, so that the order of the rows does not matter."""
    x = cleaned(delays)
    return x[np.lexsort((x, np.asarray(departed)))]


def _law(x: Array, phases: int) -> tuple[str, Score | None, str | None]:
    """The best law and its marks, as in fifo/delays.py, which keeps the parameters to itself."""
    if is_constant(x) and len(x) > 1:
        return CONSTANT, None, None
    if len(x) < COMPARED_SAMPLES_MIN:
        few = f"{len(x)} samples, a law needs {COMPARED_SAMPLES_MIN}"
        return TOO_FEW, None, few
    if is_tied(x[::2]):
        return NO_LAW, None, "most samples are equal, no law suits them"
    best = compare_laws(x, phases)[0]
    return best.fit.law, best, None


def _turn(share: float, x: Array, fit: Fit | None) -> dict[str, Any]:
    """The wait for one share, past the expected arrival."""
    # Rounded: (n + 1)(1 - P) of 999 samples and a thousandth is 999, not a bit more.
    rank = ceil(round((len(x) + 1) * (1.0 - share), 9))
    if rank <= len(x):
        wait = float(np.partition(x, rank - 1)[rank - 1] - x.mean())
        return {"late": share, "wait": max(0.0, wait), "from_law": False}
    if fit is None:
        return {"late": share, "wait": None, "from_law": False}
    return {"late": share, "wait": max(0.0, exceeded(fit, share) - x.mean()), "from_law": True}


def exceeded(fit: Fit, share: float) -> float:
    """What a delay of this law exceeds with this probability.

    >>> round(exceeded(Fit("exponential", (1.0,), 1.0, 0.5), 0.01), 4)
    5.1052
    """
    if fit.shape != 1.0:
        return fit.shift + float(stats.gamma.isf(share, fit.shape, scale=fit.means[0]))
    curve = law(fit.means)
    low, high = 0.0, sum(fit.means)
    while curve.cdf_at(np.array([high]))[0] < 1.0 - share:
        low, high = high, 2.0 * high
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        inside = curve.cdf_at(np.array([middle]))[0] < 1.0 - share
        low, high = (middle, high) if inside else (low, middle)
    return fit.shift + high
