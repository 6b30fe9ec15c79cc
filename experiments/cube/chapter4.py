"""Chapter 4's scenario: every node publishes one message, with and without causal aggregation.

    numbers = run("even in 400, sd 40", nodes=64, payload=50, trees="source", seed=1)
    numbers["plain packets"], numbers["aggr packets"]

Both runs have the same publications and draw the same delay for the same message on the same link
(`Paired`), so that they can be compared packet by packet. Clients stamp with compressed clocks,
sizes are the thesis's (vcube.py), and acknowledgements, of which chapter 4 has none, stand beside:
they are no packets, and a packet is counted for the publications in it.

What counts as what: a message *waits* in its sender's output queue, and is *held* at its receiver
until all that it rests on has been delivered; reception is before that, delivery after. Its
*dependencies* are the entries of its stamp without its own.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from random import Random
from typing import Any

from experiments.cube import vcube, workloads
from experiments.cube.meter import Meter, Trace
from experiments.cube.world import SOURCES, TOPIC, Run, Setting, vcube_world
from experiments.points import Numbers
from inorder.protocols.cube.messages import Pub
from inorder.sim.network import Model

CODE = (*SOURCES, *vcube.SOURCES, "experiments/cube/chapter4.py")

PLAIN, AGGR = "plain", "aggr"
# Classes of tables 4.2 and 4.3.
SEVERAL = ("1", "2", "3", "4", "5", "6 to 15", "more")
SIZES = ("to 100", "to 200", "to 300", "to 400", "above 400")
# Section 3.4: a packet costs s + c * w, its words of 4 bytes; s is up to twice c.
START, WORD, WORD_BYTES = 2.0, 1.0, 4.0


class Bundles(Meter):
    """Notes every packet that carries publications."""

    def __init__(self, model: Model, payload: int) -> None:
        super().__init__(model)
        self.packets = 0
        # How many packets have so many messages, and so many bytes.
        self.messages: Counter[int] = Counter()
        self.bytes: Counter[int] = Counter()
        # By sender, its largest packet.
        self.most: dict[str, int] = {}
        # By publisher, the dependencies of its message.
        self.dependencies: dict[int, int] = {}
        # Packets of two: to whom, and whose messages.
        self.twos: list[tuple[int, int, int]] = []
        self._sizes = vcube.Thesis(payload)
        self._inner = model
        self._pubs: list[Pub[Any]] = []
        self.arrival = self._arrival

    def show(self, message: Any) -> None:
        super().show(message)
        self._pubs = vcube.publications(message)

    def _arrival(self, source: str, target: str, size: int, now: float, rng: Random) -> float:
        self._note(source, target, self._pubs)
        return self._inner.arrival(source, target, size, now, rng)

    def _note(self, source: str, target: str, pubs: list[Pub[Any]]) -> None:
        count = len(pubs)
        self.packets += 1
        self.messages[count] += 1
        self.bytes[vcube.HEADER + sum(map(self._sizes.of, pubs))] += 1
        self.most[source] = max(count, self.most.get(source, 0))
        for pub in pubs:
            self.dependencies[pub.source] = len(pub.body.places)
        if count == 2:
            self.twos.append((int(target[1:]), pubs[0].source, pubs[1].source))


class Times(Trace):
    """When each node has received each message, and for how long it has held it."""

    def __init__(self, nodes: int) -> None:
        super().__init__()
        self.nodes = nodes
        # By publisher and subscriber.
        self.received = array("d", bytes(8 * nodes * nodes))
        self.held = array("d", bytes(8 * nodes * nodes))
        # By subscriber: one more from then on, or one less.
        self._steps: list[list[tuple[float, int]]] = [[] for _ in range(nodes)]

    def write(self, table: str, row: Any) -> None:
        super().write(table, row)
        if table != "deliveries" or row.publisher == row.subscriber:
            return
        subscriber = int(row.subscriber[1:])
        place = int(row.publisher[1:]) * self.nodes + subscriber
        self.received[place] = row.received_at - row.published_at
        if row.delivered_at > row.received_at:
            self.held[place] = row.delivered_at - row.received_at
            self._steps[subscriber] += (row.received_at, 1), (row.delivered_at, -1)

    def most_held(self) -> list[int]:
        """By node, the most messages that it holds at one moment."""
        return [_peak(steps) for steps in self._steps]


def _peak(steps: list[tuple[float, int]]) -> int:
    """What leaves at a moment has left before others come.

    >>> _peak([(1.0, 1), (3.0, -1), (2.0, 1), (4.0, -1), (3.0, 1), (5.0, -1)])
    2
    """
    most = now = 0
    for _, step in sorted(steps):
        now += step
        most = max(most, now)
    return most


class Played:
    """One run, aggregating or not."""

    def __init__(self, load: str, nodes: int, payload: int, trees: Any, seed: int, aggr: bool):
        chosen = workloads.LOADS[load]
        cube = vcube.Cube(
            stamps="clock", aggregate="causal" if aggr else "none", trees=trees, payload=payload
        )
        self.times = Times(nodes)
        self.run = Run(
            vcube_world, Setting(seed, nodes, {TOPIC: range(nodes)}, cube=cube),
            workloads.links(chosen), meter=partial(Bundles, payload=payload), paired=True,
            trace=self.times,
        )  # fmt: skip
        rng = Random(f"{seed}/{nodes}")
        workloads.one_each(self.run, range(nodes), chosen.at, rng)
        self.run.go()
        assert isinstance(self.run.meter, Bundles)
        self.meter = self.run.meter

    def numbers(self) -> Numbers:
        return {**self._packets(), **self._latencies(), **self._dependencies(), **self._nodes()}

    def _packets(self) -> Numbers:
        meter = self.meter
        counts, packets = meter.messages, meter.packets
        several = packets - counts[1]
        by_class, sizes = by_messages(counts), by_bytes(meter.bytes)
        total = sum(size * count for size, count in meter.bytes.items())
        return {
            "packets": packets,
            "aggregations": several,
            "several": several / packets,
            **{f"of all {name}": count / packets for name, count in by_class.items()},
            **{
                f"of several {name}": count / several if several else None
                for name, count in by_class.items()
                if name != "1"
            },
            "packets of 15": counts[15],
            "largest": max(counts),
            **{f"bytes {name}": count / packets for name, count in sizes.items()},
            "above 1400": sum(n for size, n in meter.bytes.items() if size > 1400) / packets,
            "most bytes": max(meter.bytes),
            "full": self.run.account("packets_full") if several else 0,
            "bytes": total,
            "cost": START * packets + WORD * total / WORD_BYTES,
        }

    def _latencies(self) -> Numbers:
        known = self.run.latencies()
        return {
            "reception": known.reception,
            "delivery": known.delivery,
            "longest": max(self.times.received),
            "held": known.waited / known.count,
            "delayed": sum(1 for held in self.times.held if held),
            "wait": self.run.wait,
            "moved": self.run.meter.moved,
            "seconds": self.run.seconds,
        }

    def _dependencies(self) -> Numbers:
        counts = list(self.meter.dependencies.values())
        classes = {"none": (0, 0), "1 to 4": (1, 4), "5 to 9": (5, 9), "10 to 12": (10, 12)}
        shares = {
            f"rests on {name}": between(counts, low, high) / len(counts)
            for name, (low, high) in classes.items()
        }
        above = 1.0 - between(counts, 0, 12) / len(counts)
        return {**shares, "rests on above 12": above, "rests on most": max(counts)}

    def _nodes(self) -> Numbers:
        held = self.times.most_held()
        most = [self.meter.most.get(name, 0) for name in self.run.names]
        return {
            "nodes to 50": between(held, 0, 50),
            "nodes above 250": len(held) - between(held, 0, 250),
            "held at once": max(held),
            "7 to 11": between(most, 7, 11) / len(most),
            "8 to 12": between(most, 8, 12) / len(most),
            "largest packets": dict(sorted(Counter(most).items())),
            "most held": dict(sorted(Counter(count // 25 * 25 for count in held).items())),
            "mode": Counter(most).most_common(1)[0][0],
        }


def by_messages(packets: Mapping[int, int]) -> dict[str, int]:
    """Packets with so many messages in the classes of table 4.2.

    >>> by_messages({5: 1, 6: 2, 15: 4, 16: 8})["6 to 15"]
    6
    """
    counts = {name: packets.get(number, 0) for number, name in enumerate(SEVERAL[:5], 1)}
    counts["6 to 15"] = sum(count for size, count in packets.items() if 6 <= size <= 15)
    counts["more"] = sum(count for size, count in packets.items() if size > 15)
    return counts


def by_bytes(packets: Mapping[int, int]) -> dict[str, int]:
    """Packets of so many bytes in the classes of table 4.3.

    >>> by_bytes({100: 1, 101: 2, 400: 4, 401: 8, 1500: 16})
    {'to 100': 1, 'to 200': 2, 'to 300': 0, 'to 400': 4, 'above 400': 24}
    """
    counts = dict.fromkeys(SIZES, 0)
    for size, count in packets.items():
        counts[SIZES[min(4, (size - 1) // 100)]] += count
    return counts


def between(values: Sequence[int], low: int, high: int) -> int:
    """How many are from one to the other, both included.

    >>> between([6, 7, 11, 12], 7, 11)
    2
    """
    return sum(low <= value <= high for value in values)


def run(load: str, nodes: int, payload: int, trees: str, seed: int) -> Numbers:
    plain, aggr = (Played(load, nodes, payload, trees, seed, way) for way in (False, True))
    both = {PLAIN: plain.numbers(), AGGR: aggr.numbers()}
    flat = {f"{way} {key}": value for way, each in both.items() for key, value in each.items()}
    largest = max(plain.meter.bytes)
    above = sum(count for size, count in aggr.meter.bytes.items() if size > largest)
    return {
        **flat,
        **two_and_two(plain, aggr),
        **{key: less(flat, key) for key in ("packets", "cost", "bytes")},
        "above all plain": above / aggr.meter.packets,
        "moved": plain.run.meter.moved + aggr.run.meter.moved,
        "seconds": plain.run.seconds + aggr.run.seconds,
    }


def less(flat: Mapping[str, Any], key: str) -> float:
    """By what share aggregation lowers it."""
    value: float = 1.0 - flat[f"{AGGR} {key}"] / flat[f"{PLAIN} {key}"]
    return value


def two_and_two(plain: Played, aggr: Played) -> Numbers:
    """Messages that came in a packet of two, in both runs; None if there are none."""
    nodes = aggr.times.nodes
    places = [
        publisher * nodes + target
        for target, *publishers in aggr.meter.twos
        for publisher in publishers
    ]
    found: Numbers = {"in twos": len(places)}
    for way, played in ((PLAIN, plain), (AGGR, aggr)):
        received = sum(played.times.received[place] for place in places)
        held = sum(played.times.held[place] for place in places)
        count = len(places) or None
        found[f"twos {way} reception"] = received / count if count else None
        found[f"twos {way} held"] = held / count if count else None
        found[f"twos {way} delivery"] = (received + held) / count if count else None
    return found
