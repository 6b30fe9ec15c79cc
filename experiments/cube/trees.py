"""Figures 2.9 and 4.8: every node publishes, over one single tree with root 0 or a tree of its own.

How a message reaches node 0 is not said: one hop, as in SRPT. The rate is not stated either; the
loads are those of chapter 4 (workloads.py), one message each. In 1,000 units of time node 0 sends
N log2 N copies of one unit each: 0.90 of its time with 128 nodes, 2.05 times too many with 256.
"""

from __future__ import annotations

from random import Random

from experiments.chart import Frame, page
from experiments.cube import shown, vcube, workloads
from experiments.cube.world import SOURCES, TOPIC, Run, Setting, srpt_world, vcube_world
from experiments.figure import Column, Figure, Row, holds
from experiments.points import Numbers, Settings

SINGLE, MULTIPLE = "single tree", "one tree a source"
TREES = {SINGLE: srpt_world, MULTIPLE: vcube_world}
BELOW = 128


def points(quick: bool) -> list[Settings]:
    loads = [*workloads.LOADS]
    return [
        {"curve": curve, "load": load, "nodes": nodes}
        for curve in TREES
        for load in (loads[2:] if quick else loads)
        for nodes in shown.sizes(quick, 1024)
    ]


def run(curve: str, load: str, nodes: int, seed: int) -> Numbers:
    rng = Random(f"{seed}/{nodes}")
    chosen = workloads.LOADS[load]
    setting = Setting(seed, nodes, {TOPIC: range(nodes)}, {TOPIC: 0})
    played = Run(TREES[curve], setting, workloads.links(chosen))
    workloads.one_each(played, range(nodes), chosen.at, rng)
    played.go()
    return {"wait": played.wait, "root": played.queue(0).mean_wait_s, **played.numbers()}


def judge(rows: list[Row]) -> list[str]:
    """The root is saturated if its copies wait for longer than a hop takes."""
    lines = []
    for load, mine in shown.named(shown.where(rows, curve=SINGLE), "load"):
        waits = {row.settings["nodes"]: row.mean("root") for row in mine}
        listed = ", ".join(f"{nodes}: {wait:.0f}" for nodes, wait in waits.items())
        good = all((wait > 100.0) == (nodes > BELOW) for nodes, wait in waits.items())
        lines.append(
            holds(f"[{load}] the root queues above {BELOW} nodes; its mean wait: {listed}", good)
        )
    return [*lines, *_judge_both(rows)]


def _judge_both(rows: list[Row]) -> list[str]:
    lines = []
    for load, mine in shown.named(shown.where(rows, curve=MULTIPLE), "load"):
        below = [row for row in mine if row.settings["nodes"] <= BELOW]
        ratios = {
            row.settings["nodes"]: single.mean("latency") / row.mean("latency")
            for row in mine
            if (single := shown.only(rows, **{**row.settings, "curve": SINGLE}))
        }
        listed = ", ".join(f"{nodes}: {ratio:.2f}" for nodes, ratio in ratios.items())
        small = [ratios[row.settings["nodes"]] for row in below if row.settings["nodes"] in ratios]
        # The hop to the root: the curves are one hop apart, not on top of each other.
        good = bool(small) and max(small) < 1.7
        claim = f"[{load}] single over multiple trees, alike up to {BELOW} (one hop): {listed}"
        lines.append(holds(claim, good))
        grows = mine[-1].mean("latency") / mine[0].mean("latency")
        hops = 5.005 / 1.714 if mine[-1].settings["nodes"] == 1024 else grows
        claim = f"[{load}] multiple trees grow gently: {grows:.1f} times, hops {hops:.1f} times"
        lines.append(holds(claim, grows < 1.3 * hops))
    return lines


def charts(rows: list[Row]) -> dict[str, str]:
    ticks = sorted({float(row.settings["nodes"]) for row in rows})
    layers = shown.curves(
        shown.named(rows, "curve", "load"), "nodes", lambda row: row.mean("latency")
    )
    frame = Frame("reception latency by nodes", layers, x_log=True, y_log=True, ticks=ticks)
    return {"figure-2.9.svg": page([frame], height=280)}


FIGURE = Figure(
    name="2.9",
    title="one tree for all sources (the same as 4.8)",
    setting="One message each; single tree: machine Srpt, root 0; one tree a source: machines of "
    f"VCube-PS; {shown.MEAN}",
    points=points,
    run=run,
    columns=(
        shown.LATENCY, shown.LAST, Column("wait", "wait in a queue", 1),
        Column("root", "wait at the root", 1), *shown.COST,
    ),
    labels=("curve", "load", "nodes"),
    judge=judge,
    source="thesis",
    numbers=("2.9", "4.8"),
    charts=charts,
    code=(*SOURCES, "experiments/cube/trees.py"),
    runs=40,
    quick_runs=5,
    runs_at=lambda point: shown.runs(point["nodes"] ** 2),
    code_of={MULTIPLE: vcube.SOURCES},
)  # fmt: skip
