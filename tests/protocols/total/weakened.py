"""Our own rules for a change of the order, each weakened alone: a test must find out.

They exist nowhere else. Weakened are who stands still for a change (parts.py), what keeps others in
their order meanwhile (epoch.py), and when a change may be given up (ranking.py).
"""

from __future__ import annotations

from typing import Any

import pytest

from inorder.protocols.total import epoch, parts, ranking
from inorder.protocols.total.messages import Abort, Frozen, Install
from inorder.protocols.total.stamp import stamp_of


def nobody_concerned(patch: pytest.MonkeyPatch) -> None:
    """A change stops nobody."""
    patch.setattr(ranking, "concerned", lambda *anything: [])


def only_needed_pairs(patch: pytest.MonkeyPatch) -> None:
    """Topic by topic: it stands still if two topics that its rounds need change places."""
    on_demand = ranking.Ranking._on_demand

    def remember(self: Any, source: str, demand: Any, now: float) -> Any:
        self.s.lines.append(demand.topics)
        return on_demand(self, source, demand, now)

    def pairs(self: Any, parents: Any) -> list[str]:
        before = {topic: rank for rank, topic in enumerate(self.s.order)}
        after = {topic: rank for rank, topic in enumerate(self.s.coming)}
        found = []
        for topic in sorted(self.s.parts):
            needs = {other for line in self.s.lines if topic in line for other in line}
            if sorted(needs, key=before.__getitem__) != sorted(needs, key=after.__getitem__):
                found.append(topic)
        return found

    patch.setattr(ranking.Ranking, "_on_demand", remember)
    patch.setattr(ranking.Ranking, "_concerned", pairs)


def only_ranks(patch: pytest.MonkeyPatch) -> None:
    """A part whose topics keep their ranks goes on, though its way is another."""
    patch.setattr(parts, "_torn", parts._reordered)


def cut_of_all(patch: pytest.MonkeyPatch) -> None:
    """The cut names all topics, those too that have gone on."""

    def try_answer(self: Any) -> None:
        s, stage = self.s, self._stage
        if not s.frozen or s.answered or any(topic in s.stopped for *_, topic in stage.s.entered):
            return
        if any(stage.managers[topic].s.outstanding for topic in s.stopped):
            return
        s.answered = True
        counts = self._counts([*stage.managers])
        stage.links.post("ranking", Frozen(stage.s.epoch, s.attempt, counts))

    patch.setattr(epoch.Epochs, "try_answer", try_answer)
    patch.setattr(ranking.Ranking, "_stopped_at", _stopped_at)
    patch.setattr(ranking.Ranking, "_check", lambda *anything: None)


def _stopped_at(self: Any, stage: str) -> list[str]:
    return [topic for topic in self.directory.topics_at(stage) if topic in {*self.s.stopped}]


def early_ones_are_overtaken(patch: pytest.MonkeyPatch) -> None:
    """What comes behind a message of an epoch to come does not wait behind it."""
    patch.setattr(epoch.Epochs, "is_early", lambda self, other: other > self._stage.s.epoch)


def walks_enter(patch: pytest.MonkeyPatch) -> None:
    """While others stand still, walks may join what goes on."""
    patch.setattr(
        epoch.Epochs,
        "keeps_out",
        lambda self, walk: self.s.frozen and any(topic in self.s.stopped for topic in walk.visit),
    )


def joined_parts_are_not_noticed(patch: pytest.MonkeyPatch) -> None:
    """Nobody looks again, at the end, whom the change concerns."""
    on_frozen = ranking.Ranking._on_frozen

    def blindly(self: Any, source: str, frozen: Any, now: float) -> Any:
        stopped = [*self.s.stopped]
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(ranking.Ranking, "_concerned", lambda self, parents: stopped)
            return on_frozen(self, source, frozen, now)

    patch.setattr(ranking.Ranking, "_on_frozen", blindly)


def no_attempts(patch: pytest.MonkeyPatch) -> None:
    """An answer to an attempt that was given up counts for the next one."""

    def is_current(self: Any, answer: Any) -> bool:
        phase = "freezing" if isinstance(answer, Frozen) else "asking"
        return bool(answer.epoch == self.s.epoch and phase == self.s.phase)

    def check(*anything: Any) -> None: ...

    patch.setattr(ranking.Ranking, "_is_current", is_current)
    patch.setattr(ranking.Ranking, "_check", check)
    patch.setattr("inorder.protocols.total.stage.check_body", check)


def abort_after_commit(patch: pytest.MonkeyPatch) -> None:
    """The last answer is there and some are told the new order; the others are told to go on."""

    def commit(self: Any, parents: Any) -> Any:
        s = self.s
        cut = stamp_of(self._counted())
        install = Install(s.epoch + 1, s.coming, cut, tuple(sorted(parents.items())))
        for number, stage in enumerate(self.directory.stages):
            self.links.post(stage, Abort(s.epoch, s.attempt) if number else install)
        self._end()
        s.wish = None
        return []

    patch.setattr(ranking.Ranking, "_commit", commit)
