"""The choices of `guarantee = "fifo"`.

Bad values are refused with the key and its range; an estimator's name is looked up when the first
client is built (estimator.py), because a user may have added one.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from inorder.core.errors import BadScenario
from inorder.core.limits import PENDING_EVENTS_MAX


class Options(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[order]` of a scenario with `guarantee = "fifo"`."""

    # The share of received events that may be delivered late. With laplace2: the paper's P_t.
    late: float = 0.01
    estimator: str = "predictive"
    # Events the publisher tells about in each header; 0 is the paper's basic mode.
    record: int = 25
    # What a record says of an event: its topic, or a Bloom filter of its content.
    summary: Literal["topic", "content"] = "topic"
    summary_bytes: int = 16
    hashes: int = 4
    # Whether the receiver reads records; by default all but static do.
    use_record: bool | None = None
    # No event is ever held back longer.
    tau_max: float = 5.0
    # The wait until the estimator has seen `min_samples` events.
    initial_latch: float = 0.05
    min_samples: int = 8
    # Samples remembered; by default 500, and 25 for laplace2.
    window: int | None = None
    # predictive: correct the share itself after every event.
    adapt: bool = False
    # laplace2: pairs further apart in departure are not compared. `inf` compares all.
    max_pair_gap: float = 1.0
    # static: the wait.
    latch: float = 0.25
    # Events held back per publisher before the oldest go out anyway.
    max_pending: int = PENDING_EVENTS_MAX
    # How long an earlier version of a subscription still counts as interest.
    interest_window: float = 10.0
    when_late: Literal["deliver", "drop"] = "deliver"

    def __post_init__(self) -> None:
        if not 0.0 < self.late <= 0.5:
            raise BadScenario("order.late", f"{self.late:g} is not above 0 and at most 0.5")
        for key, value, low, high in (
            ("record", self.record, 0, 255),
            ("summary_bytes", self.summary_bytes, 1, 32),
            ("hashes", self.hashes, 1, 16),
            ("tau_max", self.tau_max, 0.0, 1e6),
            ("initial_latch", self.initial_latch, 0.0, 1e6),
            ("min_samples", self.min_samples, 1, 1000),
            ("window", self.window, 1, 100_000),
            ("max_pair_gap", self.max_pair_gap, 0.0, float("inf")),
            ("latch", self.latch, 0.0, 1e6),
            ("max_pending", self.max_pending, 1, PENDING_EVENTS_MAX),
            ("interest_window", self.interest_window, 0.0, 1e6),
        ):
            if value is not None and not low <= value <= high:
                raise BadScenario(f"order.{key}", f"{value:g} is not between {low:g} and {high:g}")

    @property
    def reads_record(self) -> bool:
        """Whether the receiver looks into records."""
        return self.estimator != "static" if self.use_record is None else self.use_record


def promises(options: Options) -> tuple[str, ...]:
    """What is kept without any assumption; the share of late events is a matter of statistics."""
    return ("fifo", "unique")
