"""What a subscriber may be interested in, over the last moments.

A subscription that changes must not make an event look irrelevant that was sent while the former
version was in force: former versions of the content count for `window_s` more. A topic that was
left counts no longer, for nothing of it is delivered any more.
"""

from __future__ import annotations

from msgspec import Struct

from inorder.core.limits import INTEREST_VERSIONS_MAX
from inorder.protocols.fifo.summary import TOPIC_SUMMARY_BYTES, Conjunction, Interest, topic_summary

ANYTHING: tuple[Conjunction, ...] = ((),)


class InterestsState(Struct):
    """For snapshots."""

    topics: tuple[str, ...] = ()
    conjunctions: tuple[Conjunction, ...] = ANYTHING
    # (until when it counts, content), oldest first.
    former: list[tuple[float, tuple[Conjunction, ...]]] = []


class Interests:
    """The interest of one subscriber, shared by its receivers."""

    __slots__ = ("_hashes", "_window_s", "s")

    def __init__(self, window_s: float, state: InterestsState | None = None) -> None:
        self._window_s = window_s
        self.s = state or InterestsState()
        self._hashes: frozenset[bytes] = frozenset()
        self.hold(self.s.topics)

    def hold(self, topics: tuple[str, ...]) -> None:
        """The topics held from now on."""
        if topics == self.s.topics and len(self._hashes) == len(topics):
            return
        self.s.topics = topics
        self._hashes = frozenset(topic_summary(topic) for topic in topics)

    def want(self, conjunctions: tuple[Conjunction, ...], now: float) -> None:
        """The content wanted from now on."""
        s = self.s
        if conjunctions != s.conjunctions:
            self._forget(now)
            s.former.append((now + self._window_s, s.conjunctions))
            if len(s.former) > INTEREST_VERSIONS_MAX:
                s.former[:] = [(s.former[-1][0], ANYTHING)]
            s.conjunctions = conjunctions

    def concern(self, summary: bytes, hashes: int, now: float) -> bool:
        """Whether an event with this summary can be one of ours."""
        s = self.s
        if not hashes:
            # A summary of another length was made by a rule we do not know: it may concern us.
            return summary in self._hashes or len(summary) != TOPIC_SUMMARY_BYTES
        if Interest(s.topics, s.conjunctions).concerns(summary, hashes):
            return True
        if s.former:
            self._forget(now)
        return any(Interest(s.topics, each).concerns(summary, hashes) for _, each in s.former)

    def _forget(self, now: float) -> None:
        former = self.s.former
        while former and former[0][0] <= now:
            del former[0]
