"""One run: a scenario and a seed in, rows out. The same bytes every time, everywhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

from msgspec import Struct

from inorder.machine import Machine
from inorder.sim import faults, models
from inorder.sim.network import Model
from inorder.sim.scenario import Scenario
from inorder.sim.workload import Story, Workload, node_names, tell
from inorder.sim.world import Recorder, World

# A run reports its progress this often.
PROGRESS_STEPS = 200


class Outcome(Struct, frozen=True):
    """What a run did, in numbers."""

    steps: int
    virtual_s: float
    published: int
    missed: int
    faults: tuple[faults.Fault, ...]
    marks: dict[str, int]


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
    world = build(scenario, seed, trace, write_behind=write_behind)
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
        if not len(world.agenda):
            break
    world.finish()
    if progress:
        progress(1.0)
    return Outcome(
        steps,
        world.agenda.now,
        workload.published,
        workload.missed,
        tuple(story.faults),
        dict(sorted(world.marks.items())),
    )


def build(scenario: Scenario, seed: int, trace: Recorder, *, write_behind: bool = False) -> World:
    """The world of a scenario with its nodes in place and nothing happening yet."""
    network = scenario.network
    options = scenario.options
    services = scenario.guarantee.services(scenario.topic_names, options)
    clients = node_names(scenario)
    world = World(
        _model(scenario, seed),
        f"{seed}/network",
        trace,
        fifo=network.fifo,
        hosts=_place([*clients, *services], network.nodes, seed),
        record_messages=scenario.messages,
        join_s=network.join,
        sync_s=network.sync,
        write_behind=write_behind,
    )
    for name in services:
        world.add(name, partial(_service, scenario, name))
    for name in clients:
        world.add(name, partial(scenario.guarantee.client, name, options))
    return world


def _service(scenario: Scenario, name: str) -> Machine:
    return scenario.guarantee.services(scenario.topic_names, scenario.options)[name]


def _model(scenario: Scenario, seed: int) -> Model:
    network = scenario.network
    if network.model == "delay":
        return models.Delay(network.delay)
    if network.model == "wan":
        return models.Wan(f"{seed}")
    if network.model == "packet":
        return models.Packet(network.processing, network.bandwidth, network.propagation)
    if network.model == "biased":
        return models.Biased(f"{seed}", network.mean)
    return models.Ideal()


def _place(names: list[str], hosts: int | None, seed: int) -> dict[str, str]:
    """Spread the roles over the hosts: nobody shares one before all are taken."""
    if hosts is None:
        return {}
    rng = Random(f"{seed}/place")
    places: list[int] = []
    while len(places) < len(names):
        places.extend(rng.sample(range(hosts), hosts))
    return {name: f"host{place}" for name, place in zip(names, places, strict=False)}
