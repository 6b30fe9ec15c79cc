"""What applications publish, as bytes.

A dict, a msgspec Struct, a dataclass or bytes, as MessagePack. Filters see the scalars at the top
by name. One call of the encoder takes a whole run of events; only when it fails, or when an event
may be too large, are they looked at one by one, so that the error names the culprit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from operator import index
from typing import Any

import msgspec

from inorder.core.errors import InorderError, Misuse, TooLarge
from inorder.core.limits import EVENT_BYTES_MAX, PUBLISH_AT_ONCE, RUN_BYTES

# Some values as one MessagePack array, and how many.
Encoded = tuple[bytes, int]

_FIRST = 64
_PLAIN = (bool, int, float, str)
_RAW = (bytes, bytearray, memoryview)


def _as_known(value: Any) -> Any:
    """What msgspec does not know, as what it also is: a mapping, a number of NumPy, an odd text."""
    if isinstance(value, Mapping):
        return dict(value)
    for kind in _PLAIN:
        if isinstance(value, kind):
            return kind(value)
    try:
        return index(value)
    except TypeError:
        raise TypeError(f"values of type {type(value).__name__} cannot be published") from None


_encode = msgspec.msgpack.Encoder(enc_hook=_as_known).encode


def encoded(values: Iterable[Any]) -> Iterator[Encoded]:
    """The values, in order, as runs of about RUN_BYTES.

    >>> [(count, msgspec.msgpack.decode(array)) for array, count in encoded([{"n": 1}, b"x"])]
    [(2, [{'n': 1}, b'x'])]
    """
    some: list[Any] = []
    count = _FIRST
    for value in values:
        some.append(value if type(value) in (dict, bytes) else _allowed(value))
        if len(some) >= count:
            array = _run_of(some)
            # So many that the next one has the right size.
            count = max(1, min(PUBLISH_AT_ONCE, RUN_BYTES * len(some) // len(array)))
            yield array, len(some)
            some = []
    if some:
        yield _run_of(some), len(some)


def _run_of(values: list[Any]) -> bytes:
    try:
        for value in values:
            if type(value) is dict:
                for name in value:
                    if type(name) is not str or not name:
                        raise TypeError(f"{name!r} cannot be the name of an attribute")
        array = _encode(values)
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
        raise _culprit(values, error) from None
    if len(array) > EVENT_BYTES_MAX:
        for value in values:
            if (size := len(_encode(value))) > EVENT_BYTES_MAX:
                raise TooLarge("event, in bytes,", size, EVENT_BYTES_MAX)
    return array


def _culprit(values: list[Any], error: Exception) -> InorderError:
    """Which of the values cannot be published, and why."""
    for number, value in enumerate(values, 1):
        try:
            _run_of([value]) if len(values) > 1 else None
        except Misuse as inner:
            return Misuse(f"value {number} of {len(values)}: {inner}")
    return Misuse(f"a value cannot be published: {error}")


def _allowed(value: Any) -> Any:
    if isinstance(value, msgspec.Struct) or (is_dataclass(value) and not isinstance(value, type)):
        return value
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, _RAW):
        return bytes(value)
    kinds = "a dict, bytes, a msgspec Struct or a dataclass"
    raise Misuse(f"publish {kinds}, not a value of type {type(value).__name__}")
