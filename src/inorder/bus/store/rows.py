"""What goes into the file in one transaction, and what comes out of it."""

from __future__ import annotations

from msgspec import Struct


class Append(Struct, frozen=True, gc=False):
    """A diffused message for the log of its topic: `count` events."""

    topic: str
    message: bytes
    count: int


class Mail(Struct, frozen=True, gc=False):
    """A message for one machine."""

    target: str
    source: str
    message: bytes


class Record(Struct, frozen=True, gc=False):
    """Something a machine must not forget; `whole` makes all its earlier records superfluous."""

    node: str
    token: int
    record: bytes
    whole: bool = False


class Turn(Struct):
    """Everything one turn of a process wants written: all of it, or nothing.

    `owned` are the machines this process speaks for, by token: if any of them has another owner
    meanwhile, nothing is written. `taken` are the ids of mails that have been handled. `key` names
    a batch of appends that must not be written twice.
    """

    appends: list[Append] = []
    mails: list[Mail] = []
    records: list[Record] = []
    taken: list[int] = []
    owned: dict[str, int] = {}
    key: str = ""

    def __bool__(self) -> bool:
        return bool(self.appends or self.mails or self.records or self.taken)


class LogRow(Struct, frozen=True, gc=False):
    """A row of the log as read."""

    id: int
    topic: str
    offset: int
    count: int
    at: float
    message: bytes


class MailRow(Struct, frozen=True, gc=False):
    id: int
    target: str
    source: str
    message: bytes


class TopicRow(Struct, frozen=True, gc=False):
    """A topic: its guarantee, its first kept offset, and the offset its next event will have."""

    topic: str
    guarantee: str
    first: int
    next: int
