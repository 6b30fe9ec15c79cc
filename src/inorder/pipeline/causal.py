"""Causal, over any number of subscribers: causes delivered in order after an effect of theirs.

The relation is computed in this process from the events and from what their applications had been
handed (see `past`); then every subscriber's deliveries are checked with running maxima. Where
nothing was handed to anybody, only an application's own earlier events of a topic are causes: the
check is then that of fifo.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from inorder.check.causal import UNTOLD
from inorder.check.verdict import Verdict, judged, not_judged
from inorder.pipeline.coded import Array, Log, Rows, parts_of
from inorder.pipeline.fifo import late_rows
from inorder.pipeline.handed import Handed
from inorder.pipeline.past import Past
from inorder.pipeline.published import Published
from inorder.pipeline.total import first_in_order
from inorder.pipeline.unique import repeated

COLUMNS = ("event", "publisher", "seq", "published_at")

# The one part of the promise that takes all topics together.
_ALL = 0

_CHUNK_CELLS = 4_000_000


class Late:
    """The late deliveries of one verdict; remembers each first one of a subscriber and part."""

    def __init__(self, promise: str) -> None:
        self.promise = promise
        self.late = 0
        # (distance, subscriber, nth, place of the effect, cause, effect): codes
        self.firsts: list[tuple[int, int, int, int, int, int]] = []

    def verdict(self, log: Log, counts: dict[str, int]) -> Verdict:
        if self.late:
            log.verify()
        return judged(self.promise, self.late, {"late": self.late, **counts}, self._witness(log))

    def _witness(self, log: Log) -> dict[str, Any] | None:
        if not self.firsts:
            return None
        names = log.subscriber_names()
        closest = min(self.firsts, key=lambda each: (each[0], names[each[1]], each[2]))
        _, subscriber, nth, before, cause, effect = closest
        known = log.event_names([cause, effect])
        return {
            "cause": known[cause],
            "effect": known[effect],
            "subscriber": names[subscriber],
            "nths": {"effect": before, "cause": nth},
        }


def check(log: Log, published: Published, names: Iterable[str]) -> dict[str, Verdict]:
    """The verdicts of these promises: `causal`, `causal_across_topics`, or both."""
    found = {name: Late(name) for name in names}
    if published.untold and published.untold == len(published):
        return {name: not_judged(name, UNTOLD) for name in found}
    handed = Handed(log, published)
    parts: dict[str, dict[int, Past]] = {}
    if "causal" in found:
        parts["causal"] = _by_topics(published, handed)
    if "causal_across_topics" in found:
        members, pairs = np.arange(len(published)), np.arange(len(handed.event))
        whole = Past(published, members, handed, pairs, _unknown(published))
        parts["causal_across_topics"] = {_ALL: whole}
    in_order = absent = 0
    for rows in log.slices():
        firsts = first_in_order(rows, repeated(rows))
        known_firsts = int(np.count_nonzero(published.find(firsts)[firsts.event] >= 0))
        in_order, absent = in_order + known_firsts, absent + len(firsts) - known_firsts
        if rows.in_order is not None:
            rows = rows.take(np.flatnonzero(rows.in_order))
        events = published.find(rows)[rows.event]
        for name, late in found.items():
            known = [(_ALL, np.flatnonzero(events >= 0))]
            if name == "causal":
                known = _by_topic(published, events)
            for part, places in known:
                if part in parts[name]:  # without any event there is no delivery of one
                    _judge(late, parts[name][part], rows.take(places), events[places], published)
    counts = {"in_order_deliveries": in_order, "absent": absent, "events": len(published)}
    return {
        name: late.verdict(
            log,
            counts
            | {"caused": sum(p.caused for p in parts[name].values()), "untold": published.untold},
        )
        for name, late in found.items()
    }


def _by_topics(published: Published, handed: Handed) -> dict[int, Past]:
    """The past of each topic by itself."""
    local = _unknown(published)
    handed = handed.within_topics()
    pairs = dict(_by_topic(published, handed.event))
    nothing = np.empty(0, dtype=np.int64)
    return {
        topic: Past(published, members, handed, pairs.get(topic, nothing), local)
        for topic, members in _by_topic(published, np.arange(len(published)))
    }


def _unknown(published: Published) -> Array:
    return np.full(len(published), -1, dtype=np.int64)


def _by_topic(published: Published, events: Array) -> list[tuple[int, Array]]:
    """The places of the known events of each topic, in their order."""
    known = np.flatnonzero(events >= 0)
    topic = published.topic[events[known]]
    order = np.argsort(topic, kind="stable")
    return parts_of(topic[order], known[order])


def _judge(found: Late, past: Past, rows: Rows, events: Array, published: Published) -> None:
    """Find the late deliveries among rows whose events are all members of `past`."""
    local = past.local[events]
    stream, number = past.stream[local], past.number[local]
    own, _ = late_rows(rows, stream, number)
    late = np.zeros(len(rows), dtype=np.bool_)
    late[own] = True
    if past.rows == 1:
        _remember(found, rows, late, past, local, None, published)
        found.late += len(own)
        return
    for low, table in past.tables():
        high = low + table.shape[1]
        here = (stream >= low) & (stream < high)
        mask = late & here
        for owner in range(len(rows.subscribers)):
            mine = slice(int(rows.bounds[owner]), int(rows.bounds[owner + 1]))
            if mine.stop > mine.start:
                columns = np.where(here[mine], stream[mine] - low, -1)
                mask[mine] |= _behind(past.base[local[mine]], columns, number[mine], table)
        found.late += int(np.count_nonzero(mask))
        _remember(found, rows, mask, past, local, (low, table), published)


def _behind(base: Array, column: Array, number: Array, table: Array) -> Array:
    """Which of one subscriber's deliveries have a number within the past of those before.

    The running maximum changes only where a base comes for the first time.
    """
    bases, firsts = np.unique(base, return_index=True)
    firsts, bases = firsts[bases > 0], bases[bases > 0]
    order = np.argsort(firsts)
    firsts, bases = firsts[order], bases[order]
    behind = np.zeros(len(base), dtype=np.bool_)
    carried = np.zeros(table.shape[1], dtype=table.dtype)
    step = max(1, _CHUNK_CELLS // table.shape[1])
    for low in range(0, len(bases), step):
        numbers = table[bases[low : low + step]]
        np.maximum(numbers[0], carried, out=numbers[0])
        highest = np.maximum.accumulate(numbers, axis=0)
        carried = highest[-1]
        begin = int(firsts[low]) + 1
        end = int(firsts[low + step]) + 1 if low + step < len(firsts) else len(base)
        at = np.arange(begin, end)
        at = at[column[begin:end] >= 0]
        row = np.searchsorted(firsts[low : low + step], at, side="left") - 1
        behind[at] = highest[row, column[at]] >= number[at]
    return behind


def _remember(
    found: Late,
    rows: Rows,
    late: Array,
    past: Past,
    local: Array,
    numbers: tuple[int, Array] | None,
    published: Published,
) -> None:
    """Each subscriber's first late delivery, with the nearest effect before it."""
    places = np.flatnonzero(late)
    owners, firsts = np.unique(rows.subscriber[places], return_index=True)
    for owner, place in zip(owners.tolist(), places[firsts].tolist(), strict=True):
        before = slice(int(rows.bounds[owner]), place)
        cause = local[place]
        effects = (past.stream[local[before]] == past.stream[cause]) & (
            past.number[local[before]] > past.number[cause]
        )
        if numbers is not None:
            low, table = numbers
            column = table[:, past.stream[cause] - low]
            effects |= column[past.base[local[before]]] >= past.number[cause]
        effect = int(np.flatnonzero(effects)[-1]) + before.start
        found.firsts.append(
            (
                int(rows.nth[place] - rows.nth[effect]),
                int(rows.subscribers[owner]),
                int(rows.nth[place]),
                int(rows.nth[effect]),
                int(published.code[past.members[cause]]),
                int(published.code[past.members[local[effect]]]),
            )
        )
