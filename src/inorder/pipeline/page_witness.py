"""A witness told in one sentence.

Each judge's witness has its shape; a story is told only when the witness holds everything the
story says, in the types it expects. Whatever is left over, or unknown, is listed fact by fact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from inorder.pipeline.page_words import label, name, number, text, value

# A sentence that lists more than this is no sentence; the data stand below it in full.
LISTED_MAX = 8


class _Opposite(Struct):
    events: tuple[str, str]
    subscribers: tuple[str, str]
    nths: dict[str, tuple[int, int]]


class _Step(Struct):
    subscriber: str
    first: str
    then: str


class _Cycle(Struct):
    cycle: list[str]
    because: list[_Step]


class _Overtaken(Struct):
    subscriber: str
    publisher: str
    events: tuple[str, str]
    nths: tuple[int, int]
    numbers: tuple[int, int]


class _Displaced(Struct):
    subscriber: str
    events: tuple[str, str]
    nths: tuple[int, int]
    positions: tuple[int, int]


class _Places(Struct):
    cause: int
    effect: int


class _Causal(Struct):
    subscriber: str
    cause: str
    effect: str
    nths: _Places


class _Repeated(Struct):
    subscriber: str
    event: str
    nths: list[int]


class _Missed(Struct):
    subscriber: str
    event: str
    topic: str
    held_since: float


class _Faulty(Struct):
    subscriber: str
    event: str
    topic: str
    nth: int
    fault: str


class _Stranger(Struct):
    subscriber: str
    event: str
    nth: int
    where: str


def witness_sentence(witness: dict[str, Any]) -> str:
    """The witness as markup.

    >>> witness_sentence({"event": "p:1", "seen": 2})
    'Event <code><bdi>p:1</bdi></code>; seen 2.'
    """
    told, used = _story(witness)
    facts = [
        f"{text(label(key))} {_values(what)}"
        for key, what in witness.items()
        if key not in used and key != "promise" and what not in (None, {}, [])
    ]
    if told:
        return f"{told} ({'; '.join(facts)})." if facts else f"{told}."
    first = "; ".join(facts)
    return f"{first[:1].upper()}{first[1:]}." if first else "The witness names nothing."


def _story(witness: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    for shape, tell in _STORIES:
        try:
            told = tell(msgspec.convert(witness, shape))
        except (msgspec.ValidationError, KeyError):
            continue
        return told, shape.__struct_fields__
    return "", ()


def _opposite(it: _Opposite) -> str:
    lines: list[str] = []
    for subscriber in it.subscribers:
        (one, first), (two, then) = sorted(zip(it.nths[subscriber], it.events, strict=True))
        lines.append(
            f"{_id(subscriber)} delivered {_id(first)} before {_id(then)} "
            f"(places {number(one)} and {number(two)})"
        )
    return ", but ".join(lines)


def _cycle(it: _Cycle) -> str:
    steps = [
        f"{_id(step.subscriber)} delivered {_id(step.first)} before {_id(step.then)}"
        for step in it.because
    ]
    return f"No single order fits: {_listed(steps)}"


def _overtaken(it: _Overtaken) -> str:
    found = sorted(zip(it.nths, it.events, it.numbers, strict=True))
    (one, first, early), (two, then, late) = found
    return (
        f"{_id(it.subscriber)} delivered {_id(first)}, number {number(early)} of "
        f"{_id(it.publisher)}, before {_id(then)}, number {number(late)} "
        f"(places {number(one)} and {number(two)})"
    )


def _displaced(it: _Displaced) -> str:
    first, then = (
        f"{_id(event)}, which stands at position {number(position)},"
        for event, position in zip(it.events, it.positions, strict=True)
    )
    return (
        f"{_id(it.subscriber)} delivered {first} before {then.removesuffix(',')} "
        f"(places {number(it.nths[0])} and {number(it.nths[1])})"
    )


def _causal(it: _Causal) -> str:
    return (
        f"{_id(it.subscriber)} delivered {_id(it.effect)} at place "
        f"{number(it.nths.effect)} and its cause {_id(it.cause)} only at place "
        f"{number(it.nths.cause)}"
    )


def _repeated(it: _Repeated) -> str:
    places = _listed([number(place) for place in it.nths])
    return f"{_id(it.subscriber)} delivered {_id(it.event)} more than once, at places {places}"


def _missed(it: _Missed) -> str:
    return (
        f"{_id(it.subscriber)} never delivered {_id(it.event)}, though it had held topic "
        f"{_id(it.topic)} since {number(it.held_since)} s"
    )


def _faulty(it: _Faulty) -> str:
    return (
        f"{_id(it.subscriber)} delivered {_id(it.event)} on topic {_id(it.topic)} at place "
        f"{number(it.nth)}: {text(label(it.fault))}"
    )


def _stranger(it: _Stranger) -> str:
    return (
        f"{_id(it.subscriber)} delivered {_id(it.event)} at place {number(it.nth)}, "
        f"which does not match <code>{name(it.where, 120)}</code>"
    )


_STORIES: tuple[tuple[type[Struct], Callable[[Any], str]], ...] = (
    (_Opposite, _opposite),
    (_Cycle, _cycle),
    (_Overtaken, _overtaken),
    (_Displaced, _displaced),
    (_Causal, _causal),
    (_Repeated, _repeated),
    (_Missed, _missed),
    (_Faulty, _faulty),
    (_Stranger, _stranger),
)


def _values(what: Any) -> str:
    if isinstance(what, str):
        return _id(what)
    if isinstance(what, list | tuple) and all(isinstance(item, str) for item in what):
        return _listed([_id(item) for item in what])
    if isinstance(what, list | tuple) and all(type(item) is int for item in what):
        return _listed([number(item) for item in what])
    if isinstance(what, dict) and all(not isinstance(item, dict) for item in what.values()):
        return _listed([f"{text(key)} {_values(item)}" for key, item in what.items()])
    return value(what, 120)


def _listed(items: list[str]) -> str:
    """Markup joined as in a sentence."""
    if len(items) > LISTED_MAX:
        items = [*items[:LISTED_MAX], f"{number(len(items) - LISTED_MAX)} more"]
    if len(items) < 2:
        return items[0] if items else "none"
    return f"{', '.join(items[:-1])} and {items[-1]}"


def _id(raw: object) -> str:
    return f"<code>{name(raw, 40)}</code>"
