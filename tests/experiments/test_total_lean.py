"""The lean model of the report's figures agrees with the real machines where both can run."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from experiments.machines import PUBLISHED, Memory, play, story
from experiments.points import mean, spread
from experiments.total import latency, moving, swaps
from experiments.total.ens import Ens
from experiments.total.groups import entries, foreign_share, sequenced
from experiments.total.latency import measure, picks
from experiments.total.laws import generator, pareto, subscriptions, uniform
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


def play_once_per_topic(
    names: list[str], held: Any, order: dict[str, Any], messages: bool = False
) -> Memory:
    publications = [Publication(10.0 + 5.0 * n, name, {}) for n, name in enumerate(names)]
    sets = {
        f"s{number + 1}": [names[topic] for topic in row.nonzero()[0].tolist()]
        for number, row in enumerate(held)
    }
    trace, _ = play(
        {
            "duration": 10.0 + 5.0 * len(names),
            "topics": names,
            "messages": messages,
            "order": order,
            "network": {"model": "wan", "overlay": "scribe", "nodes": 30},
            "publishers": {"count": 1},
            "subscribers": [{"count": len(held)}],
        },
        3,
        story({"p1": publications}, sets),
    )
    return trace


@pytest.mark.parametrize("threshold", [1, 2])
def test_managers_handle_as_many_foreign_stamps_as_the_groups_say(threshold: int) -> None:
    topics = 8
    held = subscriptions(uniform(topics), 14, 3, generator("foreign"))
    names = [f"t{rank + 1:02d}" for rank in range(topics)]
    trace = play_once_per_topic(names, held, {**PUBLISHED, "threshold": threshold}, messages=True)
    own, foreign = (
        np.array([
            sum((row.kind, row.target) == (kind, f"stage{rank + 1}") for row in trace.messages)
            for rank in range(topics)
        ])
        for kind in ("Create", "Fill")
    )  # fmt: skip
    assert own.tolist() == [1] * topics
    together = sequenced(held, threshold)
    share, mean_share = foreign_share(together, np.arange(topics), np.ones(topics))
    assert share == pytest.approx(foreign.sum() / (own + foreign).sum())
    assert mean_share == pytest.approx((foreign / (own + foreign)).mean())
    assert len({*foreign.tolist()}) > 2, "a test of nothing"


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


@pytest.mark.parametrize("model", ["worst", "power"])
def test_figure_9_is_the_same_with_the_machines_and_with_the_lean_model(model: str) -> None:
    """25 hosts; whole runs, each with roots and slow links of its own, so means of 12 runs."""
    runs = {
        by: [latency.run(25, by, model, events, seed) for seed in range(1, 13)]
        for by, events in (("machines", 12), ("lean", 120))
    }
    for key in ("latency", "ordering", "ours"):
        one, other = ([run[key] for run in runs[by]] for by in ("machines", "lean"))
        error = (spread(one) ** 2 / len(one) + spread(other) ** 2 / len(other)) ** 0.5
        assert abs(mean(one) - mean(other)) < 3.0 * error, key
        assert mean(one) == pytest.approx(mean(other), rel=0.35), key


def test_figures_9_to_12_run_the_machines_up_to_3000_hosts() -> None:
    by = {point["hosts"]: point["by"] for point in latency.points(False)}
    assert by == dict.fromkeys((10, 30, 100, 300, 1000, 3000), "machines") | {10_000: "lean"}


def test_stamps_of_a_static_random_order_are_as_long_as_the_lean_model_says() -> None:
    topics, nodes, events, seed = 40, 30, 60, 4
    weights = uniform(topics)
    held = subscriptions(weights, nodes, 6, generator("static"))
    picked = list(swaps.picked(weights, events, 30, seed))
    first = swaps.first_order(topics, "random", seed)
    trace, outcome = moving.machines(held, picked, first, {}, seed)
    numbers = moving.measured(trace, outcome)
    order = Order(first, sequenced(held, 2), 0)
    sizes = [24.0 * len(order.climb(topic)) for topic in picked]
    assert len({*sizes}) > 5, "a test of nothing"
    assert numbers["early_bytes"] == mean(sizes[:6])
    assert numbers["late_bytes"] == mean(sizes[-10:])
    assert numbers["swaps"] == 0


def test_free_swaps_of_the_machines_rule_give_the_machines_stamps() -> None:
    """Events so far apart that a swap is done before the next: then it costs nothing."""
    topics, nodes, events, seed, alpha, beta = 12, 15, 80, 5, 0.1, 0.2
    weights = pareto(topics, 0.901)
    held = subscriptions(weights, nodes, 5, generator("moving"))
    picked = list(swaps.picked(weights, events, 0, seed))
    first = swaps.first_order(topics, "random", seed)
    order = Order(first, sequenced(held, 2), 0)
    sizes = []
    for topic in picked:
        climb = order.climb(topic)
        sizes.append(len(climb))
        order.publish(topic, 0.0)
        swap_by_name(order, climb.tolist(), alpha, beta)
    trace, outcome = play(
        {
            "duration": 10.0 + 5.0 * events,
            "topics": [f"t{topic:02d}" for topic in first.tolist()],
            "order": {**PUBLISHED, "threshold": 2, "swaps": "on", "metric": "f"},
            "network": {"model": "delay", "delay": {"law": "constant", "mean": 0.01}},
            "publishers": {"count": 1},
            "subscribers": [{"count": nodes}],
        },
        1,
        story(
            {"p1": [Publication(10.0 + 5.0 * n, f"t{t:02d}", {}) for n, t in enumerate(picked)]},
            {
                f"s{number}": [f"t{topic:02d}" for topic in row.nonzero()[0].tolist()]
                for number, row in enumerate(held, 1)
            },
        ),
    )
    events_in_order = sorted(trace.events, key=lambda row: row.published_at)
    assert [len(json.loads(row.stamp)) for row in events_in_order] == sizes
    assert outcome.marks["change_made"] == order.swaps > 5


def swap_by_name(order: Order, climb: list[int], alpha: float, beta: float) -> None:
    """The first willing manager changes places with the first willing topic, by name."""

    def f(topic: int) -> float:
        return float(np.exp(-1.0 / (alpha * (order.counts[topic] + 1.0))))

    for place, upper in enumerate(climb[1:], 1):
        for lower in sorted(climb[:place]):
            if f(lower) > f(upper) + beta:
                order._swap(upper, lower)
                return
