"""Trees whose peers crash: what a dead child was to reach, another one reaches.

Peer 0 has sent a copy to 4 that says "and to 5 and 6", and 4 falls silent. Peer 0 sends another
copy to 5, the nearest of the rest, that says "and to 6". 5 may get the message twice, of 4 and of
0: it passes both on as they say, acknowledges both, and takes in one.

Rule 1: on the suspicion of a child its part, without the child, goes to the next nearest peer that
        is not suspected. The child is waited for all the same: if the suspicion was wrong it has
        its copy, and has to acknowledge it.
Rule 2: a child that is declared dead is not waited for any more. A parent that is dead gets no
        acknowledgement; what it has given is passed on, since that may be faster than its own
        parent's repair.
Rule 3: whom a part is for is decided by its source alone. A peer that is to be reached and is
        suspected when its turn comes to be a child gets a copy of its own, for it alone.

What is promised: if the source and a peer that it addresses both live, the peer gets the message,
whoever else crashes, and however many suspicions are wrong. What is not: anything for a message
whose source dies (flush.py).

Theory. A copy is always sent downwards in the sub-cube of its part, whoever the child was, so each
part that is given away is smaller than the one it came from: repairs end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from inorder.core.effect import Answer, Note
from inorder.protocols.cube.messages import KEPT, PUB, Kept
from inorder.protocols.cube.options import Options
from inorder.protocols.cube.parts import resplit
from inorder.protocols.cube.peers import Peers
from inorder.protocols.cube.trees import Trees
from inorder.protocols.cube.wave import ROOT, Key, Wave

# A wave of this peer's own that is over.
Over = tuple[Key, Wave[Any]]


class Repairs(Trees):
    """The waves of a peer that knows of suspicions and deaths."""

    def __init__(self, name: str, peers: Peers, options: Options) -> None:
        super().__init__(name, peers, options)
        # Bit n for peer n: dead, or only suspected.
        self.dead = 0
        self.suspected = 0
        self.counts = {"copies": 0, "resplits": 0, "repairs": 0, "repair_s": 0.0}

    def _pass_down(self, tree: Any, parts: dict[int, bytes], task: int) -> None:
        self.counts["copies"] += len(parts)
        super()._pass_down(tree, parts, task)

    def _is_repaired(self, wave: Wave[Any], now: float) -> None:
        self.counts["repairs"] += 1
        self.counts["repair_s"] += max(0.0, now - wave.repaired_at)

    # What becomes of others.

    def avoid(self, dead: int, suspected: int) -> None:
        self.dead, self.suspected = dead, suspected & ~dead
        self._avoided = self.dead | self.suspected

    def suspect(self, peer: int, now: float) -> None:
        """A peer is suspected (`avoid` says so already): others take over what is below it."""
        for key, task, wave in self.tasks():
            if wave.parts.get(peer):
                self._replace(peer, key, task, wave, now)

    def bury(self, peer: int, now: float) -> list[Over]:
        """A peer is dead: nobody waits for it. The waves of this peer's own that are over so."""
        done: list[Over] = []
        for key, task, wave in self.tasks():
            if peer not in wave.parts:
                continue
            if wave.parts[peer]:
                self._replace(peer, key, task, wave, now)
            del wave.parts[peer]
            if not wave.parts:
                over = self._is_over(key, task, wave, now)
                done += [over] if over is not None else []
        self._withheld = [each for each in self._withheld if each[0] != peer]
        if self.bundler is not None:
            self.bundler.drop(peer)
            self.bundler.look_again()
        return done

    def _replace(self, peer: int, key: Key, task: int, wave: Wave[Any], now: float) -> None:
        """What is below this child of a wave goes to others."""
        part, wave.parts[peer] = wave.parts[peer], b""
        fresh: dict[int, bytes] = {}
        self._spare(peer, part, fresh)
        fresh.pop(peer, None)
        wave.parts.update(fresh)
        wave.repaired_at = wave.repaired_at or now
        self._pass_down(wave.tree, fresh, task)

    def _go_around(self, wave: Wave[Any]) -> None:
        parts, wave.parts = wave.parts, {}
        for child, part in parts.items():
            if self._avoided >> child & 1:
                self._spare(child, part, wave.parts)
            else:
                wave.parts[child] = part

    def _spare(self, child: int, part: bytes, parts: dict[int, bytes]) -> None:
        """The part of a child that is avoided, given to others: to one that is not, and a copy for
        itself to each that was to have it and is only suspected."""
        h = (self._me ^ child).bit_length() - 1
        while self._avoided >> child & 1:
            if not self.dead >> child & 1:
                parts[child] = b""
            heir = resplit(part, h, 0, self._me ^ child)
            if heir is None:
                return
            self.counts["resplits"] += 1
            self.out.append(Note("resplit", self._names[child]))
            child, part = self._me ^ heir[0], heir[1]
        parts[child] = part

    # What becomes of messages.

    def forget(self, source: int, life: int) -> None:
        """Nothing is passed on of what this source has said in a life that is over."""
        for key, task, wave in self.tasks():
            if key[2] == source and not isinstance(wave.tree, Kept) and wave.tree.life <= life:
                self._drop(key, task)

    def give_up(self, key: Key) -> None:
        """Nobody waits any more for this wave of the peer's own."""
        self._waves.pop(key, None)

    def forget_kept(self) -> None:
        for key, task, _ in self.tasks():
            if key[0] == KEPT:
                self._drop(key, task)

    def _drop(self, key: Key, task: int) -> None:
        if task:
            del self._later[(key, task)]
        else:
            del self._waves[key]

    def begin_anew(self) -> list[tuple[Key, Answer]]:
        """This peer has another life: all that was under way is over. Its own publications that
        have not been answered."""
        left = [
            (key, wave.answer) for key, _, wave in self.tasks()
            if key[0] == PUB and wave.parent == ROOT and wave.answer is not None
        ]  # fmt: skip
        self._waves.clear()
        self._later.clear()
        self._withheld.clear()
        if self.bundler is not None:
            for peer in range(len(self._names)):
                self.bundler.drop(peer)
        return left

    def account(self) -> dict[str, float]:
        counted = {name: float(figure) for name, figure in self.counts.items()}
        return {**super().account(), **counted}


def peers_of(mask: int) -> Iterator[int]:
    """The peers of a mask, rising.

    >>> list(peers_of(0b10110))
    [1, 2, 4]
    """
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
