"""The effect contract as the simulator carries it out: order, disks, crashes, pauses, clocks."""

from __future__ import annotations

import json
from functools import partial

import pytest

from inorder.core.effect import Answer, CancelTimer, Deliver, Note, Persist, Send, SetTimer
from inorder.core.event import Event
from inorder.sim import faults
from tests.sim.helpers import puppets, run, tell

EVENTS = [Event("p", n, "t", {}, 0.0) for n in range(1, 5)]


def delivered(memory):
    return [row.event for row in memory.rows["deliveries"]]


def test_effects_are_carried_out_in_order():
    world, memory = puppets("a")
    tell(world, "a", *(Deliver(event) for event in EVENTS))
    world.agenda.run()
    assert delivered(memory) == ["p:1", "p:2", "p:3", "p:4"]
    assert [row.nth for row in memory.rows["deliveries"]] == [1, 2, 3, 4]


@pytest.mark.parametrize("cut", range(5))
def test_a_crash_cuts_the_effects_at_any_place(cut):
    world, memory = puppets("a")
    world.nodes["a"].plan_crash(cut, restart_after_s=1.0)
    effects = [Persist(b"one"), Deliver(EVENTS[0]), Persist(b"two"), Deliver(EVENTS[1])]
    tell(world, "a", *effects)
    world.agenda.run()
    assert delivered(memory) == [[], [], ["p:1"], ["p:1"], ["p:1", "p:2"]][cut]
    reborn = world.nodes["a"].machine
    assert reborn.replayed == [[], [b"one"], [b"one"], [b"one", b"two"], [b"one", b"two"]][cut]
    assert reborn.resumed == 1
    assert world.agenda.now == 1.0


def test_nothing_behind_a_persist_happens_before_the_sync():
    world, memory = puppets("a", sync_s=0.5)
    tell(world, "a", Deliver(EVENTS[0]), Persist(b"x"), Deliver(EVENTS[1]))
    world.agenda.run(0.4)
    assert delivered(memory) == ["p:1"]
    # What comes meanwhile waits behind: effects keep their order.
    tell(world, "a", Deliver(EVENTS[2]))
    world.agenda.run(0.45)
    assert delivered(memory) == ["p:1"]
    world.agenda.run()
    assert delivered(memory) == ["p:1", "p:2", "p:3"]


def test_a_crash_forgets_what_was_not_synced():
    world, memory = puppets("a", sync_s=0.5)
    tell(world, "a", Persist(b"x"), Deliver(EVENTS[0]))
    world.agenda.run(0.4)
    world.crash("a")
    world.restart("a")
    world.agenda.run()
    assert delivered(memory) == []
    assert world.nodes["a"].machine.replayed == []


def test_write_behind_is_the_defect_it_claims_to_be():
    world, memory = puppets("a", sync_s=0.5, write_behind=True)
    tell(world, "a", Persist(b"x"), Deliver(EVENTS[0]))
    world.agenda.run(0.4)
    world.crash("a")
    world.restart("a")
    world.agenda.run()
    assert delivered(memory) == ["p:1"]  # visible, and yet forgotten:
    assert world.nodes["a"].machine.replayed == []


def test_a_timer_fires_once_and_can_be_moved_or_cancelled():
    world, _ = puppets("a")
    tell(world, "a", SetTimer("x", 1.0), SetTimer("y", 1.0), SetTimer("x", 3.0), CancelTimer("y"))
    world.agenda.run()
    assert world.nodes["a"].machine.fired == [("x", 3.0)]


def test_a_timer_of_an_earlier_life_never_fires():
    world, _ = puppets("a")
    tell(world, "a", SetTimer("x", 1.0))
    world.agenda.run(0.5)
    world.crash("a")
    world.restart("a")
    world.agenda.run()
    assert world.nodes["a"].machine.fired == []


def test_a_message_to_a_crashed_node_is_lost_and_recorded_so():
    world, memory = puppets("a", "b", record_messages=True)
    world.crash("b")
    tell(world, "a", Send("b", "hello"))
    world.agenda.run()
    lost = [row for row in memory.rows["messages"] if row.target == "b"]
    assert [row.received_at for row in lost] == [None]


def test_a_paused_node_handles_everything_afterwards_in_order_of_arrival():
    world, memory = puppets("a")
    tell(world, "a", SetTimer("x", 1.0))
    world.agenda.run(0.5)
    world.pause("a")
    for event in EVENTS:
        tell(world, "a", Deliver(event))
    world.agenda.run(9.0)
    assert (delivered(memory), world.nodes["a"].machine.fired) == ([], [])
    world.proceed("a")
    assert delivered(memory) == ["p:1", "p:2", "p:3", "p:4"]
    assert world.nodes["a"].machine.fired == [("x", 9.0)]


def test_a_clock_fault_bends_the_machines_time_and_not_the_traces():
    world, memory = puppets("a")
    faults.schedule(world, [faults.Clock(1.0, "a", jump=-100.0, drift=2.0)], until=50.0)
    world.agenda.run(2.0)
    tell(world, "a", SetTimer("x", 3.0), Deliver(EVENTS[0]))
    world.agenda.run()
    assert world.nodes["a"].machine.fired == [("x", -92.0)]  # at true time 2 + 2 * 3
    assert memory.rows["deliveries"][0].delivered_at == 2.0


def test_notes_are_counted():
    world, _ = puppets("a")
    tell(world, "a", Note("held"), Note("held"), Note("gone"))
    world.agenda.run()
    assert world.marks == {"held": 2, "gone": 1}


PUBLISHERS = "topics=2\n[network]\nmodel='wan'\n[publishers]\ncount=2\nrate=9\n"


def test_an_event_tells_what_its_application_had_been_handed_since_its_last_one():
    memory, _ = run(PUBLISHERS + "[[subscribers]]\ncount=2\nreply=0.5")
    upto = {}
    told = 0
    made = {}
    for row in memory.rows["deliveries"]:
        made.setdefault(row.subscriber, []).append(row.delivered_at)
    for row in sorted(memory.rows["events"], key=lambda row: (row.publisher, row.seq)):
        assert row.application == row.publisher
        seen = json.loads(row.seen)
        assert set(seen) <= {row.publisher}
        assert not seen or seen[row.publisher] > upto.get(row.publisher, 0), "told once"
        upto[row.publisher] = seen.get(row.publisher, upto.get(row.publisher, 0))
        handed = sum(at <= row.published_at for at in made.get(row.publisher, ()))
        assert upto[row.publisher] <= handed
        told += bool(seen)
    assert told > 20


def test_a_delivery_has_the_true_time_of_its_event_whatever_the_publishers_clock_tells():
    clocks = """
    [faults]
    list = [
        {kind = "clock", at = 2.0, node = "p1", jump = -100.0},
        {kind = "clock", at = 5.0, node = "p1", jump = 150.0},
        {kind = "clock", at = 7.0, node = "s1", jump = 9.0},
    ]
    """
    memory, _ = run(PUBLISHERS + "[[subscribers]]\ncount=2\nreply=0.3\n" + clocks)
    published = {row.event: row.published_at for row in memory.rows["events"]}
    rows = memory.rows["deliveries"]
    assert {row.publisher for row in rows} >= {"p1", "p2", "s1"}
    for row in rows:
        assert row.published_at == pytest.approx(published[row.event], abs=1e-9)


def test_a_run_says_whether_it_was_quiet_and_else_what_was_still_to_happen():
    quiet, _ = run(PUBLISHERS + "[[subscribers]]\ncount=2")
    assert quiet.ending is not None
    assert (quiet.ending.quiet, quiet.ending.within, quiet.ending.under_way) == (True, 10.0, ())
    cut, _ = run("settle=0.0\nduration=3\nwithin=0.5\n" + PUBLISHERS + "[[subscribers]]\ncount=2")
    assert (cut.ending.quiet, cut.ending.ended_at, cut.ending.within) == (False, 3.0, 0.5)
    assert cut.ending.under_way == ("messages to s2: 3",)


def test_what_is_cancelled_lost_or_of_an_earlier_life_is_not_under_way():
    world, _ = puppets("a", "b", "c", sync_s=9.0)
    tell(world, "a", SetTimer("x", 5.0), SetTimer("y", 5.0), CancelTimer("y"))
    tell(world, "c", Persist(b"x"), SetTimer("z", 5.0))
    world.agenda.run(1.0)
    world.crash("c")
    world.pause("b")
    tell(world, "b", Note("x"))
    world.agenda.run(2.0)
    world.agenda.after(1.0, world._hand_over, "a", "b", "lost on the way", 0, 2.0, False)
    ending = world.finish()
    assert not ending.quiet
    assert ending.under_way == ("timer x of a: 1", "waiting for b to go on: 1")


def test_the_fate_of_a_publication_is_told_as_its_publisher_knows_it():
    world, memory = puppets("a", "b")
    for node in world.nodes.values():
        node.machine.next_seq = 1
        node.machine.publish = partial(count_up, node.machine)
    for _ in range(3):
        world.publish("a", "t", {})
    world.publish("b", "t", {})
    tell(world, "a", Answer("a:1", "accepted"), Answer("a:2", "refused"))
    world.agenda.run(30.0)
    world.crash("b")
    world.publish("a", "t", {})
    tell(world, "a", SetTimer("x", 5.0))
    world.agenda.run(31.0)
    ending = world.finish(within=2.0)
    assert not ending.quiet
    fates = {row.event: (row.outcome, row.accepted_at) for row in memory.rows["events"]}
    assert fates == {
        "a:1": ("accepted", 0.0),
        "a:2": ("refused", None),
        "a:3": (None, None),  # its publisher lives, and was never told
        "b:1": ("unknown", None),  # its publisher's life ended first
        "a:4": ("unknown", None),  # the run was cut too soon to tell
    }


def count_up(machine, topic, value, now):
    machine.next_seq += 1
    return []
