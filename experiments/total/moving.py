"""Figures 16 to 20 with the machines themselves: 1,000 topics, and swaps that take their time.

swaps.py does a swap at once. Here the ranking freezes all 1,000 stages, waits for every round under
way, and installs the new order; what is published meanwhile waits. 300 nodes instead of 10,000,
because each subscriber registers with each of its 100 managers; else the settings of figures 16 to
20. The rule is the machines': the first willing manager on the way asks, and changes places with
the first topic of the stamp, by name, that is popular enough.

Beside the machines stand the two rules of swaps.py on the same 300 subscriptions, first order and
publications. What a swap costs is the difference between `machines` and `first`. A curve of the
machines takes a minute of processor time, so there is one run a point, and no spread.

`metric = "rate"` is no swap: the machines change the whole order in one step, once they have seen
an event a topic. A run of 600 events over 1,000 topics is too short for that; benches/ranking.py
has longer ones.
"""

from __future__ import annotations

import json

from experiments.figure import Column, Figure, Row, holds
from experiments.machines import PUBLISHED, Memory, play, story
from experiments.points import MACHINES, Numbers, Settings
from experiments.total import swaps
from experiments.total.ens import LEAN
from experiments.total.laws import STEEP, Bools, generator, pareto, subscriptions
from experiments.total.overhead import ENTRY_BYTES
from inorder.sim.simulate import Outcome
from inorder.sim.workload import Publication

PUBLISHERS = 20
SUBSCRIBED_S = 120.0  # when everybody has subscribed, on a random order of 1,000 topics
CURVES: dict[str, Settings] = {
    "best static": {"begin": "best"},
    "random static": {},
    "dynamic, f": {"metric": "f"},
    "dynamic, rate": {"metric": "rate"},
    "changed, f": {"metric": "f", "change": True},
    "alpha 0.5, beta 0.3": {"metric": "f", "alpha": 0.5, "beta": 0.3},
    "alpha 0.5, beta 0.1": {"metric": "f", "alpha": 0.5, "beta": 0.1},
}
COMPARED = ("random static", "dynamic, f", "alpha 0.5, beta 0.3", "alpha 0.5, beta 0.1")


def points(quick: bool) -> list[Settings]:
    size = {"nodes": 300, "topics": 1000, "per": 100, "events": 600}
    if quick:
        size = {"nodes": 60, "topics": 100, "per": 10, "events": 120}
    curves = [{"curve": curve, "by": "machines"} | size for curve in CURVES]
    rules = [(curve, rule) for curve in COMPARED for rule in ("first", "highest")]
    return [*curves, *({"curve": curve, "by": rule} | size for curve, rule in rules[1:])]


def run(curve: str, by: str, nodes: int, topics: int, per: int, events: int, seed: int) -> Numbers:
    settings = {"begin": "random", **CURVES[curve]}
    half = events // 2 if settings.pop("change", False) else 0
    if by != "machines":
        numbers = swaps.run(
            seed, **settings, rule=by, start=0, shuffle_at=half,
            nodes=nodes, topics=topics, per=per, events=events,
        )  # fmt: skip
        return {key: numbers[key] for key in KEPT}
    held = subscriptions(pareto(topics, STEEP), nodes, per, generator("held", seed, nodes))
    picked = list(swaps.picked(pareto(topics, STEEP), events, half, seed))
    begin = str(settings.pop("begin"))
    trace, outcome = machines(held, picked, swaps.first_order(topics, begin, seed), settings, seed)
    return measured(trace, outcome)


def machines(
    held: Bools,
    picked: list[int],
    first: list[int],
    settings: Settings,
    seed: int,
    gap: float = 1.0,
) -> tuple[Memory, Outcome]:
    """One event every `gap` seconds; `first` is the topic order to begin with."""
    draws = generator("publishers", seed)
    publications: dict[str, list[Publication]] = {}
    for number, topic in enumerate(picked, 1):
        publisher = f"p{1 + int(draws.integers(PUBLISHERS))}"
        event = Publication(SUBSCRIBED_S + gap * number, f"t{topic}", {})
        publications.setdefault(publisher, []).append(event)
    sets = {
        f"s{number}": [f"t{topic}" for topic in row.nonzero()[0].tolist()]
        for number, row in enumerate(held, 1)
    }
    moving = {"swaps": "on", **settings} if "metric" in settings else {}
    return play(
        {
            "duration": SUBSCRIBED_S + gap * len(picked),
            "settle": 600.0,
            "topics": [f"t{topic}" for topic in first.tolist()],
            "order": {**PUBLISHED, "threshold": 2, **moving},
            "network": {"model": "wan", "overlay": "scribe", "nodes": len(held)},
            "publishers": {"count": PUBLISHERS},
            "subscribers": [{"count": len(held)}],
        },
        seed,
        story(publications, sets),
    )


def measured(trace: Memory, outcome: Outcome) -> Numbers:
    """In the order of publication; an event that nobody holds has no latency."""
    events = sorted(trace.events, key=lambda row: row.published_at)
    last = {row.event: 0.0 for row in events}
    for row in trace.deliveries:
        last[row.event] = max(last[row.event], row.delivered_at - row.published_at)
    assert all(row.accepted_at for row in events), "all rounds have ended"
    latencies = list(last.values())
    sizes = [float(ENTRY_BYTES * len(json.loads(row.stamp))) for row in events]
    return swaps.summary(latencies, sizes) | {"swaps": outcome.marks.get("change_made", 0)}


KEPT = ("swaps", "early", "middle", "peak", "late", "late_median", "late_bytes",
        "late_bytes_median")  # fmt: skip


def judge(rows: list[Row]) -> list[str]:
    table = {(row.settings["curve"], row.settings["by"]): row for row in rows}
    still, best = table["random static", "machines"], table["best static", "machines"]
    moving, free = table["dynamic, f", "machines"], table["dynamic, f", "first"]
    highest, rated = table["dynamic, f", "highest"], table["dynamic, rate", "machines"]
    lean = table["random static", "highest"].mean("late")
    return [
        f"Without swaps the machines and the lean model take {still.mean('late'):.0f} and "
        f"{lean:.0f} s at the end.",
        f"A swap waits for the longest round under way: {moving.mean('swaps'):.0f} swaps where "
        f"free ones are {free.mean('swaps'):.0f} (first willing manager) or "
        f"{highest.mean('swaps'):.0f} (highest).",
        holds(
            f"(18) the dynamic order leaves the random one behind: {moving.mean('late'):.0f} s at "
            f"the end against {still.mean('late'):.0f} s (best static {best.mean('late'):.1f} s; "
            f"free swaps {free.mean('late'):.0f} and {highest.mean('late'):.0f} s)",
            moving.mean("late") < 0.5 * still.mean("late"),
        ),
        f"By rate the machines make {rated.mean('swaps'):.0f} changes: they wait for an event a "
        f"topic, and {rated.settings['events']} events come for {rated.settings['topics']} topics.",
        holds(
            f"(19) the stamp converges to about 100 B: {moving.mean('late_bytes'):.0f} B",
            moving.mean("late_bytes") < 150,
        ),
    ]


FIGURE = Figure(
    name="16-20-machines",
    title="the dynamic topic order with the real machines",
    setting="as figures 16 to 20, counters from 0; `by` first and highest are the lean model",
    points=points,
    run=run,
    columns=(
        Column("swaps", "swaps", 1),
        Column("early", "latency, first tenth [s]", 1),
        Column("middle", "before half time [s]", 1),
        Column("peak", "after half time [s]", 1),
        Column("late", "last sixth [s]", 1),
        Column("late_median", "median [s]", 2),
        Column("late_bytes", "stamp, last sixth [B]", 0),
    ),
    labels=("curve", "by"),
    judge=judge,
    code=(
        *MACHINES, *LEAN,
        *(f"experiments/total/{name}.py" for name in ("swaps", "overhead", "moving")),
    ),
    numbers=("machines",),
    runs=1,
    quick_runs=1,
)  # fmt: skip
