"""A client by hand: what it says, and what it refuses."""

from __future__ import annotations

import msgspec
import pytest

from inorder.core import wire
from inorder.core.effect import Answer, Diffuse, Persist
from inorder.core.errors import BadMessage, BadScenario, Misuse, TooLarge
from inorder.core.event import Event
from inorder.core.place import Placing
from inorder.core.settings import convert
from inorder.protocols.causal import Client, Options, Published, client, stamp
from tests.protocols.causal.drive import Member, ids
from tests.protocols.causal.hand import give, held, message
from tests.protocols.causal.judge import Judge

ALL_STAMPS = pytest.mark.parametrize("stamps", ["barrier", "clock", "whole"])


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


def test_a_network_finds_the_causes_under_their_name():
    assert [field.name for field in msgspec.structs.fields(Published)][:2] == ["event", "places"]


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


def test_clocks_do_for_subscribers_that_join_late():
    """An origin may begin anywhere: what its earlier clocks named does not count here."""
    made = Client("p3", (), Options(stamps="clock"))
    made.subscribe("c", ["t"], 0.0)
    made.begins(("t", 0), 1, 1, 0.0)
    made.begins(("t", 1), 7, 8, 0.0)
    assert made.joined("t", 0.0)
