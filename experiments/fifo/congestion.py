"""Figures 2a to 2c: delays under congestion, and whether their variation stays what it was.

8 brokers, diameter 3, a publisher whose rate grows and varies until the brokers between it and its
subscriber cannot follow, and others beside it. Congestion has one of three causes:

- `queue`: each broker works on 4 messages at once (400 a second) and the others wait in line.
- `one worker`: on one at a time, four times as fast. Nothing overtakes, and the queue smooths.
- `wave`: every broker's delay swells by up to 0.8 s once a minute, whatever the load; brokers have
  a worker for each message. The variation is the same at any delay, by construction.

The paper compares the variation of delays below and above 1,500 ms by Wilcoxon's rank sum test. It
sees location only (E-F12), so beside it stand two tests that see scale, and the ratio of the
spreads. `blinded` is Wilcoxon's p again after the second sample was stretched three times: a test
of equal variation would have to reject.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from scipy import stats

from experiments.chart import Frame, bars, dots, page
from experiments.fifo.network import SOURCES, Floats, Network, generator, poisson
from experiments.figure import Column, Figure, Row, holds
from experiments.points import Numbers, Settings
from inorder.protocols.fifo.spread import compare_spread

BROKERS: dict[str, Any] = {
    "count": 8, "shape": "long", "diameter": 3,
    "link": {"law": "constant", "mean": 0.01},
    "processing": {"law": "exponential", "mean": 0.01},
}  # fmt: skip
CAUSES: dict[str, dict[str, Any]] = {
    "queue": {"workers": 4},
    "one worker": {"workers": 1, "processing": {"law": "exponential", "mean": 0.0025}},
    "wave": {"congestion": {"period": 60.0, "height": 0.8}},
}
PUBLISHERS, SUBSCRIBERS = 5, 75
STEP_S = 10.0
# Messages a second of the pair at the start and at the end, before chance varies them.
RATES = (20.0, 480.0)
BACKGROUND = 5.0
LIMIT_S = 1.5
DRAWN = 1500


def points(quick: bool) -> list[Settings]:
    return [{"cause": cause, "seconds": 120 if quick else 300} for cause in CAUSES]


@lru_cache(maxsize=1)
def delays(cause: str, seconds: int, seed: int) -> Floats:
    """Of the intense pair, as far apart as possible, in the order of sending."""
    network = Network({**BROKERS, **CAUSES[cause]}, PUBLISHERS, SUBSCRIBERS)
    publisher, subscriber = network.apart(4, seed)
    rng = generator("congestion", seed)
    steps = int(seconds / STEP_S)
    rates = np.linspace(*RATES, steps) * rng.uniform(0.85, 1.15, steps)
    sent = {publisher: poisson(rates.tolist(), STEP_S, 1.0, rng)}
    followers = {publisher: [subscriber]}
    for number in range(1, PUBLISHERS + 1):
        if (other := f"p{number}") != publisher:
            sent[other] = poisson([BACKGROUND], float(seconds), 1.0, rng)
            followers[other] = [f"s{SUBSCRIBERS - number}"]
    pairs = network.record(sent, followers, seed)
    return next(pair for pair in pairs if pair.publisher == publisher).delays_s


def run(cause: str, seconds: int, seed: int) -> Numbers:
    all_s = delays(cause, seconds, seed)
    before, after = all_s[:-1:2], all_s[1::2]
    change, level = after - before, np.maximum(before, after)
    below, above = 1000.0 * change[level < LIMIT_S], 1000.0 * change[level >= LIMIT_S]
    compared = compare_spread(below, above)
    every = max(1, len(before) // DRAWN)
    bins = np.linspace(-150.0, 150.0, 61)
    return {
        "correlation": float(np.corrcoef(all_s[:-1], all_s[1:])[0, 1]),
        "least": float(all_s.min()),
        "most": float(all_s.max()),
        "below": len(below),
        "above": len(above),
        "wilcoxon": float(stats.ranksums(below, above).pvalue),
        "blinded": float(stats.ranksums(below, 3.0 * above).pvalue),
        "ansari": compared.ansari_p,
        "levene": compared.levene_p,
        "ratio": compared.ratio,
        "low": compared.low,
        "high": compared.high,
        "x": before[::every].tolist(),
        "y": after[::every].tolist(),
        "bins": ((bins[1:] + bins[:-1]) / 2.0).tolist(),
        "below_y": np.histogram(below, bins, density=True)[0].tolist(),
        "above_y": np.histogram(above, bins, density=True)[0].tolist(),
    }


def judge(rows: list[Row]) -> list[str]:
    table = {row.settings["cause"]: row for row in rows}
    queue, single, wave = table["queue"], table["one worker"], table["wave"]

    def passed(row: Row, test: str) -> str:
        values = row.values(test)
        return f"{sum(value >= 0.05 for value in values)} of {len(values)}"

    lines = [
        holds(
            f"(2a) [{cause}] delays of consecutive messages are highly correlated: "
            f"{row.mean('correlation'):.3f}",
            row.mean("correlation") > 0.9,
        )
        for cause, row in table.items()
    ]
    return [
        *lines,
        holds(
            f"(2a) they vary widely for one pair, by queueing: {queue.mean('least'):.2f} to "
            f"{queue.mean('most'):.1f} s",
            queue.mean("most") > 10.0 * queue.mean("least"),
        ),
        holds(
            "(2b, 2c) Wilcoxon's test does not tell variation below and above 1,500 ms apart "
            f"(paper: p = 0.35): p >= 0.05 in {passed(queue, 'wilcoxon')} runs [queue], "
            f"{passed(wave, 'wilcoxon')} [wave]",
            min(queue.mean("wilcoxon"), wave.mean("wilcoxon")) >= 0.05,
        ),
        "It hardly can: with the second sample stretched three times p >= 0.05 still in "
        f"{passed(queue, 'blinded')} and {passed(wave, 'blinded')} runs (E-F12).",
        holds(
            "(2b, 2c) queues change the variation by less than a tenth [queue]: above 1,500 ms it "
            f"is {queue.mean('ratio'):.2f} times that below (95 % interval "
            f"{queue.mean('low'):.2f} to {queue.mean('high'):.2f}); Ansari-Bradley p >= 0.05 in "
            f"{passed(queue, 'ansari')}, Levene in {passed(queue, 'levene')} runs",
            queue.mean("low") > 0.9 and queue.mean("high") < 1.1,
        ),
        holds(
            "(2b, 2c) so does congestion that only adds delay [wave]: "
            f"{wave.mean('ratio'):.2f} times ({wave.mean('low'):.2f} to {wave.mean('high'):.2f}); "
            f"Ansari-Bradley p >= 0.05 in {passed(wave, 'ansari')}, Levene in "
            f"{passed(wave, 'levene')} runs",
            wave.mean("low") > 0.9 and wave.mean("high") < 1.1,
        ),
        f"Not every queue leaves it alone: with one worker it is {single.mean('ratio'):.2f} times, "
        f"Ansari-Bradley p >= 0.05 in {passed(single, 'ansari')} runs, Wilcoxon's in "
        f"{passed(single, 'wilcoxon')}.",
    ]


def charts(rows: list[Row]) -> dict[str, str]:
    frames = []
    for row in rows:
        first, cause = row.runs[0], row.settings["cause"]
        frames += [
            Frame(f"delay of the next message [s] by delay, {cause}",
                  [dots(first["x"], first["y"])]),
            Frame(f"change of delay [ms] below 1,500 ms, {cause}",
                  [bars(first["bins"], first["below_y"])]),
            Frame(f"change of delay [ms] above 1,500 ms, {cause}",
                  [bars(first["bins"], first["above_y"])]),
        ]  # fmt: skip
    return {"figure-2.svg": page(frames, height=220)}


FIGURE = Figure(
    name="2",
    title="delays of consecutive messages, and their variation, up to congestion",
    setting="8 brokers, diameter 3, 10 clients a broker, a pair 4 brokers apart, 20 to 480 "
    "messages/s, varied by up to 15 % every 10 s; ratio: spread above over spread below",
    points=points,
    run=run,
    columns=(
        Column("correlation", "correlation", 3),
        Column("least", "least [s]", 2),
        Column("most", "most [s]", 1),
        Column("below", "pairs below", 0),
        Column("above", "above", 0),
        Column("wilcoxon", "Wilcoxon p", 2),
        Column("blinded", "the same, stretched x3", 2),
        Column("ansari", "Ansari p", 2),
        Column("levene", "Levene p", 2),
        Column("ratio", "ratio", 2),
    ),
    labels=("cause",),
    judge=judge,
    paper=lambda settings: "highly correlated; Wilcoxon p 0.35",
    source="paper",
    numbers=("2a", "2b", "2c"),
    code=(*SOURCES, "experiments/fifo/congestion.py"),
    runs=10,
    quick_runs=1,
    charts=charts,
)
