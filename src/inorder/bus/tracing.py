"""The live trace: the same tables as the simulator's, judged by the same checks.

Rule 1: the application is the bus. What it had been handed when it published is what it had taken
        from its subscriptions when it called `publish`, however long the publication then waited.
Rule 2: what one event told of is not told again. A publication that was refused before it became an
        event tells nothing: the next event tells it.
"""

from __future__ import annotations

import platform
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import msgspec

from inorder.bus.receipt import Receipt
from inorder.check.ending import Ending
from inorder.check.trace import DeliveryRow, EventRow, Format, SubscriptionRow, TraceWriter
from inorder.core.errors import Misuse
from inorder.logs.event import Event

# The traces being written by this process. A bus that ends without a word ends here, too.
_open: WeakValueDictionary[Path, LiveTrace] = WeakValueDictionary()

_values = msgspec.msgpack.Decoder(list[Any]).decode


class LiveTrace:
    """What one bus did, in a folder of its own.

    A name that subscribes again goes on counting: in a trace a subscriber is its name.
    """

    def __init__(
        self, folder: Path | str, format: Format, application: str, about: Mapping[str, Any]
    ) -> None:
        self._application = application
        # The last number of each name, and where its present subscription began to count.
        self._last: dict[str, int] = {}
        self._before: dict[str, int] = {}
        # What was taken since the last event told of it, by subscriber, in segments: each call of
        # `publish` ends one. The first has the number `_first`.
        self._taken: deque[dict[str, int]] = deque([{}])
        self._first = 0
        self._folder = Path(folder).resolve()
        if self._folder in _open:
            raise Misuse(f"{folder}: another bus writes its trace there")
        clock = {"clock": f"host {platform.node()}"}
        self._writer = TraceWriter(folder, format, {**about, **clock})
        _open[self._folder] = self

    # Publications.

    def mark(self) -> int:
        """The application publishes: what it has taken so far is before this mark."""
        if self._taken[-1]:
            self._taken.append({})
        return self._first + len(self._taken) - 1

    def _seen(self, mark: int) -> dict[str, int]:
        """What was taken before this mark, and not told by an event yet."""
        seen: dict[str, int] = {}
        while self._first < mark:
            seen.update(self._taken.popleft())
            self._first += 1
        return seen

    def published(
        self, receipts: Sequence[Receipt], values: bytes, published_at: float, mark: int
    ) -> None:
        now = time.time()
        for receipt, value in zip(receipts, _values(values), strict=True):
            if not receipt.seq:
                continue
            stored = receipt.outcome == "stored"
            attributes = msgspec.json.encode(_attributes(value)).decode()
            row = EventRow(
                receipt.event, receipt.topic, receipt.publisher, receipt.seq, published_at,
                now if stored else None, "accepted" if stored else receipt.outcome,
                self._application, msgspec.json.encode(self._seen(mark)).decode(),
                bytes=len(attributes), attributes=attributes, epoch=receipt.epoch,
                log=receipt.log or None, offset=receipt.offset, position=receipt.offset,
            )  # fmt: skip
            self._writer.write("events", row)

    # Subscriptions.

    def delivered(self, subscriber: str, nth: int, event: Event[Any]) -> None:
        nth = self._nth(subscriber, nth)
        self._taken[-1][subscriber] = nth
        now = time.time()
        row = DeliveryRow(
            subscriber, nth, event.id, event.topic, event.publisher, event.seq,
            event.published_at, now, now, event.in_order, event.epoch,
        )  # fmt: skip
        self._writer.write("deliveries", row)

    def begins(self, subscriber: str) -> None:
        """A subscription of this name begins, and counts from 1."""
        self._before[subscriber] = self._last.get(subscriber, 0)

    def subscribed(
        self,
        subscriber: str,
        topics: Sequence[str],
        where: str | None,
        parameters: Mapping[str, Any],
        after: int,
    ) -> None:
        self._changed(subscriber, "subscribe", topics, where, parameters, after)

    def moved(
        self, subscriber: str, topics: Sequence[str], values: Mapping[str, Any], after: int
    ) -> None:
        self._changed(subscriber, "set", topics, None, values, after)

    def unsubscribed(self, subscriber: str, topics: Sequence[str], after: int) -> None:
        self._changed(subscriber, "unsubscribe", topics, None, {}, after)

    def _changed(
        self,
        subscriber: str,
        op: str,
        topics: Iterable[str],
        where: str | None,
        parameters: Mapping[str, Any],
        after: int,
    ) -> None:
        after = self._nth(subscriber, after)
        text = msgspec.json.encode(parameters).decode()
        row = SubscriptionRow(subscriber, op, sorted(topics), where, text, time.time(), after)
        self._writer.write("subscriptions", row)

    def _nth(self, subscriber: str, nth: int) -> int:
        nth += self._before.get(subscriber, 0)
        self._last[subscriber] = max(nth, self._last.get(subscriber, 0))
        return nth

    # The end.

    def flush(self) -> None:
        self._writer.flush()

    def close(self) -> None:
        """Others go on: a live run is never known to be quiet."""
        _open.pop(self._folder, None)
        elsewhere = ("whatever other buses do",)
        self._writer.ended(Ending(quiet=False, ended_at=time.time(), under_way=elsewhere))
        self._writer.close()


def _attributes(value: Any) -> Any:
    """What a filter sees of a value."""
    if not isinstance(value, dict):
        return {}
    scalar = (bool, int, float, str)
    return {name: each for name, each in value.items() if each is None or isinstance(each, scalar)}
