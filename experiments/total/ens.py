"""A lean model of the report's network: the real overlay's routes and trees, delays drawn in bulk.

Rule 1: routes and trees come from `inorder.sim`, so hops are the simulator's hops.
Rule 2: a link keeps its class (fast or slow) for the whole run; each message draws its own delay.
Rule 3: nothing waits: no queues, no line on a link, no loss. At the report's one event a second
        that is nearly true; where it is not, the real machines run instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import blake2b
from itertools import pairwise

import numpy as np

from experiments.total.laws import Bools, Floats, Ints
from inorder.sim.laws import Normal
from inorder.sim.models import FAST, FAST_SHARE, SLOW
from inorder.sim.pastry import Pastry, id_of
from inorder.sim.scribe import Scribe, Tree

# The sources everything lean depends on.
LEAN = (
    *(f"src/inorder/sim/{name}.py" for name in ("pastry", "scribe", "models", "laws")),
    *(f"experiments/total/{name}.py" for name in ("ens", "laws", "groups")),
)

# Events whose diffusion is drawn at once: 10,000 hosts then take 16 MB.
CHUNK = 200


def draw(law: Normal, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    """Delays of one class, drawn again while not positive (as sim/laws.py does)."""
    delays = rng.normal(law.mean, law.std, shape)
    while (wrong := delays <= 0.0).any():
        delays[wrong] = rng.normal(law.mean, law.std, int(wrong.sum()))
    return delays


class Spread:
    """One tree as arrays: hosts level by level from the root, so that parents come first."""

    def __init__(self, tree: Tree, fast: Callable[[str, str], bool]) -> None:
        hosts = [tree.root]
        place = {tree.root: 0}
        self.levels: list[int] = [1]
        while True:
            first = self.levels[-2] if len(self.levels) > 1 else 0
            children = [child for host in hosts[first:] for child in tree.children.get(host, ())]
            if not children:
                break
            for child in children:
                place[child] = len(hosts)
                hosts.append(child)
            self.levels.append(len(hosts))
        parents = [place[tree.parent[host]] for host in hosts[1:]]
        self.parent: Ints = np.array([0, *parents])
        self.slow: Bools = np.array(
            [
                False,
                *(
                    not fast(hosts[parent], host)
                    for parent, host in zip(parents, hosts[1:], strict=True)
                ),
            ]
        )
        self.member: Bools = np.array([host in tree.members for host in hosts])

    def arrivals(self, events: int, rng: np.random.Generator) -> Floats:
        """When each member hears of each of so many events, from the root's sending on."""
        delays = np.empty((events, len(self.parent)))
        delays[:, self.slow] = draw(SLOW, (events, int(self.slow.sum())), rng)
        delays[:, ~self.slow] = draw(FAST, (events, int((~self.slow).sum())), rng)
        delays[:, 0] = 0.0
        for first, last in pairwise(self.levels):
            delays[:, first:last] += delays[:, self.parent[first:last]]
        return np.asarray(delays[:, self.member])


class Ens:
    """The overlay of one run. `fast` may be given, to compare with the simulator's own links."""

    def __init__(
        self,
        hosts: Iterable[str],
        seed: str,
        near: bool = True,
        fast: Callable[[str, str], bool] | None = None,
    ) -> None:
        self._seed = seed
        self.fast = fast or self._drawn
        self.scribe = Scribe(Pastry(hosts, self.fast if near else None))
        self.hosts = self.scribe.pastry.hosts
        self._legs: dict[tuple[str, str], tuple[int, int]] = {}
        self._spreads: dict[str, Spread] = {}

    def _drawn(self, one: str, other: str) -> bool:
        pair = f"{self._seed}/{min(one, other)}/{max(one, other)}"
        digest = blake2b(pair.encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") < FAST_SHARE * 2**64

    def root(self, topic: str) -> str:
        return self.scribe.root(topic)

    def leg(self, source: str, target: str) -> tuple[int, int]:
        """Fast and slow hops of the route between two hosts."""
        leg = self._legs.get((source, target))
        if leg is None:
            path = self.scribe.pastry.route(source, id_of(target))
            fast = sum(self.fast(one, other) for one, other in pairwise(path))
            leg = self._legs[source, target] = (fast, len(path) - 1 - fast)
        return leg

    def way(self, stops: Iterable[str]) -> tuple[int, int]:
        """Fast and slow hops of a way over several hosts."""
        fast = slow = 0
        for source, target in pairwise(stops):
            hops = self.leg(source, target)
            fast += hops[0]
            slow += hops[1]
        return fast, slow

    def durations(self, ways: list[tuple[int, int]], rng: np.random.Generator) -> Floats:
        """How long so many ways take, each hop with a delay of its own."""
        hops: Ints = np.array(ways, dtype=np.int64).reshape(-1, 2)
        total = np.zeros(len(hops))
        for column, law in enumerate((FAST, SLOW)):
            delays = draw(law, (int(hops[:, column].sum()),), rng)
            np.add.at(total, np.repeat(np.arange(len(hops)), hops[:, column]), delays)
        return total

    def join(self, topic: str, members: Iterable[str]) -> None:
        for host in members:
            self.scribe.join(host, topic)
        self._spreads.pop(topic, None)

    def last_arrivals(self, topic: str, events: int, rng: np.random.Generator) -> Floats:
        """For each of so many events, when the last member hears of it."""
        return np.concatenate([np.zeros(0), *(
            self.spread(topic).arrivals(min(CHUNK, events - first), rng).max(axis=1)
            for first in range(0, events, CHUNK)
        )])  # fmt: skip

    def spread(self, topic: str) -> Spread:
        spread = self._spreads.get(topic)
        if spread is None:
            spread = self._spreads[topic] = Spread(self.scribe.tree(topic), self.fast)
        return spread
