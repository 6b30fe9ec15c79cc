"""The choices of `guarantee = "total"`, and which of them go together.

Only what is needed to reproduce the papers' measurements can be switched. Published rules that
break the order are not options; they are negative controls (tests/protocols/total/published.py).
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from inorder.core.errors import BadScenario
from inorder.core.limits import (
    HELD_EVENTS_MAX,
    OUTSTANDING_ROUNDS_MAX,
    RETAINED_EVENTS_MAX,
    WAITING_PUBLICATIONS_MAX,
)

# Tag mode waits this long unless told otherwise, where it can tell what is missing. Measured over
# the papers' wide-area network: 48 % tagged without, 0 % with, for 0.13 s more.
TAG_BUFFER = 30
TAG_TTL_S = 1.0


class Options(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[order]` of a scenario with `guarantee = "total"`."""

    # tag: deliver at once, tagging what came too late. hold: wait, never tag.
    mode: Literal["tag", "hold"] = "hold"
    # tag: events waiting at most (0: none wait), and for how long (None: until room is needed). If
    # neither is given, 30 events and 1 s; none wait with compact stamps or on sg.
    # hold: events held back at most before the subscriber stops reading (None: the house limit).
    buffer: int | None = None
    ttl: float | None = None
    stamp: Literal["full", "compact"] = "full"
    path: Literal["chain", "forest", "sg"] = "chain"
    # Common subscribers from which on two topics are sequenced; 2 is the papers' (unsafe) rule, 0
    # sequences all topics with each other: for a log that somebody may read later.
    threshold: Literal[0, 1, 2] = 1
    diffusion: Literal["manager", "publisher"] = "manager"
    # The ranking of topics: whether the order follows the publications, and by which measure.
    # rate: the whole order in one step (rates.py). f: the report's swaps (metric.py), with alpha
    # and beta.
    swaps: Literal["off", "on"] = "off"
    metric: Literal["rate", "f"] = "rate"
    alpha: float = 0.1
    beta: float = 0.2
    # Seconds over which a manager measures its topic's rate, and between two looks at all of them.
    report_every: float = 10.0
    # Seconds after which a change is given up if somebody has not answered (ranking.py).
    change_timeout: float = 10.0
    topics_per_stage: int = 1
    # A publisher that changes topic waits for its earlier events (order across its topics).
    fence: bool = False
    window: int = 64
    batch: int = 64
    # Events a topic manager keeps for subscribers that missed them.
    retention: int = RETAINED_EVENTS_MAX
    # trusted: the driver's links are reliable and in order already, and nobody crashes.
    links: Literal["sessions", "trusted"] = "sessions"
    resend: float = 0.5
    repair: float = 0.5
    # Seconds without an event after which a manager says how far its topic has come: at least
    # these, longer where events are rarer.
    heartbeat: float = 1.0
    # Seconds between two renewals of a subscription, and without any until it is forgotten.
    renew: float = 10.0
    lease: float = 60.0

    def __post_init__(self) -> None:
        for key, value, low, high in (
            ("buffer", self.buffer, 0, HELD_EVENTS_MAX),
            ("ttl", self.ttl, 0.0, 1e9),
            ("topics_per_stage", self.topics_per_stage, 1, 1_000_000),
            ("window", self.window, 1, OUTSTANDING_ROUNDS_MAX),
            ("batch", self.batch, 1, WAITING_PUBLICATIONS_MAX),
            ("retention", self.retention, 0, RETAINED_EVENTS_MAX),
            ("resend", self.resend, 1e-3, 1e3),
            ("repair", self.repair, 1e-3, 1e3),
            ("heartbeat", self.heartbeat, 1e-3, 1e3),
            ("renew", self.renew, 1e-3, 1e3),
            ("lease", self.lease, 2 * self.renew, 1e6),
            ("alpha", self.alpha, 1e-9, 1e9),
            ("beta", self.beta, 0.0, 1e9),
            ("report_every", self.report_every, 1e-3, 1e9),
            ("change_timeout", self.change_timeout, 1e-3, 1e6),
        ):
            if value is not None and not low <= value <= high:
                raise BadScenario(f"order.{key}", f"{value:g} is not between {low:g} and {high:g}")
        self._together()

    def _together(self) -> None:
        """Combinations the specification proves, or needs to reproduce a figure."""
        if self.mode == "hold":
            if self.stamp != "full":
                raise BadScenario("order.stamp", "hold needs full stamps: compact ones cannot say "
                                  "which lower-ranked events are missing")  # fmt: skip
            if self.path == "sg":
                raise BadScenario("order.path", "hold needs chain or forest: on other paths "
                                  "stamps overtake each other and wait in a circle")  # fmt: skip
            if self.ttl is not None:
                raise BadScenario("order.ttl", "hold waits as long as it takes; use tag")
            if self.buffer == 0:
                raise BadScenario("order.buffer", "hold needs room for at least one event")
        elif self.buffer:
            if self.stamp != "full":
                raise BadScenario("order.stamp", "a buffer needs full stamps")
            if self.path == "sg":
                raise BadScenario("order.path", "a buffer needs chain or forest")
        elif self.ttl is not None and not self.buffered:
            raise BadScenario("order.ttl", "says how long a buffer keeps events; there is none "
                              "with buffer = 0, stamp = compact or path = sg")  # fmt: skip

    @property
    def ranked(self) -> bool:
        """Whether somebody owns the order and may change it."""
        return self.swaps == "on" or self.path == "forest"

    @property
    def rated(self) -> bool:
        """Whether the order follows the topics' rates."""
        return self.swaps == "on" and self.metric == "rate"

    @property
    def leased(self) -> bool:
        """Whether subscriptions must be renewed: where subscribers may fall silent and return."""
        return self.links == "sessions"

    @property
    def buffered(self) -> bool:
        """Whether events that are too early wait."""
        return self.room > 0

    @property
    def room(self) -> int:
        """Events that may wait at a subscriber."""
        if self.mode == "hold":
            return self.buffer or HELD_EVENTS_MAX
        if self.buffer is not None:
            return self.buffer
        return TAG_BUFFER if self.stamp == "full" and self.path != "sg" else 0

    @property
    def patience(self) -> float | None:
        """Seconds an event waits at most."""
        if self.ttl is not None or self.mode == "hold" or self.buffer is not None:
            return self.ttl
        return TAG_TTL_S if self.buffered else None


def promises(options: Options) -> tuple[str, ...]:
    """The checks these options keep, as far as they are proved.

    Two common subscribers as the threshold is the papers' rule, and lets two orders appear when
    the second of them arrives (R2, S7). Nothing about the order across topics is promised then,
    nor that hold ends: its proof needs one order of everything. Within a topic the numbers alone
    keep the order.
    """
    if options.threshold == 2:
        kept = ("causal", "fifo", "unique")
        return kept if options.mode == "hold" else (*kept, "reliable")
    return ("total", "causal", "fifo", "unique", "reliable")
