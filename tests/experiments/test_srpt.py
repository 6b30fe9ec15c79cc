"""The single trees of the thesis's baselines: who is reached, over whom, what each node knows."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from experiments.cube import srpt
from experiments.cube.meter import Meter, Paths, Trace
from experiments.cube.srpt import Ask, Layout, Place, Pub, Srpt, State, Sub, Uns
from experiments.cube.srpt_brokers import Broker, Copy, Enter, Guest, Leave, Noted
from experiments.cube.world import TOPIC, Run, Setting, brokers_world, srpt_world
from hypothesis import given, settings
from hypothesis import strategies as st

from inorder.core.effect import Answer, Deliver, Send
from inorder.core.errors import BadMessage, Misuse
from inorder.core.event import Event
from inorder.core.pack import unpacker
from inorder.sim.laws import Constant, Exponential, Law
from inorder.sim.memory import Memory
from inorder.sim.models import Delay, Ideal, Packet
from inorder.sim.world import World

EVENT = Event("n3", 1, "t")


def nodes(size: int, root: int, members: Any, **options: Any) -> list[Srpt]:
    layout = Layout(tuple(f"n{node}" for node in range(size)), {"t": root}, **options)
    return srpt.machines(layout, {"t": members})


def machine(world: World, name: str) -> Any:
    return world.nodes[name].machine


def state(node: Srpt) -> State:
    return unpacker(State)(node.snapshot())


# The tree.


def test_figure_5_2_is_the_tree_of_five_subscribers() -> None:
    some = nodes(8, 0, (0, 1, 3, 5, 6))
    kids = {node: each.kids("t") for node, each in enumerate(some) if each.kids("t")}
    assert kids == {0: ["n4", "n2", "n1"], 2: ["n3"], 4: ["n6", "n5"]}
    near = nodes(8, 0, (0, 1, 3, 5, 6), far_first=False)
    assert near[0].kids("t") == ["n1", "n2", "n4"]


def test_a_publication_goes_to_the_root_first_unless_it_is_the_root_s() -> None:
    some = nodes(8, 0, (0, 1, 3))
    asked = some[3].publish("t", {}, 0.0)
    assert asked == [Answer("n3:1", "accepted"), Send("n0", Ask(EVENT))]
    passed = some[0].receive("n3", Ask(EVENT), 0.0)
    assert passed == [Send("n2", Pub(EVENT)), Send("n1", Pub(EVENT)), Deliver(EVENT)]
    own = some[0].publish("t", {}, 0.0)
    assert [type(effect) for effect in own] == [Answer, Send, Send, Deliver]
    assert (some[3].next_seq, some[0].next_seq, some[1].next_seq) == (2, 2, 1)


def test_relays_pass_on_and_keep_nothing() -> None:
    some = nodes(8, 0, (0, 1, 3))
    assert some[2].receive("n0", Pub(EVENT), 0.0) == [Send("n3", Pub(EVENT))]
    assert some[3].receive("n2", Pub(EVENT), 0.0) == [Deliver(EVENT)]
    assert some[2].account() == {"received": 1, "relayed": 1}
    assert some[3].account() == {"received": 1, "relayed": 0}


@pytest.mark.parametrize("size", [0, 3, 6, 12])
def test_only_whole_cubes_have_trees(size: int) -> None:
    with pytest.raises(Misuse, match="power of two"):
        srpt.dimensions(size)


def test_foreign_messages_are_refused() -> None:
    with pytest.raises(BadMessage, match="str is no message"):
        nodes(2, 0, ())[0].receive("n1", "a word", 0.0)
    with pytest.raises(BadMessage, match="no message for a guest"):
        Guest("g", "b", {}).receive("b", "a word", 0.0)


# Joining and leaving.


def grown(size: int, steps: list[tuple[int, bool]], resend: bool, slow: bool, seed: int) -> World:
    """A world that begins empty; joins and leaves come close together, links reorder them."""
    names = tuple(f"n{node}" for node in range(size))
    layout = Layout(names, {"t": seed % size}, resend)
    model = Delay(Exponential(mean=10.0)) if slow else Ideal()
    world = World(model, str(seed), Memory(), fifo=False)
    for node, name in enumerate(names):
        world.add(name, lambda node=node: Srpt(layout, node))
    for at, (node, joins) in enumerate(steps):
        change = world.subscribe if joins else world.unsubscribe
        world.agenda.at(float(at), change, names[node], ["t"])
    world.agenda.run()
    return world


def known(world: World) -> dict[int, Place]:
    """What the nodes know, without what amounts to nothing."""
    places = {}
    for node, each in enumerate(world.nodes.values()):
        place = state(each.machine).places.get("t")
        if place is not None and (place.held or any(place.below)):
            places[node] = place
    return places


# Nodes that come and go, one every second, while a message takes ten.
steps_of = st.lists(st.tuples(st.integers(0, 15), st.booleans()), max_size=40)


@settings(max_examples=400)
@given(steps_of, st.booleans(), st.booleans(), st.integers(0, 100))
def test_when_all_is_quiet_every_node_knows_who_holds_what_below_it(
    steps: list[tuple[int, bool]], resend: bool, slow: bool, seed: int
) -> None:
    world = grown(16, steps, resend, slow, seed)
    holding = {node for node, joins in dict(steps).items() if joins}
    assert known(world) == srpt.presets(16, seed % 16, holding)
    # And a publication reaches them all, once, and passes only nodes on their ways.
    world.publish("n5", "t", {})
    world.agenda.run()
    heard = {int(name[1:]): node.nth for name, node in world.nodes.items() if node.nth}
    assert heard == dict.fromkeys(holding, 1)
    root = seed % 16
    ways = {root ^ (apart >> low << low) for apart in (node ^ root for node in holding)
            for low in range(5)}  # fmt: skip
    received = {node for node in range(16) if machine(world, f"n{node}").account()["received"]}
    assert received == ways - {root}


def test_a_leave_that_overtakes_its_join_is_counted_below_the_root_too() -> None:
    some = nodes(4, 0, ())
    assert some[0].receive("n3", Uns("t", 3), 0.0) == [Send("n2", Uns("t", 3))]
    assert some[0].receive("n3", Sub("t", 3), 0.0) == [Send("n2", Sub("t", 3))]
    assert some[0].kids("t") == []


@pytest.mark.parametrize("resend", [True, False])
def test_a_preset_world_is_one_in_which_all_have_joined(resend: bool) -> None:
    members = Random(1).sample(range(64), 23)
    world = grown(64, [(node, True) for node in members], resend, True, 5)
    layout = Layout(tuple(world.nodes), {"t": 5}, resend)
    preset = srpt.machines(layout, {"t": members})
    for made, grew in zip(preset, world.nodes.values(), strict=True):
        assert made.snapshot() == grew.machine.snapshot()
    assert machine(world, "n0").snapshot() != srpt.machines(layout, {"t": ()})[0].snapshot()


def test_a_call_is_answered_when_the_root_has_passed_the_change_on() -> None:
    some = nodes(4, 0, (2,))
    sent = some[3].subscribe("call", ["t"], 0.0)
    assert sent == [Send("n0", Sub("t", 3))]
    assert some[0].receive("n3", Sub("t", 3), 0.0) == [Send("n2", Sub("t", 3))]
    assert some[2].receive("n0", Sub("t", 3), 0.0) == [Send("n3", Sub("t", 3))]
    assert some[3].receive("n2", Sub("t", 3), 0.0) == [Answer("call", "done")]
    # The leaving one is told on the branch that it had until then.
    assert some[3].unsubscribe("end", ["t"], 0.0) == [Send("n0", Uns("t", 3))]
    assert some[0].receive("n3", Uns("t", 3), 0.0) == [Send("n2", Uns("t", 3))]
    assert some[2].receive("n0", Uns("t", 3), 0.0) == [Send("n3", Uns("t", 3))]
    assert some[3].receive("n2", Uns("t", 3), 0.0) == [Answer("end", "done")]
    assert some[2].kids("t") == []
    assert some[0].kids("t") == ["n2"]


def test_changes_go_to_the_whole_tree_only_if_they_are_sent_again() -> None:
    moved = {}
    for resend in (True, False):
        setting = Setting(1, 64, {TOPIC: range(32)}, {TOPIC: 0}, resend)
        run = Run(srpt_world, setting)
        run.join(0.0, 63)
        run.go()
        moved[resend] = run.meter.kinds
    # To the root, down to 31 others, and along the way 32, 48, 56, 60, 62, 63.
    assert moved == {True: {"Sub": 1 + 31 + 6}, False: {"Sub": 6}}


def test_calls_that_change_nothing_are_answered_at_once() -> None:
    some = nodes(4, 0, (2,))
    assert some[2].subscribe("again", ["t"], 0.0) == [Answer("again", "done")]
    assert some[3].unsubscribe("never", ["t"], 0.0) == [Answer("never", "done")]
    assert some[0].subscribe("root", ["t"], 0.0) == [Answer("root", "done")]


def test_a_call_of_two_topics_waits_for_both() -> None:
    layout = Layout(("n0", "n1"), {"t": 0, "u": 0})
    node = Srpt(layout, 1)
    assert len(node.subscribe("call", ["t", "u"], 0.0)) == 2
    assert node.receive("n0", Sub("t", 1), 0.0) == []
    assert node.receive("n0", Sub("u", 1), 0.0) == [Answer("call", "done")]
    # One after the other on the same topic: each has its own answer.
    node.unsubscribe("first", ["t"], 0.0)
    node.subscribe("second", ["t"], 0.0)
    assert node.receive("n0", Uns("t", 1), 0.0) == [Answer("first", "done")]
    assert node.receive("n0", Sub("t", 1), 0.0) == [Answer("second", "done")]


def test_a_restored_node_goes_on_as_before() -> None:
    node = nodes(8, 0, (2, 3), far_first=False)[2]
    node.receive("n0", Pub(EVENT), 0.0)
    node.subscribe("call", ["t"], 0.0)
    again = Srpt.restore(node.snapshot())
    assert again.snapshot() == node.snapshot()
    assert again.receive("n0", Pub(EVENT), 1.0) == node.receive("n0", Pub(EVENT), 1.0)
    assert again.account() == {"received": 2, "relayed": 0}


def test_messages_of_one_event_have_one_identity() -> None:
    keys = {message.key for message in (Ask(EVENT), Pub(EVENT), Copy(EVENT))}
    assert keys == {("n3", 1)}


# Brokers.

SHAKY, STEADY = Exponential(mean=50.0), Constant(mean=50.0)


def broken(resend: bool = True, law: Law = SHAKY) -> World:
    """Four brokers, twelve guests, of which two hold the topic, both on broker 2; root 1."""
    setting = Setting(1, 16, {TOPIC: (6, 10)}, {TOPIC: 1}, resend, brokers=4)
    return brokers_world(setting, Packet(1.0, None, law, transmission_s=1.0),
                         Memory())  # fmt: skip


def test_a_broker_passes_on_to_brokers_and_then_to_its_guests() -> None:
    world = broken()
    passed = machine(world, "b1").receive("g00", Ask(EVENT), 0.0)
    assert passed == [Send("b3", Pub(EVENT))]
    assert machine(world, "b3").receive("b1", Pub(EVENT), 0.0) == [Send("b2", Pub(EVENT))]
    copies = machine(world, "b2").receive("b3", Pub(EVENT), 0.0)
    assert copies == [Deliver(EVENT), Send("g02", Copy(EVENT)), Send("g06", Copy(EVENT))]
    assert machine(world, "g02").receive("b2", Copy(EVENT), 0.0) == [Deliver(EVENT)]
    assert machine(world, "g05").receive("b1", Copy(EVENT), 0.0) == []


def test_guests_are_spread_evenly_and_publish_to_the_root_broker() -> None:
    world = broken()
    asked = machine(world, "g05").publish("t", {}, 0.0)
    assert asked == [Answer("g05:1", "accepted"), Send("b1", Ask(Event("g05", 1, "t")))]
    assert machine(world, "g05").next_seq == 2
    assert machine(world, "g05").subscribe("call", ["t"], 0.0) == [Send("b1", Enter("t"))]


@given(steps_of, st.booleans(), st.booleans())
def test_guests_that_hold_a_topic_hear_of_it_and_no_others(
    steps: list[tuple[int, bool]], resend: bool, at_once: bool
) -> None:
    """One change after the other, or all within a message's time on links that keep the order."""
    world = broken(resend, STEADY if at_once else SHAKY)
    held = {2, 6}
    answered: list[str] = []
    world.application = Listening(answered)
    for at, (guest, joins) in enumerate(steps):
        change = world.subscribe if joins else world.unsubscribe
        world.agenda.at(
            float(at) if at_once else world.agenda.now, change, f"g{guest % 12:02}", ["t"]
        )
        held = held | {guest % 12} if joins else held - {guest % 12}
        if not at_once:
            world.agenda.run()
    world.agenda.run()
    assert len(answered) == len({*answered}) == len(steps)
    world.publish("g00", "t", {})
    world.agenda.run()
    heard = {int(name[1:]) for name, node in world.nodes.items() if node.nth and name[0] == "g"}
    assert heard == held
    passed = {int(name[1:]) for name, node in world.nodes.items() if node.nth and name[0] == "b"}
    assert passed == {guest % 4 for guest in held}


class Listening:
    def __init__(self, answered: list[str]) -> None:
        self._answered = answered

    def delivered(self, node: str, event: Event, in_order: bool) -> None:
        pass

    def answered(self, node: str, call: str, outcome: str) -> None:
        if outcome == "done":
            self._answered.append(call)

    def restarted(self, node: str) -> None:
        pass


def test_entering_and_leaving_twice_changes_nothing() -> None:
    world = broken()
    broker = machine(world, "b2")
    before = broker.receive("b3", Pub(EVENT), 0.0)
    assert broker.receive("g02", Enter("t"), 0.0) == [Send("g02", Noted("t"))]
    assert broker.receive("g10", Leave("t"), 0.0) == [Send("g10", Noted("t"))]
    assert broker.receive("b3", Pub(EVENT), 0.0) == before
    other = machine(world, "b0")
    assert other.receive("g00", Leave("t"), 0.0) == [Send("g00", Noted("t"))]
    # The first guest: the tree has to know before it is answered.
    assert other.receive("g00", Enter("t"), 0.0) == [Send("b1", Sub("t", 0))]
    assert other.receive("b1", Sub("t", 0), 0.0) == [Send("g00", Noted("t"))]
    guest = machine(world, "g00")
    assert guest.receive("b0", Noted("t"), 0.0) == []
    left = other.receive("g00", Leave("t"), 0.0) + other.receive("b1", Uns("t", 0), 0.0)
    assert left == [Send("b1", Uns("t", 0)), Send("g00", Noted("t"))]
    assert other.receive("b1", Pub(EVENT), 0.0) == []
    assert b"guests\x80" in other.snapshot(), "nothing is kept of a topic without guests"


def test_brokers_and_guests_are_restored_as_they_were() -> None:
    world = broken()
    guest = machine(world, "g01")
    guest.subscribe("call", ["t"], 0.0)
    guest.publish("t", {}, 0.0)
    again = Guest.restore(guest.snapshot())
    assert again.snapshot() == guest.snapshot()
    assert again.receive("b1", Noted("t"), 0.0) == [Answer("call", "done")]
    assert again.next_seq == 2
    broker = machine(world, "b2")
    twin = Broker.restore(broker.snapshot())
    assert twin.snapshot() == broker.snapshot()
    assert twin.receive("b3", Pub(EVENT), 0.0) == broker.receive("b3", Pub(EVENT), 0.0)
    assert twin.account() == {"received": 1, "relayed": 0}


def test_a_restored_broker_answers_each_of_its_guests_calls() -> None:
    before = machine(broken(), "b0")
    assert before.receive("g00", Enter("t"), 0.0) == [Send("b1", Sub("t", 0))]
    broker = Broker.restore(before.snapshot())
    assert broker.receive("g00", Leave("t"), 0.0) == [Send("b1", Uns("t", 0))]
    assert broker.receive("b1", Sub("t", 0), 0.0) == [Send("g00", Noted("t"))]
    assert broker.receive("b1", Uns("t", 0), 0.0) == [Send("g00", Noted("t"))]


def test_a_guest_s_call_of_two_topics_waits_for_both() -> None:
    guest = Guest("g", "b", {"t": "b", "u": "b"})
    assert len(guest.subscribe("call", ["t", "u"], 0.0)) == 2
    assert guest.receive("b", Noted("u"), 0.0) == []
    assert guest.receive("b", Noted("t"), 0.0) == [Answer("call", "done")]
    assert guest.unsubscribe("none", ["x"], 0.0) == [Answer("none", "done")]
    assert guest.unsubscribe("end", ["u"], 0.0) == [Send("b", Leave("u"))]
    assert guest.receive("b", Copy(Event("p", 1, "u")), 0.0) == []


# Meters.


def test_copies_are_counted_by_kind_and_shown_to_what_is_inside() -> None:
    inner = Meter(Ideal())
    meter = Meter(inner)
    for message in ("one", "two", 3):
        meter.show(message)
    assert (meter.kinds, meter.moved) == ({"str": 2, "int": 1}, 3)
    assert inner.kinds == meter.kinds
    assert Meter(Packet(0.0, 8.0, Exponential(mean=1.0))).sized


def test_ways_are_counted_in_hops_of_events_only() -> None:
    paths = Paths(Ideal())
    for message, source, target in ((Ask(EVENT), "a", "b"), (Sub("t", 1), "b", "d"),
                                    (Pub(EVENT), "b", "c"), (Copy(EVENT), "c", "e")):  # fmt: skip
        paths.show(message)
        assert paths.arrival(source, target, 0, 7.0, Random("unused")) == 7.0
    assert paths.depths == {"b": 1, "c": 2, "e": 3}
    assert paths.moved == 4


def test_latencies_are_of_others_than_the_publisher() -> None:
    world = World(Delay(Exponential(mean=50.0)), "seed", trace := Trace(), fifo=False)
    for name, node in zip(("n0", "n1", "n2", "n3"), nodes(4, 0, range(4)), strict=True):
        world.add(name, lambda node=node: node)
    world.publish("n3", "t", {})
    world.publish("n0", "t", {})
    world.agenda.run()
    group = trace.groups["n"]
    assert (trace.own, group.count) == (2, 6)
    assert group.reception == group.delivery > 0.0
    assert len(group.last) == 2
    assert group.to_the_last > group.reception


def test_what_is_held_counts_for_delivery_and_not_for_reception() -> None:
    from inorder.check.trace import DeliveryRow

    trace = Trace()
    for received, delivered in ((10.0, 10.0), (20.0, 26.0)):
        trace.write("deliveries", DeliveryRow("n1", 1, "n0:1", "t", "n0", 1, 0.0, received,
                                              delivered, True))  # fmt: skip
        trace.write("events", None)
    group = trace.groups["n"]
    assert (group.reception, group.delivery, group.longest_wait) == (15.0, 18.0, 6.0)
    assert group.to_the_last == 26.0
