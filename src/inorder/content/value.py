"""The values predicates compare: three kinds, and everything else is absent.

Rule 1: a truth value is not a number, though Python thinks so: `True = 1` is unknown.
Rule 2: None, NaN, and whatever is of no kind (a list, bytes, half a surrogate pair) are absent.
Rule 3: whole numbers and floats compare by value, exactly; infinity is a number; -0.0 is 0.
Rule 4: text compares by code point. Timestamps are whole microseconds, hence numbers.
"""

from __future__ import annotations

from typing import Any, Literal

from inorder.core.limits import CONTENT_INT_MAX, CONTENT_INT_MIN

Value = bool | int | float | str
Kind = Literal["truth", "number", "text"]

_KINDS: dict[type, Kind] = {bool: "truth", int: "number", float: "number", str: "text"}


def kind_of(value: Any) -> Kind | None:
    """The kind of a value; None is absent.

    >>> kind_of(True), kind_of(float("inf")), kind_of(float("nan")), kind_of([])
    ('truth', 'number', None, None)
    """
    kind = _KINDS.get(type(value)) or _kind_of_subclass(value)
    if kind == "number":
        return kind if value == value else None
    if kind == "text":
        return kind if value.isascii() or _is_whole(value) else None
    return kind


def _kind_of_subclass(value: Any) -> Kind | None:
    """Enumerations and the like: members of a class derived from a plain one."""
    if isinstance(value, int | float):
        return "number"
    return "text" if isinstance(value, str) else None


def _is_whole(text: str) -> bool:
    """Half a surrogate pair is no character: it can be neither stored nor sent."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def plain(value: Any) -> Value:
    """The one spelling of a value: equal values of a kind become equal bytes too.

    >>> plain(2.0), plain(-0.0), plain(0.5), plain(1e300)
    (2, 0, 0.5, 1e+300)
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value if type(value) is str else str.__str__(value)
    if isinstance(value, float):
        if value.is_integer() and CONTENT_INT_MIN <= value <= CONTENT_INT_MAX:
            return int(value)
        return float(value)
    return int(value)


def fits(value: Any) -> bool:
    """Whether a whole number is small enough to travel; floats and all else always are.

    >>> fits(2**64 - 1), fits(2**64), fits(1e300)
    (True, False, True)
    """
    return not isinstance(value, int) or CONTENT_INT_MIN <= value <= CONTENT_INT_MAX
