"""An event as a subscription over logs hands it over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from msgspec import Struct

from inorder.logs.broker import Run
from inorder.logs.cursor import Cursor

Value = TypeVar("Value")


class Event(Struct, Generic[Value], frozen=True, gc=False, eq=False):
    """A published value, and where it stands.

    `position` is the event's number in the order: the same for every subscriber, in every process,
    for ever. Most of what an event knows is kept once for the run of events that it came with.
    """

    value: Value
    position: int
    order: str
    run: Run
    index: int

    @property
    def topic(self) -> str:
        return self.run.topic

    @property
    def publisher(self) -> str:
        return self.run.publisher

    @property
    def epoch(self) -> int:
        """Which life of its publisher this is from."""
        return self.run.epoch

    @property
    def seq(self) -> int:
        """The event's number in that life."""
        return self.run.sequence + self.index

    @property
    def id(self) -> str:
        """`publisher:epoch:sequence`: the event's name."""
        return f"{self.run.publisher}:{self.run.epoch}:{self.seq}"

    @property
    def offset(self) -> int:
        """The event's place in its log."""
        return self.run.offset + self.index

    @property
    def key(self) -> str | None:
        return None if self.run.keys is None else self.run.keys[self.index]

    @property
    def headers(self) -> Mapping[str, str]:
        headers = None if self.run.headers is None else self.run.headers[self.index]
        return headers or {}

    @property
    def published_at(self) -> float:
        """When it was published, by its publisher's clock, in seconds since 1970."""
        return self.run.published_at

    @property
    def in_order(self) -> bool:
        """Whether it keeps its place. A log hands over nothing that came too late."""
        return True

    @property
    def cursor(self) -> str:
        """ "Done up to and with this one", as text to be stored."""
        return str(Cursor(self.order, self.position, self.run.mark))

    def __repr__(self) -> str:
        return f"Event({self.topic!r}, {self.value!r}, position={self.position}, id={self.id!r})"

    def as_dict(self) -> dict[str, Any]:
        """Everything there is to say, for printing."""
        return {
            "topic": self.topic, "position": self.position, "value": self.value, "id": self.id,
            "key": self.key, "headers": dict(self.headers), "published_at": self.published_at,
            "cursor": self.cursor,
        }  # fmt: skip
