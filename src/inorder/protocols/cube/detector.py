"""VCube's failure detector: who answers, and who has fallen silent.

Of eight peers 1 has crashed. In the round of cluster 1 peer 0 asks it and hears nothing: its
counter for peer 1 becomes 1, which is odd: suspected. Peer 4 asks 0 in the next round, peer 2 in
the one after; both copy the counter from the answer. Were peer 1 only slow, its late answer would
raise the counter to 2, which is even: correct; and all that have copied 1 copy 2.

Rule 1: in a round a peer runs the tests of one cluster index s, which goes d, ..., 2, 1, d, ...
        Peer i tests j of its cluster s if i comes first in cluster s of j among the peers that i
        holds to be correct, itself included.
Rule 2: a test that is not answered in time makes an even counter odd. An answer to it, however
        late, makes an odd counter even.
Rule 3: a peer copies every counter higher than its own from the answers of those it tests. A peer
        that reads an odd counter of itself raises it to the next even one.
Rule 4: a suspicion is withdrawn when its counter becomes even. Once it is as old as
        `declare_after_s` here, it is declared: the peer is not tested any more, counts as faulty
        whatever is said of it, and is not withdrawn. Only `readmit` ends that.
Rule 5: an answer to a test before the first unanswered one proves nothing: it may be a copy.

What is promised. Peers in step, answers in time: no peer is tested twice in a round, nobody correct
is suspected, and d * d rounds after the last crash all correct peers know all crashes.
What is not. Out of step a peer may be tested by two in one round of theirs. Where answers are late,
correct peers are suspected; they are declared, too, if no answer comes within `declare_after_s`,
which should be several times the d rounds until they are asked once more. A clock that jumps ahead
declares too early. A declaration is this peer's own: that all peers declare the same ones is the
business of their view change, which says `declare`.

Theory. The diagnosis is that of the thesis (topology.py), section 2.4, with two corrections.

Who tests whom (V4). The published rule, "i tests j if j comes first in cluster s of i", makes
several peers test j in one round, and with a test a round it misses its bound. The rule above has a
closed form. Say i holds somebody in its cluster t < s to be correct. That peer is nearer than i to
every j of i's cluster s that differs in bit t - 1 from the head, i xor 2^(s-1). So i tests the
head, and those that differ from it in free bits only: bits t - 1 for which all of i's cluster t is
faulty.

Why s goes down. Say all correct peers of each sub-cube of h - 1 dimensions know its faulty ones.
What i tests in rounds h and below depends on i's own such sub-cube alone, so no test is missed: in
round h every peer of the other half, correct or not, has a tester here, and the testers together
know both halves. In round h - 1 whatever somebody of one half of the sub-cube knows goes to
somebody of the other half; in round h - 2 to the halves of these; after round 1 everybody knows it.
So every turn of d rounds makes the known sub-cubes larger by a dimension. Going up, knowledge waits
a turn at every step: of nine peers 0, 1, 6 and 8 crash, and it takes up to 19 rounds, not 16.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Protocol

from msgspec import Struct

from inorder.core.errors import BadMessage
from inorder.core.limits import CUBE_TURNS_MAX
from inorder.core.pack import pack
from inorder.protocols.cube.topology import dimensions

# The names of the two timers: for the next round, and for what is due before.
ROUND = "round"
DEADLINE = "deadline"

DIGEST_BYTES = 8

# Peers with their counters, by peer. Those not named have 0.
Rows = tuple[tuple[int, int], ...]


class Timing(Protocol):
    """What can be chosen about a detector, the same at all peers."""

    @property
    def round_s(self) -> float:
        """Seconds from one round to the next."""

    @property
    def test_timeout_s(self) -> float:
        """Seconds an answer may take: below `round_s`, or rounds overlap."""

    @property
    def declare_after_s(self) -> float:
        """Seconds until a suspicion cannot be withdrawn any more."""


# Messages.


class Test(Struct, frozen=True, gc=False, array_like=True, tag="test"):
    """Are you there? `digest` is of the tester's counters: who has the same need not send them."""

    number: int
    digest: bytes = b""


class Tested(Struct, frozen=True, gc=False, array_like=True, tag="tested"):
    """I am: the answer to the test of that number."""

    number: int
    rows: Rows = ()


# What comes out, besides messages.


class Suspects(Struct, frozen=True, gc=False):
    """A peer is held to be faulty from now on."""

    peer: int


class Withdraws(Struct, frozen=True, gc=False):
    """A suspicion was wrong, or is over."""

    peer: int


class Declares(Struct, frozen=True, gc=False):
    """Suspicions that will not be withdrawn any more."""

    peers: tuple[int, ...]


class Wakes(Struct, frozen=True, gc=False):
    """Set a timer: `tick` when ROUND runs out, `expire` when DEADLINE does."""

    timer: str
    after_s: float


Out = tuple[int, Test | Tested] | Suspects | Withdraws | Declares | Wakes


# State.


class Asked(Struct):
    """A peer that has not answered: the number of the first such test, and when the latest is due;
    None if that has gone by."""

    number: int
    due: float | None


class DetectorState(Struct, frozen=True, array_like=True):
    """Everything a detector knows. Rows are by peer."""

    # Rounds begun; tests carry this number.
    round: int = 0
    counters: Rows = ()
    asked: tuple[tuple[int, int, float | None], ...] = ()
    since: tuple[tuple[int, float], ...] = ()
    declared: tuple[int, ...] = ()
    # When the timer for what is due was set to run out.
    wakes_at: float | None = None


FRESH = DetectorState()


class Detector:
    """The detector of peer `me` of `count`, a part of a peer's machine."""

    def __init__(self, me: int, count: int, options: Timing, state: DetectorState = FRESH) -> None:
        assert 0 <= me < count
        self.me = me
        self.count = count
        self.options = options
        self._d = dimensions(count)
        self._round = state.round
        # By peer: its counter if that is above 0, the test it owes, and since when it is suspected
        # here, if it is and is not declared.
        self._counters = dict(state.counters)
        self._asked = {peer: Asked(number, due) for peer, number, due in state.asked}
        self._since = dict(state.since)
        self._wakes_at = state.wakes_at
        # Bit n for peer n: who is declared; and, derived, who is held to be correct.
        self._declared = _mask(state.declared)
        self._correct = ((1 << count) - 1) & ~(self._declared | _mask(self._since))
        # Derived, None if it is not known.
        self._digest: bytes | None = None

    def state(self) -> DetectorState:
        """Equal detectors give equal states, whatever came in which order."""
        return DetectorState(
            self._round,
            self._rows(),
            tuple((peer, asked.number, asked.due) for peer, asked in sorted(self._asked.items())),
            tuple(sorted(self._since.items())),
            self.declared,
            self._wakes_at,
        )

    # Inputs.

    def begin(self, now: float) -> list[Out]:
        """A process begins, or begins again: what was due in its former life is forgotten, and
        suspicions are as young as the process, whose clock may be another one."""
        if self._d == 0:
            return []  # alone, a peer has nobody to test
        for asked in self._asked.values():
            asked.due = None
        self._since = dict.fromkeys(self._since, now)
        self._wakes_at = None
        return [Wakes(ROUND, self.options.round_s), *self._wakes(now)]

    def tick(self, now: float) -> list[Out]:
        """The next round."""
        outs = self._overdue(now)
        outs.append(Wakes(ROUND, self.options.round_s))
        test = Test(self._round + 1, self._digest_of_counters())
        for peer in self.duties(self._d - self._round % self._d):
            asked = self._asked.setdefault(peer, Asked(test.number, None))
            if asked.due is None:
                asked.due = now + self.options.test_timeout_s
                outs.append((peer, test))
        self._round += 1
        return outs + self._wakes(now)

    def expire(self, now: float) -> list[Out]:
        """The timer for what is due has run out."""
        self._wakes_at = None
        return self._overdue(now) + self._wakes(now)

    def heard(self, source: int, message: Test | Tested, now: float) -> list[Out]:
        """A message from another peer."""
        if not 0 <= source < self.count or source == self.me:
            raise BadMessage(f"peer {source}", f"no peer for peer {self.me} of {self.count}")
        if isinstance(message, Test):
            same = message.digest == self._digest_of_counters()
            return [(source, Tested(message.number, () if same else self._rows()))]
        self._check(source, message.rows)
        asked = self._asked.get(source)
        if asked is None or not asked.number <= message.number <= self._round:
            return []
        del self._asked[source]
        outs: list[Out] = []
        for peer, counter in message.rows:
            if counter > self._counters.get(peer, 0):
                outs += self._turn(peer, counter, now)
        counter = self._counters.get(source, 0)
        if counter & 1:
            outs += self._turn(source, counter + 1, now)
        return outs + self._wakes(now)

    def declare(self, peers: Iterable[int]) -> None:
        """Others have declared these, and all peers are to agree: as if this one had, too."""
        for peer in peers:
            assert peer != self.me
            self._since.pop(peer, None)
            self._asked.pop(peer, None)
            self._declared |= 1 << peer
            self._correct &= ~(1 << peer)

    def readmit(self, peer: int) -> None:
        """A declared peer has joined again in another life: it is tested like any other."""
        if self._declared >> peer & 1:
            self._declared ^= 1 << peer
            self._correct |= 1 << peer
            counter = self._counters.get(peer, 0)
            if counter & 1:
                self._turn(peer, counter + 1, 0.0)

    # Questions.

    @property
    def correct(self) -> int:
        """Who is held to be correct, as a mask: neither suspected nor declared."""
        return self._correct

    @property
    def declared(self) -> tuple[int, ...]:
        return tuple(peer for peer in range(self.count) if self._declared >> peer & 1)

    def duties(self, s: int) -> Iterator[int]:
        """Whom this peer tests in a round of cluster index s (see Theory)."""
        free = 0
        for t in range(1, s):
            size = 1 << (t - 1)
            first = (self.me ^ size) & -size
            if not (self._correct >> first) & ((1 << size) - 1):
                free |= size
        head = self.me ^ (1 << (s - 1))
        other = 0
        while True:
            peer = head ^ other
            if peer < self.count and not self._declared >> peer & 1:
                yield peer
            if other == free:
                return
            # The next higher number with bits of `free` only.
            other = (other - free) & free

    # Private.

    def _turn(self, peer: int, counter: int, now: float) -> list[Out]:
        """A counter rises."""
        if peer == self.me:
            counter += counter & 1
        self._counters[peer] = counter
        self._digest = None
        if self._declared >> peer & 1:
            return []
        was_suspected = peer in self._since
        if counter & 1:
            # Also if it is suspected: somebody has withdrawn that, and this is another suspicion.
            self._since[peer] = now
            self._correct &= ~(1 << peer)
            return [] if was_suspected else [Suspects(peer)]
        if was_suspected:
            del self._since[peer]
            self._correct |= 1 << peer
            return [Withdraws(peer)]
        return []

    def _overdue(self, now: float) -> list[Out]:
        """What has become of everything that was due by now."""
        outs: list[Out] = []
        for peer, asked in sorted(self._asked.items()):
            if asked.due is not None and asked.due <= now:
                asked.due = None
                counter = self._counters.get(peer, 0)
                if counter & 1 == 0:
                    outs += self._turn(peer, counter + 1, now)
        after_s = self.options.declare_after_s
        if old := sorted(peer for peer, since in self._since.items() if since + after_s <= now):
            self.declare(old)
            outs.append(Declares(tuple(old)))
        return outs

    def _wakes(self, now: float) -> list[Out]:
        """Set the timer for what is due next, unless it runs out before that."""
        dues = [asked.due for asked in self._asked.values() if asked.due is not None]
        dues += [since + self.options.declare_after_s for since in self._since.values()]
        if not dues:
            return []
        due = min(dues)
        if self._wakes_at is not None and self._wakes_at <= due:
            return []
        self._wakes_at = due
        return [Wakes(DEADLINE, due - now)]

    def _rows(self) -> Rows:
        return tuple(sorted(self._counters.items()))

    def _digest_of_counters(self) -> bytes:
        """A few bytes that differ where counters differ; none at all where all are 0."""
        if self._digest is None:
            rows = self._rows()
            self._digest = blake2b(pack(rows), digest_size=DIGEST_BYTES).digest() if rows else b""
        return self._digest

    def _check(self, source: int, rows: Rows) -> None:
        last = -1
        for peer, counter in rows:
            if not last < peer < self.count or not 0 < counter <= CUBE_TURNS_MAX:
                raise BadMessage(f"peer {source}", f"counter {counter} of peer {peer}")
            last = peer


def _mask(peers: Iterable[int]) -> int:
    mask = 0
    for peer in peers:
        mask |= 1 << peer
    return mask
