"""Figure 9: up to 1,000 updates a second and subscriber, and what smoothing makes of them.

20 brokers, 100 publishers, 150 subscribers with windows (workloads.py). The paper's numbers are
events a second of an unknown total, so only the factor can be compared. Smoothing (not in the
paper, its future work) sends broader windows at once and narrower ones after a hold of two round
trips. The virtual time is short: 0.4 s have 60,000 updates.
"""

from __future__ import annotations

from typing import Any

from experiments.content.measure import measured
from experiments.content.panels import SOURCES
from experiments.figure import Column, Figure, Row, holds
from experiments.points import Numbers, Settings

EVENTS_A_SECOND = 2000.0
HOLD_S = 0.04
WAYS = {
    "parametric": ("index", "parametric", 0.0),
    "parametric, smoothed": ("index", "parametric", HOLD_S),
    "break": ("index", "break", 0.0),
    "make": ("index", "make", 0.0),
    "Siena (poset, break)": ("poset", "break", 0.0),
}


def points(quick: bool) -> list[Settings]:
    rates = (30,) if quick else (10, 100, 1000)
    return [
        {"updates by": way, "rate": rate, "seconds": 0.05 if quick else 0.3}
        for way in WAYS
        for rate in rates
        if rate <= 100 or not way.startswith("Siena")
    ]


def run(rate: int, seconds: float, seed: int, **rest: Any) -> Numbers:
    engine, mode, hold_s = WAYS[rest["updates by"]]
    return measured(
        "scale", engine, mode, rate, EVENTS_A_SECOND, 1, seconds, seed,
        hold_s=hold_s, warm_s=0.1 if seconds >= 0.1 else 0.05,
    )  # fmt: skip


def judge(rows: list[Row]) -> list[str]:
    table = {(row.settings["updates by"], row.settings["rate"]): row for row in rows}
    low, high = (pick({rate for _, rate in table}) for pick in (min, max))

    def throughput(way: str, rate: int) -> float:
        return table[way, rate].mean("throughput")

    ours, theirs = throughput("parametric", high), throughput("break", high)
    kept = ours / throughput("parametric", low)
    smooth = table["parametric, smoothed", high]
    return [
        holds(
            f"at {high} updates/s parameters carry 2.25 times as much as re-subscription, "
            f"ours {ours / theirs:.2f} (break)",
            ours / theirs > 1.6,
        ),
        holds(f"the parametric curve is nearly flat: {kept:.0%} kept at {high}/s", kept > 0.85),
        f"with smoothing (hold {1000 * HOLD_S:.0f} ms) {smooth.mean('throughput'):.1f} instead of "
        f"{ours:.1f} events/s, {smooth.mean('spurious'):.1f} instead of "
        f"{table['parametric', high].mean('spurious'):.1f} spurious, busiest broker "
        f"{smooth.mean('busy'):.0%} instead of {table['parametric', high].mean('busy'):.0%}.",
    ]


FIGURE = Figure(
    name="9",
    title="throughput scalability",
    setting=f"{EVENTS_A_SECOND:.0f} events/s in all, selectivity 0.1; rate in updates/s per "
    "subscriber",
    points=points,
    run=run,
    columns=(
        Column("throughput", "throughput [1/s]", 1),
        Column("spurious", "spurious [1/s]", 1),
        Column("propagation", "propagation [ms]", 0, 1000.0),
        Column("confirmed", "confirmed [%]", 0, 100.0),
        Column("busy", "busiest broker [%]", 0, 100.0),
    ),
    labels=("updates by", "rate"),
    judge=judge,
    paper=lambda settings: {
        ("parametric", 1000): "> 9000 in all", ("break", 1000): "4000 in all",
    }.get((settings["updates by"], settings["rate"]), "shape"),
    source="paper",
    numbers=(9,),
    code=SOURCES,
    runs=1,
    quick_runs=1,
)  # fmt: skip
