"""Figures 3a and 3b: violations with and without ordering, and what the order costs in time.

46 brokers of low degree, diameter 15, 10 clients each: 46 publishers and 414 subscribers, of whom
some follow each publisher. Brokers work in parallel, 10 ms on average, over links of 10 ms. The
paper gives no rate and no selectivity. The settings:

- `model`: what the paper's model assumes. 100 messages a second, 20 % wanted, processing times
  independent and exponential, nothing else.
- `uneven`: the same, but 2 brokers are 10 times as slow, so that pairs need very different waits.
- `congested`: what probably happened in its testbed (errata E-F5). 2 % wanted, every broker's delay
  swells by 0.3 s and back in 30 s, and the receiver compares delays however far apart they are, so
  that the swell leaks into the scale and it waits longer than its P_t asks for.
- `congested, near`: the same, but pairs more than a second apart are not compared.
"""

from __future__ import annotations

from functools import lru_cache, partial
from math import inf
from typing import Any

import numpy as np

from experiments.fifo.effect_claims import charts, judge, paper
from experiments.fifo.network import SOURCES, Network, Sent, generator, poisson
from experiments.fifo.receivers import Lanes
from experiments.figure import Column, Figure
from experiments.points import Numbers, Settings

BROKERS = {
    "count": 46, "shape": "long", "diameter": 15,
    "link": {"law": "constant", "mean": 0.01},
    "processing": {"law": "exponential", "mean": 0.01},
}  # fmt: skip
PUBLISHERS, SUBSCRIBERS = 46, 414
RATE = 100.0
# Selectivity and what is special about the brokers.
WORLDS: dict[str, tuple[float, dict[str, Any]]] = {
    "model": (0.2, {}),
    "uneven": (0.2, {"slow": 2, "slow_factor": 10.0}),
    "congested": (0.02, {"congestion": {"period": 30.0, "height": 0.3}}),
}

PAPERS = [f"P-{share}-{record}" for share in ("0.05", "0.2") for record in (0, 5, 25)]
STATIC = ["CST-25", "CST-50", "CST-100", "CST-250"]
TUNED = ["CST = P-0.05-0", "CST = P-0.05-25", "CST+record = P-0.05-25", "ours = P-0.05-25"]
RECEIVERS = [
    "none", *STATIC, *PAPERS, "printed-0.05-25", "ours-0.05-25", "ours-0.01-25", *TUNED,
]  # fmt: skip
SHORT = ["none", "P-0.05-0", "P-0.05-25"]
# A quick run does without these.
LEFT_OUT = {"CST-25", "CST-50", "CST-100", "P-0.2-5"}
# Of the full run and of the quick one.
SECONDS = {"model": (20, 6), "uneven": (20, 5), "congested": (150, 40)}


def points(setting: str, quick: bool) -> list[Settings]:
    sizes: Settings = {"seconds": SECONDS[setting][quick], "followers": 1 if quick else 3}
    receivers = [each for each in RECEIVERS if not (quick and each in LEFT_OUT)]
    found: list[Settings] = [{"setting": setting, "receiver": each, **sizes} for each in receivers]
    if setting == "congested":
        near = f"{setting}, near"
        found += [{"setting": near, "receiver": each, **sizes} for each in SHORT]
    return found


@lru_cache(maxsize=1)
def lanes(world: str, seconds: int, followers: int, seed: int) -> Lanes:
    match, special = WORLDS[world]
    network = Network({**BROKERS, **special}, PUBLISHERS, SUBSCRIBERS)
    names = [f"p{number}" for number in range(1, PUBLISHERS + 1)]
    sent: dict[str, Sent] = {
        name: poisson([RATE], float(seconds), match, generator("effect", seed, name))
        for name in names
    }
    mixed = generator("effect", seed, "followers").permutation(SUBSCRIBERS).tolist()
    who = {
        name: [f"s{1 + place}" for place in mixed[rank * followers : (rank + 1) * followers]]
        for rank, name in enumerate(names)
    }
    return Lanes(network.record(sent, who, seed))


def run(setting: str, receiver: str, seconds: int, followers: int, seed: int) -> Numbers:
    world = setting.partition(",")[0]
    # The defect of the congested setting: messages are compared however far apart they are.
    pair_gap_s = inf if setting == "congested" else 1.0
    scene = lanes(world, seconds, followers, seed)
    raw, _ = scene.play("none")
    result, tuned = scene.play(receiver, pair_gap_s)
    waits_ms = 1000.0 * np.asarray(result.waits_s)
    least, low, median, high, p90, most = np.quantile(
        waits_ms, [0.0, 0.25, 0.5, 0.75, 0.9, 1.0]
    ).tolist()
    return {
        "received": result.received,
        "late": result.late,
        "inverted": result.inverted,
        "late_share": result.late / result.received,
        "avoided": 1.0 - result.late / raw.late,
        "avoided_pairs": 1.0 - result.inverted / raw.inverted,
        "extra": float(waits_ms.mean()),
        "least": least, "low": low, "median": median, "high": high, "p90": p90, "most": most,
        "held": result.held / result.received,
        "longest": 1000.0 * result.longest_s,
        "tuned": tuned,
    }  # fmt: skip


COLUMNS = (
    Column("late", "late", 0),
    Column("inverted", "inverted pairs", 0),
    Column("avoided", "late avoided [%]", 1, 100.0),
    Column("avoided_pairs", "pairs avoided [%]", 1, 100.0),
    Column("extra", "extra, mean", 1),
    Column("low", "q1", 1),
    Column("median", "median", 1),
    Column("high", "q3", 1),
    Column("p90", "p90", 1),
    Column("most", "max", 1),
    Column("held", "held [%]", 1, 100.0),
    Column("tuned", "tuned to (s; share)", 4),
)


def figure(setting: str, name: str, title: str, words: str, numbers: tuple[str, ...]) -> Figure:
    return Figure(
        name=name,
        title=title,
        setting=f"46 brokers, diameter 15, 460 clients, {words}; every pair's arrivals recorded "
        "once in a world without ordering and played to all receivers; extra delay in ms, "
        "quartiles over pairs",
        points=partial(points, setting),
        run=run,
        columns=COLUMNS,
        labels=("setting", "receiver"),
        judge=partial(judge, setting),
        paper=paper,
        source="paper",
        numbers=numbers,
        code=(*SOURCES, "experiments/fifo/receivers.py", "experiments/fifo/effect.py"),
        runs=5,
        quick_runs=1,
        charts=partial(charts, setting),
    )


MODEL = figure(
    "model", "3", "violations and extra delay under the paper's assumptions",
    "100 messages/s a publisher, 20 % wanted", ("3a", "3b"),
)  # fmt: skip
CONGESTED = figure(
    "congested", "3-congested", "the same where 99.5 % are reached",
    "100 messages/s a publisher, 2 % wanted, slow congestion, pairs compared at any distance",
    ("3-congested",),
)  # fmt: skip
UNEVEN = figure(
    "uneven", "3-uneven", "the same where brokers differ",
    "100 messages/s a publisher, 20 % wanted, 2 brokers 10 times as slow as the others",
    ("3-uneven",),
)  # fmt: skip
FIGURES = (MODEL, UNEVEN, CONGESTED)
