"""A tiny machine that does what it is told, and short ways to run scenarios."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from inorder.core.effect import Effect
from inorder.sim.memory import Memory
from inorder.sim.models import Ideal
from inorder.sim.scenario import parse
from inorder.sim.simulate import simulate
from inorder.sim.world import World


class Tell(Struct, frozen=True, tag=True):
    """Makes a `Puppet` return these effects."""

    effects: list[Any]


class Puppet:
    """Returns the effects a message carries; persists and replays a list of words."""

    def __init__(self) -> None:
        self.replayed: list[bytes] = []
        self.fired: list[tuple[str, float]] = []
        self.heard: list[Any] = []
        self.resumed = 0

    def receive(self, source: str, message: Any, now: float) -> list[Effect]:
        self.heard.append(message)
        return message.effects if isinstance(message, Tell) else []

    def fire(self, timer: str, now: float) -> list[Effect]:
        self.fired.append((timer, now))
        return []

    def replay(self, record: bytes) -> None:
        self.replayed.append(record)

    def resume(self, now: float) -> list[Effect]:
        self.resumed += 1
        return []

    def snapshot(self) -> bytes:
        return msgspec.msgpack.encode([self.replayed, self.fired])

    @classmethod
    def restore(cls, snapshot: bytes) -> Puppet:
        puppet = cls()
        puppet.replayed, puppet.fired = msgspec.msgpack.decode(snapshot)
        return puppet


def puppets(*names: str, **options: Any) -> tuple[World, Memory]:
    memory = Memory()
    world = World(Ideal(), "seed", memory, **options)
    for name in names:
        world.add(name, Puppet)
    return world, memory


def tell(world: World, node: str, *effects: Effect) -> None:
    world.network.send(node, node, Tell(list(effects)))


def run(text: str, seed: int = 1, **options: Any) -> tuple[Memory, Any]:
    memory = Memory()
    return memory, simulate(parse(text), seed, memory, **options)
