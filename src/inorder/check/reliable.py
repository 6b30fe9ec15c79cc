"""Reliable: every event owed to a subscriber is delivered to it.

Definitions. An accepted event is *owed* to a subscriber when the subscriber's holding of its topic
began strictly before the event was published, is unbroken since, and is still open at the end of
the trace; and, if it is filtered, when the event matches under every predicate and all parameters
in force at some moment from the publication to the end. A tagged delivery is a delivery. Where
nobody recorded acceptance, every event counts as accepted.

Counting. One violation is an owed event that a subscriber never delivered. The witness is the one
published earliest, then by event, then by subscriber. Beside it, `integrity` is reported.
"""

from __future__ import annotations

from inorder.check import integrity
from inorder.check.filter import matches_state
from inorder.check.history import History
from inorder.check.holding import Holding
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
    owed = 0
    lost: list[tuple[float, str, str, str, float]] = []
    for (name, topic), holding in history.holdings.items():
        for event in topics.get(topic, ()):
            if not is_owed(history, holding, event):
                continue
            owed += 1
            if (name, event.event) not in delivered:
                since = holding.last.since
                lost.append((event.published_at, event.event, name, topic, since))
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
    return judged("reliable", len(lost), {"owed": owed, "lost": len(lost)}, witness)


def is_owed(history: History, holding: Holding, event: EventRow) -> bool:
    """Whether an accepted event of the topic is owed, given what was held of the topic."""
    last = holding.last
    if not last.held or last.since >= event.published_at:
        return False
    states = holding.since_publication(event.published_at)
    return all(matches_state(history, state, event) for state in states)
