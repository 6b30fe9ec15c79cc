"""The whole state of a client: snapshots, and topics that begin all at once."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inorder.core.errors import Misuse
from inorder.core.table import ones
from inorder.protocols.causal import Client, Options
from tests.protocols.causal.drive import notes
from tests.protocols.causal.hand import give, held

ALL_STAMPS = pytest.mark.parametrize("stamps", ["barrier", "clock", "whole"])


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
