"""Random small schedules: drawn from a seed, run in the simulated world, judged inside and out.

A schedule is a scenario (topics, who holds what, what changes, what goes wrong) and its seed. The
biased network gives every link a speed of its own. After the faults everything heals, and the run
must come to rest: everything accepted and owed is delivered, and no machine keeps anything back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from inorder.check import judge
from inorder.protocols.total import Client, Stage
from inorder.protocols.total.stamp import consistent, without
from inorder.sim import faults
from inorder.sim.memory import Memory
from inorder.sim.scenario import Scenario, from_table
from inorder.sim.simulate import build
from inorder.sim.workload import Workload, tell
from inorder.sim.world import World

MODES: dict[str, dict[str, Any]] = {
    "tag": {"mode": "tag", "buffer": 0},
    "compact": {"mode": "tag", "stamp": "compact", "path": "sg"},
    "buffer": {"mode": "tag", "buffer": 3, "ttl": 0.4},
    "hold": {"mode": "hold"},
}

# Long enough for every back-off (the longest is 16 times half a second) to run several times.
SETTLE_S = 120.0


def draw(
    seed: int,
    order: dict[str, Any],
    *,
    faulty: bool = True,
    churn: bool = True,
    lively: bool = False,
    sync: float | None = None,
) -> Scenario:
    """The scenario of a seed: 2-5 topics, 2-5 subscribers, a few events each.

    `lively` schedules have few topics and many changes: good at finding what goes wrong when
    somebody comes or leaves.
    """
    rng = Random(f"{seed}/total")
    topics = rng.randint(2, 5)
    subscribers = [
        {"name": f"s{chr(97 + number)}", "count": 1, "topics": "uniform",
         "per": rng.randint(1, topics), "reply": rng.choice((0.0, 0.0, 0.3))}
        for number in range(rng.randint(2, 5))
    ]  # fmt: skip
    table: dict[str, Any] = {
        "topics": topics,
        "duration": 4.0,
        "settle": SETTLE_S,
        "messages": False,
        "order": {
            "guarantee": "total",
            "topics_per_stage": rng.choice((1, 1, 2)),
            "window": rng.choice((1, 2, 64)),
            **order,
        },
        "network": {
            "model": "biased",
            "mean": rng.choice((0.05, 0.3, 1.0)),
            "fifo": rng.random() < 0.7,
            "join": rng.choice((0.0, 0.1)),
            "sync": rng.choice((0.0, 0.0, 0.02)),
        },
        "publishers": {
            "count": rng.randint(1, 4),
            "rate": rng.choice((0.5, 1.0, 2.0)),
            "arrivals": "poisson",
            "topics": rng.choice(("uniform", "own")),
        },
        "subscribers": subscribers,
    }
    if churn and rng.random() < 0.7:
        table["churn"] = {"rate": rng.choice((0.5, 1.5, 3.0))}
    if faulty and rng.random() < 0.6:
        table["faults"] = {
            "until": 5.0,
            "draw": ["partition", "pause", "crash", "clock", "weather"],
        }
    if lively:
        table["topics"] = 2 + seed % 2
        table["subscribers"] = [
            {**each, "per": min(each["per"], table["topics"])} for each in subscribers[:4]
        ]
        table["publishers"] = {**table["publishers"], "count": 3, "rate": 2.0, "topics": "own"}
        table["churn"] = {"rate": 4.0}
    if sync is not None:
        table["network"]["sync"] = sync
    return from_table(table)


Act = Callable[[World, Random], None]


def run(
    scenario: Scenario, seed: int, *, act: Act | None = None, write_behind: bool = False
) -> tuple[Memory, World, list[str]]:
    """One schedule: what happened, the world at rest, and what is wrong with either."""
    memory = Memory()
    story = tell(scenario, seed)
    world = build(scenario, seed, memory, story=story, write_behind=write_behind)
    world.application = Workload(world, scenario, seed, story)
    if story.faults:
        faults.schedule(world, story.faults, scenario.faults_until)
    if act:
        act(world, Random(f"{seed}/act"))
    wrong: list[str] = []
    _watch_engines(world, wrong)
    end = max(scenario.duration, scenario.faults_until) + scenario.settle
    world.agenda.run(end)
    world.finish(scenario.window)
    return memory, world, [*problems(memory, world, scenario), *wrong]


def _watch_engines(world: World, wrong: list[str]) -> None:
    """P9 and more, from inside: whatever is delivered in order passes the test of tag mode."""
    for node in world.nodes.values():
        if isinstance(node.machine, Client):
            original = node._build
            node._build = lambda original=original: _watched(original(), wrong)  # type: ignore
            node.machine = _watched(node.machine, wrong)


def _watched(client: Any, wrong: list[str]) -> Any:
    become = client._become

    def watch() -> None:
        engine = client.subscriber.engine
        passing = engine._pass

        def check(key: Any, epoch: int, stamp: Any, event: Any, waited_s: float) -> None:
            if not engine._fresh(key, epoch, stamp):
                wrong.append(f"fresh: {event.id} passes behind the clock")
            passing(key, epoch, stamp, event, waited_s)

        engine._pass = check

    def watched_become(state: Any) -> None:
        become(state)
        watch()

    client._become = watched_become
    watch()
    return client


def problems(memory: Memory, world: World, scenario: Scenario) -> list[str]:
    history = memory.history()
    found = []
    verdicts = judge(history, scenario.guarantee.promises(scenario.options))
    options: Any = scenario.options
    for name, verdict in verdicts.items():
        if not verdict.kept:
            found.append(f"{name}: {verdict.witness or verdict.why}")
    acyclic = verdicts["total"].also.get("acyclic") if "total" in verdicts else None
    if options.mode == "hold" and acyclic is not None and not acyclic.kept:
        found.append(f"acyclic: {acyclic.witness}")
    if "reliable" in verdicts and not verdicts["reliable"].also["integrity"].kept:
        found.append(f"integrity: {verdicts['reliable'].also['integrity'].witness}")
    if options.mode == "hold" and any(not row.in_order for row in history.deliveries):
        found.append("hold tagged")
    found += leftovers(world)
    found += at_rest(world)
    found += numbering(memory)
    if options.stamp == "full" and options.path != "sg" and options.threshold == 1:
        found += stamps(memory)
    return found


def leftovers(world: World) -> list[str]:
    """L3: at rest nobody waits for anything."""
    found = []
    for name, node in world.nodes.items():
        if not node.machine.idle or getattr(node.machine, "owes", False):  # type: ignore
            found.append(f"leftover: {name}")
        if not node.alive or node.paused:
            found.append(f"leftover: {name} is down")
    return found


def at_rest(world: World) -> list[str]:
    """P8 and P10: everybody has everything from its start on; stages agree on the order."""
    found = []
    counts: dict[str, int] = {}
    orders = set()
    for node in world.nodes.values():
        if isinstance(node.machine, Stage):
            orders.add((node.machine.s.epoch, node.machine.s.order))
            for topic, manager in node.machine.managers.items():
                counts[topic] = manager.s.count
    if len(orders) > 1 or any(sorted(order) != sorted(counts) for _, order in orders):
        found.append(f"epochs: {sorted(orders)}")
    for name, node in world.nodes.items():
        if isinstance(node.machine, Client):
            s = node.machine.subscriber.s
            if {*s.numbers} != s.engine.active:
                found.append(f"holdings: {name}")
            for topic, numbers in s.numbers.items():
                if numbers.have != counts[topic] or numbers.have < s.engine.start[topic]:
                    found.append(f"missing: {name} has {topic} up to {numbers.have}")
    return found


def numbering(memory: Memory) -> list[str]:
    """P6: the numbers of a topic are given once each; an accepted event has one."""
    seen: dict[tuple[str, int], str] = {}
    found = []
    for row in memory.rows["events"]:
        stamp = json.loads(row.stamp)
        if row.accepted_at is None or not stamp:
            continue
        key = (row.topic, stamp[row.topic])
        if key in seen:
            found.append(f"numbering: {key} is {seen[key]} and {row.event}")
        seen[key] = row.event
    return found


def stamps(memory: Memory) -> list[str]:
    """P7: of two events that carry each other's topic, the stamps say which is first."""
    rows = []
    for row in memory.rows["events"]:
        stamp = json.loads(row.stamp)
        if stamp:
            rows.append((row, stamp[row.topic], without(tuple(stamp.items()), row.topic)))
    return [
        f"stamps: {one[0].event} {one[0].stamp} and {other[0].event} {other[0].stamp}"
        for index, one in enumerate(rows)
        for other in rows[:index]
        if not consistent(one[0].topic, *one[1:], other[0].topic, *other[1:])
    ]


def failures(
    seeds: Iterable[int], order: dict[str, Any], *, limit: int = 1, **how: Any
) -> list[tuple[int, list[str]]]:
    """Run the seeds until so many have failed; a machine that dies is a failure too."""
    act = how.pop("act", None)
    write_behind = how.pop("write_behind", False)
    found = []
    for seed in seeds:
        scenario = draw(seed, order, **how)
        wrong = run(scenario, seed, act=act, write_behind=write_behind)[2]
        if wrong:
            found.append((seed, wrong))
            if len(found) >= limit:
                break
    return found


def reorder(world: World, rng: Random) -> None:
    """An operator changes the order of topics at one to three moments."""

    def go() -> None:
        node = world.nodes["ranking"]
        if not node.absent:
            machine: Any = node.machine
            order = list(machine.s.order)
            rng.shuffle(order)
            world._carry_out(node, machine.reorder(order, world.agenda.now + node.skew_s))

    for _ in range(rng.randint(1, 3)):
        world.agenda.at(rng.uniform(0.1, 4.0), go)
