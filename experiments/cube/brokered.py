"""Figure 5.12: 4,096 nodes, as one single tree of all (SRPT-S), or as brokers with guests (SRPT-B).

`Tree` is the mean time until a broker has an event, `B-S` the rest until a guest has it. Two things
are open, and all combinations are rows:

- Publishers "send a new message on average every 500 u.t., up to a limit of 128 messages". How many
  of them? 1 is one message every 500, and then nothing queues between two events. 4,096 is every
  node, and then all 128 come within a moment. 50 is between: the roots are just about saturated.
- Copies for guests stand in their broker's queue like those for other brokers (`one` queue, as the
  thesis's model has it), or leave by a queue of their own (`two`). In one queue the root broker has
  as much to send as the root of SRPT-S or more, and cannot be the faster of the two.
"""

from __future__ import annotations

from random import Random
from typing import Any

from experiments.chart import Frame, bars, page
from experiments.cube import shown, thesis, vcube, versus, workloads
from experiments.cube.meter import Meter
from experiments.cube.srpt_brokers import Copy
from experiments.cube.world import (
    PROTOCOLS,
    SOURCES,
    SRPT,
    TOPIC,
    Build,
    Run,
    Setting,
    brokers_world,
)
from experiments.figure import Column, Figure, Row, holds
from experiments.points import Numbers, Settings
from inorder.sim.network import Model

MESSAGES = 128
GAP = 500.0
SINGLE = "SRPT-S"
ONE, TWO = "one", "two"


class Doors(Meter):
    """Copies for guests leave by a queue of their own."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._inner = model
        self._door = ""
        self.arrival = self._arrival

    def show(self, message: Any) -> None:
        super().show(message)
        self._door = "/guests" if isinstance(message, Copy) else ""

    def _arrival(self, source: str, target: str, size: int, now: float, rng: Random) -> float:
        return self._inner.arrival(source + self._door, target, size, now, rng)


def points(quick: bool) -> list[Settings]:
    nodes, counts = (128, (4, 16, 64)) if quick else (4096, (32, 256, 2048))
    layouts = [(SINGLE if curve == SRPT else curve, 0, ONE) for curve in PROTOCOLS]
    layouts += [("SRPT-B", count, queues) for queues in (ONE, TWO) for count in counts]
    return [
        {"curve": curve, "brokers": brokers, "queues": queues, "publishers": publishers,
         "nodes": nodes}
        for publishers in (1, 50, nodes)
        for curve, brokers, queues in layouts
    ]  # fmt: skip


def run(curve: str, brokers: int, queues: str, publishers: int, nodes: int, seed: int) -> Numbers:
    rng = Random(f"{seed}/{nodes}/{publishers}")
    build: Build = brokers_world if brokers else PROTOCOLS[SRPT if curve == SINGLE else curve]
    holders = range(brokers, nodes)
    setting = Setting(seed, nodes, {TOPIC: holders}, brokers=brokers)
    played = Run(build, setting, meter=Meter if queues == ONE else Doors)
    # So many, each every 500 on average: together so many times as often.
    gap = GAP / publishers
    at = 0.0
    for _ in range(MESSAGES):
        at += workloads.exponential(gap)(rng)
        played.publish(at, rng.choice(holders))
    played.go()
    if not brokers:
        return played.numbers()
    tree, whole = (played.latencies(group) for group in ("b", "g"))
    numbers = {
        "tree": tree.reception,
        "guests": whole.reception - tree.reception,
        "latency": whole.reception,
        "last": whole.to_the_last,
    }
    return {**played.numbers(), **numbers}


def judge(rows: list[Row]) -> list[str]:
    """The thesis's claims about single trees, under each reading."""
    lines = []
    for publishers in sorted({row.settings["publishers"] for row in rows}):
        some = shown.where(rows, publishers=publishers)
        single = shown.only(some, curve=SINGLE)
        for queues in (ONE, TWO):
            brokered = shown.where(some, curve="SRPT-B", queues=queues)
            if single is None or len(brokered) < 3:
                continue
            few, middle, many = brokered
            reading = f"[{publishers} publishers, {queues}]"
            lines += [
                holds(
                    f"{reading} with {few.settings['brokers']} brokers B-S dominates: "
                    f"{few.mean('guests'):.0f} of {few.mean('latency'):.0f}",
                    few.mean("guests") > few.mean("tree"),
                ),
                holds(
                    f"{reading} the fewer brokers, the shorter Tree and the longer B-S",
                    few.mean("tree") < middle.mean("tree") < many.mean("tree")
                    and few.mean("guests") > middle.mean("guests") > many.mean("guests"),
                ),
                holds(
                    f"{reading} {many.settings['brokers']} brokers below SRPT-S: "
                    f"{many.mean('latency'):.0f}, {single.mean('latency'):.0f}",
                    many.mean("latency") < single.mean("latency"),
                ),
            ]
    return [*lines, *versus.brokers(rows)]


def paper(settings: Settings) -> str:
    at = {"curve": "SRPT-B", "brokers": settings["brokers"]}
    below = thesis.text("5.12", "latency, VCube-PS below [%]", **at)
    return f"VCube-PS {below} % below" if below else "shape"


def charts(rows: list[Row]) -> dict[str, str]:
    frames = []
    for publishers in sorted({row.settings["publishers"] for row in rows}):
        some = shown.where(rows, publishers=publishers)
        x = [float(place) for place in range(len(some))]
        tree = [row.mean("tree") if row.values("tree") else row.mean("latency") for row in some]
        names = [_name(row.settings) for row in some]
        layers = [
            bars(x, [row.mean("latency") for row in some], "Tree and B-S"),
            bars(x, tree, "Tree, or all", names),
        ]
        frames.append(Frame(f"latency, {publishers} publishers", layers))
    return {"figure-5.12.svg": page(frames, height=220)}


def _name(settings: Settings) -> str:
    if not settings["brokers"]:
        return str(settings["curve"])
    return f"SRPT-B\n{settings['brokers']}, {settings['queues']}"


FIGURE = Figure(
    name="5.12",
    title="single trees of brokers",
    setting=f"{MESSAGES} events, each publisher every {GAP:g} on average; t_pp 100; SRPT-S: "
    f"machine Srpt; SRPT-B: machines Broker and Guest; {shown.MEAN}",
    points=points,
    run=run,
    columns=(
        Column("tree", "Tree", 1), Column("guests", "B-S", 1), shown.LATENCY, shown.LAST,
        *shown.COST,
    ),
    labels=("publishers", "curve", "brokers", "queues", "nodes"),
    judge=judge,
    paper=paper,
    source="thesis",
    numbers=("5.12",),
    charts=charts,
    code=(*SOURCES, "experiments/cube/brokered.py"),
    runs=3,
    quick_runs=3,
    runs_at=lambda point: 3,
    code_of=vcube.CODE_OF,
)  # fmt: skip
