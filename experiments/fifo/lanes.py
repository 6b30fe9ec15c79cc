"""Whether a pair of a world and a stream of one path with as many hops are the same to a receiver.

Figures 3 and 4 record worlds, 1c draws paths: this is the bridge. A line of brokers, publisher and
subscriber at its ends, against a path of the same hops; 10 ms a broker, 100 messages a second, 20 %
wanted. Random streams differ, so the numbers agree up to chance.
"""

from __future__ import annotations

from math import sqrt

from experiments.fifo.network import SOURCES, Network, Pair, generator, poisson
from experiments.fifo.receivers import Lanes
from experiments.figure import Column, Figure, Row, holds
from experiments.points import Numbers, Settings, mean, spread
from inorder.sim.path import Path, stream

MEAN_S = LINK_S = 0.01
RATE = 100.0
MATCH = 0.2
KEYS = ("raw", "late", "extra")


def points(quick: bool) -> list[Settings]:
    hops = (5,) if quick else (2, 5, 10)
    return [
        {"hops": count, "source": source, "published": 5000 if quick else 40_000}
        for count in hops
        for source in ("world", "one path")
    ]


def run(hops: int, source: str, published: int, seed: int) -> Numbers:
    pair = in_world(hops, published, seed) if source == "world" else alone(hops, published, seed)
    lanes = Lanes([pair])
    raw, _ = lanes.play("none")
    ordered, _ = lanes.play("P-0.05-25")
    return {
        "raw": raw.late / raw.received,
        "late": ordered.late / ordered.received,
        "avoided": 1.0 - ordered.late / raw.late,
        "extra": 1000.0 * mean(ordered.waits_s),
    }


def in_world(hops: int, published: int, seed: int) -> Pair:
    brokers = {
        "count": hops, "shape": "line",
        "link": {"law": "constant", "mean": LINK_S},
        "processing": {"law": "exponential", "mean": MEAN_S},
    }  # fmt: skip
    network = Network(brokers, hops, hops)
    publisher, subscriber = network.apart(hops, seed)
    sent = poisson([RATE], published / RATE, MATCH, generator("lanes", seed))
    return network.record({publisher: sent}, {publisher: [subscriber]}, seed)[0]


def alone(hops: int, published: int, seed: int) -> Pair:
    fixed_s = LINK_S * (hops - 1)
    path = Path(hops=hops, mean_s=MEAN_S, fixed_s=fixed_s, rate=RATE, match=MATCH)
    return Pair("p1", "s1", hops, stream(path, published, seed))


def judge(rows: list[Row]) -> list[str]:
    table = {(row.settings["hops"], row.settings["source"]): row for row in rows}
    lines = []
    for hops in sorted({hops for hops, _ in table}):
        world, path = table[hops, "world"], table[hops, "one path"]
        far = max(_distance(world, path, key) for key in KEYS)
        alike = far < 3.0 if len(world.runs) > 2 else _near(world, path)
        lines.append(
            f"{hops} hops: {'alike' if alike else 'NOT alike'}, {world.mean('raw'):.1%} and "
            f"{path.mean('raw'):.1%} late without ordering, {world.mean('late'):.2%} and "
            f"{path.mean('late'):.2%} with P-0.05-25, {world.mean('extra'):.2f} and "
            f"{path.mean('extra'):.2f} ms (largest difference {far:.1f} standard errors)."
        )
    holding = all("NOT alike" not in line for line in lines)
    return [*lines, holds("worlds and paths are the same to a receiver", holding)]


def _near(one: Row, other: Row) -> bool:
    """For a run or two, which have no standard error to speak of."""
    return all(abs(one.mean(key) / other.mean(key) - 1.0) < 0.25 for key in KEYS)


def _distance(one: Row, other: Row, key: str) -> float:
    error = sqrt(sum(spread(row.values(key)) ** 2 / len(row.runs) for row in (one, other)))
    return abs(one.mean(key) - other.mean(key)) / error if error else 0.0


FIGURE = Figure(
    name="lane",
    title="a pair of a world against a path alone (not in the paper)",
    setting="a line of brokers of 10 ms, 100 messages/s, 20 % wanted; receiver P-0.05-25",
    points=points,
    run=run,
    columns=(
        Column("raw", "late without ordering [%]", 2, 100.0),
        Column("late", "late [%]", 2, 100.0),
        Column("avoided", "avoided [%]", 1, 100.0),
        Column("extra", "extra delay [ms]", 2),
    ),
    labels=("hops", "source"),
    judge=judge,
    paper=lambda settings: "not there",
    source="paper",
    numbers=("lane",),
    code=(*SOURCES, "experiments/fifo/receivers.py", "experiments/fifo/lanes.py"),
    runs=5,
    quick_runs=1,
)
