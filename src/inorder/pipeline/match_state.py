"""What every subscriber holds: the changelog of subscriptions, applied row by row.

Rule 1: a topic is held under one filter at a time, as everywhere in inorder: a second `subscribe`
        of a held topic, like a `replace`, puts another filter in the place of the first.
Rule 2: a `set` changes the parameters it names and keeps the others; with a `where` of its own it
        changes the predicate too. It needs a topic that is held with a filter.
Rule 3: without topics `set`, `replace` and `unsubscribe` mean all that the subscriber holds (`set`:
        with a filter). An `unsubscribe` of what is not held changes nothing.
Rule 4: rows are looked at all together before any is taken: a refused change changes nothing.

Rows are applied by version, time, `after`, and as they came.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import isfinite
from typing import Any

import msgspec
from msgspec import Struct

from inorder.check.holding import SET, SUBSCRIBE, UNSUBSCRIBE, json_object
from inorder.check.trace import SubscriptionRow
from inorder.content.door import topic_problem
from inorder.content.predicate import Predicate
from inorder.content.skeleton import Filling
from inorder.content.subscription import checked_forms
from inorder.core.errors import BadTrace, Misuse, PredicateError, TooLarge, UnknownName
from inorder.core.limits import MATCH_HOLDINGS_MAX, MATCH_PREDICATES_KEPT

REPLACE = "replace"
OPS = [REPLACE, SET, SUBSCRIBE, UNSUBSCRIBE]

parsed = lru_cache(maxsize=MATCH_PREDICATES_KEPT)(Predicate.parse)


class Held(Struct, frozen=True, gc=False):
    """How a topic is held: without `where` the whole of it."""

    where: str | None = None
    values: dict[str, Filling] = {}


# By subscriber and topic; None is what is not held any more.
Changes = dict[str, dict[str, Held | None]]


class _Given(Struct):
    """A change as callers write it: the columns of a trace, most of them optional."""

    subscriber: str
    topics: list[str] = []
    op: str = SUBSCRIBE
    where: str | None = None
    parameters: str | dict[str, Any] = "{}"
    at: float = 0.0
    after: int | None = None
    version: int = 0


def rows_of(given: Iterable[Any]) -> list[SubscriptionRow]:
    """Changes in the order they apply; each is a mapping, a row of Spark or of a trace.

    >>> change = {"subscriber": "s", "topics": ["t"], "where": "x < :n", "parameters": {"n": 3}}
    >>> [row] = rows_of([change])
    >>> row.op, row.parameters
    ('subscribe', '{"n": 3}')
    """
    found: list[_Given] = []
    for number, each in enumerate(given, 1):
        if hasattr(each, "asDict"):  # a row of Spark
            each = each.asDict()
        if isinstance(each, Mapping):
            each = {name: value for name, value in each.items() if value is not None}
        try:
            row = msgspec.convert(each, _Given, from_attributes=True)
        except msgspec.ValidationError as error:
            raise Misuse(f"subscription {number}: {error}") from None
        if not isfinite(row.at):
            raise Misuse(f"subscription {number}: its time is {row.at}")
        found.append(row)
    found.sort(key=lambda row: (row.version, row.at, row.after or 0))
    return [
        SubscriptionRow(
            row.subscriber, row.op, row.topics, row.where, _text(row.parameters), row.at, row.after
        )
        for row in found
    ]


def _text(parameters: str | dict[str, Any]) -> str:
    if isinstance(parameters, str):
        return parameters or "{}"
    try:
        return json.dumps(parameters)
    except (TypeError, ValueError) as error:
        raise Misuse(f"parameters cannot be written as JSON: {error}") from None


class Holdings:
    """All that is held at one version.

    >>> holdings = Holdings()
    >>> rows = rows_of([{"subscriber": "s", "topics": ["t"], "where": "price < 10"}])
    >>> holdings.take(holdings.staged(rows))
    >>> [(subscriber, topic, held.where) for subscriber, topic, held in holdings]
    [('s', 't', 'price < 10')]
    """

    def __init__(self) -> None:
        self._held: dict[str, dict[str, Held]] = {}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[tuple[str, str, Held]]:
        for subscriber, mine in self._held.items():
            for topic, held in mine.items():
                yield subscriber, topic, held

    def rows(self) -> list[SubscriptionRow]:
        """The same as subscriptions anew."""
        return [
            SubscriptionRow(s, SUBSCRIBE, [topic], held.where, json.dumps(held.values), 0.0)
            for s, topic, held in self
        ]

    def changes(self) -> Changes:
        """The same as changes from nothing."""
        return {subscriber: {**mine} for subscriber, mine in self._held.items()}

    def staged(self, rows: Iterable[SubscriptionRow]) -> Changes:
        """What these rows change; nothing is changed yet."""
        changes: Changes = {}
        for row in rows:
            try:
                changes.setdefault(row.subscriber, {}).update(self._next(row, changes))
            except BadTrace as error:
                raise Misuse(f"{_name(row)}: {error.problem}") from None
            except PredicateError as error:
                problem = f"{error.problem} ({_name(row)})"
                raise PredicateError(error.code, problem, error.column, error.text) from None
            except (TooLarge, UnknownName):
                raise
            except Misuse as error:
                raise Misuse(f"{_name(row)}: {error}") from None
        size = self._size + sum(self._growth(s, mine) for s, mine in changes.items())
        if size > MATCH_HOLDINGS_MAX:
            raise TooLarge("number of topics held", size, MATCH_HOLDINGS_MAX)
        return changes

    def take(self, changes: Changes) -> None:
        for subscriber, mine in changes.items():
            self._size += self._growth(subscriber, mine)
            held = self._held.setdefault(subscriber, {})
            for topic, each in mine.items():
                if each is None:
                    held.pop(topic, None)
                else:
                    held[topic] = each
            if not held:
                del self._held[subscriber]

    def _growth(self, subscriber: str, mine: Mapping[str, Held | None]) -> int:
        held = self._held.get(subscriber, {})
        return sum((each is not None) - (topic in held) for topic, each in mine.items())

    def _next(self, row: SubscriptionRow, changes: Changes) -> dict[str, Held | None]:
        """What one row makes of the topics it is about."""
        if row.op not in OPS:
            raise UnknownName(f"op of {_name(row)}", row.op, OPS)
        for topic in row.topics:
            if trouble := topic_problem(topic):
                raise Misuse(trouble)
        values = json_object(row.parameters, "parameters", "")
        before, staged = self._held.get(row.subscriber, {}), changes.get(row.subscriber, {})
        topics = row.topics or _meant(row, {**before, **staged})
        # A topic that earlier rows dropped is staged as None: not held, whatever was before.
        present = {t: staged[t] if t in staged else before.get(t) for t in topics}
        if row.op == UNSUBSCRIBE:
            return {topic: None for topic in topics if present[topic]}
        if row.op == SET:
            return {topic: _moved(present[topic], topic, row, values) for topic in topics}
        if row.op == REPLACE and None in present.values():
            missing = next(topic for topic in topics if present[topic] is None)
            raise _unknown(missing, "is not held")
        return dict.fromkeys(topics, _checked(row.where, values))


def _meant(row: SubscriptionRow, present: Mapping[str, Held | None]) -> Sequence[str]:
    """The topics of a row that names none."""
    if row.op == SUBSCRIBE:
        raise Misuse("subscribes to no topic")
    held = {topic: each for topic, each in present.items() if each is not None}
    if row.op == SET:
        held = {topic: each for topic, each in held.items() if each.where is not None}
    return sorted(held)


def _checked(
    where: str | None, values: Mapping[str, Any], before: Mapping[str, Any] | None = None
) -> Held:
    if where is None:
        if values:
            raise Misuse("parameters without a where")
        return Held()
    predicate = parsed(where)
    checked = predicate.check(values, before)
    checked_forms(predicate, checked)
    return Held(where, checked)


def _moved(held: Held | None, topic: str, row: SubscriptionRow, values: Mapping[str, Any]) -> Held:
    if held is None or (held.where is None and row.where is None):
        raise _unknown(topic, "is not held with a filter")
    return _checked(held.where if row.where is None else row.where, values, held.values)


def _unknown(topic: str, problem: str) -> PredicateError:
    return PredicateError("UNKNOWN_SUBSCRIPTION", f"topic {topic!r} {problem}")


def _name(row: SubscriptionRow) -> str:
    return f"{row.op} of {row.subscriber!r}"
