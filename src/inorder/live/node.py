"""One machine in this process: what the host knows about it between two inputs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from inorder.effect import Answer, Deliver
from inorder.event import Event
from inorder.guarantee import Guarantee
from inorder.machine import Machine
from inorder.wire import Decoder


class Owner(Protocol):
    """Whoever put the machine there and gets what it has to say to applications."""

    def delivered(self, delivery: Deliver) -> None: ...

    def answered(self, answer: Answer) -> None: ...

    def received(self, offset: int, events: Sequence[Event], size: int) -> None:
        """The network handed over events of a topic, the first at this offset, in so many bytes;
        each may be delivered now, later or never."""

    def has_room(self) -> bool:
        """Whether more may be received now."""

    def broken(self, error: Exception) -> None:
        """The machine is no more: what it wanted written was not, or its input cannot be read."""


class Node:
    """A machine, its timers, and how far it has read the log."""

    def __init__(
        self, name: str, machine: Machine, ordered: Guarantee, owner: Owner | None
    ) -> None:
        self.name = name
        self.machine = machine
        self.ordered = ordered
        # None: a service of the guarantee, which serves everybody.
        self.owner = owner
        self.decoder = Decoder(ordered.log.messages)
        self.timers: dict[str, asyncio.TimerHandle] = {}
        # Topics joined -> the log id behind which they count; and how far the log has been read.
        self.joined: dict[str, int] = {}
        # Topics whose past is wanted -> the first offset.
        self.replay: dict[str, int] = {}
        self.read_up_to = 0
        # The last turn without which the machine is nothing: what it asked for must be written.
        self.dirty_in = 0

    def set_timer(self, name: str, after_s: float, fire: Callable[[], None]) -> None:
        self.cancel_timer(name)
        self.timers[name] = asyncio.get_running_loop().call_later(after_s, fire)

    def cancel_timer(self, name: str) -> None:
        if handle := self.timers.pop(name, None):
            handle.cancel()

    def stop(self) -> None:
        for handle in self.timers.values():
            handle.cancel()
        self.timers.clear()
