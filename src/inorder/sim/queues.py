"""Peers that are told whether something stands in their output queues.

A real driver asks its sockets; here the network's model knows. Peers are told before every input
from outside, and only those that want to know (`[network.cube] adapt`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, runtime_checkable

from inorder.core.effect import Effect
from inorder.guarantee.peer import Peered
from inorder.sim.network import Model
from inorder.sim.world import World


@runtime_checkable
class Queueing(Protocol):
    """A model in which copies wait in line at their senders."""

    def is_busy(self, source: str, now: float) -> bool:
        """Whether a copy that this host sends now would have to wait."""


class Watched(Peered):
    """A peer with a driver that sees its queue."""

    def __init__(self, busy: Callable[[], bool], *args: Any) -> None:
        super().__init__(*args)
        self._busy = busy

    def receive(self, source: str, message: Any, now: float) -> list[Effect]:
        self.tell_queue(self._busy())
        return super().receive(source, message, now)

    def fire(self, timer: str, now: float) -> list[Effect]:
        self.tell_queue(self._busy())
        return super().fire(timer, now)


def peer_of(world: World, model: Model, host: str) -> Callable[..., Peered]:
    """What makes the peer on a host."""
    if not isinstance(model, Queueing):
        return Peered
    return partial(Watched, lambda: model.is_busy(host, world.agenda.now))
