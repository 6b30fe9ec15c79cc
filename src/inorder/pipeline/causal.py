"""Causal, over any number of subscribers: causes delivered in order after an effect of theirs.

The relation is computed in this process from the events and from what publishers delivered
(see `past`); then every subscriber's deliveries are checked with running maxima. A publisher that
delivers nothing has only its own earlier events as causes: the check is then that of fifo.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from inorder.check.verdict import Verdict, judged, not_judged
from inorder.pipeline.coded import Array, Log, Rows, parts_of
from inorder.pipeline.fifo import late_rows
from inorder.pipeline.past import Past, Seen
from inorder.pipeline.published import NO_AFTER, Published
from inorder.pipeline.total import first_in_order
from inorder.pipeline.unique import repeated

COLUMNS = ("event", "publisher", "seq", "published_at")

_CHUNK_CELLS = 4_000_000


class Late:
    """The late deliveries of one verdict; remembers each first one of a subscriber and part."""

    def __init__(self, promise: str) -> None:
        self.promise = promise
        self.late = 0
        # (distance, subscriber, nth, place of the effect, cause, effect): codes
        self.firsts: list[tuple[int, int, int, int, int, int]] = []

    def verdict(self, log: Log, in_order_deliveries: int) -> Verdict:
        if self.late:
            log.verify()
        counts = {"late": self.late, "in_order_deliveries": in_order_deliveries}
        return judged(self.promise, self.late, counts, self._witness(log))

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


def check(log: Log, published: Published) -> Verdict:
    timed = bool((published.after == NO_AFTER).any())
    if timed and not log.table.has("delivered_at"):
        subscribers = log.nodes(np.array(list(log.subscriber_names())))
        if np.isin(subscribers, published.publisher[published.after == NO_AFTER]).any():
            return not_judged("causal", "needs `after` on every event, or delivered_at")
        timed = False
    seen = _seen(log, published, timed)
    main, across = Late("causal"), Late("across_topics")
    pasts = _pasts(published, seen)
    whole = Past(published, np.arange(len(published)), seen, _unknown(published))
    in_order = 0
    for rows in log.slices():
        mask = repeated(rows)
        in_order += len(first_in_order(rows, mask))
        if rows.in_order is not None:
            rows = rows.take(np.flatnonzero(rows.in_order))
        events = published.find(rows)[rows.event]
        for topic, part in _by_topic(published, events):
            _judge(main, pasts[topic], rows.take(part), events[part], published)
        known = np.flatnonzero(events >= 0)
        _judge(across, whole, rows.take(known), events[known], published)
    verdict = main.verdict(log, in_order)
    verdict.also["across_topics"] = across.verdict(log, in_order)
    return verdict


def _seen(log: Log, published: Published, timed: bool) -> Seen:
    """The deliveries of nodes that publish, of events that were published."""
    from pyspark.sql import functions as F

    more = {"delivered_at": F.col("delivered_at")} if timed else {}
    required = ("subscriber", "nth", "event", *more)
    publishers = np.unique(published.publisher)
    parts = []
    for rows in log.slices(more, required):
        nodes = log.nodes(rows.subscribers)
        chosen = np.flatnonzero(np.isin(nodes, publishers)[rows.subscriber])
        events = published.find(rows)[rows.event[chosen]]
        chosen, events = chosen[events >= 0], events[events >= 0]
        times = rows.more["delivered_at"][chosen] if timed else np.empty(0)
        codes = nodes[rows.subscriber[chosen]]
        parts.append((codes, rows.nth[chosen], events, times))
    joined = [np.concatenate([part[place] for part in parts]) for place in range(4)]
    seen = Seen(joined[0], joined[1], joined[2], joined[3] if timed else None)
    return seen.take(np.argsort(seen.node, kind="stable"))


def _pasts(published: Published, seen: Seen) -> dict[int, Past]:
    """The past of each topic by itself."""
    local = _unknown(published)
    events = dict(_by_topic(published, np.arange(len(published))))
    views = dict(_by_topic(published, seen.event))
    nothing = np.empty(0, dtype=np.int64)
    return {
        topic: Past(published, members, seen.take(views.get(topic, nothing)), local)
        for topic, members in events.items()
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
    publisher, number = past.publisher[local], past.number[local]
    own, _ = late_rows(rows, publisher, number)
    late = np.zeros(len(rows), dtype=np.bool_)
    late[own] = True
    if past.rows == 1:
        _remember(found, rows, late, past, local, None, published)
        found.late += len(own)
        return
    for low, table in past.tables():
        high = low + table.shape[1]
        here = (publisher >= low) & (publisher < high)
        mask = late & here
        for owner in range(len(rows.subscribers)):
            mine = slice(int(rows.bounds[owner]), int(rows.bounds[owner + 1]))
            if mine.stop > mine.start:
                columns = np.where(here[mine], publisher[mine] - low, -1)
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
        effects = (past.publisher[local[before]] == past.publisher[cause]) & (
            past.number[local[before]] > past.number[cause]
        )
        if numbers is not None:
            low, table = numbers
            column = table[:, past.publisher[cause] - low]
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
