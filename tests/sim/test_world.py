"""The effect contract as the simulator carries it out: order, disks, crashes, pauses, clocks."""

from __future__ import annotations

import pytest

from inorder.core.effect import CancelTimer, Deliver, Note, Persist, Send, SetTimer
from inorder.core.event import Event
from inorder.sim import faults
from tests.sim.helpers import puppets, tell

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
