"""What a publisher is told, and what moving a filter answers."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from inorder.core.errors import Refused, Unsure

Outcome = Literal["stored", "refused", "unknown"]


class Receipt(Struct, frozen=True, gc=False):
    """The fate of a publication.

    stored: it is in its log, as durable as the broker says, and everybody who holds its topic gets
    it. refused: it did not happen and will not. unknown: no answer came in time; it happened, or
    will, or never does.
    """

    topic: str
    publisher: str
    epoch: int
    seq: int
    outcome: Outcome
    offset: int | None = None
    log: str = ""
    reason: str = ""

    @property
    def event(self) -> str:
        """The event's name, `publisher:epoch:sequence`; empty if it never got one."""
        return f"{self.publisher}:{self.epoch}:{self.seq}" if self.seq else ""

    async def stored(self) -> Receipt:
        """This receipt, if the event is stored; raises `Refused` or `Unsure` if not."""
        return checked(self)

    async def place(self) -> tuple[str, int]:
        """The log and the offset."""
        checked(self)
        assert self.offset is not None
        return self.log, self.offset

    async def position(self) -> int:
        """The event's number in the order: over one log its offset."""
        return (await self.place())[1]


class Change(Struct, frozen=True):
    """The answer to `set` and `replace`: every event above this position is judged by the new
    filter, and nothing at or below it comes again."""

    position: int


def checked(receipt: Receipt) -> Receipt:
    if receipt.outcome == "refused":
        raise Refused(f"{receipt.event or receipt.topic}: {receipt.reason}")
    if receipt.outcome == "unknown":
        raise Unsure(f"{receipt.event}: {receipt.reason}; it may have been published")
    return receipt
