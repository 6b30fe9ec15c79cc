"""One scenario under several guarantees: what each costs, and what each leaves undone.

The story is the same for all: who publishes what when is drawn from the seed and not from what
happens. Answers differ, because an application answers what it has been handed.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from inorder.check import judge
from inorder.sim.memory import Memory
from inorder.sim.scenario import Scenario
from inorder.sim.simulate import simulate

# What is counted as broken, whether it was promised or not.
COUNTED = ("causal", "fifo", "total")


class Beside(Struct, frozen=True):
    """What one run did; the figures of messages are those of the network, acknowledgements and
    everything else included."""

    guarantee: str
    events: int
    deliveries: int
    # Violations, by promise.
    broken: dict[str, int]
    tagged: int
    # From the call of `publish` to the delivery, and what of it the subscriber held the event back.
    latency_mean_s: float
    latency_p99_s: float
    held_mean_s: float
    held_share: float
    messages: int
    message_bytes: int


class _Counting(Memory):
    """Counts messages instead of keeping them."""

    def __init__(self) -> None:
        super().__init__()
        self.messages = 0
        self.message_bytes = 0

    def write(self, table: str, row: Any) -> None:
        if table == "messages":
            self.messages += 1
            self.message_bytes += row.bytes
        else:
            super().write(table, row)


def under(scenario: Scenario, name: str, seed: int) -> Beside:
    """The scenario's run of this seed under another guarantee, with the options of the scenario's
    own guarantee if that is the same one."""
    order = scenario.order
    if order.get("guarantee", "none") != name:
        order = {"guarantee": name}
    memory = _Counting()
    simulate(replace(scenario, order=order, messages=True), seed, memory)
    verdicts = judge(memory.history(), COUNTED)
    called = {row.event: row.published_at for row in memory.rows["events"]}
    rows = memory.rows["deliveries"]
    latencies = sorted(row.delivered_at - called[row.event] for row in rows)
    held = [row.delivered_at - row.received_at for row in rows]
    count = max(1, len(rows))
    return Beside(
        name,
        len(memory.rows["events"]),
        len(rows),
        {promise: verdict.violations for promise, verdict in verdicts.items()},
        sum(not row.in_order for row in rows),
        sum(latencies) / count,
        latencies[len(latencies) * 99 // 100] if latencies else 0.0,
        sum(held) / count,
        sum(each > 0.0 for each in held) / count,
        memory.messages,
        memory.message_bytes,
    )
