"""Reliable: owed events that were never delivered, one subscriber and topic at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from inorder.check.holding import Holding
from inorder.check.verdict import Verdict, judged
from inorder.pipeline.boundary import boundary
from inorder.pipeline.coded import Array, Log, code, parts_of
from inorder.pipeline.matching import Matching
from inorder.pipeline.published import Published

COLUMNS = ("event", "topic", "published_at", "publisher", "seq")

Holdings = dict[tuple[str, str], Holding]


class Owed:
    """Counts what is owed and lost; remembers each subscriber's earliest loss."""

    def __init__(self, published: Published, holdings: Holdings, matching: Matching) -> None:
        self._published = published
        self._holdings: dict[str, list[tuple[str, Holding]]] = {}
        for (subscriber, topic), holding in holdings.items():
            self._holdings.setdefault(subscriber, []).append((topic, holding))
        self._matching = matching
        self._topics = _accepted_by_topic(published)
        self.owed = 0
        self.lost = 0
        # (published_at, subscriber, topic, held since, the events lost at that moment)
        self._earliest: list[tuple[float, str, str, float, Array]] = []

    def waiting(self) -> list[str]:
        """Subscribers not judged yet."""
        return list(self._holdings)

    def judge(self, subscriber: str, delivered: Array) -> None:
        """Judge one subscriber; `delivered` tells for each event whether it was."""
        for topic, holding in self._holdings.pop(subscriber, ()):
            last = holding.last
            if not last.held or topic not in self._topics:
                continue
            events, moments = self._topics[topic]
            begin = int(np.searchsorted(moments, last.since, side="right"))
            due = self._due(holding, events[begin:], moments[begin:])
            lost = due[~delivered[due]]
            self.owed += len(due)
            self.lost += len(lost)
            if len(lost):
                when = self._published.published_at[lost]
                first = float(when.min())
                self._earliest.append((first, subscriber, topic, last.since, lost[when == first]))

    def _due(self, holding: Holding, events: Array, moments: Array) -> Array:
        """Of events published while held, those that pass every filter from then to the end."""
        states = holding.states
        if all(state.where is None for state in states):
            return events
        at = np.array([state.at for state in states])
        # A state is in force for an event unless a later one came strictly before it.
        oldest = np.maximum(1, np.searchsorted(at, moments, side="left")) - 1
        due = np.ones(len(events), dtype=np.bool_)
        for place, state in enumerate(states):
            asked = np.flatnonzero(due & (oldest <= place))
            if state.where is not None and len(asked):
                due[asked] = self._matching.passes(state, events[asked])
        return np.asarray(events[due])

    def verdict(self) -> Verdict:
        counts = {"owed": self.owed, "lost": self.lost}
        return judged("reliable", self.lost, counts, self._witness())

    def _witness(self) -> dict[str, Any] | None:
        if not self._earliest:
            return None
        first = min(each[0] for each in self._earliest)
        ties = [each for each in self._earliest if each[0] == first]
        codes = {int(self._published.code[event]) for each in ties for event in each[4].tolist()}
        names = self._published.names(sorted(codes))
        _, event, subscriber, topic, since = min(
            (first, names[int(self._published.code[event])], subscriber, topic, since)
            for _, subscriber, topic, since, events in ties
            for event in events.tolist()
        )
        return {
            "event": event,
            "subscriber": subscriber,
            "topic": topic,
            "published_at": first,
            "held_since": since,
        }


def check(log: Log, published: Published, holdings: Holdings, matching: Matching) -> Verdict:
    owed = Owed(published, holdings, matching)
    names = log.subscriber_names()
    delivered = np.zeros(len(published), dtype=np.bool_)  # one for all: clearing it would cost
    for rows in log.slices():
        events = published.find(rows)[rows.event]
        for owner, each in enumerate(rows.subscribers.tolist()):
            mine = events[int(rows.bounds[owner]) : int(rows.bounds[owner + 1])]
            mine = mine[mine >= 0]
            delivered[mine] = True
            owed.judge(names[each], delivered)
            delivered[mine] = False
    for name in owed.waiting():  # they delivered nothing at all
        owed.judge(name, delivered)
    return owed.verdict()


def topic_names(published: Published) -> dict[int, str]:
    """The name behind each number of a topic."""
    with boundary(published.table.path):
        topics = published.table.frame.select("topic").distinct()
        found = topics.select(code("topic", published.attempt), "topic").collect()
    number = {int(each): place for place, each in enumerate(published.topics.tolist())}
    return {number[row[0]]: row[1] for row in found}


def _accepted_by_topic(published: Published) -> dict[str, tuple[Array, Array]]:
    """Accepted events of each topic by time of publication, and those times."""
    accepted = np.flatnonzero(published.accepted)
    order = np.lexsort((published.published_at[accepted], published.topic[accepted]))
    accepted = accepted[order]
    names = topic_names(published)
    return {
        names[topic]: (events, published.published_at[events])
        for topic, events in parts_of(published.topic[accepted], accepted)
    }
