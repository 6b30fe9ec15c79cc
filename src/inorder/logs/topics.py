"""Names of topics, and patterns of names.

A name is tokens joined by dots: `orders.eu.paid`. In a pattern `*` stands for one token, and `>`,
which comes last, for one or more: `orders.*` matches `orders.eu`, `orders.>` matches
`orders.eu.paid` as well, and neither matches `orders`.
"""

from __future__ import annotations

from collections.abc import Iterable

from inorder.core.errors import Misuse, TooLarge
from inorder.core.limits import SUBSCRIBED_BYTES_MAX, TOPIC_BYTES_MAX

ONE, REST = "*", ">"


class Topics:
    """Some topics: names, and patterns that further names may match.

    >>> wanted = Topics(["orders.*", "payments"])
    >>> [wanted.matches(name) for name in ("orders.eu", "orders", "payments")]
    [True, False, True]
    """

    def __init__(self, wanted: Iterable[str]) -> None:
        names = [*wanted]
        for name in names:
            check(name)
        self.wanted = tuple(sorted({*names}))
        size = sum(len(name.encode()) for name in self.wanted)
        if size > SUBSCRIBED_BYTES_MAX:
            raise TooLarge("names of topics, in bytes,", size, SUBSCRIBED_BYTES_MAX)
        self.names = tuple(name for name in self.wanted if not is_pattern(name))
        self.patterns = tuple(name for name in self.wanted if is_pattern(name))
        self._shapes = [name.split(".") for name in self.patterns]
        # What was decided once; as many as there are topics, and bounded by the broker's bound.
        self._known = dict.fromkeys(self.names, True)

    def matches(self, topic: str) -> bool:
        known = self._known.get(topic)
        if known is None:
            known = self._known[topic] = any(_fits(shape, topic) for shape in self._shapes)
        return known

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Topics) and self.wanted == other.wanted

    def __repr__(self) -> str:
        return f"Topics({', '.join(self.wanted)})"


def is_pattern(name: str) -> bool:
    return any(token in (ONE, REST) for token in name.split("."))


def check(name: object) -> None:
    """Raise if this is neither a name nor a pattern.

    >>> check("orders.>")
    >>> check("orders..eu")
    Traceback (most recent call last):
    inorder.core.errors.Misuse: topic 'orders..eu': a token is empty
    """
    if not isinstance(name, str):
        raise Misuse(f"a topic is a text, not {name!r}")
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise Misuse(f"topic {name!r} is no text") from None
    if size > TOPIC_BYTES_MAX:
        raise TooLarge("topic, in bytes,", size, TOPIC_BYTES_MAX)
    tokens = name.split(".")
    if not all(tokens):
        raise Misuse(f"topic {name!r}: " + ("a token is empty" if name else "it has no name"))
    if REST in tokens[:-1]:
        raise Misuse(f"topic {name!r}: {REST} stands for the rest, so it comes last")


def check_name(name: object) -> None:
    """Raise if an event cannot be published under this name."""
    check(name)
    assert isinstance(name, str)
    if is_pattern(name):
        raise Misuse(f"topic {name!r} is a pattern: an event is published on one topic")


def _fits(shape: list[str], topic: str) -> bool:
    tokens = topic.split(".")
    if shape[-1] == REST:
        if len(tokens) < len(shape):
            return False
        shape, tokens = shape[:-1], tokens[: len(shape) - 1]
    return len(shape) == len(tokens) and all(
        want in (ONE, token) for want, token in zip(shape, tokens, strict=True)
    )


EVERYTHING = Topics([REST])
