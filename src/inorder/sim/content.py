"""A tree of content brokers in the simulated world: their machines match, this moves.

Rule 1: brokers are nodes with machines of their own (guarantee/broker.py). What they say to each
        other crosses one link, which may lose, double and reorder it; what they say to their
        clients crosses none and is there at once.
Rule 2: an event takes a broker's processing time before the machine sees it, each on its own
        worker (sim/brokers.py). Sessions put right what overtakes on the way.
Rule 3: other roles talk to each other through the same tree, as in sim/brokers.py. A broker that
        has crashed loses what passes through it, one that stands still keeps it.
Rule 4: the network is up when the run begins: links are greeted and topics advertised before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from inorder.content.broker import Broker
from inorder.content.messages import Pub
from inorder.content.smoothing import Smoothing
from inorder.core.effect import CancelTimer, Effect, Persist, Send, SetTimer
from inorder.core.machine import Client, Machine
from inorder.guarantee.attach import Attached, BrokerLink
from inorder.guarantee.broker import LinkedBroker
from inorder.guarantee.compose import Filtering
from inorder.guarantee.registry import Guarantee
from inorder.protocols.session.messages import Frame
from inorder.sim.brokers import Brokers, Step
from inorder.sim.network import Parcel
from inorder.sim.node import Node
from inorder.sim.scenario import BrokersTable, Scenario
from inorder.sim.world import World


class ContentBrokers(Brokers):
    """The ways of messages when brokers are nodes."""

    nodes: Mapping[str, Node] = {}

    def neighbours(self, name: str) -> list[str]:
        return [self.brokers[number].name for number in self.graph[self._number[name]]]

    def send(self, parcel: Parcel) -> None:
        source, target = parcel[0], parcel[1]
        if source not in self._number and target not in self._number:
            super().send(parcel)
        elif source in self._number and target in self._number:
            self.crossings += 1
            if not self._network.hop(source, target, parcel[3], self._come, parcel):
                self._network.lose(parcel)
        else:
            self._come(parcel)

    def _come(self, parcel: Parcel) -> None:
        target = self._number.get(parcel[1])
        message = parcel[2]
        if target is None or not (isinstance(message, Frame) and isinstance(message.body, Pub)):
            self._network.arrive(parcel)
            return
        done = self.brokers[target].done(message.body.publisher, self._agenda.now)
        self._agenda.at(done, self._network.arrive, parcel)

    def _enter(self, here: int, origin: int, parcel: Parcel, then: Step, guide: Any) -> None:
        """What other roles say passes through the broker's process."""
        node = self.nodes[self.brokers[here].name]
        if node.paused:
            node.inbox.append((self._enter, (here, origin, parcel, then, guide)))
        elif node.alive:
            super()._enter(here, origin, parcel, then, guide)
        else:
            self._network.lose(parcel)


def broker(name: str, table: BrokersTable, neighbours: Sequence[str]) -> LinkedBroker:
    smoothing = Smoothing(table.hold, table.margin) if table.hold else None
    machine = Broker(
        name,
        engine=table.engine,
        summary=table.summary,
        smoothing=smoothing,
        min_interval=table.min_interval,
    )
    return LinkedBroker(machine, neighbours)


def attached_client(
    scenario: Scenario, name: str, home: str, make: Callable[[], Client], ordered: Guarantee
) -> Filtering:
    return Filtering(ordered, make(), _edge(scenario, name, home, scenario.topic_names))


def attached_service(
    scenario: Scenario, name: str, home: str, machine: Machine, topics: tuple[str, ...]
) -> Attached:
    return Attached(machine, _edge(scenario, name, home, topics))


def _edge(scenario: Scenario, name: str, home: str, topics: tuple[str, ...]) -> BrokerLink:
    """The link that advertises these topics."""
    return BrokerLink(name, home, topics, scenario.network.brokers.update)


def set_up(world: World, ways: ContentBrokers) -> None:
    """Greet, attach and advertise before time begins: messages arrive at once, in order."""
    ways.nodes = world.nodes
    queue: deque[tuple[str, str, Any]] = deque()

    def act(name: str, effects: list[Effect]) -> None:
        node = world.nodes[name]
        for effect in effects:
            if isinstance(effect, Send):
                queue.append((name, effect.target, effect.message))
            elif isinstance(effect, Persist):
                node.disk.append(effect.record)
            else:
                assert isinstance(effect, SetTimer | CancelTimer), f"{effect} before the run begins"
                world.time(node, effect)

    for kinds in (LinkedBroker, Filtering | Attached):
        for name, node in world.nodes.items():
            if isinstance(node.machine, kinds):
                act(name, node.machine.begin(0.0))
                while queue:
                    source, target, message = queue.popleft()
                    act(target, world.nodes[target].machine.receive(source, message, 0.0))
