"""A small network that gives places: memberships in two waves, every message straight to its
target, and any message may be the next to arrive. No trees, no acknowledgements of publications.

What members know of each other follows the rules of the hypercube: a `sub` goes to everybody
and is answered with the number of the next publication; an `act` follows and is answered again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inorder.core.effect import Answer, Deliver, Diffuse, Effect, Join, Leave
from inorder.protocols.causal import Client, Options
from tests.protocols.causal.judge import Judge

NEVER = 2**63 - 1


class Topic:
    """One topic at one node."""

    def __init__(self) -> None:
        self.phase = "out"
        self.change = 0
        self.next = 1
        self.view: dict[int, tuple[int, bool]] = {}
        self.start: dict[int, int] = {}
        self.act: dict[int, int] = {}
        self.early: list[tuple[int, int, Any]] = []
        self.calls: list[str] = []
        self.answers: dict[int, tuple[int, int]] = {}
        self.missing: set[int] = set()

    @property
    def member(self) -> bool:
        return self.phase in ("join", "act", "in")

    @property
    def held(self) -> bool:
        """Whether the client holds this membership, and not a later one that waits for its turn:
        what belongs to one is not for the other."""
        return self.member and all(call != "uns" for call in self.calls)

    def members(self) -> list[int]:
        return sorted(peer for peer, (_, there) in self.view.items() if there)

    def learn(self, peer: int, change: int, there: bool) -> None:
        if change > self.view.get(peer, (0, False))[0]:
            self.view[peer] = (change, there)


class Net:
    """Nodes 0 to n - 1, and what flies between them."""

    def __init__(
        self,
        size: int,
        topics: Sequence[str] = ("t",),
        stamps: str = "barrier",
        kind: type[Client] = Client,
        early: bool = False,
    ) -> None:
        options = Options(stamps=stamps)  # type: ignore[arg-type]
        self.clients = [kind(f"p{number}", (), options) for number in range(size)]
        self.topics = [{topic: Topic() for topic in topics} for _ in range(size)]
        self.flying: list[tuple[int, int, tuple[Any, ...]]] = []
        self.judge = Judge()
        # Whether the client is handed what comes before it is in, or the network keeps it.
        self.hands_early = early
        self.clock = 0
        # Of each event: when it was launched. Of each node and topic: since when it is in.
        self.launched: dict[str, int] = {}
        self.since: dict[tuple[int, str], int] = {}
        self.unsound: list[str] = []

    # Calls of the applications.

    def subscribe(self, node: int, topic: str) -> bool:
        if topic in self._wanted(node):
            return False
        self._do(node, self.clients[node].subscribe(f"+{topic}", [topic], 0.0))
        return True

    def unsubscribe(self, node: int, topic: str) -> bool:
        if topic not in self._wanted(node):
            return False
        self.since.pop((node, topic), None)
        self._do(node, self.clients[node].unsubscribe(f"-{topic}", [topic], 0.0))
        return True

    def publish(self, node: int, topic: str) -> bool:
        if topic not in self.clients[node].topics_held:
            return False
        self._call(node, topic, "pub")
        return True

    def _wanted(self, node: int) -> list[str]:
        m = self.clients[node]._m
        return [*m.active, *(topic for each in m.joining.values() for topic in each)]

    # Running.

    def arrive(self, nth: int) -> None:
        """One of the messages in flight arrives."""
        source, target, message = self.flying.pop(nth % len(self.flying))
        self.clock += 1
        getattr(self, f"_on_{message[0]}")(target, source, *message[1:])

    def settle(self, choose: Any = None) -> None:
        while self.flying:
            self.arrive(choose(len(self.flying)) if choose else 0)

    def preset(self) -> None:
        """Everybody holds every topic."""
        for node in range(len(self.clients)):
            for topic in self.topics[node]:
                self.subscribe(node, topic)
        self.settle()

    # Memberships.

    def _call(self, node: int, topic: str, call: str) -> None:
        self.topics[node][topic].calls.append(call)
        self._serve(node, topic)

    def _serve(self, node: int, name: str) -> None:
        topic = self.topics[node][name]
        while topic.calls:
            call = topic.calls[0]
            if topic.phase != ("out" if call == "sub" else "in"):
                return
            topic.calls.pop(0)
            {"sub": self._enter, "uns": self._leave, "pub": self._launch}[call](node, name, topic)

    def _ask(self, node: int, name: str, kind: str, targets: list[int], *more: Any) -> None:
        topic = self.topics[node][name]
        topic.answers, topic.missing = {}, {*targets}
        for target in targets:
            self.flying.append((node, target, (kind, name, topic.change, *more)))
        if not targets:
            self._answered(node, name)

    def _on_ack(self, node: int, source: int, name: str, answer: Any) -> None:
        topic = self.topics[node][name]
        topic.missing.discard(source)
        if answer is not None:
            topic.answers[source] = answer
        if not topic.missing:
            self._answered(node, name)

    def _answered(self, node: int, name: str) -> None:
        topic = self.topics[node][name]
        others = [peer for peer in topic.members() if peer != node]
        if topic.phase == "join":
            for peer, (change, number) in sorted(topic.answers.items()):
                topic.learn(peer, change, True)
                topic.start[peer] = min(topic.start.get(peer, number), number)
            topic.phase = "act"
            others = [peer for peer in topic.members() if peer != node]
            self._ask(node, name, "act", others)
        elif topic.phase == "act":
            for peer, (_, number) in topic.answers.items():
                topic.act.setdefault(peer, number)
            topic.phase = "in"
            self._be_in(node, name, topic)
            self._serve(node, name)
        elif topic.phase == "leave":
            topic.phase = "out"
            topic.view, topic.start, topic.act, topic.early = {}, {}, {}, []
            self._serve(node, name)

    def _enter(self, node: int, name: str, topic: Topic) -> None:
        topic.phase = "join"
        topic.change += 1
        topic.view = {node: (topic.change, True)}
        topic.start = {node: topic.next}
        topic.act = {node: topic.next}
        everybody = [each for each in range(len(self.clients)) if each != node]
        self._ask(node, name, "sub", everybody, topic.next)

    def _be_in(self, node: int, name: str, topic: Topic) -> None:
        if topic.held:
            for peer in sorted(topic.start):
                self._begins(node, name, peer)
            self._do(node, self.clients[node].joined(name, 0.0))
        early, topic.early = topic.early, []
        for source, number, message in early:
            self._place(node, name, source, number, message)

    def _begins(self, node: int, name: str, peer: int) -> None:
        topic = self.topics[node][name]
        start, counts = topic.start[peer], topic.act.get(peer, NEVER)
        if topic.held:
            self._do(node, self.clients[node].begins((name, peer), start, counts, 0.0))

    def _leave(self, node: int, name: str, topic: Topic) -> None:
        topic.phase = "leave"
        topic.change += 1
        self._ask(node, name, "uns", [peer for peer in topic.members() if peer != node])

    def _on_sub(self, node: int, source: int, name: str, change: int, base: int) -> None:
        topic = self.topics[node][name]
        answer = None
        if topic.member:
            topic.learn(source, change, True)
            topic.start.setdefault(source, base)
            if topic.phase != "join" and topic.act.get(source, NEVER) == NEVER:
                topic.act[source] = base
                if topic.phase == "in":
                    self._begins(node, name, source)
            answer = (topic.change, topic.next)
        self.flying.append((node, source, ("ack", name, answer)))

    def _on_act(self, node: int, source: int, name: str, change: int) -> None:
        topic = self.topics[node][name]
        answer = (topic.change, topic.next) if topic.member else None
        self.flying.append((node, source, ("ack", name, answer)))

    def _on_uns(self, node: int, source: int, name: str, change: int) -> None:
        topic = self.topics[node][name]
        if topic.member:
            topic.learn(source, change, False)
        self.flying.append((node, source, ("ack", name, None)))

    # Publications.

    def _launch(self, node: int, name: str, topic: Topic) -> None:
        effects = self.clients[node].publish(name, {}, 0.0)
        message = next(each.message for each in effects if isinstance(each, Diffuse))
        number, topic.next = topic.next, topic.next + 1
        event = message.event.id
        self.clock += 1
        self.launched[event] = self.clock
        self.judge.published(node, event, name)
        for peer, last in message.places:
            if not 1 <= last < self.topics[peer][name].next or peer == node:
                self.unsound.append(f"{event} names {last} of {peer}")
        self._do(node, self.clients[node].placed(((name, node), number), f"p{node}", message, 0.0))
        for peer in topic.members():
            if peer != node:
                self.flying.append((node, peer, ("pub", name, number, message)))

    def _on_pub(self, node: int, source: int, name: str, number: int, message: Any) -> None:
        topic = self.topics[node][name]
        if topic.phase == "in" or (self.hands_early and topic.phase in ("join", "act")):
            self._place(node, name, source, number, message)
        elif topic.member:
            topic.early.append((source, number, message))

    def _place(self, node: int, name: str, source: int, number: int, message: Any) -> None:
        if self.topics[node][name].held:
            place = ((name, source), number)
            self._do(node, self.clients[node].placed(place, f"p{source}", message, 0.0))

    def _do(self, node: int, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Deliver):
                self.judge.delivered(node, effect.event.id)
            elif isinstance(effect, Join):
                self._call(node, effect.topic, "sub")
            elif isinstance(effect, Leave):
                self._call(node, effect.topic, "uns")
            elif isinstance(effect, Answer) and effect.call.startswith("+"):
                self.clock += 1
                topic = effect.call[1:]
                if topic in self.clients[node].topics_held:  # else it was dropped meanwhile
                    self.since[node, topic] = self.clock

    # What must be true when nothing flies any more.

    def missed(self) -> list[tuple[int, str]]:
        """Events that were launched while a node was in, which still is, and which it lacks."""
        return [
            (node, event)
            for (node, topic), since in sorted(self.since.items())
            for event, at in self.launched.items()
            if self.judge.topics[event] == topic
            and at > since
            and event not in self.judge.deliveries(node)
        ]

    def waiting(self) -> int:
        return sum(client.waiting for client in self.clients)
