"""What pairs of publisher and subscriber send and get in a world of brokers without ordering.

Each publisher has a topic that its followers hold; what it publishes beside that is on a topic that
nobody holds, unless `crowd` does. So a pair's selectivity is the share of the first, and a recorded
pair is a `Stream` like those of sim/path.py, ready for sim/lane.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from experiments.machines import story
from experiments.points import MACHINES
from inorder.check.ending import Ending
from inorder.check.trace import DeliveryRow, EventRow
from inorder.sim.brokers import Brokers
from inorder.sim.path import Stream
from inorder.sim.scenario import Scenario, from_table
from inorder.sim.simulate import build, simulate
from inorder.sim.workload import Publication

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# When everybody has subscribed.
START_S = 2.0
# Queues must run empty before the end.
SETTLE_S = 60.0
OTHER = "other"
# What recorded pairs and receivers depend on.
SOURCES = (*MACHINES, "src/inorder/protocols/fifo/*.py", "experiments/fifo/network.py")


class Sent(Struct, frozen=True):
    """A publisher's deeds: when, and whether it is what its followers want."""

    at_s: Floats
    wanted: Bools


class Pair(Struct, frozen=True):
    publisher: str
    subscriber: str
    hops: int
    stream: Stream

    @property
    def delays_s(self) -> Floats:
        """Of what arrived, in the order it was sent."""
        got = np.sort(self.stream.order)
        return self.stream.arrived_s[got] - self.stream.sent_s[got]


class Network(Struct, frozen=True):
    """A tree of brokers with clients on it."""

    brokers: Mapping[str, Any]
    publishers: int
    subscribers: int

    def scenario(self, until_s: float) -> Scenario:
        topics = [OTHER, *(_topic(f"p{number}") for number in range(1, self.publishers + 1))]
        return from_table(
            {
                "messages": False,
                "duration": until_s,
                "settle": SETTLE_S,
                "topics": topics,
                "order": {"guarantee": "none"},
                "network": {"overlay": "brokers", "fifo": False, "brokers": dict(self.brokers)},
                "publishers": {"count": self.publishers, "rate": 1.0},
                "subscribers": [{"count": self.subscribers}],
            }
        )

    def ways(self, seed: int) -> Brokers:
        ways = build(self.scenario(1.0), seed, _Kept({})).network.ways
        assert isinstance(ways, Brokers)
        return ways

    def apart(self, hops: int, seed: int) -> tuple[str, str]:
        """The first pair with so many brokers between them."""
        ways = self.ways(seed)
        for publisher in range(1, self.publishers + 1):
            for subscriber in range(1, self.subscribers + 1):
                pair = f"p{publisher}", f"s{subscriber}"
                if ways.hops(*pair) == hops:
                    return pair
        raise LookupError(f"nobody is {hops} brokers apart")

    def record(
        self,
        sent: Mapping[str, Sent],
        followers: Mapping[str, Sequence[str]],
        seed: int,
        crowd: Sequence[str] = (),
    ) -> list[Pair]:
        """Run the world and keep what each publisher's followers got."""
        until_s = max(float(each.at_s[-1]) for each in sent.values())
        trace = _Kept({name: len(each.at_s) for name, each in sent.items()})
        held = {who: [_topic(name)] for name, some in followers.items() for who in some}
        publications = {name: _publications(name, each) for name, each in sent.items()}
        told = story(publications, {**held, **{who: [OTHER] for who in crowd}})
        simulate(self.scenario(until_s), seed, trace, story=told)
        ways = self.ways(seed)
        return [
            Pair(name, who, ways.hops(name, who), _stream(sent[name], trace.arrived[name, who]))
            for name, some in followers.items()
            for who in some
        ]


class _Kept:
    """A trace that keeps when what arrived, and nothing else."""

    def __init__(self, published: Mapping[str, int]) -> None:
        self._published = published
        self.arrived: dict[tuple[str, str], Floats] = {}

    def write(self, table: str, row: Struct) -> None:
        if isinstance(row, DeliveryRow) and row.topic != OTHER:
            key = row.publisher, row.subscriber
            if key not in self.arrived:
                self.arrived[key] = np.full(self._published[row.publisher], np.inf)
            self.arrived[key][row.seq - 1] = row.received_at
        elif isinstance(row, EventRow):
            assert row.seq <= self._published[row.publisher]

    def ended(self, ending: Ending) -> None:
        pass


def generator(*parts: object) -> np.random.Generator:
    """A random stream of its own for every purpose."""
    text = "/".join(map(str, parts))
    return np.random.default_rng(int.from_bytes(blake2b(text.encode()).digest()[:16], "big"))


def poisson(rates: Sequence[float], step_s: float, match: float, rng: np.random.Generator) -> Sent:
    """Publications at rates that hold for a step each; a share `match` of them is wanted."""
    due = np.concatenate([[0.0], np.cumsum(np.asarray(rates) * step_s)])
    count = int(rng.poisson(due[-1]))
    edges = START_S + np.arange(len(due)) * step_s
    at_s = np.interp(np.sort(rng.random(count)) * due[-1], due, edges)
    return Sent(at_s, rng.random(count) < match)


def _topic(publisher: str) -> str:
    return f"of-{publisher}"


def _publications(name: str, sent: Sent) -> list[Publication]:
    topics = (OTHER, _topic(name))
    pairs = zip(sent.at_s.tolist(), sent.wanted.tolist(), strict=True)
    return [Publication(at, topics[wanted], {}) for at, wanted in pairs]


def _stream(sent: Sent, arrived_s: Floats) -> Stream:
    got = np.flatnonzero(np.isfinite(arrived_s))
    order = got[np.argsort(arrived_s[got], kind="stable")]
    return Stream(sent.at_s, sent.at_s, arrived_s, sent.wanted, order)
