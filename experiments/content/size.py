"""How table 1's factor depends on what the paper does not say: how many subscriptions there are.

Trading at 100 updates/s per edge broker, with one subscription standing for 1 to 100: the poset has
150 to 15,000. Small, and the brokers have time for everything, so there is nothing to gain; the
larger, the more of a broker's time goes into updates.
"""

from __future__ import annotations

from typing import Any

from experiments.content.measure import measured
from experiments.content.panels import EVENTS, PARAMETRIC, SOURCES, factors
from experiments.figure import Column, Figure, Row
from experiments.points import Numbers, Settings

SUBSCRIBERS = 150
RATE_EACH = 10.0


def points(quick: bool) -> list[Settings]:
    return [
        {
            "price": price,
            "subscriptions": SUBSCRIBERS * stands_for,
            "seconds": 0.1 if quick else 1.5,
        }
        for price in ("counted", "told")
        for stands_for in ((1, 100) if quick else (1, 5, 20, 50, 100))
    ]


def run(price: str, subscriptions: int, seconds: float, seed: int) -> Numbers:
    def one(mode: str) -> Any:
        return measured(
            "at", "poset", mode, RATE_EACH, EVENTS["at"], subscriptions // SUBSCRIBERS, seconds,
            seed, price=price, warm_s=0.5 if seconds >= 1.0 else 0.1,
        )  # fmt: skip

    ours, theirs = one(PARAMETRIC), one("break")
    return {
        "parametric": ours["throughput"],
        "break": theirs["throughput"],
        "busy": ours["busy"],
        **factors([ours], [theirs]),
    }


def judge(rows: list[Row]) -> list[str]:
    lines = []
    for price in ("counted", "told"):
        some = [row for row in rows if row.settings["price"] == price]
        gains = ", ".join(
            f"{row.mean('throughput'):.2f} at {row.settings['subscriptions']:,}" for row in some
        )
        lines.append(f"[{price}] throughput with parameters over re-subscription: {gains}.")
    return lines


FIGURE = Figure(
    name="size",
    title="the factor and the number of subscriptions (not in the paper)",
    setting="algorithmic trading, poset, 100 updates/s per edge broker, break before make",
    points=points,
    run=run,
    columns=(
        Column("parametric", "parametric [1/s]"),
        Column("break", "break [1/s]"),
        Column("busy", "busiest broker, parametric [%]", 0, 100.0),
        Column("throughput", "throughput better by"),
        Column("delay", "delay better by"),
        Column("spurious", "spurious better by"),
    ),
    labels=("price", "subscriptions"),
    judge=judge,
    paper=lambda settings: "up to 4.4 / 3.0 / 6.0",
    source="paper",
    numbers=("size",),
    code=SOURCES,
    runs=1,
    quick_runs=1,
)
