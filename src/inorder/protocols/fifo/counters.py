"""What a receiver counts, for summaries, metrics and the dial's measured side."""

from __future__ import annotations

from msgspec import Struct, structs


class Counters(Struct):
    """Of one receiver, or summed over several."""

    received: int = 0
    # Delivered out of place (or dropped, if so chosen) because something later went first.
    late: int = 0
    # Events that had to wait, and for how long in all.
    held: int = 0
    waited_s: float = 0.0
    # How long they would have waited at most, as decided when they came.
    planned_s: float = 0.0
    # Missing events that came while somebody waited for them: the wait was worth it.
    held_useful: int = 0
    # Missing events given up: lost, late, or never meant for this subscriber.
    expired: int = 0
    # Missing events that a record showed to be none of our business.
    irrelevant: int = 0
    duplicates: int = 0
    restarts: int = 0
    # Departures that went back for good; an estimator counts the steps it sees in delays.
    clock_steps: int = 0
    overflow: int = 0
    header_errors: int = 0

    def add(self, other: Counters) -> None:
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def spurious_relevance(self) -> int:
        """Waits for events that never came: lost, or not meant for us after all."""
        return max(0, self.expired - self.late)

    @property
    def late_share(self) -> float:
        return self.late / self.received if self.received else 0.0

    def as_dict(self) -> dict[str, float]:
        return {**structs.asdict(self), "spurious_relevance": self.spurious_relevance}
