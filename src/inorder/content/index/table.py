"""The events of a batch: columns of any make, read in the two ways an index needs.

As numbers for ranges: floats, NaN where there is none. As values for hashing: what `ends.hashed`
makes of each. Rows with a whole number that may lie between two floats are told apart: they are
matched one by one, exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inorder.content.index.ends import EXACT, PLAIN, hashed
from inorder.content.value import kind_of
from inorder.core.errors import Misuse

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Column:
    """One attribute of all events; each reading is made once."""

    def __init__(self, source: Any) -> None:
        codes = None
        if hasattr(source, "combine_chunks"):  # Arrow, in chunks
            source = source.combine_chunks()
        if hasattr(source, "to_pylist"):
            source, codes = _from_arrow(source)
        if isinstance(source, np.ndarray) and source.dtype.kind == "M":
            source = _microseconds(source)
        if isinstance(source, np.ndarray) and source.ndim != 1:
            raise Misuse(f"a column has {source.ndim} dimensions")
        self._source = source
        self._codes: NDArray[np.int64] | None = codes  # places in the source, -1 for absent
        self._values: list[Any] | None = None
        self._hashed: dict[bool, list[Any]] = {}  # of the source, not spread
        self._numbers: tuple[Floats, Mask | None] | None = None

    def __len__(self) -> int:
        return len(self._source if self._codes is None else self._codes)

    def values(self) -> list[Any]:
        """The values as `match` takes them."""
        if self._values is None:
            self._values = self._spread(self._distinct())
        return self._values

    def hashed(self, whole: bool) -> list[Any]:
        if whole not in self._hashed:
            self._hashed[whole] = self._distinct_hashed(whole)
        return self._spread(self._hashed[whole])

    def found_in(self, spots: Mapping[Any, int], whole: bool) -> NDArray[np.int64]:
        """What each value's spot stands for, -1 for none: the dictionary is asked once a value."""
        if whole not in self._hashed:
            self._hashed[whole] = self._distinct_hashed(whole)
        found = np.fromiter(map(spots.get, self._hashed[whole], repeat(-1)), dtype=np.int64)
        if self._codes is None:
            return found
        return np.append(found, -1)[self._codes]

    def numbers(self) -> tuple[Floats, Mask | None]:
        """The floats, and which rows they are not exact for, if any."""
        if self._numbers is None:
            floats, rough = _floats(self._source)
            if self._codes is not None:
                floats = np.append(floats, np.nan)[self._codes]
                rough = None if rough is None else np.append(rough, False)[self._codes]
            self._numbers = floats, rough
        return self._numbers

    def _distinct(self) -> list[Any]:
        source = self._source
        return source.tolist() if isinstance(source, np.ndarray) else list(source)

    def _distinct_hashed(self, whole: bool) -> list[Any]:
        values = self._distinct()
        if not whole and {*map(type, values)} <= PLAIN:
            return values
        return [
            value if type(value) in PLAIN and not whole else hashed(value, whole)
            for value in values
        ]

    def _spread(self, values: list[Any]) -> list[Any]:
        if self._codes is None:
            return values
        return [None if code < 0 else values[code] for code in self._codes.tolist()]


class Table:
    """Columns of one length."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._columns = {name: Column(source) for name, source in columns.items()}
        lengths = sorted({len(column) for column in self._columns.values()})
        if len(lengths) > 1:
            raise Misuse(f"columns of one batch have {lengths[0]} and {lengths[-1]} events")
        self.size = lengths[0] if lengths else 0

    def column(self, name: str) -> Column | None:
        """None when no event has the attribute."""
        return self._columns.get(name)

    def event(self, place: int) -> dict[str, Any]:
        return {name: column.values()[place] for name, column in self._columns.items()}


def _from_arrow(source: Any) -> tuple[Any, NDArray[np.int64] | None]:
    """An Arrow array as a NumPy array or a list; text as its distinct values and their places."""
    import pyarrow as pa

    kind = source.type
    if pa.types.is_timestamp(kind):
        source = source.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64())
        kind = source.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        source = source.dictionary_encode()
    if pa.types.is_dictionary(source.type):
        codes = source.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        return _values_of(source.dictionary), codes
    return _values_of(source), None


def _values_of(source: Any) -> Any:
    import pyarrow as pa

    kind = source.type
    if source.null_count == 0 and (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return source.to_numpy(zero_copy_only=False)
    if pa.types.is_floating(kind):
        return source.to_numpy(zero_copy_only=False)  # null becomes NaN, which is absent too
    return source.to_pylist()


def _microseconds(source: NDArray[Any]) -> Any:
    whole = source.astype("datetime64[us]").astype(np.int64)
    if not np.isnat(source).any():
        return whole
    pairs = zip(whole.tolist(), np.isnat(source).tolist(), strict=True)
    return [None if absent else moment for moment, absent in pairs]


def _floats(source: Any) -> tuple[Floats, Mask | None]:
    if isinstance(source, np.ndarray):
        if source.dtype.kind == "f" and source.dtype.itemsize <= 8:
            return source.astype(np.float64, copy=False), None
        if source.dtype.kind in "iu":
            rough = (source > EXACT) | (source < -EXACT)
            return source.astype(np.float64), rough if rough.any() else None
        if source.dtype.kind in "bUS":
            return np.full(len(source), np.nan), None
        source = source.tolist()
    kinds = {*map(type, source)}
    if kinds <= {float, type(None)}:
        return np.array(source, dtype=np.float64), None
    floats = np.full(len(source), np.nan)
    rough = np.zeros(len(source), dtype=bool)
    for place, value in enumerate(source):
        if kind_of(value) == "number":
            if isinstance(value, int) and not -EXACT <= value <= EXACT:
                rough[place] = True
            else:
                floats[place] = value
    return floats, rough if rough.any() else None
