"""Several messages for one peer in one packet: because of what they rest on, or because of a timer.

| aggregate | a publication for a child leaves                                              |
|-----------|-------------------------------------------------------------------------------|
| causal    | when nothing holds it (holds.py), with everything else that is free then      |
| timer     | when its buffer is full or due (buffers.py)                                   |
| hybrid    | when nothing holds it, and its buffer is full or due, or something that was   |
|           | held for the same child becomes free; with `piggyback` it waits for a timer   |
|           | only while something is held for that child                                   |

Rule 1: acknowledgements of publications take the same buffers, and are never held. What belongs to
        joining and leaving never waits.
Rule 2: what leaves for one peer at the end of one input leaves together, as far as a packet takes
        it (sizes.py). A message that is alone needs no packet around it.
Rule 3: a peer that is about to lose something (a member that crashed, a place that nobody holds any
        more) says so by `drop`, `give_up` and `look_again`.

Theory. Timers only move the moment of sending, so nothing of causal order or of what is promised
rests on them. They add up to tau on every hop, d * tau on a way. Holding adds nothing (holds.py).
The timers are those of Rodrigues et al. as the thesis (peer.py) describes them, section 3.4.5; the
hybrid and the piggyback are two ideas of its section 6.2.2.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic

from msgspec import Struct

from inorder.core.effect import CancelTimer, Effect, SetTimer
from inorder.core.place import Place
from inorder.protocols.cube.buffers import Buffers, BuffersState
from inorder.protocols.cube.holds import Holds
from inorder.protocols.cube.links import TIMER
from inorder.protocols.cube.messages import Body, Message, Payload, Pub
from inorder.protocols.cube.options import Options
from inorder.protocols.cube.outlook import Outlook
from inorder.protocols.cube.peers import Peers
from inorder.protocols.cube.sizes import WIRE, Sizes, sent_as
from inorder.protocols.cube.topic import Topic

BUNDLE = TIMER + "bundle/"


class BundlerState(Struct, Generic[Body]):
    """What is held and what waits, by child."""

    held: list[tuple[int, Pub[Body]]]
    given_up: list[Place]
    buffers: BuffersState[Body]


class Bundler:
    """Between a peer's trees and its links; `send` gives a message to a link."""

    def __init__(
        self,
        name: str,
        peers: Peers,
        options: Options,
        topic_of: Callable[[str], Topic | None],
        send: Callable[[int, Message], None],
    ) -> None:
        self._names = peers.names
        self._ids = peers.ids
        self._send = send
        single = options.trees == "single"
        self._outlook = Outlook(peers.ids[name], peers, single, topic_of)
        self._holds = Holds(self._outlook) if options.aggregate != "timer" else None
        tau = 0.0 if options.aggregate == "causal" else options.tau
        self._buffers = Buffers(options.mtu, tau, options.adapt, WIRE)
        self._piggyback = options.piggyback
        # Of the input in progress: acknowledgements, publications that are not to be held, and
        # peers whose timers have run out.
        self._free: list[tuple[int, Payload]] = []
        self._hurried: dict[int, None] = {}

    # Inputs.

    def put(self, peer: int, message: Payload) -> None:
        """A message for a peer, to leave as soon as it may."""
        # A publication that is held for this child already comes in a second part: it may go.
        holds = self._holds
        if holds is None or not isinstance(message, Pub) or not holds.put(peer, message):
            self._free.append((peer, message))

    def came(self, topic: str, source: int) -> None:
        """A publication of this source has come."""
        if self._holds is not None:
            self._holds.came(topic, source)

    def fire(self, timer: str) -> None:
        peer = self._ids.get(timer.removeprefix(BUNDLE))
        if peer is not None:
            self._buffers.hurry(peer)
            self._hurried[peer] = None

    def look_again(self) -> None:
        """A view has changed, or what is expected: at the end of the input, look at all that is
        held."""
        if self._holds is not None:
            self._holds.look_again()

    def give_up(self, places: Iterable[Place]) -> None:
        """These, and all before them of the same origins, will not come: nothing waits for them."""
        self._outlook.give_up(places)
        self.look_again()

    def drop(self, peer: int) -> None:
        """Nothing goes to this peer any more."""
        self._free = [each for each in self._free if each[0] != peer]
        self._buffers.drop(peer)
        if self._holds is not None:
            self._holds.drop(peer)

    def measure_with(self, sizes: Sizes) -> None:
        """Let messages count for something else than their bytes, before the first one."""
        self._buffers.sizes = sizes

    def tell_queue(self, busy: bool) -> None:
        """Whether something stands in the output queue."""
        self._buffers.queue = busy

    # The end of an input.

    def finish(self, now: float) -> list[Effect]:
        """Send what may leave; the timers that run from now on."""
        buffers, hurried, holds = self._buffers, self._hurried, self._holds
        for child, pubs, released in holds.settle() if holds is not None else ():
            for pub in pubs:
                buffers.put(child, pub, now)
            if released:
                hurried[child] = None
        for peer, message in self._free:
            buffers.put(peer, message, now)
        self._free.clear()
        if self._piggyback and holds is not None:
            alone = [peer for peer in buffers.touched if not holds.holds_for(peer)]
            hurried.update(dict.fromkeys(alone))
        for peer, packet in buffers.finish(hurried, now):
            self._send(peer, sent_as(packet))
        hurried.clear()
        return [self._timer(peer, after_s) for peer, after_s in buffers.timers(now)]

    def _timer(self, peer: int, after_s: float | None) -> Effect:
        name = BUNDLE + self._names[peer]
        return CancelTimer(name) if after_s is None else SetTimer(name, after_s)

    @property
    def idle(self) -> bool:
        return self._buffers.idle and (self._holds is None or self._holds.idle)

    def account(self) -> dict[str, float]:
        """Packets of publications and acknowledgements, those with several, the messages in all of
        them, packets that the next message did not fit into; publications that were held."""
        held = {"held": float(self._holds.counted)} if self._holds is not None else {}
        return {**{name: float(count) for name, count in self._buffers.counts.items()}, **held}

    # Snapshots.

    def packed(self) -> BundlerState[Any]:
        held = self._holds.packed() if self._holds is not None else []
        given_up = sorted(self._outlook.given_up.items())
        return BundlerState(held, given_up, self._buffers.packed())

    def become(self, state: BundlerState[Any]) -> None:
        self._outlook.give_up(state.given_up)
        self._buffers.become(state.buffers)
        if self._holds is not None:
            self._holds.become(state.held)
