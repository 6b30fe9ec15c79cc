"""Figure 3.1: the entries that a message carries, as a causal barrier and as a compressed clock.

"Messages are broadcast at a given rate and the source of each message is selected according to a
uniform distribution": neither the rate nor how many there are is stated. Both are fitted at 1,024
nodes, `RATE` to the barriers and the share `SHARE` of N messages to the clocks; the other sizes are
predictions. With many messages a clock would have hundreds of entries: between two messages of a
node there are N others.

Both runs of a pair publish the same at the same moments with the same delays, so that what a clock
names beyond the barrier is what the message rests on indirectly. The thesis's three numbers do not
fit each other: a mean of 47 against less than 6 is a mean of more than 41 indirect dependencies,
and cannot be "up to 31".
"""

from __future__ import annotations

from random import Random
from typing import Any, Literal

from msgspec import structs

from experiments.chart import Frame, page
from experiments.cube import shown, thesis, vcube, workloads
from experiments.cube.meter import Meter
from experiments.cube.world import SOURCES, TOPIC, Links, Run, Setting, vcube_world
from experiments.figure import Column, Figure, Row, holds
from experiments.points import Numbers, Settings, mean
from inorder.sim.laws import Normal
from inorder.sim.network import Model

LARGE = 1024
RATE = 0.012
SHARE = 0.115
LINKS = Links(propagation=Normal(mean=100.0, std=25.0))
BARRIER, CLOCK = "causal barrier", "vector clock"


class Stamps(Meter):
    """Notes how many entries each publication carries."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self.entries: dict[tuple[int, int], int] = {}

    def show(self, message: Any) -> None:
        super().show(message)
        for pub in vcube.publications(message):
            self.entries[pub.source, pub.number] = len(pub.body.places)


def play(nodes: int, stamps: Literal["barrier", "clock"], seed: int) -> Run:
    cube = vcube.Cube(stamps=stamps, window=16)
    setting = Setting(seed, nodes, {TOPIC: range(nodes)}, cube=cube)
    played = Run(vcube_world, setting, LINKS, meter=Stamps, paired=True)
    rng = Random(f"{seed}/{nodes}")
    at = 0.0
    for _ in range(max(1, round(SHARE * nodes))):
        at += workloads.exponential(1.0 / RATE)(rng)
        played.publish(at, rng.randrange(nodes))
    return played.go()


def run(nodes: int, seed: int) -> Numbers:
    barriers, clocks = play(nodes, "barrier", seed), play(nodes, "clock", seed)
    assert isinstance(barriers.meter, Stamps)
    assert isinstance(clocks.meter, Stamps)
    direct, whole = barriers.meter.entries, clocks.meter.entries
    beyond = [count - direct[key] for key, count in whole.items()]
    return {
        "messages": len(whole),
        BARRIER: mean(direct.values()),
        CLOCK: mean(whole.values()),
        "indirect": max(beyond),
        "indirect, mean": mean(beyond),
        "moved": barriers.meter.moved + clocks.meter.moved,
        "seconds": barriers.seconds + clocks.seconds,
    }


def points(quick: bool) -> list[Settings]:
    return [{"nodes": nodes} for nodes in shown.sizes(quick, LARGE)]


def judge(rows: list[Row]) -> list[str]:
    lines = []
    if row := shown.only(rows, nodes=LARGE):
        entries = thesis.stated("3.1", "entries", curve=CLOCK, nodes=LARGE)
        lines.append(shown.close("(3.1) entries of a clock", row.mean(CLOCK), entries, 0.1))
        most = thesis.stated("3.1", "entries", curve=BARRIER, nodes=LARGE)
        claim = f"(3.1) entries of a barrier: {row.mean(BARRIER):.2f} (thesis: < {most:g})"
        lines.append(holds(claim, row.mean(BARRIER) < most))
        indirect = thesis.stated("3.1", "indirect dependencies at most", nodes=LARGE)
        claim = "(3.1) indirect dependencies of one message, at most"
        lines.append(shown.close(claim, row.mean("indirect"), indirect, 0.1))
    if len(rows) > 3:
        grows = {name: rows[-1].mean(name) / rows[-3].mean(name) for name in (CLOCK, BARRIER)}
        lines.append(
            holds(
                f"(3.1) four times the nodes: {grows[CLOCK]:.1f} times the entries of a clock, "
                f"{grows[BARRIER]:.1f} times those of a barrier",
                grows[CLOCK] > 2.0 * grows[BARRIER],
            )
        )
    return lines


def paper(settings: Settings) -> str:
    if settings["nodes"] != LARGE:
        return "shape"
    return "47; < 6; up to 31"


def charts(rows: list[Row]) -> dict[str, str]:
    ticks = sorted({float(row.settings["nodes"]) for row in rows})
    layers = []
    for colour, name in enumerate((CLOCK, BARRIER)):

        def theirs(row: Row, name: str = name) -> float | None:
            return shown.number("3.1", "entries", curve=name, nodes=row.settings["nodes"])

        def ours(row: Row, name: str = name) -> float:
            return row.mean(name)

        for layer in shown.curves([(name, rows)], "nodes", ours, theirs):
            layers.append(structs.replace(layer, colour=colour))
    frame = Frame("entries of a message, by nodes", layers, x_log=True, ticks=ticks)
    return {"figure-3.1.svg": page([frame], height=260)}


FIGURE = Figure(
    name="3.1",
    title="entries of a message",
    setting=f"Rate {RATE:g}, {SHARE:g} N messages, both fitted at 1,024 nodes; t_pp normal, sd 25; "
    "the own number is no entry; machines: peers with stamps = barrier and clock",
    points=points,
    run=run,
    columns=(
        Column("messages", "messages", 0), Column(BARRIER, "barrier", 2), Column(CLOCK, "clock", 2),
        Column("indirect", "indirect, most", 1), Column("indirect, mean", "indirect, mean", 1),
        *shown.COST,
    ),
    labels=("nodes",),
    judge=judge,
    paper=paper,
    source="thesis",
    numbers=("3.1",),
    charts=charts,
    code=(*SOURCES, *vcube.SOURCES, "experiments/cube/entries.py"),
    runs=40,
    quick_runs=10,
    runs_at=lambda point: shown.runs(4 * SHARE * point["nodes"] ** 2),
)  # fmt: skip
