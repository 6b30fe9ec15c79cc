"""A holder of areas with a network that is led by hand; columns of 10 stand for cells."""

from __future__ import annotations

from typing import Any

from inorder.core.effect import Answer, Deliver, Effect, Join, Leave, Note
from inorder.core.event import Event
from inorder.guarantee.cells.copies import COPIES
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
