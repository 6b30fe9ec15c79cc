"""Sessions: reliable messages in order, over links that lose, double and reorder.

Rule 1: the sender numbers its messages and keeps them until they are acknowledged (outgoing.py).
Rule 2: the receiver takes them in order, keeps what comes early, and says what it has
        (incoming.py). Duplicates are recognised by their number, for ever.
Rule 3: a machine takes a message, changes its state and counts its answers in one step. A durable
        machine persists the message first, so that after a crash the same answers get the same
        numbers, and the receivers recognise what they have already. For the same reason it
        persists that a session begins or ends (`begins`, `end`).
Rule 4: a link without unacknowledged messages has no timer: a quiet world becomes quiet.
Rule 5: forgetting is by number, never by a clock. Of an ended session stays one row. Beyond
        LINK_ENDED_MAX rows the oldest go and raise the floor: a session that is not above it is
        answered `Unknown`, and its owner begins another one with a larger number.

Rule 6: the number of a session says who began it. Its lowest bits are free for a service that has
        to begin one itself, then comes the life of the client, and above it how often that life had
        to begin anew. So no two lives ever share a number.

Theory (the report asks for FIFO links in Lemma 1 and re-sends requests in "Reliability", which
together break both FIFO and uniqueness: errata F1, F2, S14). Services are durable: their sessions
with each other have number 0 and never end. A client forgets everything in a crash, so its sessions
begin above a number that grows with each of its lives.

A *token* says which owner of a durable log speaks. It grows at each take-over; a smaller one than
the largest heard comes from an owner that has been replaced, and is refused.
"""

from __future__ import annotations

from typing import Any, Generic, Literal

from msgspec import Struct, field

from inorder.core import wire
from inorder.core.effect import CancelTimer, Effect, Note, Send, SetTimer
from inorder.core.limits import (
    LINK_ENDED_MAX,
    LINK_PEERS_MAX,
    LINK_TRIES_MAX,
    LINK_UNACKED_MAX,
    LINK_WINDOWS_BYTES,
)
from inorder.core.numbers import Numbers
from inorder.protocols.session.incoming import Incoming
from inorder.protocols.session.messages import Ack, Body, Bye, Frame, Unknown
from inorder.protocols.session.outgoing import Outgoing

RESEND = "resend"

# Sessions of one life: bit 40 and up count how often it began anew. What is larger than the last
# number is refused, and no floor rises above half of it: a peer must not use up the numbers.
AGAIN_BITS = 40
SESSION_MAX = 2**63 - 1
FLOOR_MAX = 2**62


class Link(Struct, Generic[Body], array_like=True):
    """Both directions of one session with one peer, and the largest token heard of it."""

    session: int = 0
    token: int = 0
    # Ticks of the owner's timer since anything was heard of the peer.
    silence: int = 0
    out: Outgoing[Body] = field(default_factory=Outgoing)
    into: Incoming[Body] = field(default_factory=Incoming)


class Ended(Struct, array_like=True):
    """What stays of a session; `place` says which of them ended first. One that was `cut` has lost
    messages: its peer must begin another one."""

    session: int
    token: int
    sent: int
    received: int
    place: int
    cut: bool = False


class Sessions(Struct, Generic[Body]):
    """The state of all sessions of one machine."""

    token: int = 0
    peers: dict[str, Link[Body]] = {}
    ended: dict[str, Ended] = {}
    endings: int = 0
    floor: int = 0


class Links(Generic[Body]):
    """All sessions of one machine. `post` during an input, `flush` at its end.

    `first` is the number of a session that this machine begins; `patient` machines wait for their
    peers as long as it takes, others leave a peer alone that is silent for minutes.
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
        self.s: Sessions[Body] = Sessions()
        self._resend_s = resend_s
        self._trusted = trusted
        self._patient = patient
        self._first = first
        self._channel = channel
        self._kept_bytes = 0
        # Of the input in progress: what was posted on trusted links, whose links have something to
        # send, or may have now that something was acknowledged; what they send again, and peers to
        # be told what has come.
        self._posted: dict[str, list[Body]] = {}
        self._touched: dict[str, None] = {}
        self._heard: dict[str, None] = {}
        self._again: dict[str, list[int]] = {}
        self._owed: dict[str, None] = {}
        self._notes: list[Effect] = []
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
        session, received = (row.session, row.received) if row else (self._first, 0)
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
        self._again[peer] = out.overdue(now)
        return [Note("resend", peer)]

    # Receiving.

    def refuse(self, source: str, message: Frame[Body] | Ack) -> list[Effect]:
        """What is said instead, if a message is not even looked at."""
        link = self.s.peers.get(source) or self.s.ended.get(source)
        session = message.session
        if session > SESSION_MAX:
            return [Note("bad_session", source)]
        if link is None:
            if 0 < session <= self.s.floor:
                return [Note("unknown_session", source), self._unknown(source, session)]
            full = len(self.s.peers) >= LINK_PEERS_MAX
            return [Note("too_many_peers", source)] if full else []
        if isinstance(link, Ended) and link.cut and session <= link.session:
            return [Note("unknown_session", source), self._unknown(source, session, link.session)]
        if message.token < link.token:
            return [Note("fenced", source)]
        if session >= link.session:
            return []
        # Perhaps its present one, all the same: then it must begin another.
        return [Note("old_session", source), self._unknown(source, session, link.session)]

    def _unknown(self, source: str, session: int, floor: int = 0) -> Send:
        return Send(source, Unknown(session, max(floor, self.s.floor), self._channel))

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

    def knows(self, source: str) -> bool:
        """Whether there was a session with this peer."""
        return source in self.s.peers or source in self.s.ended

    def begins(self, source: str, message: Frame[Body] | Ack) -> bool:
        """Whether a message that is not refused belongs to a session not yet begun here."""
        link = self.s.peers.get(source) or self.s.ended.get(source)
        if link is None:
            return isinstance(message, Frame)
        return message.session > link.session

    def carries(self, source: str) -> int:
        """How many messages a session that ends now would leave without an acknowledgement."""
        link = self.s.peers.get(source)
        return len(link.out.unacked) if link else 0

    def begin(self, source: str, session: int, carried: int) -> None:
        """The peer has begun another session. What it has not acknowledged in the old one goes on
        in the new one: it may have asked for it before we heard of the new one. (A replay may know
        of more messages than the owner had, the last of them are the same.)"""
        old = self.s.peers.get(source)
        bodies = old.out.unacked[len(old.out.unacked) - carried :] if old else []
        link = self._begin(source, session)
        for body in bodies:
            link.out.post(body)
        self._touched[source] = None

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
        link.silence = 0
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
        given_up = out.unacked and not out.timing
        missing = out.acknowledge(number, message.runs, now)
        if given_up:
            # There it is again.
            out.tries = 0
            missing = out.overdue(now)
        if missing:
            self._again[source] = missing
        self._heard[source] = None

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

    # Beginning and ending.

    def session(self, peer: str) -> int:
        """The number of the session with a peer, or of the one that would be begun."""
        link = self.s.peers.get(peer) or self.s.ended.get(peer)
        return link.session if link else self._first

    def begin_anew(self, peer: str, floor: int) -> None:
        """The peer remembers nothing up to this number. What was on its way is lost."""
        self._begin(peer, above(max(self.session(peer), floor), self._first))

    def may_end(self, peer: str) -> bool:
        """Whether nothing of this session is under way, as far as this end can see."""
        link = self.s.peers.get(peer)
        return link is not None and not link.out.unacked and not link.into.window

    def bye(self, peer: str) -> Send:
        link = self.s.peers[peer]
        return Send(peer, Bye(link.session, self.s.token, link.out.sent, self._channel))

    def honours(self, source: str, bye: Bye) -> bool:
        """Whether a session may end on this word: a late copy is older than what came since."""
        link = self.s.peers.get(source)
        if link is None or bye.session != link.session or bye.token < link.token:
            return False
        return self.may_end(source) and link.into.received == bye.sent

    def end(self, peer: str, cut: bool = False) -> None:
        """Keep one row of a session, and not too many rows. If something is on its way it is lost,
        and the session is `cut`."""
        s = self.s
        # Nothing says in a log that an ended session goes on with a frame that came early.
        link = self._link(peer)
        del s.peers[peer]
        self._kept_bytes -= link.into.bytes
        if cut:
            self._notes.append(Note("link_cut", peer))
        if link.out.timing:
            self._notes.append(CancelTimer(f"{RESEND}/{peer}"))
        s.endings += 1
        s.ended[peer] = Ended(
            link.session, link.token, link.out.sent, link.into.received, s.endings, cut
        )
        if len(s.ended) <= LINK_ENDED_MAX:
            return
        # A tenth at once, so that forgetting costs nothing per session.
        oldest = sorted(s.ended, key=lambda name: s.ended[name].place)
        for name in oldest[: max(1, LINK_ENDED_MAX // 10)]:
            s.floor = max(s.floor, min(s.ended.pop(name).session, FLOOR_MAX))

    def hear(self, peer: str) -> None:
        """The peer has shown itself otherwise than in this session."""
        if peer in self.s.peers:
            self.s.peers[peer].silence = 0

    def silent(self, ticks: int) -> list[str]:
        """Count one tick for everybody; clients of whom nothing was heard for more than these."""
        names = []
        for peer, link in self.s.peers.items():
            link.silence += 1
            if link.session and link.silence > ticks:
                names.append(peer)
        return sorted(names)

    @property
    def has_clients(self) -> bool:
        return any(link.session for link in self.s.peers.values())

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

    def _link(self, peer: str) -> Link[Body]:
        """The session with a peer: one that has ended goes on where it ended."""
        link = self.s.peers.get(peer)
        if link is None:
            row = self.s.ended.pop(peer, None)
            first = row.session + row.cut if row else self._first
            link = self._begin(peer, first)
            if row and not row.cut:
                link.token = row.token
                link.out.sent = row.sent
                link.out.reached.skip(row.sent)
                link.into.come.skip(row.received)
        return link

    def _begin(self, peer: str, session: int) -> Link[Body]:
        old = self.s.peers.get(peer) or self.s.ended.pop(peer, None)
        if isinstance(old, Link):
            self._kept_bytes -= old.into.bytes
            if old.out.timing:
                self._notes.append(CancelTimer(f"{RESEND}/{peer}"))
        self._again.pop(peer, None)
        link: Link[Body] = Link(session=session, token=old.token if old else 0)
        self.s.peers[peer] = link
        return link


def above(floor: int, first: int) -> int:
    """A session that is above a floor, of the life whose first session is `first`.

    >>> above(7, 3) == above(0, 3) == 2**40 + 3
    True
    """
    return ((floor >> AGAIN_BITS) + 1) << AGAIN_BITS | first


def durable(sessions: Sessions[Any]) -> Sessions[Any]:
    """What a new owner can rely on: numbers and messages, but no windows and no measured times."""
    links = {}
    for peer, link in sessions.peers.items():
        out, into = link.out, link.into
        links[peer] = Link(
            link.session,
            link.token,
            0,
            Outgoing(out.sent, out.unacked, Numbers.after(out.acked)),
            Incoming(Numbers.after(into.received)),
        )
    return Sessions(sessions.token, links, sessions.ended, sessions.endings, sessions.floor)
