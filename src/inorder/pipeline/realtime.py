"""Realtime, by slice: deliveries accepted before something delivered earlier was published."""

from __future__ import annotations

from typing import Any

import numpy as np

from inorder.check.realtime import CLOCKS, NO_TIMES
from inorder.check.verdict import Verdict, judged, not_judged
from inorder.pipeline.coded import Array, Log, Rows
from inorder.pipeline.hashed import running_maximum
from inorder.pipeline.published import Published

COLUMNS = ("event", "publisher", "seq", "published_at", "accepted_at")

# (distance, subscriber, place of the late one, place of the one before, late event, event before)
_First = tuple[int, int, int, int, int, int]


def check(log: Log, published: Published, clock_error: float | None) -> Verdict:
    if not published.fates_known:
        return not_judged("realtime", NO_TIMES)
    if clock_error is None:
        return not_judged("realtime", CLOCKS)
    never = np.isnan(published.accepted_at)
    accepted = np.where(never, np.inf, published.accepted_at + clock_error)
    counts = {"late": 0, "in_order_deliveries": 0, "absent": 0, "unaccepted": 0}
    firsts: list[_First] = []
    for rows in log.slices():
        events = published.find(rows)[rows.event]
        chosen = events >= 0
        in_order = len(rows)
        if rows.in_order is not None:
            chosen &= rows.in_order
            in_order = int(np.count_nonzero(rows.in_order))
        rows, events = rows.take(np.flatnonzero(chosen)), events[chosen]
        counts["in_order_deliveries"] += len(rows)
        counts["absent"] += in_order - len(rows)
        counts["unaccepted"] += int(np.count_nonzero(never[events]))
        late = np.flatnonzero(accepted[events] < _latest(rows, published.published_at[events]))
        counts["late"] += len(late)
        firsts += _firsts(rows, events, late, accepted, published)
    if counts["late"]:
        log.verify()
    return judged("realtime", counts["late"], counts, _witness(log, published, firsts))


def _latest(rows: Rows, moments: Array) -> Array:
    """The latest publication of what each subscriber had been given before."""
    latest = np.full(len(rows), -np.inf)
    if len(rows):
        highest = running_maximum(moments, rows.subscriber)
        latest[1:] = highest[:-1]
        latest[rows.bounds[:-1][np.diff(rows.bounds) > 0]] = -np.inf
    return latest


def _firsts(
    rows: Rows, events: Array, late: Array, accepted: Array, published: Published
) -> list[_First]:
    """Each subscriber's first late delivery, with the nearest before it that it precedes."""
    found: list[_First] = []
    owners, places = np.unique(rows.subscriber[late], return_index=True)
    for owner, place in zip(owners.tolist(), late[places].tolist(), strict=True):
        begin = int(rows.bounds[owner])
        earlier = published.published_at[events[begin:place]] > accepted[events[place]]
        before = int(np.flatnonzero(earlier)[-1]) + begin
        nth, place_before = int(rows.nth[place]), int(rows.nth[before])
        who = int(rows.subscribers[owner])
        found.append(
            (nth - place_before, who, nth, place_before, int(events[place]), int(events[before]))
        )
    return found


def _witness(log: Log, published: Published, firsts: list[_First]) -> dict[str, Any] | None:
    if not firsts:
        return None
    names = log.subscriber_names()
    _, who, nth, place, late, before = min(
        firsts, key=lambda each: (each[0], names[each[1]], each[2])
    )
    codes = [int(published.code[event]) for event in (late, before)]
    known = published.names(codes)
    return {
        "late": known[codes[0]],
        "before": known[codes[1]],
        "subscriber": names[who],
        "accepted_at": float(published.accepted_at[late]),
        "published_at": float(published.published_at[before]),
        "nths": {"before": place, "late": nth},
    }
