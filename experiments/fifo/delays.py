"""Figures 1a and 1b, and the fit of a single broker: which law do delays follow?

Brokers take 5 ms on average ("a few milliseconds"), exponentially, in parallel: that a broker's
time is exponential is what our worlds assume, so the fit of a single broker can only show that the
fitting works and what it takes to spoil it (other laws, queues). 1b then asks what the paper asks:
does the sum over brokers follow its hypoexponential law, and does a shifted Gamma law not?
"""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.chart import Frame, bars, line, page
from experiments.fifo.network import SOURCES, Floats, Network, generator, poisson
from experiments.figure import Column, Figure, Row, holds
from experiments.points import Numbers, Settings
from inorder.protocols.fifo.fit import cdf, fit_hypoexponential, fit_shifted_gamma
from inorder.protocols.fifo.fitness import Score, compare_laws
from inorder.sim.path import Path, stream

MEAN_S = 0.005
RATE = 50.0
EXPONENTIAL = {"law": "exponential", "mean": MEAN_S}
BINS = 60
CODE = (*SOURCES, "experiments/fifo/delays.py")


def line_of(
    brokers: int, samples: int, link_s: float, apart: int, seed: int, **table: Any
) -> Floats:
    """Delays of a pair so many brokers apart, in a line of brokers with 10 clients each."""
    shape = {"count": brokers, "shape": "line", "link": {"law": "constant", "mean": link_s}}
    network = Network({"processing": EXPONENTIAL, **shape, **table}, brokers, 9 * brokers)
    publisher, subscriber = network.apart(apart, seed)
    rng = generator("delays", seed, brokers)
    sent = {publisher: poisson([RATE], 1.1 * samples / RATE, 1.0, rng)}
    (pair,) = network.record(sent, {publisher: [subscriber]}, seed)
    assert len(pair.delays_s) >= samples
    return pair.delays_s[:samples]


# Figure 1a.


def points_1a(quick: bool) -> list[Settings]:
    samples = 2000 if quick else 20_000
    return [{"source": source, "samples": samples} for source in ("world", "one path")]


def run_1a(source: str, samples: int, seed: int) -> Numbers:
    if source == "world":
        delays_s = line_of(3, samples, 0.05, 3, seed)
    else:
        path = Path(hops=3, mean_s=MEAN_S, fixed_s=0.1, rate=RATE, match=1.0)
        drawn = stream(path, samples, seed)
        delays_s = drawn.arrived_s - drawn.sent_s
    delays = 1000.0 * delays_s
    counts, edges = np.histogram(delays, BINS)
    middles = (edges[1:] + edges[:-1]) / 2.0
    mean, sd = float(delays.mean()), float(delays.std())
    return {
        "least": float(delays.min()),
        "mean": mean,
        "sd": sd,
        "mode": float(middles[counts.argmax()]),
        "p99": float(np.quantile(delays, 0.99)),
        "most": float(delays.max()),
        "skew": float(np.mean(((delays - mean) / sd) ** 3)),
        "near": float(np.mean(np.abs(delays - mean) < sd)),
        "x": middles.tolist(),
        "y": counts.tolist(),
    }


def judge_1a(rows: list[Row]) -> list[str]:
    world, path = rows
    return [
        holds(
            f"all delays have a fixed part of 100 ms: the least is {world.mean('least'):.1f} ms",
            100.0 <= world.mean("least") < 102.0,
        ),
        holds(
            f"a long tail: skewness {world.mean('skew'):.2f}, the longest of all "
            f"{(world.mean('most') - world.mean('mean')) / world.mean('sd'):.1f} standard "
            "deviations above the mean",
            world.mean("skew") > 0.5,
        ),
        holds(
            f"a large density around the mean: {world.mean('near'):.0%} within one standard "
            "deviation (68 % of a normal law)",
            world.mean("near") > 0.69,
        ),
        f"World and one path agree: means {world.mean('mean'):.2f} and {path.mean('mean'):.2f} ms, "
        f"standard deviations {world.mean('sd'):.2f} and {path.mean('sd'):.2f} ms.",
    ]


def chart_1a(rows: list[Row]) -> dict[str, str]:
    first = rows[0].runs[0]
    frame = Frame("delay [ms], 3 brokers apart", [bars(first["x"], first["y"])])
    return {"figure-1a.svg": page([frame], height=260)}


FIGURE_1A = Figure(
    name="1a",
    title="delays of a pair 3 brokers apart",
    setting="3 brokers in a line, two links of 50 ms, 10 clients a broker, 50 messages/s",
    points=points_1a,
    run=run_1a,
    columns=(
        Column("least", "least [ms]", 1),
        Column("mode", "peak [ms]", 1),
        Column("mean", "mean [ms]", 1),
        Column("sd", "sd [ms]", 1),
        Column("p99", "p99 [ms]", 1),
        Column("most", "most [ms]", 1),
        Column("near", "within 1 sd [%]", 1, 100.0),
    ),
    labels=("source",),
    judge=judge_1a,
    paper=lambda settings: "100 ms fixed, else shape",
    source="paper",
    numbers=("1a",),
    code=CODE,
    runs=5,
    quick_runs=2,
    charts=chart_1a,
)


# A single broker.

BROKER: dict[str, dict[str, Any]] = {
    "exponential": {},
    "exponential, 1 worker": {"workers": 1},
    "lognormal": {"processing": {"law": "lognormal", "median": 0.004, "sigma": 0.67}},
}


def points_broker(quick: bool) -> list[Settings]:
    return [{"processing": name, "samples": 1000 if quick else 6500} for name in BROKER]


def run_broker(processing: str, samples: int, seed: int) -> Numbers:
    delays = 1000.0 * line_of(3, samples, 0.05, 1, seed, **BROKER[processing])
    scores = {score.fit.law: score for score in compare_laws(delays, phases=2)}
    simple = scores["exponential"]
    return {
        "median": float(np.median(delays)),
        "p99": float(np.quantile(delays, 0.99)),
        "ks": simple.ks,
        "p": simple.p_value,
        "behind": simple.behind,
        "best": float(simple.behind <= 2.0 * simple.behind_error),
    }


def judge_broker(rows: list[Row]) -> list[str]:
    table = {row.settings["processing"]: row for row in rows}
    plain, other = table["exponential"], table["lognormal"]
    queue = table["exponential, 1 worker"]
    return [
        holds(
            f"most messages need a few ms, few much longer: median {plain.mean('median'):.1f}, p99 "
            f"{plain.mean('p99'):.1f} ms",
            plain.mean("median") < 10.0 and plain.mean("p99") > 3.0 * plain.mean("median"),
        ),
        holds(
            "processing times are best fitted by an exponential law: no law with more parameters "
            f"is clearly better on held-out samples in {plain.mean('best'):.0%} of the runs (by "
            "construction: this tests the fit)",
            plain.mean("best") > 0.5,
        ),
        f"It is not blind: of lognormal times the exponential is best in {other.mean('best'):.0%} "
        f"of the runs. One worker at a load of {RATE * MEAN_S:.0%} keeps the law exponential "
        f"({queue.mean('best'):.0%}) and only makes it longer, as queueing theory has it.",
    ]


FIGURE_BROKER = Figure(
    name="1-broker",
    title="processing time of a single broker",
    setting="publisher and subscriber on the same broker; exponential, Gamma and two phases fitted "
    "to one half of the samples and judged on the other",
    points=points_broker,
    run=run_broker,
    columns=(
        Column("median", "median [ms]", 2),
        Column("p99", "p99 [ms]", 1),
        Column("ks", "exponential: KS", 4),
        Column("p", "p", 2),
        Column("behind", "behind the best [nats]", 4),
        Column("best", "best or level [% of runs]", 0, 100.0),
    ),
    labels=("processing", "samples"),
    judge=judge_broker,
    paper=lambda settings: "exponential fits best",
    source="paper",
    numbers=("broker",),
    code=CODE,
    runs=5,
    quick_runs=1,
)


# Figure 1b.

UNEQUAL_S = (0.004, 0.006, 0.008, 0.01, 0.022)


def points_1b(quick: bool) -> list[Settings]:
    cases = ("5 equal", "5 unequal") if quick else ("5 equal", "5 unequal", "10 equal")
    return [{"brokers": case, "samples": 2000 if quick else 6500} for case in cases]


def run_1b(brokers: str, samples: int, seed: int) -> Numbers:
    hops = int(brokers.partition(" ")[0])
    if brokers.endswith("unequal"):
        drawn = stream(Path(mean_s=UNEQUAL_S, rate=RATE, match=1.0), samples, seed)
        delays = 1000.0 * (drawn.arrived_s - drawn.sent_s)
    else:
        delays = 1000.0 * line_of(hops, samples, 0.0, hops, seed)
    fit = fit_hypoexponential(delays, hops)
    scores: dict[str, Score] = {score.fit.law: score for score in compare_laws(delays, hops)}
    hypo, gamma = scores["hypoexponential"], scores["gamma"]
    x = np.quantile(delays, np.linspace(0.0, 0.999, 80))
    return {
        "ks": fit.ks,
        "ks_moments": fit_shifted_gamma(delays).ks,
        "ks_hypo": hypo.ks,
        "p_hypo": hypo.p_value,
        "ks_gamma": gamma.ks,
        "p_gamma": gamma.p_value,
        "p_exponential": scores["exponential"].p_value,
        "gain": hypo.log_likelihood - gamma.log_likelihood,
        "clear": float(gamma.behind > 2.0 * gamma.behind_error),
        "smallest": fit.means[0],
        "largest": fit.means[-1],
        "x": x.tolist(),
        "sample": np.linspace(0.0, 0.999, 80).tolist(),
        "fitted": cdf(fit, x).tolist(),
    }


def judge_1b(rows: list[Row]) -> list[str]:
    lines = []
    for row in rows:
        name = row.settings["brokers"]
        lines += [
            holds(
                f"[{name}] the samples closely follow a hypoexponential law: KS "
                f"{row.mean('ks'):.4f} on its own samples, {row.mean('ks_hypo'):.4f} on held-out "
                f"ones (p {row.mean('p_hypo'):.2f})",
                row.mean("ks") < 0.02 and row.mean("ks_hypo") < 0.06,
            ),
            holds(
                f"[{name}] a Gamma law does not fit: KS {row.mean('ks_moments'):.4f} (shifted, by "
                f"moments), {row.mean('ks_gamma'):.4f} with p {row.mean('p_gamma'):.2f} held out "
                f"(likeliest); {row.mean('gain'):+.4f} nats a sample for the hypoexponential, "
                f"clear in {row.mean('clear'):.0%} of the runs (E-F20)",
                row.mean("clear") > 0.5 or row.mean("ks_gamma") > 1.5 * row.mean("ks_hypo"),
            ),
        ]
    lines.append(
        f"Equal phases are a Gamma law. The fitted means are not the brokers': "
        f"{rows[0].mean('smallest'):.1f} to {rows[0].mean('largest'):.1f} ms where all are "
        f"{1000 * MEAN_S:.0f} ms."
    )
    return lines


def chart_1b(rows: list[Row]) -> dict[str, str]:
    frames = [
        Frame(
            f"distribution of delays [ms], {row.settings['brokers']} brokers",
            [
                line(row.runs[0]["x"], row.runs[0]["sample"], "samples"),
                line(row.runs[0]["x"], row.runs[0]["fitted"], "hypoexponential"),
            ],
        )
        for row in rows
    ]
    return {"figure-1b.svg": page(frames, height=240)}


FIGURE_1B = Figure(
    name="1b",
    title="hypoexponential law of delays, as many phases as brokers",
    setting="equal: a world of brokers in a line, 5 ms each; unequal: one path of 4, 6, 8, 10 and "
    "22 ms",
    points=points_1b,
    run=run_1b,
    columns=(
        Column("ks", "hypoexp.: KS", 4),
        Column("p_hypo", "held-out p", 2),
        Column("ks_moments", "Gamma by moments: KS", 4),
        Column("ks_gamma", "likeliest Gamma: held-out KS", 4),
        Column("p_gamma", "p", 2),
        Column("gain", "hypoexp. over Gamma [nats]", 4),
        Column("p_exponential", "exponential: p", 2),
    ),
    labels=("brokers", "samples"),
    judge=judge_1b,
    paper=lambda settings: "closely follows; Gamma does not fit",
    source="paper",
    numbers=("1b",),
    code=CODE,
    runs=10,
    quick_runs=1,
    charts=chart_1b,
)

FIGURES = (FIGURE_1A, FIGURE_BROKER, FIGURE_1B)
