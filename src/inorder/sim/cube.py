"""Every role of a scenario as a peer of a hypercube.

Links go directly from peer to peer, as the network's model says. Which peer a role is follows from
the order of all names: services are peers like the others.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from functools import partial
from typing import cast

from inorder.core.machine import Machine
from inorder.guarantee.peer import Peered, order_of
from inorder.protocols.cube.peers import Peers
from inorder.sim.scenario import Scenario
from inorder.sim.world import World


def preset(peers: Iterable[Machine], topics: Iterable[str], members: Iterable[str]) -> None:
    """Make these peers members of all these topics, as if they had joined one after the other."""
    all_peers = [cast(Peered, peer) for peer in peers]
    known = all_peers[0].peers
    mask = sum(1 << known.ids[name] for name in members)
    ones = array("I", (mask >> number & 1 for number in range(len(known.names))))
    for peer in all_peers:
        if mask >> known.ids[peer.name] & 1:
            for topic in topics:
                peer.preset(topic, mask, 0, ones)


def add_peers(world: World, scenario: Scenario, names: Sequence[str]) -> None:
    peers = Peers(names)
    order = order_of(scenario.guarantee, scenario.options, scenario.topic_names, scenario.filtered)
    options = scenario.network.cube.options
    for name in names:
        world.add(name, partial(Peered, name, peers, options, order))
