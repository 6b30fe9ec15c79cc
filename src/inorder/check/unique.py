"""Unique: no subscriber delivers an event twice.

Counting. Each delivery of an event that the subscriber has delivered before, tagged or not, is one
violation. The witness is the repeat that comes soonest after the first delivery, then by
subscriber, then the earliest.
"""

from __future__ import annotations

from inorder.check.history import History
from inorder.check.trace import DeliveryRow
from inorder.check.verdict import Verdict, judged

BROKE_UNIQUE = "broke Unique - no subscriber delivers an event twice"


def check(history: History) -> Verdict:
    repeats = 0
    closest: tuple[int, str, int] | None = None
    repeated: DeliveryRow | None = None
    for name, rows in history.by_subscriber.items():
        first: dict[str, int] = {}
        for row in rows:
            place = first.setdefault(row.event, row.nth)
            if place == row.nth:
                continue
            repeats += 1
            distance = (row.nth - place, name, row.nth)
            if closest is None or distance < closest:
                closest, repeated = distance, row
    witness = None
    if repeated is not None and closest is not None:
        witness = {
            "event": repeated.event,
            "subscriber": repeated.subscriber,
            "nths": [repeated.nth - closest[0], repeated.nth],
        }
    counts = {"deliveries": len(history.deliveries), "repeats": repeats}
    return judged("unique", repeats, counts, witness)
