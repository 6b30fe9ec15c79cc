"""The errata of VCube-PS: each schedule under the printed rules, beside what our peers make of it.

The printed rules are those of listing.py. Our peers play the same schedule in a script
(tests/scripts/cube), whose last word on who delivered what is read here; that the script is what
really happens is the business of tests/scripts/test_scripts.py.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from inorder.sim.script import parse
from tests.protocols.cube.listing import World

SCRIPTS = Path(__file__).parents[2] / "scripts" / "cube"


def ours(name: str, block: int = -1) -> dict[str, str]:
    """What everybody has delivered in a script, in its last block that says so."""
    [path] = SCRIPTS.glob(f"{name}_*.txt")
    blocks = [each for each in parse(path.read_text()) if "delivered" in each.commands]
    lines = [re.fullmatch(r"(\w+): ((?:\w+:\d+ ?)+)", line) for line in blocks[block].seen]
    return {line[1]: line[2] for line in lines if line}


def test_p1_the_text_delivers_an_answer_before_its_question():
    world = World(4, [0, 1, 2], text=True)
    world.call(0, "question")
    world.arrive(0, 1)
    world.call(1, "answer")
    world.arrive(1, 2)
    world.settle()
    assert world.got(2) == ["answer", "question"]
    assert ours("errata_p01", 0)["n2"] == "n0:1 n1:1"


def test_p1b_the_listing_waits_for_ever_for_what_was_never_addressed_to_it():
    world = World(4, [0, 1])
    world.call(2, "subscribe")
    world.call(0, "question")
    world.arrive(0, 1)
    world.settle()
    world.call(1, "answer")
    world.settle()
    assert (world.got(1), world.got(2)) == (["question", "answer"], [])
    assert ours("errata_p01")["n2"] == "n1:1"


def test_p2_a_joining_node_passes_on_to_whom_it_knows():
    world = World(4, [0, 3])
    world.call(2, "subscribe")
    world.settle((3, 2))
    world.call(0, "news")
    world.settle((3, 2))
    world.settle()
    assert world.got(3) == []
    assert ours("errata_p02")["n3"] == "n0:1"


def test_p3_a_node_that_leaves_at_once_stays_in_every_view():
    world = World(4, [0, 3])
    world.call(2, "subscribe", "unsubscribe")
    world.settle()
    world.call(0, "news")
    world.settle()
    assert world.got(3) == []
    assert world.nodes[0].members == [0, 2, 3]
    assert not world.nodes[2].subscribed
    assert ours("errata_p03")["n3"] == "n0:1 n0:2"


def test_p4_a_node_that_has_left_passes_on_by_a_view_that_stands_still():
    world = World(4, [0, 2])
    world.call(2, "unsubscribe")
    world.call(3, "subscribe")
    world.settle((2, 0))
    world.call(0, "news")
    world.settle((2, 0))
    world.settle()
    assert world.nodes[0].members == [0, 3]
    assert world.got(3) == []
    assert ours("errata_p04")["n3"] == "n0:1"


def test_p5_two_tasks_send_two_publications_at_once():
    world = World(2, [0, 1])
    world.call(1, "unsubscribe", "subscribe", "first", "second")
    world.arrive(1, 0, "UNS")
    world.arrive(1, 0, "SUB")
    world.arrive(0, 1, "SUB")
    world.arrive(0, 1, "UNS")
    world.arrive(1, 0, "PUB", which=2)
    world.settle()
    assert world.got(0) == ["second", "first"]
    assert ours("errata_p05")["n0"] == "n1:1 n1:2"


@pytest.mark.parametrize(("keeps", "got"), [(False, []), (True, ["cause", "effect"])])
def test_p6_forgetting_a_leaver_blocks_its_last_event(keeps, got):
    world = World(4, [0, 1], keeps=keeps)
    world.call(0, "old")
    world.settle()
    world.call(2, "subscribe")
    world.settle()
    world.call(1, "cause")
    world.settle((1, 2))
    world.call(0, "effect")
    world.settle((1, 2))
    world.call(0, "unsubscribe")
    world.settle((1, 2))
    world.settle()
    assert world.got(2) == got
    assert ours("errata_p06")["n2"] == "n1:1 n0:2"


def test_p7_queued_publications_of_a_leaver_miss_who_has_joined():
    world = World(4, [0, 1])
    world.call(1, "first", "second", "unsubscribe")
    world.arrive(1, 0)
    world.call(2, "subscribe")
    world.arrive(2, 0, "SUB")
    world.arrive(0, 1, "SUB")
    world.settle((0, 1))
    assert world.nodes[2].tasks == [None]  # node 2 is in
    world.settle()
    assert (world.got(0), world.got(2)) == (["first", "second"], [])


def test_p7_our_leaver_is_addressed_until_its_last_publication():
    [path] = SCRIPTS.glob("errata_p07_*.txt")
    assert "n1->n2 Pub chat n1:2" in path.read_text()


def test_p8_to_the_letter_every_leaf_delivers_nothing():
    payloads = {}
    for erases in (False, True):
        world = World(4, range(4), erases=erases)
        world.call(0, "news")
        world.settle()
        payloads[erases] = [world.got(node)[0] for node in range(4)]
    assert payloads == {False: ["news"] * 4, True: ["news", "", "news", ""]}


def test_p9_every_event_delivered_is_remembered():
    world = World(2, [0, 1])
    for number in range(100):
        world.call(0, f"{number}")
        world.settle()
    assert len(world.nodes[1].last_delvs) == 100


def test_p10_a_test_that_empties_the_barrier_prunes_nothing():
    world = World(8, range(8))
    for node in range(8):
        world.call(node, f"{node}")
        world.settle()
    # Each rests on the one before it, which stands for all the others.
    assert len(world.nodes[0].barrier) == 8


@pytest.mark.parametrize(("forgets", "members"), [(True, [0, 1, 2]), (False, [0, 2])])
def test_p11_without_what_has_left_a_farewell_is_undone(forgets, members):
    world = World(4, [0, 1], forgets=forgets)
    world.call(2, "subscribe")
    world.settle((0, 2))
    world.call(1, "unsubscribe")
    world.settle((0, 2))
    world.settle()
    assert world.nodes[2].members == members


def test_p12_two_first_subscribers_do_not_miss_each_other():
    """No erratum."""
    world = World(4, [])
    world.call(0, "subscribe")
    world.call(3, "subscribe")
    world.settle()
    assert world.nodes[0].members == world.nodes[3].members == [0, 3]


def test_p13_who_returns_behind_a_queued_farewell_is_alone():
    world = World(2, [0, 1])
    world.call(0, "first")
    world.settle()
    world.call(0, "second", "unsubscribe", "subscribe", "third")
    world.settle()
    assert world.nodes[0].members == [0]
    assert world.got(1) == ["first", "second"]
    assert ours("errata_p13")["n1"] == "n0:1 n0:2 n0:3"


def test_p14_a_chain_breaks_where_its_middle_is_not_addressed_to_a_joiner():
    world = World(4, [0, 1])
    world.call(2, "subscribe")
    world.arrive(2, 0, "SUB")
    world.call(0, "cause")
    world.arrive(0, 1, "PUB")
    world.call(1, "middle")
    world.settle((0, 2))
    world.arrive(0, 2, "SUB")
    assert world.nodes[2].tasks == [None]  # node 2 is in
    world.call(1, "effect")
    world.arrive(1, 2, "PUB")
    world.settle()
    assert world.got(2) == ["effect", "cause"]
    assert ours("errata_p14")["n2"] == "n0:2 n1:3"


def test_p15_numbers_of_a_topic_have_holes():
    world = World(2, [0, 1])
    world.call(0, "first", "unsubscribe")
    world.settle()
    world.call(0, "subscribe")
    world.settle()
    world.call(0, "second")
    world.settle()
    assert sorted(world.nodes[1].last_delvs) == [(0, 1), (0, 4)]


def test_p16_one_publication_is_under_way_at_a_time():
    world = World(4, range(4))
    world.call(0, "first", "second")
    assert {message.data for _, _, message in world.flying} == {"first"}
