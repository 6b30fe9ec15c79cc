"""A content filter in front of a client that takes places: what is kept back has its place."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from inorder.core.effect import Answer, Deliver, Diffuse, Effect
from inorder.core.errors import BadMessage
from inorder.core.event import Event
from inorder.core.place import Origin, Placing
from inorder.guarantee.compose import Filtering, PlacedFiltering, filtering
from inorder.guarantee.registry import GUARANTEES, guarantee
from inorder.protocols.causal import Client, Options, Published


def client(where: str | None = "price < :limit", stamps: str = "barrier", **values: Any) -> Any:
    causal = guarantee("causal")
    options = Options(stamps=stamps)  # type: ignore[arg-type]
    made = filtering(causal, causal.client("s", ("t",), options))
    values = values or ({"limit": 10} if where else {})
    made.subscribe("c", ["t"], 0.0, where, values)
    return made


def joined(**how: Any) -> Any:
    made = client(**how)
    for origin in range(4):
        assert made.begins(("t", origin), 1, 1, 0.0) == []
    assert made.joined("t", 0.0) == [Answer("c", "done")]
    return made


def give(made: Any, publisher: int, number: int, price: int, *places: tuple[int, int]) -> list[str]:
    event = Event(f"p{publisher}", number, "t", {"price": price})
    sent = Published(event, places)
    effects = made.placed((("t", publisher), number), event.publisher, sent, 0.0)
    return [each.event.id for each in effects if isinstance(each, Deliver)]


@pytest.mark.parametrize("name", GUARANTEES)
def test_a_filter_takes_places_if_and_only_if_the_client_behind_it_does(name):
    known = guarantee(name)
    inner = known.client("s", ("t",), known.options())
    made = filtering(known, inner)
    assert isinstance(made, Filtering)
    assert isinstance(made, Placing) == isinstance(inner, Placing) == known.needs_places
    assert hasattr(made, "waiting") == hasattr(made, "expanded") == known.needs_places


def test_an_event_that_is_kept_back_has_its_place():
    made = joined()
    assert give(made, 1, 1, 5, (0, 1)) == []
    assert made.waiting == 1
    assert made.expanded((("t", 1), 1)) == ((0, 1),)
    assert give(made, 0, 1, 50) == ["p1:1"]  # the cause does not match
    assert made.waiting == 0
    assert made.account()["filtered"] == 1


def test_an_event_that_was_kept_back_is_named_as_a_cause():
    made = joined()
    give(made, 0, 1, 50)
    sent = next(each for each in made.publish("t", {"price": 1}, 0.0) if isinstance(each, Diffuse))
    assert sent.message.places == ((0, 1),)
    own = made.placed((("t", 3), 1), "s", sent.message, 0.0)
    assert [each.event.id for each in own] == ["s:1"]


def test_what_comes_before_the_topic_is_joined_is_filtered_too():
    made = client()
    made.begins(("t", 0), 1, 1, 0.0)
    assert give(made, 0, 1, 5) == give(made, 0, 2, 50) == []
    effects = made.joined("t", 0.0)
    assert [each.event.id for each in effects if isinstance(each, Deliver)] == ["p0:1"]


def test_a_loss_passes_a_filter_and_frees_what_matches():
    made = joined()
    made.begins(("t", 0), 1, 9, 0.0)
    assert give(made, 0, 9, 5) == give(made, 0, 10, 50) == give(made, 0, 11, 5) == []
    effects = made.lost((("t", 0), 8), 0.0)
    assert [each for each in effects if isinstance(each, Answer)] == [], "nothing is discarded"
    assert [each.event.id for each in effects if isinstance(each, Deliver)] == ["p0:9", "p0:11"]
    assert made.waiting == 0
    rests = Published(Event("p1", 1, "t", {"price": 5}), ((0, 8),))
    effects = made.placed((("t", 1), 1), "p1", rests, 0.0)
    assert [each.call for each in effects if isinstance(each, Answer)] == ["gap/t"]


class Eager(Client):
    """Hands over two events whenever anything begins."""

    def begins(self, origin: Origin, start: int, counts: int, now: float) -> list[Effect]:
        return [Deliver(Event("p0", number, "t", {"price": 8 * number})) for number in (1, 2)]


def test_what_a_beginning_frees_is_filtered():
    made = filtering(guarantee("causal"), Eager("s"))
    made.subscribe("c", ["t"], 0.0, "price < :limit", {"limit": 10})
    assert isinstance(made, PlacedFiltering)
    effects = made.begins(("t", 0), 1, 1, 0.0)
    assert [each.event.seq for each in effects if isinstance(each, Deliver)] == [1]


def test_a_preset_topic_passes_a_filter():
    preset, begun = client(), joined()
    assert preset.preset("t", 4, 3) == [Answer("c", "done")]
    assert preset.snapshot() == begun.snapshot()


def test_a_filter_in_front_of_places_comes_back_from_its_snapshot():
    made = joined()
    give(made, 1, 1, 5, (0, 1))
    again = Filtering.restore(made.snapshot())
    assert isinstance(again, PlacedFiltering)
    assert again.snapshot() == made.snapshot()
    assert give(again, 0, 1, 50) == ["p1:1"]
    none = guarantee("none")
    plain = filtering(none, none.client("s", ("t",), None))
    assert type(PlacedFiltering.restore(plain.snapshot())) is Filtering


def test_a_message_that_is_refused_changes_nothing_behind_a_filter():
    made = joined()
    before = made.snapshot()
    with pytest.raises(BadMessage):
        give(made, 0, 1, 5, (0, 1))
    with pytest.raises(BadMessage, match="no place"):
        made.receive("p0", Published(Event("p0", 1, "t")), 0.0)
    assert made.snapshot() == before


@pytest.mark.parametrize("stamps", ["barrier", "clock", "whole"])
def test_what_a_filter_lets_through_is_what_matches_in_the_same_order(stamps):
    for seed in range(40):
        rng = Random(f"{seed}/{stamps}")
        filtered, whole = joined(stamps=stamps), joined(where=None, stamps=stamps)
        sent = []
        for number in range(1, 6):
            for publisher in range(3):
                places = [(each, rng.randint(1, number)) for each in range(3) if each != publisher]
                # Only what was published before may be named.
                named = tuple(
                    (each, last) for each, last in places
                    if last < number or (last == number and each < publisher)
                )  # fmt: skip
                sent.append((publisher, number, rng.randrange(20), *named))
        rng.shuffle(sent)
        got, all_of_it = [], []
        for each in sent:
            got += give(filtered, *each)
            all_of_it += give(whole, *each)
        prices = {f"p{each[0]}:{each[1]}": each[2] for each in sent}
        assert len(all_of_it) == 15
        assert got == [event for event in all_of_it if prices[event] < 10]
