"""The hypercube and causal order.

- Hops: copies of publications and their acknowledgements that a world of peers moves in a second of
  CPU, beside a bare world in which nodes only pass messages on. Members are preset.
- Waiting: publications that one peer takes in a second while none or 50,000 others wait there.
- Chat: delivery latency of `causal` beside `total` over the same cube, in virtual time, and that of
  `none`: no guarantee can be faster. Members are preset. When they join in the first second of the
  run, what is published meanwhile waits for the join under `causal`, and under `total` goes to a
  service at once, which hands it to those that have joined: not the same deliveries are compared.
"""

from __future__ import annotations

import gc
import resource
from collections.abc import Callable
from functools import partial
from statistics import median
from time import process_time
from typing import Any

from rich.console import Console
from rich.table import Table

from inorder.core.effect import Effect, Send
from inorder.core.event import Event
from inorder.guarantee.peer import Peered, order_of
from inorder.guarantee.registry import guarantee
from inorder.protocols.causal.messages import Published
from inorder.protocols.cube.messages import Pub
from inorder.protocols.cube.options import Options
from inorder.protocols.cube.peers import Peers
from inorder.sim.beside import under
from inorder.sim.cube import preset
from inorder.sim.laws import Constant
from inorder.sim.models import Delay
from inorder.sim.scenario import from_table
from inorder.sim.world import World

ROUNDS = 5
SIZES = (1024, 4096)
HOPS = 400_000
SEEDS = (1, 2, 3, 4, 5)
TRUSTED = Options(links="trusted", window=16)


class Nowhere:
    def write(self, table: str, row: object) -> None:
        pass

    def ended(self, ending: object) -> None:
        pass


class Relay:
    """Passes a number on until it is 0."""

    def __init__(self, target: str) -> None:
        self._target = target

    def receive(self, source: str, message: int, now: float) -> list[Effect]:
        return [Send(self._target, message - 1)] if message else []

    def fire(self, timer: str, now: float) -> list[Effect]:
        return []

    def snapshot(self) -> bytes:
        return self._target.encode()

    @classmethod
    def restore(cls, snapshot: bytes) -> Relay:
        return cls(snapshot.decode())


def world() -> World:
    return World(Delay(Constant(mean=0.1)), "bench", Nowhere(), fifo=False)


def names(size: int) -> list[str]:
    return [f"n{number:04d}" for number in range(size)]


def rate(running: World) -> float:
    gc.collect()
    started = process_time()
    steps = running.agenda.run()
    return steps / (process_time() - started)


def bare(size: int) -> float:
    """Messages that nodes pass on, a second of CPU."""
    running, nodes = world(), names(size)
    for number, name in enumerate(nodes):
        running.add(name, partial(Relay, nodes[(number * 7 + 1) % size]))
    for name in nodes:
        running.network.send(name, name, HOPS // size)
    return rate(running)


def peers(size: int, name: str = "none") -> World:
    """A world whose peers are all members of one topic."""
    running, nodes = world(), Peers(names(size))
    ordered = guarantee(name)
    order = order_of(ordered, ordered.options(), ("t",))
    for each in nodes.names:
        running.add(each, partial(Peered, each, nodes, TRUSTED, order))
    preset((running.nodes[each].machine for each in nodes.names), ("t",), nodes.names)
    for each in nodes.names:
        running.subscribe(each, ("t",))
    running.agenda.run()
    return running


def hops(size: int) -> float:
    """Copies and acknowledgements of publications to all members, a second of CPU."""
    running = peers(size)
    nodes = list(running.nodes)
    for number in range(HOPS // (2 * size)):
        node = nodes[number * 37 % size]
        running.agenda.after(0.01 * number, running.publish, node, "t", {})
    return rate(running)


def taken(waiting: int, count: int = 20_000) -> float:
    """Publications of peer 1 that peer 0 takes in a second while so many of peer 2 wait."""
    running = peers(8, "causal")
    machine: Any = running.nodes["n0000"].machine
    for number in range(2, waiting + 2):
        event = Event("n0002", number, "t", {})
        machine.receive("n0002", Pub("t", 2, number, b"", Published(event)), 0.0)
    arriving = [Pub("t", 1, number, b"", Published(Event("n0001", number, "t", {})))
                for number in range(1, count + 1)]  # fmt: skip
    gc.collect()
    started = process_time()
    for pub in arriving:
        machine.receive("n0001", pub, 0.0)
    return count / (process_time() - started)


def chat(topics: int) -> dict[str, Any]:
    return {
        "title": "Chat",
        "duration": 20.0,
        "topics": topics,
        "network": {
            "overlay": "cube", "model": "delay", "fifo": False,
            "delay": {"law": "lognormal", "median": 0.03, "sigma": 0.9},
            "cube": {"links": "trusted", "members": "preset"},
        },
        "publishers": {"count": 0},
        "subscribers": [{"name": "u", "count": 100, "rate": 0.05, "reply": 0.005}],
    }  # fmt: skip


def latency(topics: int, name: str) -> list[float]:
    scenario = from_table(chat(topics))
    return [under(scenario, name, seed).latency_mean_s for seed in SEEDS]


def times(job: Callable[[], float]) -> list[float]:
    return [job() for _ in range(ROUNDS)]


def shown(values: list[float], scale: float = 1.0, digits: int = 0) -> str:
    low, middle, high = min(values) * scale, median(values) * scale, max(values) * scale
    return f"{middle:,.{digits}f} ({low:,.{digits}f} to {high:,.{digits}f})"


def main() -> None:
    screen = Console(width=110)
    table = Table(title="Hops a second of CPU", caption=f"python -m benches.cube, {ROUNDS} rounds")
    for heading in ("peers", "a bare world", "peers of a cube", "ratio"):
        table.add_column(heading, justify="right")
    for size in SIZES:
        rounds = [(bare(size), hops(size)) for _ in range(ROUNDS)]
        plain, cube = ([each[side] for each in rounds] for side in (0, 1))
        ratio = [one / other for other, one in rounds]
        table.add_row(f"{size:,}", shown(plain), shown(cube), shown(ratio, digits=2))
    screen.print(table)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    screen.print(f"largest memory so far: {peak:.2f} GB")
    rounds = [(taken(0), taken(50_000)) for _ in range(ROUNDS)]
    idle, busy = ([each[side] for each in rounds] for side in (0, 1))
    ratio = [other / one for one, other in rounds]
    screen.print(f"publications taken, none waiting: {shown(idle)}; 50,000: {shown(busy)}; "
                 f"ratio {shown(ratio, digits=2)}")  # fmt: skip
    for topics in (1, 5):
        causal, total, none = (latency(topics, name) for name in ("causal", "total", "none"))
        ratio, floor = (
            [one / other for one, other in zip(side, total, strict=True)] for side in (causal, none)
        )
        screen.print(f"chat of 100, {topics} topics: causal {shown(causal, 1e3)} ms, total "
                     f"{shown(total, 1e3)} ms, ratio {shown(ratio, digits=2)}; none "
                     f"{shown(none, 1e3)} ms, ratio {shown(floor, digits=2)}")  # fmt: skip


if __name__ == "__main__":
    main()
