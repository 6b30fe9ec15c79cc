"""How large packets are, and how messages are put into them.

Three messages of 700 bytes and an MTU of 1500: two leave in one packet, the third in another.

Rule 1: the MTU counts everything that is on the wire, with what a link puts around a packet.
Rule 2: messages are packed greedily in the order given, so that an order which extends causality
        still does. None is ever split: a message that is larger than the MTU leaves alone, in a
        packet that is too large, and the transport takes it apart (erratum A6).

What a message counts for is a choice: the bytes that it really takes (`Wire`), or those of somebody
else's accounting, to compare with published figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from inorder.core import wire
from inorder.protocols.cube.messages import Ack, Packet, Payload, Pub

# Around the messages of a packet: 28 bytes of IP and UDP, 12 that say it is one and of how many
# messages, and 60 for the frame of a session. Only a frame that reports several holes is larger.
WIRE_HEADER = 100


class Sizes(Protocol):
    """What messages count for."""

    @property
    def header(self) -> int:
        """A packet without its messages."""

    def of(self, message: Payload) -> int:
        """One message of a packet."""


class Wire:
    """The bytes that are really sent."""

    header = WIRE_HEADER

    def of(self, message: Payload) -> int:
        return wire.size(message)


WIRE = Wire()


def packed(messages: Iterable[Payload], sizes: Sizes, mtu: int) -> Iterator[list[Payload]]:
    """The messages, packet by packet."""
    size = sizes.header
    packet: list[Payload] = []
    for message in messages:
        own = sizes.of(message)
        if packet and size + own > mtu:
            yield packet
            size, packet = sizes.header, []
        size += own
        packet.append(message)
    if packet:
        yield packet


def sent_as(packet: list[Payload]) -> Pub[object] | Ack | Packet[object]:
    """What a link carries: a message that is alone needs no packet around it."""
    return packet[0] if len(packet) == 1 else Packet(tuple(packet))
