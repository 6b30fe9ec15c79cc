"""What a subscriber held of a topic, and when.

A subscribe is in force from when it returned until the unsubscribe was called. A second subscribe
of a held topic does not interrupt it: it replaces the filter. A `set` changes the parameters it
names and keeps the others; with a `where` of its own it replaces the predicate too. A `set` or
`unsubscribe` that names no topic means every topic the subscriber holds.

The rows of one (subscriber, topic) are ordered by time, then `after`, then as written. The state
at a delivery is the one left by the last row that precedes it. A row precedes a delivery when the
delivery's `nth` is beyond the row's `after`; without `after`, when its time is not later than
the delivery's (an unsubscribe: earlier, since it was called while the topic was still held).
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from functools import cached_property
from typing import Any

from msgspec import Struct

from inorder.check.trace import DeliveryRow, SubscriptionRow
from inorder.core.errors import BadTrace

SUBSCRIBE = "subscribe"
UNSUBSCRIBE = "unsubscribe"
SET = "set"
OPS = (SUBSCRIBE, UNSUBSCRIBE, SET)


class State(Struct, frozen=True):
    """What holds from `at` on. `since` is when the present, unbroken holding began."""

    held: bool
    at: float
    after: int | None
    since: float
    where: str | None = None
    parameters: dict[str, Any] = {}


class Period(Struct):
    """An unbroken holding: its states, and when it ended; None: it did not."""

    states: list[State]
    until: float | None = None

    @property
    def since(self) -> float:
        return self.states[0].since

    def in_force(self, begin: float, end: float) -> list[State]:
        """The states in force at some moment from `begin` to `end`, both included.

        A change at that very moment may have come before or after: both states are given.
        """
        first = bisect_left(self.states, begin, lo=1, key=lambda state: state.at) - 1
        last = bisect_right(self.states, end, key=lambda state: state.at)
        return self.states[first:last]


NOT_HELD = State(held=False, at=0.0, after=None, since=0.0)


class Holding:
    """The states of one (subscriber, topic), in order."""

    def __init__(self) -> None:
        self.states: list[State] = []
        self._afters: list[int] = []  # usable for bisection while every row has had one, rising

    def add(self, state: State) -> None:
        rising = len(self._afters) == len(self.states)
        if rising and state.after is not None and state.after >= max(self._afters[-1:], default=0):
            self._afters.append(state.after)
        self.states.append(state)

    @property
    def last(self) -> State:
        return self.states[-1] if self.states else NOT_HELD

    def at(self, delivery: DeliveryRow) -> State:
        """The state in force when `delivery` was made."""
        if len(self._afters) == len(self.states):
            count = bisect_left(self._afters, delivery.nth)
            return self.states[count - 1] if count else NOT_HELD
        for state in reversed(self.states):
            if _precedes(state, delivery):
                return state
        return NOT_HELD

    @cached_property
    def periods(self) -> list[Period]:
        """The unbroken holdings, the last of which may still be open."""
        found: list[Period] = []
        for state in self.states:
            if state.held and found and found[-1].until is None:
                found[-1].states.append(state)
            elif state.held:
                found.append(Period([state]))
            elif found and found[-1].until is None:
                found[-1].until = state.at
        return found


def _precedes(state: State, delivery: DeliveryRow) -> bool:
    if state.after is not None:
        return state.after < delivery.nth
    if state.held:
        return state.at <= delivery.delivered_at
    return state.at < delivery.delivered_at


def holdings_of(rows: Iterable[SubscriptionRow], source: str) -> dict[tuple[str, str], Holding]:
    """Replay the subscription rows."""
    held: dict[str, dict[str, Holding]] = {}
    for row in sorted(rows, key=lambda row: (row.at, row.after or 0)):
        mine = held.setdefault(row.subscriber, {})
        parameters = _parameters(row, source)
        named = row.topics
        if not named and row.op != SUBSCRIBE:
            named = [topic for topic in sorted(mine) if mine[topic].last.held]
        for topic in named:
            holding = mine.setdefault(topic, Holding())
            holding.add(_next(holding.last, row, parameters))
    return {
        (subscriber, topic): held[subscriber][topic]
        for subscriber in sorted(held)
        for topic in sorted(held[subscriber])
    }


def _next(state: State, row: SubscriptionRow, parameters: dict[str, Any]) -> State:
    if row.op == SUBSCRIBE:
        since = state.since if state.held else row.at
        return State(True, row.at, row.after, since, row.where, parameters)
    if row.op == UNSUBSCRIBE or not state.held:
        return State(False, row.at, row.after, row.at)
    where = state.where if row.where is None else row.where
    merged = {**state.parameters, **parameters}
    return State(True, row.at, row.after, state.since, where, merged)


def _parameters(row: SubscriptionRow, source: str) -> dict[str, Any]:
    return json_object(row.parameters, f"parameters of {row.subscriber}", source)


def scalars(value: dict[str, Any]) -> dict[str, Any]:
    """What filters see of a value: the single values at its top."""
    return {name: each for name, each in value.items() if not isinstance(each, dict | list)}


def json_object(text: str, what: str, source: str) -> dict[str, Any]:
    """JSON text that must hold an object."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadTrace(source, f"{what}: not JSON ({type(error).__name__})") from None
    if not isinstance(value, dict):
        raise BadTrace(source, f"{what}: not a JSON object")
    return value
