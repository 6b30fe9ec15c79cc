"""Figure 5.2: of eight nodes 0, 1, 3, 5 and 6 hold the topic; node 0 is the single tree's root.

Each holder publishes once, alone. In a single tree an event of another node than the root goes to
the root first, and nodes 2 and 4 relay it.
"""

from __future__ import annotations

from experiments.cube import shown, thesis, vcube, versus
from experiments.cube.meter import Paths
from experiments.cube.world import PROTOCOLS, SOURCES, SRPT, TOPIC, Run, Setting
from experiments.figure import Column, Figure, Row
from experiments.points import Numbers, Settings

HOLDERS = (0, 1, 3, 5, 6)
ROOT = 0


def points(quick: bool) -> list[Settings]:
    return [{"curve": curve, "publisher": node} for curve in PROTOCOLS for node in HOLDERS]


def run(curve: str, publisher: int, seed: int) -> Numbers:
    setting = Setting(seed, 8, {TOPIC: HOLDERS}, {TOPIC: ROOT})
    played = Run(PROTOCOLS[curve], setting, meter=Paths)
    played.publish(0.0, publisher)
    played.go()
    assert isinstance(played.meter, Paths)
    depths = played.meter.depths
    others = [played.names[node] for node in HOLDERS if node != publisher]
    relays = [name for name in depths if int(name[1:]) not in HOLDERS]
    return {
        "relays": len(relays),
        "hops": sum(depths[name] for name in others) / len(others),
        "most": max(depths[name] for name in others),
        **played.numbers(),
    }


def judge(rows: list[Row]) -> list[str]:
    single = shown.where(rows, curve=SRPT)
    at_root = shown.only(single, publisher=ROOT)
    if at_root is None or len(single) == 1:
        return versus.example(rows)
    relays = thesis.stated("5.2", "relays", curve=SRPT)
    more = [row.mean("most") - at_root.mean("most") for row in single if row is not at_root]
    return [
        *versus.example(rows),
        shown.close("(5.2) relays of the single tree", at_root.mean("relays"), relays, 0.0),
        shown.close(
            "(5.2b) hops more than from the root, at most",
            max(more),
            thesis.stated("5.2", "hops more", curve=SRPT),
            0.0,
        ),
    ]


FIGURE = Figure(
    name="5.2",
    title="the trees of five subscribers of eight nodes",
    setting=f"8 nodes, root {ROOT}, holders 0, 1, 3, 5, 6, one event; {shown.SRPT_IS}",
    points=points,
    run=run,
    columns=(
        Column("relays", "relays", 0), Column("hops", "hops, mean", 2),
        Column("most", "hops, most", 0), shown.LATENCY, *shown.COST,
    ),
    labels=("curve", "publisher"),
    judge=judge,
    paper=lambda settings: thesis.text("5.2", "relays", curve=settings["curve"]) + " relays",
    source="thesis",
    numbers=("5.2",),
    code=(*SOURCES, "experiments/cube/example.py"),
    code_of=vcube.CODE_OF,
    runs=1,
    quick_runs=1,
)  # fmt: skip
