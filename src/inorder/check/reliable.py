"""Reliable: every event owed to a subscriber is delivered to it.

Definitions. An accepted event is *owed* to a subscriber when the subscriber held its topic without
a break from before the publication until the window after the acceptance; and, if that holding is
filtered, when the event matches under every predicate and all parameters that were in force from
the window before the publication to the window after the acceptance. An open holding lasts until
the run ended, and for ever if the run was quiet then. A tagged delivery is a delivery. Where nobody
recorded acceptance, every event counts as accepted when it was published.

The window (`within`) is what moving parts are given: an event is in the network for a while, and a
change of parameters is known here before it is known there. A pair of an event and a subscriber is
*deliverable* when the subscriber held the topic at some moment from the publication to the window
after the acceptance, with a filter that the event passes. Pairs that are deliverable and not owed
are not judged; `deliverable` and `owed` say how many there are.

Counting. One violation is an owed event that a subscriber never delivered. The witness is the one
published earliest, then by event, then by subscriber. Beside it, `integrity` is reported.
"""

from __future__ import annotations

from inorder.check import integrity
from inorder.check.ending import lasts_until
from inorder.check.filter import matches_state
from inorder.check.history import History
from inorder.check.holding import Holding, Period, State
from inorder.check.trace import EventRow
from inorder.check.verdict import Verdict, judged, not_judged

BROKE_RELIABLE = "broke Reliable - every event owed to a subscriber is delivered to it"


def check(history: History) -> Verdict:
    verdict = _lost(history)
    verdict.also["integrity"] = unsound = integrity.check(history)
    if verdict.judged and unsound.judged:
        verdict.counts.update(unsound.counts)
    return verdict


def _lost(history: History) -> Verdict:
    if history.events is None or history.subscriptions is None:
        return not_judged("reliable", "needs the events and the subscriptions")
    if not history.complete:
        return not_judged("reliable", "the trace is not complete: its end may be missing")
    delivered = {(row.subscriber, row.event) for row in history.deliveries}
    topics: dict[str, list[EventRow]] = {}
    for event in history.events:
        if event.accepted_at is not None or not history.accepted_known:
            topics.setdefault(event.topic, []).append(event)
    end = lasts_until(history.ending, history.latest)
    counts = {"deliverable": 0, "owed": 0, "lost": 0}
    lost: list[tuple[float, str, str, str, float]] = []
    for (name, topic), holding in history.holdings.items():
        for event in topics.get(topic, ()):
            deliverable, since = _due(history, holding, event, end)
            counts["deliverable"] += deliverable
            if since is None:
                continue
            counts["owed"] += 1
            if (name, event.event) not in delivered:
                lost.append((event.published_at, event.event, name, topic, since))
    counts["lost"] = len(lost)
    witness = None
    if lost:
        published_at, missed, name, topic, since = min(lost)
        witness = {
            "event": missed,
            "subscriber": name,
            "topic": topic,
            "published_at": published_at,
            "held_since": since,
        }
    return judged("reliable", len(lost), counts, witness)


def _due(
    history: History, holding: Holding, event: EventRow, end: float
) -> tuple[bool, float | None]:
    """Whether the event may be delivered; and, if it is owed, since when its topic was held."""
    published, within = event.published_at, history.within
    # An acceptance before the publication is the work of two clocks.
    until = max(published, event.accepted_at or published) + within
    deliverable = False
    owed: float | None = None
    for period in holding.periods:
        if period.since > until or (period.until is not None and period.until < published):
            continue
        states = period.in_force(published - within, until)
        passed = _passed(history, states, event)
        deliverable = deliverable or True in passed
        if False not in passed and _lasts(period, published, until, end):
            owed = period.since
    return deliverable, owed


def _passed(history: History, states: list[State], event: EventRow) -> set[bool]:
    """What the filters say of the event: as soon as they differ, the rest does not matter."""
    passed: set[bool] = set()
    for state in states:
        passed.add(matches_state(history, state, event))
        if len(passed) == 2:
            break
    return passed


def _lasts(period: Period, published: float, until: float, end: float) -> bool:
    """Whether the topic was held from before the publication, and long enough."""
    if period.since >= published:
        return False
    return end >= until if period.until is None else period.until > until
