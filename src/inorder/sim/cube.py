"""Every role of a scenario as a peer of a hypercube.

Links go directly from peer to peer, as the network's model says. Which peer a role is follows from
the order of all names, or from how far the hosts are apart: services are peers like the others.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from random import Random
from typing import cast

from inorder.core.effect import Persist, SetTimer
from inorder.core.machine import Machine
from inorder.guarantee.cells.peer import CelledPeer
from inorder.guarantee.peer import Peered, order_of
from inorder.protocols.cube.mapping import mapped
from inorder.protocols.cube.peers import Peers
from inorder.sim import queues
from inorder.sim.models import Far
from inorder.sim.network import Model
from inorder.sim.scenario import Scenario
from inorder.sim.talk import talk
from inorder.sim.world import World


def preset(
    peers: Iterable[Machine],
    topics: Iterable[str],
    members: Iterable[str],
    sources: Iterable[str] = (),
) -> dict[str, list[Persist]]:
    """Make these peers members and sources of all these topics, as if they had joined one after
    the other; by peer, what it would have on its disk then."""
    all_peers = [cast(Peered, peer) for peer in peers]
    known = all_peers[0].peers
    mask = sum(1 << known.ids[name] for name in members)
    others = sum(1 << known.ids[name] for name in sources) & ~mask
    ones = array("I", ((mask | others) >> number & 1 for number in range(len(known.names))))
    written: dict[str, list[Persist]] = {}
    for peer in all_peers:
        if (mask | others) >> known.ids[peer.name] & 1:
            written[peer.name] = [peer.preset(topic, mask, others, ones) for topic in topics]
    return written


def peers_of(
    scenario: Scenario, seed: int, names: Sequence[str], homes: Mapping[str, str], model: Model
) -> Peers:
    """The numbers of the roles; `homes` are the hosts of those that do not have their own."""
    mapping = scenario.network.cube.mapping
    if mapping == "names":
        return Peers(names)
    ordered = sorted(names)
    hosts = [homes.get(name, name) for name in ordered]
    latency = [[_mean_s(model, one, other) for other in hosts] for one in hosts]
    places = {name: place for place, name in enumerate(ordered)}
    groups = talk(scenario, seed, places) if mapping == "talk" else []
    order = mapped(latency, Random(f"{seed}/mapping").randrange, groups)
    return Peers([ordered[place] for place in order], mapped=True)


def _mean_s(model: Model, one: str, other: str) -> float:
    if one == other:
        return 0.0
    # Where all pairs are alike, it is hops that count.
    return model.mean_s(one, other) if isinstance(model, Far) else 1.0


def add_peers(
    world: World,
    scenario: Scenario,
    names: Sequence[str],
    peers: Peers,
    homes: Mapping[str, str],
    model: Model,
) -> None:
    table = scenario.network.cube
    order = order_of(
        scenario.guarantee, scenario.options, scenario.topic_names, scenario.filtered, table.cells
    )
    options = table.options
    plain = Peered if table.cells is None else CelledPeer
    for name in names:
        make = queues.peer_of(world, model, homes.get(name, name)) if options.adapt else plain
        node = world.add(name, partial(make, name, peers, options, order))
        for effect in cast(Peered, node.machine).begin(0.0):
            world.time(node, cast(SetTimer, effect))
