"""What peers say to each other.

`Sub`, `Act`, `Uns` and `Pub` travel down the tree of their source, each copy with the *part* of the
destinations that it has to reach (parts.py): peers on the way need to know nothing of the topic.
An `Ack` travels up again when a whole part is done. Several `Pub`s and `Ack`s for one peer may
share a `Packet` (bundler.py). Peers are numbers: see `Peer`.

The `key` of a message is what two runs would both call it: sim/models.py draws by it.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from msgspec import Struct

# What the machines inside the peers say.
Body = TypeVar("Body")

# What a peer is for a topic. A source publishes and receives nothing.
GONE, MEMBER, SOURCE = 0, 1, 2

# What an acknowledgement says of a peer: which one it is, how often it has changed its membership,
# what it is there, and the number of its next publication.
Standing = tuple[int, int, int, int]


class Sub(Struct, frozen=True, gc=False, array_like=True, tag="sub"):
    """A peer joins: the number of this change, what it becomes, and its next publication."""

    topic: str
    source: int
    change: int
    role: int
    base: int
    to: bytes


class Act(Struct, frozen=True, gc=False, array_like=True, tag="act"):
    """The source's joining has reached everybody: from which number on does a publication count?"""

    topic: str
    source: int
    change: int
    to: bytes


class Uns(Struct, frozen=True, gc=False, array_like=True, tag="uns"):
    """A peer has left: the number is that of the change."""

    topic: str
    source: int
    change: int
    to: bytes


class Pub(Struct, Generic[Body], frozen=True, gc=False, array_like=True, tag="pub"):
    """The source's publication of that number on the topic."""

    topic: str
    source: int
    number: int
    to: bytes
    body: Body

    @property
    def key(self) -> str:
        return f"{self.topic}/{self.source}:{self.number}"


class Ack(Struct, frozen=True, gc=False, array_like=True, tag="done"):
    """Everybody in the part of this message has it. `kind` is its place in `KINDS`, `number` that
    of its change or publication."""

    kind: int
    topic: str
    source: int
    number: int
    standings: tuple[Standing, ...] = ()

    @property
    def key(self) -> str:
        return f"ack/{self.kind}/{self.topic}/{self.source}:{self.number}"


class Packet(Struct, Generic[Body], frozen=True, gc=False, array_like=True, tag="packet"):
    """Messages that travel together; each of them counts as if it had come alone."""

    messages: tuple[Pub[Body] | Ack, ...]


Tree = Sub | Act | Uns | Pub[Any]
Payload = Pub[Any] | Ack
Message = Tree | Ack | Packet[Any]

SUB, ACT, UNS, PUB = range(4)
KINDS: tuple[type, ...] = (Sub, Act, Uns, Pub)
