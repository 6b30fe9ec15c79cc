"""One run of a protocol on the thesis's network: a world of machines, and its meters.

    run = Run("SRPT", Setting(seed=1, size=8, members={"t": range(8)}))
    run.publish(0.0, 3)
    run.go()
    run.latency, run.moved

A unit of time of the thesis is a second of the world. Nodes have names n00, n01, ...; where brokers
are, b00, b01, ... come first and are followed by their guests g00, g01, ...

A protocol is a curve of each figure that compares protocols as soon as it stands in `PROTOCOLS`.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random
from time import process_time

from msgspec import Struct

from experiments.cube import srpt, srpt_brokers, vcube
from experiments.cube.meter import Latencies, Meter, Trace
from experiments.points import Numbers
from inorder.core.machine import Accountable, Machine
from inorder.sim.laws import Constant, Law
from inorder.sim.models import Packet, Paired, Queue
from inorder.sim.network import Model
from inorder.sim.world import Recorder, World

# What every point depends on.
SOURCES = (
    "src/inorder/sim/world.py", "src/inorder/sim/network.py", "src/inorder/sim/models.py",
    "src/inorder/sim/agenda.py", "src/inorder/sim/laws.py", "experiments/cube/world.py",
    "experiments/cube/meter.py", "experiments/cube/srpt.py", "experiments/cube/srpt_brokers.py",
    "experiments/cube/workloads.py",
)  # fmt: skip

TOPIC = "t"

SRPT, VCUBE = "SRPT", vcube.VCUBE


class Links(Struct, frozen=True):
    """The delays of 4.5.1 and 5.6.1, as chapter 5 has them."""

    processing: float = 1.0
    transmission: float = 1.0
    propagation: Law = Constant(mean=100.0)


CHAPTER_5 = Links()


class Setting(Struct, frozen=True):
    """The nodes of a run, all there from its beginning, and who holds what, by place."""

    seed: int
    size: int
    members: Mapping[str, Sequence[int]]
    # Where the single trees begin; drawn evenly for topics that are not named.
    roots: Mapping[str, int] = {}
    # Of single trees: whether roots pass changes on, and which copy goes first (srpt.py).
    resend: bool = True
    far_first: bool = True
    # So many of the nodes, the first, are brokers of the others.
    brokers: int = 0
    # Of VCube-PS.
    cube: vcube.Cube = vcube.Cube()

    @property
    def names(self) -> tuple[str, ...]:
        if not self.brokers:
            return _numbered("n", self.size)
        return (*_numbered("b", self.brokers), *_numbered("g", self.size - self.brokers))

    def root(self, topic: str) -> int:
        if topic in self.roots:
            return self.roots[topic]
        return Random(f"{self.seed}/root/{topic}").randrange(self.brokers or self.size)

    def layout(self) -> srpt.Layout:
        """Of the single trees."""
        names = self.names[: self.brokers or self.size]
        roots = {topic: self.root(topic) for topic in self.members}
        return srpt.Layout(names, roots, self.resend, self.far_first)


def _numbered(letter: str, count: int) -> tuple[str, ...]:
    """Names of one length, so that their order is that of the numbers."""
    digits = len(str(count - 1))
    return tuple(f"{letter}{number:0{digits}}" for number in range(count))


Build = Callable[[Setting, Model, Recorder], World]


def srpt_world(setting: Setting, model: Model, trace: Recorder) -> World:
    made = srpt.machines(setting.layout(), setting.members)
    return populated(setting, model, trace, dict(zip(setting.names, made, strict=True)))


def brokers_world(setting: Setting, model: Model, trace: Recorder) -> World:
    """Guests are spread evenly; `members` are places of guests."""
    names = setting.names
    guests = {name: place % setting.brokers for place, name in enumerate(names[setting.brokers :])}
    held = {topic: [names[place] for place in some] for topic, some in setting.members.items()}
    made = srpt_brokers.nodes(setting.layout(), guests, held)
    return populated(setting, model, trace, made)


def vcube_world(setting: Setting, model: Model, trace: Recorder) -> World:
    """Members are there from the beginning; who joins later does so by the protocol."""
    names = setting.names
    made = vcube.machines(names, setting.cube)
    world = populated(setting, vcube.around(model, setting.cube), trace, made)
    members = {topic: [names[each] for each in some] for topic, some in setting.members.items()}
    vcube.preset_all(made, members)
    for topic, holders in members.items():
        for name in holders:
            world.subscribe(name, [topic])
    return world


def populated(
    setting: Setting, model: Model, trace: Recorder, machines: Mapping[str, Machine]
) -> World:
    """A world of these machines; links are not FIFO, as in the thesis."""
    world = World(model, f"{setting.seed}/network", trace, fifo=False)
    for name, machine in machines.items():
        world.add(name, partial(_same, machine))
    return world


def _same(machine: Machine) -> Machine:
    return machine


# What figures compare; tables name them so. The machines are Srpt of srpt.py, and peers (vcube.py).
PROTOCOLS: dict[str, Build] = {SRPT: srpt_world, VCUBE: vcube_world}


class Run:
    """A world with its meters."""

    def __init__(
        self,
        build: Build,
        setting: Setting,
        links: Links = CHAPTER_5,
        *,
        meter: Callable[[Model], Meter] = Meter,
        paired: bool = False,
        trace: Trace | None = None,
    ) -> None:
        self.packet = Packet(
            links.processing, None, links.propagation,
            transmission_s=links.transmission, watch=True,
        )  # fmt: skip
        inner = Paired(self.packet, f"{setting.seed}") if paired else self.packet
        self.meter = meter(inner)
        self.trace = trace or Trace()
        self.setting = setting
        self.names = setting.names
        self.world = build(setting, self.meter, self.trace)
        self.seconds = 0.0

    def publish(self, at: float, node: int, topic: str = TOPIC) -> None:
        self.world.agenda.at(at, self.world.publish, self.names[node], topic, {})

    def join(self, at: float, node: int, topic: str = TOPIC) -> None:
        self.world.agenda.at(at, self.world.subscribe, self.names[node], [topic])

    def leave(self, at: float, node: int, topic: str = TOPIC) -> None:
        self.world.agenda.at(at, self.world.unsubscribe, self.names[node], [topic])

    def go(self) -> Run:
        """Until nothing happens any more."""
        started = process_time()
        # Nothing here is a cycle, and looking for cycles among millions of copies takes long.
        gc.disable()
        try:
            self.world.agenda.run()
        finally:
            gc.enable()
        self.seconds = process_time() - started
        return self

    # What came of it.

    def latencies(self, group: str = "n") -> Latencies:
        """Of nodes (n), brokers (b) or guests (g)."""
        return self.trace.groups.get(group, Latencies())

    def queue(self, node: int) -> Queue:
        return self.packet.queues.get(self.names[node], Queue())

    @property
    def wait(self) -> float:
        """In all output queues, on average over the copies."""
        queues = self.packet.queues.values()
        return sum(queue.waited_s for queue in queues) / max(1, sum(each.copies for each in queues))

    def account(self, name: str) -> float:
        machines = (node.machine for node in self.world.nodes.values())
        return sum(each.account()[name] for each in machines if isinstance(each, Accountable))

    def numbers(self) -> Numbers:
        """What every figure shows."""
        return {
            "latency": self.latencies().reception,
            "last": self.latencies().to_the_last,
            "moved": self.meter.moved,
            "seconds": self.seconds,
        }
