"""A peer's sessions with the others, over links that lose, double and reorder."""

from __future__ import annotations

from typing import Any

from inorder.core.effect import CancelTimer, Effect, SetTimer
from inorder.protocols.session.links import Links
from inorder.protocols.session.messages import Ack, Frame

CHANNEL = "cube"
TIMER = "cube/"
RESEND = "resend/"


class PeerLinks(Links[Any]):
    """Sessions with timers under names that are the peer's own. Nobody ends them: peers are known
    to each other for ever."""

    def __init__(self, resend_s: float) -> None:
        super().__init__(resend_s, patient=True, channel=CHANNEL)

    def take_in(
        self, source: str, message: Frame[Any] | Ack, now: float
    ) -> tuple[list[Any], list[Effect]]:
        """What is next in its session now, and what is said to a message that is refused."""
        if refusal := self.refuse(source, message):
            return [], refusal
        frames: list[Frame[Any]] = []
        if isinstance(message, Frame):
            place = self.place(source, message)
            if place == "next":
                frames = [message, *self.followers(source, message)]
                for frame in frames:
                    self.take(source, frame)
            elif place == "early":
                self.keep(source, message)
            else:
                self.owe(source)
        self.acknowledged(source, message, now)
        return [frame.body for frame in frames], []

    def flush(self, now: float) -> list[Effect]:
        return [_named(effect) for effect in super().flush(now)]

    def fire(self, timer: str, now: float) -> list[Effect]:
        peer = timer.removeprefix(TIMER).removeprefix(RESEND)
        return [_named(effect) for effect in super().fire(peer, now)]


def _named(effect: Effect) -> Effect:
    if isinstance(effect, SetTimer):
        return SetTimer(TIMER + effect.name, effect.after_s)
    if isinstance(effect, CancelTimer):
        return CancelTimer(TIMER + effect.name)
    return effect
