"""Figure 5.10: 256 nodes, 128 topics that all of them hold, events by Zipf's law or evenly.

Each node publishes every 500 units of time on average (exponential gaps: a guess), until there are
2^k events in all. Single trees are scalable in the number of topics as long as none is popular.

In VCube-PS the law of the topics changes no tree and no queue. It changes what one publisher's
events wait for: with a window of 1 an event leaves when all members have acknowledged the one
before it in its topic. The thesis's "contention at the source" is in the latency `since the call`
of the application; `latency` begins when an event leaves.
"""

from __future__ import annotations

from random import Random
from typing import Any

from experiments.chart import Frame, page
from experiments.cube import shown, thesis, vcube, versus, workloads
from experiments.cube.meter import Trace
from experiments.cube.world import PROTOCOLS, SOURCES, SRPT, Run, Setting
from experiments.figure import Column, Figure, Row, holds
from experiments.points import Numbers, Settings

TOPICS = 128
GAP = 500.0
EVEN, ZIPF = "uniform", "Zipf"


def points(quick: bool) -> list[Settings]:
    nodes, powers = (64, range(5, 10)) if quick else (256, range(7, 15))
    return [
        {"curve": curve, "law": law, "nodes": nodes, "messages": 2**power}
        for curve in PROTOCOLS
        for law in (EVEN, ZIPF)
        for power in powers
    ]


def runs_at(point: Settings) -> int:
    """Five where it depends on the draw of the roots whether the popular one is saturated."""
    runs = shown.runs(point["nodes"] * point["messages"])
    drawn = point["curve"] == SRPT and point["law"] == ZIPF and point["messages"] > 10_000
    return max(5, runs) if drawn else runs


class Calls(Trace):
    """Latency since the application has called."""

    def __init__(self) -> None:
        super().__init__()
        self._called: dict[str, float] = {}
        # By event: when its deliveries were, summed up, and how many.
        self._delivered: dict[str, tuple[float, int]] = {}

    def write(self, table: str, row: Any) -> None:
        super().write(table, row)
        if table == "events":
            self._called[row.event] = row.published_at
        elif table == "deliveries" and row.publisher != row.subscriber:
            sums, count = self._delivered.get(row.event, (0.0, 0))
            self._delivered[row.event] = sums + row.delivered_at, count + 1

    @property
    def latency(self) -> float:
        """Mean over the deliveries."""
        waited = sum(sums - count * self._called[event]
                     for event, (sums, count) in self._delivered.items())  # fmt: skip
        return waited / sum(count for _, count in self._delivered.values())


def run(curve: str, law: str, nodes: int, messages: int, seed: int) -> Numbers:
    rng = Random(f"{seed}/{nodes}/{messages}")
    topics = [f"t{rank + 1}" for rank in range(TOPICS)]
    everybody = range(nodes)
    setting = Setting(seed, nodes, dict.fromkeys(topics, everybody))
    calls = Calls()
    played = Run(PROTOCOLS[curve], setting, trace=calls)
    weights = workloads.zipf(TOPICS, workloads.ZIPF if law == ZIPF else 0.0)
    workloads.stream(played, messages, topics, weights, GAP, rng)
    played.go()
    popular = played.queue(setting.root(topics[0]))
    return {
        "call": calls.latency,
        "wait": played.wait,
        "root": popular.mean_wait_s,
        **played.numbers(),
    }


def judge(rows: list[Row]) -> list[str]:
    lines = []
    for curve in PROTOCOLS:
        mine = shown.where(rows, curve=curve)
        most = max((row.settings["messages"] for row in shown.where(mine, law=ZIPF)), default=0)
        even, skewed = (shown.only(mine, law=law, messages=most) for law in (EVEN, ZIPF))
        if even is None or skewed is None:
            continue
        above = 100.0 * (skewed.mean("call") / even.mean("call") - 1.0)
        claim = f"{curve}, Zipf above uniform since the call at {most} messages [%]"
        if stated := shown.number(
            "5.10", "latency, Zipf above uniform [%]", curve=curve, messages=most
        ):
            lines.append(shown.close(claim, above, stated, 0.2))
        else:
            lines.append(holds(f"{claim}: {above:.1f}", skewed.exceeds(even, "call")))
    return [*lines, *versus.topics(rows)]


def paper(settings: Settings) -> str:
    at = {key: settings[key] for key in ("curve", "messages")}
    above = thesis.text("5.10", "latency, Zipf above uniform [%]", **at)
    return f"{above} % above uniform" if above and settings["law"] == ZIPF else "shape"


def charts(rows: list[Row]) -> dict[str, str]:
    ticks = sorted({float(row.settings["messages"]) for row in rows})
    even = {
        (row.settings["curve"], row.settings["messages"]): row.mean("call")
        for row in shown.where(rows, law=EVEN)
    }

    def theirs(row: Row) -> float | None:
        at = {key: row.settings[key] for key in ("curve", "messages")}
        above = shown.number("5.10", "latency, Zipf above uniform [%]", **at)
        uniform = even.get((at["curve"], at["messages"]))
        if above is None or uniform is None or row.settings["law"] != ZIPF:
            return None
        return uniform * (1.0 + above / 100.0)

    layers = shown.curves(
        shown.named(rows, "curve", "law"), "messages", lambda row: row.mean("call"), theirs
    )
    title = "latency since the call by messages (rings: so much above our uniform)"
    frame = Frame(title, layers, x_log=True, ticks=ticks, near=True)
    return {"figure-5.10.svg": page([frame], height=260)}


FIGURE = Figure(
    name="5.10",
    title="many topics",
    setting=f"{TOPICS} topics held by all nodes, each of which publishes every 500 on average; "
    f"t_pp 100; {shown.SRPT_IS}; {shown.MEAN}; root: of the most popular topic",
    points=points,
    run=run,
    columns=(
        shown.LATENCY, Column("call", "since the call", 1), shown.LAST,
        Column("wait", "wait in a queue", 1), Column("root", "wait at the root", 1), *shown.COST,
    ),
    labels=("curve", "law", "nodes", "messages"),
    judge=judge,
    paper=paper,
    source="thesis",
    numbers=("5.10",),
    charts=charts,
    code=(*SOURCES, "experiments/cube/topics.py"),
    runs=40,
    quick_runs=5,
    runs_at=runs_at,
    code_of=vcube.CODE_OF,
)  # fmt: skip
