"""How the living agree on who is dead, and on what there is of them.

Peer 4 dies. Peer 0 declares that, and says so to all that live, with what it has of peer 4's
publications. Everybody who hears it says the same and what it has itself. Who has heard all others
say the same knows what everybody has: here the flush is over.

Rule 1: who learns that a life is over, or that one has begun, says who lives to all that live
        (`Flush`), with what it has of what the dead have said (surviving.py). From then on it takes
        nothing of theirs, but what comes as `Kept`.
Rule 2: the flush ends here when all that live have said just the same, and enough of those live who
        lived when the last one ended (quorum.py). Who learns more begins it again.
Rule 3: during a flush nothing is launched here. A life that is not a peer's first one begins
        nothing before its first flush has ended: then all that live know it.
        Nor is a publication accepted that was spared some of its receivers because they died: it
        is if the flush ends.
Rule 4: who may not go on for want of others, and hears one of those it holds to be dead, begins
        another life: there may be others who have gone on.
Rule 5: two that have begun something without ever having heard of each other's lives both begin
        other ones. That happens only if peers go on without a majority.

What is not promised: that a flush ends. Every peer that is suspected has to answer or to be
declared. A partition stops the flush of the part that may not go on until it hears of the others;
if no part may, until they hear of each other; if too many have crashed, until they are back. With
`majority = false` all parts go on: then what one has accepted is lost to the others.

Theory. A peer reports after it has stopped to take, so a report stays true until the flush is over,
and whoever ends a flush has the same reports as all others who end it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from hashlib import blake2b
from itertools import pairwise

from inorder.core.effect import Note
from inorder.core.errors import BadMessage
from inorder.core.pack import pack
from inorder.protocols.cube.fence import Fence
from inorder.protocols.cube.messages import Flush, Over, Row, View
from inorder.protocols.cube.options import Options
from inorder.protocols.cube.peers import Peers
from inorder.protocols.cube.quorum import may_go_on
from inorder.protocols.cube.repair import peers_of
from inorder.protocols.cube.state import FlushState
from inorder.protocols.cube.watching import Watching

DIGEST_BYTES = 8


def digest_of(view: View) -> bytes:
    """A few bytes that differ where views differ."""
    return blake2b(pack(view), digest_size=DIGEST_BYTES).digest()


# By topic and dead peer, what each of the living has said.
Reports = dict[tuple[str, int], dict[int, Row]]


class Flushing(Watching):
    """The part of a peer that agrees with the others."""

    def __init__(self, name: str, peers: Peers, options: Options) -> None:
        super().__init__(name, peers, options)
        # Since when a flush is on its way here, and the last word of everybody.
        self._flushed_since = 0.0
        self._words: dict[int, Flush] = {}
        # What the last flush ended with; and by peer the life of it that this life has heard from.
        self._last: View | None = View()
        self._met: dict[int, int] = {}
        self._digest = digest_of(View())
        self._figures = {"flushes": 0, "flush_s": 0.0, "kept": 0, "relays": 0}

    # What others do about it.

    @abstractmethod
    def _is_gone(self, peer: int) -> None:
        """A life of a peer is over: it is in no view, and passes on nothing."""

    @abstractmethod
    def _rows(self) -> tuple[Row, ...]:
        """What there is of the dead."""

    @abstractmethod
    def _is_agreed(self, reports: Reports, now: float) -> None:
        """The flush is over."""

    # Who lives.

    def _view(self) -> View:
        over = self._fence.over
        lives = ((peer, self._life_of(peer)) for peer, _ in over)
        return View(over, tuple(each for each in lives if each[1] > self._fence.of(each[0])))

    def _are_over(self, over: Iterable[tuple[int, int]], now: float) -> bool:
        news = self._fence.merge([(peer, life) for peer, life in over if peer != self._me])
        if not news:
            return False
        dead = [peer for peer in news if self._is_dead(peer)]
        for peer in news:
            self._is_gone(peer)
        for peer in dead:
            self._words.pop(peer, None)
            self._links.close(self._names[peer])
        assert self._detector is not None
        self._detector.declare(dead)
        self._begin_flush(now)
        self._bury(news, now)
        self._end_flush(now)
        return True

    def _is_back(self, peer: int, now: float) -> None:
        self._words.pop(peer, None)
        self._begin_flush(now)
        self._end_flush(now)

    def _bury(self, news: list[int], now: float) -> None:
        gone = sum(1 << peer for peer in news)
        self._repairs.avoid(self.peers.everybody & ~self._living() | gone, 0)
        done = [over for peer in news for over in self._repairs.bury(peer, now)]
        self._avoid()
        for key, wave in done:
            self._complete(key, wave, now)

    # What is said.

    def _begin_flush(self, now: float) -> None:
        """Say to all that live who does, and what there is of the others."""
        self._quiet_rounds = 0
        if self._flushing:
            self._out.append(Note("flush_again"))
        else:
            self._flushed_since = now
        self._flushing = True
        self._repairs.forget_kept()
        view = self._view()
        self._digest = digest_of(view)
        word = self._words[self._me] = Flush(view, self._last, self._rows())
        self._out.append(Note("flush"))
        for peer in peers_of(self._living() & ~(1 << self._me)):
            self._trees.send(peer, word)

    def _on_flush(self, peer: int, flush: Flush, now: float) -> None:
        self._check_flush(peer, flush)
        above = dict(flush.view.over).get(self._me, 0)
        if above >= self.life:
            self._live_on(above, now)
            return
        if self._have_missed_each_other(peer, flush):
            self._out.append(Note("missed", self._names[peer]))
            self._greet(peer, self._life_of(peer) + 1)
            self._live_on(self.life, now)
            return
        self._words[peer] = flush
        for other, life in flush.view.lives:
            if life > self._fence.of(other):
                self._learn_life(other, life, now)
        if not self._are_over(flush.view.over, now):
            self._end_flush(now)

    def _have_missed_each_other(self, peer: int, flush: Flush) -> bool:
        """Whether this is the first word of a peer's life, and both have begun something before
        they heard of each other: neither knows what the other is a member of."""
        life = self._life_of(peer)
        met = self._met.get(peer, 1 if self.life == 1 else 0) == life
        self._met[peer] = life
        return not met and flush.last is not None and self._last is not None

    def _check_flush(self, peer: int, flush: Flush) -> None:
        source = self._names[peer]
        for view in (flush.view, flush.last or View()):
            for said in (view.over, view.lives):
                self._check_lives(source, said)
        for other, life in flush.view.over:
            if other == peer and life >= self._life_of(peer):
                raise BadMessage(source, f"says that its life {life} is over")
        for row in flush.rows:
            ends = [0, *(last for _, last in row.runs)]
            runs = zip(ends, row.runs, strict=False)
            if not all(before < first <= last for before, (first, last) in runs):
                raise BadMessage(source, f"has the numbers {row.runs}")
            if not 0 <= row.source < len(self._names) or row.start < 0 or row.settled < 0:
                raise BadMessage(source, f"says {row} of a peer")

    def _check_lives(self, source: str, said: Over) -> None:
        rising = all(one[0] < other[0] for one, other in pairwise(said))
        if not rising or not all(0 <= peer < len(self._names) and life > 0 for peer, life in said):
            raise BadMessage(source, f"says {said} of lives")

    # When it is over.

    def _end_flush(self, now: float) -> None:
        """If all that live have said the same, it is agreed."""
        if not self._flushing:
            return
        mine = self._words[self._me].view
        living = list(peers_of(self._living()))
        for peer in living:
            word = self._words.get(peer)
            if word is None or word.view != mine:
                return
        if self._is_minority():
            self._out.append(Note("minority"))
            return
        self._flushing, self._last = False, mine
        self._out.append(Note("flush_ended"))
        self._figures["flushes"] += 1
        self._figures["flush_s"] += max(0.0, now - self._flushed_since)
        reports: Reports = {}
        for peer in living:
            for row in self._words[peer].rows:
                reports.setdefault((row.topic, row.source), {})[peer] = row
        self._is_agreed(reports, now)

    def _is_minority(self) -> bool:
        """Whether those that live are too few to go on, as far as they have said anything."""
        if not self.options.majority:
            return False
        words = [self._words.get(peer) for peer in peers_of(self._living())]
        lasts = [word.last for word in words if word is not None]
        return not may_go_on(lasts, self._view(), len(self._names))

    def _is_heard(self, peer: int, now: float) -> None:
        self._out.append(Note("fenced", self._names[peer]))
        if not self._flushing:
            self._greet(peer, self._fence.of(peer) + 1)
        elif self._is_minority():
            self._live_on(self.life, now)

    # Another life of one's own.

    def _begin_anew(self, now: float) -> None:
        """This peer is in another life, and knows nothing of the others."""
        assert self._detector is not None
        for peer, _ in self._fence.over:
            if peer != self._me:
                self._detector.readmit(peer)
        self._fence = Fence(((self._me, self.life - 1),))
        self._links.closed.clear()
        self._words.clear()
        self._met.clear()
        self._last = None
        self._avoid()
        self._begin_flush(now)
        self._end_flush(now)

    # Snapshots.

    def _packed_flush(self) -> FlushState:
        return FlushState(
            self._fence.over, self._flushing, self._flushed_since, sorted(self._words.items()),
            self._last, sorted(self._met.items()), self._quiet_rounds,
        )  # fmt: skip

    def _become_flush(self, state: FlushState) -> None:
        self._fence = Fence(state.over)
        self._flushing, self._flushed_since = state.flushing, state.since
        self._words, self._met = dict(state.words), dict(state.met)
        self._last = state.last
        self._quiet_rounds = state.quiet_rounds
        self._digest = digest_of(self._view())
