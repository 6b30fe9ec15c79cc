"""What peers say to each other.

`Sub`, `Act`, `Uns` and `Pub` travel down the tree of their source, each copy with the *part* of the
destinations that it has to reach (parts.py): peers on the way need to know nothing of the topic.
An `Ack` travels up again when a whole part is done. Several `Pub`s and `Ack`s for one peer may
share a `Packet` (bundler.py). Peers are numbers: see `Peer`.

The `key` of a message is what two runs would both call it: sim/models.py draws by it.

What is there for peers that crash: `life` is the life in which the source said it, `again` tells
copies of one message from each other that one peer has sent to another one, `Kept` is a publication
of a dead peer, `Flush` and `Probe` are what the living say of the dead.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from msgspec import Struct

from inorder.protocols.cube.detector import Test, Tested

# What the machines inside the peers say.
Body = TypeVar("Body")

# What a peer is for a topic. A source publishes and receives nothing.
GONE, MEMBER, SOURCE = 0, 1, 2

# What an acknowledgement says of a peer: which one it is, how often it has changed its membership,
# what it is there, the number of its next publication, and its life if that is not the first one.
Standing = tuple[int, ...]


class Sub(Struct, frozen=True, gc=False, array_like=True, tag="sub"):
    """A peer joins: the number of this change, what it becomes, and its next publication."""

    topic: str
    source: int
    change: int
    role: int
    base: int
    to: bytes
    life: int = 1
    again: int = 0


class Act(Struct, frozen=True, gc=False, array_like=True, tag="act"):
    """The source's joining has reached everybody: from which number on does a publication count?"""

    topic: str
    source: int
    change: int
    to: bytes
    life: int = 1
    again: int = 0


class Uns(Struct, frozen=True, gc=False, array_like=True, tag="uns"):
    """A peer has left: the number is that of the change."""

    topic: str
    source: int
    change: int
    to: bytes
    life: int = 1
    again: int = 0


class Pub(Struct, Generic[Body], frozen=True, gc=False, array_like=True, tag="pub"):
    """The source's publication of that number on the topic. Everything up to its number `stable`
    has been acknowledged by all."""

    topic: str
    source: int
    number: int
    to: bytes
    body: Body
    life: int = 1
    stable: int = 0
    again: int = 0

    @property
    def key(self) -> str:
        return f"{self.topic}/{self.source}:{self.number}"


class Kept(Struct, Generic[Body], frozen=True, gc=False, array_like=True, tag="kept"):
    """A publication of a dead peer that the sender, or who is above it in the tree, has kept.
    `fence` names the flush after which it was sent (fence.py)."""

    topic: str
    source: int
    number: int
    to: bytes
    body: Body
    fence: bytes
    again: int = 0

    @property
    def key(self) -> str:
        return f"kept/{self.topic}/{self.source}:{self.number}"


class Ack(Struct, frozen=True, gc=False, array_like=True, tag="done"):
    """Everybody in the part of this message has it. `kind` is its place in `KINDS`, `number` that
    of its change or publication."""

    kind: int
    topic: str
    source: int
    number: int
    standings: tuple[Standing, ...] = ()
    again: int = 0

    @property
    def key(self) -> str:
        return f"ack/{self.kind}/{self.topic}/{self.source}:{self.number}"


class Packet(Struct, Generic[Body], frozen=True, gc=False, array_like=True, tag="packet"):
    """Messages that travel together; each of them counts as if it had come alone."""

    messages: tuple[Pub[Body] | Ack, ...]


# Runs of numbers, first and last, rising.
Runs = tuple[tuple[int, int], ...]

# Peers, rising, each with a life: the last one that is over, or that has been heard of.
Over = tuple[tuple[int, int], ...]


class Row(Struct, frozen=True, gc=False, array_like=True):
    """What a peer has of a dead one's publications on a topic: these `runs`. It is addressed by it
    from number `start` on (0: not at all), and up to `settled` there will be no more of them."""

    topic: str
    source: int
    start: int
    settled: int
    runs: Runs


class View(Struct, frozen=True, gc=False, array_like=True):
    """Who lives: all, but those whose last lives are over. Of these peers some are in other lives
    already; those that are not named are in their first one."""

    over: Over = ()
    lives: Over = ()


class Flush(Struct, frozen=True, gc=False, array_like=True, tag="flush"):
    """This is who lives, and this is what I have of the dead: from now on I take no more of it, but
    what comes as `Kept`. `last` is what the last flush ended with here; None if none has ended in
    this life, which is not the first one: then nothing was begun in it."""

    view: View
    last: View | None
    rows: tuple[Row, ...] = ()


class Probe(Struct, frozen=True, gc=False, array_like=True, tag="probe"):
    """A detector's word, outside of all sessions; the lives are those of a greeting."""

    mine: int
    yours: int
    body: Test | Tested


Tree = Sub | Act | Uns | Pub[Any] | Kept[Any]
Payload = Pub[Any] | Ack
Message = Tree | Ack | Packet[Any] | Flush

SUB, ACT, UNS, PUB, KEPT = range(5)
KINDS: tuple[type, ...] = (Sub, Act, Uns, Pub, Kept)
