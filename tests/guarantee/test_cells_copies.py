"""A holder of areas: events in several cells, what the machine inside says, and snapshots."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inorder.content.predicate import Predicate
from inorder.core.effect import Answer, Deliver, Effect, Leave
from inorder.core.event import Event
from inorder.core.place import Placing
from inorder.guarantee.cells import holder as holders
from inorder.guarantee.cells.copies import COPIES, Copies, cell_topic, marked, shown, topic_of
from inorder.guarantee.cells.holder import Cells, celled
from inorder.guarantee.none import Published
from inorder.guarantee.registry import guarantee
from tests.guarantee.lane import LANE, WHERE, Lane, holder

# Events in several cells.


def area(first: int, *columns: int, peer: int = 3) -> dict[str, Any]:
    """What the copies of an event say, each at number 7 of its cell."""
    return marked({}, Copies(first, peer, tuple((one, 0, 7) for one in columns)))


def areas() -> Lane:
    lane = Lane()
    lane.subscribe("c1", 0, 40)
    lane.confirm()
    return lane


def test_an_event_in_several_cells_is_handed_over_once_under_one_name():
    lane = areas()
    more = area(11, 1, 2, 3)
    lane.comes(15.0, 12, at=2, **more)
    lane.comes(15.0, 11, at=1, **more)
    lane.comes(15.0, 13, at=3, **more)
    assert lane.handed == [("p:11", 15.0)]
    assert lane.machine.account()["again"] == 2.0


def test_nothing_is_remembered_when_all_copies_have_come():
    lane = areas()
    rested = lane.machine._handed
    lane.comes(15.0, 11, at=1, **area(11, 1, 2, 5))
    # Cell 5 is not held: nothing comes from there.
    assert rested == {"p:11": ["t@2,0"]}
    lane.comes(15.0, 12, at=2, **area(11, 1, 2, 5))
    assert rested == {}
    lane.comes(15.0, 21, at=1, **area(21, 1, 5))
    assert rested == {}


def test_a_cell_that_is_left_is_not_waited_for():
    lane = areas()
    lane.comes(15.0, 11, at=1, **area(11, 1, 2, 3))
    lane.comes(15.0, 21, at=1, **area(21, 1, 3))
    lane.set("c2", east=30)
    assert lane.machine._handed == {"p:11": ["t@2,0"]}


def test_a_copy_that_did_not_match_leaves_it_to_the_others():
    lane = areas()
    lane.set("c2", west=20)
    lane.comes(15.0, 11, at=2, **area(11, 2, 3))
    assert (lane.handed, lane.machine._handed) == ([], {})
    lane.set("c3", west=0)
    lane.comes(15.0, 12, at=3, **area(11, 2, 3))
    assert lane.handed == [("p:11", 15.0)]


def test_events_that_are_remembered_have_a_bound(monkeypatch):
    monkeypatch.setattr(holders, "CUBE_AREAS_REMEMBERED_MAX", 2)
    lane = areas()
    for first in (11, 21, 31):
        lane.comes(15.0, first, at=1, **area(first, 1, 2))
    assert list(lane.machine._handed) == ["p:21", "p:31"]


def test_events_of_two_publishers_with_one_number_are_two():
    lane = areas()
    lane.comes(15.0, 11, at=1, **area(11, 1, 2))
    event = Event("q", 12, "t@2,0", {"x": 16.0, "y": 1.0, **area(11, 1, 2, peer=4)})
    lane.act(lane.machine.receive("q", Published(event), 0.0))
    assert lane.handed == [("p:11", 15.0), ("q:11", 16.0)]


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "[1,2]", "7", 7, None, '[0,3,[[1,0,7],[2,0,7]]]', '[11,-1,[[1,0,7],[2,0,7]]]',
        "[11,3,[]]", "[11,3,[[1,0,7]]]", "[11,3,[[1,0,0],[2,0,7]]]", "[11,3,[[1,0,7],[1e9,0,7]]]",
        "[11,65536,[[1,0,7],[2,0,7]]]", "[11,3,[[1,0,9223372036854775808],[2,0,7]]]",
        "[11,3,[[1,0,7],[0,4294967296,7]]]", "[11,3," + str([[1, 0, 7]] * 65) + "]",
        "[9223372036854775808,3,[[1,0,7],[2,0,7]]]", "[11,3,[[1,0,7],[2,0,7]]",
    ],
)  # fmt: skip
def test_copies_that_cannot_be_are_kept_from_the_application(text):
    lane = areas()
    lane.comes(15.0, 11, **{COPIES: text})
    assert (lane.handed, lane.notes) == ([], ["bad_copies"])
    assert lane.machine._handed == {}


def test_copies_say_where_they_stand():
    copies = Copies(7, 5, ((0, -1, 3), (1, -1, 12)))
    value = marked({"x": 1}, copies)
    assert shown(value) == ({"x": 1}, copies)
    assert shown({"x": 1}) == ({"x": 1}, None)
    assert copies.places("a@b") == [(("a@b@0,-1", 5), 3), (("a@b@1,-1", 5), 12)]
    assert topic_of(cell_topic("a@b", (0, -1))) == "a@b"


class Learner:
    """Keeps what it is told to learn."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.learned: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def learn(self, publisher: str, places: list[Any]) -> None:
        self.learned.append((publisher, places))


def test_whoever_hands_over_a_copy_tells_the_client_inside_of_all():
    ordered = guarantee("none")
    learner = Learner(ordered.client("s", (), None))
    lane = Lane(celled(ordered, learner, LANE))  # type: ignore[arg-type]
    lane.subscribe("c1", 0, 20)
    lane.confirm()
    more = area(11, 1, 0, 5)
    lane.comes(25.0, 13, at=1, **more)  # does not match
    lane.comes(15.0, 12, at=1, **more)
    lane.comes(15.0, 11, at=0, **more)  # again
    assert learner.learned == [
        ("p", [(("t@1,0", 3), 7), (("t@0,0", 3), 7), (("t@5,0", 3), 7)]),
    ]


# What the machine inside says.


def test_gaps_are_told_by_the_topic_if_it_is_held():
    lane = Lane()
    lane.subscribe("c1", 0, 20)
    gap = Answer("gap/t@1,0", "gap", "events of t@1,0 are lost")
    assert lane.machine.gap_of(gap) == []
    lane.confirm()
    assert lane.machine.gap_of(gap) == [Answer("gap/t", "gap", "events of t@1,0 are lost")]
    assert lane.machine.gap_of(Answer("gap/u@1,0", "gap")) == []


def test_what_is_set_free_by_leaving_comes_after_what_was_decided_before():
    """Two events are handed over as the last cell comes in; leaving the old cell frees another one,
    which may rest on them."""

    class Freeing:
        def joined(self, topic: str, now: float) -> list[Effect]:
            value = {"x": 25.0, "y": 1.0}
            return [Answer(f"@{topic}", "done"), Deliver(Event("p", 1, topic, value))]

        def unsubscribe(self, call: str, topics: list[str], now: float) -> list[Effect]:
            assert topics == ["t@0,0"]
            value = {"x": 26.0, "y": 1.0}
            return [Leave("t@0,0"), Answer(call, "done"), Deliver(Event("p", 2, "t@2,0", value))]

    lane = Lane()
    lane.subscribe("c1", 0, 10)
    lane.confirm()
    lane.set("c2", west=20, east=30)
    lane.machine._inner = Freeing()  # type: ignore[assignment]
    effects = lane.machine.joined("t@2,0", 0.0)
    kinds = [type(each).__name__ for each in effects]
    assert kinds == ["Answer", "Deliver", "Leave", "Deliver"]
    assert [each.event.seq for each in effects if isinstance(each, Deliver)] == [1, 2]


def test_a_holder_takes_places_if_its_client_does():
    assert not isinstance(holder(), Placing)
    placed = holder(name="causal")
    assert isinstance(placed, Placing)
    assert placed.waiting == 0  # type: ignore[attr-defined]


# The whole state.


OPS = st.one_of(
    st.tuples(st.just("set"), st.integers(0, 99), st.integers(0, 99)),
    st.tuples(st.just("confirm"), st.integers(0, 9), st.just(0)),
    st.tuples(st.just("event"), st.integers(0, 99), st.just(0)),
    st.tuples(st.just("copy"), st.integers(0, 99), st.integers(0, 9)),
    st.tuples(st.just("again"), st.integers(0, 99), st.integers(0, 99)),
)


def run(lane: Lane, ops: list[Any], restored: bool) -> list[Any]:
    """What is seen of these steps; `restored`: the machine is packed and unpacked at each."""
    seen: list[Any] = []
    lane.subscribe("c", 10, 30)
    for nth, (kind, one, other) in enumerate(ops):
        if restored:
            snapshot = lane.machine.snapshot()
            lane.machine = Cells.restore(snapshot)
            assert lane.machine.snapshot() == snapshot
        if kind == "set":
            lane.set(f"set{nth}", west=one, east=other)
        elif kind == "confirm":
            lane.confirm(*[each for each in lane.asked if each == one] or lane.asked[:1])
        elif kind == "event":
            lane.comes(float(one), 100 + nth)
        elif kind == "copy":
            lane.comes(float(one), 100 + nth, **area(100 + nth // 2, one // 10, other, 4))
        else:
            lane.act(lane.machine.unsubscribe(f"leave{nth}", ["t"], 0.0))
            lane.subscribe(f"again{nth}", one, other)
        seen.append((sorted(lane.held), [*lane.asked], [*lane.answers], [*lane.handed]))
    return seen


@settings(max_examples=60)
@given(st.lists(OPS, max_size=25))
def test_a_holder_goes_on_from_its_snapshot(ops):
    assert run(Lane(), ops, restored=True) == run(Lane(), ops, restored=False)


@settings(max_examples=60)
@given(st.lists(OPS, max_size=25))
def test_in_the_end_exactly_the_needed_cells_are_held_and_every_call_is_answered(ops):
    lane = Lane()
    run(lane, ops, restored=False)
    while lane.asked:
        lane.confirm(lane.asked[-1])
    values = lane.machine._areas["t"].values
    needed = LANE.cells_for(Predicate.parse(WHERE).bind(values))
    assert sorted(lane.held) == [at for at, _ in needed]
    calls = [f"{kind}{nth}" for nth, (kind, _, _) in enumerate(ops) if kind in ("set", "again")]
    answered = [answer.removesuffix(" done") for answer in lane.answers]
    assert sorted([*calls, "c"]) == sorted(one for one in answered if "leave" not in one)
    sets = [one for one in answered if one.startswith("set")]
    assert sets == sorted(sets, key=lambda one: int(one[3:]))
