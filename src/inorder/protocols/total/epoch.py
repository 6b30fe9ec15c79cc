"""A stage's part in a change of the order (ranking.py says why it goes like this).

Rule 1: asked, it answers at once. Frozen, it lets in no round of the topics named, no walk over
        one of them, and no walk over several topics at all: such a walk may join what the ranking
        believes to be apart. What has entered is served; when the last round and walk of the
        topics named have ended it says so. All others go on.
Rule 2: a message belongs to the epoch in which it entered. One of a newer epoch waits for our
        `Install` (E4), and so does everything that comes after it from other stages: it would
        overtake otherwise. One of an older epoch is served as it comes: it is of topics the
        changes since then did not concern (parts.py), and takes the same way in all of them.
Rule 3: an epoch and the number of the attempt name a freeze. What belongs to an older one is
        noted and forgotten, never refused: a refused message would end its session for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from inorder.core.effect import Effect, Note
from inorder.protocols.total.directory import RANKING
from inorder.protocols.total.messages import (
    Abort,
    Ask,
    Fill,
    Freeze,
    Frozen,
    Install,
    Ready,
    Walk,
)
from inorder.protocols.total.stamp import stamp_of

if TYPE_CHECKING:
    from inorder.protocols.total.stage import Stage

# A round that seems to have taken longer than this says more about the clock.
ROUND_S_MAX = 60.0


class EpochState(Struct):
    # The last attempt heard of in this epoch; whether we are frozen for it, and have said so.
    attempt: int = 0
    frozen: bool = False
    answered: bool = False
    # Our topics that stand still.
    stopped: list[str] = []
    # Fills and walks of an epoch still to be installed, and what came behind them.
    early: list[Fill | Walk] = []
    # Seconds of the longest round since we were last asked.
    longest: float = 0.0


class Epochs:
    """What a stage knows of changes; the stage does the rest."""

    def __init__(self, stage: Stage, state: EpochState) -> None:
        self.s = state
        self._stage = stage

    # What may enter, and what must wait.

    def stops(self, topic: str) -> bool:
        return self.s.frozen and topic in self.s.stopped

    def keeps_out(self, walk: Walk) -> bool:
        return self.s.frozen and (len(walk.visit) > 1 or walk.visit[0] in self.s.stopped)

    def is_early(self, epoch: int) -> bool:
        """Whether a message that entered in this epoch has to wait for an `Install`."""
        now = self._stage.s.epoch
        return epoch > now or any(each.epoch > now for each in self.s.early)

    def wait(self, message: Fill | Walk) -> list[Effect]:
        self.s.early.append(message)
        return [Note("early", type(message).__name__.lower())]

    def took(self, seconds: float) -> None:
        """A round has ended."""
        if self.s.longest < seconds <= ROUND_S_MAX:
            self.s.longest = seconds

    # What the ranking says.

    def on_ask(self, source: str, ask: Ask, now: float) -> list[Effect]:
        stage = self._stage
        if ask.epoch != stage.s.epoch:
            return [Note("late", "ask")]
        counts = self._counts([*stage.managers])
        stage.links.post(RANKING, Ready(ask.epoch, ask.attempt, counts, self.s.longest))
        self.s.longest = 0.0
        return []

    def on_freeze(self, source: str, freeze: Freeze, now: float) -> list[Effect]:
        """What is under way needs nothing that is frozen, so it ends."""
        s = self.s
        if freeze.epoch != self._stage.s.epoch or freeze.attempt <= s.attempt:
            return [Note("late", "freeze")]
        s.attempt = freeze.attempt
        s.frozen = True
        s.answered = False
        s.stopped = [*freeze.topics]
        self.try_answer()
        return [Note("frozen")]

    def try_answer(self) -> None:
        """Frozen, and everything of the stopped topics has ended: tell the ranking."""
        s, stage = self.s, self._stage
        if not s.frozen or s.answered:
            return
        if any(topic in s.stopped for _, _, topic in stage.s.entered):
            return
        if any(stage.managers[topic].s.outstanding for topic in s.stopped):
            return
        s.answered = True
        stage.links.post(RANKING, Frozen(stage.s.epoch, s.attempt, self._counts(s.stopped)))

    def on_abort(self, source: str, abort: Abort, now: float) -> list[Effect]:
        s = self.s
        if (abort.epoch, abort.attempt) != (self._stage.s.epoch, s.attempt) or not s.frozen:
            return [Note("late", "abort")]
        self._thaw()
        return [Note("thawed"), *self._stage.catch_up(now)]

    def on_install(self, source: str, install: Install, now: float) -> list[Effect]:
        stage = self._stage
        if install.epoch <= stage.s.epoch:
            return [Note("late", "install")]
        stage.s.epoch = install.epoch
        stage.s.order = install.order
        stage.s.parents = dict(install.parents)
        self.s.attempt = 0
        self._thaw()
        stage.lay_path()
        # The cut: of what stood still all old events come before all new ones.
        for manager in stage.managers.values():
            manager.install(install.cut)
        return [Note("installed"), *stage.catch_up(now)]

    def _thaw(self) -> None:
        self.s.frozen = self.s.answered = False
        self.s.stopped = []

    def _counts(self, topics: list[str]) -> tuple[tuple[str, int], ...]:
        managers = self._stage.managers
        return stamp_of({topic: managers[topic].s.count for topic in topics})
