"""What goes wrong in a run, and when: written in the scenario, or drawn from the seed.

A run has two phases. Until `until` the faults are in force; then everything heals (the weather
clears, partitions close, whoever stands still or is down comes back) and the run must converge.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Literal

from msgspec import Struct, structs

from inorder.sim.world import World


class Partition(Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="partition"):
    """Messages from `nodes` to everybody else vanish, and (unless `one_way`) the other way too."""

    at: float
    until: float
    nodes: tuple[str, ...]
    one_way: bool = False


class Pause(Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="pause"):
    """The process stands still; what comes meanwhile is handled afterwards."""

    at: float
    until: float
    node: str


class Crash(Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="crash"):
    """The next input after `at` is cut off behind `effects` effects; back after a while."""

    at: float
    node: str
    effects: int = 0
    restart_after: float = 1.0


class Clock(Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="clock"):
    """The node's clock jumps, and its timers run `drift` times as long from then on."""

    at: float
    node: str
    jump: float = 0.0
    drift: float = 1.0


class Weather(Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="weather"):
    """Every link loses, doubles or delays messages with these probabilities, for a while."""

    at: float
    until: float
    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    reorder_mean: float = 0.05


Fault = Partition | Pause | Crash | Clock | Weather

# What may be drawn. A silence is a partition of one node, for a minute or much longer. A pair is
# one of two clients together, for a little more than a minute: longer than a lease.
Kind = Literal["partition", "pause", "crash", "clock", "weather", "silence", "pair"]

MINUTE_S = 60.0


class Faults(Struct, frozen=True, forbid_unknown_fields=True):
    """The `[faults]` table: `draw` names the kinds to draw per seed, `list` the written ones."""

    until: float | None = None
    draw: tuple[Kind, ...] = ()
    loss_max: float = 0.3
    duplicate_max: float = 0.5
    reorder_max: float = 0.5
    list: tuple[Fault, ...] = ()


def draw(
    faults: Faults, nodes: Sequence[str], services: Sequence[str], until: float, seed: str
) -> tuple[Fault, ...]:
    """The written faults and, of each kind to be drawn, none or some (even odds: a swarm)."""
    rng = Random(f"{seed}/faults")
    drawn: list[Fault] = list(faults.list)
    for kind in faults.draw:
        if rng.random() < 0.5:
            continue
        if kind == "weather":
            drawn.append(
                Weather(
                    0.0,
                    until,
                    loss=rng.uniform(0, faults.loss_max) * rng.randrange(2),
                    duplicate=rng.uniform(0, faults.duplicate_max) * rng.randrange(2),
                    reorder=rng.uniform(0, faults.reorder_max) * rng.randrange(2),
                    reorder_mean=rng.uniform(0.001, 0.1),
                )
            )
            continue
        # Only clients have leases, and pairs share topics only among themselves.
        some = nodes if kind == "pair" else [*nodes, *services]
        for _ in range(rng.randint(1, 3)):
            drawn.append(_one(kind, some, until, rng))
    return tuple(drawn)


def _one(kind: Kind, nodes: Sequence[str], until: float, rng: Random) -> Fault:
    at = rng.uniform(0.0, until)
    if kind in ("silence", "pair"):
        return _silence(kind, nodes, until, rng)
    node = rng.choice(nodes)
    if kind == "partition":
        some = rng.sample(nodes, rng.randint(1, max(1, len(nodes) // 2)))
        end = rng.uniform(at, until)
        return Partition(at, end, tuple(sorted(some)), one_way=rng.random() < 0.5)
    if kind == "pause":
        return Pause(at, rng.uniform(at, until), node)
    if kind == "crash":
        back_s = rng.uniform(0.0, until - at)
        return Crash(at, node, effects=rng.randrange(4), restart_after=back_s)
    assert kind == "clock", kind
    return Clock(at, node, jump=rng.uniform(-3600.0, 3600.0), drift=rng.uniform(0.9, 1.1))


def _silence(kind: Kind, nodes: Sequence[str], until: float, rng: Random) -> Partition:
    at = rng.uniform(0.0, max(0.0, until - 2.0 * MINUTE_S))
    longest_s = max(MINUTE_S, until - at)
    if kind == "silence":
        # As many of one minute to two as of one hour to two.
        length_s = MINUTE_S * (longest_s / MINUTE_S) ** rng.random()
        return Partition(at, at + length_s, (rng.choice(nodes),), one_way=rng.random() < 0.5)
    length_s = min(longest_s, MINUTE_S * rng.uniform(1.1, 1.6))
    return Partition(at, at + length_s, tuple(sorted(rng.sample(nodes, min(2, len(nodes))))))


def schedule(world: World, faults: Sequence[Fault], until: float) -> None:
    """Put faults and the healing into the world's agenda."""
    for fault in faults:
        world.agenda.at(fault.at, _begin, world, fault)
        if isinstance(fault, Partition | Pause | Weather):
            world.agenda.at(min(fault.until, until), _end, world, fault)
    world.agenda.at(until, heal, world)


def heal(world: World) -> None:
    """End of the first phase: nothing is wrong any more."""
    world.network.weather.heal()
    for name, node in world.nodes.items():
        node.crash_after = None
        node.guarded = node.slow_disk
        if node.paused:
            world.proceed(name)
        world.restart(name)


def _begin(world: World, fault: Fault) -> None:
    weather = world.network.weather
    if isinstance(fault, Partition):
        weather.cut(_cuts(world, fault))
    elif isinstance(fault, Pause):
        world.pause(fault.node)
    elif isinstance(fault, Crash):
        world.nodes[fault.node].plan_crash(fault.effects, fault.restart_after)
    elif isinstance(fault, Clock):
        world.nodes[fault.node].skew_s += fault.jump
        world.nodes[fault.node].drift = fault.drift
    else:
        weather.blow(fault.loss, fault.duplicate, fault.reorder, fault.reorder_mean)


def _end(world: World, fault: Partition | Pause | Weather) -> None:
    weather = world.network.weather
    if isinstance(fault, Partition):
        weather.mend(_cuts(world, fault))
    elif isinstance(fault, Pause):
        if world.nodes[fault.node].paused:
            world.proceed(fault.node)
    else:
        weather.blow()


def _cuts(world: World, fault: Partition) -> list[tuple[frozenset[str], frozenset[str]]]:
    one = frozenset(fault.nodes)
    other = frozenset(world.nodes) - one
    if world.network.ways:
        one, other = world.network.ways.sides(fault.nodes)
    return [(one, other)] if fault.one_way else [(one, other), (other, one)]


def describe(fault: Fault) -> str:
    """One line of a story.

    >>> describe(Crash(1.5, "s1", effects=2))
    '1.500  crash: node=s1 effects=2 restart_after=1.0'
    """
    fields = structs.asdict(fault)
    at = fields.pop("at")
    kind = fault.__struct_config__.tag
    return f"{at:.3f}  {kind}: " + " ".join(f"{key}={value}" for key, value in fields.items())
