"""Figure 5.8 and table 5.1: every node subscribes, and a quarter or all of them publish once.

The root of the single tree sends log2 N copies of each event. With all of 1,024 nodes publishing
within 1,000 units of time, 10,240 copies come to it in the time in which it sends 1,000.

The thesis says of that root "an average load of 9240 (sd 4617)", and puts it among the nodes with
4,096 to 8,192 messages. 10 * 1,024 - 1,000 = 9,240 is the length of its queue when the last event
comes, the longest there is, and half of that is its mean: 4,617 fits the class, 9,240 does not.

How the mean is meant decides the small classes. A node with k children has k copies at once and
then nothing until the next event: a copy meets a queue of (k + 1) / 2, itself counted, which puts
k = 1 to 3 (448 nodes) into the class to 2 and k = 4 to 7 (60 nodes) into that to 4, as in the
thesis. Over time it is less. Both are shown, of PUB messages only: a leaf's own event on its way to
the root would put all 512 leaves into the class to 2. Means are taken to two digits, as such an
event may stand before one of a node's 1,024 groups of copies.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from random import Random

from experiments.chart import Frame, page
from experiments.cube import shown, thesis, vcube, versus, workloads
from experiments.cube.meter import Lines, Meter
from experiments.cube.world import PROTOCOLS, SOURCES, SRPT, TOPIC, VCUBE, Links, Run, Setting
from experiments.figure import Column, Figure, Row, holds
from experiments.points import Numbers, Settings
from inorder.sim.laws import Constant
from inorder.sim.models import Queue
from inorder.sim.network import Model

CODE = (*SOURCES, "experiments/cube/several.py")
WITHIN = 1000.0
CLASSES = (0.0, 2.0, 4.0, 8.0, 16.0, 32.0, 4096.0, 8192.0, float("inf"))
MET, OVER_TIME = "met by a copy", "over time"


def play(
    curve: str,
    nodes: int,
    share: int,
    propagation: int,
    seed: int,
    meter: Callable[[Model], Meter] = Meter,
) -> Run:
    rng = Random(f"{seed}/{nodes}/{share}")
    setting = Setting(seed, nodes, {TOPIC: range(nodes)})
    links = Links(propagation=Constant(mean=float(propagation)))
    played = Run(PROTOCOLS[curve], setting, links, meter=meter)
    publishers = sorted(rng.sample(range(nodes), nodes * share // 100))
    workloads.one_each(played, publishers, workloads.even(WITHIN), rng)
    return played.go()


def points_58(quick: bool) -> list[Settings]:
    return [
        {"curve": curve, "propagation": propagation, "share": share, "nodes": nodes}
        for curve in PROTOCOLS
        for propagation in (100, 1000)
        for share in (25, 100)
        for nodes in shown.sizes(quick)
    ]


def run_58(curve: str, propagation: int, share: int, nodes: int, seed: int) -> Numbers:
    played = play(curve, nodes, share, propagation, seed)
    root = played.queue(played.setting.root(TOPIC))
    return {"wait": played.wait, "root": root.mean_wait_s, **played.numbers()}


def judge_58(rows: list[Row]) -> list[str]:
    lines = []
    full = shown.where(rows, curve=SRPT, share=100, propagation=100)
    before = [row for row in full if row.settings["nodes"] <= 128]
    behind = [row for row in full if row.settings["nodes"] >= 256]
    waits = {row.settings["nodes"]: row.mean("root") for row in full}
    listed = ", ".join(f"{nodes}: {wait:.0f}" for nodes, wait in waits.items())
    quiet = all(row.mean("root") < 0.5 * row.mean("latency") for row in before)
    loud = all(row.mean("root") > 0.5 * row.mean("latency") for row in behind)
    lines.append(
        holds(f"(5.8a) SRPT's root saturates above 128 nodes; its mean wait: {listed}",
              quiet and loud)
    )  # fmt: skip
    if len(behind) > 1:
        grows = [after.mean("latency") / row.mean("latency") for row, after in pairwise(behind)]
        lines.append(
            holds(
                "(5.8a) from there on SRPT grows linearly: twice the nodes, "
                f"{min(grows):.2f} to {max(grows):.2f} times the latency",
                min(grows) > 1.8,
            )
        )
    return [*lines, *_judge_slow(full, rows), *versus.publishers(rows)]


def _judge_slow(full: list[Row], rows: list[Row]) -> list[str]:
    """Figure (b) against (a), up to the largest size that both have."""
    slow = shown.where(rows, curve=SRPT, share=100, propagation=1000)
    sizes = {row.settings["nodes"] for row in full} & {row.settings["nodes"] for row in slow}
    if not sizes:
        return []
    growth = {}
    for propagation, some in ((100, full), (1000, slow)):
        least, largest = (shown.only(some, nodes=nodes) for nodes in (min(sizes), max(sizes)))
        assert least is not None
        assert largest is not None
        growth[propagation] = largest.mean("latency") / least.mean("latency")
    return [
        holds(
            f"(5.8b) with t_pp 1000 SRPT grows less: {growth[1000]:.1f} times up to {max(sizes)} "
            f"nodes, {growth[100]:.1f} times with 100",
            growth[1000] < growth[100],
        )
    ]


def charts_58(rows: list[Row]) -> dict[str, str]:
    ticks = sorted({float(row.settings["nodes"]) for row in rows})

    def theirs(row: Row) -> float | None:
        """What the thesis states are ratios to another row: here to ours."""
        settings = row.settings
        at = {key: settings[key] for key in ("nodes", "share")}
        if settings["propagation"] != 100:
            return None
        if settings["curve"] == SRPT:
            ratio = shown.number("5.8", "latency, SRPT over VCube-PS", **at)
            base = shown.only(rows, **{**settings, "curve": VCUBE})
        else:
            more = shown.number(
                "5.8", "latency, 100 % above 25 % [%]", curve=VCUBE, nodes=settings["nodes"]
            )
            ratio = 1.0 + more / 100.0 if more is not None and settings["share"] == 100 else None
            base = shown.only(rows, **{**settings, "share": 25})
        return ratio * base.mean("latency") if ratio is not None and base else None

    def frame(title: str, propagation: int) -> Frame:
        some = shown.where(rows, propagation=propagation)
        curves = shown.named(some, "curve", "share")
        layers = shown.curves(curves, "nodes", lambda row: row.mean("latency"), theirs)
        return Frame(title, layers, x_log=True, y_log=True, ticks=ticks)

    frames = [
        frame("(a) latency by nodes, t_pp 100 (rings: the thesis's ratios to our rows)", 100),
        frame("(b) t_pp 1000", 1000),
    ]
    return {"figure-5.8.svg": page(frames, height=260)}


def points_51(quick: bool) -> list[Settings]:
    nodes = 128 if quick else 1024
    return [
        {"curve": curve, "mean": mean, "nodes": nodes}
        for curve in PROTOCOLS
        for mean in (MET, OVER_TIME)
    ]


def run_51(curve: str, mean: str, nodes: int, seed: int) -> Numbers:
    played = play(curve, nodes, 100, 100, seed, partial(Lines, kind="Pub", unhindered=102.0))
    assert isinstance(played.meter, Lines)
    period = played.world.agenda.now
    lengths = []
    for name in played.names:
        line = played.meter.lines.get(name, Queue())
        # A copy takes one unit of time: so many stand before it as it waits units of time.
        length = 1.0 + line.mean_wait_s if line.copies else 0.0
        if mean == OVER_TIME:
            length = (line.waited_s + line.copies) / period
        lengths.append(round(length, 2))
    root = played.setting.root(TOPIC)
    return {
        **classes(lengths),
        "root": lengths[root],
        "longest": 1.0 + played.queue(root).longest_s,
        **played.numbers(),
    }


def classes(lengths: list[float]) -> Numbers:
    """How many are in each of the thesis's classes.

    >>> classes([0.0, 2.0, 2.1, 9000.0])["to 2"]
    1
    """
    counts = dict.fromkeys(NAMES, 0)
    for length in lengths:
        place = next(place for place, most in enumerate(CLASSES) if length <= most)
        counts[NAMES[place]] += 1
    return dict(counts)


NAMES = (*(f"{'' if most == 0 else 'to '}{most:g}" for most in CLASSES[:-1]), "more")


def judge_51(rows: list[Row]) -> list[str]:
    vcubes = versus.queues(rows, NAMES[:-1], MET)
    row = shown.only(rows, curve=SRPT, mean=MET, nodes=1024)
    if row is None:
        return vcubes
    lines = []
    for name in NAMES[:-1]:
        theirs = thesis.stated("table 5.1", SRPT, queue=name, nodes=1024)
        lines.append(shown.close(f"SRPT nodes with a queue {name}", row.mean(name), theirs, 0.0))
    at = {"curve": SRPT, "nodes": 1024}
    lines.append(
        shown.close("SRPT's root: the mean is the thesis's sd", row.mean("root"),
                    thesis.stated("table 5.1", "root, sd", **at), 0.01)
    )  # fmt: skip
    lines.append(
        shown.close("SRPT's root: the longest is the thesis's average", row.mean("longest"),
                    thesis.stated("table 5.1", "root", **at), 0.01)
    )  # fmt: skip
    return [*lines, *vcubes]


def paper_51(settings: Settings) -> str:
    if settings["nodes"] != 1024:
        return "shape"
    counts = (
        thesis.stated("table 5.1", settings["curve"], queue=name, nodes=1024) for name in NAMES[:-1]
    )
    return " / ".join(f"{count:g}" for count in counts)


FIGURES = [
    Figure(
        name="5.8",
        title="every node subscribes, 25 % or 100 % publish once",
        setting=f"One event a publisher, even in [0, 1000]; {shown.SRPT_IS}; {shown.MEAN}",
        points=points_58,
        run=run_58,
        columns=(
            shown.LATENCY, shown.LAST, Column("wait", "wait in a queue", 1),
            Column("root", "wait at the root", 1), *shown.COST,
        ),
        labels=("curve", "propagation", "share", "nodes"),
        judge=judge_58,
        source="thesis",
        numbers=("5.8",),
        charts=charts_58,
        code=CODE,
        runs=40,
        quick_runs=5,
        runs_at=lambda point: shown.runs(point["nodes"] ** 2 * point["share"] / 100),
        code_of=vcube.CODE_OF,
    ),
    Figure(
        name="table-5.1",
        title="nodes by the mean length of their output queue",
        setting=f"Every node publishes once, even in [0, 1000]; t_pp 100; {shown.SRPT_IS}",
        points=points_51,
        run=run_51,
        columns=(
            *(Column(name, name, 1) for name in NAMES), Column("root", "root, mean", 0),
            Column("longest", "root, longest", 0), *shown.COST,
        ),
        labels=("curve", "mean", "nodes"),
        judge=judge_51,
        paper=paper_51,
        source="thesis",
        numbers=("table-5.1",),
        code=CODE,
        runs=40,
        quick_runs=3,
        runs_at=lambda point: shown.runs(point["nodes"] ** 2),
        code_of=vcube.CODE_OF,
    ),
]  # fmt: skip
