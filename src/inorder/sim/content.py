"""A tree of content brokers in the simulated world: their machines match, this moves.

Rule 1: brokers are nodes with machines of their own. What they say to each other and to their
        clients crosses one link, which is a session: nothing is lost there, and all but events
        keep their order.
Rule 2: an event takes a broker's processing time before the machine sees it, each on its own
        worker (sim/brokers.py), so events overtake each other, and also changes of filters. That is
        allowed: an event may meet any version in force between its publication and its delivery.
Rule 3: other roles talk to each other through the same tree, as in sim/brokers.py.
Rule 4: the network is up when the run begins: links are greeted and topics advertised before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from inorder.content.broker import Broker
from inorder.content.messages import Pub
from inorder.content.smoothing import Smoothing
from inorder.core.effect import Effect, Send
from inorder.core.machine import Client, Machine
from inorder.guarantee.attach import Attached, BrokerLink
from inorder.guarantee.compose import Filtering
from inorder.guarantee.registry import Guarantee
from inorder.sim.brokers import Brokers
from inorder.sim.network import Parcel
from inorder.sim.scenario import BrokersTable, Scenario
from inorder.sim.world import World


class ContentBrokers(Brokers):
    """The ways of messages when brokers are nodes."""

    def send(self, parcel: Parcel) -> None:
        source, target = parcel[0], parcel[1]
        if source not in self._number and target not in self._number:
            super().send(parcel)
        elif source in self._number and target in self._number:
            self.crossings += 1
            self._network.hop(source, target, parcel[3], self._come, parcel)
        else:
            self._come(parcel)

    def _come(self, parcel: Parcel) -> None:
        target = self._number.get(parcel[1])
        if target is None or not isinstance(parcel[2], Pub):
            self._network.arrive(parcel)
            return
        done = self.brokers[target].done(parcel[2].publisher, self._agenda.now)
        self._agenda.at(done, self._network.arrive, parcel)


def broker(name: str, table: BrokersTable) -> Broker:
    smoothing = Smoothing(table.hold, table.margin) if table.hold else None
    return Broker(
        name,
        engine=table.engine,
        summary=table.summary,
        smoothing=smoothing,
        min_interval=table.min_interval,
    )


def attached_client(
    scenario: Scenario, name: str, home: str, make: Callable[[], Client], ordered: Guarantee
) -> Filtering:
    return Filtering(ordered, make(), _edge(scenario, name, home))


def attached_service(scenario: Scenario, name: str, home: str, machine: Machine) -> Attached:
    return Attached(machine, _edge(scenario, name, home))


def _edge(scenario: Scenario, name: str, home: str) -> BrokerLink:
    return BrokerLink(name, home, scenario.topic_names, scenario.network.brokers.update)


def set_up(world: World, ways: ContentBrokers) -> None:
    """Greet, attach and advertise before time begins: messages arrive at once, in order."""
    queue: deque[tuple[str, str, Any]] = deque()

    def act(name: str, effects: list[Effect]) -> None:
        for effect in effects:
            assert isinstance(effect, Send), f"{effect} before the run begins"
            queue.append((name, effect.target, effect.message))

    names = [each.name for each in ways.brokers]
    for here, neighbours in enumerate(ways.graph):
        for there in neighbours:
            if here < there:
                machine: Any = world.nodes[names[here]].machine
                act(names[here], machine.connect(names[there], 0.0))
                _run(world, queue, act)
    for name, node in world.nodes.items():
        if isinstance(node.machine, Filtering | Attached):
            act(name, node.machine.begin(0.0))
            _run(world, queue, act)


def _run(
    world: World,
    queue: deque[tuple[str, str, Any]],
    act: Callable[[str, list[Effect]], None],
) -> None:
    while queue:
        source, target, message = queue.popleft()
        act(target, world.nodes[target].machine.receive(source, message, 0.0))
