"""Sessions: reliable messages in order, over links that lose, double and reorder.

Rule 1: the sender numbers its messages and keeps them until they are acknowledged.
Rule 2: the receiver takes only the next number and drops the rest; it acknowledges cumulatively.
        Duplicates are recognised by their number, for ever.
Rule 3: whoever takes a message, changes its state and counts its answers does so in one step. A
        durable machine persists the message first, so that after a crash the same answers get
        the same numbers, and the receivers recognise what they have already.
Rule 4: a link without unacknowledged messages has no timer: a quiet world becomes quiet.

Theory (the report asks for FIFO links in Lemma 1 and re-sends requests in "Reliability", which
together break both FIFO and uniqueness: errata F1, F2, S14). A *session* lives as long as the
memory of both ends. Services are durable, so their sessions (number 0) never end. A client forgets
everything in a crash; its `life` counts its crashes and names all its sessions. The first message
of a new life makes the service forget the old session, and messages of an older life are refused:
taken, they would be published behind events of the new life.

A *token* says which owner of a durable log speaks. It grows at each take-over; a smaller one than
the largest heard comes from an owner that has been replaced, and is refused.
"""

from __future__ import annotations

from msgspec import Struct

from inorder.core.effect import CancelTimer, Effect, Note, Send, SetTimer
from inorder.core.limits import LINK_PEERS_MAX, LINK_RESEND_BURST, LINK_TRIES_MAX, LINK_UNACKED_MAX
from inorder.protocols.total.messages import Ack, Body, Frame

# Resending backs off to this many times the first wait.
BACK_OFF_MAX = 16


class Link(Struct):
    """Both directions of one session with one peer."""

    session: int = 0
    # Out: the last number given; the messages not yet acknowledged, oldest first.
    sent: int = 0
    unacked: list[Body] = []
    # In: the last number taken, and the largest token heard.
    received: int = 0
    token: int = 0
    # How often the oldest message was sent again; whether the resend timer runs.
    tries: int = 0
    timing: bool = False


class Links:
    """All sessions of one machine. `post` during an input, `flush` at its end."""

    def __init__(self, resend_s: float, trusted: bool, patient: bool) -> None:
        self.peers: dict[str, Link] = {}
        self.token = 0
        self._resend_s = resend_s
        self._trusted = trusted
        # A client waits for its stages as long as it takes; stages do not wait for clients.
        self._patient = patient
        # Of the input in progress: messages posted, and peers to be told what has arrived.
        self._posted: dict[str, list[Body]] = {}
        self._owed: dict[str, None] = {}
        self._notes: list[Effect] = []

    @property
    def idle(self) -> bool:
        return not any(link.unacked for link in self.peers.values())

    def post(self, peer: str, body: Body, session: int = 0) -> None:
        """Queue a message; a session that has ended meanwhile swallows it."""
        if not self._trusted:
            link = self._link(peer)
            if session < link.session:
                return  # for a life that is over
            if session > link.session:
                self.peers[peer] = link = Link(session=session, token=link.token)
            if len(link.unacked) >= LINK_UNACKED_MAX:
                # Cut off: the peer will miss a number, so its session is over for good.
                link.unacked.clear()
                self._notes.append(Note("link_cut", peer))
            link.sent += 1
            link.unacked.append(body)
        self._posted.setdefault(peer, []).append(body)

    def refusal(self, source: str, frame: Frame | Ack) -> str:
        """Why a frame is not even looked at: "" if it is."""
        link = self.peers.get(source)
        if link is None:
            return "too_many_peers" if len(self.peers) >= LINK_PEERS_MAX else ""
        if frame.token < link.token:
            return "fenced"
        if frame.session < link.session:
            return "old_life"
        return ""

    def is_next(self, source: str, frame: Frame) -> bool:
        """Whether a frame that is not refused is the one to take now."""
        link = self.peers.get(source)
        if link is None or frame.session > link.session:
            return frame.number == 1
        return frame.number == link.received + 1

    def take(self, source: str, frame: Frame) -> None:
        """Count a frame that is next; a new life of the peer begins a new session."""
        link = self._link(source)
        if frame.session > link.session:
            self.peers[source] = link = Link(session=frame.session)
        assert frame.number == link.received + 1, "only the next number is taken"
        link.received = frame.number
        link.token = frame.token
        self._owed[source] = None

    def owe(self, source: str) -> None:
        """Tell the peer again what has arrived: our last acknowledgement may be lost."""
        self._owed[source] = None

    def acknowledged(self, source: str, frame: Frame | Ack, number: int) -> list[Effect]:
        """Forget what the peer has; returns what becomes of the resend timer."""
        link = self.peers.get(source)
        if link is None:
            return []
        if frame.session > link.session:
            # The peer has begun a new life: the old session is over, with all that was on its way.
            self.peers[source] = Link(session=frame.session, token=frame.token)
            return [CancelTimer(f"resend/{source}")] if link.timing else []
        link.token = max(link.token, frame.token)
        done = number - (link.sent - len(link.unacked))
        # A number never sent is a peer's fault and proves nothing; an old one proves that the peer
        # is there, which matters if we had given it up.
        if done <= 0 or done > len(link.unacked):
            return self._again(source, link)
        del link.unacked[:done]
        link.tries = 0
        if link.unacked:
            link.timing = True
            return [SetTimer(f"resend/{source}", self._resend_s)]
        if not link.timing:
            return []
        link.timing = False
        return [CancelTimer(f"resend/{source}")]

    def fire(self, peer: str) -> list[Effect]:
        """The peer has been silent: send the oldest messages again, ever more patiently."""
        link = self.peers[peer]
        link.timing = False
        if not link.unacked:
            return []
        link.tries += 1
        if link.session and not self._patient and link.tries > LINK_TRIES_MAX:
            # A client that is never seen again. Any sign of life begins anew (`acknowledged`).
            return [Note("link_gave_up", peer)]
        return [Note("resend", peer), *self._resend(peer, link)]

    def _again(self, peer: str, link: Link) -> list[Effect]:
        if link.timing or link.tries <= LINK_TRIES_MAX:
            return []
        link.tries = 0
        return self._resend(peer, link)

    def greeting(self, peer: str, session: int) -> Send:
        """A sign of life: what we have of this peer, which may have given us up."""
        link = self.peers.get(peer)
        received = link.received if link and link.session == session else 0
        return Send(peer, Ack(session, self.token, received))

    def resume(self) -> list[Effect]:
        """After a crash: everything unacknowledged may have been lost."""
        effects: list[Effect] = []
        for peer, link in sorted(self.peers.items()):
            link.tries = 0
            link.timing = False
            if link.unacked:
                effects += self._resend(peer, link)
        return effects

    def flush(self) -> list[Effect]:
        """Send what was posted; acknowledgements ride along where they can."""
        posted, self._posted = self._posted, {}
        owed, self._owed = self._owed, {}
        if self._trusted:
            return [Send(peer, body) for peer, bodies in posted.items() for body in bodies]
        effects, self._notes = self._notes, []
        for peer, bodies in posted.items():
            link = self.peers[peer]
            first = link.sent - len(bodies) + 1
            for number, body in enumerate(bodies, first):
                effects.append(Send(peer, self._frame(link, number, body)))
            if not link.timing:
                link.timing = True
                effects.append(SetTimer(f"resend/{peer}", self._resend_s))
        for peer in owed:
            if peer not in posted:
                link = self.peers[peer]
                effects.append(Send(peer, Ack(link.session, self.token, link.received)))
        return effects

    def discard(self) -> None:
        """Replay: what was posted is kept as unacknowledged, nothing is sent."""
        self._posted.clear()
        self._owed.clear()
        self._notes.clear()

    def _link(self, peer: str) -> Link:
        link = self.peers.get(peer)
        if link is None:
            link = self.peers[peer] = Link()
        return link

    def _frame(self, link: Link, number: int, body: Body) -> Frame:
        return Frame(link.session, self.token, number, link.received, body)

    def _resend(self, peer: str, link: Link) -> list[Effect]:
        oldest = link.sent - len(link.unacked) + 1
        effects: list[Effect] = [
            Send(peer, self._frame(link, number, body))
            for number, body in enumerate(link.unacked[:LINK_RESEND_BURST], oldest)
        ]
        link.timing = True
        wait_s = self._resend_s * min(2**link.tries, BACK_OFF_MAX)
        return [*effects, SetTimer(f"resend/{peer}", wait_s)]
