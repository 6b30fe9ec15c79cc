"""The machines in the simulated world: random networks, faults and changes, judged from outside."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from inorder.check import judge
from inorder.protocols.fifo import receiver
from inorder.sim.memory import Memory
from inorder.sim.scenario import Scenario, from_table, load
from inorder.sim.simulate import simulate

TELEMETRY = Path(__file__).parents[3] / "examples" / "telemetry.toml"
SCHEDULES = 100


def draw(seed: int, faulty: bool = True) -> Scenario:
    """A small world of a seed. Subscribers do not crash: a new life is a new subscriber."""
    rng = Random(f"{seed}/fifo world")
    topics = rng.randint(1, 4)
    network: dict[str, Any] = rng.choice(
        [
            {"model": "biased", "mean": 0.3, "fifo": False, "join": 0.02},
            {"model": "delay", "fifo": False,
             "delay": {"law": "lognormal", "median": 0.02, "sigma": 1.0}},
            {"overlay": "brokers", "brokers": {"count": 5, "shape": "random"}},
        ]
    )  # fmt: skip
    table: dict[str, Any] = {
        "topics": topics,
        "duration": 4.0,
        "settle": 30.0,
        "messages": False,
        "order": {
            "guarantee": "fifo",
            "estimator": rng.choice(["predictive", "laplace2", "static"]),
            "record": rng.choice([0, 3, 25]),
            "summary": rng.choice(["topic", "content"]),
            "late": rng.choice([0.01, 0.2]),
            "tau_max": rng.choice([0.05, 2.0]),
        },
        "network": network,
        "publishers": {"count": rng.randint(1, 3), "rate": 20.0, "arrivals": "poisson"},
        "subscribers": [
            {"count": 3, "topics": "uniform", "per": rng.randint(1, topics), "reply": 0.05}
        ],
    }
    if topics > 1 and rng.random() < 0.5:
        table["churn"] = {"rate": 2.0}
    if faulty:
        crashes = [
            {"kind": "crash", "at": rng.uniform(0.0, 3.0), "node": "p1",
             "effects": rng.randrange(3), "restart_after": rng.uniform(0.0, 1.0)}
            for _ in range(rng.randrange(3))
        ]  # fmt: skip
        table["faults"] = {"draw": ["weather", "partition", "pause", "clock"], "list": crashes}
    return from_table(table)


def judged(seed: int, faulty: bool = True) -> dict[str, int]:
    memory = Memory()
    scenario = draw(seed, faulty)
    simulate(scenario, seed, memory)
    promises = ["fifo", "per_publisher", "unique", *([] if faulty else ["reliable"])]
    verdicts = judge(memory.history(), promises)
    return {name: verdict.violations for name, verdict in verdicts.items()}


def broken(seeds: range, faulty: bool = True) -> list[tuple[int, dict[str, int]]]:
    found = [(seed, judged(seed, faulty)) for seed in seeds]
    return [(seed, counts) for seed, counts in found if any(counts.values())]


@pytest.mark.parametrize("part", range(4))
def test_order_is_kept_through_faults_and_churn(part):
    assert broken(range(part * SCHEDULES, (part + 1) * SCHEDULES)) == []


def test_nothing_is_lost_on_a_network_that_loses_nothing():
    assert broken(range(1000, 1000 + SCHEDULES), faulty=False) == []


def test_an_untagged_late_event_is_found(monkeypatch):
    from inorder.core.effect import Deliver

    monkeypatch.setattr(receiver.Receiver, "_late", lambda self, event: [Deliver(event)])
    assert broken(range(SCHEDULES)) != []


def test_telemetry_keeps_about_the_share_it_asks_for():
    scenario = load(TELEMETRY)
    outcome = simulate(scenario, 1, Memory())
    account = outcome.account
    assert 0 < account["late"] <= 1.25 * 0.01 * account["received"]
    assert [line.split()[0] for line in outcome.meaning] == ["late", "wait", "dial", "gaps"]
    raw = judge(_without_order(), ["fifo"])["fifo"].violations
    assert raw > 15 * account["late"]


def _without_order() -> Any:
    memory = Memory()
    scenario = load(TELEMETRY, {"guarantee": "none"})
    simulate(scenario, 1, memory)
    return memory.history()
