"""The live trace: the same tables as the simulator's, judged by the same checks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import msgspec

from inorder.check.trace import DeliveryRow, EventRow, Format, SubscriptionRow, TraceWriter
from inorder.core.effect import Deliver
from inorder.core.errors import Misuse
from inorder.core.event import Event

# The traces being written by this process. A bus that ends without a word ends here, too.
_open: WeakValueDictionary[Path, LiveTrace] = WeakValueDictionary()


class LiveTrace:
    """What one bus did, in a folder of its own.

    A name that subscribes again goes on counting: in a trace a subscriber is its name.
    """

    def __init__(self, folder: Path | str | None, format: Format, about: dict[str, Any]) -> None:
        self._writer: TraceWriter | None = None
        # The last number of each name, and where its present subscription began to count.
        self._last: dict[str, int] = {}
        self._before: dict[str, int] = {}
        if folder is not None:
            self._folder = Path(folder).resolve()
            if self._folder in _open:
                raise Misuse(f"{folder}: another bus writes its trace there")
            self._writer = TraceWriter(folder, format, about)
            _open[self._folder] = self

    def begins(self, subscriber: str) -> None:
        """A subscription of this name begins, and counts from 1."""
        self._before[subscriber] = self._last.get(subscriber, 0)

    def _nth(self, subscriber: str, nth: int) -> int:
        nth += self._before.get(subscriber, 0)
        self._last[subscriber] = max(nth, self._last.get(subscriber, 0))
        return nth

    def published(
        self, event: Event, accepted_at: float | None, stamp: Iterable[tuple[str, int]] = ()
    ) -> None:
        if self._writer is None:
            return
        attributes = msgspec.json.encode(event.value).decode()
        row = EventRow(
            event.id, event.topic, event.publisher, event.seq, event.published_at, accepted_at,
            bytes=len(attributes), attributes=attributes,
            stamp=msgspec.json.encode(dict(stamp)).decode(),
        )  # fmt: skip
        self._writer.write("events", row)

    def delivered(
        self,
        subscriber: str,
        nth: int,
        delivery: Deliver,
        received_at: float,
        delivered_at: float,
    ) -> None:
        if self._writer is not None:
            event = delivery.event
            nth = self._nth(subscriber, nth)
            row = DeliveryRow(
                subscriber, nth, event.id, event.topic, event.publisher, event.seq,
                event.published_at, received_at, delivered_at, delivery.in_order,
            )  # fmt: skip
            self._writer.write("deliveries", row)

    def subscribed(
        self,
        subscriber: str,
        op: str,
        topics: Iterable[str],
        where: str | None,
        parameters: Mapping[str, Any],
        at: float,
        after: int,
    ) -> None:
        if self._writer is not None:
            after = self._nth(subscriber, after)
            text = msgspec.json.encode(parameters).decode()
            row = SubscriptionRow(subscriber, op, sorted(topics), where, text, at, after)
            self._writer.write("subscriptions", row)

    def flush(self) -> None:
        if self._writer is not None:
            self._writer.flush()

    def close(self) -> None:
        if self._writer is not None:
            _open.pop(self._folder, None)
            self._writer.close()
