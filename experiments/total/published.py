"""The report's buffer with the report's compact stamps, judged from what arrived in which order.

The machines refuse this combination, as it cannot keep its promise: the stamp of a high-ranked
event names no lower-ranked predecessor, so nothing makes it wait for one (errata R7). Without a
time limit only the order of arrivals matters, so the arrivals of an unbuffered run are enough.

The reading is a charitable one: a tagged event counts as received. Taken literally it would not
move the subscriber's clock, and no later event of its topic would ever be "one unit greater".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Arrival = tuple[str, bool]  # an event, and whether it was delivered in order
Stamps = Mapping[str, tuple[str, Mapping[str, int]]]  # event -> its topic and its stamp


def infinite_buffer(arrivals: Sequence[Arrival], stamps: Stamps) -> list[Arrival]:
    """Deliveries of a subscriber that waits for everything a stamp names (section 5)."""
    received: dict[str, int] = {}
    for event, _ in arrivals:  # the subscription starts below the first number owed
        topic, stamp = stamps[event]
        received[topic] = min(received.get(topic, stamp[topic] - 1), stamp[topic] - 1)
    clock = dict(received)
    delivered: list[Arrival] = []
    waiting: list[str] = []
    for event, _ in arrivals:
        waiting.append(event)
        while ready := [each for each in waiting if _complete(*stamps[each], received)]:
            each = ready[0]
            waiting.remove(each)
            topic, stamp = stamps[each]
            received[topic] = stamp[topic]
            in_order = all(number >= clock.get(t, 0) for t, number in stamp.items())
            delivered.append((each, in_order))
            if in_order:
                clock.update(stamp)
    return delivered


def _complete(topic: str, stamp: Mapping[str, int], received: Mapping[str, int]) -> bool:
    """Whether everything the stamp names has been received."""
    return all(
        received.get(t, number) >= (number - 1 if t == topic else number)
        for t, number in stamp.items()
    )
