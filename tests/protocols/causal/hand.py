"""One client by hand: peer 3 of four, and what others send it."""

from __future__ import annotations

from inorder.core.event import Event
from inorder.protocols.causal import Client, Options, Published


def held(stamps: str = "barrier", topics: tuple[str, ...] = ("t",), origins: int = 4) -> Client:
    """Peer 3 of four, which holds these topics."""
    made = Client("p3", topics, Options(stamps=stamps))  # type: ignore[arg-type]
    made.subscribe("c", topics, 0.0)
    for topic in topics:
        for origin in range(origins):
            made.begins((topic, origin), 1, 1, 0.0)
    for topic in topics:
        made.joined(topic, 0.0)
    return made


def message(publisher: int, seq: int, *places: tuple[int, int], topic: str = "t", others=()):
    return Published(Event(f"p{publisher}", seq, topic), places, others)


def give(made: Client, publisher: int, number: int, *places: tuple[int, int], topic: str = "t"):
    sent = message(publisher, number, *places, topic=topic)
    return made.placed(((topic, publisher), number), f"p{publisher}", sent, 0.0)


def joining(begins: tuple[tuple[int, int, int], ...]) -> Client:
    made = Client("p3", ())
    made.subscribe("c", ["t"], 0.0)
    for origin, start, counts in begins:
        made.begins(("t", origin), start, counts, 0.0)
    made.joined("t", 0.0)
    return made
