"""How a peer joins a topic and leaves it, and how it sees others do so.

Peer 2 joins: its `Sub` reaches everybody, members answer, and from then on everybody addresses it.
Its `Act` goes to the members, and what they answer is from where on their publications count.

Rule 1: a peer that joins or is in answers questions; one that leaves does not, or views would
        never agree. It stays in all views until its `Uns` is launched (P7).
Rule 2: a `Sub` that comes to a member makes its source begin there in the same step as the member
        begins to address it: so each knows exactly what it will get of the other (P1).
Rule 3: between its two questions a peer takes whatever comes and hands nothing in.

Rule 4: where peers may crash, a member answers the second question when its own publications up to
        then have been acknowledged by all, and it has all that remains of the dead. So what was
        published before a peer is in, it needs not be asked for: all others have it
        (docs/causal.md, third argument).

The member that answered the first question and has left before the second one counts from no number
on; when it joins again, from the first number of its new membership.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, cast

from inorder.core.effect import Effect, Persist
from inorder.core.errors import BadMessage
from inorder.core.limits import STAMP_NUMBER_MAX
from inorder.core.table import Numbers
from inorder.protocols.cube.bundler import Bundler
from inorder.protocols.cube.edges import Edges
from inorder.protocols.cube.messages import (
    ACT,
    GONE,
    KINDS,
    MEMBER,
    SOURCE,
    SUB,
    UNS,
    Act,
    Standing,
    Sub,
    Tree,
    Uns,
)
from inorder.protocols.cube.options import Options
from inorder.protocols.cube.peers import Peers
from inorder.protocols.cube.record import record_of
from inorder.protocols.cube.repair import Repairs
from inorder.protocols.cube.topic import Topic
from inorder.protocols.cube.trees import Trees
from inorder.protocols.cube.wave import Key, Wave


def _trees(options: Options) -> type[Trees]:
    """The trees of a peer: those that can be repaired where peers may crash."""
    if not options.detection:
        return Trees
    return Edges if options.watch == "neighbours" else Repairs


class Joining(ABC):
    """The part of a peer that knows memberships; a `Peer` is one."""

    def __init__(self, name: str, peers: Peers, options: Options) -> None:
        # What every message needs stands first: a world of thousands of peers reads it from cold
        # memory. With thirty attributes and more, CPython would give each peer a table of names.
        self._on: Mapping[type, Any] = {}
        self._ids = peers.ids
        self._me = peers.ids[name]
        self._names = peers.names
        self._trees = _trees(options)(name, peers, options)
        self._topics: dict[str, Topic] = {}
        # Of the input in progress: what it writes, and what it does.
        self._records: list[Effect] = []
        self._out = self._trees.out
        self.options = options
        self.peers = peers
        if options.aggregate != "none":
            look_up, send = self._look_up, self._trees.send
            self._trees.bundler = Bundler(name, peers, options, look_up, send)
        # Second questions that wait for an answer: from whom, and up to which own publication.
        self._asked: list[tuple[int, Act, int]] = []

    @property
    def name(self) -> str:
        return self._names[self._me]

    @property
    def _repairs(self) -> Repairs:
        """The trees, where peers may crash."""
        return cast(Repairs, self._trees)

    # What the peer does with it.

    @abstractmethod
    def _complete(self, key: Key, wave: Wave[Any], now: float) -> None:
        """A wave of this peer's is over."""

    @abstractmethod
    def _joined(self, name: str, topic: Topic, now: float) -> None:
        """This peer is in."""

    @abstractmethod
    def _tell_beginning(self, name: str, topic: Topic, origin: int, now: float) -> None:
        """Another origin begins, or begins again."""

    @abstractmethod
    def _rebegin(self, name: str, topic: Topic, source: int, base: int, now: float) -> None:
        """An origin begins again in another life, from this number on."""

    @abstractmethod
    def _life_of(self, peer: int) -> int:
        """The life that a peer, or this one, is in."""

    @abstractmethod
    def _living(self) -> int:
        """All peers that are not known to be dead, as a mask."""

    @abstractmethod
    def _is_fenced(self, source: int, life: int, now: float) -> bool:
        """Whether what a source says in this life is to be ignored: the life is over."""

    @abstractmethod
    def _forget_past(self, now: float) -> None:
        """What the machine inside knows is dead with this peer's life."""

    @abstractmethod
    def _serve(self, name: str, topic: Topic, now: float) -> None:
        """Do what can be done of what waits."""

    # Its own membership.

    def preset(self, name: str, members: int, sources: int, ones: Numbers) -> Persist:
        """Be what these masks say, as if everybody had joined once, one after the other. What is
        answered belongs on this peer's disk: it has changed its membership once."""
        role = MEMBER if members >> self._me & 1 else SOURCE
        topic = self._topic(name)
        topic.preset(members, sources, role, ones)
        if role == SOURCE:
            topic.begin_own(self._me)
        return Persist(record_of(name, topic))

    def _look_up(self, name: str) -> Topic | None:
        return self._topics.get(name)

    def _topic(self, name: str) -> Topic:
        topic = self._topics.get(name)
        if topic is None:
            topic = self._topics[name] = Topic()
        return topic

    def _check_source(self, parent: int, source: int, number: int) -> None:
        known = 0 <= source < len(self._names)
        known = known and (source != self._me or self._trees.returns)
        if not known or not 1 <= number <= STAMP_NUMBER_MAX:
            raise BadMessage(self._names[parent], f"number {number} of peer {source}")

    def _write(self, name: str, topic: Topic) -> None:
        self._records.append(Persist(record_of(name, topic)))

    def _wave(self, name: str, topic: Topic, tree: Tree, to: int, now: float) -> None:
        """A wave of this peer's own about its membership."""
        key = (KINDS.index(type(tree)), name, self._me, topic.change)
        self._trees.launch(key, tree, to)
        wave = self._trees.over(key)
        if wave is not None:
            self._complete(key, wave, now)

    def _enter(self, name: str, topic: Topic, role: int, now: float) -> None:
        """Join, or become a member after having been a source."""
        if topic.phase == "out":
            topic.forget()
        topic.phase, topic.role = "join", role
        # Above that of every earlier life, also of one that was preset and wrote nothing.
        topic.change = max(topic.change + 1, self._life_of(self._me))
        # What this life begins with is told to others: the next one must begin behind it.
        topic.reserved = max(topic.reserved, topic.next - 1)
        self._write(name, topic)
        topic.learn(self._me, topic.change, role)
        topic.begin_own(self._me)
        life = self._life_of(self._me)
        sub = Sub(name, self._me, topic.change, role, topic.next, b"", life)
        self._wave(name, topic, sub, self._living(), now)

    def _leave(self, name: str, topic: Topic, now: float) -> None:
        topic.phase = "leave"
        topic.change += 1
        self._write(name, topic)
        uns = Uns(name, self._me, topic.change, b"", self._life_of(self._me))
        self._wave(name, topic, uns, topic.concerned, now)

    def _on_sub(self, parent: int, sub: Sub, now: float) -> None:
        self._check_source(parent, sub.source, sub.change)
        if sub.role not in (MEMBER, SOURCE) or not 1 <= sub.base <= STAMP_NUMBER_MAX:
            raise BadMessage(self._names[parent], f"role {sub.role}, from number {sub.base} on")
        if self._is_fenced(sub.source, sub.life, now):
            return
        topic = self._topics.get(sub.topic)
        standings: tuple[Standing, ...] = ()
        if topic is not None and topic.answers:
            standings = (self._standing(topic),)
        self._trees.pass_on(parent, (SUB, sub.topic, sub.source, sub.change), sub, standings)
        if topic is None or not topic.answers:
            return
        if topic.learn(sub.source, sub.change, sub.role) and topic.role == MEMBER:
            before = topic.begun >> sub.source & 1
            topic.begin(sub.source, sub.base)
            if self._is_based(topic, sub.source, sub.life, sub.base) and before:
                self._rebegin(sub.topic, topic, sub.source, sub.base, now)
            elif topic.phase != "join" and not topic.counts[sub.source]:
                topic.counts[sub.source] = sub.base
                self._tell_beginning(sub.topic, topic, sub.source, now)

    def _is_based(self, topic: Topic, source: int, life: int, base: int) -> bool:
        """Note where a life of a source begins; whether it is not the one that was known."""
        return self.options.detection and topic.remains.is_based(source, life, base)

    def _standing(self, topic: Topic) -> Standing:
        life = self._life_of(self._me)
        standing = (self._me, topic.change, topic.role, topic.next)
        return standing if life == 1 else (*standing, life)

    def _believed(
        self, standings: tuple[Standing, ...], now: float
    ) -> list[tuple[int, int, int, int, int]]:
        """Those of peers that live; the earliest of each first, which it may have given twice."""
        believed = []
        for peer, change, role, following, *rest in sorted(standings, key=lambda each: each[3]):
            life = rest[0] if rest else 1
            if peer != self._me and not self._is_fenced(peer, life, now):
                believed.append((peer, change, role, following, life))
        return believed

    def _is_known(
        self, name: str, topic: Topic, standings: tuple[Standing, ...], now: float
    ) -> None:
        """Everybody addresses this peer from now on."""
        for peer, change, role, following, life in self._believed(standings, now):
            topic.learn(peer, change, role)
            if topic.role == MEMBER:
                topic.begin(peer, following)
                self._is_based(topic, peer, life, following)
        if topic.role == SOURCE:
            topic.phase = "in"
            return
        topic.phase = "act"
        act = Act(name, self._me, topic.change, b"", self._life_of(self._me))
        self._wave(name, topic, act, topic.concerned, now)

    def _on_act(self, parent: int, act: Act, now: float) -> None:
        self._check_source(parent, act.source, act.change)
        if self._is_fenced(act.source, act.life, now):
            return
        topic = self._topics.get(act.topic)
        if topic is not None and topic.answers and self._owes_others(topic, topic.next - 1):
            self._asked.append((parent, act, topic.next - 1))
        else:
            self._answer_act(parent, act)

    def _answer_act(self, parent: int, act: Act) -> None:
        topic = self._topics.get(act.topic)
        answers = topic is not None and topic.answers
        standings = (self._standing(topic),) if topic is not None and answers else ()
        self._trees.pass_on(parent, (ACT, act.topic, act.source, act.change), act, standings)

    def _owes_others(self, topic: Topic, upto: int) -> bool:
        """Whether somebody may lack one of this peer's publications up to this number, or this peer
        one of a dead peer's."""
        if not self.options.detection:
            return False
        return bool(topic.remains.dying) or topic.remains.stable(topic.next) < upto

    def _answer_asked(self, now: float) -> None:
        """Answer second questions that have waited."""
        asked, self._asked = self._asked, []
        for parent, act, upto in asked:
            topic = self._topic(act.topic)
            if topic.answers and self._owes_others(topic, upto):
                self._asked.append((parent, act, upto))
            elif not self._is_fenced(act.source, act.life, now):
                self._answer_act(parent, act)

    def _is_in(self, name: str, topic: Topic, standings: tuple[Standing, ...], now: float) -> None:
        """All that is published from now on will come; the machine inside is told what begins."""
        for peer, _, _, following, _ in self._believed(standings, now):
            # One that has joined since the first question has not begun: its own `Sub` is coming.
            if topic.begun >> peer & 1 and not topic.counts[peer]:
                topic.counts[peer] = following
        topic.phase = "in"
        self._joined(name, topic, now)

    def _on_uns(self, parent: int, uns: Uns, now: float) -> None:
        self._check_source(parent, uns.source, uns.change)
        if self._is_fenced(uns.source, uns.life, now):
            return
        self._trees.pass_on(parent, (UNS, uns.topic, uns.source, uns.change), uns)
        topic = self._topics.get(uns.topic)
        if topic is not None and topic.answers:
            topic.learn(uns.source, uns.change, GONE)
