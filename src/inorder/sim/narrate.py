"""One line per thing that happens, for people: stories of failing runs, and script tests."""

from __future__ import annotations

from collections.abc import Callable
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

# Better words for a value, or None.
Words = Callable[[Any], str | None]


def _none(source: str, target: str) -> Words:
    return lambda value: None


def describe(node: str, effect: Effect, words: Callable[[str, str], Words] = _none) -> str | None:
    """What an effect looks like from outside; None for what nobody sees. `words` may know better
    ones for what travels from a node to another.

    >>> describe("a", Deliver(Event("p", 1, "t"), in_order=False))
    'a delivers p:1, too late'
    """
    if isinstance(effect, Deliver):
        return f"{node} delivers {effect.event.id}" + ("" if effect.in_order else ", too late")
    if isinstance(effect, Send):
        return f"{node}->{effect.target} {brief(effect.message, words(node, effect.target))}"
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


def brief(value: Any, words: Words = lambda value: None) -> str:
    """A message in a few words: its kind and its fields, without the empty ones and without the
    last ones that say nothing unusual. `words` may know better ones for some.

    >>> from inorder.guarantee.none import Published
    >>> brief(Published(Event("p", 1, "t")))
    'Published p:1'
    """
    if (better := words(value)) is not None:
        return better
    if isinstance(value, Event):
        return value.id
    if isinstance(value, Struct):
        fields = [getattr(value, name) for name in value.__struct_fields__]
        usual = list(value.__struct_defaults__)
        while usual and fields[-1] == usual.pop():
            fields.pop()
        said = (brief(field, words) for field in fields)
        return " ".join([type(value).__name__, *(word for word in said if word)])
    if isinstance(value, dict):
        inner = " ".join(f"{key}:{brief(item, words)}" for key, item in sorted(value.items()))
        return f"{{{inner}}}" if inner else ""
    if isinstance(value, tuple | list):
        if value and all(isinstance(item, tuple) and len(item) == 2 for item in value):
            return "{" + " ".join(f"{key}:{brief(item, words)}" for key, item in value) + "}"
        return "[" + " ".join(brief(item, words) for item in value) + "]" if value else ""
    return "-" if value is None else str(value)
