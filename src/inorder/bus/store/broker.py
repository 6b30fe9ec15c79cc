"""What the bus needs of whatever moves and keeps its messages.

Rule 1: `write` is all or nothing, and what is not mail is durable when it returns. It raises
        `Refused` when nothing was written and nothing will be, `Replaced` when another process owns
        one of the machines meanwhile, and `Unsure` when nobody can know. After any other error of
        ours, too, nothing was written (`Damaged`, say), but it is no use to go on.
Rule 2: a topic's log is handed over whole and in its order. Between topics nothing is promised.
Rule 3: a machine has one owner at a time; its token only grows.
Rule 4: mail may come twice, late, or not at all, and from owners that have been replaced: the
        machines sort that out.
Rule 5: reading raises `Refused` when it may work a little later, and `Damaged` when it will not.

A new broker is one more class with these verbs, one more line in `bus/store/__init__.py`, and one
more line in the contract tests (tests/bus/contract.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from inorder.bus.store.rows import LogRow, MailRow, TopicRow, Turn


class Broker(Protocol):
    """One connection to a broker, of one bus."""

    async def open(self, holder: str, arrived: Callable[[], None]) -> None:
        """Connect; `holder` names this connection. `arrived` is to be called in the running loop
        whenever there may be something new, and may be called in vain."""

    async def close(self) -> None:
        """Disconnect; nothing is to be called any more."""

    async def declare(self, topic: str, guarantee: str) -> str:
        """Make a topic known; the guarantee it has, which its first use decided."""

    async def topics(self) -> list[TopicRow]:
        """All topics known."""

    async def claim(self, node: str) -> int | None:
        """Become the owner of a machine: a larger token than any before, or None while another
        owner lives."""

    async def owner_lives(self, node: str) -> bool:
        """Whether somebody else may own a machine; reads only."""

    async def renew(self, owned: dict[str, int]) -> list[str]:
        """Say that we live; the machines that have another owner meanwhile."""

    async def release(self, owned: dict[str, int]) -> None:
        """Others may have these machines at once."""

    async def drop_mail(self, kept: Sequence[str]) -> None:
        """Drop what waits for machines that nobody owns, but for those in `kept`."""

    async def records(self, node: str) -> list[bytes]:
        """What a machine must not forget, oldest first."""

    async def write(self, turn: Turn) -> int:
        """Everything one turn asks for, in one step; the id of the last row it put into the log,
        0 if it put none."""

    async def news(self, targets: Sequence[str]) -> tuple[list[MailRow], int]:
        """Some of the mail that waits for these machines, oldest first, and the id of the last row
        of the log."""

    async def log(self, topics: Sequence[str], after: int, up_to: int) -> tuple[list[LogRow], int]:
        """The rows of these topics behind one id and up to another, by id; and how far they reach,
        if that is too much to be read at once."""

    async def id_of(self, topic: str, offset: int) -> int | None:
        """The id of the row that holds this event of a topic, if it exists."""
