"""Section 6.2.2.3, geographic topics: what cells of what size cost.

The thesis names the trade-off and gives no numbers. Here 32 peers walk on a square of 100: each
holds what is published within 10 of it on either axis, moves every 10 s by a normal step of 5, and
publishes where it stands. Cells are topics; what is too far away is kept back by a filter.

- *copies* go along trees, and are acknowledged; a *false positive* is one that a filter keeps back.
- *control* is what joins and leaves: a cell that is joined costs N - 1 `Sub` and an `Act` for each
  member, one that is left a `Uns` for each member, and each of these an acknowledgement.
- *entries* are what a whole stamp names: the price of causal order across cells.

| size | cells held | copies | false positives | control messages a second |
|------|------------|--------|-----------------|---------------------------|
| 100  | 1          | 31     | 29.8            | 0                         |
| 50   | 1.5        | 11.7   | 10.4            | 42                        |
| 25   | 2.6        | 5.5    | 4.3             | 106                       |
| 12.5 | 5.7        | 3.0    | 1.8             | 298                       |
| 6.25 | 15         | 2.0    | 0.9             | 920                       |

When to split. Cells of half the side leave a third to a half of the false positives, and cost three
times as much control. The rule: split while the false positives of a second (with their
acknowledgements) are more messages than control would be in the cells of half the side, that is
joins and leaves in a second, times N `Sub` and N `Ack` and the members' `Act`, `Uns` and `Ack`.
With one publication of each peer in 100 s, in 10 s and in 1 s it stops at 100, 50 and 25, and
these had the least traffic each time (17, 117 and 457 messages a second). Comparing with the
control of the *present* cells would go wrong: one cell costs no control, and would always be split.
Cells are merged in the reverse case. Peers would have to agree on a grid that changes, which is not
built: `[network.cube.cells]` is the same for the whole run.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from random import Random
from time import process_time
from typing import Any, cast

from experiments.chart import Frame, page
from experiments.cube import shown
from experiments.cube.world import SOURCES
from experiments.figure import Column, Figure, Row, holds
from experiments.points import Numbers, Settings
from inorder.guarantee.cells.grid import Grid
from inorder.guarantee.cells.holder import Cells
from inorder.guarantee.cells.peer import CelledPeer
from inorder.guarantee.peer import Order
from inorder.protocols.causal.stamp import entries
from inorder.protocols.cube.messages import KINDS, PUB, Ack
from inorder.protocols.cube.options import Options
from inorder.protocols.cube.peers import Peers
from inorder.sim.laws import Constant
from inorder.sim.memory import Memory
from inorder.sim.models import Delay
from inorder.sim.world import World

CODE = (
    *SOURCES, "src/inorder/guarantee/cells/*.py", "src/inorder/guarantee/peer.py",
    "src/inorder/protocols/cube/*.py", "src/inorder/protocols/causal/*.py",
    "experiments/cube/cells.py",
)  # fmt: skip

SIDE = 100.0
REACH = 10.0
STEP = 5.0
PAUSE_S = 10.0
DELAY_S = 0.05
# Before the first move all have joined; the meters begin with it.
START_S = 20.0
WHERE = " AND ".join(f"{axis} >= :{axis}0 AND {axis} < :{axis}1" for axis in "xy")


class Copies(Delay):
    """Counts all copies, and what they are for once its `counts` is set."""

    def __init__(self) -> None:
        super().__init__(Constant(mean=DELAY_S))
        self.counts = False
        self.moved = 0
        self.publications = 0
        self.control = 0
        self.entries = 0

    def show(self, message: Any) -> None:
        self.moved += 1
        if not self.counts:
            return
        kind = message.kind if isinstance(message, Ack) else KINDS.index(type(message))
        if kind != PUB:
            self.control += 1
        elif not isinstance(message, Ack):
            self.publications += 1
            self.entries += entries(message.body.places, message.body.others)


class Walkers:
    """Peers that walk about, publish where they stand, and hold what is around them."""

    def __init__(self, size: float, nodes: int, rate: float, moves: int, seed: int) -> None:
        self.copies = Copies()
        self.grid = Grid(size=size, bounds=(0.0, 0.0, SIDE, SIDE))
        names = [f"n{place:03}" for place in range(nodes)]
        order = Order("causal", {"stamps": "whole"}, ("t",), cells=self.grid)
        options = Options(links="trusted", window=1000)
        trace = Memory()
        self.rows = trace.rows
        self.world = World(self.copies, f"{seed}/network", trace, fifo=False)
        peers = Peers(names)
        self._rng = Random(f"{seed}/walkers")
        self._places: dict[str, list[float]] = {}
        self.published = 0
        self._end = START_S + moves * PAUSE_S
        for name in names:
            self.world.add(name, partial(CelledPeer, name, peers, options, order))
            self._places[name] = [self._rng.uniform(0.0, SIDE) for _ in "xy"]
            self.world.subscribe(name, ["t"], WHERE, self._around(name))
            first = START_S + self._rng.uniform(0.0, PAUSE_S)
            self.world.agenda.at(first, self._move, name)
            self._again(START_S + self._rng.expovariate(rate), self._publish, name, rate)

    def _around(self, name: str) -> dict[str, float]:
        x, y = self._places[name]
        return {"x0": x - REACH, "x1": x + REACH, "y0": y - REACH, "y1": y + REACH}

    def _move(self, name: str) -> None:
        self._places[name] = [
            min(max(at + self._rng.gauss(0.0, STEP), 0.0), SIDE) for at in self._places[name]
        ]
        self.world.set(name, self._around(name))
        self._again(self.world.agenda.now + PAUSE_S, self._move, name)

    def _publish(self, name: str, rate: float) -> None:
        x, y = self._places[name]
        self.world.publish(name, "t", {"x": x, "y": y})
        self.published += 1
        self._again(self.world.agenda.now + self._rng.expovariate(rate), self._publish, name, rate)

    def _again(self, at: float, action: Callable[..., None], *args: Any) -> None:
        if at < self._end:
            self.world.agenda.at(at, action, *args)

    def go(self) -> None:
        self.world.agenda.run(START_S)
        self.copies.counts = True
        self.world.agenda.run(self._end + PAUSE_S)
        assert self.world.at_rest, "the walkers stand still, and so does the world"

    @property
    def peers(self) -> list[CelledPeer]:
        return [cast(CelledPeer, node.machine) for node in self.world.nodes.values()]

    def numbers(self, seconds: float) -> Numbers:
        """For each publication, and for each second."""
        copies = self.copies
        kept_back = sum(peer.account()["filtered"] for peer in self.peers)
        held = sum(len(cast(Cells, peer.inner).cells) for peer in self.peers)
        return {
            "cells": held / len(self.peers),
            "copies": copies.publications / self.published,
            "false": kept_back / self.published,
            "entries": copies.entries / max(copies.publications, 1),
            # With the acknowledgements.
            "wasted": 2.0 * kept_back / seconds,
            "control": copies.control / seconds,
            "total": (2.0 * copies.publications + copies.control) / seconds,
        }


def run(size: float, nodes: int, rate: float, moves: int, seed: int) -> Numbers:
    walkers = Walkers(size, nodes, rate, moves, seed)
    started = process_time()
    walkers.go()
    cost = {"moved": walkers.copies.moved, "seconds": process_time() - started}
    return {**walkers.numbers(moves * PAUSE_S), **cost}


def points(quick: bool) -> list[Settings]:
    nodes, moves = (16, 3) if quick else (32, 6)
    sizes = (100.0, 50.0, 25.0) if quick else (100.0, 50.0, 25.0, 12.5, 6.25)
    return [
        {"rate": rate, "size": size, "nodes": nodes, "moves": moves}
        for rate in ((0.1, 1.0) if quick else (0.01, 0.1, 1.0))
        for size in sizes
    ]


def split_to(rows: list[Row]) -> Row:
    """Where splitting ends, from the largest cells on: it goes on while the false positives cost
    more than joining and leaving would in cells of half the side."""
    rows = sorted(rows, key=lambda row: -float(row.settings["size"]))
    for row, finer in pairwise(rows):
        if row.mean("wasted") <= finer.mean("control"):
            return row
    return rows[-1]


def judge(rows: list[Row]) -> list[str]:
    lines = []
    for rate in dict.fromkeys(row.settings["rate"] for row in rows):
        some = [row for row in rows if row.settings["rate"] == rate]
        best = min(some, key=lambda row: row.mean("total"))
        split = split_to(some)
        excess = 100.0 * (split.mean("total") / best.mean("total") - 1.0)
        lines.append(
            holds(
                f"{rate:g} a second and peer: the least traffic is with cells of "
                f"{best.settings['size']:g}; the rule splits down to {split.settings['size']:g}, "
                f"which costs {excess:.0f} % more (at most 10)",
                excess <= 10.0,
            )
        )
        finer = sorted(some, key=lambda row: -float(row.settings["size"]))
        good = all(
            after.mean("false") < row.mean("false") and after.mean("control") > row.mean("control")
            for row, after in pairwise(finer)
        )
        claim = f"{rate:g} a second and peer: smaller cells, fewer false positives and more control"
        lines.append(holds(claim, good))
    return lines


def charts(rows: list[Row]) -> dict[str, str]:
    ticks = sorted({float(row.settings["size"]) for row in rows})
    named = [(f"{rate} a second", some) for rate, some in shown.named(rows, "rate")]

    def frame(title: str, key: str) -> Frame:
        layers = shown.curves(named, "size", lambda row: row.mean(key))
        return Frame(title, layers, x_log=True, y_log=True, ticks=ticks)

    pictures = [
        frame("false positives a second, by the side of a cell", "wasted"),
        frame("joining and leaving cells: messages a second", "control"),
        frame("all messages a second", "total"),
    ]
    return {"figure-cells.svg": page(pictures, height=220)}


FIGURE = Figure(
    name="cells",
    title="false positives and control messages over the size of cells (6.2.2.3)",
    setting=f"A square of {SIDE:g}; machines: peers that hold {REACH:g} around them, move every "
    f"{PAUSE_S:g} s, and publish where they stand, so often a second each (rate)",
    points=points,
    run=run,
    columns=(
        Column("cells", "cells held"), Column("copies", "copies a publication"),
        Column("false", "false positives a publication"), Column("entries", "stamp entries"),
        Column("wasted", "false positives a second", 1), Column("control", "control a second", 1),
        Column("total", "messages a second", 1), *shown.COST,
    ),
    labels=("rate", "size", "nodes"),
    judge=judge,
    source="thesis",
    numbers=("cells", "6.2.2.3"),
    charts=charts,
    code=CODE,
    runs=5,
    runs_at=lambda point: 5,
)  # fmt: skip
