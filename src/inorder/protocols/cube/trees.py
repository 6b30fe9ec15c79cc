"""Tree messages of a peer: on their way down, and their acknowledgements on the way up.

Peer 2 gets a copy that says "for you, and for 3". It notes that it waits for 3, sends a copy there,
and when 3 has acknowledged, it acknowledges to its parent for both.

Rule 1: nothing here knows topics. A copy carries whom it is for; the next peer is the one closest
        by XOR of each cluster that has any (parts.py).
Rule 2: a wave is noted before its copies leave (P17), and it waits for the set of children that was
        fixed then.
Rule 3: each copy that comes is a task of its own, with its own acknowledgement: where peers crash
        a message may come from several parents. But the same copy again is ignored while it is
        under way, and acknowledged again when it is over.
Rule 4: the copy for the largest sub-cube leaves first, because it has the longest way before it.
        (The thesis lists children from the nearest cluster on; its latencies are those of this
        order: docs/errata.md.)
Rule 5: acknowledgements of publications wait while the machine inside holds too much: the sources
        stop at their windows. What it waits for is on its way, so that ends.
Rule 6: publications and their acknowledgements go to the bundler, if there is one, which decides
        when they leave (bundler.py).
Rule 7: with a single tree a publication goes to peer 0 first, with a part of the whole cube, and
        peer 0 spreads it as if it were its own, and acknowledges to the source.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inorder.core.effect import Answer, Effect, Send
from inorder.core.errors import BadFrame, BadMessage
from inorder.core.limits import STAMP_NUMBER_MAX
from inorder.protocols.cube.bundler import BUNDLE, Bundler
from inorder.protocols.cube.links import PeerLinks
from inorder.protocols.cube.messages import (
    MEMBER,
    PUB,
    SOURCE,
    Ack,
    Message,
    Pub,
    Standing,
    Tree,
)
from inorder.protocols.cube.options import Options
from inorder.protocols.cube.outlook import ROOT_PEER
from inorder.protocols.cube.parts import encode, relative, split, split_mask
from inorder.protocols.cube.peers import Peers
from inorder.protocols.cube.state import TreesState
from inorder.protocols.cube.topology import dimensions
from inorder.protocols.cube.wave import ROOT, KeptWave, Key, Task, Wave, copies
from inorder.protocols.session.messages import Ack as SessionAck
from inorder.protocols.session.messages import Frame


class Trees:
    """The waves of one peer; `out` is what the input in progress does."""

    # Whether a message may come back to its source, on its way to others (edges.py).
    returns = False

    def __init__(self, name: str, peers: Peers, options: Options) -> None:
        self.out: list[Effect] = []
        self.links = None if options.links == "trusted" else PeerLinks(name, options.resend)
        self._names = peers.names
        self._me = peers.ids[name]
        self.bundler: Bundler | None = None
        self._single = options.trees == "single"
        self._h = dimensions(len(peers.names))
        # Whether each number of the cube is a peer's.
        self._full = len(peers.names) == 1 << self._h
        # Whether what is said leaves as it is: no session, and nothing that bundles.
        self._plain = self.links is None and options.aggregate == "none"
        # The tasks of each message, the first apart: nearly always it is the only one.
        self._waves: dict[Key, Wave[Any]] = {}
        self._later: dict[Task, Wave[Any]] = {}
        # Acknowledgements that wait until the machine inside has handed over some of what it holds:
        # to whom, for which message, and for which copy of it.
        self._withheld: list[tuple[int, Key, int]] = []
        self._roomy = True
        # Peers that no part is given to (repair.py), bit n for peer n.
        self._avoided = 0

    # Down.

    def launch(self, key: Key, tree: Tree, to: int, answer: Answer | None = None) -> None:
        """A wave of this peer's own to all these (a bit mask) but itself."""
        to &= ~(1 << self._me)
        if self._single and to and key[0] == PUB and self._me != ROOT_PEER:
            whole = encode(relative(to, ROOT_PEER, self._h), self._h)
            self._begin(ROOT, key, tree, ((self._me ^ ROOT_PEER, whole),), (), answer)
            return
        children = split_mask(relative(to, self._me, self._h), self._h)
        self._begin(ROOT, key, tree, children, (), answer)

    def over(self, key: Key) -> Wave[Any] | None:
        """A wave that has just been launched, if it goes to nobody."""
        wave = self._waves.get(key)
        return self._waves.pop(key) if wave is not None and not wave.parts else None

    def pass_on(
        self, parent: int, key: Key, tree: Tree, standings: tuple[Standing, ...] = ()
    ) -> None:
        """Send a tree message to the next peers of its part; when there are none, it is over."""
        if not tree.to:
            self._acknowledge(parent, key, tree.again, standings)
            return
        h = (parent ^ self._me).bit_length() - 1
        if self._single and key[0] == PUB and self._me == ROOT_PEER:
            h = self._h
        try:
            children = split(tree.to, h)
        except BadFrame as error:
            raise BadMessage(self._names[parent], str(error)) from None
        task = 0
        if key in self._waves:
            task = self._next_task(parent, key, tree.again)
            if task < 0:
                return
        if not self._full:
            for offset, _ in children:
                if self._me ^ offset >= len(self._names):
                    raise BadMessage(self._names[parent], f"addresses peer {self._me ^ offset}")
        self._begin(parent, key, tree, children, standings, None, task)

    def pass_pub(self, parent: int, pub: Pub[Any]) -> None:
        """`pass_on` for a publication; what half of them need, in one piece."""
        if pub.to or not self._plain or not self._roomy:
            self.pass_on(parent, (PUB, pub.topic, pub.source, pub.number), pub)
        else:
            ack = Ack(PUB, pub.topic, pub.source, pub.number, (), pub.again)
            self.out.append(Send(self._names[parent], ack))

    def _next_task(self, parent: int, key: Key, again: int) -> int:
        """A number for another task of a message, or -1 if this copy's is under way."""
        wave: Wave[Any] | None = self._waves[key]
        task = 0
        while wave is not None:
            if wave.parent == parent and wave.tree.again == again:
                return -1
            task += 1
            wave = self._later.get((key, task))
        return task

    def _begin(
        self,
        parent: int,
        key: Key,
        tree: Tree,
        children: Sequence[tuple[int, bytes]],
        standings: tuple[Standing, ...],
        answer: Answer | None = None,
        task: int = 0,
    ) -> None:
        me = self._me
        parts: dict[int, bytes] = {}
        wave: Wave[Any] = Wave(parent, parts, tree, standings, answer)
        if self._plain and type(tree) is Pub:
            # The hot path in one piece.
            self._note(key, task, wave)
            topic, source, number, body = tree.topic, tree.source, tree.number, tree.body
            names, out = self._names, self.out
            for offset, part in reversed(children):
                child = me ^ offset
                parts[child] = part
                out.append(Send(names[child], Pub(topic, source, number, part, body)))
            return
        for offset, part in reversed(children):
            parts[me ^ offset] = part
        if self._avoided:
            self._go_around(wave)
            if not wave.parts and parent != ROOT:
                self._acknowledge(parent, key, tree.again, standings)
                return
        self._note(key, task, wave)
        self._pass_down(wave.tree, wave.parts, task)

    def _note(self, key: Key, task: int, wave: Wave[Any]) -> None:
        if task:
            self._later[(key, task)] = wave
        else:
            self._waves[key] = wave

    def _pass_down(self, tree: Tree, parts: dict[int, bytes], task: int) -> None:
        bundler = self.bundler
        for child, message in copies(tree, parts, task):
            if bundler is not None and isinstance(message, Pub):
                bundler.put(child, message)
            else:
                self.send(child, message)

    def _go_around(self, wave: Wave[Any]) -> None:
        """Give the parts of peers that are avoided to others, before any copy leaves."""
        raise AssertionError("nobody is avoided by trees that are not repaired")

    def _is_repaired(self, wave: Wave[Any], now: float) -> None:
        """A task is over whose parts did not all stay with their children."""

    # Up.

    def acknowledged(self, child: int, ack: Ack, now: float) -> tuple[Key, Wave[Any]] | None:
        """A child has done its part; a wave of this peer's own that is over with it."""
        key, task = (ack.kind, ack.topic, ack.source, ack.number), ack.again
        wave = self._later.get((key, task)) if task else self._waves.get(key)
        if wave is None or child not in wave.parts:
            return None  # it has come before
        if ack.standings:
            for standing in ack.standings:
                self._check(child, standing)
            wave.standings += ack.standings
        parts = wave.parts
        del parts[child]
        return None if parts else self._is_over(key, task, wave, now)

    def _is_over(
        self, key: Key, task: int, wave: Wave[Any], now: float
    ) -> tuple[Key, Wave[Any]] | None:
        """Everybody in a task has been reached; the wave if it was this peer's own."""
        if task:
            del self._later[(key, task)]
        else:
            del self._waves[key]
        if wave.repaired_at:
            self._is_repaired(wave, now)
        if wave.parent == ROOT:
            return key, wave
        self._acknowledge(wave.parent, key, wave.tree.again, wave.standings)
        return None

    def _acknowledge(
        self, parent: int, key: Key, again: int, standings: tuple[Standing, ...]
    ) -> None:
        kind, topic, source, number = key
        if kind == PUB and not self._roomy:
            self._withheld.append((parent, key, again))
            return
        ack = Ack(kind, topic, source, number, standings, again)
        if self._plain:
            self.out.append(Send(self._names[parent], ack))
        elif self.bundler is not None and kind == PUB:
            self.bundler.put(parent, ack)
        else:
            self.send(parent, ack)

    def _check(self, source: int, standing: Standing) -> None:
        numbers = standing[1:]
        known = len(standing) in (4, 5) and min(numbers) >= 1 and max(numbers) <= STAMP_NUMBER_MAX
        if not (known and 0 <= standing[0] < len(self._names) and standing[2] in (MEMBER, SOURCE)):
            raise BadMessage(self._names[source], f"says {standing} of a peer")

    # Links.

    def send(self, peer: int, message: Message) -> None:
        if self.links is None:
            self.out.append(Send(self._names[peer], message))
        else:
            self.links.post(self._names[peer], message)

    def take(self, source: str, message: Frame[Any] | SessionAck, now: float) -> list[Any]:
        """What a peer says, as far as its turn has come."""
        if self.links is None or source not in self._names:
            raise BadMessage(source, "speaks in a session, and is no peer that does")
        bodies, effects = self.links.take_in(source, message, now)
        self.out += effects
        return bodies

    def fire(self, timer: str, now: float) -> None:
        if timer.startswith(BUNDLE):
            if self.bundler is not None:
                self.bundler.fire(timer)
        elif self.links is not None:
            self.out += self.links.fire(timer, now)

    def finish(self, roomy: bool, now: float) -> None:
        """The input is over; `roomy` says whether the machine inside may get more."""
        self._roomy = roomy
        if self._withheld and roomy:
            withheld, self._withheld = self._withheld, []
            for parent, key, again in withheld:
                self._acknowledge(parent, key, again, ())
        if self.bundler is not None:
            self.out += self.bundler.finish(now)
        if self.links is not None:
            self.out += self.links.flush(now)

    @property
    def idle(self) -> bool:
        linked = self.links is None or self.links.idle
        bundled = self.bundler is None or self.bundler.idle
        waits = self._waves or self._later or self._withheld
        return not waits and linked and bundled

    def account(self) -> dict[str, float]:
        linked = self.links.account() if self.links is not None else {}
        return linked if self.bundler is None else {**linked, **self.bundler.account()}

    # Snapshots.

    def packed(self) -> TreesState[Any]:
        links = self.links
        return TreesState(
            [((key, task), KeptWave.of(wave)) for key, task, wave in self.tasks()],
            self._withheld, self._roomy,
            links.s if links is not None else None, links.packed() if links is not None else None,
            self.bundler.packed() if self.bundler is not None else None,
        )  # fmt: skip

    def tasks(self) -> list[tuple[Key, int, Wave[Any]]]:
        """All that is under way, in an order that does not tell how it came about."""
        first = [(key, 0, self._waves[key]) for key in sorted(self._waves)]
        return first + [(*task, self._later[task]) for task in sorted(self._later)]

    def become(self, state: TreesState[Any]) -> None:
        for (key, task), kept in state.waves:
            if task:
                self._later[(key, task)] = kept.wave
            else:
                self._waves[key] = kept.wave
        self._withheld = state.withheld
        self._roomy = state.roomy
        if self.links is not None and state.sessions is not None and state.links is not None:
            self.links.become(state.links, state.sessions)
        if self.bundler is not None and state.bundler is not None:
            self.bundler.become(state.bundler)
