"""One simulated process: a machine, its disk, its clock and its troubles."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Any

from inorder.core.effect import Effect
from inorder.core.machine import Machine


class Node:
    """`build` makes the machine anew after a crash; `life` counts how often that happened."""

    __slots__ = (
        "_build",
        "_skews",
        "alive",
        "crash_after",
        "disk",
        "drift",
        "filters",
        "guarded",
        "held",
        "inbox",
        "joined",
        "life",
        "machine",
        "name",
        "nth",
        "paused",
        "restart_after_s",
        "skew_s",
        "slow_disk",
        "syncing",
        "timers",
        "told",
        "unsynced",
        "waiting",
    )

    def __init__(self, name: str, build: Callable[[], Machine], slow_disk: bool = False) -> None:
        self.name = name
        self._build = build
        self.machine = build()
        self.life = 0
        self.alive = True
        self.paused = False
        self.inbox: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
        # Durable, and what a crash loses.
        self.disk: list[bytes] = []
        self.unsynced: list[bytes] = []
        self.waiting: list[Effect] = []
        self.syncing = False
        # A planned crash: effects still to be carried out before it.
        self.crash_after: int | None = None
        self.restart_after_s = 0.0
        # Whether effects must be carried out one by one, looking left and right.
        self.slow_disk = slow_disk
        self.guarded = slow_disk
        # The node's clock: true time plus skew; its timers run `drift` times as long as asked.
        self.skew_s = 0.0
        # From which event number on its clock was how wrong: it turns stamps back into true times.
        self._skews: list[tuple[int, float]] = []
        self.drift = 1.0
        self.timers: dict[str, int] = {}
        # The application's view: deliveries so far, and how many its last event told of.
        self.nth = 0
        self.told = 0
        self.held: set[str] = set()
        # Topics with a filter: the predicate and its values at present.
        self.filters: dict[str, tuple[str | None, dict[str, Any]]] = {}
        self.joined: set[str] = set()

    @property
    def absent(self) -> bool:
        """Nobody there to call: crashed, or standing still."""
        return self.paused or not self.alive

    def stamped(self, seq: int) -> None:
        """The node puts the time of its clock on its event of that number."""
        if self.skew_s != (self._skews[-1][1] if self._skews else 0.0):
            self._skews.append((seq, self.skew_s))

    def true_time(self, seq: int, told: float) -> float:
        """The true time of what the node's clock told when it published the event."""
        before = bisect_right(self._skews, seq, key=lambda each: each[0])
        return told - self._skews[before - 1][1] if before else told

    def seen(self) -> dict[str, int]:
        """What its application has been handed since its last event told of it."""
        if self.nth == self.told:
            return {}
        self.told = self.nth
        return {self.name: self.nth}

    def plan_crash(self, after_effects: int, restart_after_s: float) -> None:
        """Crash in the middle of what the next input asks for."""
        self.crash_after = after_effects
        self.restart_after_s = restart_after_s
        self.guarded = True

    def crash(self) -> None:
        self.alive = False
        self.paused = False
        self.life += 1
        self.inbox.clear()
        self.unsynced.clear()
        self.waiting.clear()
        self.syncing = False
        self.crash_after = None
        self.guarded = self.slow_disk
        self.timers.clear()
        self.held.clear()
        self.filters.clear()
        self.joined.clear()

    def restart(self) -> None:
        self.alive = True
        self.machine = self._build()

    def pause(self) -> None:
        if self.alive:
            self.paused = True

    def proceed(self) -> list[tuple[Callable[..., None], tuple[Any, ...]]]:
        self.paused = False
        inbox, self.inbox = self.inbox, []
        return inbox
