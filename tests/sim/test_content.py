"""Content brokers in the simulated world, under every guarantee."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from inorder.check import judge
from inorder.core.errors import BadScenario
from inorder.guarantee.registry import guarantee
from inorder.sim.memory import Memory
from inorder.sim.scenario import Scenario, from_table, parse
from inorder.sim.simulate import simulate
from tests.guarantee.test_filtering import ORDERS, PREDICATES


def draw(seed: int, order: dict[str, Any], **brokers: Any) -> Scenario:
    """A small market on a tree of brokers, its subscribers changing their minds all the time."""
    rng = Random(f"{seed}/content")
    topics = rng.randint(1, 2)
    groups = []
    for number in range(rng.randint(1, 3)):
        where, parameters = rng.choice([*PREDICATES, (None, {})])
        group = {"name": f"s{chr(97 + number)}", "count": rng.randint(1, 2), "topics": "uniform",
                 "per": rng.randint(1, topics)}  # fmt: skip
        if where is not None:
            updates = rng.choice([0.0, 5.0, 50.0])
            group |= {"where": where, "parameters": parameters, "updates": updates}
        groups.append(group)
    return from_table(
        {
            "topics": topics,
            "duration": 3.0,
            "settle": 120.0,
            "messages": False,
            "order": order,
            "network": {
                "overlay": "brokers",
                "brokers": {
                    "count": rng.randint(1, 6),
                    "shape": rng.choice(["line", "star", "tree", "random"]),
                    "match": "content",
                    "link": {"law": "constant", "mean": rng.choice([0.001, 0.02])},
                    "processing": {"law": "exponential", "mean": 0.01},
                    "summary": rng.choice(["grouped", "exact", "bounded"]),
                    **brokers,
                },
            },
            "publishers": {
                "count": rng.randint(1, 3), "rate": 10.0, "arrivals": "poisson",
                "attributes": {
                    "firm": {"choice": ["a", "b", "c"]}, "price": {"uniform": [0, 100]},
                },
            },
            "subscribers": groups,
            **({"churn": {"rate": 1.0}} if topics > 1 and rng.random() < 0.5 else {}),
            "faults": {"draw": ["pause"] if rng.random() < 0.3 else []},
        }
    )  # fmt: skip


def judged(scenario: Scenario, seed: int) -> dict[str, Any]:
    memory = Memory()
    simulate(scenario, seed, memory)
    promises = {*scenario.guarantee.promises(scenario.options), "filter", "unique", "reliable"}
    return judge(memory.history(), sorted(promises))


@pytest.mark.parametrize("name", ORDERS)
def test_every_guarantee_keeps_its_promises_over_content_brokers(name):
    delivered = 0
    for seed in range(12):
        verdicts = judged(draw(seed, ORDERS[name]), seed)
        broken = {key: verdict.witness for key, verdict in verdicts.items() if verdict.broken}
        assert broken == {}, f"seed {seed}"
        delivered += verdicts["unique"].counts["deliveries"]
    assert delivered > 300


def test_smoothing_and_make_before_break_lose_nothing_either():
    for seed in range(5):
        for brokers in ({"hold": 0.2, "margin": 1.0}, {"update": "make"}, {"min_interval": 0.1}):
            verdicts = judged(draw(seed, ORDERS["none"], **brokers), seed)
            broken = {key: each.witness for key, each in verdicts.items() if each.broken}
            assert broken == {}, f"seed {seed}, {brokers}"


def test_break_before_make_loses_events():
    """The baseline that is known to: the judge must see it."""
    lost = 0
    for seed in range(20):
        # Links with a delay of their own for each message, or both halves arrive together.
        link = {"law": "exponential", "mean": 0.05}
        scenario = draw(seed, ORDERS["none"], update="break", link=link)
        lost += judged(scenario, seed)["reliable"].violations
    assert lost > 0


def test_events_overtake_each_other_at_the_brokers_and_sessions_put_them_right():
    """Each event has a worker of its own; over brokers that match topics alone nobody cares."""
    early = 0.0
    for seed in range(10):
        memory = Memory()
        outcome = simulate(draw(seed, ORDERS["none"]), seed, memory)
        assert judge(memory.history(), ["fifo"])["fifo"].violations == 0
        early += outcome.account["frames_early"]
    assert early > 20


def test_brokers_forward_only_what_somebody_wants():
    text = """
        duration = 5.0
        [network]
        overlay = "brokers"
        [network.brokers]
        count = 4
        shape = "line"
        match = "content"
        [publishers]
        rate = 50.0
        [publishers.attributes]
        price = { uniform = [0, 100] }
        [[subscribers]]
        where = "price < :limit"
        parameters = { limit = 10 }
    """
    outcome = simulate(parse(text), 3, Memory())
    assert outcome.account["delivered"] == outcome.delivered
    assert outcome.account["events_sent"] < 0.3 * 4 * outcome.published
    assert guarantee("none").describe(outcome.account, None) == []


@pytest.mark.parametrize(
    ("text", "key", "problem"),
    [
        ("[network.brokers]\nengine = 'naive'", "network.brokers", "no meaning"),
        ("[network]\noverlay = 'brokers'\n[network.brokers]\nhold = 1.0", "network.brokers.hold",
         "no meaning"),
        ("[network]\noverlay = 'brokers'\n[network.brokers]\nmatch = 'content'\nengine = 'x'",
         "network.brokers.engine", "known: "),
        ("[network]\noverlay = 'brokers'\n[network.brokers]\nmatch = 'content'\nmargin = -1.0",
         "network.brokers.margin", "is not between"),
        ("[network]\noverlay = 'brokers'\n[network.brokers]\nmatch = 'content'\nmargin = 1.0",
         "network.brokers.margin", "without hold"),
        ("[network]\noverlay = 'brokers'\n[faults]\n"
         "list = [{ kind = 'crash', at = 1.0, node = 'broker1' }]", "faults.list[1]", "not one of"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_with_its_key(text, key, problem):
    with pytest.raises(BadScenario, match=problem) as caught:
        parse(text)
    assert caught.value.key == key
