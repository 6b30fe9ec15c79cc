"""One machine in this process: what the host knows about it between two inputs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from inorder.bus.store.rows import Record
from inorder.core.effect import Answer, Deliver
from inorder.core.event import Event
from inorder.core.machine import Machine
from inorder.core.wire import Decoder
from inorder.guarantee.registry import Guarantee


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
        # When timers are due, and what runs for them in the loop, which may be earlier.
        self._due: dict[str, float] = {}
        self._handles: dict[str, asyncio.TimerHandle] = {}
        # Topics joined -> the log id behind which they count; and how far the log has been read.
        self.joined: dict[str, int] = {}
        # Topics whose past is wanted -> the first offset.
        self.replay: dict[str, int] = {}
        self.read_up_to = 0
        # The last turn without which the machine is nothing: what it asked for must be written.
        self.dirty_in = 0
        # What a client wanted to remember last, if it was refused.
        self.unwritten: Record | None = None

    def set_timer(self, name: str, after_s: float, fire: Callable[[Node, str], None]) -> None:
        """Timers are mostly moved and cancelled, hardly ever fired: the loop hears of few of
        these."""
        loop = asyncio.get_running_loop()
        self._due[name] = due = loop.time() + after_s
        running = self._handles.get(name)
        if running is not None:
            if running.when() <= due:
                return
            running.cancel()
        self._handles[name] = loop.call_at(due, self._ring, name, fire)

    def _ring(self, name: str, fire: Callable[[Node, str], None]) -> None:
        del self._handles[name]
        due = self._due.get(name)
        if due is None:
            return
        loop = asyncio.get_running_loop()
        if due > loop.time():
            self._handles[name] = loop.call_at(due, self._ring, name, fire)
            return
        del self._due[name]
        fire(self, name)

    def cancel_timer(self, name: str) -> None:
        self._due.pop(name, None)

    def stop(self) -> None:
        for handle in self._handles.values():
            handle.cancel()
        self._handles.clear()
        self._due.clear()
