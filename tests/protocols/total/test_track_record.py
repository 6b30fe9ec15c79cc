"""Bugs that were found once, each by the schedule that found it (or one like it)."""

from __future__ import annotations

import pytest

from inorder.core.errors import BadMessage
from inorder.core.event import Event
from inorder.protocols.session.messages import Frame
from inorder.protocols.total import Client, Options, services
from inorder.protocols.total.engine import Engine, EngineState
from inorder.protocols.total.messages import Gone, Walk, WalkDone
from inorder.protocols.total.version import version_of
from inorder.sim import faults
from inorder.sim.explore import promised, run
from inorder.sim.memory import Memory
from inorder.sim.scenario import parse
from inorder.sim.simulate import build
from inorder.sim.workload import Story
from tests.protocols.total.drive import FIRST

TINY_RETENTION = """
topics = {topics}
duration = 6.0
settle = 200.0
messages = false
[order]
guarantee = "total"
mode = "{mode}"
buffer = 100
retention = 1
[network]
model = "biased"
mean = 0.3
[publishers]
count = 2
rate = 4.0
[[subscribers]]
count = 3
[churn]
rate = {churn}
[faults]
draw = ["weather"]
"""


@pytest.mark.parametrize(("mode", "topics", "churn"), [("hold", 2, 2.0), ("tag", 1, 0.0)])
def test_gaps_with_churn_kill_nobody_and_block_nobody(mode, topics, churn):
    """Hold died of an unsubscribe during its own renewal (seed 17 of 300 was the first); a buffer
    without a time limit waited for ever behind a gap it had announced (seed 7)."""
    scenario = parse(TINY_RETENTION.format(mode=mode, topics=topics, churn=churn))
    for seed in range(60):
        assert run(scenario, seed, promised(scenario))[1] == {}, seed


def test_a_topic_may_be_left_while_it_is_being_renewed():
    client = Client("a", ("t1", "t2"), Options(mode="hold"))
    client.subscribe("x", ["t1"], 0.0)
    client.joined("t1", 0.0)
    done = WalkDone("a", version_of(1, 1), (("t1", 0),))
    client.receive("stage1", Frame(FIRST, 0, 1, 1, done), 0.0)
    client.receive("stage1", Gone("t1", 5), 0.0)
    client.unsubscribe("y", ["t1"], 0.0)
    done = WalkDone("a", version_of(1, 2), (("t1", 7),))
    client.receive("stage1", Frame(FIRST, 0, 2, 2, done), 0.0)


@pytest.mark.parametrize("call", ["subscribe", "publish"])
def test_a_client_that_was_given_up_is_answered_when_it_comes_back(call):
    """A stage stops resending to a client that is silent for minutes; it never began again."""
    scenario = parse("topics=2\nduration=700\n[order]\nguarantee='total'\n"
                     "[network]\nmodel='delay'\n[publishers]\ncount=0\n"
                     "[[subscribers]]\nname='c'\ncount=2\n")  # fmt: skip
    memory = Memory()
    world = build(scenario, 1, memory, story=Story({}, [], []))
    world.agenda.at(0.0, world.subscribe, "c2", ["t1", "t2"])
    if call == "publish":
        world.agenda.at(1.0, world.publish, "c1", "t2", {})
    else:
        world.agenda.at(1.0, world.subscribe, "c1", ["t1", "t2"])
    # The request arrives, the answer does not.
    faults.schedule(world, [faults.Partition(1.015, 601.0, ("c1",))], 601.5)
    world.agenda.run(6000.0)
    world.finish()
    assert world.marks["link_cut"] == 1
    if call == "publish":
        assert memory.rows["events"][0].accepted_at is not None
    else:
        assert [row.subscriber for row in memory.rows["subscriptions"]] == ["c2", "c1"]
    assert all(node.machine.idle for node in world.nodes.values())


def test_a_full_stage_still_takes_what_a_freeze_is_waiting_for(monkeypatch):
    monkeypatch.setattr("inorder.protocols.total.stage.QUEUED_REQUESTS_MAX", 0)
    stage = services(("t1", "t2"), Options())["stage1"].make()
    new = Walk("c", version_of(1, 1), ("t1",), ("t1",))
    refused = stage.receive("c", Frame(FIRST, 0, 1, 0, new), 0.0)
    assert [type(effect).__name__ for effect in refused] == ["Note"]
    entered = Walk(
        "c", version_of(1, 1), ("t1", "t2"), ("t1", "t2"), 0, "t1", ("t1",), (("t2", 0),)
    )
    taken = stage.receive("stage2", Frame(0, 0, 1, 0, entered), 0.0)
    assert "Persist" in [type(effect).__name__ for effect in taken]


@pytest.mark.parametrize(
    "walk",
    [
        Walk("c", version_of(1, 1), ("t1",), ("t1", "t1")),
        Walk("c", version_of(1, 1), ("t1", "t1"), ("t1",)),
        Walk("c", version_of(1, 1), ("t1",), ("t1",), seen=9),
        Walk("c", version_of(1, 1), ("t1",), ("t1",), stamp=(("t1", 5),)),
    ],
)
def test_a_walk_no_honest_client_sends_is_refused_and_changes_nothing(walk):
    stage = services(("t1", "t2"), Options())["stage1"].make()
    before = stage.snapshot()
    with pytest.raises(BadMessage):
        stage.receive("c", Frame(FIRST, 0, 1, 0, walk), 0.0)
    assert stage.snapshot() == before


@pytest.mark.parametrize(
    "done",
    [
        WalkDone("a", version_of(1, 1), ()),
        WalkDone("b", version_of(1, 1), (("t1", 0),)),
    ],
)
def test_the_end_of_a_walk_must_say_where_it_started(done):
    client = Client("a", ("t1", "t2"), Options())
    client.subscribe("x", ["t1"], 0.0)
    client.joined("t1", 0.0)
    before = client.snapshot()
    with pytest.raises(BadMessage):
        client.receive("stage1", Frame(FIRST, 0, 1, 1, done), 0.0)
    assert client.snapshot() == before


def test_a_full_buffer_costs_the_same_whatever_its_size():
    """Forcing the oldest used to look at everything that waits, and the index grew with it."""

    def looks(buffer):
        engine = Engine(EngineState(), Options(mode="tag", buffer=buffer))
        engine.suspend(["a", "b"])
        engine.activate(["a", "b"], (("a", 0), ("b", 0)), 0.0)
        counted = 0
        fresh = engine._fresh

        def counting(*args):
            nonlocal counted
            counted += 1
            return fresh(*args)

        engine._fresh = counting
        for number in range(2, 2 * buffer + 500, 2):  # every other number is missing
            engine.arrive(("a", number), 0, (("b", 0),), Event("p", number, "a"), 0.0)
        assert engine.held.size == buffer
        heaps = [*engine.held._numbers.values(), *engine.held._entries.values(),
                 *engine.held._clocks.values(), engine.held._ages]  # fmt: skip
        assert max(map(len, heaps)) <= 3 * buffer + 200
        return counted / (buffer + 250)

    assert looks(1000) <= 1.5 * looks(20) + 1
