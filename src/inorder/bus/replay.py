"""A client that reads a topic's past: the guarantee's reader behind a client's verbs.

It asks no manager to let it in: the log has everything, and stamps that sequence all topics. So it
goes from the past into the present without a seam.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

from inorder.core.effect import Answer, Deliver, Effect, Join, Leave
from inorder.core.errors import Misuse
from inorder.core.event import Scalar
from inorder.core.machine import Reader


class Replaying:
    """Subscribes, and nothing else."""

    next_seq = 0

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._joining: dict[str, list[str]] = {}
        self.topics_held: list[str] = []
        self._left: list[str] = []

    def publish(self, topic: str, value: dict[str, Scalar], now: float) -> list[Effect]:
        raise Misuse("a replaying subscription publishes nothing")

    def subscribe(self, call: str, topics: Iterable[str], now: float) -> list[Effect]:
        self._joining[call] = sorted(topics)
        return [Join(topic) for topic in self._joining[call]]

    def joined(self, topic: str, now: float) -> list[Effect]:
        self.topics_held.append(topic)
        effects: list[Effect] = []
        for call, missing in list(self._joining.items()):
            if topic in missing:
                missing.remove(topic)
            if not missing:
                del self._joining[call]
                effects.append(Answer(call, "done"))
        return effects

    def unsubscribe(self, call: str, topics: Iterable[str], now: float) -> list[Effect]:
        dropped = sorted({*topics} & {*self.topics_held})
        if not dropped:
            raise Misuse("unsubscribe names no topic that is held")
        self.topics_held = [topic for topic in self.topics_held if topic not in dropped]
        self._left += dropped
        # What is held may wait for events of what was left: it is read to the end, and not shown.
        leaving = [] if self.topics_held or self._joining else self._left
        return [*[Leave(topic) for topic in leaving], Answer(call, "done")]

    def receive(self, source: str, message: Any, now: float) -> list[Effect]:
        return self._held(self._reader.receive(source, message, now))

    def fire(self, timer: str, now: float) -> list[Effect]:
        return self._held(self._reader.fire(timer, now))

    def _held(self, effects: list[Effect]) -> list[Effect]:
        """Nothing of a topic that was left meanwhile."""
        held = self.topics_held
        return [
            each for each in effects if not isinstance(each, Deliver) or each.event.topic in held
        ]

    def snapshot(self) -> bytes:
        return self._reader.snapshot()

    @classmethod
    def restore(cls, snapshot: bytes) -> Self:
        raise Misuse("a replay begins anew")
