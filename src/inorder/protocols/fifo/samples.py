"""Measured delays as the models want them: an array of finite numbers, not too many."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from inorder.core.errors import Misuse

Array = npt.NDArray[np.float64]

# Samples that differ by less than this share of themselves are equal.
ROUNDING = 1e-12


def cleaned(samples: Any, least: int = 1) -> Array:
    """The samples as an array, or a refusal that says what is wrong with them."""
    try:
        array: Array = np.asarray(samples, dtype=np.float64)
    except (TypeError, ValueError):
        raise Misuse("samples must be numbers") from None
    if array.ndim != 1:
        raise Misuse(f"samples has {array.ndim} dimensions, it must have 1")
    if len(array) < least:
        raise Misuse(f"samples has {len(array)} values, at least {least} are needed")
    if bad := int(np.count_nonzero(~np.isfinite(array))):
        raise Misuse(f"samples has {bad} values of {len(array)} that are nan or infinite")
    with np.errstate(over="ignore"):
        if not np.isfinite(np.square(array).sum()):
            raise Misuse("samples is too large: the sum of its squares is infinite")
    return array


def is_constant(samples: Array) -> bool:
    """Whether there is nothing to fit: no spread, or one that rounding errors have too."""
    spread, magnitude = float(np.ptp(samples)), float(np.abs(samples).max())
    lost = spread <= ROUNDING * magnitude
    return lost or not (samples.mean() > samples.min() and samples.std() > 0.0)


def is_tied(samples: Array) -> bool:
    """Whether more than half of the samples are equal: no law that has a density suits them."""
    return not np.median(np.abs(samples - np.median(samples))) > 0.0


def varied(samples: Any) -> Array:
    """The samples, at least two of them different."""
    array = cleaned(samples, 2)
    if is_constant(array):
        raise Misuse(f"samples has {len(array)} values that are all {array[0]}: nothing to fit")
    return array


def thinned(samples: Array, most: int) -> Array:
    """At most this many, evenly spaced in the order given."""
    if len(samples) <= most:
        return samples
    return samples[np.arange(most) * len(samples) // most]
