"""Values as an index holds them: what is hashed for an equality, and a range's ends as floats.

Rule 1: a hashed value is the value itself, for Python hashes and compares whole numbers and floats
        exactly; a truth value is wrapped, or `True` would be found under 1.
Rule 2: an attribute that is whole by schema is compared by its floor, as its cuts say (cuts.py).
Rule 3: an end is closed: `x < 5` is `x <= nextafter(5, -inf)`. That is exact for every float and
        for whole numbers up to 2**53. Beyond, whole numbers lie between two floats: such an end is
        refused (None) and boxes decide; such an event has a `reach`, the floats around it.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, floor, inf, isfinite, nextafter
from typing import Any, Final

from inorder.content.value import kind_of, plain

Spot = Any  # what a bucket is found by: a hashed value, or a tuple of several

PLAIN: Final = frozenset((str, int, float))  # types that are hashed as they are
EXACT: Final = 2**53
_MOST = nextafter(inf, 0.0)


def hashed(value: Any, whole: bool = False) -> Any:
    """What an event's value is found under; None, which nothing is found under, when absent.

    >>> hashed(1.0), hashed(True), hashed([1]), hashed(3.5, whole=True)
    (1.0, (True,), None, 3)
    """
    if type(value) not in PLAIN:
        if kind_of(value) is None:
            return None
        value = plain(value)
        if isinstance(value, bool):
            return (value,)
    if whole and isinstance(value, float):
        return floor(value) if isfinite(value) else None
    return value


def hashed_constant(value: Any, whole: bool) -> Any:
    """What a subscription's value is found under; None when no event can equal it."""
    if kind_of(value) is None:
        return None
    if whole and isinstance(value, float) and not value.is_integer():
        return None
    return hashed(value, whole)


def number(value: Any) -> int | float | None:
    """A number that is exact as a float, and so are its neighbours; else None."""
    kind = type(value)
    if kind is not float and kind is not int:
        if kind_of(value) != "number":
            return None
        value = plain(value)
    if type(value) is int:
        return value if -EXACT <= value <= EXACT else None
    return value if value == value else None


def reach(value: Any) -> tuple[float, float] | None:
    """The floats at or around a number; None when it is none.

    >>> reach(5), reach(2**53 + 1), reach("5")
    ((5.0, 5.0), (9007199254740992.0, 9007199254740994.0), None)
    """
    if kind_of(value) != "number":
        return None
    value = plain(value)
    try:
        near = float(value)
    except OverflowError:
        return (_MOST, inf) if value > 0 else (-inf, -_MOST)
    if near == value:
        return near, near
    return (near, nextafter(near, inf)) if near < value else (nextafter(near, -inf), near)


def _closed(value: Any) -> float | None:
    if type(value) is float and value == value:
        return value
    exact = number(value)
    return None if exact is None else float(exact)


def _above(value: Any) -> float | None:
    exact = number(value)
    return None if exact is None or exact == inf else nextafter(exact, inf)


def _below(value: Any) -> float | None:
    exact = number(value)
    return None if exact is None or exact == -inf else nextafter(exact, -inf)


def _finite(value: Any) -> int | float | None:
    exact = number(value)
    return None if exact is None or not -EXACT < exact < EXACT else exact


def _whole_at_least(value: Any) -> float | None:
    exact = _finite(value)
    return None if exact is None else float(ceil(exact))


def _whole_above(value: Any) -> float | None:
    exact = _finite(value)
    return None if exact is None else float(floor(exact) + 1)


def _whole_at_most(value: Any) -> float | None:
    exact = _finite(value)
    return None if exact is None else nextafter(floor(exact) + 1, -inf)


def _whole_below(value: Any) -> float | None:
    exact = _finite(value)
    return None if exact is None else nextafter(ceil(exact), -inf)


End = Callable[[Any], float | None]
_ENDS: dict[str, tuple[End, End]] = {
    ">=": (_closed, _whole_at_least),
    ">": (_above, _whole_above),
    "<=": (_closed, _whole_at_most),
    "<": (_below, _whole_below),
}


def end_of(op: str, whole: bool) -> End:
    """How a comparison's value becomes a closed end; None means that boxes must decide.

    >>> end_of("<=", False)(5), end_of(">", True)(3.5), end_of("<", False)(2**53 + 1)
    (5.0, 4.0, None)
    """
    return _ENDS[op][whole]
