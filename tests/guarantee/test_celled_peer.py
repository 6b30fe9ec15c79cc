"""Peers whose topics have places: who publishes where, and what is heard in which order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from inorder.core.effect import Answer, Deliver, Effect, Launched
from inorder.core.errors import Misuse, TooLarge
from inorder.core.place import Forgetting
from inorder.guarantee.cells import peer as peers_of_cells
from inorder.guarantee.cells.copies import COPIES
from inorder.guarantee.cells.grid import Grid
from inorder.guarantee.cells.peer import CelledPeer
from inorder.guarantee.peer import Order
from inorder.protocols.causal import client as causal_client
from inorder.protocols.causal.whole import Whole
from inorder.protocols.cube.options import Options
from inorder.protocols.cube.peers import Peers
from inorder.sim.pool import Op, Pool, Step

# Five columns of 10: a, b, c, d, e.
LANE = Grid(size=10.0, bounds=(0.0, 0.0, 50.0, 10.0))
COLUMNS = "abcde"


class Lane(Pool):
    """Peers and their applications; messages move when they are told to."""

    def __init__(
        self, *names: str, stamps: str | None = "whole", window: int = 16, restored: bool = False
    ) -> None:
        order = Order("causal", {"stamps": stamps}, ("t",), cells=LANE)
        if stamps is None:
            order = Order("none", {}, ("t",), cells=LANE)
        options = Options(window=window, links="trusted")
        known = Peers(names)
        super().__init__(
            {name: CelledPeer(name, known, options, order) for name in names}, ordered=False
        )
        self.seen: list[tuple[str, Effect]] = []
        self._restored = restored

    def _act(self, node: str, effect: Effect) -> None:
        self.seen.append((node, effect))
        super()._act(node, effect)

    def _machine(self, node: str) -> Any:
        if self._restored:
            machine = self.machines[node]
            snapshot = machine.snapshot()
            self.machines[node] = type(machine).restore(snapshot)
            assert self.machines[node].snapshot() == snapshot
        return super()._machine(node)

    def hold(self, node: str, columns: str) -> None:
        """Subscribe to these columns, and wait for it."""
        places = [COLUMNS.index(one) * 10 for one in columns]
        where = " OR ".join(f"x >= {at} AND x < {at + 10}" for at in places)
        machine = self._machine(node)
        self._carry_out(node, machine.subscribe(f"{node}/{columns}", ["t"], 0.0, where, {}), [])
        self.settle()

    def say(self, node: str, column: str, to: str | None = None, **value: Any) -> None:
        """Publish in a column, or from one to another."""
        place: dict[str, Any] = {"x": COLUMNS.index(column) * 10 + 5, "y": 5}
        if to is not None:
            place |= {"x_to": COLUMNS.index(to) * 10 + 5, "y_to": 5}
        self.perform(node, Op("publish", ("t",), {**place, **value}))

    def settle(self, *kept: tuple[str, str]) -> None:
        """Everything arrives, but what is on these links."""
        while steps := [step for step in self.steps() if (step.source, step.node) not in kept]:
            self.take(steps[0])

    def carry(self, source: str, node: str) -> None:
        """Everything on this link arrives."""
        while self.links.get((source, node)):
            self.take(Step("receive", node, source, 0))

    def handed(self, node: str) -> list[str]:
        return [event for event, _ in self.delivered.get(node, ())]

    def told(self, node: str, kind: type[Effect] | Any) -> list[Any]:
        return [effect for name, effect in self.seen if name == node and isinstance(effect, kind)]


# Publications.


@pytest.mark.parametrize("stamps", ["whole", None])
@pytest.mark.parametrize("restored", [False, True])
def test_an_event_goes_to_the_cell_of_its_point_and_nowhere_else(stamps, restored):
    lane = Lane("p", "q", "r", stamps=stamps, restored=restored)
    lane.hold("q", "ab")
    lane.hold("r", "bc")
    lane.say("p", "a")
    lane.say("p", "b")
    lane.say("p", "c")
    lane.settle()
    assert (lane.handed("q"), lane.handed("r")) == (["p:1", "p:2"], ["p:2", "p:3"])
    assert {each.event.topic for each in lane.told("q", Deliver)} == {"t"}
    assert lane.machines["r"].account()["filtered"] == 0
    launched = lane.told("p", Launched)
    assert [each.call for each in launched] == [f"p/publish/{nth}" for nth in (1, 2, 3)]
    assert {each.event.topic for each in launched} == {"t"}
    assert lane.told("p", Answer) == [Answer(f"p:{nth}", "accepted") for nth in (1, 2, 3)]


@pytest.mark.parametrize("restored", [False, True])
def test_an_event_with_an_area_goes_to_all_its_cells_and_is_one_event(restored):
    lane = Lane("p", "q", "r", "s", restored=restored)
    lane.hold("q", "ab")
    lane.hold("r", "bc")
    lane.hold("s", "e")
    lane.say("p", "a", to="c", kind="jam")
    lane.settle()
    # The filters are about x, where the area begins: r hears of it, and it does not match.
    assert [lane.handed(node) for node in "qrs"] == [["p:1"], [], []]
    (event,) = [each.event for each in lane.told("q", Deliver)]
    assert event.value == {"x": 5, "y": 5, "x_to": 25, "y_to": 5, "kind": "jam"}
    assert [each.event for each in lane.told("p", Launched)] == [event]
    assert lane.told("p", Answer) == [Answer("p:1", "accepted")]
    assert lane.machines["r"].account()["filtered"] == 2
    # The copies took the numbers up to 3.
    lane.say("p", "a")
    lane.settle()
    assert lane.handed("q") == ["p:1", "p:4"]


def meets(lane: Lane, node: str, west: int, east: int) -> None:
    """Hold what meets these places."""
    machine = lane._machine(node)
    where = f"x < {east} AND x_to > {west}"
    lane._carry_out(node, machine.subscribe(f"{node}/meets", ["t"], 0.0, where, {}), [])
    lane.settle()


@pytest.mark.parametrize("stamps", ["whole", None])
def test_whoever_holds_several_of_its_cells_is_handed_it_once(stamps):
    lane = Lane("p", "q", "r", stamps=stamps)
    meets(lane, "q", 10, 40)
    meets(lane, "p", 0, 20)
    for _ in range(3):
        lane.say("p", "a", to="d")
        lane.settle()
    assert lane.handed("q") == lane.handed("p") == ["p:1", "p:5", "p:9"]
    assert lane.machines["q"].account()["again"] == 6.0
    assert lane.machines["q"].inner._handed == {}


def test_an_event_with_an_area_is_accepted_when_its_last_copy_is():
    lane = Lane("p", "q", "r")
    lane.hold("q", "a")
    lane.hold("r", "b")
    lane.say("p", "a", to="b")
    lane.settle(("r", "p"))
    assert lane.told("p", Answer) == []
    assert not lane.machines["p"].idle
    lane.settle()
    assert lane.told("p", Answer) == [Answer("p:1", "accepted")]
    assert lane.machines["p"].idle


def test_an_event_with_an_area_waits_for_all_its_cells_and_later_ones_behind_it():
    lane = Lane("p", "q", window=1)
    lane.hold("q", "ab")
    lane.say("p", "b")
    lane.settle()
    lane.say("p", "b")
    lane.settle(("q", "p"))
    # One is under way in b, so this one waits, and what comes after it.
    lane.say("p", "a", to="b")
    lane.say("p", "a")
    lane.say("p", "c")
    assert [each.event.id for each in lane.told("p", Launched)] == ["p:1", "p:2"]
    lane.settle()
    launched = lane.told("p", Launched)
    assert [each.event.id for each in launched] == ["p:1", "p:2", "p:3", "p:5", "p:6"]
    assert [each.call for each in launched] == [f"p/publish/{nth}" for nth in (1, 2, 3, 4, 5)]
    assert lane.handed("q") == ["p:1", "p:2", "p:3", "p:5"]
    assert lane.machines["p"].idle


def test_an_event_with_an_area_does_not_overtake_what_waits_in_one_of_its_cells():
    lane = Lane("p", "q")
    lane.hold("q", "ab")
    lane.hold("p", "a")
    lane.say("p", "b")
    lane.settle()
    lane.say("p", "a")
    lane.settle(("q", "p"))
    # p leaves when that has been acknowledged, and publishes again when it has left.
    lane.perform("p", Op("unsubscribe", ("t",)))
    lane.say("p", "a")
    lane.say("p", "a", to="b")
    assert len(lane.told("p", Launched)) == 2
    lane.settle()
    assert [each.call[-1] for each in lane.told("p", Launched)] == ["1", "2", "3", "4"]


def test_copies_are_launched_in_one_step():
    lane = Lane("p", "q")
    lane.hold("q", "ab")
    lane.say("p", "b")
    lane.settle()
    lane.say("p", "a", to="b")
    # p is a source of b, and not yet of a: nothing has left for b.
    assert len(lane.told("p", Launched)) == 1
    copies = []
    while not copies:
        lane.take(lane.steps()[0])
        bodies = [m.body for bag in lane.links.values() for m in bag if hasattr(m, "body")]
        copies = [body.event for body in bodies if COPIES in body.event.value]
    assert sorted(event.topic for event in copies) == ["t@0,0", "t@1,0"]
    assert {event.value[COPIES] for event in copies} == {"[2,0,[[0,0,1],[1,0,2]]]"}


def test_what_is_refused_changes_nothing(monkeypatch):
    lane = Lane("p", "q")
    peer = lane.machines["p"]
    before = peer.snapshot()
    for value in ({}, {"x": 1}, {"x": 1, "y": 2, COPIES: "[]"}, {"x": 1, "y": 1, "x_to": 2}):
        with pytest.raises(Misuse):
            peer.publish("t", value, 0.0)
    assert peer.snapshot() == before
    monkeypatch.setattr(peers_of_cells, "CUBE_CALLS_MAX", 2)
    for _ in range(2):
        lane.say("p", "a", to="b")
    before = peer.snapshot()
    with pytest.raises(TooLarge, match="publications that wait is 3, the limit is 2"):
        lane.say("p", "a")
    assert peer.snapshot() == before


def test_an_event_that_its_client_refuses_is_refused_as_a_whole(monkeypatch):
    monkeypatch.setattr(causal_client, "CAUSAL_STAMP_ENTRIES_MAX", 1)
    lane = Lane("p", "q", "r")
    for node in "qr":
        lane.hold(node, "a")
        lane.say(node, "a")
    lane.hold("p", "a")
    for node in "qr":
        lane.say(node, "a")
        lane.settle()
    lane.say("p", "b", to="c")
    lane.settle()
    (refused,) = [each for each in lane.told("p", Answer) if each.outcome == "refused"]
    assert refused.call == "p/publish/1"
    assert "causes of an event is 2, the limit is 1" in refused.reason
    assert lane.told("p", Launched) == []
    assert lane.machines["p"].idle
    assert lane.machines["p"]._copies == {}


@pytest.mark.parametrize(
    "order",
    [Order("none", {}, ("t",)), Order("total", {}, ("t",), cells=LANE)],
)
def test_a_peer_needs_a_grid_and_a_guarantee_without_services(order):
    with pytest.raises(Misuse, match="cells need a grid, and a guarantee"):
        CelledPeer("p", Peers(["p"]), Options(), order)


def test_a_single_peer_is_everything_at_once():
    lane = Lane("p")
    lane.hold("p", "ab")
    lane.say("p", "a", to="b")
    lane.say("p", "b")
    assert lane.handed("p") == ["p:1", "p:3"]
    assert lane.told("p", Answer)[1:] == [Answer("p:1", "accepted"), Answer("p:3", "accepted")]


def test_an_event_with_an_area_waits_while_the_living_agree_on_who_is_dead():
    lane = Lane("p", "q")
    lane.hold("q", "ab")
    for column in "ab":
        lane.say("p", column)
    lane.settle()
    peer = lane.machines["p"]
    peer._flushing = True
    lane.say("p", "a", to="b")
    lane.say("p", "a")
    assert len(lane.told("p", Launched)) == 2
    peer._flushing = False
    # Whatever comes next sets it free.
    lane._carry_out("p", peer.subscribe("p/1", ["u"], 0.0, "x > 1000", {}), [])
    assert len(lane.told("p", Launched)) == 4


def test_a_gap_in_a_cell_is_told_of_its_topic():
    lane = Lane("p", "q")
    lane.hold("p", "ab")
    peer = lane.machines["p"]
    peer._out += [Answer("gap/t@1,0", "gap", "dead"), Answer("gap/u@1,0", "gap", "dead")]
    assert peer._done(0.0) == [Answer("gap/t", "gap", "dead")]


def test_a_past_that_is_dead_is_forgotten_by_the_client_inside():
    lane = Lane("p", "q")
    lane.hold("q", "a")
    lane.say("p", "a")
    lane.settle()
    holder = lane.machines["q"].inner
    assert isinstance(holder, Forgetting)
    lane.say("q", "b")
    lane.settle()
    assert holder._inner._stamps.reached("t@0,0") == ((0, 1),)
    assert holder.forget(0.0) == []
    assert holder._inner._stamps.reached("t@0,0") == ()


# Order across cells.


class Direct(Whole):
    """Direct causes only, though over all topics: the rule that was refuted."""

    def taken_in(self, origin, number, message):
        for topic, places in ((origin[0], message.places), *message.others):
            last = self.table(topic)
            for peer, cause in places:
                if 0 < last[peer] <= cause:
                    last[peer] = 0
        self.tables = {topic: last for topic, last in self.tables.items() if last.pairs()}
        self.table(origin[0])[origin[1]] = number

    def launched(self, origin, number):
        self.tables.clear()
        super().launched(origin, number)


def chain(stamps: str) -> list[str]:
    """e in a, then f in b rests on it, then g in c rests on f. The reader holds a and c, and e is
    last to arrive. Before, everybody has published once, and has come to know the others."""
    lane = Lane("e", "f", "g", "r", stamps=stamps)
    lane.hold("f", "a")
    lane.hold("g", "b")
    lane.hold("r", "ac")
    for node, column in (("e", "a"), ("f", "b"), ("g", "c")):
        lane.say(node, column)
        lane.settle()
    assert lane.handed("r") == ["e:1", "g:1"]
    lane.say("e", "a")
    held = [link for link, bag in lane.links.items() if bag and link[1] == "r"]
    lane.settle(*held)
    assert lane.handed("f")[-1] == "e:2"
    lane.say("f", "b")
    lane.settle(*held)
    assert lane.handed("g")[-1] == "f:2"
    lane.say("g", "c")
    lane.settle(*held)
    early = lane.handed("r")[2:]
    lane.settle()
    assert sorted(lane.handed("r")[2:]) == ["e:2", "g:2"]
    assert (early == []) == (lane.handed("r")[2:] == ["e:2", "g:2"])
    return lane.handed("r")[2:]


def test_whole_stamps_keep_the_order_through_a_cell_that_the_reader_does_not_hold():
    assert chain("whole") == ["e:2", "g:2"]


@pytest.mark.parametrize("stamps", ["direct", "barrier"])
def test_direct_causes_lose_the_order_through_a_cell_that_the_reader_does_not_hold(
    monkeypatch, stamps
):
    """The negative control: direct causes over all topics, and those of the same topic only."""
    monkeypatch.setitem(causal_client.STAMPS, "whole", Direct)
    assert chain("barrier" if stamps == "barrier" else "whole") == ["g:2", "e:2"]


def answer_of_an_area() -> list[str]:
    """p publishes from a to b; q gets that through a, and answers in c. The reader holds b and c,
    and the copy in b is last to arrive."""
    lane = Lane("p", "q", "r")
    meets(lane, "q", 0, 10)
    machine = lane._machine("r")
    where = "x < 20 AND x_to >= 10 OR x >= 20 AND x < 30"
    lane._carry_out("r", machine.subscribe("r/1", ["t"], 0.0, where, {}), [])
    lane.settle()
    lane.say("p", "a", to="b")
    lane.say("q", "c")
    lane.settle()
    assert "p:1" in lane.handed("r")
    before = len(lane.handed("r"))
    lane.say("p", "a", to="b")
    lane.settle(("p", "r"), ("q", "r"))
    assert lane.handed("q") == ["p:1", "p:3"]
    lane.say("q", "c")
    lane.settle(("p", "r"))
    lane.settle()
    return lane.handed("r")[before:]


def test_an_answer_to_an_event_with_an_area_waits_for_its_other_copies():
    assert answer_of_an_area() == ["p:3", "q:2"]


def test_without_the_places_of_the_other_copies_the_answer_overtakes(monkeypatch):
    monkeypatch.setattr(Whole, "learn", lambda *args: None)
    assert answer_of_an_area() == ["q:2", "p:3"]


def moved(node: str, lane: Lane, values: dict[str, Any], call: str) -> Sequence[Effect]:
    machine = lane._machine(node)
    effects: list[Effect] = machine.set(call, ["t"], values, 0.0)
    lane._carry_out(node, effects, [])
    return effects


def test_whoever_moves_hears_all_that_is_published_after_the_answer():
    lane = Lane("p", "q", "r")
    where = "x >= :west AND x < :west_to"
    machine = lane._machine("q")
    values = {"west": 0, "west_to": 10}
    lane._carry_out("q", machine.subscribe("q/1", ["t"], 0.0, where, values), [])
    lane.settle()
    moved("q", lane, {"west": 30, "west_to": 40}, "q/2")
    lane.say("p", "a")
    lane.settle(("r", "q"))
    # r has not answered: q is in d for nobody yet, and still in a. What comes from a is kept back.
    assert lane.told("q", Answer)[1:] == []
    assert (lane.handed("q"), lane.machines["q"].account()["filtered"]) == ([], 1.0)
    lane.settle()
    assert lane.told("q", Answer)[1:] == [Answer("q/2", "done")]
    lane.say("r", "d")
    lane.say("p", "a")
    lane.settle()
    assert lane.handed("q") == ["r:1"]
    assert lane.machines["q"].account()["filtered"] == 1.0
