"""Peers die with events that nobody else has: what rests on these goes, and the rest goes on."""

from __future__ import annotations

from itertools import permutations

import pytest

from inorder.core.effect import Answer, Effect
from inorder.core.event import Event
from inorder.protocols.causal import Client, Options, Published, session
from tests.protocols.causal.drive import answers, ids, notes

GAP = [("gap/t", "gap")]


def held(stamps: str = "barrier", topics: tuple[str, ...] = ("t",)) -> Client:
    made = Client("me", (), Options(stamps=stamps))  # type: ignore[arg-type]
    made.subscribe("c", topics, 0.0)
    for topic in topics:
        made.preset(topic, 20, 19)
    return made


def give(made: Client, publisher: int, number: int, *places, topic: str = "t", others=()):
    sent = Published(Event(f"p{publisher}", number, topic), places, others)
    return made.placed(((topic, publisher), number), f"p{publisher}", sent, 0.0)


def lose(made: Client, publisher: int, number: int, topic: str = "t") -> list[Effect]:
    return made.lost(((topic, publisher), number), 0.0)


def test_what_is_lost_is_skipped_and_told_if_it_costs_an_event():
    made = held()
    give(made, 0, 1)
    assert lose(made, 0, 3) == [], "whether there were such events nobody can know"
    before = made.snapshot()
    for number in (1, 2, 3):
        assert lose(made, 0, number) == []
    assert made.snapshot() == before
    assert ids(give(made, 1, 1, (0, 1))) == ["p1:1"]
    told = Answer("gap/t", "gap", "events of t are lost")
    assert told in give(made, 2, 1, (0, 2))
    assert told not in give(made, 3, 1, (0, 2)), "once for each loss"


def test_what_rests_on_a_lost_event_is_discarded_directly_and_through_chains():
    made = held()
    give(made, 1, 1, (0, 1))
    give(made, 2, 1, (1, 1))
    give(made, 3, 1, (2, 1), (4, 1))
    give(made, 5, 1, (6, 1))
    effects = lose(made, 0, 1)
    assert answers(effects) == GAP
    assert notes(effects) == [
        ("discarded", "p1:1"), ("discarded", "p2:1"), ("discarded", "p3:1")
    ]  # fmt: skip
    assert made.waiting == 1
    assert ids(give(made, 6, 1)) == ["p6:1", "p5:1"]


@pytest.mark.parametrize("order", [*permutations(range(4))])
def test_a_chain_is_discarded_in_whatever_order_it_comes(order):
    chain = [(1, (0, 1)), (2, (1, 1)), (3, (2, 1)), (4, (3, 1))]
    for when in range(5):
        made = held()
        effects: list[Effect] = []
        for turn, each in enumerate(order):
            if turn == when:
                effects += lose(made, 0, 1)
            publisher, cause = chain[each]
            effects += give(made, publisher, 1, cause)
        if when == 4:
            effects += lose(made, 0, 1)
        assert answers(effects) == GAP
        assert sorted(notes(effects)) == [("discarded", f"p{each}:1") for each in (1, 2, 3, 4)]
        assert ids(effects) == []
        assert made.idle


def test_numbers_of_the_same_origin_that_have_come_before_the_hole_are_kept():
    made = held()
    give(made, 0, 1, (1, 1))
    give(made, 0, 2)
    assert answers(lose(made, 0, 4)) == []
    assert made.waiting == 2
    assert ids(give(made, 1, 1)) == ["p1:1", "p0:1", "p0:2"]
    assert give(made, 2, 1, (0, 2))[0].event.id == "p2:1"
    assert notes(give(made, 3, 1, (0, 3))) == [("discarded", "p3:1")]


def test_later_events_of_the_same_publisher_rest_on_the_lost_one():
    made = held()
    give(made, 0, 3)
    effects = lose(made, 0, 1)
    assert notes(effects) == [("discarded", "p0:3")]
    assert notes(give(made, 0, 2)) == [("discarded", "p0:2")]
    assert notes(give(made, 0, 9)) == [("discarded", "p0:9")]
    assert notes(give(made, 1, 1, (0, 9))) == [("discarded", "p1:1")]
    assert notes(give(made, 1, 2)) == [("discarded", "p1:2")]
    assert made.idle


def test_a_gap_that_begins_earlier_takes_in_a_later_one():
    made = held()
    give(made, 0, 5, (1, 1))
    assert notes(lose(made, 1, 1)) == [("discarded", "p0:5")]
    assert ids(give(made, 0, 1)) == ["p0:1"]  # 2 to 4 are on their way
    assert answers(lose(made, 0, 3)) == [], "what it costs has been told"
    assert made._order.sessions["t"].gaps[0] == [(2, session.OPEN)]
    assert notes(give(made, 2, 1, (0, 4))) == [("discarded", "p2:1")]


@pytest.mark.parametrize("told", ["lost first", "begins first"])
def test_who_begins_again_does_not_rest_on_what_was_lost(told):
    """A publisher's next life has numbers of its own; those between were never given."""
    made = held()
    give(made, 0, 1)
    give(made, 1, 1, (0, 2))
    effects: list[Effect] = []
    for step in ("lost first", "begins first") if told == "lost first" else (told, "lost first"):
        if step == "lost first":
            effects += lose(made, 0, 1000)
        else:
            effects += made.begins(("t", 0), 1, 1001, 0.0)
    assert answers(effects) == GAP
    assert notes(effects) == [("discarded", "p1:1")]
    assert ids(give(made, 0, 1001)) == ["p0:1001"]
    assert ids(give(made, 2, 1, (0, 1001))) == ["p2:1"]
    for number in (2, 1000):
        assert notes(give(made, 3, 1, (0, number))) == [("discarded", "p3:1")]
    assert notes(give(made, 0, 2)) == [("discarded", "p0:2")]
    assert lose(made, 0, 1000) == []
    assert made.idle


@pytest.mark.parametrize("told", ["lost first", "begins first"])
def test_the_next_life_waits_until_the_former_one_has_ended_here(told):
    made = held()
    give(made, 0, 1, (1, 1))
    if told == "begins first":
        made.begins(("t", 0), 1, 1001, 0.0)
        assert give(made, 0, 1001) == []
    lose(made, 0, 1000)
    if told == "lost first":
        made.begins(("t", 0), 1, 1001, 0.0)
        assert give(made, 0, 1001) == []
    assert made.waiting == 2
    assert Client.restore(made.snapshot()).snapshot() == made.snapshot()
    assert ids(give(made, 1, 1)) == ["p1:1", "p0:1", "p0:1001"]


def test_both_lives_may_lose_something():
    made = held()
    give(made, 0, 2)
    made.begins(("t", 0), 1, 5, 0.0)
    give(made, 0, 5)
    give(made, 0, 7)
    effects = lose(made, 0, 6)
    assert answers(effects) == GAP
    assert sorted(notes(effects)) == [("discarded", "p0:2"), ("discarded", "p0:7")]
    assert ids(effects) == ["p0:5"]
    assert ids(give(made, 1, 1, (0, 5))) == ["p1:1"]
    for number in (1, 4, 6, 8):
        assert notes(give(made, 2, 1, (0, number))) == [("discarded", "p2:1")]


def test_a_third_life_ends_the_gap_of_the_second():
    made = held()
    lose(made, 0, 1)
    made.begins(("t", 0), 1, 10, 0.0)
    assert ids(give(made, 0, 10)) == ["p0:10"]
    lose(made, 0, 11)
    made.begins(("t", 0), 1, 20, 0.0)
    assert ids(give(made, 0, 20)) == ["p0:20"]
    assert ids(give(made, 1, 1, (0, 10))) == ["p1:1"]
    assert notes(give(made, 2, 1, (0, 19))) == [("discarded", "p2:1")]
    assert notes(give(made, 3, 1, (0, 9))) == [("discarded", "p3:1")]


def test_what_was_lost_may_turn_out_to_be_the_first_number_of_the_next_life():
    made = held()
    lose(made, 0, 1)
    made.begins(("t", 0), 1, 1, 0.0)
    assert made._order.sessions["t"].gaps == {}
    assert ids(give(made, 0, 1)) == ["p0:1"]


def test_a_next_life_may_begin_with_what_rests_on_a_lost_event():
    made = held()
    made.begins(("t", 0), 1, 5, 0.0)
    lose(made, 1, 1)
    assert notes(give(made, 0, 5, (1, 1))) == [("discarded", "p0:5")]
    assert made._order.sessions["t"].gaps[0] == [(5, session.OPEN)]
    assert notes(give(made, 0, 6)) == [("discarded", "p0:6")]
    for number in range(1, 5):
        assert ids(give(made, 0, number)) == [f"p0:{number}"]


def test_two_gaps_that_touch_are_passed_together():
    made = held()
    give(made, 0, 1, (1, 1))
    made.begins(("t", 0), 1, 5, 0.0)
    lose(made, 0, 2)
    lose(made, 0, 5)
    made.begins(("t", 0), 1, 9, 0.0)
    assert made._order.sessions["t"].gaps[0] == [(2, 4), (5, 8)]
    assert give(made, 0, 9) == []
    assert ids(give(made, 1, 1)) == ["p1:1", "p0:1", "p0:9"]


def test_a_life_that_begins_before_the_topic_is_joined_ends_the_gaps_of_the_former_one():
    made = Client("me", ())
    made.subscribe("c", ["t"], 0.0)
    made.begins(("t", 0), 1, 1, 0.0)
    lose(made, 0, 3)
    made.begins(("t", 0), 9, 9, 0.0)
    give(made, 0, 9)
    assert ids(made.joined("t", 0.0)) == ["p0:9"]


def test_the_state_does_not_show_in_which_order_topics_were_told():
    made = [held("whole", ("a", "b", "c")) for _ in range(2)]
    for topics, each in zip((("b", "c"), ("c", "b")), made, strict=True):
        lose(each, 0, 1, topic="a")
        for topic in topics:
            give(each, 1, 1, topic=topic, others=(("a", ((0, 1),)),))
    assert made[0].snapshot() == made[1].snapshot()


def test_each_loss_is_told():
    made = held()
    for lost in (0, 1):
        assert answers(lose(made, lost, 1)) == []
        assert answers(give(made, 2, 1 + lost, (lost, 1))) == GAP
        assert answers(give(made, 3 + lost, 1, (lost, 1))) == []


def test_a_loss_on_one_topic_is_told_on_the_others_that_it_touches():
    made = held("whole", ("a", "b"))
    give(made, 1, 1, topic="b", others=(("a", ((0, 1),)),))
    give(made, 2, 1, (1, 1), topic="b")
    effects = lose(made, 0, 1, topic="a")
    assert answers(effects) == [("gap/b", "gap")]
    assert len(notes(effects)) == 2
    assert answers(give(made, 3, 1, topic="b", others=(("a", ((0, 1),)),))) == []
    assert answers(lose(made, 4, 1, topic="a")) == []
    effects = give(made, 5, 1, topic="b", others=(("a", ((4, 1),)),))
    assert answers(effects) == [("gap/b", "gap")]


def test_leaving_the_topic_of_a_loss_forgets_it():
    made = held("whole", ("a", "b"))
    lose(made, 0, 1, topic="a")
    made.unsubscribe("d", ["a"], 0.0)
    effects = give(made, 1, 1, topic="b", others=(("a", ((0, 1),)),))
    assert ids(effects) == ["p1:1"]


def test_what_was_discarded_is_no_part_of_the_past():
    for stamps in ("barrier", "clock", "whole"):
        made = held(stamps)
        give(made, 1, 1, (0, 1))
        lose(made, 0, 1)
        assert made.publish("t", {}, 0.0)[1].message.places == ()


def test_a_loss_that_concerns_nothing_here_is_passed_over():
    made = held()
    give(made, 0, 1)
    before = made.snapshot()
    assert lose(made, 0, 1) == []
    assert lose(made, 0, 1, topic="other") == []
    assert lose(made, 77, 1) == []
    assert made.snapshot() == before


def test_what_is_lost_before_the_topic_is_joined_is_told_to_nobody():
    made = Client("me", ())
    made.subscribe("c", ["t"], 0.0)
    made.begins(("t", 0), 1, 1, 0.0)
    made.begins(("t", 1), 1, 1, 0.0)
    give(made, 0, 2)
    effects = lose(made, 0, 1)
    assert (answers(effects), notes(effects)) == ([], [("discarded", "p0:2")])
    made.joined("t", 0.0)
    assert notes(give(made, 1, 1, (0, 1))) == [("discarded", "p1:1")]


def test_a_client_in_the_middle_of_losses_comes_back_from_its_snapshot():
    made = held("whole", ("a", "b"))
    give(made, 0, 2, topic="a")
    give(made, 4, 1, (5, 1), topic="a")
    lose(made, 0, 3, topic="a")
    made.begins(("a", 0), 1, 9, 0.0)
    lose(made, 1, 1, topic="b")
    again = Client.restore(made.snapshot())
    assert again.snapshot() == made.snapshot()
    for step in (
        lambda each: give(each, 2, 1, (1, 1), topic="b"),
        lambda each: give(each, 3, 1, topic="b", others=(("a", ((0, 2),)),)),
        lambda each: give(each, 0, 1, topic="a"),
        lambda each: give(each, 0, 9, topic="a"),
        lambda each: give(each, 5, 1, topic="a"),
    ):
        assert step(made) == step(again)
        assert again.snapshot() == made.snapshot()


def test_only_so_many_gaps_of_an_origin_are_remembered(monkeypatch):
    monkeypatch.setattr(session, "CAUSAL_GAPS_MAX", 2)
    made = held()
    for life in range(4):
        made.begins(("t", 0), 1, 10 * life + 1, 0.0)
        lose(made, 0, 10 * life + 2)
    assert made._order.sessions["t"].gaps[0] == [(21, 30), (31, session.OPEN)]


def test_many_that_rest_on_a_lost_one_are_discarded_without_recursion():
    made = held()
    for publisher in range(1, 19):
        for number in range(1, 101):
            give(made, publisher, number, (publisher - 1, number))
    effects = lose(made, 0, 1)
    assert len(notes(effects)) == 1800
    assert answers(effects) == GAP
    assert made.idle
