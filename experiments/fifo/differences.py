"""Figure 1c: differences of delays against the paper's sum of two Laplacians.

The scale is estimated from the differences as in the paper (moments). Three things are compared
with it: the samples, the exact law where there is one (inorder.protocols.fifo.hops), and the
paper's words: a sharp spike at zero that the curve misses, shorter tails than the curve's, and a
good fit for up to 8 hops. Pairs do not overlap, so the samples are independent.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from experiments.chart import Frame, bars, line, page
from experiments.fifo.network import SOURCES, Floats
from experiments.figure import Column, Figure, Row, holds
from experiments.points import Numbers, Settings
from inorder.protocols.fifo.hops import tail_distinct, tail_equal
from inorder.protocols.fifo.laplace import cdf, density, quantile, scale_by_moments
from inorder.sim.path import Path, stream

MEAN_S = 0.01
SHARES = (0.2, 0.05, 0.01)
# "At zero" is within this many scales on either side.
NEAR = 0.1
# In means of the slowest hop: far enough for 15 of them.
GRID = np.linspace(0.0, 40.0, 1601)
SLOW_S = (0.01, 0.01, 0.1, 0.01, 0.01)
HOPS = (1, 2, 3, 5, 8, 10, 15)


def points(quick: bool) -> list[Settings]:
    hops = (2, 5, 8, 15) if quick else HOPS
    cases = [*(f"{count} equal hops" for count in hops), "5 hops, one slow", "5 hops, drifting"]
    return [{"case": case, "pairs": 5000 if quick else 50_000} for case in cases]


def path_of(case: str) -> Path:
    hops = int(case.partition(" ")[0])
    if case.endswith("slow"):
        return Path(mean_s=SLOW_S, match=1.0)
    return Path(
        hops=hops, mean_s=MEAN_S, match=1.0, drift=5.0 if case.endswith("drifting") else 1.0
    )


def exact_tail(case: str) -> Callable[[float], float]:
    """The chance to exceed so many seconds."""
    if case.endswith("slow"):
        return lambda x: tail_distinct(x, SLOW_S)
    hops = int(case.partition(" ")[0])
    return lambda x: tail_equal(x, MEAN_S, hops)


def differences(case: str, pairs: int, seed: int) -> Floats:
    drawn = stream(path_of(case), 2 * pairs, seed)
    delays = drawn.arrived_s - drawn.sent_s
    return delays[1::2] - delays[::2]


def run(case: str, pairs: int, seed: int) -> Numbers:
    x = differences(case, pairs, seed)
    b = scale_by_moments(x.tolist())
    curve_near = 2.0 * cdf(NEAR * b, b) - 1.0
    found: Numbers = {
        "b": 1000.0 * b,
        "spike": float(np.mean(np.abs(x) < NEAR * b)) / curve_near,
    }
    for share in SHARES:
        beyond = float(np.mean(np.abs(x) > quantile(1.0 - share, b))) / 2.0
        found[f"beyond {share}"] = beyond
    if not case.endswith("drifting"):
        # One law, whatever the seed.
        found |= exact(case)
    counts, edges = np.histogram(x / b, np.linspace(-6.0, 6.0, 81), density=True)
    middles = (edges[1:] + edges[:-1]) / 2.0
    found["x"] = middles.tolist()
    found["y"] = counts.tolist()
    found["curve"] = [density(each, 1.0) for each in middles.tolist()]
    return found


@lru_cache
def exact(case: str) -> Numbers:
    """The same from the law, with the scale that infinitely many samples would give."""
    tail = exact_tail(case)
    x = GRID * max(path_of(case).means_s)
    beyond = np.array([tail(each) for each in x.tolist()])
    b = 2.0 / 3.0 * 2.0 * float(np.trapezoid(beyond, x))
    curve = np.array([1.0 - cdf(each, b) for each in x.tolist()])
    found: Numbers = {
        "exact spike": (1.0 - 2.0 * tail(NEAR * b)) / (2.0 * cdf(NEAR * b, b) - 1.0),
        "distance": float(np.abs(beyond - curve).max()),
    }
    for share in SHARES:
        found[f"exact {share}"] = tail(quantile(1.0 - share, b))
    return found


def judge(rows: list[Row]) -> list[str]:
    table = {row.settings["case"]: row for row in rows}
    five, eight, fifteen = (table[f"{hops} equal hops"] for hops in (5, 8, 15))
    slow, drifting = table["5 hops, one slow"], table["5 hops, drifting"]
    return [
        holds(
            "at 5 equal hops a spike at zero stands out of the curve: the samples are "
            f"{five.mean('spike'):.2f} times as dense there, the exact law "
            f"{five.mean('exact spike'):.2f} times",
            five.mean("spike") > 1.05,
        ),
        holds(
            "the density around zero grows with the hops and the curve is less dense there: exact "
            f"law over curve {five.mean('exact spike'):.2f}, {eight.mean('exact spike'):.2f}, "
            f"{fifteen.mean('exact spike'):.2f} at 5, 8, 15 hops",
            five.mean("exact spike") < eight.mean("exact spike") < fifteen.mean("exact spike"),
        ),
        "More hops bring the difference closer to a normal law, which is flatter at zero, so five "
        "Laplacians instead of two cannot be what makes the spike. Unequal hops can: with one slow "
        f"broker it is {slow.mean('spike'):.2f} times the curve, and so can a load that drifts: "
        f"{drifting.mean('spike'):.2f} times.",
        holds(
            "real tails are shorter than the curve's: beyond its 1 % point lie "
            f"{five.mean('exact 0.01'):.2%}, {eight.mean('exact 0.01'):.2%}, "
            f"{fifteen.mean('exact 0.01'):.2%} at 5, 8, 15 equal hops",
            fifteen.mean("exact 0.01") < eight.mean("exact 0.01") < five.mean("exact 0.01") < 0.01,
        ),
        f"Not everywhere (E-F9): beyond the 20 % point lie {five.mean('exact 0.2'):.1%} at 5 equal "
        f"hops; with one slow broker {slow.mean('exact 0.01'):.2%} beyond the 1 % point, drifting "
        f"{drifting.mean('beyond 0.01'):.2%}: the latch is too short there.",
        holds(
            "two Laplacians fit up to 8 hops reasonably well: largest distance of the distribution "
            f"functions {five.mean('distance'):.3f} at 5, {eight.mean('distance'):.3f} at 8",
            eight.mean("distance") < 0.03,
        ),
        f"Beyond 8 it hardly becomes worse: {fifteen.mean('distance'):.3f} at 15 equal hops.",
    ]


def charts(rows: list[Row]) -> dict[str, str]:
    frames = []
    for row in rows:
        if row.settings["case"].startswith("5 "):
            first = row.runs[0]
            layers = [
                bars(first["x"], first["y"], "samples"),
                line(first["x"], first["curve"], "two Laplacians"),
            ]
            frames.append(Frame(f"difference of delays [b], {row.settings['case']}", layers))
    return {"figure-1c.svg": page(frames, height=220)}


FIGURE = Figure(
    name="1c",
    title="differences of delays and two Laplacians",
    setting="streams of one path, 10 ms a hop; one slow: the third hop 100 ms; drifting: hops 1 to "
    "5 times as slow within 100 s; beyond: the share above the curve's 20, 5 and 1 % points",
    points=points,
    run=run,
    columns=(
        Column("b", "scale b [ms]", 2),
        Column("spike", "at zero, samples / curve", 3),
        Column("exact spike", "exact / curve", 3),
        Column("distance", "exact: distance", 4),
        Column("beyond 0.2", "beyond 20 % [%]", 2, 100.0),
        Column("beyond 0.05", "beyond 5 % [%]", 2, 100.0),
        Column("beyond 0.01", "beyond 1 % [%]", 2, 100.0),
        Column("exact 0.01", "exact beyond 1 % [%]", 2, 100.0),
    ),
    labels=("case",),
    judge=judge,
    paper=lambda settings: "spike at 0, fits the tails, up to 8 hops",
    source="paper",
    numbers=("1c",),
    code=(*SOURCES, "experiments/fifo/differences.py"),
    runs=5,
    quick_runs=2,
    charts=charts,
)
