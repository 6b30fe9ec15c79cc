"""The live trace: the same tables as the simulator's, judged by the same checks.

Rule 1: the application is the bus. What it had been handed when it published is what it had taken
        from its subscriptions when it called `publish`, however long the publication then waited.
Rule 2: what one event told of is not told again. A publication that was refused before it became an
        event tells nothing: the next event tells it.
"""

from __future__ import annotations

import platform
from collections import deque
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import msgspec

from inorder.bus.receipt import Outcome
from inorder.check.ending import Ending
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

    def __init__(
        self, folder: Path | str | None, format: Format, application: str, about: dict[str, Any]
    ) -> None:
        self._application = application
        self._read_with: set[str] = set()
        self._writer: TraceWriter | None = None
        # The last number of each name, and where its present subscription began to count.
        self._last: dict[str, int] = {}
        # What was taken since the last event told of it, by subscriber, in segments: each call of
        # `publish` ends one. The first has the number `_first`.
        self._taken: deque[dict[str, int]] = deque([{}])
        self._first = 0
        self._before: dict[str, int] = {}
        if folder is not None:
            self._folder = Path(folder).resolve()
            if self._folder in _open:
                raise Misuse(f"{folder}: another bus writes its trace there")
            clock = {"clock": f"host {platform.node()}"}
            self._writer = TraceWriter(folder, format, {**about, **clock})
            _open[self._folder] = self

    def reads_with(self, guarantee: str) -> None:
        """A subscription has this guarantee, whatever that of the bus is."""
        self._read_with.add(guarantee)

    def taken(self, subscriber: str, nth: int) -> None:
        """The application has taken a delivery."""
        self._taken[-1][subscriber] = nth

    def mark(self) -> int:
        """The application publishes: what it has taken so far is before this mark."""
        if self._taken[-1]:
            self._taken.append({})
        return self._first + len(self._taken) - 1

    def seen(self, mark: int) -> dict[str, int]:
        """What was taken before this mark, and not told by an event yet."""
        found: dict[str, int] = {}
        while self._first < mark:
            found.update(self._taken.popleft())
            self._first += 1
        return found

    def begins(self, subscriber: str) -> None:
        """A subscription of this name begins, and counts from 1."""
        self._before[subscriber] = self._last.get(subscriber, 0)

    def _nth(self, subscriber: str, nth: int) -> int:
        nth += self._before.get(subscriber, 0)
        self._last[subscriber] = max(nth, self._last.get(subscriber, 0))
        return nth

    def published(
        self,
        event: Event,
        outcome: Outcome,
        seen: Mapping[str, int],
        accepted_at: float | None = None,
        stamp: Iterable[tuple[str, int]] = (),
    ) -> None:
        if self._writer is None:
            return
        attributes = msgspec.json.encode(event.value).decode()
        row = EventRow(
            event.id, event.topic, event.publisher, event.seq, event.published_at, accepted_at,
            outcome, self._application, msgspec.json.encode(seen).decode(),
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
            self.taken(subscriber, nth)
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

    def close(self, now: float) -> None:
        """Others go on: nobody can say that a live run was quiet."""
        if self._writer is not None:
            _open.pop(self._folder, None)
            elsewhere = ("whatever other buses do",)
            self._writer.ended(Ending(quiet=False, ended_at=now, under_way=elsewhere))
            self._writer.about(read_with=sorted(self._read_with))
            self._writer.close()
