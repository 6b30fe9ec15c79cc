"""What a run is measured with: messages by kind, ways, latencies."""

from __future__ import annotations

from random import Random
from typing import Any

from msgspec import Struct

from inorder.check.ending import Ending
from inorder.sim.models import Queue
from inorder.sim.network import Model, Reading

# Messages that carry an event.
CARRIERS = frozenset({"Ask", "Pub", "Copy"})


class Meter:
    """Around a model: it counts the copies that the model delays, by the class of their messages.

    >>> from inorder.sim.models import Ideal
    >>> meter = Meter(Ideal())
    >>> meter.show("a word")
    >>> meter.moved, meter.kinds
    (1, {'str': 1})
    """

    def __init__(self, model: Model) -> None:
        self.sized = model.sized
        # Asked for every copy: it shall not cost a call more than it must.
        self.arrival = model.arrival
        self._show = model.show if isinstance(model, Reading) else None
        self._counts: dict[type, int] = {}

    def show(self, message: Any) -> None:
        kind = type(message)
        self._counts[kind] = self._counts.get(kind, 0) + 1
        if self._show:
            self._show(message)

    @property
    def kinds(self) -> dict[str, int]:
        return {kind.__name__: count for kind, count in self._counts.items()}

    @property
    def moved(self) -> int:
        return sum(self._counts.values())


class Paths(Meter):
    """Counts the hops of one event, too: `depths` says after how many of them each node had it."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self.depths: dict[str, int] = {}
        self._inner = model
        self._carries = False
        self.arrival = self._arrival

    def show(self, message: Any) -> None:
        super().show(message)
        self._carries = type(message).__name__ in CARRIERS

    def _arrival(self, source: str, target: str, size: int, now: float, rng: Random) -> float:
        if self._carries:
            self.depths[target] = self.depths.get(source, 0) + 1
        return self._inner.arrival(source, target, size, now, rng)


class Lines(Meter):
    """Notes how long copies of one class wait at each node, others not counted.

    Delays are constant: a copy that waits for nothing takes `unhindered`.
    """

    def __init__(self, model: Model, kind: str, unhindered: float) -> None:
        super().__init__(model)
        self.lines: dict[str, Queue] = {}
        self._inner = model
        self._kind = kind
        self._unhindered = unhindered
        self._noted = False
        self.arrival = self._arrival

    def show(self, message: Any) -> None:
        super().show(message)
        self._noted = type(message).__name__ == self._kind

    def _arrival(self, source: str, target: str, size: int, now: float, rng: Random) -> float:
        arrival = self._inner.arrival(source, target, size, now, rng)
        if self._noted:
            line = self.lines.get(source)
            if line is None:
                line = self.lines[source] = Queue()
            line.note(arrival - now - self._unhindered)
        return arrival


class Latencies(Struct):
    """Sums over deliveries; the publisher's own is none of them."""

    count: int = 0
    received: float = 0.0
    waited: float = 0.0
    longest_wait: float = 0.0
    # By event: when the last of all had it.
    last: dict[str, float] = {}

    @property
    def reception(self) -> float:
        return self.received / self.count if self.count else float("nan")

    @property
    def delivery(self) -> float:
        return (self.received + self.waited) / self.count if self.count else float("nan")

    @property
    def to_the_last(self) -> float:
        """Mean over the events; the latency that the thesis defines."""
        return sum(self.last.values()) / len(self.last) if self.last else float("nan")


class Trace:
    """Takes rows like a `TraceWriter` and keeps sums, apart for each first letter of the
    subscribers' names: n for nodes, b for brokers, g for guests."""

    def __init__(self) -> None:
        self.groups: dict[str, Latencies] = {}
        self.own = 0

    def write(self, table: str, row: Any) -> None:
        if table != "deliveries":
            return
        if row.publisher == row.subscriber:
            self.own += 1
            return
        group = self.groups.get(row.subscriber[0])
        if group is None:
            group = self.groups[row.subscriber[0]] = Latencies()
        latency = row.delivered_at - row.published_at
        waited = row.delivered_at - row.received_at
        group.count += 1
        group.received += latency - waited
        if waited:
            group.waited += waited
            group.longest_wait = max(group.longest_wait, waited)
        if latency > group.last.get(row.event, 0.0):
            group.last[row.event] = latency

    def ended(self, ending: Ending) -> None:
        pass
