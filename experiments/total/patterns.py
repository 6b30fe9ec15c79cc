"""Figure 21: do two detectors find the same patterns?

Five publishers, each on its own topic, each event of one of three kinds at random; two subscribers
of all five topics look for "an e, later an e', later an e''" in the order of their deliveries. The
figure is the number of sequences both found over the number anybody found.

The detector is not in the report. Ours is the textbook automaton: it takes the first e, then the
first e' after it, then the first e'' after that, reports the three events and starts afresh behind
them (`next`). `adjacent` only takes three deliveries in a row. Tagged events are either used where
they come (`used`: the application ignores the tag) or left out (`dropped`).

"At a rate of 5 events/sec" is read both ways: each publisher (the plain reading), or all five
together.

How this came about, since the 35 % were known while we looked: six detectors were tried (these
two, the latest e before each e', every e by itself, all triples within 10 or 25 deliveries), with
two and five publishers, both rates, with and without slow links, and Pastry with and without a
preference for near hosts. Without ordering they gave anything from 1 % to over 90 %. The two kept
here are the plainest. That they come near 35 % in one of these settings confirms nothing: beyond
"far below 100 %" the bar is a matter of detector, rate and routes. sources.py has the nearest.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from experiments.figure import Column, Figure, Row, holds
from experiments.machines import LOSSLESS, PUBLISHED, Memory, play, story
from experiments.points import MACHINES, Numbers, Settings
from experiments.total.laws import generator
from experiments.total.published import Arrival, infinite_buffer
from inorder.check import detect
from inorder.check.detect import findings
from inorder.sim.workload import Publication, Story

KINDS = "abc"
PUBLISHERS = 5
START_S = 5.0

Seen = tuple[str, str]  # an event and its kind
Detector = Callable[[Sequence[Seen]], set[tuple[str, ...]]]

ORDERS: dict[str, dict[str, Any]] = {
    "no ordering": {"guarantee": "none"},
    "compact, buffer 0": PUBLISHED,
    "full, buffer 0": {"mode": "tag", "buffer": 0},
    "full, buffer 30": {"mode": "tag", "buffer": 30},
    "full, infinite buffer": {"mode": "hold"},
}
BARS = ("no ordering", "compact, buffer 0", "full, buffer 30", "full, infinite buffer")
# Not an option of ours, as it does not do what it is for: judged afterwards, from the arrivals.
COMPACT_INFINITE = "compact, infinite buffer"


def find_next(seen: Sequence[Seen]) -> set[tuple[str, ...]]:
    """
    >>> sorted(find_next([("1", "a"), ("2", "a"), ("3", "b"), ("4", "c"), ("5", "b")]))
    [('1', '3', '4')]
    """
    return set(findings(seen, KINDS))


def find_adjacent(seen: Sequence[Seen]) -> set[tuple[str, ...]]:
    """
    >>> sorted(find_adjacent([("1", "a"), ("2", "a"), ("3", "b"), ("4", "c"), ("5", "b")]))
    [('2', '3', '4')]
    """
    return {
        tuple(event for event, _ in three)
        for three in zip(seen, seen[1:], seen[2:], strict=False)
        if "".join(kind for _, kind in three) == KINDS
    }


def agreement(detector: Detector, views: Sequence[Sequence[Seen]]) -> float:
    """Sequences all found over sequences anybody found."""
    return detect.agreement([detector(view) for view in views]).share


def points(quick: bool) -> list[Settings]:
    seconds = 60 if quick else 300
    near = [
        {"order": order, "rate": rate, "near": True, "seconds": seconds}
        for rate in (5.0, 1.0)
        for order in (*ORDERS, COMPACT_INFINITE)
    ]
    far = [
        {"order": "no ordering", "rate": rate, "near": False, "seconds": seconds}
        for rate in (5.0, 1.0)
    ]
    return [*near, *far]


def told(sources: int, rate: float, arrivals: str, seconds: int, seed: int) -> Story:
    """Every publisher at its pace on its own topic, once both detectors have subscribed."""
    rng = generator("patterns", seed)
    topics = [f"t{number}" for number in range(1, sources + 1)]
    publications: dict[str, list[Publication]] = {}
    for number, topic in enumerate(topics, 1):
        count = int(rate * seconds)
        if arrivals == "poisson":
            times = START_S + np.cumsum(rng.exponential(1.0 / rate, size=count))
        else:
            times = START_S + (rng.random() + np.arange(count)) / rate
        kinds = rng.integers(len(KINDS), size=count)
        publications[f"p{number}"] = [
            Publication(time, topic, {"kind": KINDS[kind]})
            for time, kind in zip(times.tolist(), kinds.tolist(), strict=True)
        ]
    return story(publications, {"s1": topics, "s2": topics})


def run(
    order: str,
    rate: float,
    near: bool,
    seconds: int,
    seed: int,
    *,
    sources: int = PUBLISHERS,
    arrivals: str = "steady",
    classes: str = "pair",
    fifo: bool = True,
) -> Numbers:
    table = ORDERS["compact, buffer 0" if order == COMPACT_INFINITE else order]
    if "guarantee" not in table:
        table = {**LOSSLESS, **table}
    trace, _ = play(
        {
            "duration": START_S + seconds,
            "settle": 60.0,
            "topics": sources,
            "order": table,
            "network": {
                "model": "wan", "classes": classes, "fifo": fifo,
                "overlay": "scribe", "nodes": 100, "near": near,
            },
            "publishers": {"count": sources, "rate": rate},
            "subscribers": [{"count": 2}],
        },
        seed,
        told(sources, rate, arrivals, seconds, seed),
    )  # fmt: skip
    return judge_run(trace, order == COMPACT_INFINITE)


def judge_run(trace: Memory, hold_compact: bool) -> Numbers:
    kinds = {row.event: json.loads(row.attributes)["kind"] for row in trace.events}
    arrivals: dict[str, list[Arrival]] = {
        subscriber: [(row.event, row.in_order) for row in rows]
        for subscriber, rows in trace.by_subscriber().items()
    }
    if hold_compact:
        stamps = {row.event: (row.topic, json.loads(row.stamp)) for row in trace.events}
        arrivals = {node: infinite_buffer(rows, stamps) for node, rows in arrivals.items()}
    used = [[(event, kinds[event]) for event, _ in rows] for rows in arrivals.values()]
    kept = [[(event, kinds[event]) for event, good in rows if good] for rows in arrivals.values()]
    every = sum(map(len, used))
    return {
        "next_used": agreement(find_next, used),
        "next_dropped": agreement(find_next, kept),
        "adjacent_used": agreement(find_adjacent, used),
        "adjacent_dropped": agreement(find_adjacent, kept),
        "tagged": 1.0 - sum(map(len, kept)) / every,
        "latency": None if hold_compact else trace.mean_latency(),
    }


STATED = {"no ordering": "35 %", "full, infinite buffer": "100 %", COMPACT_INFINITE: "100 %"}


def judge(rows: list[Row]) -> list[str]:
    table = {
        (row.settings["order"], row.settings["rate"]): row for row in rows if row.settings["near"]
    }
    lines = []
    for rate, words in ((5.0, "5 events/s each"), (1.0, "5 events/s together")):
        first = table["no ordering", rate]
        lines.append(
            f"{words}, no ordering: {first.mean('next_used'):.0%} (next), "
            f"{first.mean('adjacent_used'):.0%} (adjacent); the report says 35 %."
        )
        for key, reading in (("next_used", "used"), ("next_dropped", "dropped")):
            bars = [table[order, rate] for order in BARS]
            shown = ", ".join(f"{bar.mean(key):.0%}" for bar in bars)
            for before, bar in pairwise(bars[:3]):
                names = f"{bar.settings['order']} above {before.settings['order']}"
                lines.append(
                    holds(f"{words}, tagged {reading}: {names} ({shown})", bar.exceeds(before, key))
                )
        thirty = table["full, buffer 30", rate].mean("next_used")
        lines.append(
            holds(f"{words}: buffer 30 still below 100 % (ours {thirty:.1%})", thirty < 1.0)
        )
        whole = table["full, infinite buffer", rate].mean("next_used") == 1.0
        lines.append(holds(f"{words}: an infinite buffer with full stamps gives 100 %", whole))
        half = table[COMPACT_INFINITE, rate]
        lines.append(
            holds(
                f"{words}: an infinite buffer with the report's compact stamps gives 100 % (ours "
                f"{half.mean('next_used'):.0%}, {half.mean('tagged'):.0%} tagged; errata R7)",
                half.mean("next_used") == 1.0,
            )
        )
    return lines


FIGURE = Figure(
    name="21",
    title="patterns found by both detectors",
    setting="100 hosts, SCRIBE, 5 publishers on 5 topics, 3 kinds, 2 detectors",
    points=points,
    run=run,
    columns=(
        Column("next_used", "next, tagged used [%]", 1, 100.0),
        Column("next_dropped", "next, tagged dropped [%]", 1, 100.0),
        Column("adjacent_used", "adjacent, used [%]", 1, 100.0),
        Column("adjacent_dropped", "adjacent, dropped [%]", 1, 100.0),
        Column("tagged", "tagged [%]", 1, 100.0),
        Column("latency", "latency [s]", 2),
    ),
    labels=("order", "rate", "near"),
    judge=judge,
    paper=lambda settings: STATED.get(settings["order"], "shape"),
    code=(*MACHINES, "experiments/total/patterns.py", "experiments/total/published.py"),
    numbers=(21,),
    runs=20,
)
