"""How sessions begin, end and are forgotten.

Rule 1: forgetting is by number, never by a clock. Of an ended session stays one row. Beyond
        LINK_ENDED_MAX rows the oldest go and raise the floor: a session that is not above it is
        answered `Unknown`, and its owner begins another one with a larger number.
Rule 2: the number of a session says who began it. Its lowest bits are free for a service that has
        to begin one itself, then comes the life of the client, and above it how often that life had
        to begin anew. So no two lives ever share a number.
Rule 3: a session with a message on its way ends only as one that was cut: its peer finds out at the
        next word, and begins another one.

Services are durable: their sessions with each other have number 0 and never end. A client forgets
everything in a crash, so its sessions begin above a number that grows with each of its lives.

A *token* says which owner of a durable log speaks. It grows at each take-over; a smaller one than
the largest heard comes from an owner that has been replaced, and is refused.
"""

from __future__ import annotations

from typing import Any, Generic

from msgspec import Struct, field

from inorder.core.effect import CancelTimer, Effect, Note, Send
from inorder.core.errors import BadMessage
from inorder.core.limits import LINK_ENDED_MAX, LINK_PEERS_MAX
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


class Book(Generic[Body]):
    """Which sessions there are, and which there were. `first` is the number of a session that this
    machine begins."""

    def __init__(self, first: int, channel: str) -> None:
        self.s: Sessions[Body] = Sessions()
        self._first = first
        self._channel = channel
        # Bytes in all windows.
        self._kept_bytes = 0
        # Of the input in progress: peers to send to, what is sent again, and what else is done.
        self._touched: dict[str, None] = {}
        self._again: dict[str, list[int]] = {}
        self._notes: list[Effect] = []

    # What there is.

    def session(self, peer: str) -> int:
        """The number of the session with a peer, or of the one that would be begun."""
        link = self.s.peers.get(peer) or self.s.ended.get(peer)
        return link.session if link else self._own()

    def _own(self) -> int:
        """The number of a session that this machine begins: above all that it has forgotten, or
        its frames would be taken for those of a forgotten one."""
        forgotten = 0 < self._first <= self.s.floor
        return above(self.s.floor, self._first) if forgotten else self._first

    def knows(self, source: str) -> bool:
        """Whether there was a session with this peer."""
        return source in self.s.peers or source in self.s.ended

    def begins(self, source: str, message: Frame[Body] | Ack) -> bool:
        """Whether a message that is not refused belongs to a session not yet begun here."""
        link = self.s.peers.get(source) or self.s.ended.get(source)
        if link is None:
            return isinstance(message, Frame)
        return message.session > link.session

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

    # Beginning.

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

    def begin_anew(self, peer: str, floor: int) -> None:
        """The peer remembers nothing up to this number. What was on its way is lost."""
        session = above(max(self.session(peer), floor), self._first)
        if session > SESSION_MAX:
            raise BadMessage(peer, f"leaves no number for a session above {floor}")
        self._begin(peer, session)

    def _link(self, peer: str) -> Link[Body]:
        """The session with a peer: one that has ended goes on where it ended."""
        link = self.s.peers.get(peer)
        if link is None:
            row = self.s.ended.pop(peer, None)
            first = row.session + row.cut if row else self._own()
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

    # Ending.

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
