"""Linear-time work by hash table on arrays: pandas has it, NumPy would sort."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd  # type: ignore[import-untyped]

Array = npt.NDArray[Any]


def factorize(values: Array) -> tuple[Array, Array]:
    """Dense numbers for values, and the value of each number."""
    codes, uniques = pd.factorize(values)
    return codes.astype(np.int32), np.asarray(uniques)


def unique(values: Array) -> Array:
    """The different values, in the order met."""
    return np.asarray(pd.unique(values))


def repeats(keys: Array) -> Array:
    """Which keys have been met before."""
    return np.asarray(pd.Series(keys).duplicated().to_numpy())


def running_maximum(values: Array, groups: Array) -> Array:
    """For each place, the greatest value of its group so far."""
    return np.asarray(pd.Series(values).groupby(groups, sort=False).cummax().to_numpy())


def least(values: Array, groups: Array) -> Array:
    """For each place, the least value of its group."""
    return np.asarray(pd.Series(values).groupby(groups, sort=False).transform("min").to_numpy())


def find(wanted: Array, known: Array) -> Array:
    """Where each wanted value is among the known, different ones; -1 if nowhere."""
    return np.asarray(pd.Index(known).get_indexer(pd.Index(wanted)))


def all_different(*columns: Array) -> bool:
    """Whether no two rows are equal."""
    if len(columns) == 1:
        return bool(pd.Index(columns[0]).is_unique)
    return bool(pd.MultiIndex.from_arrays(columns).is_unique)
