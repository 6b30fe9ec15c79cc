"""Cubes whose peers crash, in the simulator's words: the examples, and what a crash forgets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from inorder.check import judge
from inorder.core.effect import Diffuse
from inorder.protocols.causal import Client
from inorder.protocols.causal.options import Options
from inorder.sim import explore as explorer
from inorder.sim.memory import Memory
from inorder.sim.scenario import load, parse
from inorder.sim.simulate import simulate

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_example_keeps_what_it_promises_and_shows_what_it_is_about():
    scenario = load(EXAMPLES / "cube.toml")
    memory = Memory()
    outcome = simulate(scenario, 1, memory)
    verdicts = judge(memory.history(), explorer.promised(scenario))
    assert not [name for name, verdict in verdicts.items() if verdict.broken]
    assert memory.ending is not None
    assert memory.ending.quiet
    for mark in ("resplit", "withdraw", "declare", "life", "flush_ended"):
        assert outcome.marks[mark] > 0, mark
    assert len(memory.rows["deliveries"]) > 500


def test_the_world_for_exploration_keeps_what_it_promises():
    # In 17 a peer begins another life after one of two topics of a call was joined: its application
    # had no answer yet, and may not be told of a gap.
    explored = explorer.explore(load(EXAMPLES / "explore-cube.toml"), (1, 2, 3, 4, 17))
    assert not explored.failures, explored.failures[0].story
    assert explored.schedules == 5
    assert min(explored.marks[mark] for mark in ("resplit", "life", "flush_ended")) > 0


WATCHED = """
topics = ["chat"]
duration = 20.0
settle = 90.0
order = { guarantee = "causal" }
publishers = { count = 0 }
subscribers = [{ name = "u", count = 16, rate = 0.3 }]

[network]
overlay = "cube"
model = "wan"
fifo = false

[network.cube]
detection = true
watch = "WATCH"
round = 1.0
test_timeout = 0.9
declare_after = 6.0

[faults]
list = [{ kind = "crash", at = 5.0, node = "u3", restart_after = 30.0 }]
"""


@pytest.mark.parametrize("watch", ["cube", "neighbours"])
def test_both_ways_to_watch_keep_the_promises(watch):
    scenario = parse(WATCHED.replace("WATCH", watch))
    memory = Memory()
    outcome = simulate(scenario, 2, memory)
    verdicts = judge(memory.history(), explorer.promised(scenario))
    assert not [name for name, verdict in verdicts.items() if verdict.broken]
    assert memory.ending is not None
    assert memory.ending.quiet
    assert outcome.account["repairs"] > 0
    if watch == "neighbours":
        assert outcome.account["marked"] > 0
        assert outcome.account["strays"] == 0


def test_a_crash_forgets_the_past_across_topics():
    """docs/causal.md, "A past beyond a crash": a whole stamp names other topics; after a crash it
    does not, because no disk knows what was read."""

    def publish(client: Client, topic: str) -> Any:
        effects = client.publish(topic, {}, 0.0)
        [message] = [each.message for each in effects if isinstance(each, Diffuse)]
        client.placed(((topic, 0), 1), "p0", message, 0.0)
        return message

    before, after = (Client("p0", (), Options(stamps="whole")) for _ in range(2))
    for client in (before, after):
        client.subscribe("c", ["t", "u"], 0.0)
        for topic in ("t", "u"):
            for number in range(2):
                client.begins((topic, number), 1, 1, 0.0)
            client.joined(topic, 0.0)
    publish(before, "t")
    assert publish(before, "u").others == (("t", ((0, 1),)),)
    assert publish(after, "u").others == ()
