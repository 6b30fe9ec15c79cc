"""What applications publish, as attributes, and back.

A dict, a msgspec Struct or a dataclass becomes attributes: its scalars by name, so that filters can
look at them, and everything else as JSON under one reserved name. Bytes travel under another. What
JSON would change without a word (bytes, nan, keys that are no text) is refused there.
"""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from typing import Any

import msgspec

from inorder.core import wire
from inorder.core.errors import Damaged, Misuse, TooLarge
from inorder.core.event import Scalar
from inorder.core.limits import EVENT_BYTES_MAX, PUBLISH_AT_ONCE, PUBLISH_BYTES_AT_ONCE

BYTES = "@bytes"
MORE = "@more"

_PLAIN = (bool, int, float, str)
_RAW = (bytes, bytearray, memoryview)

_encode = msgspec.json.Encoder().encode


def to_attributes(value: Any) -> dict[str, Scalar]:
    """The attributes of an event that carries this value.

    >>> to_attributes({"id": 17, "tags": ["a", "b"]})
    {'id': 17, '@more': '{"tags":["a","b"]}'}
    """
    if isinstance(value, bytes | bytearray | memoryview):
        return {BYTES: b64encode(value).decode()}
    if not isinstance(value, Mapping):
        value = _fields(value)
    attributes: dict[str, Scalar] = {}
    more: dict[str, Any] = {}
    for name, field in value.items():
        if not isinstance(name, str) or not name or name.startswith("@"):
            raise Misuse(f"{name!r} cannot be the name of an attribute")
        if field is None or isinstance(field, bool | int | float | str):
            attributes[name] = _scalar(name, field)
        else:
            more[name] = field
    if more:
        attributes[MORE] = _as_json(more)
    return attributes


def from_attributes(attributes: Mapping[str, Scalar], kind: type | None = None) -> Any:
    """The value again; with `kind` as that type.

    >>> from_attributes({"id": 17, "@more": '{"tags":["a","b"]}'})
    {'id': 17, 'tags': ['a', 'b']}
    """
    try:
        if BYTES in attributes:
            value: Any = b64decode(str(attributes[BYTES]), validate=True)
        else:
            value = {name: each for name, each in attributes.items() if name != MORE}
            if MORE in attributes:
                value |= msgspec.json.decode(str(attributes[MORE]), type=dict[str, Any])
        return value if kind is None else msgspec.convert(value, kind)
    except (msgspec.DecodeError, binascii.Error, UnicodeDecodeError) as error:
        raise Damaged("event", f"its value cannot be read: {error}") from None


def sized_value(value: Any) -> tuple[dict[str, Scalar], int]:
    """A value as attributes, and how many bytes these take."""
    attributes = to_attributes(value)
    try:
        size = wire.size(attributes)
    except (TypeError, ValueError, OverflowError) as error:
        raise Misuse(f"a value cannot be published: {error}") from None
    if size > EVENT_BYTES_MAX:
        raise TooLarge("event, in bytes,", size, EVENT_BYTES_MAX)
    return attributes, size


def chunks(sized: Iterable[tuple[dict[str, Scalar], int]]) -> Iterator[list[dict[str, Scalar]]]:
    """What is handed over together: so many events and bytes at most."""
    some: list[dict[str, Scalar]] = []
    room = PUBLISH_BYTES_AT_ONCE
    for attributes, size in sized:
        if some and (len(some) >= PUBLISH_AT_ONCE or size > room):
            yield some
            some, room = [], PUBLISH_BYTES_AT_ONCE
        some.append(attributes)
        room -= size
    if some:
        yield some


def _fields(value: Any) -> dict[str, Any]:
    try:
        fields = msgspec.to_builtins(value)
    except (TypeError, ValueError, OverflowError, msgspec.MsgspecError) as error:
        raise Misuse(
            f"a value of type {type(value).__name__} cannot be published: {error}"
        ) from None
    if not isinstance(fields, dict):
        kinds = "a dict, bytes, a msgspec Struct or a dataclass"
        raise Misuse(f"publish {kinds}, not a value of type {type(value).__name__}")
    return fields


def _scalar(name: str, value: bool | int | float | str | None) -> Scalar:
    if value is not None and type(value) not in _PLAIN:
        # An enumeration's member, a number of NumPy: as what it also is.
        value = next(kind for kind in _PLAIN if isinstance(value, kind))(value)
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise Misuse(f"attribute {name!r}: {value} does not fit into 64 bits")
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise Misuse(f"attribute {name!r} is not text: {error.reason}") from None
    return value


def _as_json(fields: dict[str, Any]) -> str:
    try:
        plain = msgspec.to_builtins(fields, builtin_types=_RAW)
        if problem := _json_problem(plain):
            raise ValueError(problem)
        return _encode(plain).decode()
    except (
        TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError
    ) as error:  # fmt: skip
        raise Misuse(f"{', '.join(sorted(fields))}: cannot be published: {error}") from None


def _json_problem(value: Any) -> str | None:
    """Why JSON would make something else of a value, without a word."""
    if isinstance(value, dict):
        for key, each in value.items():
            if not isinstance(key, str):
                return f"{key!r} is no text, and the keys of a nested dict must be"
            if problem := _json_problem(each):
                return problem
    elif isinstance(value, list | tuple | set | frozenset):
        for each in value:
            if problem := _json_problem(each):
                return problem
    elif isinstance(value, _RAW):
        return "bytes are a value of their own, not a part of one"
    elif isinstance(value, float) and not isfinite(value):
        return f"{value} can be an attribute, but not inside a list or a dict"
    return None
