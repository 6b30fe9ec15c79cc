"""What becomes of the publications of the dead, and of a peer that has to begin anew.

Peer 4 dies while its publications 7 and 8 are on their way. Peer 0 has 7 and says so in the flush
(flush.py). When that is over, peer 0 sends 7 to those that lack it. Nobody has 8: it is lost, and
nothing waits for it.

Rule 1: what somebody alive has is sent to those that lack it (agreement.py). When all of it has
        come the rest is lost, and the machine inside is told so.
Rule 2: `Kept` counts in the flush only after which it was sent. Links keep the order, so whoever
        gets one knows already what its sender knew of the dead.
Rule 3: a peer whose own life is over, and that lives, begins another one: it joins again what its
        application wants, tells it that there is a gap, and learns from the flush which of its
        last publications remain (accepted) and which are lost (refused).
Rule 4: a peer that is about to join when somebody dies begins to join again after the flush.

What is promised: what a peer that lives has been given, all living members that it was addressed to
get; what nobody alive has, nobody waits for. It is not uniform: a peer may have handed something to
its application just before it died that nobody else will ever see.

Theory. Whoever has settled numbers has had a report of everybody about them, so a later flush finds
nothing else (agreement.py, Rule 2).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from inorder.core.effect import Answer, Effect, Note
from inorder.core.machine import Machine
from inorder.core.place import Placing
from inorder.protocols.cube.agreement import lacking, remaining, settled_by_all, to_send
from inorder.protocols.cube.flush import Flushing, Reports
from inorder.protocols.cube.messages import ACT, KEPT, MEMBER, SUB, Kept, Pub, Row, Runs
from inorder.protocols.cube.options import Options
from inorder.protocols.cube.peers import Peers
from inorder.protocols.cube.remains import NEVER
from inorder.protocols.cube.runs import holds, within
from inorder.protocols.cube.state import SurvivalState
from inorder.protocols.cube.topic import Enter, Topic
from inorder.protocols.cube.watching import detector
from inorder.protocols.cube.wave import Key


class Surviving(Flushing):
    """The part of a peer that outlives others."""

    # The machine inside, and the same if it takes places.
    inner: Machine
    _placing: Placing | None

    def __init__(self, name: str, peers: Peers, options: Options) -> None:
        super().__init__(name, peers, options)
        # Publications of the former life, whose fate a flush will tell, with their answers; and
        # those of this life that everybody has who is held to live.
        self._unsure: list[tuple[Key, Answer]] = []
        self._early: list[tuple[Key, Answer]] = []

    # What the peer does with it.

    @abstractmethod
    def _take_in(self, parent: int, topic: Topic, pub: Pub[Any], now: float) -> None:
        """A publication has come to a member."""

    @abstractmethod
    def _pass(self, effects: list[Effect], now: float) -> None:
        """Effects of the machine inside, in this network's words."""

    # Others die.

    def _is_gone(self, peer: int) -> None:
        """A life of a peer is over: it is in no view, and passes on nothing."""
        for name, topic in self._topics.items():
            bit = 1 << peer
            topic.members &= ~bit
            topic.sources &= ~bit
            if topic.role == MEMBER and topic.phase in ("join", "act"):
                self._join_again(name, topic)
            elif topic.begun & bit:
                topic.remains.is_dying(peer, self._fence.of(peer))
            for source in topic.remains.dying:
                topic.remains.dying[source] = None
        self._repairs.forget(peer, self._fence.of(peer))

    def _join_again(self, name: str, topic: Topic) -> None:
        """Ask again after the flush: what everybody has said of the dead does not tell this peer
        what to wait for."""
        for kind in (SUB, ACT):
            self._repairs.give_up((kind, name, self._me, topic.change))
        topic.phase = "out"
        topic.forget()
        topic.calls.appendleft(Enter(MEMBER))

    def _rows(self) -> tuple[Row, ...]:
        rows = (
            topic.remains.row(name, topic, source, over)
            for name, topic in sorted(self._topics.items())
            for source, over in self._fence.over
            if source != self._me
        )
        return tuple(row for row in rows if row is not None)

    # The flush is over.

    def _is_agreed(self, reports: Reports, now: float) -> None:
        for (name, source), rows in reports.items():
            self._send_rest(name, source, rows)
        self._answer_unsure(reports)
        self._out += [answer for _, answer in self._early]
        self._early = []
        for name, topic in sorted(self._topics.items()):
            for source in sorted(topic.remains.dying):
                topic.remains.dying[source] = remaining(reports.get((name, source), {}))
                self._settle_if_whole(name, topic, source, now)
        for name, topic in sorted(self._topics.items()):
            self._serve(name, topic, now)

    def _send_rest(self, name: str, source: int, rows: dict[int, Row]) -> None:
        """Send what this peer has and others lack of a dead peer's publications."""
        topic = self._topics.get(name)
        if topic is None or self._me not in rows:
            return
        topic.remains.is_stable(source, settled_by_all(rows))
        kept = topic.remains.kept.get(source, {})
        for number, lack in to_send(self._me, kept, rows, remaining(rows)):
            key = (KEPT, name, source, number)
            tree = Kept(name, source, number, b"", kept[number], self._digest)
            self._out.append(Note("rebroadcast", f"{name}/{source}:{number}"))
            self._figures["kept"] += 1
            self._trees.launch(key, tree, lack)
            self._trees.over(key)

    # What remains comes, and what does not is lost.

    def _on_kept(self, parent: int, kept: Kept[Any], now: float) -> None:
        self._check_source(parent, kept.source, kept.number)
        if kept.fence != self._digest:
            return  # of a flush that has begun again: it will come again, too
        self._trees.pass_on(parent, (KEPT, kept.topic, kept.source, kept.number), kept)
        topic = self._topics.get(kept.topic)
        if topic is None or topic.role != MEMBER or kept.source not in topic.remains.dying:
            return
        pub = Pub(kept.topic, kept.source, kept.number, b"", kept.body)
        self._take_in(parent, topic, pub, now)
        self._settle_if_whole(kept.topic, topic, kept.source, now)

    def _settle_if_whole(self, name: str, topic: Topic, source: int, now: float) -> None:
        """If all that remains of a dead source has come, the rest is lost."""
        remains = topic.remains
        left = remains.dying.get(source)
        if topic.phase != "in" or left is None:
            return
        over = self._fence.of(source)
        row = remains.row(name, topic, source, over)
        if row is not None and row.start:
            left = within(left, 1, remains.end(source, over) - 1)
            if lacking(row, left):
                return
            self._settle_source(name, topic, source, left, now)
        else:
            del remains.dying[source]  # all that is addressed to us is of another life

    def _settle_source(self, name: str, topic: Topic, source: int, left: Runs, now: float) -> None:
        remains = topic.remains
        end = remains.end(source, self._fence.of(source))
        highest = max(left[-1][1] if left else 0, topic.have[source])
        upto = highest + self.options.window if end == NEVER else end - 1
        lost = remains.settle(topic, source, upto)
        self._out.append(Note("settled", f"{name}/{source}:{upto}"))
        if lost and lost[0][0] < highest:
            self._out.append(Note("lost", f"{name}/{source}:{lost[0][0]}"))
        self._tell_lost(name, source, upto, now)

    def _rebegin(self, name: str, topic: Topic, source: int, base: int, now: float) -> None:
        """A source that has begun here before begins again, in another life."""
        remains = topic.remains
        if source not in remains.dying:
            remains.settle(topic, source, base - 1)
        topic.counts[source] = max(base, topic.counts[source])
        self._tell_beginning(name, topic, source, now)
        if source not in remains.dying:
            self._tell_lost(name, source, base - 1, now)

    def _tell_lost(self, name: str, source: int, upto: int, now: float) -> None:
        if self._trees.bundler is not None:
            self._trees.bundler.give_up([((name, source), upto)])
        if self._placing is not None:
            self._pass(self._placing.lost(((name, source), upto), now), now)

    # Snapshots.

    def _survival(self) -> SurvivalState | None:
        if self._detector is None:
            return None
        return SurvivalState(
            self._packed_flush(), self._unsure, self._early, self._asked, self._detector.state()
        )

    def _survive(self, state: SurvivalState | None) -> None:
        if state is None:
            return
        self._become_flush(state.flush)
        self._unsure, self._early = state.unsure, state.early
        self._asked = state.asked
        self._detector = detector(self._me, len(self._names), self.options, state.detector)
        self._avoid()

    # Another life of one's own.

    def _begin_anew(self, now: float) -> None:
        self._unsure += [*self._early, *self._repairs.begin_anew()]
        self._early = []
        self._asked = []
        self._forget_past(now)
        held = getattr(self.inner, "topics_held", None)
        for name, topic in self._topics.items():
            # An application that has no answer yet to its call for the topic misses nothing.
            self._return_to(topic, held is None or name in held)
        super()._begin_anew(now)

    def _return_to(self, topic: Topic, held: bool) -> None:
        """The membership is over; what the application wants of it begins again."""
        phase, role = topic.phase, topic.role
        if phase in ("join", "act", "in") and role == MEMBER:
            topic.remains.gap |= phase == "in" and topic.wanted and held
            topic.calls.appendleft(Enter(MEMBER))
        topic.phase = "out"
        topic.outstanding = 0
        topic.next += self.options.window
        topic.forget()
        topic.remains.kept.clear()
        topic.remains.unacked.clear()

    def _is_acknowledged(self, key: Key, answer: Answer) -> None:
        """Everybody that is held to live has a publication."""
        if self._flushing:
            self._early.append((key, answer))
        else:
            self._out.append(answer)

    def _answer_unsure(self, reports: Reports) -> None:
        unsure, self._unsure = self._unsure, []
        for (_, name, _, number), answer in unsure:
            if holds(remaining(reports.get((name, self._me), {})), number):
                self._out.append(answer)
            else:
                why = "declared dead before anybody else had it"
                self._out.append(Answer(answer.call, "refused", why))
