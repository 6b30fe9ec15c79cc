"""What a tree looks like, what waves cost, and what remains when everything is quiet."""

from __future__ import annotations

import os
from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inorder.core.member import SEQ_BLOCK
from inorder.guarantee.peer import Peered
from inorder.sim.pool import Op
from tests.protocols.cube.world import Drawn, Plan

WIDE = "INORDER_SCHEDULES" in os.environ


def calm(count: int, members: list[int], guarantee: str = "none", window: int = 1) -> Drawn:
    return Drawn(Plan(1, count, window, guarantee, tuple(members), mood="even"))


def call(drawn: Drawn, number: int, verb: str) -> Counter[str]:
    """One call, with nothing else going on; what was sent for it."""
    name = drawn.plan.names[number]
    before = drawn.packets.counts.copy()
    drawn._carry(name, drawn._do(name, Op(verb, ("t",))))  # type: ignore[arg-type]
    while drawn.flight:
        drawn.step()
    return drawn.packets.counts - before


@st.composite
def cubes(draw: st.DrawFn) -> tuple[int, list[int], int]:
    """How many peers, who is a member, and somebody who does something."""
    count = draw(st.integers(1, 70))
    members = draw(st.sets(st.integers(0, count - 1)))
    return count, sorted(members), draw(st.integers(0, count - 1))


@given(cubes())
def test_a_publication_goes_once_to_each_member_and_to_nobody_else(cube):
    """The shape of the tree is for the judge of packets: height and degree, no second copy."""
    count, members, source = cube
    drawn = calm(count, members)
    call(drawn, source, "publish")
    sent = call(drawn, source, "publish")
    others = len({*members} - {source})
    assert sent == Counter(Pub=others, Ack=others)
    drawn.finish()
    assert drawn.packets.relays == 0


@given(cubes())
def test_a_join_costs_a_copy_to_everybody_and_a_question_to_the_members(cube):
    count, members, peer = cube
    members = [member for member in members if member != peer]
    drawn = calm(count, members)
    sent = call(drawn, peer, "subscribe")
    everybody, known = count - 1, len(members)
    assert sent == Counter(Sub=everybody, Act=known, Ack=everybody + known)
    assert call(drawn, peer, "unsubscribe") == Counter(Uns=known, Ack=known)
    drawn.finish()


@given(cubes())
def test_a_source_asks_one_question_only(cube):
    count, members, peer = cube
    members = [member for member in members if member != peer]
    drawn = calm(count, members)
    sent = call(drawn, peer, "publish")
    everybody, known = count - 1, len(members)
    assert sent == Counter(Sub=everybody, Pub=known, Ack=everybody + known)
    # Now it is one of those that have to know who joins.
    other = next((number for number in range(count) if number not in {*members, peer}), None)
    if other is not None:
        sent = call(drawn, other, "subscribe")
        assert sent == Counter(Sub=everybody, Act=known + 1, Ack=everybody + known + 1)
    drawn.finish()


def test_a_tree_of_everybody_is_as_high_and_as_wide_as_the_cube():
    """So the bounds that the judge applies are reached, and would see one step more."""
    for dimension in range(1, 7):
        drawn = calm(1 << dimension, [*range(1 << dimension)])
        call(drawn, 5 % (1 << dimension), "publish")
        [tree] = [tree for key, tree in drawn.packets.trees.items() if key[0] == "Pub"]
        degrees = Counter(tree.copies.values())
        assert max(degrees.values()) == dimension
        heights = []
        for target in tree.copies:
            steps = 1
            while (target := tree.copies[target]) in tree.copies:
                steps += 1
            heights.append(steps)
        assert max(heights) == dimension


@pytest.mark.parametrize("window", [1, 2, 4])
def test_no_more_publications_are_under_way_than_the_window(window):
    drawn = Drawn(Plan(2, 8, window, "causal", tuple(range(8)), {
        number: (Op("publish", ("t",)),) * 6 for number in (0, 3)}, mood="links"))  # fmt: skip
    most = 0
    while drawn.flight:
        drawn.step()
        for machine in drawn.machines.values():
            assert isinstance(machine, Peered)
            topic = machine._topics["t"]
            own = [key for key in machine._trees._waves if key[0] == 3 and key[2] == machine._me]
            assert len(own) == topic.outstanding <= window
            most = max(most, topic.outstanding)
    drawn.finish()
    assert most == window


def entries(drawn: Drawn) -> Counter[str]:
    """How much the peers remember, by what it is."""
    found: Counter[str] = Counter()
    for machine in drawn.machines.values():
        assert isinstance(machine, Peered)
        state = machine.packed()
        found["waves"] += len(state.trees.waves)
        for topic in state.topics.values():
            found["rows"] += sum(map(len, topic.tables)) + len(topic.have)
            found["kept"] += len(topic.ahead) + len(topic.early) + len(topic.calls)
        found["stamps"] += sum(map(len, machine.inner._stamps.packed().values()))  # type: ignore[attr-defined]
    return found


def test_a_long_run_leaves_nothing_behind():
    """Members come and go and publish for ever: what is remembered is bounded by their number."""
    count = 8
    drawn = calm(count, list(range(count)), "causal", window=4)
    rng = Random("long")
    inside = {*range(count)}
    seen = []
    for events in range(20_000 if WIDE else 1_500):
        number = rng.randrange(count)
        if rng.random() < 0.1:
            call(drawn, number, "unsubscribe" if number in inside else "subscribe")
            inside ^= {number}
        else:
            publish(drawn, number, events)
        if events % 100 == 99:
            seen.append(entries(drawn))
    assert all(each["waves"] == each["kept"] == 0 for each in seen)
    # Views, where origins begin and count, what has come: five numbers for each other peer.
    assert max(each["rows"] for each in seen) <= count * count * 5
    assert max(each["stamps"] for each in seen) <= count * count


def publish(drawn: Drawn, number: int, value: int) -> None:
    """The judge keeps all events in masks, so a long run goes without it."""
    name = drawn.plan.names[number]
    peer = drawn.peer(name)
    waiting = [(name, effect) for effect in peer.publish("t", {"n": value}, 0.0)]
    while waiting:
        source, effect = waiting.pop(0)
        if type(effect).__name__ == "Send":
            target = effect.target
            receiver = drawn.peer(target)
            waiting += [(target, each) for each in receiver.receive(source, effect.message, 0.0)]


def test_a_peer_writes_its_numbers_down_in_blocks():
    """One record when it joins, one for each block of publications."""
    drawn = calm(4, [0, 1], "causal")
    name = drawn.plan.names[0]
    written = 0
    act = drawn._act

    def counted(node, effect):
        nonlocal written
        written += type(effect).__name__ == "Persist"
        act(node, effect)

    drawn._act = counted  # type: ignore[method-assign]
    for _ in range(3):
        call(drawn, 0, "publish")
    assert written == 2, "one for the events of the client, one for the places of the peer"
    peer = drawn.peer(name)
    topic = peer._topics["t"]
    assert (topic.next, topic.reserved) == (4, SEQ_BLOCK)
    assert call(drawn, 0, "unsubscribe")
    assert written == 3


@pytest.mark.parametrize("mood", ["even", "links", "nodes", "last", "newest"])
def test_every_mood_lets_messages_overtake_each_other(mood):
    """The rig itself: on some link a later publication of one source comes first."""
    holes = 0
    for seed in range(20):
        calls = {number: (Op("publish", ("t",)),) * 4 for number in (0, 5)}
        drawn = Drawn(Plan(seed, 8, 3, "causal", tuple(range(8)), calls, mood=mood))
        while drawn.flight:
            drawn.step()
            holes += any(drawn.peer(name)._topics["t"].ahead for name in drawn.machines)
        drawn.finish()
    assert holes > 0
