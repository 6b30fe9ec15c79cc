"""The engine of the paper's comparison: subscriptions in the order of covering, as in Siena.

An event starts at the maximal subscriptions and goes down only where it matches; subscriptions
that are equivalent are tried once. The state must be reordered whenever a value changes, in time
linear in the number of subscriptions (E-C12): a baseline to compare with, not an engine to run.
`comparisons` and `evaluations` count what was done, so that a simulation can charge time for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from inorder.content.bind import boxes_of
from inorder.content.engine import Forms
from inorder.content.order import Order
from inorder.content.skeleton import Vector
from inorder.core.errors import Misuse


class Poset:
    """Implements `Engine`.

    >>> from inorder.content.engine import forms_of
    >>> from inorder.content.predicate import Predicate
    >>> cheap, engine = Predicate.parse("price < :limit"), Poset()
    >>> engine.add(1, forms_of(cheap, {"limit": 10}))
    >>> engine.add(2, forms_of(cheap, {"limit": 5}))
    >>> engine.match({"price": 4}), engine.match({"price": 9}), len(engine.order.roots)
    ([1, 2], [1], 1)
    """

    def __init__(self) -> None:
        self.order = Order()
        self._forms: dict[int, Forms] = {}

    @property
    def comparisons(self) -> int:
        """Covering tests between two subscriptions, so far."""
        return self.order.comparisons

    @property
    def evaluations(self) -> int:
        """Subscriptions tried on an event, so far; equivalent ones count once."""
        return self.order.evaluations

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

    def remove(self, key: int) -> None:
        self._known(key)
        del self._forms[key]
        self.order.drop(key)

    def match(self, attributes: Mapping[str, Any]) -> list[int]:
        return sorted(key for node in self.order.matching(attributes) for key in node.owners)

    def __len__(self) -> int:
        return len(self._forms)

    def _put(self, key: int, forms: Forms) -> None:
        boxes = tuple(box for skeleton, vector in forms for box in boxes_of(skeleton, vector))
        self._forms[key] = forms
        self.order.put(key, boxes)

    def _known(self, key: int) -> Forms:
        try:
            return self._forms[key]
        except KeyError:
            raise Misuse(f"subscription {key} is not known") from None
