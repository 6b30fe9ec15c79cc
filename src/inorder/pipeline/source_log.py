"""What the Spark source wants of a broker: which topics, how far they reach, and a slice of one.

A new broker is one more class with these five verbs and one more line in `_OPENERS`. It is opened
where it is needed, by the driver to plan and by every task to read, from the settings alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from msgspec import Struct

from inorder.core.errors import UnknownName
from inorder.pipeline.source_options import Settings

# Columns of an event; offset counts the events of its topic, arrival those of the whole log.
EVENT_COLUMNS = {
    "topic": "string",
    "offset": "bigint",
    "arrival": "bigint",
    "event": "string",
    "publisher": "string",
    "seq": "bigint",
    "published_at": "double",
    "received_at": "double",
    "attributes": "string",
    "stamp": "string",
    "guarantee": "string",
}
# Why a row could not be used; only if asked for.
QUARANTINE = "quarantine"


class Slice(Struct, frozen=True, gc=False):
    """Events of one topic, from `start` up to before `end`."""

    topic: str
    start: int
    end: int


# Events of one topic that arrived one after the other: topic, first offset, number.
Run = tuple[str, int, int]


class Extent(Struct, frozen=True, gc=False):
    """The first offset a topic still has, and the one its next event will have."""

    first: int
    next: int


class Log(Protocol):
    """A broker's log, open for reading."""

    def columns(self) -> dict[str, str]:
        """Names and Spark types of what `batches` gives, without the quarantine."""

    def extents(self) -> dict[str, Extent]:
        """All topics there are at this moment."""

    def arrived(self, waiting: Sequence[Slice]) -> Iterator[Run]:
        """The events of these slices in the order of their arrival; runs may reach beyond them."""

    def batches(self, topic: str, start: int, end: int) -> Iterator[Any]:
        """The events from `start` up to before `end` as Arrow record batches, in order."""

    def close(self) -> None: ...


def _sqlite(settings: Settings) -> Log:
    from inorder.pipeline.source_sqlite import SqliteLog

    return SqliteLog(settings)


def _trace(settings: Settings) -> Log:
    from inorder.pipeline.source_trace import TraceLog

    return TraceLog(settings)


_OPENERS: dict[str, Callable[[Settings], Log]] = {"sqlite": _sqlite, "trace": _trace}


def open_log(settings: Settings) -> Log:
    """The log these settings mean; `Misuse` or `Damaged` if it cannot be read."""
    if settings.scheme not in _OPENERS:
        raise UnknownName("scheme of a url", settings.scheme, sorted(_OPENERS))
    return _OPENERS[settings.scheme](settings)
