"""The real machines in the simulator, with the trace kept in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from inorder.check.ending import Ending
from inorder.check.trace import DeliveryRow, EventRow, MessageRow
from inorder.sim.scenario import Scenario, from_table
from inorder.sim.simulate import Outcome, simulate
from inorder.sim.workload import Operation, Publication, Story

# Nothing is lost in these runs, so nothing is acknowledged, sent again or asked for again: the
# report's measurements know none of that.
LOSSLESS: dict[str, Any] = {
    "guarantee": "total", "links": "trusted", "repair": 1000.0, "heartbeat": 1000.0,
}  # fmt: skip

# The report's own protocol. Tag mode waits by default where it can; the report's does not.
PUBLISHED: dict[str, Any] = {
    **LOSSLESS, "mode": "tag", "buffer": 0, "stamp": "compact", "path": "sg",
    "diffusion": "publisher",
}  # fmt: skip


class Memory:
    """A trace that is a few lists."""

    def __init__(self) -> None:
        self.events: list[EventRow] = []
        self.deliveries: list[DeliveryRow] = []
        self.messages: list[MessageRow] = []
        self.subscriptions: list[Struct] = []

    def write(self, table: str, row: Struct) -> None:
        getattr(self, table).append(row)

    def ended(self, ending: Ending) -> None:
        pass

    def by_subscriber(self, in_order_only: bool = False) -> dict[str, list[DeliveryRow]]:
        """Deliveries of each subscriber, as they came."""
        found: dict[str, list[DeliveryRow]] = {}
        for row in self.deliveries:
            if row.in_order or not in_order_only:
                found.setdefault(row.subscriber, []).append(row)
        return found

    @property
    def tagged(self) -> float:
        """The share of deliveries that came out of order."""
        return sum(not row.in_order for row in self.deliveries) / max(1, len(self.deliveries))

    def to_the_last(self) -> list[float]:
        """For each event, from its publication to the last subscriber's delivery."""
        last: dict[str, float] = {}
        for row in self.deliveries:
            last[row.event] = max(last.get(row.event, 0.0), row.delivered_at - row.published_at)
        return list(last.values())

    def mean_latency(self) -> float:
        rows = self.deliveries
        return sum(row.delivered_at - row.published_at for row in rows) / max(1, len(rows))


def story(
    publications: Mapping[str, Sequence[Publication]], held: Mapping[str, Sequence[str]]
) -> Story:
    """Publications and first subscriptions written by hand instead of drawn from the scenario."""
    operations = [Operation(0.0, node, "subscribe", tuple(topics)) for node, topics in held.items()]
    return Story(publications=publications, operations=operations, faults=())


def play(table: dict[str, Any], seed: int, told: Story | None = None) -> tuple[Memory, Outcome]:
    """Run a scenario given as a table."""
    scenario: Scenario = from_table({"messages": False, **table})
    trace = Memory()
    outcome = simulate(scenario, seed, trace, story=told)
    return trace, outcome
