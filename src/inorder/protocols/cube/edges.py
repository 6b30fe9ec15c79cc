"""Trees along the edges of the cube only: peers talk to those whose number differs in one bit.

Of eight peers 0 publishes for 3, 5 and 7. It sends a copy to 2 that says "and to 3", although 2 is
no member, and one to 4 that says "and to 5 and 7". Peer 4 is dead: then what was for it goes to 1,
*marked*: "to 5 and 7, around 4". Peer 1 passes that on to 5, and 5 to 7.

Rule 1: a part goes to the peer that differs in the highest bit of its sub-cube, member or not. One
        that is no member only passes on.
Rule 2: a part whose edge leads to a peer that is dead or suspected goes around it: to the first
        peer of a shortest way to each of its destinations that avoids all peers known to be dead or
        suspected, both here and by the peers that have marked the copy already.
Rule 3: what goes around is a task of its own, for which its peer answers to itself: a child may
        have an ordinary copy already.
Rule 4: a peer that is suspected and is a destination gets a copy of its own from a neighbour.

What is promised: that of repair.py. With fewer dead than dimensions every copy goes along an edge,
since that many can separate no peers of a full cube. With more, what no edge leads to gets a copy
straight from where the way ends.

Theory. The thesis (topology.py), 6.2.2.1. Each peer on a marked way is nearer to the destination in
the cube without the peers that it avoids; peers that are avoided are only added; so ways end. A
peer knows of suspicions of its neighbours only: they are who it tests (`Neighbourly`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from inorder.core.effect import Answer, Note
from inorder.core.errors import BadFrame, BadMessage
from inorder.protocols.cube.detector import Detector
from inorder.protocols.cube.messages import Standing, Tree
from inorder.protocols.cube.options import Options
from inorder.protocols.cube.parts import decode, encode, relative
from inorder.protocols.cube.peers import Peers
from inorder.protocols.cube.repair import Over, Repairs, peers_of
from inorder.protocols.cube.wave import ROOT, Key, Wave

# The first byte of a part that goes around: no other part begins with it (parts.py, Rule 3). Behind
# it come the length of the first of two parts of the whole cube, and both: whom it is for, and
# around whom it goes.
MARK = b"\x00"
SIZE_BYTES = 2

# Children and parents below this are tasks of one's own: OWN - n is task n.
OWN = -2


class Edges(Repairs):
    """The waves of a peer that sends to its neighbours only."""

    returns = True

    def __init__(self, name: str, peers: Peers, options: Options) -> None:
        super().__init__(name, peers, options)
        self.counts |= {"marked": 0, "strays": 0}

    # Down.

    def launch(self, key: Key, tree: Tree, to: int, answer: Answer | None = None) -> None:
        shares = self._shares(to & ~(1 << self._me), 0)
        self._begin(ROOT, key, tree, self._children(shares), (), answer)

    def pass_on(
        self, parent: int, key: Key, tree: Tree, standings: tuple[Standing, ...] = ()
    ) -> None:
        h = (parent ^ self._me).bit_length() - 1
        to, around = self._read(parent, tree.to, h)
        task = self._next_task(parent, key, tree.again) if key in self._waves else 0
        if task < 0:
            return
        shares = self._shares(to, around)
        if not shares:
            self._acknowledge(parent, key, tree.again, standings)
            return
        self._begin(parent, key, tree, self._children(shares), standings, None, task)

    def _children(self, shares: dict[int, bytes]) -> list[tuple[int, bytes]]:
        """As `_begin` takes them: by offset, the nearest first."""
        return sorted((self._me ^ child, part) for child, part in shares.items())

    def _read(self, parent: int, part: bytes, h: int) -> tuple[int, int]:
        """Whom a part is for besides this peer, and what it goes around."""
        try:
            to, around = self._meant(part, self._me, h)
        except BadFrame as error:
            raise BadMessage(self._names[parent], str(error)) from None
        if beyond := (to | around) >> len(self._names):
            last = len(self._names) + beyond.bit_length() - 1
            raise BadMessage(self._names[parent], f"addresses peer {last}")
        return to, around

    def _meant(self, part: bytes, child: int, h: int) -> tuple[int, int]:
        """The same of a part that a child got or gets; `h` are the dimensions below its edge."""
        if part[:1] != MARK:
            return relative(decode(part, h) & ~1, child, self._h), 0
        first = len(MARK) + SIZE_BYTES
        end = first + int.from_bytes(part[len(MARK) : first], "little")
        to, around = (decode(each, self._h) & ~1 for each in (part[first:end], part[end:]))
        return relative(to, child, self._h), relative(around, child, self._h)

    # Whom to send what.

    def _shares(self, to: int, around: int) -> dict[int, bytes]:
        """The parts for these peers by neighbour; `around` is not 0 if the copy is marked."""
        to &= ~self.dead
        avoided = self._avoided | around
        straight: dict[int, int] = {}
        detour = to if around else 0
        if not around:
            for bit in range(self._h):
                head = self._me ^ (1 << bit)
                block = to & _block(head, bit)
                if block and (head >= len(self._names) or avoided >> head & 1):
                    detour |= block
                elif block:
                    straight[head] = block
        marked = self._ways(detour, avoided) if detour else {}
        shares: dict[int, bytes] = {}
        for child in {**straight, **marked}:
            if child in marked:
                to_all = marked[child] | straight.get(child, 0)
                shares[child] = self._marked(child, to_all, avoided)
            else:
                h = (self._me ^ child).bit_length() - 1
                shares[child] = encode(relative(straight[child], child, h) | 1, h)
        return shares

    def _marked(self, child: int, to: int, avoided: int) -> bytes:
        to &= ~(1 << child)
        if not to:
            return b""
        self.counts["marked"] += 1
        self.out.append(Note("marked", self._names[child]))
        part, around = (
            encode(relative(mask, child, self._h) | 1, self._h)
            for mask in (to, avoided & ~(1 << child))
        )
        return MARK + len(part).to_bytes(SIZE_BYTES, "little") + part + around

    def _ways(self, to: int, avoided: int) -> dict[int, int]:
        """By neighbour, those of these peers whose shortest ways begin there. Ways may end at a
        peer that is avoided, and not go through one."""
        first = {self._me: self._me}
        edge = [self._me]
        left = to
        for peer in edge:  # grows while it is walked: the nearest first
            if not left:
                break
            if peer != self._me and avoided >> peer & 1:
                continue
            for bit in range(self._h):
                other = peer ^ (1 << bit)
                if other < len(self._names) and other not in first:
                    first[other] = other if peer == self._me else first[peer]
                    edge.append(other)
                    left &= ~(1 << other)
        ways: dict[int, int] = {}
        for peer in peers_of(to):
            if peer not in first:
                self.counts["strays"] += 1
            neighbour = first.get(peer, peer)
            ways[neighbour] = ways.get(neighbour, 0) | 1 << peer
        return ways

    # Repairs.

    def _go_around(self, wave: Wave[Any]) -> None:
        """Parts are made with what is avoided in mind."""

    def _replace(self, peer: int, key: Key, task: int, wave: Wave[Any], now: float) -> None:
        part, wave.parts[peer] = wave.parts[peer], b""
        to, around = self._meant(part, peer, (self._me ^ peer).bit_length() - 1)
        fresh = self._shares(to & ~(1 << peer), around | 1 << peer)
        if not fresh:
            return
        wave.repaired_at = wave.repaired_at or now
        self.counts["resplits"] += 1
        self.out.append(Note("resplit", self._names[peer]))
        own = self._free_task(key)
        wave.parts[OWN - own] = b""
        self._begin(OWN - task, key, wave.tree, self._children(fresh), (), None, own)

    def _free_task(self, key: Key) -> int:
        task = 1
        while (key, task) in self._later:
            task += 1
        return task

    # Up.

    def _is_over(self, key: Key, task: int, wave: Wave[Any], now: float) -> Over | None:
        if wave.parent > OWN:
            return super()._is_over(key, task, wave, now)
        del self._later[(key, task)]
        above = OWN - wave.parent
        whole = self._later.get((key, above)) if above else self._waves.get(key)
        if whole is None or OWN - task not in whole.parts:
            return None
        del whole.parts[OWN - task]
        whole.standings += wave.standings
        return None if whole.parts else self._is_over(key, above, whole, now)


def _block(head: int, bit: int) -> int:
    """The numbers that differ from this one in bits below `bit` only."""
    size = 1 << bit
    return ((1 << size) - 1) << (head & -size)


class Neighbourly(Detector):
    """Tests its neighbours, each in the round of its bit, and believes nobody else."""

    def duties(self, s: int) -> Iterator[int]:
        peer = self.me ^ (1 << (s - 1))
        if peer < self.count and not self._declared >> peer & 1:
            yield peer

    def _digest_of_counters(self) -> bytes:
        return b""  # as if all counters were equal: then nobody sends them
