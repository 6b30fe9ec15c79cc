"""How a peer hears of the lives and deaths of others, and of its own.

Peer 0 asks peer 4 and gets no answer: peer 4 is suspected, and other peers take over what is below
it. An answer comes after all: that was wrong, and nothing is lost. Or it stays away for as long as
`declare_after`: peer 4's life is over, and all that live are told.

Rule 1: a suspicion only makes repairs begin, and is withdrawn freely. A declaration is final: the
        life is over (fence.py), and nothing of it is listened to, if it goes on.
Rule 2: a peer that is heard of in another life has ended the one before, without any suspicion.
Rule 3: when it is agreed that a life is over, and it speaks all the same, it is told of a life
        above, and begins one above that (session/lives.py).
Rule 4: the dead are greeted now and then, or two parts that are silent would never meet.

Words of the detector travel outside of sessions: one that comes late is worth nothing.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

from inorder.core.effect import Effect, Note, Persist, Send, SetTimer
from inorder.core.errors import BadMessage
from inorder.protocols.cube.detector import (
    DEADLINE,
    FRESH,
    ROUND,
    Declares,
    Detector,
    DetectorState,
    Out,
    Suspects,
    Tested,
    Wakes,
    Withdraws,
)
from inorder.protocols.cube.edges import Neighbourly
from inorder.protocols.cube.fence import Fence
from inorder.protocols.cube.joining import Joining
from inorder.protocols.cube.links import TIMER, PeerLinks
from inorder.protocols.cube.messages import Probe
from inorder.protocols.cube.options import Options
from inorder.protocols.cube.peers import Peers
from inorder.protocols.cube.record import record_of_life
from inorder.protocols.session.lives import Greeting
from inorder.protocols.session.messages import Ack as SessionAck
from inorder.protocols.session.messages import Frame

# So many rounds after the last death a world where nothing else happens may be taken to be at rest.
QUIET_ROUNDS = 64


def detector(me: int, count: int, options: Options, state: DetectorState = FRESH) -> Detector:
    """The detector of a peer, fresh or as it was."""
    kind = Neighbourly if options.watch == "neighbours" else Detector
    return kind(me, count, options, state)


class Watching(Joining):
    """The part of a peer that knows lives."""

    def __init__(self, name: str, peers: Peers, options: Options) -> None:
        super().__init__(name, peers, options)
        self._fence = Fence()
        self._detector: Detector | None = None
        # Whether it is not agreed who lives (flush.py), and rounds since that has changed.
        self._flushing = False
        self._quiet_rounds = 0
        if options.detection:
            self._detector = detector(self._me, len(self._names), options)

    # What others do about it.

    @abstractmethod
    def _are_over(self, over: Iterable[tuple[int, int]], now: float) -> bool:
        """These lives are over; whether that is news."""

    @abstractmethod
    def _is_back(self, peer: int, now: float) -> None:
        """A peer is heard of in another life; that the one before is over was known."""

    @abstractmethod
    def _is_heard(self, peer: int, now: float) -> None:
        """A peer speaks in a life that is over."""

    @abstractmethod
    def _begin_anew(self, now: float) -> None:
        """This peer is in another life."""

    # Lives.

    @property
    def life(self) -> int:
        links = self._trees.links
        return links.lives.life if links is not None else 1

    @property
    def _links(self) -> PeerLinks:
        links = self._trees.links
        assert links is not None, "only peers with sessions have lives"
        return links

    def _life_of(self, peer: int) -> int:
        return self.life if peer == self._me else self._links.life_of(self._names[peer])

    def _is_dead(self, peer: int) -> bool:
        return self._life_of(peer) <= self._fence.of(peer)

    def _living(self) -> int:
        """All that are not known to be dead, this peer included, as a mask."""
        dead = (1 << peer for peer, life in self._fence.over if self._life_of(peer) <= life)
        return self.peers.everybody & ~sum(dead)

    def _is_fenced(self, source: int, life: int, now: float) -> bool:
        if self._detector is None:
            return False
        if life > self._fence.of(source):
            self._learn_life(source, life, now)
            return self._is_dead(source)
        self._out.append(Note("fenced", self._names[source]))
        return True

    def _learn_life(self, peer: int, life: int, now: float) -> None:
        """Somebody says that this peer is in this life, or was."""
        if peer != self._me and life > self._life_of(peer):
            self._links.lives.known[self._names[peer]] = life
            self._is_in_another_life(peer, now)

    def _is_in_another_life(self, peer: int, now: float) -> None:
        self._links.renew(self._names[peer])
        if self._detector is None:
            return
        self._detector.readmit(peer)
        life = self._life_of(peer)
        if life <= self._fence.of(peer):
            self._links.close(self._names[peer])  # it was over before it was heard of
            return
        if not self._are_over([(peer, life - 1)], now):
            self._avoid()
            self._is_back(peer, now)

    def _hear(self, source: str, message: Frame[Any] | SessionAck | Greeting, now: float) -> bool:
        """What a message says of lives; whether to go on with it."""
        peer = self._ids.get(source)
        if peer is None or peer == self._me:
            raise BadMessage(source, "speaks in a session, and is no peer that does")
        yours, theirs = self._links.lives.named(source, message)
        if not self._goes_on(peer, yours, theirs, now):
            return False
        before = self._life_of(peer)
        heard = self._links.lives.hear(source, yours, theirs, isinstance(message, Greeting))
        if heard.answers:
            self._greet(peer, self._links.lives.of(source))
        if theirs > before:
            self._is_in_another_life(peer, now)
        return not self._is_dead(peer)

    def _goes_on(self, peer: int, yours: int, theirs: int, now: float) -> bool:
        """Whether both lives that are named go on; else what is to be done about it."""
        if yours > self.life:
            self._live_on(yours, now)
            return False
        if theirs <= self._fence.of(peer):
            self._is_heard(peer, now)
            return False
        return True

    def _greet(self, peer: int, yours: int) -> None:
        self._out.append(Send(self._names[peer], Greeting(self.life, yours)))

    def _live_on(self, above: int, now: float) -> None:
        """This life is over, say others: begin the next one."""
        self._links.live_on(above)
        self._records.append(Persist(record_of_life(self.life)))
        self._out.append(Note("life", f"{self.life}"))
        if self._detector is not None:
            self._begin_anew(now)

    # The detector.

    def begin(self, now: float) -> list[Effect]:
        """The process begins: the first timers."""
        self._watch(now)
        effects, self._out[:] = [*self._out], []
        return effects

    def _watch(self, now: float) -> None:
        if self._detector is not None:
            self._heed(self._detector.begin(now), now)

    def _on_probe(self, source: str, probe: Probe, now: float) -> None:
        peer = self._ids.get(source)
        detector = self._detector
        if detector is None or peer is None or peer == self._me:
            raise BadMessage(source, "tests, and is no peer that does")
        if probe.mine < 1 or probe.yours < 0:
            raise BadMessage(source, f"is in life {probe.mine}, and names life {probe.yours}")
        if not self._goes_on(peer, probe.yours, probe.mine, now):
            return
        self._learn_life(peer, probe.mine, now)
        late = isinstance(probe.body, Tested) and probe.yours != self.life
        if probe.mine == self._life_of(peer) and not late and not self._is_dead(peer):
            try:
                outs = detector.heard(peer, probe.body, now)
            except BadMessage:
                outs = []
                self._out.append(Note("bad_probe", source))
            self._heed(outs, now)

    def _fire_watch(self, timer: str, now: float) -> bool:
        """Whether the timer is one of the detector's."""
        detector = self._detector
        if detector is None or timer not in (TIMER + ROUND, TIMER + DEADLINE):
            return False
        if timer == TIMER + ROUND:
            self._knock()
            self._heed(detector.tick(now), now)
        else:
            self._heed(detector.expire(now), now)
        return True

    def _knock(self) -> None:
        """Greet the dead in turn, in case that they live: one peer or so knocks at each of them in
        a round, and everybody does in as many rounds as there are peers."""
        count = len(self._names)
        self._quiet_rounds += 1
        peer = (self._me + self._quiet_rounds) % count
        if peer != self._me and self._is_dead(peer):
            # As long as that is not agreed, it is no news for the peer, but a sign of life.
            agreed = not self._flushing
            self._greet(peer, self._fence.of(peer) + 1 if agreed else self._life_of(peer))

    @property
    def owes(self) -> bool:
        """Whether somebody was declared dead so lately that it may turn out to live."""
        lately = self._quiet_rounds < len(self._names) + QUIET_ROUNDS
        return lately and self._living() != self.peers.everybody

    def _heed(self, outs: list[Out], now: float) -> None:
        for out in outs:
            if isinstance(out, tuple):
                peer, body = out
                probe = Probe(self.life, self._life_of(peer), body)
                self._out.append(Send(self._names[peer], probe))
            elif isinstance(out, Wakes):
                self._out.append(SetTimer(TIMER + out.timer, out.after_s, background=True))
            elif isinstance(out, Suspects):
                self._out.append(Note("suspect", self._names[out.peer]))
                self._repair(out.peer, now)
            elif isinstance(out, Withdraws):
                self._out.append(Note("withdraw", self._names[out.peer]))
                self._avoid()
            else:
                assert isinstance(out, Declares)
                self._out += [Note("declare", self._names[peer]) for peer in out.peers]
                self._are_over([(peer, self._life_of(peer)) for peer in out.peers], now)

    def _repair(self, peer: int, now: float) -> None:
        self._avoid()
        self._repairs.suspect(peer, now)

    def _avoid(self) -> None:
        """Trees go around those that are dead or suspected."""
        assert self._detector is not None
        living = self._living()
        self._repairs.avoid(self.peers.everybody & ~living, living & ~self._detector.correct)
