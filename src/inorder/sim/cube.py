"""Every role of a scenario as a peer of a hypercube.

Links go directly from peer to peer, as the network's model says. Which peer a role is follows from
the order of all names: services are peers like the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from inorder.guarantee.peer import Peered, order_of
from inorder.protocols.cube.peers import Peers
from inorder.sim.scenario import Scenario
from inorder.sim.world import World


def add_peers(world: World, scenario: Scenario, names: Sequence[str]) -> None:
    peers = Peers(names)
    order = order_of(scenario.guarantee, scenario.options, scenario.topic_names, scenario.filtered)
    options = scenario.network.cube.options
    for name in names:
        world.add(name, partial(Peered, name, peers, options, order))
