"""What an application had been handed when it published, from the `seen` of its events.

Rule 1: the counts of an application only rise: `seen` names those that have moved, and a smaller
        number than an earlier one changes nothing.
Rule 2: an event without `seen` tells nothing new; what the events before it told still holds.
"""

from __future__ import annotations

from bisect import bisect_right

import msgspec

from inorder.check.history import History
from inorder.check.trace import DeliveryRow
from inorder.core.errors import BadTrace

# "Nothing has moved", as the drivers write it.
NOTHING = "{}"

_counts = msgspec.json.Decoder(dict[str, int]).decode


def counts(text: str, event: str, source: str) -> dict[str, int]:
    """The text of `seen` as counts."""
    try:
        return _counts(text)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise BadTrace(source, f"`seen` of {event}: {error}") from None


def handed(history: History) -> dict[str, list[DeliveryRow]]:
    """For each event the deliveries made to its application since the event before; events between
    which nothing was handed over are left out."""
    found: dict[str, list[DeliveryRow]] = {}
    nths = {name: [row.nth for row in rows] for name, rows in history.by_subscriber.items()}
    for events in history.applications.values():
        upto: dict[str, int] = {}
        for event in events:
            if event.seen is None or event.seen == NOTHING:
                continue
            fresh: list[DeliveryRow] = []
            moved = counts(event.seen, event.event, history.source)
            for name in sorted(moved):
                known = nths.get(name, [])
                end = bisect_right(known, moved[name])
                if end > upto.get(name, 0):
                    fresh += history.by_subscriber[name][upto.get(name, 0) : end]
                    upto[name] = end
            if fresh:
                found[event.event] = fresh
    return found
