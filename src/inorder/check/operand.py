"""What a predicate compares: attributes, constants and parameters, and which can be compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from inorder.core.errors import Misuse

Values = Mapping[str, Any]
Read = Callable[[Values, Values], Any]  # of parameters and attributes; None is absent


def is_attribute(node: Any) -> bool:
    return type(node).__name__ in ("Column", "Dot")


def attribute_of(node: Any) -> Read:
    names: list[str] = []
    while type(node).__name__ == "Dot":
        parts = parts_of(node, "this", "expression")
        names.append(_name(parts["expression"]))
        node = parts["this"]
    if type(node).__name__ != "Column":
        raise Misuse(f"a predicate needs an attribute where it has {type(node).__name__}")
    given = _given_parts(node)
    names += [_name(given[key]) for key in ("this", "table", "db", "catalog") if key in given]
    if set(given) - {"this", "table", "db", "catalog"}:
        raise Misuse("a predicate cannot hold this form of attribute")
    name = ".".join(reversed(names))
    return lambda parameters, attributes: _plain(attributes.get(name), name)


def _name(node: Any) -> str:
    if type(node).__name__ != "Identifier":
        raise Misuse(f"a predicate cannot hold {type(node).__name__} in the name of an attribute")
    return str(node.this)


def constant_of(node: Any) -> Read:
    kind = type(node).__name__
    if kind == "Placeholder":
        return _parameter(node)
    value: Any
    if kind == "Boolean":
        value = bool(node.this)
    elif kind == "Literal":
        value = str(node.this) if node.is_string else _number(str(node.this))
    elif kind == "Neg" and type(node.this).__name__ == "Literal" and not node.this.is_string:
        value = -_number(str(node.this.this))
    else:
        raise Misuse(f"a predicate needs a constant or parameter where it has {kind}")
    return lambda parameters, attributes: value


def _number(text: str) -> int | float:
    try:
        number: int | float = int(text) if text.isdigit() else float(text)
    except ValueError:
        raise Misuse(f"not a number: {text[:40]}") from None
    if not math.isfinite(number):
        raise Misuse(f"too large a number: {text[:40]}")
    return number


def _parameter(node: Any) -> Read:
    name = _parameter_name(node)
    return lambda parameters, attributes: _plain(_given(parameters, name), f":{name}")


def list_of(node: Any) -> Read:
    """A parameter that holds a list of values."""
    name = _parameter_name(node)

    def read(parameters: Values, attributes: Values) -> Any:
        value = _given(parameters, name)
        if not isinstance(value, list | tuple):
            raise Misuse(f"parameter :{name} must be a list")
        return [_plain(part, f":{name}") for part in value]

    return read


def _parameter_name(node: Any) -> str:
    if type(node).__name__ != "Placeholder" or not isinstance(node.args.get("this"), str):
        raise Misuse("a predicate needs a parameter written :name")
    return str(parts_of(node, "this")["this"])


def _given(parameters: Values, name: str) -> Any:
    if name not in parameters:
        raise Misuse(f"parameter :{name} has no value")
    return parameters[name]


def _plain(value: Any, name: str) -> Any:
    """The value, or None when it is absent; NaN compares with nothing, so it is absent too."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return None if math.isnan(value) else value
    raise Misuse(f"{name} holds a {type(value).__name__}, not a plain value")


def comparable(a: Any, b: Any) -> bool:
    return _kind(a) == _kind(b) != "NoneType"


def _kind(value: Any) -> str:
    return "number" if type(value) in (int, float) else type(value).__name__


def parts_of(node: Any, *keys: str, ignore: str = "") -> dict[str, Any]:
    """The named parts of a node; a part we do not know could change its meaning."""
    given = {key: part for key, part in _given_parts(node).items() if key != ignore}
    if set(given) != set(keys):
        odd = sorted(set(given) ^ set(keys))[0]
        raise Misuse(f"a predicate cannot hold this {type(node).__name__} ({odd})")
    return given


def _given_parts(node: Any) -> dict[str, Any]:
    """The parts that say something; sqlglot fills others with None, False or an empty list."""
    return {
        key: part
        for key, part in node.args.items()
        if part is not None and part is not False and not (isinstance(part, list) and not part)
    }
