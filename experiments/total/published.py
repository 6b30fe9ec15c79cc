"""The report's buffer with the report's compact stamps, judged from what arrived in which order.

The machines refuse this combination, as it cannot keep its promise: the stamp of a high-ranked
event names no lower-ranked predecessor, so nothing makes it wait for one (errata R7). Without a
time limit only the order of arrivals matters, so the arrivals of an unbuffered run are enough.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Arrival = tuple[str, bool]  # an event, and whether it was delivered in order
Stamps = Mapping[str, tuple[str, Mapping[str, int]]]  # event -> its topic and its stamp


def infinite_buffer(arrivals: Sequence[Arrival], stamps: Stamps) -> list[Arrival]:
    """Deliveries of a subscriber that waits while a smaller stamp may be missing (section 5)."""
    clock: dict[str, int] = {}
    delivered: list[Arrival] = []
    waiting: list[str] = []
    for event, _ in arrivals:
        waiting.append(event)
        moved = True
        while moved:
            moved = False
            for each in list(waiting):
                verdict = _verdict(stamps[each], clock)
                if verdict is None:
                    continue
                waiting.remove(each)
                delivered.append((each, verdict))
                moved = True
                if verdict:
                    for topic, number in stamps[each][1].items():
                        clock[topic] = max(clock.get(topic, 0), number)
    return delivered


def _verdict(stamped: tuple[str, Mapping[str, int]], clock: Mapping[str, int]) -> bool | None:
    """In order, out of order, or (None) not yet to be said."""
    topic, stamp = stamped
    own = stamp[topic] - clock.get(topic, 0)
    others = [number - clock.get(t, 0) for t, number in stamp.items() if t != topic]
    if own <= 0 or any(gap < 0 for gap in others):
        return False
    return True if own == 1 and not any(others) else None
