"""A subscriber fed from recorded rows instead of a network.

Rule 1: every event it is given leaves: in order, or tagged, or as a duplicate that is noted.
Rule 2: a topic is held from its first event on; the first event of a publisher is taken as it
        comes, as by everybody who subscribes.

It is the client's receiving half, asked for nothing else; `now` is the time of arrival that the row
tells, so that the same rows always give the same deliveries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from msgspec.structs import replace

from inorder.core.effect import Deliver, Effect, Note
from inorder.core.errors import BadMessage
from inorder.core.event import Event
from inorder.protocols.fifo.client import Client
from inorder.protocols.fifo.header import Published, pack, read_text
from inorder.protocols.fifo.options import Options


class Reader:
    """The machine of one subscriber over recorded rows."""

    def __init__(self, name: str, options: Options | None = None) -> None:
        self._client = Client(name, (), replace(options or Options(), when_late="deliver"))

    def receive(self, source: str, message: Any, now: float) -> list[Effect]:
        if not isinstance(message, Published):
            raise BadMessage(source, f"{type(message).__name__} is nothing for a reader")
        client = self._client
        event = message.event
        if event.topic not in client.topics_held:
            client.subscribe(event.topic, [event.topic], now)
            client.joined(event.topic, now)
        known = client.duplicates(event.publisher)
        effects = client.receive(source, message, now)
        if client.duplicates(event.publisher) > known:
            effects.append(Note("duplicate", event.id))
        return effects

    def fire(self, timer: str, now: float) -> list[Effect]:
        return self._client.fire(timer, now)

    def finish(self, now: float) -> list[Effect]:
        """Nothing will come any more: whoever still waits goes, publisher by publisher."""
        return [each for each in self._client.let_go(now) if isinstance(each, Deliver)]

    @property
    def waiting(self) -> int:
        """Events held back."""
        return self._client.pending

    def snapshot(self) -> bytes:
        return self._client.snapshot()

    @classmethod
    def restore(cls, snapshot: bytes) -> Self:
        reader = cls("")
        reader._client = Client.restore(snapshot)
        return reader


class Rows:
    """Recorded rows with headers as text (header.py): guarantee/rows.py."""

    needs_stamps = True

    def reader(
        self, name: str, options: Options, start: Mapping[str, int] | None, from_first: bool
    ) -> Reader:
        return Reader(name, options)

    def restore(self, snapshot: bytes) -> Reader:
        return Reader.restore(snapshot)

    def message(self, event: Event, stamp: str) -> Published:
        return Published(event, pack(read_text(stamp)))

    def placeholder(self, topic: str, offset: int) -> None:
        """Numbers are a publisher's own."""

    def waits_for_all(self, options: Options) -> bool:
        return True

    def skimmer(self, names: Sequence[str], codes: Any, stamps: bytes) -> None:
        """Row by row."""
