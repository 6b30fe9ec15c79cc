"""From a table of a settings file to a typed struct, with errors a person can act on.

msgspec says what is wrong and where; this adds the dotted key and what would have been right.
"""

from __future__ import annotations

import re
import types
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct

from inorder.core.errors import BadScenario, Misuse


def convert(table: Any, kind: Any, prefix: str) -> Any:
    """The struct a table describes; `prefix` is the key under which the table stands."""
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        raise _explain(str(error), table, kind, prefix) from None


def _explain(text: str, table: Any, kind: Any, prefix: str) -> BadScenario:
    """Turn msgspec's message into the key and the allowed values."""
    message, _, path = text.partition(" - at `$")
    path = path.rstrip("`").lstrip(".")
    steps = re.findall(r"[^.\[\]]+", path)
    shown = re.sub(r"\[(\d+)\]", lambda match: f"[{int(match[1]) + 1}]", path)
    key = ".".join(part for part in (prefix, shown) if part) or "file"
    value, hint = table, kind
    for step in steps:
        value = _value_at(value, step)
        hint = _inner(hint, step)
    if unknown := re.search(r"unknown field `(.+)`", message):
        fields = list(_fields(hint))
        allowed = f"allowed: {', '.join(fields)}" if fields else "nothing is allowed here"
        inside = f"{key}." if key != "file" else ""
        return BadScenario(f"{inside}{unknown[1]}", f"is not known here; {allowed}")
    literals = _literals(hint)
    if literals and isinstance(value, str):
        return BadScenario(key, f"{value!r} is not one of {', '.join(map(str, literals))}")
    return BadScenario(key, message[0].lower() + message[1:] if message else "is wrong")


def _value_at(value: Any, step: str) -> Any:
    if isinstance(value, dict):
        return value.get(step)
    return value[int(step)] if isinstance(value, list) and step.isdigit() else None


def _inner(hint: Any, step: str) -> Any:
    """The annotation one step further down a path."""
    for option in _options_of(hint):
        if isinstance(option, type) and issubclass(option, Struct):
            hints = get_type_hints(option)
            if step in hints:
                return hints[step]
        elif get_origin(option) is tuple:
            return get_args(option)[0]
    return None


def _options_of(hint: Any) -> tuple[Any, ...]:
    if get_origin(hint) in (Union, types.UnionType):
        return get_args(hint)
    return (hint,)


def _fields(hint: Any) -> tuple[str, ...]:
    for option in _options_of(hint):
        if isinstance(option, type) and issubclass(option, Struct):
            return option.__struct_encode_fields__
    return ()


def _literals(hint: Any) -> list[Any]:
    found: list[Any] = []
    for option in _options_of(hint):
        if get_origin(option) is Literal:
            found.extend(get_args(option))
    return found


def assignment(word: str) -> tuple[str, bool | int | float | str]:
    """`key=value` as typed on a command line or in a script.

    >>> assignment("buffer=30"), assignment("mode=tag"), assignment("fence=true")
    (('buffer', 30), ('mode', 'tag'), ('fence', True))
    """
    key, equals, text = word.strip().partition("=")
    if not equals or not key:
        raise Misuse(f"{word!r} is not key=value")
    if text in ("true", "false"):
        return key, text == "true"
    for kind in (int, float):
        try:
            return key, kind(text)
        except ValueError:
            continue
    return key, text
