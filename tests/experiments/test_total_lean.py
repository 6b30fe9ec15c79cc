"""The lean model of the report's figures agrees with the real machines where both can run."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from experiments.machines import PUBLISHED, Memory, play, story
from experiments.points import mean, spread
from experiments.total.ens import Ens
from experiments.total.groups import entries, foreign_share, sequenced
from experiments.total.latency import measure, picks
from experiments.total.laws import generator, subscriptions, uniform
from experiments.total.swaps import Order

from inorder.sim.models import Wan
from inorder.sim.workload import Publication


def place(name: str, hosts: int, seed: int, names: list[str]) -> str:
    """Where the simulator puts a client."""
    from inorder.sim.simulate import _place

    return _place(names, [f"host{place}" for place in range(hosts)], seed)[name]


@pytest.mark.parametrize("model", ["worst", "uniform", "power"])
def test_ordering_and_diffusion_take_as_long_as_with_the_real_machines(model: str) -> None:
    hosts, topics, events, seed = 40, 6, 600, 5
    picked = picks(model, topics, events, generator("agree", model))
    names = [f"t{rank + 1}" for rank in range(topics)]
    # Far apart, so that nothing meets anything: the lean model knows no lines and no queues.
    publications = [
        Publication(30.0 + 3.0 * number, names[topic], {})
        for number, topic in enumerate(picked.tolist())
    ]
    trace, _ = play(
        {
            "duration": 30.0 + 3.0 * events,
            "topics": topics,
            "order": PUBLISHED,
            "network": {"model": "wan", "overlay": "scribe", "nodes": hosts},
            "publishers": {"count": 1, "rate": 1.0},
            "subscribers": [{"count": hosts - 1}],
        },
        seed,
        story({"p1": publications}, {f"s{number + 1}": names for number in range(hosts - 1)}),
    )
    clients = ["p1", *(f"s{number + 1}" for number in range(hosts - 1))]
    ens = Ens([f"host{n}" for n in range(hosts)], "", fast=Wan(f"{seed}").fast)
    for name in names:
        ens.join(name, [place(client, hosts, seed, clients) for client in clients[1:]])
    publisher = place("p1", hosts, seed, clients)
    parts = measure(ens, [publisher] * events, picked, generator("draws", model))

    ordering = [(row.accepted_at or 0.0) - row.published_at for row in trace.events]
    agree(parts["ordering"].tolist(), ordering)
    agree((parts["ordering"] + parts["diffusion"]).tolist(), trace.to_the_last())


def agree(one: list[float], other: list[float]) -> None:
    """Equal means as far as so many draws can tell, and not far apart in any case."""
    error = (spread(one) ** 2 / len(one) + spread(other) ** 2 / len(other)) ** 0.5
    assert abs(mean(one) - mean(other)) < 4.0 * error
    assert mean(one) == pytest.approx(mean(other), rel=0.15)


@pytest.mark.parametrize("threshold", [1, 2])
def test_stamps_have_as_many_entries_as_the_groups_say(threshold: int) -> None:
    topics, subscribers = 8, 12
    held = subscriptions(uniform(topics), subscribers, 3, generator("groups"))
    names = [f"t{rank + 1:02d}" for rank in range(topics)]
    trace = play_once_per_topic(names, held, {**PUBLISHED, "threshold": threshold})
    sizes = entries(sequenced(held, threshold), np.arange(topics))
    found = {row.topic: len(json.loads(row.stamp)) for row in trace.events}
    assert [found[name] for name in names] == sizes.tolist()
    assert len(set(found.values())) > 2, "a test of nothing"


def play_once_per_topic(names: list[str], held: Any, order: dict[str, Any]) -> Memory:
    publications = [Publication(10.0 + 5.0 * n, name, {}) for n, name in enumerate(names)]
    sets = {
        f"s{number + 1}": [names[topic] for topic in row.nonzero()[0].tolist()]
        for number, row in enumerate(held)
    }
    trace, _ = play(
        {
            "duration": 10.0 + 5.0 * len(names),
            "topics": names,
            "order": order,
            "network": {"model": "wan", "overlay": "scribe", "nodes": 30},
            "publishers": {"count": 1},
            "subscribers": [{"count": len(held)}],
        },
        3,
        story({"p1": publications}, sets),
    )
    return trace


def test_managers_handle_as_many_foreign_stamps_as_the_groups_say() -> None:
    topics = 8
    held = subscriptions(uniform(topics), 6, 3, generator("foreign"))
    together = sequenced(held, 1)
    share, _ = foreign_share(together, np.arange(topics), np.ones(topics))
    sizes = entries(together, np.arange(topics))
    assert share == pytest.approx((sizes.sum() - topics) / sizes.sum())


def test_swaps_of_the_next_willing_manager_are_the_real_machines_swaps() -> None:
    topics, events = 6, 40
    names = [f"t{rank + 1}" for rank in range(topics)]
    order = Order(np.arange(topics), ~np.eye(topics, dtype=bool), 0)
    popular = topics - 1
    sizes = []
    for number in range(events):
        climb = order.climb(popular)
        sizes.append(len(climb))
        order.publish(popular, float(number))
        order.adapt(climb, "f", 0.1, 0.2, "first", float(number))
    trace, _ = play(
        {
            "duration": 10.0 + 5.0 * events,
            "topics": topics,
            "order": {**PUBLISHED, "swaps": "on", "metric": "f", "alpha": 0.1, "beta": 0.2},
            "network": {"model": "delay", "delay": {"law": "constant", "mean": 0.01}},
            "publishers": {"count": 1},
            "subscribers": [{"count": 3}],
        },
        1,
        story(
            {"p1": [Publication(10.0 + 5.0 * n, names[popular], {}) for n in range(events)]},
            {f"s{number}": names for number in (1, 2, 3)},
        ),
    )
    assert [len(json.loads(row.stamp)) for row in trace.events] == sizes
    assert order.swaps == topics - 1
