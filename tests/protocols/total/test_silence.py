"""Silences by chance: nobody loses an event unsaid, and nobody's order depends on a clock."""

from __future__ import annotations

from random import Random

import pytest

from inorder.protocols.total.manager import Manager
from inorder.protocols.total.subscriber import Subscriber
from inorder.sim import faults
from inorder.sim.memory import Memory
from inorder.sim.scenario import from_table
from inorder.sim.simulate import build
from inorder.sim.workload import Workload, tell
from tests.protocols.total.drive import Net
from tests.protocols.total.schedules import MODES, problems
from tests.protocols.total.test_lease import silent

# By chance: two are cut off together for longer than a lease, and return at once.


def schedule(seed, order):
    rng = Random(f"{seed}/silence")
    topics = rng.randint(2, 4)
    others = [
        {"name": f"s{chr(99 + n)}", "count": 1, "topics": "uniform", "per": rng.randint(1, topics)}
        for n in range(rng.randint(0, 2))
    ]
    table = {
        "topics": topics, "duration": 110.0, "settle": 150.0, "messages": False,
        "order": {"guarantee": "total", **order},
        "network": {"model": "biased", "mean": 0.3, "join": 0.05, "fifo": False},
        "publishers": {"count": 3, "rate": 0.3, "arrivals": "poisson"},
        "subscribers": [{"name": "sa", "topics": ["t1", "t2"]},
                        {"name": "sb", "topics": ["t1", "t2"]}, *others],
        "churn": {"rate": 0.05}, "faults": {"until": 110.0},
    }  # fmt: skip
    scenario = from_table(table)
    story = tell(scenario, seed)
    memory = Memory()
    world = build(scenario, seed, memory, story=story)
    world.application = Workload(world, scenario, seed, story)
    start = rng.uniform(2.0, 15.0)
    trouble: list[faults.Fault] = [
        faults.Partition(start, start + rng.uniform(61.0, 90.0), ("sa1", "sb1"))
    ]
    if rng.random() < 0.5:
        loss, twice, late = rng.uniform(0, 0.2), rng.uniform(0, 0.2), rng.uniform(0, 0.3)
        trouble.append(faults.Weather(0.0, 110.0, loss=loss, duplicate=twice, reorder=late))
    for name in world.nodes:
        if rng.random() < 0.25:
            jump, drift = rng.uniform(-3600.0, 3600.0), rng.uniform(0.9, 1.1)
            trouble.append(faults.Clock(rng.uniform(0.0, 80.0), name, jump=jump, drift=drift))
        if rng.random() < 0.08:
            back_s = rng.uniform(0.0, 40.0)
            trouble.append(faults.Crash(rng.uniform(0.0, 80.0), name, restart_after=back_s))
    faults.schedule(world, trouble, 110.0)
    world.agenda.run(260.0)
    world.finish(scenario.settle)
    return world, problems(memory, world, scenario)


@pytest.mark.parametrize("mode", list(MODES))
def test_silences_of_minutes_break_nothing(mode):
    seen: dict[str, int] = {}
    for seed in range(40):
        world, wrong = schedule(seed, MODES[mode])
        assert wrong == [], seed
        for mark, count in world.marks.items():
            seen[mark] = seen.get(mark, 0) + count
    for mark in ("forgotten", "doubt", "lapsed", "session_ended", "resend"):
        assert seen.get(mark, 0) > 0, mark


def test_silences_find_out_who_ignores_the_number(monkeypatch):
    monkeypatch.setattr(Subscriber, "_doubt", lambda self, topic: [])
    assert any(schedule(seed, MODES["tag"])[1] for seed in range(70, 75))


def test_silences_find_out_who_forgets_that_one_was_forgotten(monkeypatch):
    monkeypatch.setattr(
        Manager, "keeps", lambda self, subscriber, known: subscriber in self.s.reported
    )
    net = Net("a", "p")
    net.call("a", "subscribe", "a/1", ["t1"])
    silent(net, "stage1")
    net.call("a", "subscribe", "a/2", ["t2"])
    net.fire("a", "renew")
    assert "gap/t1" not in net.answers
