"""Reliable: owed events that were never delivered, one subscriber and topic at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from inorder.check.holding import Holding, Period
from inorder.check.verdict import Verdict, judged
from inorder.pipeline.boundary import boundary
from inorder.pipeline.coded import Array, Log, code, parts_of
from inorder.pipeline.matching import Matching
from inorder.pipeline.published import Published

COLUMNS = ("event", "topic", "published_at", "publisher", "seq")

Holdings = dict[tuple[str, str], Holding]


class Owed:
    """Counts what is owed and lost; remembers each subscriber's earliest loss.

    `within` is the window, `end` until when what was open at the end lasted (check/reliable.py).
    """

    def __init__(
        self,
        published: Published,
        holdings: Holdings,
        matching: Matching,
        within: float,
        end: float,
    ) -> None:
        self._published = published
        self._holdings: dict[str, list[tuple[str, Holding]]] = {}
        for (subscriber, topic), holding in holdings.items():
            self._holdings.setdefault(subscriber, []).append((topic, holding))
        self._matching = matching
        self._within = within
        self._end = end
        self._topics = _accepted_by_topic(published)
        self.deliverable = 0
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
            if topic not in self._topics:
                continue
            events, moments, accepted = self._topics[topic]
            until = np.maximum(moments, accepted) + self._within
            deliverable = np.zeros(len(events), dtype=np.bool_)
            for period in holding.periods:
                near = period.since <= until
                if period.until is not None:
                    near &= period.until >= moments
                some = np.flatnonzero(near)
                may, must = self._pass(period, events[some], moments[some], until[some])
                deliverable[some[may]] = True
                lasts = self._lasts(period, moments[some], until[some])
                due = events[some[must & lasts]]
                self._count(subscriber, topic, period, due, due[~delivered[due]])
            self.deliverable += int(np.count_nonzero(deliverable))

    def _count(self, subscriber: str, topic: str, period: Period, due: Array, lost: Array) -> None:
        self.owed += len(due)
        self.lost += len(lost)
        if len(lost):
            when = self._published.published_at[lost]
            first = float(when.min())
            self._earliest.append((first, subscriber, topic, period.since, lost[when == first]))

    def _lasts(self, period: Period, moments: Array, until: Array) -> Array:
        """Whether the topic was held from before the publication, and long enough."""
        long_enough = self._end >= until if period.until is None else period.until > until
        return np.asarray((period.since < moments) & long_enough)

    def _pass(
        self, period: Period, events: Array, moments: Array, until: Array
    ) -> tuple[Array, Array]:
        """For each event whether it passes some, and whether it passes all, of the filters in force
        from the window before its publication to the window after its acceptance."""
        may = np.zeros(len(events), dtype=np.bool_)
        must = np.ones(len(events), dtype=np.bool_)
        if all(state.where is None for state in period.states):
            return must.copy(), must
        at = np.array([state.at for state in period.states])
        # A state is in force unless a later one came strictly before the beginning.
        first = np.maximum(1, np.searchsorted(at, moments - self._within, side="left")) - 1
        last = np.searchsorted(at, until, side="right")
        for place, state in enumerate(period.states):
            asked = np.flatnonzero((first <= place) & (place < last) & (must | ~may))
            if len(asked):
                passed = self._matching.passes(state, events[asked])
                may[asked] |= passed
                must[asked] &= passed
        return may, must

    def verdict(self) -> Verdict:
        counts = {"deliverable": self.deliverable, "owed": self.owed, "lost": self.lost}
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


def check(
    log: Log,
    published: Published,
    holdings: Holdings,
    matching: Matching,
    within: float,
    end: float,
) -> Verdict:
    owed = Owed(published, holdings, matching, within, end)
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


def _accepted_by_topic(published: Published) -> dict[str, tuple[Array, Array, Array]]:
    """Accepted events of each topic by time of publication; those times, and of acceptance.

    Where nobody recorded acceptance, an event counts as accepted when it was published.
    """
    chosen = np.flatnonzero(published.accepted)
    order = np.lexsort((published.published_at[chosen], published.topic[chosen]))
    chosen = chosen[order]
    names = topic_names(published)
    accepted = np.where(published.fates_known, published.accepted_at, published.published_at)
    return {
        names[topic]: (events, published.published_at[events], accepted[events])
        for topic, events in parts_of(published.topic[chosen], chosen)
    }
