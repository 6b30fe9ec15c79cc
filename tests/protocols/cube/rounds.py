"""Detectors for tests: one peer's, and all peers' driven round by round, in step and in time."""

from __future__ import annotations

from msgspec import Struct

from inorder.protocols.cube.detector import (
    Declares,
    Detector,
    Suspects,
    Wakes,
    Withdraws,
)
from inorder.protocols.cube.topology import dimensions


class Timing(Struct, frozen=True):
    round_s: float = 1.0
    test_timeout_s: float = 0.5
    declare_after_s: float = 1e9


class Rounds:
    """`count` peers whose next round is the one after `rounds` others."""

    def __init__(self, count, rng, timing=None, rounds=0, kind=Detector):
        self.count = count
        self.rng = rng
        self.timing = timing or Timing()
        self.now = 0.0
        self.dead = set()
        self.peers = [kind(me, count, self.timing) for me in range(count)]
        # By round the tests of each peer; and all changes in opinion: (peer, what).
        self.tested = []
        self.opinions = []
        for peer in self.peers:
            peer._round = rounds
            peer.begin(0.0)

    @property
    def bound(self):
        return dimensions(self.count) ** 2

    @property
    def alive(self):
        return [me for me in range(self.count) if me not in self.dead]

    def crash(self, *peers):
        self.dead.update(peers)

    def round(self):
        """One round of everybody alive, to its end."""
        self.tested.append(dict.fromkeys(range(self.count), 0))
        self._deliver([(me, self.peers[me].tick(self.now)) for me in self.alive])
        ending = self.now + self.timing.test_timeout_s
        self._deliver([(me, self.peers[me].expire(ending)) for me in self.alive])
        self.now += self.timing.round_s

    def _deliver(self, outs):
        """Hand over messages, and what they give rise to, in any order."""
        waiting = []
        self._take(outs, waiting)
        while waiting:
            source, target, message = waiting.pop(self.rng.randrange(len(waiting)))
            if target not in self.dead:
                answers = self.peers[target].heard(source, message, self.now)
                self._take([(target, answers)], waiting)

    def _take(self, outs, waiting):
        for me, values in outs:
            for value in values:
                if isinstance(value, tuple):
                    waiting.append((me, *value))
                    if type(value[1]).__name__ == "Test":
                        self.tested[-1][value[0]] += 1
                elif isinstance(value, Suspects | Withdraws | Declares):
                    self.opinions.append((me, value))

    def agree(self):
        """Whether everybody alive knows exactly who is."""
        alive = sum(1 << me for me in self.alive)
        return all(self.peers[me].correct == alive for me in self.alive)

    def until_agreed(self, rounds_max):
        """Rounds until everybody alive knows; None if more than that."""
        for rounds in range(rounds_max + 1):
            if self.agree():
                return rounds
            self.round()
        return None


# One detector, and what comes out of it.

TIMING = Timing(round_s=1.0, test_timeout_s=0.25, declare_after_s=10.0)


def with_faulty(me, count, faulty):
    """A detector that holds these to be faulty."""
    detector = Detector(me, count, TIMING)
    for peer in sorted(faulty):
        detector._turn(peer, 1, 0.0)
    return detector


def sent(outs):
    return [out for out in outs if isinstance(out, tuple)]


def changes(outs):
    return [out for out in outs if isinstance(out, Suspects | Withdraws | Declares)]


def timers(outs):
    return [out for out in outs if isinstance(out, Wakes)]


def suspecting(count=2, target=1):
    """Peer 0 whose first test of `target` has run out at 0.25 s."""
    detector = Detector(0, count, TIMING)
    while target not in [peer for peer, _ in sent(detector.tick(0.0))]:
        detector._asked.clear()
    assert changes(detector.expire(0.25)) == [Suspects(target)]
    return detector
