"""Accepted: every publication gets an answer.

Definitions. A publication was answered when its publisher was told that it is accepted or refused.
`unknown` is no broken promise: the publisher's life ended first, or the run did. An event without
any outcome was never answered; that is fair only while it is *young*: the run was cut less than the
window after the publication.

Counting. One violation is an event without an answer that is not young. The witness is the one
published earliest, then by name.
"""

from __future__ import annotations

from inorder.check.ending import Ending
from inorder.check.history import History
from inorder.check.trace import EventRow
from inorder.check.verdict import Verdict, judged, not_judged

BROKE_ACCEPTED = "broke Accepted - every publication is accepted or refused, or its publisher ended"

NO_OUTCOME = "needs `outcome` of the events: what their publishers were told"
NO_ENDING = "trace.json does not say how the run ended: what has no answer may still be under way"
NOT_COMPLETE = "the trace is not complete: an answer may be missing"

OUTCOMES = ("accepted", "refused", "unknown")


def check(history: History) -> Verdict:
    if why := missing(history):
        return not_judged("accepted", why)
    ending = history.ending
    counts = {"published": len(history.events or ()), **dict.fromkeys((*OUTCOMES, "young"), 0)}
    never: list[EventRow] = []
    for event in history.events or ():
        if kind := outcome(event):
            counts[kind] += 1
        elif ending is not None and is_young(ending, event.published_at):
            counts["young"] += 1
        else:
            never.append(event)
    counts["never"] = len(never)
    witness = None
    if never:
        first = min(never, key=lambda event: (event.published_at, event.event))
        witness = {
            "event": first.event,
            "publisher": first.publisher,
            "topic": first.topic,
            "published_at": first.published_at,
            "outcome": None,
        }
    return judged("accepted", len(never), counts, witness)


def missing(history: History) -> str:
    """What the history lacks, or nothing."""
    if history.events is None:
        return "needs the events"
    if not history.complete:
        return NOT_COMPLETE
    unanswered = [event for event in history.events if not outcome(event)]
    if history.ending is None and unanswered:
        return NO_OUTCOME if len(unanswered) == len(history.events) else NO_ENDING
    return ""


def outcome(event: EventRow) -> str | None:
    """What the publisher was told; who knows when an event was accepted knows that it was."""
    if event.outcome is None and event.accepted_at is not None:
        return "accepted"
    return event.outcome


def is_young(ending: Ending, published_at: float) -> bool:
    """Whether the answer to a publication may still have been under way when the run was cut."""
    return not ending.quiet and ending.ended_at - published_at < ending.within
