"""Who holds what, as one topic manager knows it, and which topics it is sequenced with.

Rule 1: a registration carries the version its subscriber gave it; an older version never replaces
        a newer one, whatever order they arrive in (S13). A removal leaves a tombstone, so that the
        rule also holds against the late message of a subscription that has ended.
Rule 2: one common subscriber is enough to sequence two topics. The papers want two; then events
        stamped just before the second subscriber appears carry no mutual entry although both
        orders can already be seen (R2, S7). With one, a missing entry proves that nobody held
        both topics when the stamp was made.

Pairs are counted as registrations change, so the group costs nothing per event.
"""

from __future__ import annotations

from msgspec import Struct


class Registration(Struct, gc=False):
    """What one subscriber holds; no topics: a tombstone."""

    version: int
    topics: tuple[str, ...]


class Group:
    """The registrations at the manager of `topic` and the sequencing group they make."""

    def __init__(self, topic: str, threshold: int, subs: dict[str, Registration]) -> None:
        self.topic = topic
        self.subs = subs
        self._threshold = threshold
        self._counts: dict[str, int] = {}
        self._others: tuple[str, ...] | None = None
        for registration in subs.values():
            self._count(registration.topics, 1)

    def register(self, subscriber: str, version: int, topics: tuple[str, ...]) -> bool:
        """Note a registration (no topics: its end); False if a newer one is known."""
        known = self.subs.get(subscriber)
        if known is not None:
            if version <= known.version:
                return False
            self._count(known.topics, -1)
        self.subs[subscriber] = Registration(version, topics)
        self._count(topics, 1)
        return True

    def forget(self, subscriber: str) -> None:
        """End a registration without a word of its subscriber (lease.py)."""
        known = self.subs[subscriber]
        self._count(known.topics, -1)
        self.subs[subscriber] = Registration(known.version, ())

    @property
    def others(self) -> tuple[str, ...]:
        """The topics sequenced with this one, sorted."""
        if self._others is None:
            self._others = tuple(
                sorted(t for t, count in self._counts.items() if count >= self._threshold)
            )
        return self._others

    def holds(self, topic: str) -> bool:
        """Whether a topic is in the group; the topic itself always is."""
        return topic == self.topic or self._counts.get(topic, 0) >= self._threshold

    @property
    def holders(self) -> list[str]:
        """Subscribers registered for the topic."""
        return [name for name, registration in self.subs.items() if registration.topics]

    def _count(self, topics: tuple[str, ...], change: int) -> None:
        for topic in topics:
            if topic != self.topic:
                count = self._counts.get(topic, 0) + change
                if count:
                    self._counts[topic] = count
                else:
                    del self._counts[topic]
        self._others = None
