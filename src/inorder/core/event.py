"""What applications publish, and the order facts it carries.

An *event* is published by an application; a *message* is what machines send each other. An event
is named by its publisher and that publisher's sequence number, counted from 1 over all its topics.
"""

from __future__ import annotations

from msgspec import Struct

# What an attribute of an event may hold. Absent and None are the same thing.
Scalar = bool | int | float | str | None

# The order facts of an event: (topic, number) pairs sorted by topic.
Stamp = tuple[tuple[str, int], ...]


def event_id(publisher: str, seq: int) -> str:
    """The one spelling of an event's name.

    >>> event_id("p1", 7)
    'p1:7'
    """
    return f"{publisher}:{seq}"


class Event(Struct, frozen=True, gc=False, array_like=True):
    """One publication: `value` holds its attributes, `published_at` its publisher's clock.

    >>> Event("p1", 7, "orders", {"amount": 120.0}).id
    'p1:7'
    """

    publisher: str
    seq: int
    topic: str
    value: dict[str, Scalar] = {}
    published_at: float = 0.0

    @property
    def id(self) -> str:
        return event_id(self.publisher, self.seq)
