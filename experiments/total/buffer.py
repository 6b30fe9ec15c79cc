"""Figure 15: what a subscriber's buffer gains in order and costs in time.

"The scenario described above": the report gives no size, so we take one the real machines can run:
100 hosts, 50 topics, 40 subscribers of 10 topics, publications and subscriptions by power law
0.901, 10 events a second (at one a second hardly anything is out of order).
"""

from __future__ import annotations

from experiments.figure import Column, Figure, Row, holds
from experiments.machines import LOSSLESS, play, story
from experiments.points import MACHINES, Numbers, Settings
from experiments.total.laws import STEEP, generator, pareto, subscriptions
from inorder.sim.workload import Publication, Story

TOPICS = 50
SUBSCRIBERS = 40
PUBLISHERS = 20
PER = 10
RATE = 10.0
# None: as large as it takes.
BUFFERS: tuple[int | None, ...] = (0, 1, 2, 5, 10, 20, 50, None)


def points(quick: bool) -> list[Settings]:
    buffers = (0, 2, 10, None) if quick else BUFFERS
    return [{"buffer": buffer, "seconds": 30 if quick else 180} for buffer in buffers]


def told(seconds: float, seed: int) -> Story:
    weights = pareto(TOPICS, STEEP)
    rng = generator("buffer", seed)
    held = subscriptions(weights, SUBSCRIBERS, PER, rng)
    names = [f"t{rank + 1}" for rank in range(TOPICS)]
    publications: dict[str, list[Publication]] = {}
    at = 5.0  # when everybody has subscribed
    while (at := at + rng.exponential(1.0 / RATE)) < 5.0 + seconds:
        publisher = f"p{1 + int(rng.integers(PUBLISHERS))}"
        topic = names[int(rng.choice(TOPICS, p=weights))]
        publications.setdefault(publisher, []).append(Publication(at, topic, {}))
    holds_topics = {
        f"s{number + 1}": [names[topic] for topic in row.nonzero()[0].tolist()]
        for number, row in enumerate(held)
    }
    return story(publications, holds_topics)


def run(buffer: int | None, seconds: int, seed: int) -> Numbers:
    order = {"mode": "hold"} if buffer is None else {"mode": "tag", "buffer": buffer}
    trace, _ = play(
        {
            "duration": 5.0 + seconds,
            "settle": 60.0,
            "topics": TOPICS,
            "order": {**LOSSLESS, **order},
            "network": {"model": "wan", "overlay": "scribe", "nodes": 100},
            "publishers": {"count": PUBLISHERS, "rate": RATE / PUBLISHERS},
            "subscribers": [{"count": SUBSCRIBERS, "topics": "uniform", "per": PER}],
        },
        seed,
        told(seconds, seed),
    )
    return {"tagged": trace.tagged, "latency": trace.mean_latency()}


def judge(rows: list[Row]) -> list[str]:
    table = {row.settings["buffer"]: row for row in rows}
    none, small, all_of_it = table[0], table[10], table[None]
    gained = 1.0 - small.mean("tagged") / none.mean("tagged")
    cost = small.mean("latency") / none.mean("latency") - 1.0
    return [
        holds(
            f"a buffer of 10 removes {gained:.0%} of the tags ({none.mean('tagged'):.1%} to "
            f"{small.mean('tagged'):.1%}) for {cost:.0%} more latency",
            gained > 0.5 and cost < 0.5,
        ),
        f"An infinite one tags nothing and takes {all_of_it.mean('latency'):.2f} s instead of "
        f"{none.mean('latency'):.2f} s. Full stamps on the chain of managers throughout: the "
        "report's compact stamps gain nothing from a buffer (errata R7).",
    ]


FIGURE = Figure(
    name="15",
    title="order against latency by buffer size",
    setting="100 hosts, SCRIBE, 50 topics, 40 subscribers of 10 topics, power law 0.901, 10 "
    "events/s; buffer None is infinite",
    points=points,
    run=run,
    columns=(
        Column("tagged", "tagged [%]", 2, 100.0),
        Column("latency", "mean latency [s]", 3),
    ),
    labels=("buffer",),
    judge=judge,
    code=(*MACHINES, "experiments/total/buffer.py"),
    numbers=(15,),
)
