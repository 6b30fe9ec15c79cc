"""Two ends of a session, and a network between them that a test directs."""

from __future__ import annotations

from random import Random
from typing import Any

from inorder.core.effect import CancelTimer, Send, SetTimer
from inorder.protocols.session.links import Links
from inorder.protocols.session.messages import Ack, Bye, Frame


def messages(effects: list[Any]) -> list[Any]:
    return [each.message for each in effects if isinstance(each, Send)]


def numbers(effects: list[Any]) -> list[int]:
    """The numbers of the frames that leave."""
    return [each.number for each in messages(effects) if isinstance(each, Frame)]


class End:
    """One machine with one peer. `taken` is what its application got."""

    def __init__(self, name: str, peer: str, **how: Any) -> None:
        self.name = name
        self.peer = peer
        self.links: Links[str] = Links(0.5, **how)
        self.taken: list[str] = []
        self.timer: float | None = None

    def post(self, *bodies: str, now: float = 0.0) -> list[Any]:
        for body in bodies:
            self.links.post(self.peer, body)
        return self._leave(self.links.flush(now), now)

    def receive(self, message: Any, now: float = 0.0) -> list[Any]:
        links, peer = self.links, self.peer
        if isinstance(message, Bye):
            if links.honours(peer, message):
                links.end(peer)
            return []
        if refusal := links.refuse(peer, message):
            return refusal
        if isinstance(message, Frame):
            place = links.place(peer, message)
            if place == "next":
                for frame in (message, *links.followers(peer, message)):
                    links.take(peer, frame)
                    self.taken.append(frame.body)
            elif place == "early":
                links.keep(peer, message)
            else:
                links.owe(peer)
        links.acknowledged(peer, message, now)
        return self._leave(links.flush(now), now)

    def fire(self, now: float = 0.0) -> list[Any]:
        self.timer = None
        return self._leave([*self.links.fire(self.peer, now), *self.links.flush(now)], now)

    def _leave(self, effects: list[Any], now: float) -> list[Any]:
        for effect in effects:
            if isinstance(effect, SetTimer):
                self.timer = now + effect.after_s
            elif isinstance(effect, CancelTimer):
                self.timer = None
        return effects


class Wire:
    """Virtual time between two ends. `way(message, rng)` says when each copy arrives, in seconds;
    no copy means that it is lost."""

    def __init__(self, one: End, other: End, way: Any, seed: int = 0) -> None:
        self.ends = {one.name: one, other.name: other}
        self.way = way
        self.rng = Random(seed)
        self.now = 0.0
        self.flying: list[tuple[float, int, str, Any]] = []
        self._sent = 0

    def send(self, end: End, effects: list[Any]) -> None:
        for message in messages(effects):
            for delay_s in self.way(message, self.rng):
                self._sent += 1
                self.flying.append((self.now + delay_s, self._sent, end.peer, message))

    def post(self, name: str, *bodies: str) -> None:
        self.send(self.ends[name], self.ends[name].post(*bodies, now=self.now))

    def run(self, until: float) -> None:
        """Let everything happen up to a time."""
        while True:
            timers = [
                (end.timer, name)
                for name, end in sorted(self.ends.items())
                if end.timer is not None
            ]
            arrival = min(self.flying, default=None)
            timer = min(timers, default=None)
            if arrival is not None and (timer is None or arrival[0] <= timer[0]):
                if arrival[0] > until:
                    break
                self.flying.remove(arrival)
                self.now, _, name, message = arrival
                self.send(self.ends[name], self.ends[name].receive(message, self.now))
            elif timer is not None and timer[0] <= until:
                self.now, name = timer
                self.send(self.ends[name], self.ends[name].fire(self.now))
            else:
                break
        self.now = until


__all__ = ["Ack", "End", "Wire", "messages", "numbers"]
