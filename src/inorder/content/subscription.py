"""One subscription of a client: its predicate, its values and where it is with the network.

Rule 1: a change is checked as a whole before any of it is taken; a refused one changes nothing.
Rule 2: the version counts the changes; a change that changes nothing does not count.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Self

from msgspec import Struct

from inorder.content.bind import boxes_of
from inorder.content.door import forms_problem
from inorder.content.engine import Forms
from inorder.content.predicate import Predicate
from inorder.content.same import alike
from inorder.content.skeleton import Filling, Vector
from inorder.core.errors import PredicateError

Schema = tuple[tuple[str, str], ...]


class SubscriptionState(Struct):
    """What a snapshot keeps; the predicate is kept as text."""

    topic: str
    text: str
    schema: Schema | None
    values: dict[str, Filling]
    version: int = 1
    installed: int = 0
    # Its number with the edge, and those of former versions that have not been taken back yet.
    wire: int = 0
    outdated: list[int] = []


class Subscription:
    """Changes are prepared first and taken afterwards."""

    def __init__(self, state: SubscriptionState, predicate: Predicate, forms: Forms) -> None:
        self.s = state
        self.predicate = predicate
        self.forms = forms

    @classmethod
    def make(cls, topic: str, predicate: Predicate, values: Mapping[str, Any]) -> Self:
        checked = predicate.check(values)
        forms = checked_forms(predicate, checked)
        schema = None if predicate.schema is None else tuple(sorted(predicate.schema.items()))
        return cls(SubscriptionState(topic, predicate.source, schema, checked), predicate, forms)

    @classmethod
    def restored(cls, state: SubscriptionState) -> Self:
        predicate = _parsed(state.text, state.schema)
        return cls(state, predicate, checked_forms(predicate, state.values))

    def changed(self, forms: Forms) -> tuple[tuple[int, Vector], ...] | None:
        """The vectors that differ from ours, by place; None when the structure does."""
        if [one for one, _ in forms] != [one for one, _ in self.forms]:
            return None
        return tuple(
            (place, vector)
            for place, ((_, before), (_, vector)) in enumerate(zip(self.forms, forms, strict=True))
            if not alike(before, vector)
        )

    def can_match(self) -> bool:
        """Whether there is any event it wants, with the values of this instant."""
        return any(boxes_of(skeleton, vector) for skeleton, vector in self.forms)

    def take(self, predicate: Predicate, values: dict[str, Filling], forms: Forms) -> None:
        self.predicate, self.forms = predicate, forms
        self.s.text, self.s.values = predicate.source, values
        schema = predicate.schema
        self.s.schema = None if schema is None else tuple(sorted(schema.items()))
        self.s.version += 1


def checked_forms(predicate: Predicate, values: Mapping[str, Any]) -> Forms:
    """The forms with these values, which brokers would accept."""
    forms = tuple(zip(predicate.skeleton, predicate.values_of(values), strict=True))
    if trouble := forms_problem(forms):
        raise PredicateError("PREDICATE_TOO_LARGE", trouble, None, predicate.source)
    return forms


@lru_cache(maxsize=256)
def _parsed(text: str, schema: Schema | None) -> Predicate:
    return Predicate.parse(text, None if schema is None else dict(schema))
