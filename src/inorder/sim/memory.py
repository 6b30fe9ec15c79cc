"""A trace that stays in memory, for runs that are judged at once and forgotten."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from inorder.check import History
from inorder.check.ending import Ending
from inorder.check.trace import TABLES


class Memory:
    """Takes rows like a `TraceWriter`; gives them back as a history."""

    def __init__(self) -> None:
        self.rows: dict[str, list[Any]] = {name: [] for name in TABLES}
        self.ending: Ending | None = None

    def write(self, table: str, row: Struct) -> None:
        self.rows[table].append(row)

    def ended(self, ending: Ending) -> None:
        self.ending = ending

    def history(self, within: float | None = None) -> History:
        """Simulated times are those of one clock. `within` replaces the window of the run."""
        rows = self.rows
        return History(
            rows["deliveries"], rows["events"], rows["subscriptions"],
            ending=self.ending, within=within, clock_error=0.0,
        )  # fmt: skip

    def timeline(self) -> list[str]:
        """What happened, a line each, in order of time."""
        lines: list[tuple[float, int, str]] = []
        for row in self.rows["subscriptions"]:
            text = f"{row.subscriber} {_PAST[row.op]} {' '.join(row.topics)}"
            lines.append((row.at, 0, text))
        for row in self.rows["events"]:
            text = f"{row.publisher} publishes {row.event} on {row.topic}"
            if row.stamp != "{}":
                text += f", stamped {row.stamp}"
            if row.accepted_at is None:
                text += f" ({row.outcome or 'never accepted'})"
            lines.append((row.published_at, 1, text))
        for row in self.rows["deliveries"]:
            late = "" if row.in_order else ", too late"
            text = f"{row.subscriber} delivers {row.event}{late}"
            lines.append((row.delivered_at, 2, text))
        return [f"{at:10.3f}  {text}" for at, _, text in sorted(lines)]


_PAST = {"subscribe": "has subscribed to", "unsubscribe": "leaves", "set": "sets"}
