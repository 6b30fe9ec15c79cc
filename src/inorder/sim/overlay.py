"""Messages that hop from host to host: routed by Pastry, diffused down SCRIBE trees.

Rule 1: a hop is one message on one link, with its own delay, loss, doubling and place in the line.
Rule 2: a lost hop loses everything behind it: the message, or its copies for a whole subtree. The
        trace tells of each member that went without.
Rule 3: a diffusion first travels to the topic's root, then down; a sender at the root is there
        already. A member's own publication comes back to it over the tree, like everybody else's.

The hosts are the machines of the overlay; the roles of a run live on them. A role that crashes does
not take the forwarder of its host with it. In the trace a message goes from role to role and says
nothing of the hosts between; `hops` counts them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from inorder.sim.network import Network, Parcel
from inorder.sim.pastry import Pastry, id_of
from inorder.sim.scribe import Scribe


class Overlay:
    """The ways of messages through the hosts of `pastry`; `homes` says where each role lives."""

    def __init__(self, network: Network, pastry: Pastry, homes: Mapping[str, str]) -> None:
        self.scribe = Scribe(pastry)
        self.hops = 0
        self._network = network
        self._homes = homes
        self._paths: dict[tuple[str, str], list[str]] = {}
        # Members of a topic on a host: the tree sees the host once.
        self._residents: dict[tuple[str, str], dict[str, None]] = {}

    def home(self, node: str) -> str:
        return self._homes.get(node, node)

    def sides(self, nodes: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
        """Hosts of these nodes, and all the others: a partition runs between hosts."""
        one = frozenset(self.home(node) for node in nodes)
        return one, frozenset(self.scribe.pastry.hosts) - one

    def join(self, node: str, topic: str) -> None:
        host = self.home(node)
        self._residents.setdefault((topic, host), {})[node] = None
        self.scribe.join(host, topic)

    def leave(self, node: str, topic: str) -> None:
        host = self.home(node)
        residents = self._residents.get((topic, host), {})
        residents.pop(node, None)
        if not residents:
            self._residents.pop((topic, host), None)
            self.scribe.leave(host, topic)

    def send(self, parcel: Parcel) -> None:
        path = self._path(self.home(parcel[0]), self.home(parcel[1]))
        self._along(path, 0, parcel)

    def diffuse(self, topic: str, parcel: Parcel) -> None:
        """The parcel's target does not matter: every member gets a copy addressed to it."""
        path = self._path(self.home(parcel[0]), self.scribe.root(topic))
        self._up(path, 0, topic, parcel)

    def _path(self, source: str, target: str) -> list[str]:
        path = self._paths.get((source, target))
        if path is None:
            path = self.scribe.pastry.route(source, id_of(target))
            self._paths[source, target] = path
        return path

    def _along(self, path: list[str], place: int, parcel: Parcel) -> None:
        if place == len(path) - 1:
            self._network.arrive(parcel)
        elif not self._hop(
            path[place], path[place + 1], parcel[3], self._along, path, place + 1, parcel
        ):
            self._network.lose(parcel)

    def _up(self, path: list[str], place: int, topic: str, parcel: Parcel) -> None:
        if place == len(path) - 1:
            self._down(path[place], topic, parcel)
        elif not self._hop(
            path[place], path[place + 1], parcel[3], self._up, path, place + 1, topic, parcel
        ):
            self._lose_below(path[-1], topic, parcel)

    def _down(self, host: str, topic: str, parcel: Parcel) -> None:
        for child in self.scribe.children(topic, host):
            if not self._hop(host, child, parcel[3], self._down, child, topic, parcel):
                self._lose_below(child, topic, parcel)
        for copy in self._copies(host, topic, parcel):
            self._network.arrive(copy)

    def _hop(self, here: str, there: str, size: int, then: Callable[..., None], *args: Any) -> bool:
        self.hops += 1
        return self._network.hop(here, there, size, then, *args)

    def _lose_below(self, host: str, topic: str, parcel: Parcel) -> None:
        for below in self.scribe.tree(topic).below(host):
            for copy in self._copies(below, topic, parcel):
                self._network.lose(copy)

    def _copies(self, host: str, topic: str, parcel: Parcel) -> list[Parcel]:
        source, _, message, size, sent_at = parcel
        residents = self._residents.get((topic, host), ())
        return [(source, node, message, size, sent_at) for node in residents]
