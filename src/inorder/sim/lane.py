"""One publisher, one receiver: a stream of sim/path.py played to a FIFO receiver, on virtual time.

No world, no nodes: many receivers with different options can hear exactly the same arrivals, which
is how the paper compares them ("Probabilistic FIFO Ordering in Publish/Subscribe Networks", section
IV-B). Timers run to the instant; arrivals of the same instant come first.
"""

from __future__ import annotations

from msgspec import Struct

from inorder.core.effect import Deliver
from inorder.core.event import Event
from inorder.protocols.fifo.counters import Counters
from inorder.protocols.fifo.estimator import estimator_class
from inorder.protocols.fifo.header import Header
from inorder.protocols.fifo.interests import Interests
from inorder.protocols.fifo.options import Options
from inorder.protocols.fifo.receiver import Receiver
from inorder.protocols.fifo.record import RecordWriter
from inorder.protocols.fifo.summary import (
    TOPIC_SUMMARY_BYTES,
    content_summary,
    elements,
    topic_summary,
)
from inorder.sim.path import WANTED, Stream

# The publisher's clock starts here, so that one that steps back does not become negative.
CLOCK_START_S = 1000.0


class Arrival(Struct, frozen=True, gc=False):
    """What reaches the receiver: the event, its order facts, and when."""

    at: float
    header: Header
    event: Event


class Heard(Struct, frozen=True):
    """What a receiver made of it: `waits_s` by event as they were delivered, with their tags."""

    counters: Counters
    numbers: list[int]
    in_order: list[bool]
    waits_s: list[float]
    receiver: Receiver


def arrivals(stream: Stream, record: int = 25, *, content_elements: int = 0) -> list[Arrival]:
    """The stream with headers; `content_elements` > 0 makes Bloom summaries of so many."""
    hashes = 4 if content_elements else 0
    size = 16 if content_elements else TOPIC_SUMMARY_BYTES
    writer = RecordWriter(record, size, hashes)
    headers: list[Header] = []
    last_us = 0
    for passage in stream.published():
        departure_us = int((passage.departure_s + CLOCK_START_S) * 1e6)
        gap_us = max(0, departure_us - last_us) if headers else 0
        if content_elements:
            value = {f"a{number}": passage.seq for number in range(content_elements // 2)}
            summary = content_summary(elements(passage.topic, value), size, hashes)
        else:
            summary = topic_summary(passage.topic)
        frame = writer.next(gap_us, summary)
        headers.append(Header(0, passage.seq, departure_us, gap_us, frame))
        last_us = departure_us
    return [
        Arrival(passage.arrived_s, headers[passage.seq - 1], Event("p", passage.seq, passage.topic))
        for passage in stream.received()
        if passage.arrived_s is not None
    ]


def listen(heard: list[Arrival], options: Options) -> Heard:
    """Play arrivals to a receiver with these options."""
    interests = Interests(options.interest_window)
    interests.hold((WANTED,))
    estimator = estimator_class(options.estimator).from_options(options)
    receiver = Receiver(options, estimator, interests)
    numbers: list[int] = []
    tags: list[bool] = []
    waits_s: list[float] = []

    def note(deliveries: list[Deliver]) -> None:
        for each in deliveries:
            numbers.append(each.event.seq)
            tags.append(each.in_order)
            waits_s.append(each.waited_s)

    now = 0.0
    for arrival in heard:
        while receiver.deadline is not None and receiver.deadline < arrival.at:
            now = max(now, receiver.deadline)
            note(receiver.fire(now))
        now = arrival.at
        note(receiver.receive(arrival.header, arrival.event, now))
    while receiver.deadline is not None:
        now = max(now, receiver.deadline)
        note(receiver.fire(now))
    return Heard(receiver.counters, numbers, tags, waits_s, receiver)
