"""Messages that travel through a tree of brokers, each of which has to match them first.

Rule 1: roles hang on brokers. A message enters at its sender's broker, leaves at its receiver's,
        and every broker on the way, these two included, takes its time over it, drawn anew for
        each message. Between brokers it crosses a link; between a role and its broker nothing.
Rule 2: a publication crosses a link once at most, and only towards brokers with members of the
        topic. Where their ways part, a broker sends one copy each way.
Rule 3: links keep their order, brokers need not: without a number of workers each message is
        matched on its own, and a quick one overtakes a slow one. With c workers a broker takes c
        messages at a time, first come first served; with one it keeps the order.
Rule 4: a lost copy loses all members behind it, and the trace tells of each.

Theory: "Probabilistic FIFO Ordering in Publish/Subscribe Networks" (section III-A) finds parallel
matching to be the main cause of messages out of order, exponential processing times at a broker,
and hence a sum of exponentials for a whole way: as many as there are brokers on it, which is what
`hops` counts.

Processing times come from a random stream for each broker and sender, so that neither another
sender nor another branch of the tree changes what a message meets (a queue does, of course).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import heapreplace
from random import Random
from typing import Any

from inorder.sim import graphs
from inorder.sim.agenda import Agenda
from inorder.sim.laws import Constant
from inorder.sim.network import Network, Parcel
from inorder.sim.scenario import BrokersTable

# Where a message came from that comes from a role.
OUTSIDE = -1

# What a broker does with a message it has matched: here, where it came from, the message, and what
# guides it (a topic, or the next broker at each broker).
Step = Callable[[int, int, Parcel, Any], None]


class Broker:
    """One broker's speed, chance and queue."""

    __slots__ = ("_law", "_rngs", "_seed", "_wave", "_workers", "factor", "name")

    def __init__(self, name: str, table: BrokersTable, factor: float, seed: str) -> None:
        self.name = name
        self.factor = factor
        self._law = table.processing
        self._wave = table.congestion
        self._seed = seed
        self._rngs: dict[str, Random] = {}
        # When each worker is free again.
        self._workers = [0.0] * table.workers if table.workers else None

    def done(self, source: str, now: float) -> float:
        """When a message of `source` that comes now will have been matched."""
        rng = self._rngs.get(source)
        if rng is None:
            rng = self._rngs[source] = Random(f"{self._seed}/{self.name}/{source}")
        start = now
        work_s = self._law.draw(rng) * self.factor
        if self._workers is not None:
            if self._workers[0] > now:
                start = self._workers[0]
            heapreplace(self._workers, start + work_s)
        done = start + work_s
        # Behind the queue: congestion delays messages, it does not keep workers busy.
        return done + self._wave.at(done) if self._wave else done


class Brokers:
    """The ways of messages through the brokers of `table`; `homes` says where each role hangs."""

    def __init__(
        self,
        network: Network,
        agenda: Agenda,
        table: BrokersTable,
        homes: Mapping[str, str],
        seed: str,
        luck: int = 0,
    ) -> None:
        # Another luck is another run in the same network.
        self.graph = graphs.tree(table.shape, table.count, table.diameter, seed)
        slow = Random(f"{seed}/slow").sample(range(table.count), table.slow)
        self.brokers = [
            Broker(name, table, table.slow_factor if number in slow else 1.0, f"{seed}/{luck}")
            for number, name in enumerate(table.names)
        ]
        # Copies sent over links.
        self.crossings = 0
        self._network = network
        self._weather = network.weather
        self._agenda = agenda
        self._homes = homes
        self._number = {name: number for number, name in enumerate(table.names)}
        self._parents: dict[int, list[int]] = {}
        # By topic, for each broker: the members there, and the neighbours with brokers behind them
        # that have members, with their number.
        self._residents: dict[str, list[dict[str, None]]] = {}
        self._branches: dict[str, list[dict[int, int]]] = {}
        # On a link of constant delay in fair weather nothing happens, so nothing needs to be done
        # when a message arrives there; only a queue must know who came first.
        self._quick_link_s: float | None = None
        if isinstance(table.link, Constant) and table.workers is None:
            self._quick_link_s = table.link.mean

    def home(self, node: str) -> str:
        return self._homes.get(node, node)

    def way(self, one: str, other: str) -> list[str]:
        """The brokers between two roles, in the order in which a message meets them."""
        here, there = self._at(one), self._at(other)
        towards = self._towards(there)
        way = [here]
        while way[-1] != there:
            way.append(towards[way[-1]])
        return [self.brokers[number].name for number in way]

    def hops(self, one: str, other: str) -> int:
        """How many brokers take their time over a message between two roles."""
        return len(self.way(one, other))

    def sides(self, nodes: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
        """Brokers of these nodes, and all the others: a partition runs between brokers."""
        one = frozenset(self.home(node) for node in nodes)
        return one, frozenset(self._number) - one

    def join(self, node: str, topic: str) -> None:
        residents = self._residents.get(topic)
        if residents is None:
            residents = self._residents[topic] = [{} for _ in self.brokers]
            self._branches[topic] = [{} for _ in self.brokers]
        home = self._at(node)
        if not residents[home]:
            for branches, there in self._announced(home, topic):
                branches[there] = branches.get(there, 0) + 1
        residents[home][node] = None

    def leave(self, node: str, topic: str) -> None:
        home = self._at(node)
        residents = self._residents.get(topic)
        if residents is None or node not in residents[home]:
            return
        del residents[home][node]
        if not residents[home]:
            for branches, there in self._announced(home, topic):
                branches[there] -= 1
                if not branches[there]:
                    del branches[there]
            if not any(residents):
                del self._residents[topic], self._branches[topic]

    def send(self, parcel: Parcel) -> None:
        if parcel[0] == parcel[1]:
            self._network.arrive(parcel)
        else:
            towards = self._towards(self._at(parcel[1]))
            self._enter(self._at(parcel[0]), OUTSIDE, parcel, self._pass_on, towards)

    def diffuse(self, topic: str, parcel: Parcel) -> None:
        """The parcel's target does not matter: every member gets a copy addressed to it."""
        self._enter(self._at(parcel[0]), OUTSIDE, parcel, self._spread, topic)

    # A message enters a broker, is matched, and crosses links to the next ones.

    def _enter(self, here: int, origin: int, parcel: Parcel, then: Step, guide: Any) -> None:
        done = self.brokers[here].done(parcel[0], self._agenda.now)
        self._agenda.at(done, then, here, origin, parcel, guide)

    def _pass_on(self, here: int, origin: int, parcel: Parcel, towards: list[int]) -> None:
        there = towards[here]
        if there == here:
            self._network.arrive(parcel)
        elif not self._cross(here, there, parcel, self._pass_on, towards):
            self._network.lose(parcel)

    def _spread(self, here: int, origin: int, parcel: Parcel, topic: str) -> None:
        branches = self._branches.get(topic)
        if branches is None:
            return  # the last member left meanwhile
        for there in branches[here]:
            if there != origin and not self._cross(here, there, parcel, self._spread, topic):
                self._lose_behind(there, here, parcel, topic)
        for copy in self._copies(here, parcel, topic):
            self._network.arrive(copy)

    def _cross(self, here: int, there: int, parcel: Parcel, then: Step, guide: Any) -> bool:
        """Send a copy over one link; returns whether it will arrive."""
        self.crossings += 1
        target = self.brokers[there]
        if self._quick_link_s is not None and self._weather.fair:
            done = target.done(parcel[0], self._agenda.now + self._quick_link_s)
            self._agenda.at(done, then, there, here, parcel, guide)
            return True
        return self._network.hop(
            self.brokers[here].name, target.name, parcel[3],
            self._enter, there, here, parcel, then, guide,
        )  # fmt: skip

    def _lose_behind(self, broker: int, origin: int, parcel: Parcel, topic: str) -> None:
        todo = [(broker, origin)]
        while todo:
            here, origin = todo.pop()
            for copy in self._copies(here, parcel, topic):
                self._network.lose(copy)
            branches = self._branches[topic][here]
            todo.extend((there, here) for there in branches if there != origin)

    def _copies(self, here: int, parcel: Parcel, topic: str) -> list[Parcel]:
        source, _, message, size, sent_at = parcel
        return [(source, node, message, size, sent_at) for node in self._residents[topic][here]]

    # Where things are.

    def _at(self, node: str) -> int:
        return self._number[self._homes.get(node, node)]

    def _towards(self, target: int) -> list[int]:
        towards = self._parents.get(target)
        if towards is None:
            towards = self._parents[target] = graphs.parents(self.graph, target)
        return towards

    def _announced(self, home: int, topic: str) -> Iterator[tuple[dict[int, int], int]]:
        """Every other broker's branches of a topic, and which of them leads to `home`."""
        for here, there in enumerate(self._towards(home)):
            if here != home:
                yield self._branches[topic][here], there
