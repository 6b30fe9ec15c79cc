"""What applications had been handed when they published (check/seen.py), as numbers."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

import numpy as np

from inorder.check.seen import counts
from inorder.pipeline.coded import Array, Log
from inorder.pipeline.hashed import factorize
from inorder.pipeline.published import Published

if TYPE_CHECKING:
    from collections.abc import Iterable


class Handed:
    """Pairs (holder, event): the event was handed to the holder's application since its event
    before. Both are numbers in Published.

    `chain` is the place of each event in one line of all, in which an application's events stand
    together in the order published; `application` is dense.
    """

    def __init__(self, log: Log, published: Published) -> None:
        self.application, _ = factorize(published.application)
        self._published = published
        self.chain = np.empty(len(published), dtype=np.int64)
        self.chain[self._ordered()] = np.arange(len(published))
        self.holder, self.event = self._pairs(log)

    def within_topics(self) -> Handed:
        """The pairs of one topic: the holder is the first event of the same application, from the
        old holder on, that is on the topic of the event handed over."""
        topic, topics = self._published.topic, max(1, len(self._published.topics))
        size = max(1, len(topic))
        keys = (self.application.astype(np.int64) * topics + topic) * size + self.chain
        order = np.argsort(keys)
        owner = self.application[self.holder].astype(np.int64)
        stream = owner * topics + topic[self.event]
        at = np.searchsorted(keys[order], stream * size + self.chain[self.holder])
        there = np.flatnonzero(at < len(order))
        holder = order[at[there]]
        same = keys[holder] // size == stream[there]
        found = copy(self)
        found.holder, found.event = holder[same], self.event[there[same]]
        return found

    def _ordered(self) -> Array:
        """The events of each application by number, or by its clock if it has many publishers."""
        published = self._published
        publisher, publishers = factorize(published.publisher)
        pairs = np.unique(np.stack([self.application, publisher]), axis=1)
        several = np.bincount(pairs[0], minlength=int(self.application.max(initial=-1)) + 1) > 1
        by_clock = several[self.application] if len(publisher) else np.zeros(0, dtype=np.bool_)
        times = np.where(by_clock, published.published_at, 0.0)
        name = np.zeros(len(publisher), dtype=np.int64)
        if by_clock.any():
            name = np.where(by_clock, self._places(publishers)[publisher], 0)
        return np.lexsort((published.seq, published.epoch, name, times, self.application))

    def _places(self, codes: Array) -> Array:
        """The place of each publisher's name among all, in the order of names."""
        names = self._published.publisher_names()
        place = {name: number for number, name in enumerate(sorted(names.values()))}
        return np.array([place[names[code]] for code in codes.tolist()], dtype=np.int64)

    def _pairs(self, log: Log) -> tuple[Array, Array]:
        published = self._published
        told = published.told_of  # events that tell of something, with the text
        line = sorted(told, key=lambda event: int(self.chain[event]))
        wanted = _ranges(line, told, self.application, published.table.path)
        holders: list[Array] = []
        events: list[Array] = []
        if wanted:
            code = {name: number for number, name in log.subscriber_names().items()}
            named = {code[name]: ranges for name, ranges in wanted.items() if name in code}
            for rows in log.slices():
                found = published.find(rows)
                for owner, subscriber in enumerate(rows.subscribers.tolist()):
                    mine = slice(int(rows.bounds[owner]), int(rows.bounds[owner + 1]))
                    for holder, low, high in named.get(subscriber, ()):
                        begin, end = np.searchsorted(rows.nth[mine], [low, high], side="right")
                        part = found[rows.event[mine][begin:end]]
                        part = part[part >= 0]
                        holders.append(np.full(len(part), holder, dtype=np.int64))
                        events.append(part)
        if not holders:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        return np.concatenate(holders), np.concatenate(events)


def _ranges(
    line: Iterable[int], told: dict[int, str], application: Array, path: str
) -> dict[str, list[tuple[int, int, int]]]:
    """By subscriber: (event, above which `nth`, up to which) its application had been handed."""
    found: dict[str, list[tuple[int, int, int]]] = {}
    upto: dict[tuple[int, str], int] = {}
    for event in line:
        owner = int(application[event])
        moved = counts(told[event], "an event", path)
        for name in sorted(moved):
            before = upto.get((owner, name), 0)
            if moved[name] > before:
                found.setdefault(name, []).append((event, before, moved[name]))
                upto[owner, name] = moved[name]
    return found
