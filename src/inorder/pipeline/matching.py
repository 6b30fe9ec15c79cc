"""Which events pass which filters: predicates are evaluated once for each event they concern."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from inorder.check.holding import State, json_object, scalars
from inorder.check.predicate import matches
from inorder.core.errors import BadTrace, Misuse
from inorder.pipeline.boundary import boundary
from inorder.pipeline.coded import Array, code
from inorder.pipeline.hashed import find
from inorder.pipeline.published import Published

if TYPE_CHECKING:
    from collections.abc import Mapping

_UNKNOWN = -1


class Matching:
    """Remembers every answer: many subscribers hold the same filter."""

    def __init__(self, published: Published) -> None:
        self._published = published
        self._attributes: list[str | None] | None = None
        self._answers: dict[tuple[str, str], Array] = {}

    def passes(self, state: State, events: Array) -> Array:
        """For each of these events (numbers in Published), whether it passes the state's filter."""
        if state.where is None:
            return np.ones(len(events), dtype=np.bool_)
        key = (state.where, json.dumps(state.parameters, sort_keys=True))
        answers = self._answers.get(key)
        if answers is None:
            answers = np.full(len(self._published), _UNKNOWN, dtype=np.int8)
            self._answers[key] = answers
        for event in events[answers[events] == _UNKNOWN].tolist():
            answers[event] = self._matches(state, event)
        return np.asarray(answers[events] == 1)

    def attributes(self, event: int) -> Mapping[str, Any]:
        """What a filter sees of an event, read from its JSON text."""
        if self._attributes is None:
            self._attributes = self._read()
        text = self._attributes[event] or "{}"
        return scalars(json_object(text, "the attributes of an event", self._published.table.path))

    def _matches(self, state: State, event: int) -> bool:
        assert state.where is not None, "asked only of filtered states"
        try:
            return matches(state.where, state.parameters, self.attributes(event))
        except Misuse as error:
            path = self._published.table.path
            raise BadTrace(path, f"a subscription holds {state.where!r}: {error}") from None

    def _read(self) -> list[str | None]:
        table = self._published.table
        if not table.has("attributes"):
            return [None] * len(self._published)
        with boundary(table.path):
            frame = table.frame.select(
                code("event", self._published.attempt).alias("code"), "attributes"
            )
            found = frame.toArrow()
        order = find(self._published.code, found["code"].to_numpy())
        texts: list[str | None] = found["attributes"].take(order).to_pylist()
        return texts
