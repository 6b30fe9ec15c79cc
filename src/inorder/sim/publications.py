"""What becomes of publications: from the call over the launch to the answer, and into the trace.

Rule 1: a row is written when the fate is known, or the run has ended.
Rule 2: a publication that waits in its machine (machine.Launching) is known by its call until it is
        launched. What its application had been handed counts then: that is when it is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from inorder.check.accepted import is_young
from inorder.check.ending import Ending
from inorder.check.trace import EventRow
from inorder.core.effect import Answer, Launched
from inorder.core.event import event_id
from inorder.sim.node import Node

# Numbers above this one stand for none: of publications that have not been launched.
UNMADE = 2**62


class Recorder(Protocol):
    """Where rows go: a `TraceWriter`, or lists in memory."""

    def write(self, table: str, row: msgspec.Struct) -> None: ...

    def ended(self, ending: Ending) -> None:
        """How the run ended; nothing is written after that."""


class Publications:
    """Those that have no answer yet, and the lives of their publishers that they belong to."""

    def __init__(self, trace: Recorder) -> None:
        self._trace = trace
        self._rows: dict[str, EventRow] = {}
        self._lives: dict[str, int] = {}
        self._waited = 0

    def __len__(self) -> int:
        return len(self._rows)

    def ask(
        self, node: Node, call: str, seq: int, topic: str, value: Mapping[str, Any], now: float
    ) -> None:
        """An application publishes; its event has number `seq` if it is made at once."""
        attributes = msgspec.json.encode(value).decode()
        made = call == event_id(node.name, seq)
        if not made:
            self._waited += 1
            seq = UNMADE + self._waited
        row = EventRow(
            call, topic, node.name, seq, now, application=node.name, seen="{}",
            bytes=len(attributes), attributes=attributes,
        )  # fmt: skip
        if made:
            _is_made(node, row)
        self._rows[call] = row
        self._lives[call] = node.life

    def launch(self, node: Node, effect: Launched, now: float) -> None:
        """Now the event has its name."""
        row, event = self._rows.pop(effect.call), effect.event
        row.event, row.seq, row.launched_at = event.id, event.seq, now
        _is_made(node, row)
        self._rows[event.id] = row
        self._lives[event.id] = self._lives.pop(effect.call)

    def answer(self, effect: Answer, now: float) -> bool:
        """Whether this was the answer of a publication."""
        row = self._rows.pop(effect.call, None)
        if row is None:
            return False
        del self._lives[effect.call]
        row.outcome = effect.outcome
        if effect.outcome == "accepted":
            row.accepted_at = now
        if effect.stamp:
            row.stamp = msgspec.json.encode(dict(effect.stamp)).decode()
        self._trace.write("events", row)
        return True

    def finish(self, nodes: Mapping[str, Node], ended: Ending) -> None:
        """A publication without an answer has an unknown fate if its publisher ended first, or if
        the run was cut within the window."""
        for event, row in self._rows.items():
            over = nodes[row.publisher].life != self._lives[event]
            if over or is_young(ended, row.published_at):
                row.outcome = "unknown"
            self._trace.write("events", row)
        self._rows.clear()
        self._lives.clear()


def _is_made(node: Node, row: EventRow) -> None:
    """The event gets the time of its node's clock, and what its application had been handed."""
    node.stamped(row.seq)
    row.seen = msgspec.json.encode(node.seen()).decode()
