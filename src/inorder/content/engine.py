"""Which subscriptions does an event match? The one interface of all engines, and the slowest one.

A subscription is known to an engine by a whole number; it is a disjunction of *forms*, each a
skeleton with its values. `set` changes values only: the skeletons stay. Engines answer alike for
every event after any sequence of calls, whatever their speed; `Naive` says what is right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from inorder.content.bind import boxes_of
from inorder.content.box import Box
from inorder.content.predicate import Predicate
from inorder.content.skeleton import Skeleton, Vector
from inorder.core.errors import Misuse

Form = tuple[Skeleton, Vector]
Forms = tuple[Form, ...]


class Engine(Protocol):
    """Keys are whole numbers of the caller's choosing."""

    def add(self, key: int, forms: Forms) -> None:
        """Know a subscription; a key that is known already is refused."""

    def set(self, key: int, vectors: Sequence[Vector]) -> None:
        """Give a subscription other values, one vector per form, all at once."""

    def replace(self, key: int, forms: Forms) -> None:
        """Give a subscription another structure, at once."""

    def remove(self, key: int) -> None:
        """Forget a subscription."""

    def match(self, attributes: Mapping[str, Any]) -> list[int]:
        """The keys an event matches, ascending, each once."""

    def __len__(self) -> int:
        """How many subscriptions are known."""


class Naive:
    """Every box of every subscription, one after the other.

    >>> from inorder.content.predicate import Predicate
    >>> cheap = Predicate.parse("price < :limit")
    >>> engine = Naive()
    >>> engine.add(7, forms_of(cheap, {"limit": 10}))
    >>> engine.match({"price": 9}), engine.match({"price": 11})
    ([7], [])
    """

    def __init__(self) -> None:
        self._boxes: dict[int, tuple[Box, ...]] = {}
        self._forms: dict[int, Forms] = {}

    def add(self, key: int, forms: Forms) -> None:
        if key in self._forms:
            raise Misuse(f"subscription {key} is known already")
        self._put(key, forms)

    def set(self, key: int, vectors: Sequence[Vector]) -> None:
        skeletons = [skeleton for skeleton, _ in self._known(key)]
        self._put(key, tuple(zip(skeletons, vectors, strict=True)))

    def replace(self, key: int, forms: Forms) -> None:
        self._known(key)
        self._put(key, forms)

    def _put(self, key: int, forms: Forms) -> None:
        boxes = tuple(box for skeleton, vector in forms for box in boxes_of(skeleton, vector))
        self._forms[key] = forms
        self._boxes[key] = boxes

    def remove(self, key: int) -> None:
        self._known(key)
        del self._forms[key], self._boxes[key]

    def match(self, attributes: Mapping[str, Any]) -> list[int]:
        return sorted(
            key for key, boxes in self._boxes.items() if any(b.contains(attributes) for b in boxes)
        )

    def __len__(self) -> int:
        return len(self._forms)

    def _known(self, key: int) -> Forms:
        try:
            return self._forms[key]
        except KeyError:
            raise Misuse(f"subscription {key} is not known") from None


def forms_of(predicate: Predicate, values: Mapping[str, Any]) -> Forms:
    """What an engine is told of a predicate with these values."""
    return tuple(zip(predicate.skeleton, predicate.values_of(values), strict=True))
