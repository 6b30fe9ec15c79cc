"""A client by hand: what has come, what waits, and what that costs."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import pytest

from inorder.core.effect import Answer, Deliver, Diffuse, Join, Leave, Note
from inorder.core.errors import Misuse
from inorder.protocols.causal import Client, Options, order
from tests.protocols.causal.drive import Member, ids, notes
from tests.protocols.causal.hand import give, held, joining, message
from tests.protocols.causal.judge import Judge

# What has come, and what comes again.


def test_what_has_come_or_was_never_addressed_here_is_noted_and_dropped():
    made = Client("p3", ())
    made.subscribe("c", ["t"], 0.0)
    made.begins(("t", 0), 5, 5, 0.0)
    made.joined("t", 0.0)
    assert give(made, 0, 4) == [Note("duplicate", "p0:4")]
    assert give(made, 1, 1) == [Note("unannounced", "p1:1")]
    assert give(made, 0, 6) == []
    assert give(made, 0, 6) == [Note("duplicate", "p0:6")]
    assert ids(give(made, 0, 5)) == ["p0:5", "p0:6"]
    before = made.snapshot()
    assert give(made, 0, 5) == [Note("duplicate", "p0:5")]
    assert give(made, 0, 6) == [Note("duplicate", "p0:6")]
    assert made.snapshot() == before


def test_an_event_of_a_former_life_that_comes_back_is_not_an_own_event():
    made = held()
    made.replay(made.publish("t", {}, 0.0)[0].record)
    give(made, 0, 1)
    sent = next(each for each in made.publish("t", {}, 0.0) if isinstance(each, Diffuse)).message
    assert sent.event.seq == 1001
    before = made.snapshot()
    assert give(made, 3, 1) == [Note("duplicate", "p3:1")]
    assert made.snapshot() == before
    assert ids(made.placed((("t", 3), 1), "p3", sent, 0.0)) == ["p3:1001"]


def test_what_comes_before_the_topic_is_joined_waits():
    made = Client("p3", ())
    made.subscribe("c", ["t"], 0.0)
    assert give(made, 0, 2) == give(made, 0, 1) == give(made, 1, 1) == give(made, 0, 4) == []
    assert made.waiting == 4
    assert not made.idle
    made.begins(("t", 0), 2, 2, 0.0)
    again = Client.restore(made.snapshot())
    for each in (made, again):
        effects = each.joined("t", 0.0)
        assert effects[0] == Answer("c", "done")
        assert sorted(notes(effects)) == [("duplicate", "p0:1"), ("unannounced", "p1:1")]
        assert ids(effects) == ["p0:2"]
        assert each.waiting == 1  # number 4
        assert ids(give(each, 0, 3)) == ["p0:3", "p0:4"]
        assert each.idle


def test_before_the_topic_is_joined_the_last_beginning_holds():
    made = Client("p3", ())
    made.subscribe("c", ["t"], 0.0)
    made.begins(("t", 0), 2, 3, 0.0)
    made.begins(("t", 0), 4, 5, 0.0)
    made.joined("t", 0.0)
    assert ids(give(made, 0, 4)) == []
    assert ids(give(made, 0, 5)) == ["p0:5"]


def test_an_origin_that_begins_again_keeps_its_start_and_what_counted():
    made = held()
    before = made.snapshot()
    made.begins(("t", 0), 1, 1, 0.0)
    assert made.snapshot() == before
    made.begins(("t", 0), 3, 3, 0.0)
    assert give(made, 0, 3) == []
    assert ids(give(made, 0, 1)) == ["p0:1"]
    assert ids(give(made, 0, 2)) == ["p0:2", "p0:3"]
    assert made._order.sessions["t"].again == {}


def test_an_origin_that_counted_from_no_number_on_counts_when_it_begins_again():
    made = joining(((0, 1, 2**63 - 1), (1, 1, 5)))
    assert ids(give(made, 0, 1)) == []
    made.begins(("t", 0), 1, 3, 0.0)
    made.begins(("t", 1), 1, 7, 0.0)  # counts from 5 on all the same
    assert ids(give(made, 0, 2)) == []
    assert ids(give(made, 0, 3)) == ["p0:3"]
    assert [len(ids(give(made, 1, number))) for number in range(1, 9)] == [0] * 4 + [1] * 4


def test_counting_and_beginning_again_are_forgotten_when_they_are_over():
    made = joining(((0, 1, 3),))
    plain = joining(((0, 1, 1),))
    made.begins(("t", 0), 1, 5, 0.0)
    never_again = joining(((0, 1, 3),))
    for number in range(1, 5):
        assert made.snapshot() != plain.snapshot()
        assert (never_again.snapshot() == plain.snapshot()) == (number > 2)
        give(never_again, 0, number)
        assert ids(give(made, 0, number)) == ([f"p0:{number}"] if number > 2 else [])
        give(plain, 0, number)
    assert made.snapshot() == plain.snapshot()


def test_a_topic_counts_from_when_all_topics_of_the_call_have_come():
    made = Client("p3", ())
    assert made.subscribe("c", ["a", "b"], 0.0) == [Join("a"), Join("b")]
    for topic in ("a", "b"):
        made.begins((topic, 0), 1, 1, 0.0)
    assert made.joined("a", 0.0) == []
    assert give(made, 0, 1, topic="a") == []
    assert made.waiting == 0
    assert made.joined("b", 0.0) == [Answer("c", "done")]
    assert ids(give(made, 0, 2, topic="a")) == ["p0:2"]
    assert ids(give(made, 0, 1, topic="b")) == ["p0:1"]


def test_giving_up_one_topic_of_a_call_holds_the_other():
    made = Client("p3", ())
    made.subscribe("c", ["a", "b"], 0.0)
    made.begins(("a", 0), 1, 1, 0.0)
    made.joined("a", 0.0)
    made.unsubscribe("d", ["b"], 0.0)
    assert ids(give(made, 0, 1, topic="a")) == ["p0:1"]


def test_an_own_event_is_not_handed_over_before_the_topic_is_held():
    made = Client("p3", ())
    made.subscribe("c", ["t"], 0.0)
    sent = next(each for each in made.publish("t", {}, 0.0) if isinstance(each, Diffuse)).message
    assert made.placed((("t", 3), 1), "p3", sent, 0.0) == []
    made.begins(("t", 3), 2, 2, 0.0)
    assert ids(made.joined("t", 0.0)) == []


def test_what_names_an_own_event_of_the_future_waits_for_it():
    """Nobody can have seen it: the name is forged, and costs no more than a wait."""
    made = held()
    assert give(made, 0, 1, (3, 1)) == []
    sent = next(each for each in made.publish("t", {}, 0.0) if isinstance(each, Diffuse)).message
    assert ids(made.placed((("t", 3), 1), "p3", sent, 0.0)) == ["p3:1", "p0:1"]


def test_a_topic_that_is_held_already_may_be_named_again():
    made = held()
    give(made, 0, 2)
    assert made.subscribe("d", ["t", "u"], 0.0) == [Join("u")]
    assert ids(give(made, 0, 1)) == ["p0:1", "p0:2"]


def test_a_topic_may_be_confirmed_twice():
    """Two calls wanted it while it was being joined."""
    made = Client("p3", ())
    made.subscribe("c", ["t"], 0.0)
    made.subscribe("d", ["t", "u"], 0.0)
    made.begins(("t", 0), 1, 1, 0.0)
    give(made, 0, 2)
    assert made.joined("t", 0.0) == [Answer("c", "done")]
    give(made, 0, 3)
    before = made.snapshot()
    assert made.joined("t", 0.0) == []
    assert made.snapshot() == before
    assert ids(give(made, 0, 1)) == ["p0:1", "p0:2", "p0:3"]


def test_what_is_freed_together_goes_in_the_order_of_the_places():
    """Else a client that comes back from its snapshot would go another way."""
    made = held()
    for publisher in (2, 0):
        give(made, publisher, 1, (1, 1))
    again = Client.restore(made.snapshot())
    for each in (made, again):
        assert ids(give(each, 1, 1)) == ["p1:1", "p0:1", "p2:1"]


def test_leaving_forgets_origins_and_what_waits_but_not_the_past():
    made = held(topics=("t", "u"))
    give(made, 0, 1)
    give(made, 0, 3)
    give(made, 1, 2, topic="u")
    assert made.unsubscribe("d", ["t"], 0.0) == [Leave("t"), Answer("d", "done")]
    assert made.waiting == 1
    assert give(made, 0, 2) == give(made, 0, 3) == []
    assert made.begins(("t", 0), 7, 7, 0.0) == made.lost((("t", 0), 9), 0.0) == []
    assert made.publish("t", {}, 0.0)[1].message.places == ((0, 1),)
    made.subscribe("e", ["t"], 0.0)
    made.begins(("t", 0), 9, 9, 0.0)
    made.joined("t", 0.0)
    assert give(made, 0, 8) == [Note("duplicate", "p0:8")]
    assert ids(give(made, 0, 9)) == ["p0:9"]
    assert ids(give(made, 1, 1, topic="u")) == ["p1:1", "p1:2"]


def test_a_call_that_is_refused_changes_nothing():
    made = held()
    before = made.snapshot()
    for call in (made.subscribe, made.unsubscribe):
        with pytest.raises(Misuse):
            call("d", ["t" if call == made.subscribe else "u"], 0.0)
    assert made.snapshot() == before


def test_waiting_is_told_with_the_delivery():
    made = held()
    give(made, 0, 2)
    sent = message(0, 1)
    waited = [
        each.waited_s
        for each in made.placed((("t", 0), 1), "p0", sent, 2.5)
        if isinstance(each, Deliver)
    ]
    assert waited == [0.0, 2.5]


# What is expanded.


def test_expanded_says_what_must_come_first():
    made = held(origins=6)
    give(made, 1, 1)
    give(made, 0, 2, (1, 1), (2, 3), (9, 9))
    place = ("t", 0)
    assert made.expanded((place, 2)) == ((0, 1), (2, 3))
    assert made.expanded((place, 1)) is None  # has not come
    assert made.expanded((("t", 9), 1)) is None  # has not begun
    assert made.expanded((("u", 0), 1)) is None  # is not held
    assert made.expanded((("t", 1), 1)) == ()  # taken in
    give(made, 0, 1, (4, 1))
    assert made.expanded((place, 1)) == ((4, 1),)
    assert made.expanded((place, 2)) == ((0, 1), (2, 3))  # a barrier: the direct causes
    before = made.snapshot()
    made.expanded((place, 2))
    assert made.snapshot() == before


def test_an_expanded_clock_is_the_full_clock_as_far_as_it_has_not_come():
    """Compared with clocks kept in full by hand, for all arrival orders of a random talk."""
    compared = 0
    for seed in range(60):
        rng = Random(f"{seed}/clock")
        members = [Member(each, ["t"], Judge(), "clock") for each in range(4)]
        for member in members:
            member.judge = members[0].judge
        flying: list[list] = [[], [], [], []]
        full: dict[tuple[int, int], list[int]] = {}
        clocks = [[0] * 4 for _ in members]
        sent = []
        for _ in range(14):
            at = rng.randrange(4)
            rng.shuffle(flying[at])
            while flying[at] and rng.random() < 0.6:
                each = flying[at].pop()
                for got in members[at].get(each):
                    publisher, number = int(got[1]), int(got.partition(":")[2])
                    clocks[at][publisher] = number
            clocks[at][at] += 1
            full[at, clocks[at][at]] = [*clocks[at]]
            sent.append(members[at].publish())
            for other in range(4):
                if other != at:
                    flying[other].append(sent[-1])
        reads = Client("p4", (), Options(stamps="clock"))
        reads.subscribe("c", ["t"], 0.0)
        reads.preset("t", 5, 4)
        rng.shuffle(sent)
        done = [0] * 4
        come = set()
        for place, source, each in sent:
            for got in ids(reads.placed(place, source, each, 0.0)):
                done[int(got[1])] += 1
            come.add((place[0][1], place[1]))
            for (publisher, number), clock in full.items():
                wanted = reads.expanded((("t", publisher), number))
                chain = range(done[publisher] + 1, number + 1)
                if any((publisher, each) not in come for each in chain):
                    assert wanted is None
                    continue
                below = [each - (at == publisher) for at, each in enumerate(clock)]
                missing = [(at, each) for at, each in enumerate(below) if each > done[at]]
                assert wanted == tuple(missing)
                compared += len(missing) > 1
        assert reads.idle
    assert compared > 200


def test_an_expanded_clock_takes_the_highest_of_what_its_publisher_said():
    made = held("clock")
    give(made, 0, 1, (1, 5), (2, 1))
    give(made, 0, 2, (1, 3), (2, 2))
    assert made.expanded((("t", 0), 2)) == ((0, 1), (1, 5), (2, 2))


# Costs that must not grow with what waits.


@dataclass
class Counting:
    calls: int = 0


@pytest.mark.parametrize("freed", [1, 40])
def test_what_one_event_costs_does_not_depend_on_how_much_waits(monkeypatch, freed):
    """How often anything is looked at, with few and with many events waiting for something else."""
    looks = []
    for waiting in (10, 3000):
        counting = Counting()
        plain = order.Order.missing

        def missing(self, *given, counting=counting, plain=plain):
            counting.calls += 1
            return plain(self, *given)

        made = held(origins=5000)
        for number in range(waiting):
            give(made, 100 + number, 1, (2, 2))
        for number in range(freed):
            give(made, 4000 + number, 1, (1, 1))
        monkeypatch.setattr(order.Order, "missing", missing)
        assert len(ids(give(made, 1, 1))) == 1 + freed
        monkeypatch.setattr(order.Order, "missing", plain)
        looks.append(counting.calls)
        assert made.waiting == waiting
    assert looks == [1 + freed, 1 + freed]


def test_a_chain_of_many_events_is_taken_in_without_recursion():
    made = held(origins=6)
    for number in range(5000, 1, -1):
        assert give(made, 0, number) == []
    assert len(ids(give(made, 0, 1))) == 5000


def test_tables_hold_as_many_entries_as_origins_whatever_is_said():
    """Bounded state: what was said of origins that have not begun is not kept (barrier)."""
    made = held()
    size = len(made.snapshot())
    for number in range(1, 200):
        give(made, 0, number, (1000 + number, 5))
    assert len(made.snapshot()) < size + 20
    assert made.idle
