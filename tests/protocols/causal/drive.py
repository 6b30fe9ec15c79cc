"""Clients by hand: who publishes what, and what somebody is given in which order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from inorder.core.effect import Answer, Deliver, Diffuse, Effect, Note
from inorder.core.place import Place
from inorder.protocols.causal import Client, Options, Published
from tests.protocols.causal.judge import Judge

# A publication on its way: its place, who made it, and the message.
Sent = tuple[Place, str, Published]


class Member:
    """Peer `number` around a client, without any network; a judge is told of what happens."""

    def __init__(
        self,
        number: int,
        topics: Iterable[str] | Mapping[str, Mapping[int, tuple[int, int]]],
        judge: Judge,
        stamps: str = "barrier",
        kind: type[Client] = Client,
        others: int = 4,
    ) -> None:
        self.number = number
        self.judge = judge
        self.numbers: dict[str, int] = {}
        self.client = kind(f"p{number}", (), Options(stamps=stamps))  # type: ignore[arg-type]
        for topic in topics:
            begins = topics[topic] if isinstance(topics, Mapping) else {}
            self.join(topic, begins or dict.fromkeys(range(others), (1, 1)))

    def join(self, topic: str, begins: Mapping[int, tuple[int, int]]) -> list[Effect]:
        self.client.subscribe(f"join {topic}", [topic], 0.0)
        effects: list[Effect] = []
        for origin, (start, counts) in begins.items():
            effects += self.client.begins((topic, origin), start, counts, 0.0)
        return self.seen([*effects, *self.client.joined(topic, 0.0)])

    def leave(self, topic: str) -> list[Effect]:
        return self.seen(self.client.unsubscribe(f"leave {topic}", [topic], 0.0))

    def publish(self, topic: str = "t") -> Sent:
        effects = self.client.publish(topic, {}, 0.0)
        message = next(each.message for each in effects if isinstance(each, Diffuse))
        number = self.numbers[topic] = self.numbers.get(topic, 0) + 1
        self.judge.published(self.number, message.event.id, topic)
        sent = (((topic, self.number), number), self.client._m.name, message)
        self.seen(self.client.placed(*sent, 0.0))
        return sent

    def get(self, *sent: Sent) -> list[str]:
        """What is handed over when these come, by event id."""
        return [event for each in sent for event in ids(self.given(each))]

    def given(self, sent: Sent) -> list[Effect]:
        return self.seen(self.client.placed(*sent, 0.0))

    def lose(self, sent: Sent) -> list[Effect]:
        return self.seen(self.client.lost(sent[0], 0.0))

    def seen(self, effects: list[Effect]) -> list[Effect]:
        for event in ids(effects):
            self.judge.delivered(self.number, event)
        return effects

    @property
    def got(self) -> list[str]:
        return self.judge.deliveries(self.number)


def ids(effects: Iterable[Effect]) -> list[str]:
    return [each.event.id for each in effects if isinstance(each, Deliver)]


def notes(effects: Iterable[Effect]) -> list[tuple[str, str]]:
    return [(each.mark, each.detail) for each in effects if isinstance(each, Note)]


def answers(effects: Iterable[Effect]) -> list[tuple[str, str]]:
    return [(each.call, each.outcome) for each in effects if isinstance(each, Answer)]


def event(sent: Sent) -> str:
    return sent[2].event.id
