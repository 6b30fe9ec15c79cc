"""Figure 4: how the protocol follows the rate of one publisher.

8 brokers, diameter 3, 4 workers each; a pair 4 brokers apart whose publisher changes its rate every
20 s. A fifth of its messages is wanted by the subscriber, the others by somebody else on the same
broker, so that all of them load the way. A window of 10 s is a row: messages out of order without
the protocol, the rate, the estimated probability that the newest missing message is overtaken,
and the latch set at an arrival (none: 0), with a record of 25 and in basic mode. P_t is 0.05.
"""

from __future__ import annotations

from functools import lru_cache
from math import inf
from typing import Any

import numpy as np
from scipy import stats

from experiments.chart import Frame, Layer, bars, dots, line, page
from experiments.fifo.network import SOURCES, START_S, Network, generator, poisson
from experiments.figure import Column, Figure, Row, holds
from experiments.points import Numbers, Settings
from inorder.protocols.fifo.estimator import ESTIMATORS
from inorder.protocols.fifo.laplace2 import Laplace2
from inorder.protocols.fifo.options import Options
from inorder.sim.lane import arrivals, listen

BROKERS: dict[str, Any] = {
    "count": 8, "shape": "long", "diameter": 3, "workers": 4,
    "link": {"law": "constant", "mean": 0.01},
    "processing": {"law": "exponential", "mean": 0.01},
}  # fmt: skip
RATES = (10.0, 40.0, 100.0, 200.0, 330.0, 150.0, 40.0, 10.0, 250.0, 60.0, 330.0, 20.0)
STEP_S = 20.0
WINDOW_S = 10.0
MATCH = 0.2


class Watched(Laplace2):
    """The paper's estimator, taking down each time it is asked for a deadline."""

    # When, how likely to be overtaken, how long to wait.
    notes: list[tuple[float, float, float]] = []

    def deadline(self, departure_s: float, opener_s: float, now: float) -> float:
        until = super().deadline(departure_s, opener_s, now)
        self.notes.append((now, self.share_for(opener_s - departure_s), until - now))
        return until


def points(quick: bool) -> list[Settings]:
    steps = 5 if quick else len(RATES)
    windows = int(steps * STEP_S / WINDOW_S)
    return [{"window": window, "steps": steps} for window in range(windows)]


@lru_cache(maxsize=1)
def followed(steps: int, seed: int) -> list[Numbers]:
    """All windows of a run."""
    network = Network(BROKERS, 8, 72)
    publisher, subscriber = network.apart(4, seed)
    ways = network.ways(seed)
    beside = next(
        name
        for number in range(1, 73)
        if (name := f"s{number}") != subscriber and ways.home(name) == ways.home(subscriber)
    )
    sent = poisson(RATES[:steps], STEP_S, MATCH, generator("adaptive", seed))
    pair = network.record({publisher: sent}, {publisher: [subscriber]}, seed, crowd=[beside])[0]
    came = pair.stream.arrived_s[pair.stream.order]
    overtaken = came[pair.stream.order < np.maximum.accumulate(pair.stream.order)]
    ESTIMATORS.setdefault("watched", Watched)
    heard = arrivals(pair.stream, 25)
    basic, long = (_notes(heard, reading) for reading in (False, True))
    edges = START_S + WINDOW_S * np.arange(int(steps * STEP_S / WINDOW_S) + 1)
    return [
        _window(low, high, sent.at_s, came, overtaken, basic, long)
        for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    ]


def _notes(heard: list[Any], reading: bool) -> Any:
    """For each arrival that opened a gap: when, the probability, the longest latch."""
    options = Options(estimator="watched", late=0.05, use_record=reading, max_pair_gap=inf)
    estimator = listen(heard, options).receiver.estimator
    assert isinstance(estimator, Watched)
    found: dict[float, tuple[float, float]] = {}
    for now, share, latch_s in estimator.notes:
        likely, longest = found.get(now, (0.0, 0.0))
        found[now] = max(likely, share), max(longest, latch_s)
    return np.array([(now, *rest) for now, rest in found.items()]).reshape(-1, 3)


def _window(
    low: float, high: float, sent: Any, came: Any, overtaken: Any, basic: Any, long: Any
) -> Numbers:
    def inside(times: Any) -> Any:
        return (times >= low) & (times < high)

    here = {name: notes[inside(notes[:, 0])] for name, notes in (("basic", basic), ("long", long))}
    got = max(1, int(inside(came).sum()))
    shares = here["basic"][:, 1]
    return {
        "out": int(inside(overtaken).sum()),
        "received": got,
        "rate": float(inside(sent).sum()) / WINDOW_S,
        "likely": float(shares.mean()) if len(shares) else None,
        "latch_long": 1000.0 * float(here["long"][:, 2].sum()) / got,
        "latch_basic": 1000.0 * float(here["basic"][:, 2].sum()) / got,
        "spikes_long": float((here["long"][:, 2] > 0.0).sum()) / got,
        "spikes_basic": float((here["basic"][:, 2] > 0.0).sum()) / got,
        "late_times": (overtaken[inside(overtaken)] - START_S).tolist(),
    }


def run(window: int, steps: int, seed: int) -> Numbers:
    return followed(steps, seed)[window]


def judge(rows: list[Row]) -> list[str]:
    rate = [row.mean("rate") for row in rows]

    def follows(key: str) -> float:
        return float(stats.spearmanr(rate, [row.mean(key) for row in rows]).statistic)

    likely, long, out = follows("likely"), follows("latch_long"), follows("out")
    basic = follows("latch_basic")
    spikes = [float(np.mean([row.mean(f"spikes_{kind}") for row in rows])) for kind in
              ("basic", "long")]  # fmt: skip
    latches = [float(np.mean([row.mean(f"latch_{kind}") for row in rows])) for kind in
               ("basic", "long")]  # fmt: skip
    return [
        holds(
            "the probability of a violation follows the rate: rank correlation over the windows "
            f"{likely:.2f} (of the messages out of order {out:.2f})",
            likely > 0.8,
        ),
        holds(f"the latch with a record of 25 follows the rate: {long:.2f}", long > 0.8),
        holds(f"the latch in basic mode follows the rate: {basic:.2f}", basic > 0.8),
        holds(
            f"basic mode latches more often: at {spikes[0]:.0%} of the arrivals against "
            f"{spikes[1]:.0%}, {latches[0]:.1f} against {latches[1]:.1f} ms on average",
            spikes[0] > 2.0 * spikes[1],
        ),
    ]


def charts(rows: list[Row]) -> dict[str, str]:
    middles = [WINDOW_S * (row.settings["window"] + 0.5) for row in rows]
    first = [row.runs[0] for row in rows]
    times = [at for numbers in first for at in numbers["late_times"]]

    def of(key: str) -> list[float]:
        return [float(numbers[key] or 0.0) for numbers in first]

    span = 0.0, WINDOW_S * len(rows)

    def frame(title: str, *layers: Layer) -> Frame:
        return Frame(title, layers, span)

    frames = [
        frame("out of order without the protocol (each a dot)", dots(times, [1.0] * len(times))),
        frame("messages a second", line(middles, of("rate"))),
        frame("estimated probability of a violation", line(middles, of("likely"))),
        frame("mean latch [ms], record 25", bars(middles, of("latch_long"))),
        frame("mean latch [ms], basic", bars(middles, of("latch_basic"))),
    ]
    return {"figure-4.svg": page(frames, height=130)}


FIGURE = Figure(
    name="4",
    title="adaptivity: one pair whose rate changes",
    setting="8 brokers, diameter 3, 4 workers each, a pair 4 brokers apart, 20 % wanted, P_t 0.05, "
    "windows of 10 s; a picture of the first run is in figure-4.svg",
    points=points,
    run=run,
    columns=(
        Column("out", "out of order", 1),
        Column("rate", "rate [1/s]", 0),
        Column("likely", "P[violation]", 3),
        Column("latch_long", "mean latch, record 25 [ms]", 1),
        Column("latch_basic", "basic [ms]", 1),
        Column("spikes_long", "latched, record 25 [%]", 0, 100.0),
        Column("spikes_basic", "basic [%]", 0, 100.0),
    ),
    labels=("window",),
    judge=judge,
    source="paper",
    numbers=("4",),
    code=(*SOURCES, "experiments/fifo/adaptive.py"),
    runs=5,
    quick_runs=1,
    charts=charts,
)
