"""Figure 5.11: members come and go. A unit of time is a millisecond.

Every member stays for an exponential time of median t_med and is replaced at that moment; a member
publishes every 500 ms. The thesis gives no number of nodes: 4,096 here, and for 4,000 subscribers
8,192 beside it.

Figure (b) names rates of 1 to 10 % "per minute" with t_med from 69 to 7 s. Medians of 69, 17 and
7 s are 1, 4 and 10 % a *second* (ln 2 / t_med), and so are its waits: at 10 % the root sends twice
as much as it can, and copies that wait for 10 s on average are in a run of about 20 s, not of 120
minutes. Per second over 20 s is one reading, per minute over 10 minutes the other. In (a), "46
leaves per minute" of 4,000 members with t_med 1 min are 46 a second; the other reading takes the
46 a minute, which is a t_med of 60 min.

A run ends with its last publication and goes on until nothing is on its way.
"""

from __future__ import annotations

from math import inf, log
from random import Random

from experiments.chart import Frame, page
from experiments.cube import shown, thesis, vcube, versus, workloads
from experiments.cube.world import PROTOCOLS, SOURCES, SRPT, TOPIC, VCUBE, Run, Setting
from experiments.figure import Column, Figure, Row, holds
from experiments.points import Numbers, Settings

CODE = (*SOURCES, "experiments/cube/churn.py")
EVERY_MS = 500.0
MINUTE_MS = 60_000.0
LENGTH_MS = {"second": 20_000.0, "minute": 10.0 * MINUTE_MS}
NODES, QUICK_NODES = 4096, 128
STATIC = "static"


def play(
    curve: str, nodes: int, subscribers: int, median_ms: float, length_ms: float, seed: int
) -> Numbers:
    rng = Random(f"{seed}/{nodes}/{subscribers}")
    members = sorted(rng.sample(range(nodes), subscribers))
    setting = Setting(seed, nodes, {TOPIC: members})
    played = Run(PROTOCOLS[curve], setting)
    changes = workloads.churn(played, median_ms, EVERY_MS, length_ms, rng)
    played.go()
    root = played.queue(setting.root(TOPIC))
    return {
        "changes": changes / 2.0 / (length_ms / 1000.0),
        "false": played.account("relays" if curve == VCUBE else "relayed")
        / played.meter.kinds["Pub"],
        "wait": played.wait,
        "root": root.mean_wait_s,
        "longest": root.longest_s,
        **played.numbers(),
    }


def moves(nodes: int, subscribers: int, median_ms: float, length_ms: float) -> float:
    """About so many copies in a run of VCube-PS: who joins asks every node and is answered by every
    member, who leaves tells every member, and all of it is acknowledged."""
    changes = subscribers * log(2.0) / median_ms * length_ms
    return changes * (2 * nodes + 4 * subscribers) + length_ms / EVERY_MS * 2 * subscribers


# (a) Numbers of subscribers and session times.


def points_a(quick: bool) -> list[Settings]:
    nodes = QUICK_NODES if quick else NODES
    sizes = (16, 32, 62, 125) if quick else (500, 1000, 2000, 4000)
    most = sizes[-1]
    settings = [
        {"curve": curve, "changes a": "second", "t_med min": median, "nodes": nodes,
         "subscribers": subscribers}
        for curve in PROTOCOLS
        for median in (STATIC, 60, 30, 1)
        for subscribers in sizes
    ]  # fmt: skip
    for curve in PROTOCOLS:
        rare = {"curve": curve, "changes a": "minute", "t_med min": 1, "nodes": nodes}
        settings.append({**rare, "subscribers": most})
        if not quick:
            large = {"curve": curve, "changes a": "second", "nodes": 2 * NODES}
            settings += [
                {**large, "t_med min": median, "subscribers": most} for median in (STATIC, 1)
            ]
    return settings


def run_a(curve: str, nodes: int, subscribers: int, seed: int, **how: object) -> Numbers:
    return play(curve, nodes, subscribers, _median_a(how), LENGTH_MS[str(how["changes a"])], seed)


def _median_a(how: Settings) -> float:
    minutes = how["t_med min"]
    # What comes in a second and is called a minute comes 60 times rarer.
    factor = 60.0 if how["changes a"] == "minute" else 1.0
    return inf if minutes == STATIC else float(str(minutes)) * MINUTE_MS * factor


def runs_at_a(point: Settings) -> int:
    if point["curve"] != VCUBE:
        return 3
    length_ms = LENGTH_MS[point["changes a"]]
    copies = moves(point["nodes"], point["subscribers"], _median_a(point), length_ms)
    return min(3, shown.runs(copies))


def judge_a(rows: list[Row]) -> list[str]:
    lines = []
    fast = thesis.stated(
        "5.11a", "latency over static", curve=SRPT, subscribers=4000, **{"t_med min": 1}
    )
    for row in shown.where(rows, curve=SRPT):
        settings = row.settings
        if settings["t_med min"] == STATIC:
            continue
        static = shown.only(
            rows, **{**settings, "t_med min": STATIC, "changes a": "second"}
        )  # fmt: skip
        if static is None:
            continue
        ratio = row.mean("latency") / static.mean("latency")
        name = (
            f"(5.11a) SRPT, {settings['subscribers']} of {settings['nodes']}, t_med "
            f"{settings['t_med min']} min [a {settings['changes a']}]"
        )
        if settings["subscribers"] == 4000 and settings["t_med min"] == 1:
            lines.append(shown.close(f"{name} over static", ratio, fast, 0.25))
            positives = thesis.stated(
                "5.11a", "false positives [%]", curve=SRPT, subscribers=4000, **{"t_med min": 1}
            )
            lines.append(
                shown.close(f"{name}, false positives [%]", 100.0 * row.mean("false"), positives,
                            0.25)
            )  # fmt: skip
        else:
            most = thesis.stated("5.11a", "latency above static [%]", curve=SRPT)
            above = 100.0 * (ratio - 1.0)
            lines.append(
                holds(f"{name}: {above:+.1f} % of static (thesis: up to {most} %)",
                      abs(above) <= most)
            )  # fmt: skip
    return [*lines, *versus.sessions(rows)]


def paper_a(settings: Settings) -> str:
    if settings["subscribers"] == 4000 and settings["t_med min"] == 1:
        return "3.56 times static, 2.74 % false"
    return "static" if settings["t_med min"] == STATIC else "within 1.4 % of static"


def charts_a(rows: list[Row]) -> dict[str, str]:
    ticks = sorted({float(row.settings["subscribers"]) for row in rows})
    some = [
        row
        for row in shown.where(rows, **{"changes a": "second"})
        if row.settings["nodes"] != 2 * NODES
    ]
    static = {
        (row.settings["curve"], row.settings["subscribers"]): row.mean("latency")
        for row in some
        if row.settings["t_med min"] == STATIC
    }

    def theirs(row: Row) -> float | None:
        at = {key: row.settings[key] for key in ("curve", "subscribers", "t_med min")}
        ratio = shown.number("5.11a", "latency over static", **at)
        still = static.get((at["curve"], at["subscribers"]))
        return None if ratio is None or still is None else ratio * still

    layers = shown.curves(
        shown.named(some, "curve", "t_med min"), "subscribers", lambda row: row.mean("latency"),
        theirs,
    )  # fmt: skip
    title = "(a) latency [ms] by subscribers, t_med in minutes (rings: so much over our static)"
    frame = Frame(title, layers, x_log=True, ticks=ticks, near=True)
    return {"figure-5.11a.svg": page([frame], height=280)}


# (b) Rates of change.


def points_b(quick: bool) -> list[Settings]:
    nodes, subscribers = (QUICK_NODES, 31) if quick else (NODES, 1000)
    rates = {"second": (1, 2, 3, 4, 5, 7, 10), "minute": (1, 4, 5, 10)}
    if quick:
        rates = {"second": (1, 10), "minute": (10,)}
    return [
        {"curve": curve, "a": reading, "percent": percent, "nodes": nodes,
         "subscribers": subscribers}
        for curve in PROTOCOLS
        for reading, percents in rates.items()
        for percent in percents
    ]  # fmt: skip


def run_b(curve: str, a: str, percent: int, nodes: int, subscribers: int, seed: int) -> Numbers:
    return play(curve, nodes, subscribers, _median_b(a, percent), LENGTH_MS[a], seed)


def _median_b(a: str, percent: int) -> float:
    return log(2.0) / (percent / 100.0) * (1000.0 if a == "second" else MINUTE_MS)


def runs_at_b(point: Settings) -> int:
    if point["curve"] != VCUBE:
        return 3
    median = _median_b(point["a"], point["percent"])
    copies = moves(point["nodes"], point["subscribers"], median, LENGTH_MS[point["a"]])
    return min(3, shown.runs(copies))


def judge_b(rows: list[Row]) -> list[str]:
    lines = []
    for reading in LENGTH_MS:
        mine = shown.where(rows, curve=SRPT, a=reading)
        for percent in (5, 10):
            row = shown.only(mine, percent=percent, nodes=NODES)
            stated = thesis.stated("5.11b", "wait ms", curve=SRPT, percent=percent)
            if row is not None:
                claim = f"(5.11b) SRPT, {percent} % a {reading}: wait at the root [ms]"
                lines.append(shown.close(claim, row.mean("root"), stated, 0.4))
        waits = {row.settings["percent"]: row.mean("root") for row in mine}
        listed = ", ".join(f"{percent}: {wait:.0f}" for percent, wait in waits.items())
        before = [wait for percent, wait in waits.items() if percent < 4]
        behind = [wait for percent, wait in waits.items() if percent > 4]
        if before and behind and mine[0].settings["nodes"] == NODES:
            lines.append(
                holds(
                    f"(5.11b) SRPT's root saturates from 4 % a {reading} on; its wait: {listed}",
                    max(before) < 50.0 < 200.0 < min(behind),
                )
            )
    return [*lines, *versus.rates(rows)]


def paper_b(settings: Settings) -> str:
    at = {key: settings[key] for key in ("curve", "percent")}
    wait = thesis.text("5.11b", "wait ms", **at)
    return f"wait {wait} ms" if wait else "shape"


def charts_b(rows: list[Row]) -> dict[str, str]:
    ticks = sorted({float(row.settings["percent"]) for row in rows})

    def theirs(row: Row) -> float | None:
        at = {key: row.settings[key] for key in ("curve", "percent")}
        return shown.number("5.11b", "wait ms", **at) if row.settings["a"] == "second" else None

    curves = shown.named(rows, "curve", "a")
    waits = shown.curves(curves, "percent", lambda row: row.mean("root"), theirs)
    latency = shown.curves(curves, "percent", lambda row: row.mean("latency"))
    return {
        "figure-5.11b.svg": page(
            [
                Frame("(b) latency [ms] by changes [%]", latency, y_log=True, ticks=ticks),
                Frame("wait at the root [ms]", waits, y_log=True, ticks=ticks),
            ],
            height=260,
        )
    }


COLUMNS = (
    Column("changes", "leaves a second", 2), shown.LATENCY, shown.LAST,
    Column("false", "false positives [%]", 2, 100.0), Column("wait", "wait in a queue", 1),
    Column("root", "wait at the root", 1), Column("longest", "longest there", 0), *shown.COST,
)  # fmt: skip
SETTING = (
    f"A publication every 500 ms; t_pp 100 ms; {shown.SRPT_IS}, which passes changes on; times in "
    f"ms; {shown.MEAN}; static and a second: 20 s, a minute: 10 min"
)

FIGURES = [
    Figure(
        name="5.11a",
        title="churn by subscribers and session times",
        setting=SETTING,
        points=points_a,
        run=run_a,
        columns=COLUMNS,
        labels=("curve", "changes a", "t_med min", "nodes", "subscribers"),
        judge=judge_a,
        paper=paper_a,
        source="thesis",
        numbers=("5.11a",),
        charts=charts_a,
        code=CODE,
        runs=3,
        quick_runs=2,
        runs_at=runs_at_a,
        code_of=vcube.CODE_OF,
    ),
    Figure(
        name="5.11b",
        title="churn by rates of change",
        setting=SETTING,
        points=points_b,
        run=run_b,
        columns=COLUMNS,
        labels=("curve", "a", "percent", "nodes", "subscribers"),
        judge=judge_b,
        paper=paper_b,
        source="thesis",
        numbers=("5.11b",),
        charts=charts_b,
        code=CODE,
        runs=3,
        quick_runs=2,
        runs_at=runs_at_b,
        code_of=vcube.CODE_OF,
    ),
]
