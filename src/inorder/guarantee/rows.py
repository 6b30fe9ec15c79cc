"""How a guarantee puts recorded rows in order: what Spark asks of it.

Rows are what a network handed to its subscribers (a trace), each with the stamp of its event as
text. Events of a log have positions instead, and need nothing of this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from inorder.core.event import Event
from inorder.core.machine import Reader


class Skimmer(Protocol):
    """The stamps of many rows, read at once."""

    def skim(self, reader: Any, rows: Any) -> tuple[Any, Any, Any, Any, list[Event]] | None:
        """Let a reader receive these rows (their places, as they arrived) at once.

        What it delivers, in that order (-1 - n is the n-th of the events that waited), whether each
        is in order, the rows that are duplicates, the rows still to be received one by one, and
        the events that waited. None, and nothing has changed, if they must all go one by one.
        """


class Rows(Protocol):
    """Recorded rows under one guarantee; each writes this class beside its reader."""

    @property
    def needs_stamps(self) -> bool:
        """Whether rows must have stamps; otherwise any text does."""

    def reader(
        self, name: str, options: Any, start: Mapping[str, int] | None, from_first: bool
    ) -> Reader:
        """The machine of one subscriber.

        `start` says how many events of a topic come before the first that will be given (0 if not
        named), and that it will be given: what names its events waits for them. With `from_first`
        a topic that is not named starts with the first event given.
        """

    def restore(self, snapshot: bytes) -> Reader:
        """The reader that gave this snapshot."""

    def message(self, event: Event, stamp: str) -> Any:
        """What the network handed over with this event; `BadFrame` for a text that is no stamp."""

    def placeholder(self, topic: str, offset: int) -> str | None:
        """A stamp for an event of which only topic and offset are known, so that no event waits
        for it; None if numbers are not by topic."""

    def waits_for_all(self, options: Any) -> bool:
        """Whether a reader waits for numbers, so that it must also be given the events that a
        filter keeps back."""

    def skimmer(self, names: Sequence[str], codes: Any, stamps: bytes) -> Skimmer | None:
        """The stamps of many rows, from the names of their topics, the place of each row's topic
        among these, and a JSON array of the stamps; None if they must be read one by one. It only
        saves time."""
