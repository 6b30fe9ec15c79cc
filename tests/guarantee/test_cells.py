"""A holder of areas: which cells it joins and leaves, and what it hands over of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inorder.core.effect import Answer, Deliver, Effect, Join, Leave, Note
from inorder.core.errors import Misuse, PredicateError, TooLarge
from inorder.core.event import Event
from inorder.core.place import Placing
from inorder.guarantee.cells import holder as holders
from inorder.guarantee.cells.copies import COPIES, Copies, cell_topic, marked, shown, topic_of
from inorder.guarantee.cells.grid import Grid
from inorder.guarantee.cells.holder import Cells, celled
from inorder.guarantee.none import Published
from inorder.guarantee.registry import guarantee

LANE = Grid(size=10.0, bounds=(0.0, 0.0, 100.0, 10.0))
WHERE = "x >= :west AND x < :east"


def holder(grid: Grid = LANE, name: str = "none") -> Cells:
    ordered = guarantee(name)
    return celled(ordered, ordered.client("s", (), ordered.options()), grid)


class Lane:
    """A holder with a network that confirms when it is told to; columns stand for cells."""

    def __init__(self, machine: Cells | None = None) -> None:
        self.machine = machine or holder()
        self.asked: list[int] = []  # joins that the network has not confirmed
        self.held: set[int] = set()
        self.answers: list[str] = []
        self.handed: list[tuple[str, float]] = []
        self.notes: list[str] = []

    def act(self, effects: list[Effect]) -> list[Effect]:
        for each in effects:
            if isinstance(each, Join):
                self.asked.append(column(each.topic))
            elif isinstance(each, Leave):
                self.held.discard(column(each.topic))
                self.asked = [one for one in self.asked if one != column(each.topic)]
            elif isinstance(each, Answer):
                self.answers.append(f"{each.call} {each.outcome}")
            elif isinstance(each, Deliver):
                assert each.event.topic == "t"
                assert COPIES not in each.event.value
                self.handed.append((each.event.id, each.event.value["x"]))
            elif isinstance(each, Note):
                self.notes.append(each.mark)
        return effects

    def confirm(self, *columns: int) -> None:
        """The network confirms these joins, or all."""
        for one in columns or [*self.asked]:
            self.asked.remove(one)
            self.held.add(one)
            self.act(self.machine.joined(f"t@{one},0", 0.0))

    def subscribe(self, call: str, west: float, east: float) -> None:
        values = {"west": west, "east": east}
        self.act(self.machine.subscribe(call, ["t"], 0.0, WHERE, values))

    def set(self, call: str, **values: float) -> None:
        self.act(self.machine.set(call, ["t"], values, 0.0))

    def comes(self, x: float, seq: int = 1, at: int | None = None, **more: Any) -> None:
        """An event of p at x, through its cell or another one."""
        topic = f"t@{int(x // 10) if at is None else at},0"
        event = Event("p", seq, topic, {"x": x, "y": 1.0, **more}, 0.5)
        self.act(self.machine.receive("p", Published(event), 0.0))


def column(topic: str) -> int:
    name, _, cell = topic.rpartition("@")
    assert name == "t"
    x, y = cell.split(",")
    assert y == "0"
    return int(x)


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


class Said:
    """A client that says what it is made to say."""

    def __init__(self, effects: list[Effect]) -> None:
        self.effects = effects

    def fire(self, timer: str, now: float) -> list[Effect]:
        return self.effects


def test_gaps_are_told_by_the_topic_if_it_is_held():
    lane = Lane()
    lane.subscribe("c1", 0, 20)
    real = lane.machine._inner
    gap = Answer("gap/t@1,0", "gap", "events of t@1,0 are lost")
    lane.machine._inner = Said([gap, Answer("gap/u@1,0", "gap")])  # type: ignore[assignment]
    assert lane.machine.fire("", 0.0) == []
    lane.machine._inner = real
    lane.confirm()
    lane.machine._inner = Said([gap])  # type: ignore[assignment]
    assert lane.machine.fire("", 0.0) == [Answer("gap/t", "gap", "events of t are lost")]


def test_what_is_set_free_by_leaving_comes_after_what_was_decided_before():
    """Two events are handed over as the last cell comes in; leaving the old cell frees another one,
    which may rest on them."""

    class Freeing(Said):
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
    lane.machine._inner = Freeing([])  # type: ignore[assignment]
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
    area_now = lane.machine._areas["t"]
    assert sorted(lane.held) == [column(cell) for cell in area_now.cells]
    calls = [f"{kind}{nth}" for nth, (kind, _, _) in enumerate(ops) if kind in ("set", "again")]
    answered = [answer.removesuffix(" done") for answer in lane.answers]
    assert sorted([*calls, "c"]) == sorted(one for one in answered if "leave" not in one)
    sets = [one for one in answered if one.startswith("set")]
    assert sets == sorted(sets, key=lambda one: int(one[3:]))
