"""A client by hand: what it says, what it refuses, and what it remembers."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inorder.core import wire
from inorder.core.effect import Answer, Deliver, Diffuse, Join, Leave, Note, Persist
from inorder.core.errors import BadMessage, BadScenario, Misuse, TooLarge
from inorder.core.event import Event
from inorder.core.place import Placing
from inorder.core.settings import convert
from inorder.core.table import ones
from inorder.protocols.causal import Client, Options, Published, client, order, stamp
from tests.protocols.causal.drive import Member, ids, notes
from tests.protocols.causal.judge import Judge

ALL_STAMPS = pytest.mark.parametrize("stamps", ["barrier", "clock", "whole"])


def held(stamps: str = "barrier", topics: tuple[str, ...] = ("t",), origins: int = 4) -> Client:
    """Peer 3 of four, which holds these topics."""
    made = Client("p3", topics, Options(stamps=stamps))  # type: ignore[arg-type]
    made.subscribe("c", topics, 0.0)
    for topic in topics:
        for origin in range(origins):
            made.begins((topic, origin), 1, 1, 0.0)
    for topic in topics:
        made.joined(topic, 0.0)
    return made


def message(publisher: int, seq: int, *places: tuple[int, int], topic: str = "t", others=()):
    return Published(Event(f"p{publisher}", seq, topic), places, others)


def give(made: Client, publisher: int, number: int, *places: tuple[int, int], topic: str = "t"):
    sent = message(publisher, number, *places, topic=topic)
    return made.placed(((topic, publisher), number), f"p{publisher}", sent, 0.0)


# What a client says.


def test_a_publication_is_numbered_stamped_diffused_and_answered():
    made = held()
    give(made, 0, 1)
    give(made, 2, 1)
    effects = made.publish("t", {"a": 1}, 5.0)
    published = Event("p3", 1, "t", {"a": 1}, 5.0)
    assert [type(each) for each in effects] == [Persist, Diffuse, Answer]
    assert effects[1:] == [
        Diffuse("t", Published(published, ((0, 1), (2, 1)))),
        Answer("p3:1", "accepted"),
    ]
    assert made.next_seq == 2


def test_an_own_event_is_handed_over_at_once_and_stands_for_all_before_it():
    made = held()
    give(made, 0, 1)
    diffused = made.publish("t", {}, 0.0)[1].message
    assert ids(made.placed((("t", 3), 1), "p3", diffused, 0.0)) == ["p3:1"]
    assert made.publish("t", {}, 0.0)[0].message.places == ()


@ALL_STAMPS
def test_the_own_entry_is_left_out(stamps):
    judge = Judge()
    one, other = (Member(each, ["t"], judge, stamps) for each in range(2))
    for _ in range(3):
        sent = one.publish()
        other.get(sent)
        one.get(other.publish())
    assert one.publish()[2].places == ((1, 3),)


def test_a_whole_stamp_names_own_events_on_other_topics():
    judge = Judge()
    one = Member(0, ["a", "b"], judge, "whole")
    one.publish("a")
    assert one.publish("b")[2] == Published(Event("p0", 2, "b"), (), (("a", ((0, 1),)),))
    assert one.publish("a")[2].others == (("b", ((0, 1),)),)


@ALL_STAMPS
def test_who_holds_no_topic_publishes_without_causes_and_is_handed_nothing(stamps):
    source = Client("p3", (), Options(stamps=stamps))  # type: ignore[arg-type]
    for number in (1, 2):
        diffused = next(
            each for each in source.publish("t", {}, 0.0) if isinstance(each, Diffuse)
        ).message
        assert (diffused.places, diffused.others) == ((), ())
        assert source.placed((("t", 3), number), "p3", diffused, 0.0) == []
    assert source.waiting == 0


def test_a_client_is_told_places_and_wants_no_timers():
    made = held()
    assert isinstance(made, Placing)
    with pytest.raises(AssertionError):
        made.fire("x", 0.0)


def test_a_message_without_a_place_is_refused():
    made = held()
    before = made.snapshot()
    with pytest.raises(BadMessage, match="needs a network with places"):
        made.receive("p0", message(0, 1), 0.0)
    assert made.snapshot() == before


def test_options_are_those_three_kinds_of_stamps():
    assert convert({"stamps": "whole"}, Options, "order") == Options(stamps="whole")
    assert Options().stamps == "barrier"
    for wrong in ({"stamps": "thin"}, {"stamp": "whole"}):
        with pytest.raises(BadScenario):
            convert(wrong, Options, "order")


@ALL_STAMPS
def test_messages_come_back_from_the_wire(stamps):
    judge = Judge()
    zero, one = (Member(each, ["a", "b"], judge, stamps) for each in range(2))
    one.get(zero.publish("a"), zero.publish("b"))
    sent = one.publish("a")[2]
    assert sent.places
    assert bool(sent.others) == (stamps == "whole")
    assert wire.Decoder(Published).decode(wire.encode(sent)) == sent


# What is refused, with nothing changed.


def over(count: int) -> tuple[tuple[int, int], ...]:
    return tuple((origin, 1) for origin in range(10, 10 + count))


BAD = {
    "its own future": ((("t", 0), 1), "p0", message(0, 1, (0, 1))),
    "its own later future": ((("t", 0), 2), "p0", message(0, 1, (0, 5))),
    "origins that fall": ((("t", 0), 1), "p0", message(0, 1, (2, 1), (1, 1))),
    "an origin twice": ((("t", 0), 1), "p0", message(0, 1, (1, 1), (1, 2))),
    "an origin below 0": ((("t", 0), 1), "p0", message(0, 1, (-1, 1))),
    "a number below 1": ((("t", 0), 1), "p0", message(0, 1, (1, 0))),
    "a number beyond 63 bits": ((("t", 0), 1), "p0", message(0, 1, (1, 2**63))),
    "another topic": ((("t", 0), 1), "p0", message(0, 1, topic="u")),
    "another's place": ((("t", 1), 1), "p1", message(0, 1)),
    "place 0": ((("t", 0), 0), "p0", message(0, 1)),
    "a place beyond 63 bits": ((("t", 0), 2**63), "p0", message(0, 1)),
    "another message": ((("t", 0), 1), "p0", Event("p0", 1, "t")),
    "its own topic among the others": (
        (("t", 0), 1), "p0", message(0, 1, others=(("t", ((1, 1),)),))
    ),
    "topics that fall": (
        (("t", 0), 1), "p0", message(0, 1, others=(("b", ((1, 1),)), ("a", ((1, 1),))))
    ),
    "a topic twice": (
        (("t", 0), 1), "p0", message(0, 1, others=(("a", ((1, 1),)), ("a", ((2, 1),))))
    ),
    "a topic without causes": ((("t", 0), 1), "p0", message(0, 1, others=(("a", ()),))),
    "origins that fall elsewhere": (
        (("t", 0), 1), "p0", message(0, 1, others=(("a", ((2, 1), (1, 1))),))
    ),
    "a number below 1 elsewhere": (
        (("t", 0), 1), "p0", message(0, 1, others=(("a", ((2, 0),)),))
    ),
}  # fmt: skip


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
@pytest.mark.parametrize("topic", ["held", "left"])
def test_a_message_that_cannot_stand_at_its_place_changes_nothing(bad, topic):
    made = held("whole")
    give(made, 2, 2)
    if topic == "left":
        made.unsubscribe("d", ["t"], 0.0)
    before = made.snapshot()
    with pytest.raises(BadMessage):
        made.placed(*bad, 0.0)
    assert made.snapshot() == before
    assert made._order.out == []


def test_an_own_entry_below_ones_own_number_may_be_named():
    made = held()
    give(made, 0, 1)
    assert ids(give(made, 0, 2, (0, 1))) == ["p0:2"]


def test_another_topics_numbers_of_the_publisher_are_not_its_own_future():
    made = held("whole", ("t", "u"))
    sent = message(0, 1, others=(("u", ((0, 7),)),))
    assert made.placed((("t", 0), 1), "p0", sent, 0.0) == []
    assert made.waiting == 1


def test_stamps_have_a_bound(monkeypatch):
    for module in (client, stamp):
        monkeypatch.setattr(module, "CAUSAL_STAMP_ENTRIES_MAX", 3)
    made = held("whole", ("t", "u"))
    before = made.snapshot()
    for sent in (message(0, 1, *over(4)), message(0, 1, *over(2), others=(("a", over(2)),))):
        with pytest.raises(BadMessage, match="4 causes, the limit is 3"):
            made.placed((("t", 0), 1), "p0", sent, 0.0)
    assert made.snapshot() == before
    made.placed((("t", 0), 1), "p0", message(0, 1, *over(2), others=(("a", over(1)),)), 0.0)
    assert made.waiting == 0
    give(made, 1, 1)
    before = made.snapshot()
    with pytest.raises(TooLarge, match="causes of an event is 5, the limit is 3"):
        made.publish("t", {}, 0.0)
    assert made.snapshot() == before
    assert made.next_seq == 1


def test_a_beginning_that_cannot_be_is_refused():
    made = held()
    before = made.snapshot()
    for start, counts in ((0, 1), (3, 2)):
        with pytest.raises(Misuse):
            made.begins(("t", 9), start, counts, 0.0)
    assert made.snapshot() == before


def test_clocks_are_for_members_that_never_change():
    made = Client("p3", (), Options(stamps="clock"))
    made.subscribe("c", ["t"], 0.0)
    made.begins(("t", 0), 1, 1, 0.0)
    before = made.snapshot()
    with pytest.raises(Misuse, match=r"stamps = clock .* origin 1 begins with 2 on 't'"):
        made.begins(("t", 1), 2, 2, 0.0)
    assert made.snapshot() == before
    held("barrier").begins(("t", 9), 2, 2, 0.0)


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


def joining(begins: tuple[tuple[int, int, int], ...]) -> Client:
    made = Client("p3", ())
    made.subscribe("c", ["t"], 0.0)
    for origin, start, counts in begins:
        made.begins(("t", origin), start, counts, 0.0)
    made.joined("t", 0.0)
    return made


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


# The whole state.


@settings(max_examples=150)
@given(st.data(), st.sampled_from(["barrier", "clock", "whole"]))
def test_equal_snapshots_whatever_came_first(data, stamps):
    """Two clients that have taken in the same events, and hold the same ones, are equal: in which
    order these came does not show, as long as they were taken in one after the other."""
    made, other = held(stamps), held(stamps)
    waiting = [(0, 2), (0, 3), (1, 5), (2, 2)]
    for publisher, number in data.draw(st.permutations(waiting)):
        give(made, publisher, number, *(((1, 4),) if publisher != 1 else ()))
    for publisher, number in waiting:
        give(other, publisher, number, *(((1, 4),) if publisher != 1 else ()))
    assert made.snapshot() == other.snapshot()
    again = Client.restore(made.snapshot())
    assert again.snapshot() == made.snapshot()
    for publisher, number in ((1, 1), (1, 2), (1, 3), (1, 4), (0, 1), (2, 1)):
        effects = [give(each, publisher, number) for each in (made, other, again)]
        assert effects[0] == effects[1] == effects[2]
        assert made.snapshot() == other.snapshot() == again.snapshot()
    assert made.idle


@ALL_STAMPS
@pytest.mark.parametrize("topics", [("t",), ("t", "u")])
def test_a_preset_topic_is_one_that_everybody_has_begun_on(stamps, topics):
    begun, preset = (Client("p5", (), Options(stamps=stamps)) for _ in range(2))  # type: ignore[arg-type]
    for made in (begun, preset):
        made.subscribe("c", topics, 0.0)
    for topic in topics:
        for origin in range(64):
            begun.begins((topic, origin), 1, 1, 0.0)
        assert begun.joined(topic, 0.0) == preset.preset(topic, 64, 5)
        assert begun.snapshot() == preset.snapshot()
    rng = Random(stamps)
    sent = [(publisher, number) for publisher in range(64) for number in (1, 2, 3)]
    rng.shuffle(sent)
    for publisher, number in sent:
        if publisher != 5:
            places = ((publisher // 2, number),) if publisher > 11 else ()
            assert give(begun, publisher, number, *places) == give(
                preset, publisher, number, *places
            )
    assert begun.snapshot() == preset.snapshot()
    assert Client.restore(preset.snapshot()).snapshot() == preset.snapshot()


def test_a_preset_topic_may_have_members_that_are_only_some_of_all():
    begun, preset = (Client("p5", ()) for _ in range(2))
    firsts = ones(8)[:]
    for made in (begun, preset):
        made.subscribe("c", ["t"], 0.0)
    for origin in range(8):
        if origin in (2, 7):
            firsts[origin] = 0
        else:
            begun.begins(("t", origin), 1, 1, 0.0)
    assert begun.joined("t", 0.0) == preset.preset("t", firsts, 5)
    assert begun.snapshot() == preset.snapshot()
    for made in (begun, preset):
        assert notes(give(made, 2, 1)) == [("unannounced", "p2:1")]


def test_preset_clients_share_what_is_alike_and_no_more():
    made = [Client(f"p{number}", ()) for number in range(3)]
    for number, each in enumerate(made):
        each.subscribe("c", ["t"], 0.0)
        each.preset("t", 4096, number)
    tables = [each._order.sessions["t"].due for each in made]
    assert tables[0]._many is tables[1]._many
    before = made[1].snapshot()
    for publisher in range(3, 1000):
        give(made[0], publisher, 1)
    assert made[1].snapshot() == before


def test_only_a_topic_that_is_being_joined_can_be_preset():
    made = Client("p5", ())
    with pytest.raises(Misuse):
        made.preset("t", 8, 5)
    made.subscribe("c", ["t"], 0.0)
    before = made.snapshot()
    for me in (-1, 8):
        with pytest.raises(Misuse):
            made.preset("t", 8, me)
    assert made.snapshot() == before
    made.preset("t", 8, 5)
    with pytest.raises(Misuse):
        made.preset("t", 8, 5)
    made.subscribe("d", ["u"], 0.0)
    made.begins(("u", 1), 7, 7, 0.0)
    with pytest.raises(Misuse):
        made.preset("u", 8, 5)


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


def test_a_network_finds_the_causes_under_their_name():
    assert [field.name for field in msgspec.structs.fields(Published)][:2] == ["event", "places"]
