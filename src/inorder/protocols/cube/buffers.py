"""Messages that wait for company: one buffer a peer, with a timer.

Three messages for peer 5 are put within two milliseconds. With tau at ten milliseconds they leave
as one packet, ten milliseconds after the first. If they fill a packet, that leaves at once.

Rule 1: a buffer leaves tau after its oldest message, or when it is hurried. A packet that the next
        message does not fit into leaves before that.
Rule 2: with tau 0 everything leaves at the end of the input that has put it, and no timer is set.
Rule 3: nothing waits longer than tau. If tau adapts, every peer has a tau of its own, which the
        given one bounds: after so many packets it is halved if the output queue is empty, since
        waiting spared nothing there; it is doubled if something stands in the queue and the packets
        held fewer than two messages on average.

A machine cannot see its output queue: a driver that can says whether a copy would have to wait in
it. Without that the queue counts as empty, and an adaptive tau only becomes smaller.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any, Generic

from msgspec import Struct

from inorder.protocols.cube.messages import Ack, Body, Payload, Pub
from inorder.protocols.cube.sizes import Sizes, packed

# After so many packets to a peer its tau is looked at; the least tau is so small a part of it.
ADAPT_PACKETS = 8
TAU_PARTS = 64


class Buffer(Struct, Generic[Body], array_like=True):
    """What waits for one peer."""

    tau: float
    # The oldest first, and since when each waits.
    messages: list[Pub[Body] | Ack] = []
    since: list[float] = []
    # The message that the timer runs for came at this time; None if no timer runs.
    timed: float | None = None
    # Since tau was looked at: packets, and messages in them.
    packets: int = 0
    sent: int = 0


class BuffersState(Struct, Generic[Body]):
    """All buffers in a snapshot, by peer, and whether something stands in the output queue."""

    buffers: list[tuple[int, Buffer[Body]]]
    queue: bool


class Buffers:
    """The buffers of one peer. At the end of an input `finish` says what leaves, and `timers` which
    timers run from then on."""

    def __init__(self, mtu: int, tau: float, adapts: bool, sizes: Sizes) -> None:
        self.sizes = sizes
        # Whether something stands in the output queue, as far as the driver has said.
        self.queue = False
        self._mtu = mtu
        self._tau = tau
        self._adapts = adapts
        self._buffers: dict[int, Buffer[Any]] = {}
        # The bytes of the packets that are being filled.
        self._bytes: dict[int, int] = {}
        # Of the input in progress: who got something, and packets that are full.
        self.touched: dict[int, None] = {}
        self._full: list[tuple[int, list[Payload]]] = []
        self.counts = {"packets": 0, "packets_several": 0, "packed": 0, "packets_full": 0}

    @property
    def idle(self) -> bool:
        return not any(buffer.messages for buffer in self._buffers.values())

    def put(self, peer: int, message: Payload, now: float) -> None:
        buffer = self._buffers.get(peer)
        if buffer is None:
            buffer = self._buffers[peer] = Buffer(self._tau)
        if self._tau:
            self._fill(peer, buffer, message)
        buffer.messages.append(message)
        buffer.since.append(now)
        self.touched[peer] = None

    def _fill(self, peer: int, buffer: Buffer[Any], message: Payload) -> None:
        """Make room for a message: what it does not fit behind is a full packet."""
        own = self.sizes.of(message)
        size = self._bytes.get(peer, self.sizes.header)
        if buffer.messages and size + own > self._mtu:
            self._full.append((peer, self._emptied(peer, buffer)))
            self.counts["packets_full"] += 1
            size = self.sizes.header
        self._bytes[peer] = size + own

    def _emptied(self, peer: int, buffer: Buffer[Any]) -> list[Payload]:
        messages, buffer.messages, buffer.since = buffer.messages, [], []
        self._bytes.pop(peer, None)
        return messages

    def drop(self, peer: int) -> None:
        """Nothing goes to this peer any more. A timer of its that runs finds nothing."""
        self._buffers.pop(peer, None)
        self._bytes.pop(peer, None)
        self.touched.pop(peer, None)
        self._full = [full for full in self._full if full[0] != peer]

    def hurry(self, peer: int) -> None:
        """The timer of this peer has run out."""
        if peer in self._buffers:
            self._buffers[peer].timed = None
            self.touched[peer] = None

    # The end of an input.

    def finish(self, hurried: Container[int], now: float) -> list[tuple[int, list[Payload]]]:
        """The packets that leave, and to whom; the buffers of those that are hurried do."""
        leaving, self._full = self._full, []
        for peer in self.touched:
            buffer = self._buffers[peer]
            if not buffer.messages:
                continue
            due = peer in hurried or buffer.since[0] + buffer.tau <= now
            if due or self._bytes.get(peer, 0) >= self._mtu:
                leaving += self._taken(peer, buffer)
        for peer, packet in leaving:
            self._count(peer, len(packet))
        return leaving

    def _taken(self, peer: int, buffer: Buffer[Any]) -> list[tuple[int, list[Payload]]]:
        messages = self._emptied(peer, buffer)
        if self._tau or len(messages) == 1:
            return [(peer, messages)]
        packets = [(peer, packet) for packet in packed(messages, self.sizes, self._mtu)]
        self.counts["packets_full"] += len(packets) - 1
        return packets

    def timers(self, now: float) -> list[tuple[int, float | None]]:
        """By peer, how long its timer is to run from now on; None if it is to stop."""
        timers: list[tuple[int, float | None]] = []
        touched, self.touched = self.touched, {}
        for peer in touched:
            buffer = self._buffers[peer]
            oldest = buffer.since[0] if buffer.since else None
            if oldest != buffer.timed:
                after_s = None if oldest is None else max(0.0, oldest + buffer.tau - now)
                timers.append((peer, after_s))
                buffer.timed = oldest
        return timers

    def _count(self, peer: int, messages: int) -> None:
        counts = self.counts
        counts["packets"] += 1
        counts["packed"] += messages
        counts["packets_several"] += messages > 1
        if self._adapts:
            self._adapt(self._buffers[peer], messages)

    def _adapt(self, buffer: Buffer[Any], messages: int) -> None:
        buffer.packets += 1
        buffer.sent += messages
        if buffer.packets < ADAPT_PACKETS:
            return
        if not self.queue:
            buffer.tau = max(self._tau / TAU_PARTS, buffer.tau / 2)
        elif buffer.sent < 2 * buffer.packets:
            buffer.tau = min(self._tau, buffer.tau * 2)
        buffer.packets = buffer.sent = 0

    # Snapshots.

    def packed(self) -> BuffersState[Any]:
        """A buffer that says nothing new is left out."""
        fresh = Buffer[Any](self._tau)
        known = [(peer, self._buffers[peer]) for peer in sorted(self._buffers)]
        return BuffersState([row for row in known if row[1] != fresh], self.queue)

    def become(self, state: BuffersState[Any]) -> None:
        self.queue = state.queue
        self._buffers = dict(state.buffers)
        self._bytes = {
            peer: self.sizes.header + sum(map(self.sizes.of, buffer.messages))
            for peer, buffer in state.buffers
            if self._tau and buffer.messages
        }
