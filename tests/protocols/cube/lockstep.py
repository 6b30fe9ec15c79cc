"""Static peers, packet by packet: schedules without time in which all are there from the start.

`Static` is a network of such peers whose messages arrive in any order; what it records of packets
can be compared with the twins of chapter4.py, played in step with it.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

from inorder.core.effect import Deliver, Effect, Send
from inorder.guarantee.peer import Order, Peered
from inorder.protocols.cube.messages import Packet, Pub
from inorder.protocols.cube.options import Options
from inorder.protocols.cube.peers import Peers
from inorder.sim import cube
from tests.protocols.cube.chapter4 import Corrected

MTU = 65_000


class Static:
    def __init__(
        self, count: int, *, stamps: str = "clock", members: Any = None, **chosen: Any
    ) -> None:
        self.names = [f"p{number:03}" for number in range(count)]
        peers = Peers(self.names)
        options = Options(window=1000, links="trusted", **{"mtu": MTU, **chosen})
        order = Order("causal", {"stamps": stamps}, ("t",))
        self.peers = [Peered(name, peers, options, order) for name in self.names]
        self.members = range(count) if members is None else members
        cube.preset(self.peers, ["t"], [self.names[number] for number in self.members])
        # What was delivered, by peer; packets with publications: from, to, and what in which order.
        self.delivered: list[list[tuple[int, int]]] = [[] for _ in range(count)]
        self.packets: list[tuple[int, int, list[tuple[int, int]]]] = []
        self.flight: list[tuple[int, int, Any]] = []
        for number in self.members:
            self.carry_out(number, self.peers[number].subscribe("call", ["t"], 0.0))

    def carry_out(self, number: int, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Deliver):
                event = effect.event
                self.delivered[number].append((self.names.index(event.publisher), event.seq))
            elif isinstance(effect, Send):
                self.sent(number, self.names.index(effect.target), effect.message)

    def sent(self, source: int, target: int, message: Any) -> None:
        inside = message.messages if isinstance(message, Packet) else (message,)
        if pubs := [(each.source, each.number) for each in inside if isinstance(each, Pub)]:
            self.packets.append((source, target, pubs))
        self.flight.append((source, target, message))

    def publish(self, number: int) -> None:
        self.carry_out(number, self.peers[number].publish("t", {}, 0.0))

    def arrive(self, place: int) -> tuple[int, int, Any]:
        source, target, message = self.flight.pop(place)
        effects = self.peers[target].receive(self.names[source], message, 0.0)
        self.carry_out(target, effects)
        return source, target, message

    def draw(self, events: int, rng: Random) -> None:
        """A random schedule of so many publications, to its end."""
        while events or self.flight:
            place = rng.randrange(events + len(self.flight))
            if place < events:
                events -= 1
                self.publish(rng.choice(self.members))
            else:
                self.arrive(place - events)

    def check(self, events: int) -> None:
        """Everybody has everything once, in every publisher's order; nothing is left."""
        for number in self.members:
            got = self.delivered[number]
            assert len(got) == len({*got}) == events
            counts: Counter[int] = Counter()
            for source, nth in got:
                counts[source] += 1
                assert counts[source] == nth
        assert all(peer.idle for peer in self.peers)

    def times(self) -> Counter[tuple[int, tuple[int, int]]]:
        """How often each event has been sent to each peer."""
        return Counter((target, pub) for _, target, pubs in self.packets for pub in pubs)


class Beside(Static):
    """Peers with clocks, and the twins of chapter 4 in step with them."""

    def __init__(self, count: int, **chosen: Any) -> None:
        self.twins = [Corrected(number, count) for number in range(count)]
        self.stamped: dict[tuple[int, int], Any] = {}
        super().__init__(count, aggregate="causal", **chosen)

    def publish(self, number: int) -> None:
        before = len(self.packets)
        super().publish(number)
        message, kids = self.twins[number].broadcast()
        self.stamped[(message.s, message.n)] = message
        expected = [(number, kid, [(message.s, message.n)]) for kid in kids]
        assert sorted(self.packets[before:]) == sorted(expected)

    def arrive(self, place: int) -> tuple[int, int, Any]:
        before = len(self.packets)
        source, target, message = super().arrive(place)
        inside = message.messages if isinstance(message, Packet) else (message,)
        pubs = [self.stamped[(m.source, m.number)] for m in inside if isinstance(m, Pub)]
        sent = self.twins[target].receive(pubs, source) if pubs else []
        expected = [(target, kid, sorted((m.s, m.n) for m in ready)) for kid, ready in sent]
        seen = [(by, to, sorted(what)) for by, to, what in self.packets[before:]]
        assert sorted(seen) == sorted(expected)
        assert sorted(self.delivered[target]) == sorted(self.twins[target].delivered)
        return source, target, message
