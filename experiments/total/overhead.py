"""Figures 13 and 14: what stamps cost in bytes and messages, against subscriptions a subscriber.

The report gives neither the number of nodes nor of topics here; we take the 1000 topics of its
later figures and 1000 nodes, so that groups really grow with the number of subscriptions. `best`
ranks topics by popularity, `worst` the other way round, `uniform` has no popular ones. A group
needs two common subscribers, as in the report; `ours` needs one.

Numbers are expectations over the publication model: given the subscriptions, nothing is left to
chance.
"""

from __future__ import annotations

import numpy as np

from experiments.figure import Column, Figure, Row, holds
from experiments.points import Numbers, Settings
from experiments.total.ens import LEAN
from experiments.total.groups import entries, foreign_share, sequenced
from experiments.total.laws import STEEP, generator, pareto, subscriptions, uniform

ENTRY_BYTES = 24
NODES = 1000
TOPICS = 1000
CASES = ("best", "worst", "uniform")


def points(quick: bool) -> list[Settings]:
    pers = (5, 20, 100) if quick else (2, 5, 10, 20, 50, 100)
    return [{"case": case, "per": per} for per in pers for case in CASES]


def run(case: str, per: int, seed: int) -> Numbers:
    weights = uniform(TOPICS) if case == "uniform" else pareto(TOPICS, STEEP)
    held = subscriptions(weights, NODES, per, generator("overhead", seed, case, per))
    order = np.arange(TOPICS)[::-1] if case == "worst" else np.arange(TOPICS)
    numbers: Numbers = {}
    for label, threshold in (("", 2), ("ours_", 1)):
        together = sequenced(held, threshold)
        sizes = entries(together, order)
        of_all, per_manager = foreign_share(together, order, weights)
        numbers[f"{label}bytes"] = float(ENTRY_BYTES * (weights @ sizes))
        numbers[f"{label}foreign"] = of_all
        numbers[f"{label}foreign_per_manager"] = per_manager
    return numbers


def judge(rows: list[Row]) -> list[str]:
    table = {(row.settings["case"], row.settings["per"]): row for row in rows}
    pers = sorted({per for _, per in table})
    few, many = pers[0], pers[-1]
    lines = []
    for number, key, unit, times in ((13, "bytes", "B", 1.0), (14, "foreign", "%", 100.0)):
        value = {place: times * row.mean(key) for place, row in table.items()}
        ends = "; ".join(
            f"{case} {value[case, few]:.0f} to {value[case, many]:.0f} {unit}" for case in CASES
        )
        lines.append(f"({number}) from {few} to {many} subscriptions: {ends}.")
        for other in ("worst", "uniform"):
            below = [per for per in pers if value["best", per] < value[other, per]]
            lines.append(
                holds(f"({number}) best order below {other}", below == pers)
                + f" (with {', '.join(map(str, below))} subscriptions it is)"
            )
        grown = value["best", many] / value["best", few]
        lines.append(
            holds(
                f"({number}) best order not affected by the number of subscriptions (ours grows "
                f"{grown:.1f} times)",
                grown < 1.2,
            )
        )
    lines.append(
        "A threshold of one common subscriber (ours, needed for correctness) costs few bytes in "
        "the best order and many where few subscribers have anything in common. The report gives "
        "no size for these figures: 1000 nodes and 1000 topics are our choice."
    )
    return lines


FIGURE = Figure(
    name="13-14",
    title="bytes and messages of stamps",
    setting="1000 nodes, 1000 topics, publications and subscriptions by power law 0.901 in best "
    "and worst order, and uniform; 24 B an entry",
    points=points,
    run=run,
    columns=(
        Column("bytes", "stamp [B]", 0),
        Column("foreign", "foreign messages [%]", 1, 100.0),
        Column("foreign_per_manager", "the same, mean of managers [%]", 1, 100.0),
        Column("ours_bytes", "threshold 1: stamp [B]", 0),
        Column("ours_foreign", "threshold 1: foreign [%]", 1, 100.0),
    ),
    labels=("per", "case"),
    judge=judge,
    code=(*LEAN, "experiments/total/overhead.py"),
    numbers=(13, 14),
)
