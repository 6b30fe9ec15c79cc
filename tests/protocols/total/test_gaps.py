"""Retention ends somewhere: who was away for too long is told what it will not get."""

from __future__ import annotations

import pytest

from inorder.check import judge
from tests.sim.helpers import run

AWAY = """
duration = 20
settle = 30
topics = 2
messages = false
[network]
model = "delay"
[publishers]
count = 2
rate = 10
[[subscribers]]
count = 2
[order]
guarantee = "total"
mode = "{mode}"
retention = {retention}
[faults]
until = 15
list = [{{ kind = "partition", at = 4, until = 10, nodes = ["s1"] }}]
"""


@pytest.mark.parametrize("mode", ["hold", "tag"])
def test_a_gap_is_announced_and_everything_after_it_is_kept(mode):
    memory, outcome = run(AWAY.format(mode=mode, retention=5))
    verdicts = judge(memory.history())
    assert all(verdict.kept for verdict in verdicts.values() if verdict.judged)
    assert outcome.marks["gone"] > 0
    again = [row for row in memory.rows["subscriptions"] if row.subscriber == "s1"]
    assert [row.op for row in again].count("subscribe") > 1, "the gap is in the trace"
    counts = {name: sum(row.subscriber == name for row in memory.rows["deliveries"])
              for name in ("s1", "s2")}  # fmt: skip
    assert counts["s1"] < counts["s2"]


@pytest.mark.parametrize("mode", ["hold", "tag"])
def test_with_enough_retention_nothing_is_missing(mode):
    memory, outcome = run(AWAY.format(mode=mode, retention=10_000))
    assert all(verdict.kept for verdict in judge(memory.history()).values() if verdict.judged)
    assert "gone" not in outcome.marks
    counts = {name: sum(row.subscriber == name for row in memory.rows["deliveries"])
              for name in ("s1", "s2")}  # fmt: skip
    assert counts["s1"] == counts["s2"]


def test_without_the_announcement_the_judge_would_complain(monkeypatch):
    """The negative control: a gap that nobody is told of is a loss."""
    from inorder.sim.world import World

    answer = World._answer

    def silent(self, node, effect):
        if effect.outcome != "gap":
            answer(self, node, effect)

    monkeypatch.setattr(World, "_answer", silent)
    memory, _ = run(AWAY.format(mode="hold", retention=5))
    assert judge(memory.history())["reliable"].violations > 0
