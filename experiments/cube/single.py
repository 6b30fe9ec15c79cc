"""Figures 5.6 and 5.7: one publisher, one event, subscribers drawn evenly.

The subscribers hear after some hops of 102 and the line at each node on the way. `far first`: the
copy with the largest branch leaves first, as in all other figures. The thesis's CHILDREN names the
nearest cluster first; `near first` is that order, for single trees.
"""

from __future__ import annotations

from itertools import pairwise
from random import Random

from experiments.chart import Frame, page
from experiments.cube import shown, thesis, vcube, versus
from experiments.cube.meter import Paths
from experiments.cube.world import PROTOCOLS, SOURCES, SRPT, TOPIC, Run, Setting
from experiments.figure import Column, Figure, Row, holds
from experiments.points import Numbers, Settings

CODE = (*SOURCES, "experiments/cube/single.py")
NEAR, FAR = "near first", "far first"
LARGEST, QUICK_LARGEST = 4096, 128


def orders(curve: str) -> tuple[str, ...]:
    return (FAR, NEAR) if curve == SRPT else (FAR,)


def points_56(quick: bool) -> list[Settings]:
    return [
        {"curve": curve, "order": order, "share": share, "nodes": nodes}
        for curve in PROTOCOLS
        for order in orders(curve)
        for share in (25, 100)
        for nodes in shown.sizes(quick)
    ]


def points_57(quick: bool) -> list[Settings]:
    nodes = QUICK_LARGEST if quick else LARGEST
    return [
        {"curve": curve, "order": order, "share": share, "nodes": nodes}
        for curve in PROTOCOLS
        for order in orders(curve)
        for share in range(10, 101, 10)
    ]


def run(curve: str, order: str, share: int, nodes: int, seed: int) -> Numbers:
    rng = Random(f"{seed}/{nodes}/{share}")
    holders = sorted(rng.sample(range(nodes), nodes * share // 100))
    setting = Setting(seed, nodes, {TOPIC: holders}, far_first=order == FAR)
    played = Run(PROTOCOLS[curve], setting, meter=Paths)
    publisher = rng.choice(holders)
    played.publish(0.0, publisher)
    played.go()
    assert isinstance(played.meter, Paths)
    depths = played.meter.depths
    others = [played.names[node] for node in holders if node != publisher]
    relays = {*depths} - {played.names[node] for node in holders}
    pubs = played.meter.kinds.get("Pub", 0)
    return {
        "pubs": pubs,
        "each": pubs / len(holders),
        "relays": len(relays),
        "tree": (len(relays) + len(holders)) / nodes,
        "hops": sum(depths[name] for name in others) / len(others),
        **played.numbers(),
    }


def judge_56(rows: list[Row]) -> list[str]:
    lines = []
    for curve in PROTOCOLS:
        for order in orders(curve):
            mine = shown.where(rows, curve=curve, order=order)
            lines += _against(mine, f"{curve}, {order}")
    full = shown.where(rows, curve=SRPT, order=FAR, share=100)
    steps = [after.mean("latency") - row.mean("latency") for row, after in pairwise(full)]
    if steps:
        claim = "(5.6a) with 100 % the latency is proportional to log2 N: a doubling adds "
        claim += f"{min(steps):.1f} to {max(steps):.1f}"
        lines.append(holds(claim, max(steps) < 1.25 * min(steps)))
    return [*lines, *versus.by_size(rows)]


def _against(rows: list[Row], name: str) -> list[str]:
    row = shown.only(rows, nodes=LARGEST, share=25)
    if row is None:
        return []
    at = {"curve": row.settings["curve"], "nodes": LARGEST, "share": 25}
    return [
        shown.close(f"(5.6a) {name}: latency", row.mean("latency"), _stated("latency", **at)),
        shown.close(
            f"(5.6b) {name}: PUB a subscriber", row.mean("each"), _stated("PUB a subscriber", **at)
        ),
    ]


def _stated(quantity: str, **at: object) -> float:
    return thesis.stated("5.6", quantity, **at)


def paper_56(settings: Settings) -> str:
    at = {key: settings[key] for key in ("curve", "nodes", "share")}
    latency, pubs = (thesis.text("5.6", what, **at) for what in ("latency", "PUB a subscriber"))
    return f"{latency}; {pubs} a subscriber" if latency else "shape"


def judge_57(rows: list[Row]) -> list[str]:
    lines = []
    for order in orders(SRPT):
        mine = shown.where(rows, curve=SRPT, order=order)
        latencies = [row.mean("latency") for row in mine]
        if not latencies:
            continue
        varies = 100.0 * (max(latencies) / min(latencies) - 1.0)
        most = thesis.stated("5.7", "latency varies by [%]", curve=SRPT, nodes=LARGEST)
        claim = f"(5.7a) SRPT, {order}, varies by {varies:.1f} % (thesis: at most {most} %)"
        lines.append(holds(claim, varies <= most))
    far = shown.where(rows, curve=SRPT, order=FAR)
    hops = [row.mean("hops") for row in far]
    if not far:
        return [*lines, *versus.by_share(rows)]
    lines.append(
        holds(
            f"(5.7b) the mean way stays the same: {min(hops):.2f} to {max(hops):.2f} hops "
            "(thesis: around 7)",
            max(hops) < 1.05 * min(hops),
        )
    )
    full, some = shown.only(far, share=100), shown.only(far, share=30, nodes=LARGEST)
    if full:
        lines.append(holds("(5.7b) no relays at 100 %", full.mean("relays") == 0.0))
    if some:
        at = {"curve": SRPT, "nodes": LARGEST, "share": 30}
        relays = thesis.stated("5.7", "relays", **at)
        lines.append(shown.close("(5.7b) relays at 30 %", some.mean("relays"), relays))
        lines.append(
            holds(
                f"(5.7b) the tree has almost half of the nodes: {some.mean('tree'):.1%}",
                0.45 < some.mean("tree") <= 0.5,
            )
        )
    return [*lines, *versus.by_share(rows)]


def paper_57(settings: Settings) -> str:
    at = {key: settings[key] for key in ("curve", "nodes", "share")}
    relays = thesis.text("5.7", "relays", **at)
    return f"{relays} relays" if relays else "shape"


def charts_56(rows: list[Row]) -> dict[str, str]:
    ticks = sorted({float(row.settings["nodes"]) for row in rows})

    def frame(title: str, key: str, quantity: str, only: list[Row], y_log: bool) -> Frame:
        def theirs(row: Row) -> float | None:
            at = {name: row.settings[name] for name in ("curve", "nodes", "share")}
            value = shown.number("5.6", quantity, **at)
            if value is None or quantity == "latency":
                return value
            return value * at["nodes"] * at["share"] / 100

        layers = shown.curves(
            shown.named(only, "curve", "order", "share"), "nodes", lambda row: row.mean(key), theirs
        )
        return Frame(title, layers, x_log=True, y_log=y_log, ticks=ticks)

    quarter = [row for row in rows if row.settings["share"] == 25]
    return {
        "figure-5.6.svg": page(
            [
                frame("(a) latency by nodes", "latency", "latency", rows, False),
                frame("(b) PUB messages, 25 % subscribers", "pubs", "PUB a subscriber", quarter,
                      True),
            ],
            height=260,
        )
    }  # fmt: skip


def charts_57(rows: list[Row]) -> dict[str, str]:
    ticks = sorted({float(row.settings["share"]) for row in rows})

    def theirs(row: Row) -> float | None:
        at = {name: row.settings[name] for name in ("curve", "nodes", "share")}
        return shown.number("5.7", "relays", **at)

    curves = shown.named(rows, "curve", "order")
    latency = shown.curves(curves, "share", lambda row: row.mean("latency"))
    relays = shown.curves(curves[:1], "share", lambda row: row.mean("relays"), theirs)
    return {
        "figure-5.7.svg": page(
            [
                Frame("(a) latency by % of subscribers", latency, ticks=ticks, near=True),
                Frame("(b) relays of the single tree", relays, ticks=ticks),
            ],
            height=260,
        )
    }


COLUMNS = (
    shown.LATENCY, shown.LAST, Column("pubs", "PUB", 0), Column("each", "PUB a subscriber", 3),
    Column("relays", "relays", 0), Column("tree", "nodes in the tree [%]", 1, 100.0),
    Column("hops", "hops", 2), *shown.COST,
)  # fmt: skip

FIGURES = [
    Figure(
        name="5.6",
        title="one publisher, by the size of the network",
        setting=f"One event; t_pp 100; {shown.SRPT_IS}; {shown.MEAN}",
        points=points_56,
        run=run,
        columns=COLUMNS,
        labels=("curve", "order", "share", "nodes"),
        judge=judge_56,
        paper=paper_56,
        source="thesis",
        numbers=("5.6",),
        charts=charts_56,
        code=CODE,
        runs=40,
        quick_runs=10,
        runs_at=lambda point: shown.runs(point["nodes"]),
        code_of=vcube.CODE_OF,
    ),
    Figure(
        name="5.7",
        title="one publisher, by the share of subscribers",
        setting=f"One event; t_pp 100; {shown.SRPT_IS}; {shown.MEAN}",
        points=points_57,
        run=run,
        columns=COLUMNS,
        labels=("curve", "order", "nodes", "share"),
        judge=judge_57,
        paper=paper_57,
        source="thesis",
        numbers=("5.7",),
        charts=charts_57,
        code=CODE,
        runs=40,
        quick_runs=10,
        runs_at=lambda point: shown.runs(point["nodes"]),
        code_of=vcube.CODE_OF,
    ),
]
