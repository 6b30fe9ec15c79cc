"""Figures 16 to 20 as tables: tuning the dynamic order, its course, and a change of popularity.

The model, and what the report leaves open about it, is in swaps.py.
"""

from __future__ import annotations

from typing import Any

from experiments.figure import Column, Figure, Row, holds
from experiments.points import Numbers, Settings
from experiments.total.ens import LEAN
from experiments.total.swaps import run, size

# The reading of figures 16 and 17 that comes nearest to the stated swaps (swap_fit.py), and the
# one that takes alpha and beta from the text's last words about them, as figures 18 to 20 do.
NEAREST = {"start": 3, "events": 1100}
DEFAULTS = {"start": 3, "events": 600}
# Alpha and beta, and the swaps stated for them.
PAIRS: dict[str, dict[tuple[float, float], str]] = {
    "nearest": {(0.1, 0.3): "15.1", (0.3, 0.3): "", (0.5, 0.3): "7.4 and 7.8", (0.5, 0.2): "",
                (0.5, 0.1): "51.8"},
    "defaults": {(0.1, 0.2): "15.1", (0.3, 0.2): "", (0.5, 0.2): "7.4", (0.1, 0.1): "51.8",
                 (0.1, 0.3): "7.8"},
}  # fmt: skip


def tuning(quick: bool) -> list[Settings]:
    """Figures 16 and 17 in both readings."""
    readings = {"nearest": size(quick) | NEAREST, "defaults": size(quick) | DEFAULTS}
    if quick:
        for settings in readings.values():
            settings["events"] = size(quick)["events"]
    return [
        {"reading": reading, "alpha": alpha, "beta": beta} | readings[reading]
        for reading, pairs in PAIRS.items()
        for alpha, beta in pairs
    ]


def run_tuning(reading: str, **settings: Any) -> Numbers:
    return run(metric="f", **settings)


def stated_swaps(settings: Settings) -> str:
    stated = PAIRS[settings["reading"]][settings["alpha"], settings["beta"]]
    return f"{stated} swaps" if stated else "shape"


def judge_tuning(rows: list[Row]) -> list[str]:
    lines: list[str] = []
    for reading, pairs in PAIRS.items():
        table = {
            (row.settings["alpha"], row.settings["beta"]): row
            for row in rows
            if row.settings["reading"] == reading
        }
        alphas = [table[alpha, _fixed(pairs, 1)] for alpha in (0.5, 0.3, 0.1)]
        betas = [table[_fixed(pairs, 0), beta] for beta in (0.3, 0.2, 0.1)]
        for figure, some, name in (("16", alphas, "alpha"), ("17", betas, "beta")):
            swaps = [row.mean("swaps") for row in some]
            shown = ", ".join(f"{count:.1f}" for count in swaps)
            claim = f"({figure}, {reading}) fewer swaps with a larger {name}: {shown}"
            lines.append(holds(claim, swaps == sorted(swaps)))
        late = [row.mean("late") for row in alphas]
        shown = ", ".join(f"{each:.1f}" for each in late)
        lines.append(
            holds(
                f"(16, {reading}) alpha 0.3 and 0.1 end alike, 0.5 above them: {shown} s",
                late[0] > 1.1 * late[1] and abs(late[1] - late[2]) < 0.1 * late[2],
            )
        )
        late = [row.mean("late") for row in betas]
        shown = ", ".join(f"{each:.1f}" for each in late)
        claim = f"(17, {reading}) the smaller beta, the lower the latency at the end: {shown} s"
        lines.append(holds(claim, late[0] > late[1] > late[2]))
        useless = [alphas[0], betas[0]]
        none = [row.mean("late") / row.mean("early") for row in useless]
        lines.append(
            holds(
                f"(16, 17, {reading}) no benefit with alpha 0.5, nor with beta 0.3: they end at "
                f"{none[0]:.0%} and {none[1]:.0%} of the latency of their first tenth",
                min(none) > 0.9,
            )
        )
    return lines


def _fixed(pairs: dict[tuple[float, float], str], place: int) -> float:
    """The value of alpha (0) or beta (1) that most of these pairs share."""
    values = [pair[place] for pair in pairs]
    return max(sorted({*values}), key=values.count)


def course(quick: bool) -> list[Settings]:
    """Figures 18, 19 and 20."""
    dynamic = {"metric": "f"}
    half = size(quick)["events"] // 2
    curves: list[Settings] = [
        {"curve": "best static", "begin": "best"},
        {"curve": "random static", "begin": "random"},
        {"curve": "dynamic, f", "begin": "random"} | dynamic,
        {"curve": "dynamic, rate", "begin": "random", "metric": "rate"},
        {"curve": "changed, f", "begin": "random", "shuffle_at": half} | dynamic,
        {"curve": "changed, rate", "begin": "random", "metric": "rate", "shuffle_at": half},
        {"curve": "dynamic, f from 0", "begin": "random", "start": 0} | dynamic,
        {"curve": "changed, f from 0", "begin": "random", "start": 0, "shuffle_at": half} | dynamic,
    ]
    return [curve | size(quick) for curve in curves]


def run_course(curve: str, **settings: Any) -> Numbers:
    return run(**settings)


def stated_course(settings: Settings) -> str:
    return "about 100 B at the end" if settings["curve"] == "dynamic, f" else "shape"


def judge_course(rows: list[Row]) -> list[str]:
    table = {row.settings["curve"]: row for row in rows}
    best, still, moving = (table[name] for name in ("best static", "random static", "dynamic, f"))
    changed, rated = table["changed, f"], table["changed, rate"]
    return [
        holds(
            f"(18) the dynamic order leaves the random one behind: {moving.mean('late'):.1f} s at "
            f"the end against {still.mean('late'):.1f} s",
            moving.mean("late") < 0.3 * still.mean("late"),
        ),
        holds(
            f"(18) and ends below the best static one, {best.mean('late'):.1f} s on average",
            moving.mean("late") < best.mean("late"),
        ),
        f"(18) median event at the end: {moving.mean('late_median'):.2f} s dynamic, "
        f"{best.mean('late_median'):.2f} s best static. Rare topics keep their random rank, and "
        "their few events carry the mean.",
        holds(
            f"(19) the stamp shrinks from {moving.mean('early_bytes'):.0f} to about 100 B: "
            f"{moving.mean('late_bytes'):.0f} B on average, "
            f"{moving.mean('late_bytes_median'):.0f} B for the median event; best static "
            f"{best.mean('late_bytes'):.0f} B",
            moving.mean("late_bytes") < 150,
        ),
        holds(
            f"(20) a peak at the change ({changed.mean('middle'):.1f} s before, "
            f"{changed.mean('peak'):.1f} s just after)",
            changed.mean("peak") > 2 * changed.mean("middle"),
        ),
        holds(
            f"(20) and back to earlier values: {changed.mean('late'):.1f} s at the end, "
            f"{moving.mean('late'):.1f} s without a change",
            changed.mean("late") < 1.3 * moving.mean("late"),
        ),
        f"(20) but not quite: the median event is at {changed.mean('late_median'):.2f} s and "
        f"{changed.mean('late_bytes_median'):.0f} B instead of {moving.mean('late_median'):.2f} s "
        f"and {moving.mean('late_bytes_median'):.0f} B, as the old popular topics cannot be moved "
        f"down. Swaps by a rate that decays in 30 s: {rated.mean('late_median'):.2f} s and "
        f"{rated.mean('late_bytes_median'):.0f} B. (Our machines' `rate` is another rule: it "
        "changes the whole order in one step.)",
        f"Counters from 0 instead of 3: {table['dynamic, f from 0'].mean('late'):.1f} s at the "
        f"end, {table['changed, f from 0'].mean('late'):.1f} s after the change.",
    ]


FIGURES = (
    Figure(
        name="16-17",
        title="tuning the dynamic topic order",
        setting="publications and subscriptions by power law 0.901, 1 event/s, random first order",
        points=tuning,
        run=run_tuning,
        columns=(
            Column("swaps", "swaps", 1),
            Column("early", "latency, first tenth [s]", 1),
            Column("late", "last sixth [s]", 1),
            Column("late_bytes", "stamp, last sixth [B]", 0),
        ),
        labels=("reading", "events", "alpha", "beta"),
        judge=judge_tuning,
        paper=stated_swaps,
        code=(*LEAN, "experiments/total/swaps.py"),
        numbers=(16, 17),
    ),
    Figure(
        name="18-20",
        title="static and dynamic order over time",
        setting="as figures 16 and 17, alpha 0.1, beta 0.2; popularity changes at half time",
        points=course,
        run=run_course,
        columns=(
            Column("early", "latency, first tenth [s]", 1),
            Column("middle", "before half time [s]", 1),
            Column("peak", "after half time [s]", 1),
            Column("late", "last sixth [s]", 1),
            Column("late_median", "median [s]", 2),
            Column("late_bytes", "stamp, last sixth [B]", 0),
            Column("late_bytes_median", "median [B]", 0),
            Column("swaps", "swaps", 1),
        ),
        labels=("curve",),
        judge=judge_course,
        paper=stated_course,
        code=(*LEAN, "experiments/total/swaps.py"),
        numbers=(18, 19, 20),
    ),
)
