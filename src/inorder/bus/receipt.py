"""What a publisher is told, and what a subscriber gets."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from inorder.core.event import Stamp

Outcome = Literal["accepted", "refused", "unknown"]


class Receipt(Struct, frozen=True):
    """The fate of a publication.

    accepted: durable, and due to everybody who holds its topic. refused: it did not happen and will
    not. unknown: nobody answered in time; it happened, or will, or never does.
    """

    event: str
    topic: str
    outcome: Outcome
    reason: str = ""
    stamp: Stamp = ()


class Delivered(Struct, frozen=True):
    """An event as a subscription hands it over.

    `nth` counts the subscription's deliveries from 1. `offset` is the place in the topic's
    log: `replay={topic: offset + 1}` goes on behind it.
    """

    topic: str
    value: Any
    in_order: bool
    nth: int
    offset: int
    publisher: str
    seq: int
    published_at: float

    @property
    def id(self) -> str:
        return f"{self.publisher}:{self.seq}"


class Change(Struct, frozen=True):
    """The answer to `set` and `replace`: deliveries from number `cut` on are judged by the new
    filter."""

    cut: int
