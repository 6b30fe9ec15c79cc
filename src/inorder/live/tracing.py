"""The live trace: the same tables as the simulator's, judged by the same checks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from inorder.effect import Deliver
from inorder.event import Event
from inorder.trace import DeliveryRow, EventRow, Format, SubscriptionRow, TraceWriter


class LiveTrace:
    """What one bus did, in a folder of its own."""

    def __init__(self, folder: Path | str | None, format: Format, about: dict[str, Any]) -> None:
        self._writer = None if folder is None else TraceWriter(folder, format, about)

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
        position: int,
        delivery: Deliver,
        received_at: float,
        delivered_at: float,
    ) -> None:
        if self._writer is not None:
            event = delivery.event
            row = DeliveryRow(
                subscriber, position, event.id, event.topic, event.publisher, event.seq,
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
            text = msgspec.json.encode(parameters).decode()
            row = SubscriptionRow(subscriber, op, sorted(topics), where, text, at, after)
            self._writer.write("subscriptions", row)

    def flush(self) -> None:
        if self._writer is not None:
            self._writer.flush()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
