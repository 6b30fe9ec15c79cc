"""What a peer expects and passes on; what a bundler does when told of changes; bad packets."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inorder.core.effect import Send
from inorder.core.errors import BadMessage
from inorder.core.event import Event
from inorder.core.place import Place
from inorder.protocols.causal.messages import Published
from inorder.protocols.cube.messages import MEMBER, SOURCE, Ack, Packet, Pub, Sub
from inorder.protocols.cube.outlook import Outlook
from inorder.protocols.cube.peers import Peers
from inorder.protocols.cube.topic import Topic
from inorder.protocols.cube.topology import is_parent
from tests.protocols.cube.lockstep import Static
from tests.protocols.cube.twins import slow_index, slow_tree


def outlook(me, count, members, single=False, **begun):
    """A member of `t` that knows these members; origins begin with these numbers."""
    topic = Topic()
    topic.phase, topic.role = "in", MEMBER
    topic.members = sum(1 << number for number in members)
    for origin, start in begun.items():
        topic.begin(int(origin[1:]), start)
    peers = Peers([f"p{number:02}" for number in range(count)])
    return Outlook(me, peers, single, {"t": topic}.get), topic


def resting(source, number, *places):
    return Pub("t", source, number, b"", Published(Event(f"p{source:02}", number, "t"), places))


# Who passes on to whom.


@given(st.data())
def test_the_parent_of_a_child_is_that_of_the_tree(data):
    count = data.draw(st.integers(1, 20))
    members = data.draw(st.sets(st.integers(0, count - 1)))
    root = data.draw(st.integers(0, count - 1))
    mask = sum(1 << number for number in members)
    d = (count - 1).bit_length()
    edges = {*slow_tree(root, members, d)}
    for i in range(count):
        for child in range(count):
            assert is_parent(i, child, root, mask) == ((i, child) in edges)


@pytest.mark.parametrize("count", [8, 11, 16])
@pytest.mark.parametrize("share", [0.4, 1.0])
def test_a_peer_passes_on_what_the_trees_of_its_view_say(count, share):
    for seed in range(8):
        rng = Random(f"{seed}/{count}")
        members = [number for number in range(count) if rng.random() <= share] or [0]
        d = (count - 1).bit_length()
        trees = [slow_tree(root, members, d) for root in range(count)]
        for me in range(count):
            seen, _ = outlook(me, count, members)
            for child in members:
                passed = {x for x in range(count) if seen.passes_on("t", x, child)}
                assert passed == {x for x in range(count) if (me, child) in trees[x]}


@pytest.mark.parametrize("count", [8, 13])
def test_in_a_single_tree_all_edges_are_those_of_peer_0_but_for_what_comes_from_below(count):
    d = (count - 1).bit_length()
    trees = [slow_tree(0, {*range(count)} - {x}, d) for x in range(count)]
    for me in range(count):
        seen, _ = outlook(me, count, range(count), single=True)
        for child in {*range(count)} - {me}:
            passed = {x for x in range(count) if seen.passes_on("t", x, child)}
            above = {x for x in range(count) if slow_index(child, x, d) >= slow_index(child, me, d)}
            assert passed == {x for x in above if (me, child) in trees[x]}


def test_who_is_not_in_passes_nothing_on_as_far_as_holding_goes():
    seen, topic = outlook(4, 8, range(8))
    assert seen.passes_on("t", 2, 5)
    assert not seen.passes_on("u", 2, 5)
    for phase in ("out", "join", "act", "leave"):
        topic.phase = phase
        assert not seen.passes_on("t", 2, 5)
        assert seen.view("t") is None
    topic.phase, topic.role = "in", SOURCE
    assert seen.view("t") is None


# What is expected.


def test_what_is_expected_is_what_comes_from_the_beginning_on_and_has_not():
    seen, topic = outlook(4, 8, range(8), p2=5, p3=1)
    assert seen.missing(resting(3, 1, (2, 4))) == ()
    assert seen.missing(resting(3, 1, (2, 5))) == ((2, 5),)
    assert seen.missing(resting(3, 3, (2, 5))) == ((3, 2), (2, 5))
    topic.come(2, 5)
    assert seen.missing(resting(3, 1, (2, 5))) == ()
    assert seen.missing(resting(3, 1, (2, 6))) == ((2, 6),)
    # What came early does not make up for what is missing before it.
    topic.come(2, 7)
    assert seen.missing(resting(3, 1, (2, 7))) == ((2, 7),)
    topic.come(2, 6)
    assert seen.missing(resting(3, 1, (2, 7))) == ()


@pytest.mark.parametrize("origin", [1, 7, 8, 100, -1, 2**40])
def test_nothing_is_expected_of_who_has_not_begun_or_does_not_exist(origin):
    seen, _ = outlook(4, 8, range(8), p2=1, p3=1)
    assert seen.missing(resting(3, 1, (origin, 3))) == ()


def test_messages_that_know_no_causes_rest_on_nothing():
    seen, _ = outlook(4, 8, range(8), p2=1)
    assert seen.missing(Pub("t", 2, 5, b"", "a word")) == ()


def test_what_is_given_up_is_not_expected_and_all_before_it_neither():
    seen, _ = outlook(4, 8, range(8), p2=1, p3=1)
    seen.give_up([(("t", 2), 4)])
    seen.give_up([(("t", 2), 3), (("u", 3), 9)])
    assert seen.missing(resting(3, 1, (2, 4))) == ()
    assert seen.missing(resting(3, 1, (2, 5))) == ((2, 5),)
    assert seen.missing(resting(3, 2)) == ((3, 1),)


def test_far_children_come_first():
    seen, _ = outlook(4, 8, range(8))
    assert seen.far_first([5, 6, 0]) == [0, 6, 5]


# What a bundler is told.


def holding():
    """Peer 4 of eight holds peer 0's first two for 5, which rest on peer 2's first."""
    network = Static(8, aggregate="causal")
    network.publish(2)
    network.flight = [each for each in network.flight if each[1] in (0, 6)]
    network.arrive(1)
    network.publish(0)
    network.publish(0)
    network.flight = [each for each in network.flight if each[:2] in ((2, 6), (0, 4))]
    network.arrive(1)
    network.arrive(1)
    del network.packets[:]
    bundler = network.peers[4]._trees.bundler
    assert bundler is not None
    assert not bundler.idle
    return network, bundler


def sent_by_4(network):
    network.carry_out(4, network.peers[4]._done(0.0))
    return [(target, pubs) for source, target, pubs in network.packets if source == 4]


def test_a_hold_ends_when_what_it_waits_for_is_given_up():
    network, bundler = holding()
    assert sent_by_4(network) == []
    gone: Place = (("t", 2), 1)
    bundler.give_up([gone])
    assert sent_by_4(network) == [(5, [(0, 1), (0, 2)])]


def test_looking_again_finds_nothing_if_nothing_has_changed():
    network, bundler = holding()
    bundler.look_again()
    assert sent_by_4(network) == []
    assert not bundler.idle


def test_a_view_that_changes_is_seen_without_a_word():
    """By the view without 6 peer 4 is not on the way from 2 to 5 any more."""
    network, _ = holding()
    topic = network.peers[4]._topics["t"]
    topic.members &= ~(1 << 6)
    assert not is_parent(4, 5, 2, topic.members)
    assert sent_by_4(network) == [(5, [(0, 1), (0, 2)])]


def test_nothing_is_held_for_who_was_dropped():
    network, bundler = holding()
    bundler.drop(5)
    assert bundler.idle
    assert not bundler._holds.holds_for(5)
    assert sent_by_4(network) == []
    # Peer 2's comes. Nothing that was held goes with it.
    network.arrive([each[:2] for each in network.flight].index((2, 6)))
    network.arrive([each[:2] for each in network.flight].index((6, 4)))
    assert sent_by_4(network) == [(5, [(2, 1)])]


def test_a_second_part_for_the_same_child_does_not_wait_behind_the_first():
    network, bundler = holding()
    held = bundler._holds.packed()[0][1]
    again = Pub("t", held.source, held.number, b"\x01", held.body)
    bundler.put(5, again)
    assert sent_by_4(network) == [(5, [(0, 1)])]
    assert bundler._holds.packed()[0][1] == held


def test_what_a_bundler_was_told_is_in_its_snapshot():
    network, bundler = holding()
    bundler.give_up([(("t", 7), 3)])
    network.peers[4].tell_queue(True)
    peer = network.peers[4]
    other = type(peer).restore(peer.snapshot())
    assert other.snapshot() == peer.snapshot()
    restored = other._trees.bundler
    assert restored is not None
    assert restored.packed() == bundler.packed()
    assert restored.packed().given_up == [(("t", 7), 3)]
    assert restored.packed().buffers.queue


# Bad packets.


def test_a_packet_with_something_else_in_it_is_noted_and_the_rest_counts():
    network = Static(4, aggregate="causal", stamps="barrier")
    words = Published(Event("p001", 1, "t"))
    packet = Packet((Sub("t", 1, 2, 1, 1, b""), Pub("t", 1, 1, b"", words), Ack(3, "t", 1, 9)))
    effects = network.peers[0].receive("p001", packet, 0.0)
    said = [type(each).__name__ for each in effects]
    assert sorted(said) == ["Deliver", "Note", "Send"]


@pytest.mark.parametrize(
    "bad", [Pub("t", 9, 1, b"", None), Pub("t", 1, 0, b"", None), Pub("t", 1, 1, b"\xff" * 9, None)]
)
def test_a_bad_message_in_a_packet_is_noted(bad):
    network = Static(4, aggregate="causal")
    before = network.peers[0].snapshot()
    effects = network.peers[0].receive("p001", Packet((bad, bad)), 0.0)
    assert [type(each).__name__ for each in effects] == ["Note", "Note"]
    assert network.peers[0].snapshot() == before
    with pytest.raises(BadMessage):
        network.peers[0].receive("p001", bad, 0.0)


def test_peers_that_do_not_bundle_take_packets():
    network = Static(4)
    words = Published(Event("p001", 1, "t"))
    packet = Packet((Pub("t", 1, 1, b"", words), Pub("t", 1, 2, b"", words)))
    effects = network.peers[0].receive("p001", packet, 0.0)
    assert sum(type(each).__name__ == "Send" for each in effects) == 2


def test_a_timer_of_somebody_unknown_is_nothing():
    network = Static(4, aggregate="timer")
    assert network.peers[0].fire("cube/bundle/who", 0.0) == []
    assert Static(4).peers[0].fire("cube/bundle/p001", 0.0) == []


def test_a_peer_that_has_only_acknowledgements_left_is_not_idle():
    network = Static(4, aggregate="timer", tau=1.0)
    words = Published(Event("p001", 1, "t"))
    peer = network.peers[0]
    peer.receive("p001", Pub("t", 1, 1, b"", words), 0.0)
    assert not peer.idle
    [sent] = [each for each in peer.fire("cube/bundle/p001", 1.0) if isinstance(each, Send)]
    assert sent == Send("p001", Ack(3, "t", 1, 1))
    assert peer.idle


def test_what_has_been_put_in_the_same_input_is_dropped_with_the_rest():
    network, bundler = holding()
    bundler.put(5, Ack(3, "t", 5, 1))
    bundler.put(6, Ack(3, "t", 6, 1))
    bundler.drop(5)
    effects = network.peers[4]._done(0.0)
    assert effects == [Send("p006", Ack(3, "t", 6, 1))]


@pytest.mark.parametrize("trees", ["source", "single"])
def test_what_goes_to_nobody_goes_to_no_root_either(trees):
    network = Static(4, members=[3], stamps="barrier", trees=trees)
    network.publish(3)
    assert network.flight == []
    network.check(1)
