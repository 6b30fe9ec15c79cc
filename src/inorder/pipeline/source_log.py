"""What the Spark source wants of what it reads: how far it reaches, and the events of a range.

A source is one log, of a broker or a trace folder. It is opened where it is needed, by the driver
to plan and by every task to read, from the settings alone. Offsets here are half-open ranges; what
people and checkpoints are told is the position that is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from msgspec import Struct

from inorder.pipeline.source_options import Settings

# Columns of an event of a log. `position` is its number in the order that all subscribers share.
EVENT_COLUMNS = {
    "topic": "string",
    "offset": "bigint",
    "position": "bigint",
    "log": "string",
    "event": "string",
    "publisher": "string",
    "epoch": "bigint",
    "seq": "bigint",
    "key": "string",
    "headers": "string",
    "published_at": "double",
    "stored_at": "double",
    "attributes": "string",
    "value": "binary",
}
# Why a row could not be used; only if asked for.
QUARANTINE = "quarantine"


class Extent(Struct, frozen=True, gc=False):
    """The identity of what is read, the first offset it still has, and the one behind its stable
    end."""

    order: str
    first: int
    next: int


class Log(Protocol):
    """Something to read, open."""

    def columns(self) -> dict[str, str]:
        """Names and Spark types of what `batches` gives, without the quarantine."""

    def extent(self) -> Extent:
        """How far it reaches at this moment."""

    def mark(self, offset: int) -> str:
        """What the past below an offset looks like; empty if nobody can say."""

    def at(self, time: float) -> int:
        """The first offset stored at that time or after."""

    def reach(self, start: int, stop: int, rows: int) -> int:
        """The offset behind so many wanted rows from `start` on, and `stop` if there are fewer."""

    def batches(self, start: int, stop: int) -> Iterator[Any]:
        """The wanted rows from `start` up to before `stop` as Arrow record batches, in order."""

    def close(self) -> None: ...


def _trace(settings: Settings) -> Log:
    from inorder.pipeline.source_trace import TraceLog

    return TraceLog(settings)


def _broker(settings: Settings) -> Log:
    from inorder.pipeline.source_broker import BrokerLog

    return BrokerLog(settings)


_OPENERS: dict[str, Callable[[Settings], Log]] = {"trace": _trace}


def open_log(settings: Settings) -> Log:
    """The log these settings mean; `Misuse` or `Damaged` if it cannot be read."""
    return _OPENERS.get(settings.scheme, _broker)(settings)
