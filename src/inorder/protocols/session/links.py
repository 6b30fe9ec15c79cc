"""Sessions: reliable messages in order, over links that lose, double and reorder.

Rule 1: the sender numbers its messages and keeps them until they are acknowledged (outgoing.py).
Rule 2: the receiver takes them in order, keeps what comes early, and says what it has
        (incoming.py). Duplicates are recognised by their number, for ever.
Rule 3: a machine takes a message, changes its state and counts its answers in one step. A durable
        machine persists the message first, so that after a crash the same answers get the same
        numbers, and the receivers recognise what they have already. For the same reason it
        persists that a session begins or ends (`begins`, `end`).
Rule 4: a link without unacknowledged messages has no timer: a quiet world becomes quiet.

How sessions begin, end and are forgotten is in book.py.

Theory. The report asks for FIFO links in Lemma 1 and re-sends requests in "Reliability", which
together break both FIFO and uniqueness (errata F1, F2, S14).
"""

from __future__ import annotations

from typing import Any, Literal

from inorder.core import wire
from inorder.core.effect import CancelTimer, Effect, Note, Send, SetTimer
from inorder.core.limits import LINK_TRIES_MAX, LINK_UNACKED_MAX, LINK_WINDOWS_BYTES
from inorder.protocols.session.book import RESEND, Book, Link, Sessions, above
from inorder.protocols.session.messages import Ack, Body, Frame
from inorder.protocols.session.outgoing import Outgoing


class Links(Book[Body]):
    """All sessions of one machine. `post` during an input, `flush` at its end.

    `patient` machines wait for their peers as long as it takes, others leave a peer alone that is
    silent for minutes.
    """

    def __init__(
        self,
        resend_s: float,
        *,
        trusted: bool = False,
        patient: bool = False,
        first: int = 0,
        channel: str = "",
    ) -> None:
        super().__init__(first, channel)
        self._resend_s = resend_s
        self._trusted = trusted
        self._patient = patient
        # Of the input in progress: what was posted on trusted links, whose links may have room now
        # that something was acknowledged, and peers to be told what has come.
        self._posted: dict[str, list[Body]] = {}
        self._heard: dict[str, None] = {}
        self._owed: dict[str, None] = {}
        self.counts = {"frames": 0, "frames_again": 0, "frames_early": 0, "acks": 0}

    def account(self) -> dict[str, float]:
        """Frames that left, came early, left again; acknowledgements alone (account.py)."""
        return {} if self._trusted else {name: float(n) for name, n in self.counts.items()}

    def load(self, sessions: Sessions[Body]) -> None:
        self.s = sessions
        self._kept_bytes = sum(link.into.bytes for link in sessions.peers.values())

    @property
    def idle(self) -> bool:
        return not any(link.out.unacked for link in self.s.peers.values())

    # Sending.

    def post(self, peer: str, body: Body, session: int = 0) -> None:
        """Queue a message, in a session of at least this number."""
        if self._trusted:
            self._posted.setdefault(peer, []).append(body)
            return
        if 0 < session <= self.s.floor and not self.knows(peer):
            session = above(self.s.floor, session)  # nobody knows what was said in that one
        link = self._link(peer)
        if session > link.session:
            link = self._begin(peer, session)
        link.out.post(body)
        self._touched[peer] = None

    def flush(self, now: float) -> list[Effect]:
        """Send what was posted and what is missing; acknowledgements ride along."""
        effects, self._notes = self._notes, []
        if self._trusted:
            posted, self._posted = self._posted, {}
            return [Send(peer, body) for peer, bodies in posted.items() for body in bodies]
        for peer, numbers in self._again.items():
            if (link := self.s.peers.get(peer)) is None:
                continue
            effects += [self._send(peer, link, number) for number in numbers]
            self.counts["frames_again"] += len(numbers)
        for peer in self._touched | self._heard:
            if (link := self.s.peers.get(peer)) is None:
                continue
            first = link.out.launch(now)
            effects += [self._send(peer, link, number) for number in first]
            self.counts["frames"] += len(first)
            effects += self._time(peer, link.out)
        for peer in self._owed:
            effects.append(Send(peer, self._ack(peer)))
            self.counts["acks"] += 1
        self._forget_input()
        return effects

    def overfull(self) -> list[str]:
        """Clients that too much waits for: their sessions are to be cut. Services are waited for
        as long as it takes, what waits for them is bounded by the rounds under way."""
        peers = self.s.peers
        return [
            peer for peer in self._touched
            if peer in peers and peers[peer].session
            and len(peers[peer].out.unacked) > LINK_UNACKED_MAX
        ]  # fmt: skip

    def discard(self) -> None:
        """Replay: what was posted is kept as unacknowledged, nothing is sent."""
        self._posted.clear()
        self._notes.clear()
        self._forget_input()

    def _forget_input(self) -> None:
        self._touched = {}
        self._heard = {}
        self._again = {}
        self._owed = {}

    def _time(self, peer: str, out: Outgoing[Body]) -> list[Effect]:
        if bool(out.unacked) == out.timing:
            return []
        out.timing = not out.timing
        out.later = False
        if not out.timing:
            return [CancelTimer(f"{RESEND}/{peer}")]
        return [SetTimer(f"{RESEND}/{peer}", out.trip.wait_s(self._resend_s, out.tries))]

    def _send(self, peer: str, link: Link[Body], number: int) -> Send:
        self._owed.pop(peer, None)
        into = link.into
        return Send(peer, Frame(
            link.session, self.s.token, number, into.acknowledged, link.out.body(number),
            into.runs(),
            self._channel,
        ))  # fmt: skip

    def _ack(self, peer: str) -> Ack:
        link = self.s.peers.get(peer)
        if link is not None:
            return Ack(link.session, self.s.token, link.into.acknowledged, link.into.runs(),
                       self._channel)  # fmt: skip
        row = self.s.ended.get(peer)
        session, received = (row.session, row.received) if row else (self._own(), 0)
        return Ack(session, self.s.token, received, (), self._channel)

    def fire(self, peer: str, now: float) -> list[Effect]:
        """The peer has been silent: send again what it lacks, ever more patiently."""
        link = self.s.peers.get(peer)
        if link is None:
            return []
        out = link.out
        out.timing = False
        if not out.unacked:
            return []
        self._touched[peer] = None
        if out.later:
            # Something left after the timer was set: the tail begins there.
            out.later = False
            out.timing = True
            wait_s = out.trip.wait_s(self._resend_s, out.tries)
            passed_s = now - out.newest
            left_s = wait_s - passed_s if 0.0 <= passed_s < wait_s else wait_s
            return [SetTimer(f"{RESEND}/{peer}", left_s)]
        if link.session and not self._patient and out.tries >= LINK_TRIES_MAX:
            # A client that is never seen again. Any sign of life begins anew (`acknowledged`).
            self._touched.pop(peer)
            out.tries += 1
            return [Note("link_gave_up", peer)]
        if not out.asking and not out.lacks:
            # Everything has come, and waits there for something else. Then ask, but not yet.
            out.asking = out.timing = True
            wait_s = max(self._resend_s, out.trip.wait_s(self._resend_s, out.tries))
            return [SetTimer(f"{RESEND}/{peer}", wait_s)]
        out.asking = False
        self._again[peer] = out.overdue(now)
        return [Note("resend", peer)]

    # Receiving.

    def place(self, source: str, frame: Frame[Body]) -> Literal["next", "early", "again"]:
        """Where a frame that is not refused stands."""
        link = self.s.peers.get(source)
        if link is not None and link.session == frame.session:
            return link.into.place(frame.number)
        row = self.s.ended.get(source)
        received = row.received if row and row.session == frame.session else 0
        if frame.number == received + 1:
            return "next"
        return "early" if frame.number > received else "again"

    def followers(self, source: str, frame: Frame[Body]) -> list[Frame[Body]]:
        """The frames that have waited only for this one."""
        link = self.s.peers.get(source)
        if link is None or link.session != frame.session or not link.into.window:
            return []
        return link.into.followers(frame.number)

    def take(self, source: str, frame: Frame[Body]) -> None:
        """Count the next frame of a session, perhaps its first."""
        link = self._link(source)
        if frame.session > link.session:
            link = self._begin(source, frame.session)  # its first: nothing was there before
        self._hear(link, frame.token)
        self._kept_bytes -= link.into.take(frame.number)
        self._owed[source] = None

    def keep(self, source: str, frame: Frame[Body]) -> None:
        """Let a frame that is early wait, if there is room; else it comes again."""
        into = self._link(source).into
        size = wire.size(frame)
        self._owed[source] = None
        if not into.has_room(frame.number, size) or (self._kept_bytes + size > LINK_WINDOWS_BYTES):
            self._notes.append(Note("window_full", source))
            return
        into.keep(frame, size)
        self._kept_bytes += size
        self.counts["frames_early"] += 1

    def owe(self, source: str) -> None:
        """Tell the peer again what has come: our last acknowledgement may be lost."""
        self._owed[source] = None

    def acknowledged(self, source: str, message: Frame[Any] | Ack, now: float) -> None:
        """Forget what the peer has, and send again what is proved to be missing."""
        link = self.s.peers.get(source)
        if link is None or message.session != link.session:
            return
        out = link.out
        self._hear(link, message.token)
        link.silence = 0
        number = message.ack if isinstance(message, Frame) else message.number
        if not out.believable(number, message.runs):
            return  # a number never given is a peer's fault and proves nothing
        given_up = out.given_up
        missing = out.acknowledge(number, message.runs, now)
        if missing:
            self._again[source] = missing
        self._heard[source] = None
        if given_up:
            self._try_again(source, link, now)

    def hear(self, peer: str, now: float) -> None:
        """The peer has shown itself otherwise than in this session."""
        link = self.s.peers.get(peer)
        if link is None:
            return
        link.silence = 0
        if link.out.given_up:
            self._try_again(peer, link, now)

    def _try_again(self, peer: str, link: Link[Body], now: float) -> None:
        """There it is again: a peer that we had given up."""
        link.out.tries = 0
        self._again[peer] = link.out.overdue(now)
        self._touched[peer] = None

    def _hear(self, link: Link[Body], token: int) -> None:
        """A new owner knows nothing of the frames that its predecessor has kept."""
        if token > link.token:
            link.token = token
            link.out.renege()

    def replayed(self, source: str, frame: Frame[Any]) -> None:
        """A frame of the past acknowledges what was sent before it."""
        link = self.s.peers.get(source)
        if link is not None and frame.session == link.session:
            link.out.replay(frame.ack)

    def greeting(self, peer: str) -> Send:
        """A sign of life: what we have of this peer, which may have given us up."""
        return Send(peer, self._ack(peer))

    def resume(self) -> None:
        """After a crash: everything unacknowledged may have been lost."""
        for peer, link in sorted(self.s.peers.items()):
            link.out.land()
            link.into.forget_window()
            self._touched[peer] = None
        self._kept_bytes = 0
