"""Cells of different sizes: the meters against geometry, and the rule of splitting."""

from __future__ import annotations

from dataclasses import replace

import pytest
from experiments.cube import cells
from experiments.cube.cells import FIGURE, REACH, SIDE, Walkers, split_to
from experiments.figure import Row

from inorder.guarantee.cells.grid import Grid


@pytest.mark.parametrize("size", [100.0, 30.0, 10.0])
def test_copies_and_false_positives_are_those_of_the_geometry(monkeypatch, size):
    """The walkers stand still: who is sent what follows from where they stand."""
    monkeypatch.setattr(cells, "STEP", 0.0)
    walkers = Walkers(size, 12, 0.5, 2, seed=3)
    walkers.go()
    numbers = walkers.numbers(20.0)
    places = list(walkers._places.values())
    grid = Grid(size=size, bounds=(0.0, 0.0, SIDE, SIDE))

    def holds(at, event):
        """Whether one of the cells that meet what is around a place is the event's."""
        (cell,) = grid.cells_of({"x": event[0], "y": event[1]})
        low = grid.cells_of({"x": at[0] - REACH, "y": at[1] - REACH})[0]
        high = grid.cells_of({"x": at[0] + REACH, "y": at[1] + REACH})[0]
        return all(low[axis] <= cell[axis] <= high[axis] for axis in (0, 1))

    def hears(at, event):
        return all(at[axis] - REACH <= event[axis] < at[axis] + REACH for axis in (0, 1))

    copies = wasted = 0
    published = walkers.rows["events"]
    assert len(published) == walkers.published > 60
    for row in published:
        event = walkers._places[row.publisher]
        held = [at for at in places if holds(at, event)]
        copies += len(held) - 1
        wasted += sum(not hears(at, event) for at in held)
    assert numbers["copies"] == pytest.approx(copies / len(published))
    assert numbers["false"] == pytest.approx(wasted / len(published))
    assert numbers["wasted"] == pytest.approx(2.0 * wasted / 20.0)
    assert numbers["control"] == 0.0
    assert numbers["total"] == pytest.approx(2.0 * copies / 20.0)


def test_joining_a_cell_costs_a_word_to_all_peers_and_one_to_its_members():
    """One of five walkers steps from the first column into the next one, and nothing else moves."""
    walkers = Walkers(50.0, 5, 1e-9, 1, seed=1)
    world, names = walkers.world, sorted(walkers.world.nodes)
    for name in names:
        world.agenda.run(world.agenda.now + 1.0)
        world.set(name, {"x0": 10.0, "x1": 20.0, "y0": 10.0, "y1": 20.0})
    # Two are in the second column before.
    for name in names[:2]:
        world.set(name, {"x0": 60.0, "x1": 70.0})
    world.agenda.run(15.0)
    walkers.copies.counts = True
    world.set(names[2], {"x0": 60.0, "x1": 70.0})
    world.agenda.run(18.0)
    # Sub to the four others, Act to the two members, Uns to those of the two that stay in the old
    # cell; and all of them acknowledged.
    assert walkers.copies.control == 2 * (4 + 2 + 2)
    assert walkers.copies.publications == 0


def test_finer_cells_waste_less_and_cost_more():
    rows = [Row({"size": size}, [cells.run(size, 12, 0.3, 3, seed=2)]) for size in (100, 50, 25)]
    for column, finer in (("copies", False), ("false", False), ("control", True), ("cells", True)):
        values = [row.mean(column) for row in rows]
        assert values == sorted(values, reverse=not finer), column
        assert len(set(values)) == 3, column
    assert rows[0].mean("control") == 0.0
    assert rows[0].mean("cells") == 1.0
    assert rows[0].mean("copies") == 11.0


def made(*numbers: tuple[float, float, float]) -> list[Row]:
    """Rows of a size, what is wasted, and what control costs."""
    return [
        Row({"rate": 1.0, "size": size}, [{"wasted": wasted, "control": control, "total": 0.0}])
        for size, wasted, control in numbers
    ]


def test_splitting_goes_on_while_the_false_positives_cost_more_than_finer_cells():
    rows = made((100, 90, 0), (50, 40, 30), (25, 20, 41), (12.5, 1000, 1))
    # At 50, 40 are wasted, and 41 would be spent at 25.
    assert split_to(rows).settings["size"] == 50
    assert split_to(rows[::-1]).settings["size"] == 50
    assert split_to(made((100, 30, 0), (50, 9, 30))).settings["size"] == 100
    assert split_to(made((100, 31, 0), (50, 9, 30))).settings["size"] == 50


@pytest.mark.parametrize(("coarse", "fine", "verdicts"), [
    ((90.0, 0.0, 100.0, 9.0), (10.0, 5.0, 99.0, 3.0), ["reproduced", "reproduced"]),
    ((9.0, 0.0, 100.0, 9.0), (1.0, 10.0, 90.0, 3.0), ["NOT reproduced", "reproduced"]),
    ((9.0, 0.0, 98.0, 9.0), (1.0, 10.0, 90.0, 3.0), ["reproduced", "reproduced"]),
    ((90.0, 0.0, 100.0, 9.0), (10.0, 5.0, 99.0, 9.5), ["reproduced", "NOT reproduced"]),
    ((90.0, 6.0, 100.0, 9.0), (10.0, 5.0, 99.0, 3.0), ["reproduced", "NOT reproduced"]),
])  # fmt: skip
def test_the_rule_may_cost_a_tenth_and_smaller_cells_waste_less(coarse, fine, verdicts):
    rows = [
        Row({"rate": 1.0, "size": size},
            [dict(zip(("wasted", "control", "total", "false"), numbers, strict=True))])
        for size, numbers in ((100.0, coarse), (50.0, fine))
    ]  # fmt: skip
    assert [line.partition(":")[0] for line in cells.judge(rows)] == verdicts


def test_every_copy_is_counted_once_from_the_beginning():
    copies = cells.Copies()
    for _ in range(3):
        copies.show("before the meters begin")
    assert (copies.moved, copies.publications, copies.control) == (3, 0, 0)
    numbers = cells.run(50.0, 6, 0.5, 1, seed=1)
    # With what joining cost, and every publication's acknowledgement.
    assert numbers["moved"] > numbers["total"] * 10.0


def test_the_table_is_written_with_a_line_for_each_rate(tmp_path):
    points = [{"rate": 0.5, "size": size, "nodes": 6, "moves": 1} for size in (100.0, 50.0)]
    figure = replace(FIGURE, points=lambda quick: points)
    text = figure.reproduce(tmp_path, True, 1)
    assert "| rate | size | nodes | runs | cells held | copies a publication |" in text
    assert "0.5 a second and peer: the least traffic is with cells of" in text
    assert {point["size"] for point in FIGURE.points(True)} < {
        point["size"] for point in FIGURE.points(False)
    }
