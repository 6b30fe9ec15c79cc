"""One topic at one peer: who is a member, which publications come, and what waits.

Peer 2 joins `chat` while 0 and 1 talk. Both answer with the number of their next publication, say
4 and 9: from there on everything of theirs is addressed to peer 2, and nothing before. That is
where the two origins *begin* for it. A second question, sent when the first has reached everybody,
is answered 5 and 9: publications from there on *count*, those before only set the order.

Rule 1: of what is said about a peer the highest number of its changes is true. That it has left is
        never forgotten, or an older word could bring it back (erratum P11).
Rule 2: origins begin by what members answer, never by what happens to come first (erratum P1).
Rule 3: numbers of changes and of publications go on over everything, also over a crash.

A *source* publishes on the topic and receives nothing: it stands in the views, so that it learns
whom to address, and nobody addresses it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from collections import deque
from typing import Any, Generic, Literal

from msgspec import Struct

from inorder.core.event import Scalar
from inorder.core.table import Numbers, Table
from inorder.protocols.cube.messages import GONE, MEMBER, SOURCE, Body, Pub
from inorder.protocols.cube.remains import Remains, RemainsState

# out: no member. join: the SUB wave is on its way; act: the ACT wave; in: everything published
# from now on will come. leave: the UNS wave is on its way.
Phase = Literal["out", "join", "act", "in", "leave"]


# Above every number: of an origin that has not begun nothing is new.
NOT_BEGUN = 2**64 - 1


class Enter(Struct, frozen=True, array_like=True, tag="enter"):
    """A call that waits for its turn: become a member, or a source."""

    role: int


class Exit(Struct, frozen=True, array_like=True, tag="exit"):
    """Leave the topic."""


class Publish(Struct, frozen=True, array_like=True, tag="publish"):
    """An application's publication, under the name of its call."""

    call: str
    value: dict[str, Scalar]


class Spread(Struct, Generic[Body], frozen=True, array_like=True, tag="spread"):
    """A message that the machine inside has made already."""

    message: Body


Call = Enter | Exit | Publish | Spread[Any]


class Topic:
    """What a peer knows of a topic, and what it has been asked to do there."""

    __slots__ = (
        "_remains", "ahead", "alike", "begun", "calls", "change", "changes", "counts", "early",
        "have",
        "members", "next", "outstanding", "phase", "reserved", "role", "sources", "start",
        "wanted",
    )  # fmt: skip

    def __init__(self) -> None:
        self.phase: Phase = "out"
        self.role = GONE
        # Whether the machine inside holds the topic, from its wish to its leaving.
        self.wanted = False
        # The number of this peer's last change, of its next publication, and of the last one that
        # its disk knows to be given away.
        self.change = 0
        self.next = 1
        self.reserved = 0
        self.calls: deque[Call] = deque()
        # Own publications that not everybody has acknowledged.
        self.outstanding = 0
        self._remains: Remains | None = None
        self.forget()

    def forget(self) -> None:
        """What belongs to one membership."""
        # The view: the last change heard of each peer, and what it is. One that is known and
        # neither member nor source has left.
        self.changes = Table()
        self.members = 0
        self.sources = 0
        # Which origins have begun here, with which number, and from which on they count (0: none).
        self.begun = 0
        self.start = Table()
        self.counts = Table()
        # Up to which number everything of an origin has come, and what came beyond. An array, for
        # it is looked at for every publication: NOT_BEGUN is above every number.
        self.have = array("Q")
        self.ahead: dict[int, list[int]] = {}
        # What came before this peer was in.
        self.early: list[tuple[int, Pub[Any]]] = []
        # Preset: all these begin and count from 1 on, and the machine inside does not know it yet.
        self.alike: Numbers | None = None
        if self._remains is not None:
            self._remains.forget()

    @property
    def remains(self) -> Remains:
        """What there is in case that sources die; nothing where nobody watches."""
        if self._remains is None:
            self._remains = Remains()
        return self._remains

    @property
    def answers(self) -> bool:
        """Whether this peer reports itself to others that join."""
        return self.phase in ("join", "act", "in")

    @property
    def concerned(self) -> int:
        """All that have to know of changes."""
        return self.members | self.sources

    def learn(self, peer: int, change: int, role: int) -> bool:
        """Take in what is said of a peer; whether it is newer than what was known."""
        if change <= self.changes[peer]:
            return False
        self.changes[peer] = change
        bit = 1 << peer
        self.members = self.members | bit if role == MEMBER else self.members & ~bit
        self.sources = self.sources | bit if role == SOURCE else self.sources & ~bit
        return True

    def begin(self, origin: int, start: int) -> None:
        """Publications of this origin come from this number on; said again, the first holds."""
        if not self.begun >> origin & 1:
            self.alike = None
            self.begun |= 1 << origin
            self.start[origin] = start
            self._have_from(origin, start)

    def begin_own(self, me: int) -> None:
        """This peer's own publications of this membership come from its next one on."""
        self.begun |= 1 << me
        self.start[me] = self.counts[me] = self.next
        self._have_from(me, self.next)

    def _have_from(self, origin: int, start: int) -> None:
        missing = origin + 1 - len(self.have)
        if missing > 0:
            self.have.extend([NOT_BEGUN] * missing)
        self.have[origin] = start - 1

    def come(self, origin: int, number: int) -> bool:
        """Note a publication that is addressed to this peer; whether it comes for the first time
        (an earlier membership's does not count)."""
        try:
            have = self.have[origin]
        except IndexError:
            return False
        if number <= have:
            return False
        ahead = self.ahead.get(origin) if self.ahead else None
        if number > have + 1:
            if ahead is None:
                ahead = self.ahead[origin] = []
            place = bisect_left(ahead, number)
            if place < len(ahead) and ahead[place] == number:
                return False
            insort(ahead, number)
            return True
        if ahead is not None:
            taken = 0
            while taken < len(ahead) and ahead[taken] == number + 1:
                number += 1
                taken += 1
            del ahead[:taken]
            if not ahead:
                del self.ahead[origin]
        self.have[origin] = number
        return True

    def preset(self, members: int, sources: int, role: int, ones: Numbers) -> None:
        """The state after all these have joined one after the other. Applications that hold the
        topic say so before anything is published: what came earlier is not waited for."""
        self.phase = "in"
        self.role = role
        self.change = 1
        self.members, self.sources = members, sources
        self.changes = Table(ones)
        if role == MEMBER:
            self.begun = members | sources
            self.start = Table(ones)
            self.counts = Table(ones)
            self.alike = ones
            self.have = array("Q", bytes(8 * len(ones)))
            if ones.count(0):
                for origin, one in enumerate(ones):
                    self.have[origin] = 0 if one else NOT_BEGUN

    # Snapshots.

    def packed(self) -> Packed[Any]:
        return Packed(
            self.phase, self.role, self.wanted, self.change, self.next, self.reserved,
            list(self.calls), self.outstanding,
            tuple(octets(mask) for mask in (self.members, self.sources, self.begun)),
            tuple(table.pairs() for table in (self.changes, self.start, self.counts)),
            [(origin, have) for origin, have in enumerate(self.have) if have != NOT_BEGUN],
            sorted(self.ahead.items()), self.early,
            None if self._remains is None else self._remains.packed(),
        )  # fmt: skip

    @classmethod
    def unpacked(cls, packed: Packed[Any]) -> Topic:
        topic = cls()
        topic.phase, topic.role, topic.wanted = packed.phase, packed.role, packed.wanted
        topic.change, topic.next, topic.reserved = packed.change, packed.next, packed.reserved
        topic.calls = deque(packed.calls)
        topic.outstanding = packed.outstanding
        topic.members, topic.sources, topic.begun = map(mask_of, packed.masks)
        tables = [Table.of(pairs) for pairs in packed.tables]
        topic.changes, topic.start, topic.counts = tables
        for origin, have in packed.have:
            topic._have_from(origin, have + 1)
        topic.ahead = dict(packed.ahead)
        topic.early = packed.early
        topic._remains = None if packed.remains is None else Remains.unpacked(packed.remains)
        return topic


class Packed(Struct, Generic[Body], array_like=True):
    """A topic in a snapshot."""

    phase: Phase
    role: int
    wanted: bool
    change: int
    next: int
    reserved: int
    calls: list[Enter | Exit | Publish | Spread[Body]]
    outstanding: int
    masks: tuple[bytes, ...]
    tables: tuple[tuple[tuple[int, int], ...], ...]
    have: list[tuple[int, int]]
    ahead: list[tuple[int, list[int]]]
    early: list[tuple[int, Pub[Body]]]
    remains: RemainsState[Body] | None


def octets(mask: int) -> bytes:
    """A set of peers as bytes: msgspec's integers end at 64 bits."""
    return mask.to_bytes((mask.bit_length() + 7) // 8, "little")


def mask_of(packed: bytes) -> int:
    return int.from_bytes(packed, "little")
