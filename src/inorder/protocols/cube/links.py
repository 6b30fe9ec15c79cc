"""A peer's sessions with the others, over links that lose, double and reorder.

Rule 1: a session is between two lives (session/lives.py). A peer that has not been heard of is
        taken to be in its first one, as nearly all are: the first word asks no question.
Rule 2: of a peer that is *closed* nothing is taken, and nothing is said to it.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from inorder.core.effect import CancelTimer, Effect, SetTimer
from inorder.protocols.session.book import RESEND, Sessions
from inorder.protocols.session.links import Links
from inorder.protocols.session.lives import Lives
from inorder.protocols.session.messages import Ack, Body, Frame

CHANNEL = "cube"
TIMER = "cube/"

FIRST = 1


class LinksState(Struct):
    """In a snapshot, beside the sessions: lives are by peer."""

    life: int
    lives: list[tuple[str, int]]
    closed: list[str]


class PeerLinks(Links[Any]):
    """Sessions with timers under names that are the peer's own. They end with a life only: peers
    are known to each other for ever."""

    def __init__(self, name: str, resend_s: float) -> None:
        super().__init__(resend_s, patient=True, channel=CHANNEL)
        self.lives = Lives(name, FIRST)
        self.closed: dict[str, bool] = {}

    def life_of(self, peer: str) -> int:
        return self.lives.of(peer) or FIRST

    # Sessions.

    def post(self, peer: str, body: Any, session: int = 0) -> None:
        if peer in self.closed:
            return
        if peer not in self.s.peers:
            self.renew(peer)
        super().post(peer, body)

    def renew(self, peer: str) -> None:
        """Begin the session with a peer's present life; what was on its way is lost."""
        self.closed.pop(peer, None)
        self.begin(peer, self.lives.session(peer, self.life_of(peer)), 0)

    def close(self, peer: str) -> None:
        """A peer's last known life is over."""
        self.closed[peer] = True
        self._drop(peer)

    def live_on(self, above: int) -> None:
        """Another life of our own: all sessions have the wrong name."""
        self.lives.live_on(above)
        for peer in list(self.s.peers):
            self._drop(peer)

    def _drop(self, peer: str) -> None:
        link = self.s.peers.pop(peer, None)
        if link is None:
            return
        self._kept_bytes -= link.into.bytes
        if link.out.timing:
            self._notes.append(CancelTimer(f"{RESEND}/{peer}"))
        for queue in (self._touched, self._heard, self._owed, self._again):
            queue.pop(peer, None)

    def take_in(
        self, source: str, message: Frame[Any] | Ack, now: float
    ) -> tuple[list[Any], list[Effect]]:
        """What is next in its session now, and what is said to a message that is refused."""
        if message.session != self.lives.session(source, self.life_of(source)):
            return [], []
        if source not in self.s.peers:
            self.renew(source)
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

    # Timers.

    def flush(self, now: float) -> list[Effect]:
        return [_named(effect) for effect in super().flush(now)]

    def fire(self, timer: str, now: float) -> list[Effect]:
        peer = timer.removeprefix(TIMER).removeprefix(f"{RESEND}/")
        return [_named(effect) for effect in super().fire(peer, now)]

    # Snapshots.

    def packed(self) -> LinksState:
        known = sorted(self.lives.known.items())
        return LinksState(self.lives.life, known, sorted(self.closed))

    def become(self, state: LinksState, sessions: Sessions[Body]) -> None:
        self.lives.life = state.life
        self.lives.known = dict(state.lives)
        self.closed = dict.fromkeys(state.closed, True)
        self.load(sessions)


def _named(effect: Effect) -> Effect:
    if isinstance(effect, SetTimer):
        return SetTimer(TIMER + effect.name, effect.after_s)
    if isinstance(effect, CancelTimer):
        return CancelTimer(TIMER + effect.name)
    return effect
