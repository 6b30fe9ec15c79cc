"""One line per thing that happens, for people: stories of failing runs, and script tests."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from inorder.core.effect import (
    Answer,
    CancelTimer,
    Deliver,
    Diffuse,
    Effect,
    Join,
    Launched,
    Leave,
    Note,
    Persist,
    Send,
    SetTimer,
)
from inorder.core.event import Event


def describe(node: str, effect: Effect) -> str | None:
    """What an effect looks like from outside; None for what nobody sees.

    >>> describe("a", Deliver(Event("p", 1, "t"), in_order=False))
    'a delivers p:1, too late'
    """
    if isinstance(effect, Deliver):
        return f"{node} delivers {effect.event.id}" + ("" if effect.in_order else ", too late")
    if isinstance(effect, Send):
        return f"{node}->{effect.target} {brief(effect.message)}"
    if isinstance(effect, Diffuse):
        return f"{node}->({effect.topic}) {brief(effect.message)}"
    if isinstance(effect, Launched):
        return f"{node} launches {effect.event.id}"
    if isinstance(effect, Answer):
        reason = f" ({effect.reason})" if effect.reason else ""
        return f"{node} answers {effect.call}: {effect.outcome}{reason}"
    if isinstance(effect, Note):
        return f"{node} notes {effect.mark}" + (f" {effect.detail}" if effect.detail else "")
    if isinstance(effect, Join):
        return f"{node} joins {effect.topic}"
    if isinstance(effect, Leave):
        return f"{node} leaves {effect.topic}"
    assert isinstance(effect, Persist | SetTimer | CancelTimer), effect
    return None


def brief(value: Any) -> str:
    """A message in a few words: its kind and its fields, without the empty ones and without the
    last ones that say nothing unusual.

    >>> from inorder.guarantee.none import Published
    >>> brief(Published(Event("p", 1, "t")))
    'Published p:1'
    """
    if isinstance(value, Event):
        return value.id
    if isinstance(value, Struct):
        fields = [getattr(value, name) for name in value.__struct_fields__]
        usual = list(value.__struct_defaults__)
        while usual and fields[-1] == usual.pop():
            fields.pop()
        words = (brief(field) for field in fields)
        return " ".join([type(value).__name__, *(word for word in words if word)])
    if isinstance(value, dict):
        inner = " ".join(f"{key}:{brief(item)}" for key, item in sorted(value.items()))
        return f"{{{inner}}}" if inner else ""
    if isinstance(value, tuple | list):
        if value and all(isinstance(item, tuple) and len(item) == 2 for item in value):
            return "{" + " ".join(f"{key}:{brief(item)}" for key, item in value) + "}"
        return "[" + " ".join(brief(item) for item in value) + "]" if value else ""
    return "-" if value is None else str(value)
