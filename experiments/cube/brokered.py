"""Figure 5.12: 4,096 nodes, as one single tree of all (SRPT-S), or as brokers with guests (SRPT-B).

`Tree` is the mean time until a broker has an event, `B-S` what is left until a guest has it. The
thesis says that publishers "send a new message on average every 500 u.t., up to a limit of 128
messages". All of them together every 500 is one reading, and then nothing queues between two
events. Each of them is the other: then all 128 come within a moment.
"""

from __future__ import annotations

from random import Random

from experiments.chart import Frame, Layer, page
from experiments.cube import shown, thesis, workloads
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

MESSAGES = 128
GAP = 500.0
TOGETHER, EACH = "together", "each"
SINGLE = "SRPT-S"


def points(quick: bool) -> list[Settings]:
    nodes, counts = (128, (4, 16, 64)) if quick else (4096, (32, 256, 2048))
    layouts = [(SINGLE if curve == SRPT else curve, 0) for curve in PROTOCOLS]
    layouts += [("SRPT-B", count) for count in counts]
    return [
        {"curve": curve, "brokers": brokers, "every 500": every, "nodes": nodes}
        for every in (TOGETHER, EACH)
        for curve, brokers in layouts
    ]


def run(curve: str, brokers: int, nodes: int, seed: int, **every: str) -> Numbers:
    rng = Random(f"{seed}/{nodes}")
    build: Build = brokers_world if brokers else PROTOCOLS[SRPT if curve == SINGLE else curve]
    holders = range(brokers, nodes)
    setting = Setting(seed, nodes, {TOPIC: holders}, brokers=brokers)
    played = Run(build, setting)
    # Gaps of all publishers together: of so many, each on average every 500.
    gap = GAP if every["every 500"] == TOGETHER else GAP / len(holders)
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
    lines = []
    for every in (TOGETHER, EACH):
        mine = shown.where(rows, **{"every 500": every})
        few, some, many = (row for row in mine if row.settings["curve"] == "SRPT-B")
        single = shown.where(mine, curve=SINGLE)[0]
        lines.append(
            holds(
                f"[{every}] with {few.settings['brokers']} brokers B-S dominates: "
                f"{few.mean('guests'):.0f} of {few.mean('latency'):.0f}",
                few.mean("guests") > few.mean("tree"),
            )
        )
        lines.append(
            holds(
                f"[{every}] the fewer brokers, the shorter Tree and the longer B-S",
                few.mean("tree") < some.mean("tree") < many.mean("tree")
                and few.mean("guests") > some.mean("guests") > many.mean("guests"),
            )
        )
        lines.append(
            holds(
                f"[{every}] SRPT-B with {many.settings['brokers']} below SRPT-S: "
                f"{many.mean('latency'):.0f}, {single.mean('latency'):.0f}",
                single.exceeds(many, "latency"),
            )
        )
    return lines


def paper(settings: Settings) -> str:
    at = {"curve": "SRPT-B", "brokers": settings["brokers"]}
    below = thesis.text("5.12", "latency, VCube-PS below [%]", **at)
    return f"VCube-PS {below} % below" if below else "shape"


def charts(rows: list[Row]) -> dict[str, str]:
    frames = []
    for every in (TOGETHER, EACH):
        mine = shown.where(rows, **{"every 500": every})
        x = [float(place) for place in range(len(mine))]
        tree = [row.mean("tree") if row.values("tree") else row.mean("latency") for row in mine]
        whole = [row.mean("latency") for row in mine]
        names = ", ".join(f"{row.settings['curve']} {row.settings['brokers'] or ''}".strip()
                          for row in mine)  # fmt: skip
        layers = [
            Layer("bars", x, whole, "Tree + B-S", colour=1),
            Layer("bars", x, tree, "Tree", colour=0),
        ]
        frames.append(Frame(f"latency, a message every 500 {every}: {names}", layers))
    return {"figure-5.12.svg": page(frames, height=220)}


FIGURE = Figure(
    name="5.12",
    title="single trees of brokers",
    setting=f"{MESSAGES} events; t_pp 100; SRPT-S: machine Srpt; SRPT-B: machines Broker and "
    f"Guest; {shown.MEAN}",
    points=points,
    run=run,
    columns=(
        Column("tree", "Tree", 1), Column("guests", "B-S", 1), shown.LATENCY, shown.LAST,
        *shown.COST,
    ),
    labels=("every 500", "curve", "brokers", "nodes"),
    judge=judge,
    paper=paper,
    source="thesis",
    numbers=("5.12",),
    charts=charts,
    code=(*SOURCES, "experiments/cube/brokered.py"),
    runs=10,
    quick_runs=3,
    runs_at=lambda point: 10,
    workers=shown.WORKERS,
)  # fmt: skip
