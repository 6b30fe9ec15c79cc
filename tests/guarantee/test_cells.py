"""A holder of areas: which cells it joins and leaves, and what it hands over of them."""

from __future__ import annotations

import pytest

from inorder.core.effect import Answer, Deliver, Join, Leave
from inorder.core.errors import Misuse, PredicateError, TooLarge
from inorder.core.event import Event
from inorder.guarantee.cells import holder as holders
from inorder.guarantee.cells.grid import Grid
from inorder.guarantee.none import Published
from tests.guarantee.lane import WHERE, Lane, holder

# Subscriptions.


def test_a_subscription_joins_the_cells_of_its_area_and_is_answered_when_all_are_in():
    lane = Lane()
    lane.subscribe("c1", 5, 25)
    assert lane.asked == [0, 1, 2]
    lane.confirm(0, 2)
    assert lane.answers == []
    lane.comes(7.0)
    assert lane.handed == []
    lane.confirm(1)
    assert lane.answers == ["c1 done"]
    lane.comes(8.0, seq=2)
    assert lane.handed == [("p:2", 8.0)]


def test_what_is_handed_over_is_of_the_application_s_topic_and_matches():
    lane = Lane()
    lane.subscribe("c1", 5, 25)
    lane.confirm()
    event = Event("p", 3, "t@0,0", {"x": 6.0, "y": 1.0, "kind": "bus"}, 0.5)
    effects = lane.machine.receive("p", Published(event), 0.0)
    assert effects == [Deliver(Event("p", 3, "t", event.value, 0.5))]
    for seq, x in enumerate((4.9, 25.0, 24.9, 5.0), 4):
        lane.comes(x, seq)
    assert lane.handed == [("p:6", 24.9), ("p:7", 5.0)]
    assert lane.machine.account() == {"filtered": 2.0, "again": 0.0}


def test_values_are_in_force_from_the_call_on():
    lane = Lane()
    lane.subscribe("c1", 0, 20)
    lane.confirm()
    lane.set("c2", west=10, east=30)
    lane.comes(5.0, 1)
    lane.comes(15.0, 2)
    assert lane.handed == [("p:2", 15.0)]
    # What a new cell hands over before all are in matches, too.
    lane.confirm(2)
    lane.comes(25.0, 3)
    assert lane.handed[1:] == [("p:3", 25.0)]


def test_a_topic_without_a_filter_is_held_in_all_cells():
    lane = Lane()
    lane.act(lane.machine.subscribe("c1", ["t"], 0.0))
    assert lane.asked == list(range(10))
    lane.confirm()
    lane.comes(55.0)
    assert lane.handed == [("p:1", 55.0)]
    with pytest.raises(PredicateError, match="'t' is not held with a filter"):
        lane.set("c2", west=1.0)


def test_several_topics_are_one_call():
    machine = holder()
    effects = machine.subscribe("c1", ["b", "a", "b"], 0.0, WHERE, {"west": 0, "east": 10})
    assert effects == [Join("a@0,0"), Join("b@0,0")]
    assert machine.joined("a@0,0", 0.0) == []
    assert machine.joined("b@0,0", 0.0) == [Answer("c1", "done")]
    effects = machine.set("c2", ["a", "b"], {"east": 20}, 0.0)
    assert effects == [Join("a@1,0"), Join("b@1,0")]


def test_an_empty_area_needs_no_cells_and_may_grow():
    lane = Lane()
    lane.subscribe("c1", 30, 20)
    assert (lane.asked, lane.answers) == ([], ["c1 done"])
    lane.set("c2", east=40)
    assert lane.asked == [3]
    lane.confirm()
    lane.set("c3", east=0)
    assert (lane.held, lane.answers) == (set(), ["c1 done", "c2 done", "c3 done"])
    lane.act(lane.machine.unsubscribe("c4", ["t"], 0.0))
    assert lane.answers[-1] == "c4 done"


# Moving.


def test_moving_joins_what_is_new_and_leaves_what_is_old_when_that_is_in():
    lane = Lane()
    lane.subscribe("c1", 0, 20)
    lane.confirm()
    lane.set("c2", west=20, east=40)
    assert (lane.held, lane.asked) == ({0, 1}, [2, 3])
    lane.confirm(3)
    assert (lane.held, lane.answers) == ({0, 1, 3}, ["c1 done"])
    lane.confirm(2)
    assert (lane.held, lane.answers) == ({2, 3}, ["c1 done", "c2 done"])


def test_moving_within_the_cells_is_done_at_once():
    lane = Lane()
    lane.subscribe("c1", 0, 20)
    lane.confirm()
    lane.set("c2", west=3)
    assert (lane.held, lane.asked, lane.answers[1:]) == ({0, 1}, [], ["c2 done"])
    lane.set("c3", west=12)
    assert (lane.held, lane.answers[1:]) == ({1}, ["c2 done", "c3 done"])


def test_a_later_move_overtakes_an_earlier_one():
    lane = Lane()
    lane.subscribe("c1", 0, 10)
    lane.confirm()
    lane.set("c2", west=50, east=60)
    lane.set("c3", west=70, east=80)
    lane.confirm(7)
    assert (lane.held, lane.asked) == ({7}, [])
    assert lane.answers == ["c1 done", "c2 done", "c3 done"]


def test_an_earlier_move_that_is_in_keeps_the_later_one_waiting_only():
    lane = Lane()
    lane.subscribe("c1", 0, 10)
    lane.confirm()
    lane.set("c2", west=50, east=60)
    lane.set("c3", west=70, east=80)
    lane.confirm(5)
    assert (lane.held, lane.answers) == ({5}, ["c1 done", "c2 done"])
    lane.confirm(7)
    assert (lane.held, lane.answers[2:]) == ({7}, ["c3 done"])


def test_moving_back_before_it_is_in_is_done_at_once():
    lane = Lane()
    lane.subscribe("c1", 0, 10)
    lane.confirm()
    lane.set("c2", west=50, east=60)
    lane.set("c3", west=0, east=10)
    assert (lane.held, lane.asked) == ({0}, [])
    assert lane.answers == ["c1 done", "c2 done", "c3 done"]


def test_a_move_before_the_subscription_is_answered_is_part_of_it():
    """The application would hold the topic with values whose cells are not in."""
    lane = Lane()
    lane.subscribe("c1", 0, 10)
    lane.set("c2", west=50, east=60)
    lane.confirm(0)
    assert lane.answers == []
    lane.comes(55.0, 1)
    lane.confirm(5)
    assert lane.answers == ["c1 done", "c2 done"]
    assert lane.held == {5}
    lane.comes(56.0, 2)
    assert lane.handed == [("p:2", 56.0)]


def test_one_topic_does_not_wait_for_another():
    machine = holder()
    machine.subscribe("c1", ["a"], 0.0, WHERE, {"west": 0, "east": 10})
    machine.subscribe("c2", ["b"], 0.0, WHERE, {"west": 0, "east": 10})
    assert machine.joined("b@0,0", 0.0) == [Answer("c2", "done")]
    machine.set("c3", ["b"], {"west": 10, "east": 20}, 0.0)
    assert machine.joined("a@0,0", 0.0) == [Answer("c1", "done")]
    assert machine.joined("b@1,0", 0.0) == [Answer("c3", "done"), Leave("b@0,0")]


def test_a_call_for_two_topics_is_over_when_each_is_in_or_overtaken():
    machine = holder()
    machine.subscribe("c1", ["a", "b"], 0.0, WHERE, {"west": 0, "east": 10})
    machine.joined("a@0,0", 0.0)
    machine.joined("b@0,0", 0.0)
    machine.set("c2", ["a", "b"], {"west": 50, "east": 60}, 0.0)
    machine.set("c3", ["a"], {"west": 70, "east": 80}, 0.0)
    # c3 is in, and overtakes the part of c2 that is about a; but c2 was first.
    assert machine.joined("a@7,0", 0.0) == [Leave("a@0,0"), Leave("a@5,0")]
    effects = machine.joined("b@5,0", 0.0)
    assert effects == [Answer("c2", "done"), Answer("c3", "done"), Leave("b@0,0")]


def test_what_one_topic_waits_for_is_kept_while_another_one_moves():
    machine = holder()
    for topic in ("a", "b"):
        machine.subscribe(f"{topic}1", [topic], 0.0, WHERE, {"west": 0, "east": 10})
        machine.joined(f"{topic}@0,0", 0.0)
    machine.set("a2", ["a"], {"west": 20, "east": 30}, 0.0)
    machine.set("a3", ["a"], {"west": 30, "east": 40}, 0.0)
    assert machine.set("b2", ["b"], {"west": 5}, 0.0) == [Answer("b2", "done")]
    effects = machine.joined("a@2,0", 0.0)
    assert effects == [Answer("a2", "done"), Leave("a@0,0")]
    effects = machine.joined("a@3,0", 0.0)
    assert effects == [Answer("a3", "done"), Leave("a@2,0")]


def test_a_topic_that_moves_while_another_one_is_waited_for_is_waited_for_again():
    machine = holder()
    machine.subscribe("c1", ["a", "b"], 0.0, WHERE, {"west": 0, "east": 10})
    machine.joined("a@0,0", 0.0)
    assert machine.set("c2", ["a"], {"west": 5}, 0.0) == []
    assert machine.set("c3", ["a"], {"west": 50, "east": 60}, 0.0) == [Join("a@5,0")]
    assert machine.joined("b@0,0", 0.0) == []
    effects = machine.joined("a@5,0", 0.0)
    assert effects == [*(Answer(call, "done") for call in ("c1", "c2", "c3")), Leave("a@0,0")]


# Leaving.


def test_leaving_a_topic_leaves_its_cells_and_ends_all_waits():
    lane = Lane()
    lane.subscribe("c1", 0, 20)
    lane.confirm(0)
    lane.set("c2", east=30)
    lane.act(lane.machine.unsubscribe("c3", ["t", "other"], 0.0))
    assert (lane.held, lane.asked) == (set(), [])
    assert lane.answers == ["c1 done", "c2 done", "c3 done"]
    lane.comes(5.0)
    assert lane.handed == []
    lane.subscribe("c4", 0, 10)
    lane.confirm()
    assert lane.answers[-1] == "c4 done"


def test_filters_that_are_not_in_use_are_forgotten():
    machine = holder()
    machine.subscribe("c1", ["a"], 0.0, "x < 10")
    machine.subscribe("c2", ["b"], 0.0, "x < 10")
    machine.subscribe("c3", ["c"], 0.0, "x < 20")
    machine.unsubscribe("c4", ["a", "c"], 0.0)
    assert list(machine._predicates) == ["x < 10"]


def test_leaving_one_topic_keeps_the_other():
    machine = holder()
    machine.subscribe("c1", ["a", "b"], 0.0, WHERE, {"west": 0, "east": 10})
    machine.joined("a@0,0", 0.0)
    # The rest of the call goes on.
    assert machine.unsubscribe("c2", ["a"], 0.0) == [Leave("a@0,0"), Answer("c2", "done")]
    assert machine.joined("b@0,0", 0.0) == [Answer("c1", "done")]


# What is refused, and changes nothing.


@pytest.mark.parametrize(
    ("do", "error", "words"),
    [
        (lambda m: m.subscribe("c", [], 0.0), Misuse, "names no topic"),
        (lambda m: m.subscribe("c", ["u", "t"], 0.0), Misuse, "'t' is held already"),
        (lambda m: m.subscribe("c", [""], 0.0), Misuse, "topic without a name"),
        (lambda m: m.subscribe("c", ["n" * 252], 0.0), Misuse, "topic of 256 bytes"),
        (lambda m: m.subscribe("c", ["u"], 0.0, None, {"a": 1}), Misuse, "without a where"),
        (lambda m: m.subscribe("c", ["u"], 0.0, "x <"), PredicateError, "expected"),
        (lambda m: m.subscribe("c", ["u"], 0.0, WHERE, {"west": 1}), PredicateError, ":east"),
        (lambda m: m.set("c", ["u"], {}, 0.0), PredicateError, "'u' is not held"),
        (lambda m: m.set("c", ["t"], {"wst": 1}, 0.0), PredicateError, "'wst'"),
        (lambda m: m.set("c", ["t", "u"], {"west": 1}, 0.0), PredicateError, "'u' is not held"),
        (lambda m: m.set("c", ["t"], {"west": "1"}, 0.0), PredicateError, "cannot become"),
        (lambda m: m.unsubscribe("c", ["u"], 0.0), Misuse, "no topic that is held"),
    ],
)
def test_what_is_refused_changes_nothing(do, error, words):
    lane = Lane()
    lane.subscribe("c1", 0, 20)
    lane.confirm(0)
    before = lane.machine.snapshot()
    with pytest.raises(error, match=words):
        do(lane.machine)
    assert lane.machine.snapshot() == before


def test_without_bounds_an_open_filter_is_refused_and_a_move_to_one_of_too_many_cells():
    machine = holder(Grid(size=1.0))
    for where in (None, "x > 1", "x BETWEEN 1 AND 2"):
        with pytest.raises(Misuse, match="without bounds must say how far"):
            machine.subscribe("c1", ["t"], 0.0, where)
    where = "x BETWEEN 0 AND :east AND y = 1"
    machine.subscribe("c1", ["t"], 0.0, where, {"east": 4})
    before = machine.snapshot()
    with pytest.raises(TooLarge, match="cells of a subscription is 5001"):
        machine.set("c2", ["t"], {"east": 5000}, 0.0)
    assert machine.snapshot() == before


def test_what_may_grow_has_bounds(monkeypatch):
    lane = Lane()
    lane.subscribe("c1", 0, 20)
    monkeypatch.setattr(holders, "TOPICS_PER_SUBSCRIBER_MAX", 4)
    with pytest.raises(TooLarge, match="cells of one subscriber is 5, the limit is 4"):
        lane.set("c2", east=50)
    lane.set("c2", east=40)
    # Cells that are held already do not count twice.
    lane.set("c3", west=10)
    monkeypatch.setattr(holders, "CUBE_CALLS_MAX", 3)
    before = lane.machine.snapshot()
    with pytest.raises(TooLarge, match="changes that wait is 4, the limit is 3"):
        lane.set("c4", west=20)
    assert lane.machine.snapshot() == before
