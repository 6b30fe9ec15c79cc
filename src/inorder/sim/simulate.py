"""One run: a scenario and a seed in, rows out. The same bytes every time, everywhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from typing import Any

from msgspec import Struct

from inorder.check.ending import Ending
from inorder.check.trace import Format, TraceWriter
from inorder.core.machine import Accountable, Builder, Client, Machine
from inorder.guarantee.compose import Filtering
from inorder.guarantee.registry import Guarantee
from inorder.sim import content, cube, faults, models, presets
from inorder.sim.brokers import Brokers
from inorder.sim.network import Model
from inorder.sim.overlay import Overlay
from inorder.sim.pastry import Pastry, id_of
from inorder.sim.plane import Plane
from inorder.sim.publications import Recorder
from inorder.sim.scenario import NetworkTable, Scenario
from inorder.sim.workload import Story, Workload, node_names, tell
from inorder.sim.world import World

# A run reports its progress this often.
PROGRESS_STEPS = 200


class Outcome(Struct, frozen=True):
    """What a run did, in numbers."""

    steps: int
    virtual_s: float
    published: int
    missed: int
    delivered: int
    faults: tuple[faults.Fault, ...]
    marks: dict[str, int]
    # What the machines counted, summed, and what that means (guarantee.describe).
    account: dict[str, float] = {}
    meaning: tuple[str, ...] = ()
    ending: Ending | None = None

    def describe(self) -> list[str]:
        """For people; the faults first, as they are half of the reproduction."""
        lines = [f"fault    {faults.describe(fault)}" for fault in self.faults]
        lines.append(f"events   {self.published} published, {self.missed} not (publisher down)")
        lines.append(f"reached  {self.delivered} deliveries in {self.virtual_s:.1f} virtual s")
        if self.ending is not None and not self.ending.quiet:
            what = _some(self.ending.under_way)
            lines.append(f"cut      at {self.ending.ended_at:g} s, still to happen: {what}")
        lines += [f"mark     {mark}: {count}" for mark, count in self.marks.items()]
        lines += self.meaning
        return lines


def _some(lines: tuple[str, ...], most: int = 4) -> str:
    """The first of them; the others are in trace.json."""
    more = f" and {len(lines) - most} more" if len(lines) > most else ""
    return ", ".join(lines[:most]) + more


def simulate(
    scenario: Scenario,
    seed: int,
    trace: Recorder,
    *,
    story: Story | None = None,
    progress: Callable[[float], None] | None = None,
    write_behind: bool = False,
) -> Outcome:
    """Run a scenario; `story` replaces the one the seed would tell."""
    story = story or tell(scenario, seed)
    world = build(scenario, seed, trace, story=story, write_behind=write_behind)
    workload = Workload(world, scenario, seed, story)
    world.application = workload
    if story.faults:
        faults.schedule(world, story.faults, scenario.faults_until)
    end = max(scenario.duration, scenario.faults_until if story.faults else 0.0) + scenario.settle
    steps = 0
    for step in range(1, PROGRESS_STEPS + 1):
        steps += world.agenda.run(end * step / PROGRESS_STEPS)
        if progress:
            progress(step / PROGRESS_STEPS)
        if world.at_rest:
            break
    ending = world.finish(scenario.window)
    if progress:
        progress(1.0)
    account = _account(world)
    meaning = scenario.guarantee.describe(account, scenario.options) if account else []
    return Outcome(
        steps,
        world.agenda.now,
        workload.published,
        workload.missed,
        sum(node.nth for node in world.nodes.values()),
        tuple(story.faults),
        dict(sorted(world.marks.items())),
        account,
        tuple(meaning),
        ending,
    )


def _account(world: World) -> dict[str, float]:
    total: dict[str, float] = {}
    for node in world.nodes.values():
        if isinstance(node.machine, Accountable):
            for name, figure in node.machine.account().items():
                total[name] = total.get(name, 0.0) + figure
    return total


def simulate_to_folder(
    scenario: Scenario,
    seed: int,
    folder: str | os.PathLike[str],
    *,
    format: Format = "parquet",
    progress: Callable[[float], None] | None = None,
) -> Outcome:
    """Run a scenario and write its trace; the folder is complete only when this returns."""
    about: dict[str, Any] = {
        "seed": seed, "title": scenario.title, "order": scenario.order, "network": scenario.kind,
        "clock": "simulated",
    }  # fmt: skip
    with TraceWriter(folder, format, about=about) as trace:
        return simulate(scenario, seed, trace, progress=progress)


def build(
    scenario: Scenario,
    seed: int,
    trace: Recorder,
    *,
    story: Story | None = None,
    write_behind: bool = False,
) -> World:
    """The world of a scenario with its nodes in place and nothing happening yet."""
    network = scenario.network
    options = scenario.options
    services = scenario.guarantee.services(scenario.topic_names, options)
    clients = node_names(scenario)
    homes = _place([*clients, *services], _hosts(network), seed)
    model = _model(scenario, seed, story)
    pastry = _pastry(scenario, seed) if network.overlay == "scribe" else None
    if pastry:
        homes |= _at_roots(pastry, services)
    world = World(
        model,
        f"{seed}/network/{story.luck if story else 0}",
        trace,
        # Sessions between content brokers keep the order; acknowledgements need none.
        fifo=network.fifo and not scenario.matches_content,
        # Brokers move what their roles say to each other, too: nothing is there at once.
        hosts=None if network.overlay == "brokers" else homes,
        record_messages=scenario.messages,
        join_s=network.join,
        sync_s=network.sync,
        write_behind=write_behind,
    )
    if pastry:
        world.network.ways = Overlay(world.network, pastry, homes)
    elif network.overlay == "brokers":
        luck = story.luck if story else 0
        kind = content.ContentBrokers if scenario.matches_content else Brokers
        world.network.ways = kind(
            world.network, world.agenda, network.brokers, homes, f"{seed}/brokers", luck
        )
    if network.overlay == "cube":
        names = [*clients, *services]
        peers = cube.peers_of(scenario, seed, names, homes, _plain_model(scenario, seed))
        cube.add_peers(world, scenario, names, peers, homes, model)
        if network.cube.members == "preset":
            presets.preset_all(world, scenario, story or tell(scenario, seed))
        return world
    for name, builder in services.items():
        world.add(name, partial(_service, scenario, name, homes.get(name, name), builder))
    make = partial(_client, scenario, scenario.guarantee, scenario.topic_names, options)
    for name in clients:
        world.add(name, partial(make, name, homes.get(name, name)))
    ways = world.network.ways
    if isinstance(ways, content.ContentBrokers):
        for name in network.brokers.names:
            neighbours = ways.neighbours(name)
            world.add(name, partial(content.broker, name, network.brokers, neighbours))
        content.set_up(world, ways)
    return world


def _client(
    scenario: Scenario,
    ordered: Guarantee,
    topics: tuple[str, ...],
    options: Struct,
    name: str,
    home: str,
) -> Client:
    make = partial(ordered.client, name, topics, options)
    if scenario.matches_content:
        return content.attached_client(scenario, name, home, make, ordered)
    return Filtering(ordered, make()) if scenario.filtered else make()


def _service(scenario: Scenario, name: str, home: str, builder: Builder) -> Machine:
    machine = builder.make()
    if scenario.matches_content:
        return content.attached_service(scenario, name, home, machine, builder.topics)
    return machine


def _model(scenario: Scenario, seed: int, story: Story | None) -> Model:
    model = _plain_model(scenario, seed)
    if story is None or story.delays is None:
        return model
    return models.Remembered(model, story.delays, record=not story.delays)


def _plain_model(scenario: Scenario, seed: int) -> Model:
    network = scenario.network
    if network.overlay == "brokers":
        return models.Delay(network.brokers.link)
    if network.model == "delay":
        return models.Delay(network.delay)
    if network.model == "wan":
        return models.Wan(f"{seed}") if network.classes == "pair" else models.WanPerMessage()
    if network.model == "plane":
        return Plane(f"{seed}", network.plane)
    if network.model == "packet":
        return _packet(network)
    if network.model == "biased":
        return models.Biased(f"{seed}", network.mean)
    return models.Ideal()


def _packet(network: NetworkTable) -> Model:
    if network.transmission is None:
        return models.Packet(network.processing, network.bits_per_s, network.propagation)
    return models.Packet(
        network.processing, None, network.propagation, transmission_s=network.transmission
    )


def _hosts(network: NetworkTable) -> list[str]:
    """The hosts that roles share, if any."""
    if network.overlay == "brokers":
        return network.brokers.names
    return [f"host{place}" for place in range(network.nodes or 0)]


def _place(names: list[str], hosts: list[str], seed: int) -> dict[str, str]:
    """Spread the roles over the hosts: nobody shares one before all are taken."""
    rng = Random(f"{seed}/place")
    places: list[str] = []
    while hosts and len(places) < len(names):
        places.extend(rng.sample(hosts, len(hosts)))
    return dict(zip(names, places, strict=False))


def _pastry(scenario: Scenario, seed: int) -> Pastry:
    """An overlay of all hosts; without a number of hosts, the clients themselves are it."""
    network = scenario.network
    count = network.nodes
    hosts = [f"host{place}" for place in range(count)] if count else node_names(scenario)
    model = _plain_model(scenario, seed)
    near = model.fast if network.near and isinstance(model, models.Wan) else None
    return Pastry(hosts, near)


def _at_roots(pastry: Pastry, services: Mapping[str, Builder]) -> dict[str, str]:
    """A topic's manager lives on the root of its tree, so that diffusing costs no hop upwards."""
    return {name: pastry.root(id_of(builder.topic)) for name, builder in services.items()}
