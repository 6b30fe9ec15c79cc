"""A few verbs to drive machines by hand: no network, no time, everything visible."""

from __future__ import annotations

from typing import Any

from inorder.core.effect import Answer, Deliver, Diffuse, Join, Note, Persist, Send, SetTimer
from inorder.core.event import Event
from inorder.core.machine import make_all
from inorder.protocols.session.messages import Ack, Frame
from inorder.protocols.total import Client, Directory, Options, Stage
from inorder.protocols.total.messages import Events
from inorder.protocols.total.version import session_of

TOPICS = ("t1", "t2", "t3")

# The session that a client begins in its first life, and in its second.
FIRST = session_of(1)
SECOND = session_of(2)


def of(kind: type, effects: list[Any]) -> list[Any]:
    return [effect for effect in effects if isinstance(effect, kind)]


def marks(effects: list[Any]) -> list[str]:
    return [effect.mark for effect in of(Note, effects)]


def delivered(effects: list[Any]) -> list[str]:
    """What an application gets, a star behind what came too late."""
    return [
        each.event.id + ("" if each.in_order else "*") for each in of(Deliver, effects)
    ]  # fmt: skip


def bodies(effects: list[Any]) -> list[tuple[str, Any]]:
    """Messages sent in frames: target and body."""
    return [
        (each.target, each.message.body)
        for each in of(Send, effects)
        if isinstance(each.message, Frame)
    ]


def stage(name: str = "stage1", **options: Any) -> Stage:
    chosen = Options(**options)
    return Stage(name, Directory(TOPICS, chosen.topics_per_stage), chosen)


def client(name: str = "a", **options: Any) -> Client:
    return Client(name, TOPICS, Options(**options))


class Net:
    """Machines joined by links that work: delivers until nobody has anything to say."""

    def __init__(self, *clients: str, **options: Any) -> None:
        from inorder.protocols.total import services

        self.options = Options(**options)
        self.machines: dict[str, Any] = dict(make_all(services(TOPICS, self.options)))
        for name in clients:
            self.machines[name] = Client(name, TOPICS, self.options)
        self.members: dict[str, dict[str, None]] = {}
        self.delivered: dict[str, list[str]] = {name: [] for name in clients}
        self.answers: dict[str, str] = {}
        self.notes: list[str] = []
        self.disks: dict[str, list[bytes]] = {name: [] for name in self.machines}
        self.timers: dict[str, list[str]] = {name: [] for name in self.machines}
        # Whoever is asked whether a message goes through; all do by default.
        self.passes = lambda source, target, message: True
        self._queue: list[tuple[str, str, Any]] = []

    def call(self, name: str, verb: str, *args: Any, now: float = 0.0) -> None:
        self.act(name, getattr(self.machines[name], verb)(*args, now))
        self.run(now)

    def act(self, name: str, effects: list[Any]) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                self._queue.append((name, effect.target, effect.message))
            elif isinstance(effect, Diffuse):
                for member in self.members.get(effect.topic, {}):
                    self._queue.append((name, member, effect.message))
            elif isinstance(effect, Deliver):
                self.delivered[name].append(delivered([effect])[0])
            elif isinstance(effect, Answer):
                self.answers[effect.call] = effect.outcome
            elif isinstance(effect, Join):
                self.members.setdefault(effect.topic, {})[name] = None
                self.act(name, self.machines[name].joined(effect.topic, 0.0))
            elif isinstance(effect, Note):
                self.notes.append(effect.mark)
            elif isinstance(effect, Persist):
                self.disks[name].append(effect.record)
            elif isinstance(effect, SetTimer):
                self.timers[name].append(effect.name)

    def run(self, now: float = 0.0) -> None:
        while self._queue:
            source, target, message = self._queue.pop(0)
            if self.passes(source, target, message):
                self.act(target, self.machines[target].receive(source, message, now))

    def fire(self, name: str, timer: str, now: float = 0.0) -> None:
        effects = self.machines[name].fire(timer, now)
        if timer.startswith("resend/") and [type(each) for each in effects] == [SetTimer]:
            # Something left after it was set: it only looks again.
            effects = self.machines[name].fire(timer, now)
        self.act(name, effects)
        self.run(now)

    def rest(self) -> None:
        """Let everybody say how far it has come."""
        for name, machine in self.machines.items():
            if isinstance(machine, Client):
                self.fire(name, "renew")

    def restart(self, name: str) -> None:
        """Crash and come back with what is on disk."""
        old = self.machines[name]
        if isinstance(old, Client):
            fresh: Any = Client(name, TOPICS, self.options)
        else:
            from inorder.protocols.total import services

            fresh = services(TOPICS, self.options)[name].make()
        for record in self.disks[name]:
            fresh.replay(record)
        self.machines[name] = fresh
        self.act(name, fresh.resume(0.0))
        self.run()


def events(topic: str, first: int, stamp: dict[str, int], *seqs: int, epoch: int = 0) -> Events:
    """A batch of publisher p, as its manager would diffuse it."""
    batch = tuple(Event("p", seq, topic) for seq in seqs)
    return Events(topic, first, epoch, tuple(sorted(stamp.items())), batch)


__all__ = [
    "FIRST",
    "SECOND",
    "TOPICS",
    "Ack",
    "Net",
    "bodies",
    "client",
    "delivered",
    "events",
    "marks",
    "of",
    "stage",
]
