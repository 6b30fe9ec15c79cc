"""Figures 22 to 24, simulated: few hosts on slow uplinks, ours against a single sequencer.

The report measured its prototype behind WANem: ADSL bandwidth, 21 ms on average. Here every host
has an uplink of 1 Mbit/s (ADSL's upstream; not stated) on which its packets queue, and 21 ms from
any host to any other. One publisher, 5 topics, 100 B of body, every host subscribes to everything.

`published` is the report's protocol (compact stamps, publisher diffuses); `ours` waits for the
order (full stamps, manager diffuses) and so promises what the sequencer promises. At this size
Pastry hosts all know each other and a SCRIBE tree is a star: what spreads the load is that topics
have different roots.
"""

from __future__ import annotations

from typing import Any

from experiments import sequencer
from experiments.figure import Column, Figure, Row, holds
from experiments.machines import LOSSLESS, PUBLISHED, play, story
from experiments.points import MACHINES, Numbers, Settings, mean
from experiments.total.latency import MODELS, picks
from experiments.total.laws import generator
from inorder.sim.workload import Publication

TOPICS = 5
BODY = "x" * 100
NETWORK: dict[str, Any] = {
    "model": "packet", "overlay": "scribe", "processing": 0.0001,
    "propagation": {"law": "constant", "mean": 0.021},
}  # fmt: skip
ORDERS: dict[str, dict[str, Any]] = {
    "published": PUBLISHED,
    "ours": {**LOSSLESS, "mode": "hold"},
    "sequencer": {"guarantee": "sequencer"},
}  # fmt: skip
# The longest a run goes on after the last publication; what is still queued then counts as late.
SETTLE_S = 60.0


def run(
    order: str, model: str, hosts: int, rate: float, uplink: float, seconds: int, seed: int
) -> Numbers:
    """`uplink` is in Mbit/s."""
    sequencer.register()
    rng = generator("rivals", seed, model)
    events = int(rate * seconds)
    topics = picks(model, TOPICS, events, rng).tolist()
    publications = [
        Publication(2.0 + number / rate, f"t{topic + 1}", {"body": BODY})
        for number, topic in enumerate(topics)
    ]
    names = [f"t{rank + 1}" for rank in range(TOPICS)]
    trace, _ = play(
        {
            "duration": 2.0 + seconds,
            "settle": SETTLE_S,
            "topics": TOPICS,
            "order": ORDERS[order],
            "network": {**NETWORK, "nodes": hosts, "bandwidth": 1e6 * uplink},
            "publishers": {"count": 1, "rate": rate},
            "subscribers": [{"count": hosts}],
        },
        seed,
        story({"p1": publications}, {f"s{number + 1}": names for number in range(hosts)}),
    )
    last = trace.to_the_last()
    done = len(trace.deliveries) / (events * hosts)
    return {
        "latency": trace.mean_latency(),
        "last": mean(last),
        "within": sum(each <= 1.0 for each in last) / events,
        "delivered": done,
        "tagged": trace.tagged,
    }


def by_size(quick: bool) -> list[Settings]:
    sizes = (1, 3, 10) if quick else (1, 2, 3, 4, 5, 6, 8, 10)
    return [
        {"order": "published", "model": model, "hosts": hosts, "rate": 1.0, **extra}
        for extra in ({"uplink": 1.0, "seconds": 30 if quick else 300},)
        for hosts in sizes
        for model in MODELS
    ]


def by_rate(quick: bool) -> list[Settings]:
    rates = (5.0, 50.0, 100.0) if quick else (5.0, 10.0, 25.0, 50.0, 75.0, 100.0)
    seconds = 10 if quick else 120
    pairs = [(order, model) for order in ("published", "ours") for model in MODELS]
    points: list[Settings] = [
        {"order": order, "model": model, "rate": rate, "uplink": 1.0}
        for rate in rates
        for order, model in [*pairs, ("sequencer", "power")]
    ]
    # The same without a bottleneck: what the comparison owes to the uplink we chose.
    points += [
        {"order": order, "model": "power", "rate": rates[-1], "uplink": 10.0} for order in ORDERS
    ]
    return [{**point, "hosts": 10, "seconds": seconds} for point in points]


def judge_size(rows: list[Row]) -> list[str]:
    table = {(row.settings["model"], row.settings["hosts"]): row for row in rows}
    sizes = sorted({hosts for _, hosts in table})
    steps = []
    for model in MODELS:
        last = [table[model, hosts].mean("last") for hosts in sizes]
        steps.append((last[-2] - last[0]) > (last[-1] - last[-2]))
    text = ", ".join(
        f"{model} {table[model, sizes[0]].mean('last'):.3f} to "
        f"{table[model, sizes[-1]].mean('last'):.3f} s"
        for model in MODELS
    )
    return [
        holds(f"(22) latency rises with the first hosts, then is flatter: {text}", all(steps)),
        "With one host everything is local: a central sequencer.",
    ]


def judge_rate(rows: list[Row]) -> list[str]:
    table = {
        (row.settings["order"], row.settings["model"], row.settings["rate"]): row
        for row in rows
        if row.settings["uplink"] == 1.0
    }
    wide = {row.settings["order"]: row for row in rows if row.settings["uplink"] != 1.0}
    rates = sorted({rate for _, _, rate in table})
    slow, fast = rates[0], rates[-1]

    def last(order: str, model: str, rate: float) -> float:
        return table[order, model, rate].mean("last")

    rival = [last("sequencer", "power", rate) for rate in (slow, fast)]
    published = [last("published", "power", rate) for rate in (slow, fast)]
    ours = [last("ours", "power", rate) for rate in (slow, fast)]
    within = {m: table["published", m, fast].mean("within") for m in MODELS}
    return [
        holds(
            f"(23) at {fast:g} events/s the share within a second is lower for unfavourable models:"
            f" worst {within['worst']:.0%}, uniform {within['uniform']:.0%}, power law "
            f"{within['power']:.0%}",
            within["worst"] < within["power"],
        ),
        f"(24) at {slow:g} events/s, power law: {published[0]:.3f} s (published, "
        f"{published[0] / rival[0]:.1f} times the sequencer), {ours[0]:.3f} s (ours, "
        f"{ours[0] / rival[0]:.1f} times), sequencer {rival[0]:.3f} s; the report calls it close.",
        holds(
            f"(24) at {fast:g} events/s better than it: {published[1]:.3f} s (published), "
            f"{ours[1]:.3f} s (ours), sequencer {rival[1]:.3f} s",
            max(published[1], ours[1]) < rival[1],
        ),
        "At that rate the sequencer's uplink is overfull, so its latency grows with the length of "
        "the run: read it as saturated, not as a number. The published protocol tags "
        f"{table['published', 'power', fast].mean('tagged'):.0%} of its deliveries there; only "
        "`ours` promises as much as the sequencer.",
        f"(24) with uplinks of 10 Mbit/s nothing is full at {fast:g} events/s and the sequencer is "
        f"{'ahead' if wide['sequencer'].mean('last') < wide['ours'].mean('last') else 'behind'}: "
        f"{wide['sequencer'].mean('last'):.3f} s, ours {wide['ours'].mean('last'):.3f} s, "
        f"published {wide['published'].mean('last'):.3f} s. Where the lines cross is our choice "
        "of 1 Mbit/s and 100 B, neither of which is in the report.",
        "This is a simulation of queues on uplinks, not JGroups itself: no processing cost, no "
        "flow control, no batching on either side.",
    ]


_COLUMNS = (
    Column("last", "latency to the last [s]", 3),
    Column("latency", "mean latency [s]", 3),
    Column("within", "within 1 s [%]", 1, 100.0),
    Column("tagged", "tagged [%]", 1, 100.0),
)

FIGURES = (
    Figure(
        name="22",
        title="latency of few hosts (simulated)",
        setting="1 publisher, 5 topics held by all, 1 event/s, 21 ms, 1 Mbit/s uplinks",
        points=by_size,
        run=run,
        columns=_COLUMNS[:2],
        labels=("hosts", "model"),
        judge=judge_size,
        code=(*MACHINES, "experiments/total/rivals.py"),
        numbers=(22,),
        runs=5,
    ),
    Figure(
        name="23-24",
        title="event rate, and a single sequencer (simulated)",
        setting="10 hosts, else as figure 22; the sequencer does not care on which topic",
        points=by_rate,
        run=run,
        columns=(*_COLUMNS, Column("delivered", "delivered [%]", 1, 100.0)),
        labels=("rate", "uplink", "order", "model"),
        judge=judge_rate,
        code=(*MACHINES, "experiments/total/rivals.py"),
        numbers=(23, 24),
        runs=5,
    ),
)
