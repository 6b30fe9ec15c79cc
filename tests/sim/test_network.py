"""What the simulated network does to messages, in fair and in bad weather."""

from __future__ import annotations

from collections import Counter

from inorder.core.effect import Send
from inorder.sim import faults
from inorder.sim.laws import Exponential
from inorder.sim.memory import Memory
from inorder.sim.models import Delay
from inorder.sim.world import World
from tests.sim.helpers import Puppet, tell


def shaky(*names, fifo):
    memory = Memory()
    world = World(Delay(Exponential(mean=0.1)), "seed", memory, fifo=fifo, record_messages=True)
    for name in names:
        world.add(name, Puppet)
    return world, memory


def stream(world, count=200):
    for number in range(count):
        world.agenda.at(number * 0.01, tell, world, "a", Send("b", number))


def test_fifo_links_keep_their_order_and_others_do_not():
    for fifo in (True, False):
        world, _ = shaky("a", "b", fifo=fifo)
        stream(world)
        world.agenda.run()
        heard = world.nodes["b"].machine.heard
        assert sorted(heard) == list(range(200))
        assert (heard == sorted(heard)) is fifo


def test_weather_loses_doubles_and_reorders_until_it_heals():
    world, _ = shaky("a", "b", fifo=True)
    weather = faults.Weather(0.0, 1.5, loss=0.2, duplicate=0.2, reorder=0.3, reorder_mean=0.2)
    faults.schedule(world, [weather], until=1.5)
    stream(world)
    world.agenda.run()
    heard = world.nodes["b"].machine.heard
    counts = Counter(heard)
    assert 0 < sum(1 for n in range(150) if n not in counts) < 60
    assert any(count == 2 for count in counts.values())
    assert heard != sorted(heard)
    assert all(counts[n] == 1 for n in range(151, 200)), "healed weather is fair"


def test_a_one_way_partition_blocks_one_way_only():
    world, memory = shaky("a", "b", fifo=True)
    faults.schedule(world, [faults.Partition(0.0, 1.0, ("a",), one_way=True)], until=9.0)
    world.agenda.at(0.5, tell, world, "a", Send("b", "lost"))
    world.agenda.at(0.5, tell, world, "b", Send("a", "heard"))
    world.agenda.at(1.5, tell, world, "a", Send("b", "heard"))
    world.agenda.run()
    assert world.nodes["b"].machine.heard[1:] == ["heard"]
    assert "heard" in world.nodes["a"].machine.heard
    lost = [row for row in memory.rows["messages"] if row.received_at is None]
    assert [(row.source, row.target) for row in lost] == [("a", "b")]


def test_a_two_way_partition_blocks_both_ways_and_heals_by_the_end_of_the_faults():
    world, _ = shaky("a", "b", fifo=True)
    faults.schedule(world, [faults.Partition(0.0, 100.0, ("a",))], until=2.0)
    world.agenda.at(1.0, tell, world, "a", Send("b", "lost"))
    world.agenda.at(1.0, tell, world, "b", Send("a", "lost"))
    world.agenda.at(3.0, tell, world, "a", Send("b", "heard"))
    world.agenda.run()
    assert [m for m in world.nodes["b"].machine.heard if isinstance(m, str)] == ["heard"]
    assert [m for m in world.nodes["a"].machine.heard if isinstance(m, str)] == []


def test_silencing_one_sender_does_not_change_what_another_draws():
    arrivals = []
    for with_c in (True, False):
        world, memory = shaky("a", "b", "c", fifo=False)
        stream(world, 50)
        if with_c:
            for number in range(50):
                world.agenda.at(number * 0.01, tell, world, "c", Send("b", "noise"))
        world.agenda.run()
        rows = memory.rows["messages"]
        arrivals.append(
            [row.received_at for row in rows if row.source == "a" and row.target == "b"]
        )
    assert arrivals[0] == arrivals[1]


def test_healing_restarts_and_wakes_everybody():
    world, _ = shaky("a", "b", fifo=True)
    plan = [faults.Crash(1.0, "a", restart_after=100.0), faults.Pause(1.0, 100.0, "b")]
    faults.schedule(world, plan, until=5.0)
    world.agenda.at(2.0, tell, world, "a", Send("b", "never"))
    world.agenda.run(4.0)
    assert (world.nodes["a"].alive, world.nodes["b"].paused) == (False, True)
    world.agenda.run(6.0)
    assert (world.nodes["a"].alive, world.nodes["b"].paused) == (True, False)
