"""Figures 9 to 12: latency against the size of the network, for three publication models.

50 topics, all held by everybody, one event a second, each from a publisher picked evenly. As in the
report the stamp goes from the publisher through all higher managers back to the publisher, which
then hands the event to SCRIBE. `ours` is the same with the manager diffusing (the tree starts at
it) instead of the publisher.
"""

from __future__ import annotations

import numpy as np

from experiments.points import Numbers, Settings
from experiments.total.ens import Ens
from experiments.total.laws import STEEP, Floats, Ints, generator, pareto, uniform

TOPICS = 50
MODELS = ("worst", "uniform", "power")


def points(quick: bool) -> list[Settings]:
    sizes = (10, 100, 1000) if quick else (10, 30, 100, 300, 1000, 3000, 10_000)
    events = 120 if quick else 1800
    return [{"hosts": size, "model": model, "events": events} for size in sizes for model in MODELS]


def picks(model: str, topics: int, events: int, rng: np.random.Generator) -> Ints:
    """The topic of each event: 0 is the highest rank and, under the power law, most popular."""
    if model == "worst":
        return np.full(events, topics - 1)
    weights = uniform(topics) if model == "uniform" else pareto(topics, STEEP)
    return np.asarray(rng.choice(topics, size=events, p=weights))


def measure(
    ens: Ens, publishers: list[str], picked: Ints, rng: np.random.Generator
) -> dict[str, Floats]:
    """Ordering and diffusion of each event, all topics held by all members joined so far."""
    names = [f"t{rank + 1}" for rank in range(int(picked.max()) + 1)]
    roots = [ens.root(name) for name in names]
    walks: list[tuple[int, int]] = []
    homeward: list[tuple[int, int]] = []
    upward: list[tuple[int, int]] = []
    for publisher, topic in zip(publishers, picked.tolist(), strict=True):
        climb = roots[topic::-1]
        walks.append(ens.way([publisher, *climb, publisher]))
        homeward.append(ens.way([publisher, *climb, roots[topic]]))
        upward.append(ens.leg(publisher, roots[topic]))
    down = np.empty(len(picked))
    for topic in np.unique(picked).tolist():
        mine = picked == topic
        down[mine] = ens.last_arrivals(names[topic], int(mine.sum()), rng)
    ordering = ens.durations(walks, rng)
    diffusion = ens.durations(upward, rng) + down
    return {
        "ordering": ordering,
        "diffusion": diffusion,
        "ours": ens.durations(homeward, rng) + down,
    }


def run(hosts: int, model: str, events: int, seed: int) -> Numbers:
    # Names differ from run to run, and with them ids, routes and roots.
    ens = Ens([f"{seed}/host{number}" for number in range(hosts)], f"{seed}")
    rng = generator("latency", seed, hosts, model)
    picked = picks(model, TOPICS, events, rng)
    for topic in np.unique(picked).tolist():
        ens.join(f"t{topic + 1}", ens.hosts)
    publishers = [ens.hosts[place] for place in rng.integers(hosts, size=events).tolist()]
    parts = measure(ens, publishers, picked, rng)
    total = parts["ordering"] + parts["diffusion"]
    return {
        "latency": float(total.mean()),
        "ordering": float(parts["ordering"].mean()),
        "diffusion": float(parts["diffusion"].mean()),
        "within": float((total <= 1.0).mean()),
        "ours": float(parts["ours"].mean()),
        "ours_within": float((parts["ours"] <= 1.0).mean()),
    }
