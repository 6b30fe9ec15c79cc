"""Which cells an event is in, and which a filter needs: enough of them, and no more than that."""

from __future__ import annotations

from contextlib import suppress
from itertools import product
from math import floor, inf, nan, nextafter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inorder.content.predicate import Predicate
from inorder.core.errors import Misuse, TooLarge
from inorder.core.limits import CUBE_CELL_INDEX_MAX, CUBE_CELLS_MAX, CUBE_COPIES_MAX
from inorder.guarantee.cells.grid import Grid

TEN = Grid(size=10.0)
FIELD = Grid(size=10.0, bounds=(0.0, 0.0, 40.0, 30.0))


def cells(grid: Grid, where: str, **values: object) -> list[tuple[int, int]]:
    return grid.cells_for(Predicate.parse(where).bind(values))


def row(grid: Grid, where: str) -> list[int]:
    """The columns, with one row."""
    found = cells(grid, f"({where}) AND y = 5")
    assert all(y == 0 for _, y in found)
    return [x for x, _ in found]


# Events.


@pytest.mark.parametrize(
    ("place", "cell"),
    [
        ({"x": 0, "y": 0}, (0, 0)),
        ({"x": 9.999, "y": 10}, (0, 1)),
        ({"x": -0.001, "y": -10}, (-1, -1)),
        ({"x": -10.001, "y": 29.9}, (-2, 2)),
        ({"x": 12, "y": 31, "x_to": None, "y_to": None}, (1, 3)),
    ],
)
def test_a_point_is_in_the_cell_that_begins_before_it(place, cell):
    assert TEN.cells_of(place) == [cell]


@pytest.mark.parametrize(
    ("place", "cell"),
    [
        ({"x": -5, "y": 15}, (0, 1)),
        ({"x": 39.9, "y": 29.9}, (3, 2)),
        ({"x": 40, "y": 30}, (3, 2)),
        ({"x": 1e300, "y": -1e300}, (3, 0)),
        ({"x": 10**400, "y": -(10**400)}, (3, 0)),
        ({"x": 10, "y": 20}, (1, 2)),
    ],
)
def test_the_cells_at_the_edge_of_bounds_reach_on_for_ever(place, cell):
    assert FIELD.cells_of(place) == [cell]


def test_a_grid_of_one_cell_holds_everything():
    grid = Grid(size=50.0, bounds=(0.0, 0.0, 40.0, 30.0))
    assert {grid.cells_of({"x": x, "y": 0})[0] for x in (-9, 0, 39, 40, 70)} == {(0, 0)}
    assert cells(grid, "EXISTS x") == [(0, 0)]


def test_an_area_is_in_all_cells_that_it_meets_its_point_first():
    assert TEN.cells_of({"x": 8, "y": 1, "x_to": 21, "y_to": 12}) == [
        (0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1),
    ]  # fmt: skip
    # The corners may be any two opposite ones.
    assert TEN.cells_of({"x": 21, "y": 1, "x_to": 8, "y_to": -1}) == [
        (2, 0), (2, -1), (1, 0), (1, -1), (0, 0), (0, -1),
    ]  # fmt: skip
    assert TEN.cells_of({"x": 8, "y": 1, "x_to": 8, "y_to": 1}) == [(0, 0)]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({}, "needs a number x, not None"),
        ({"x": 1}, "needs a number y, not None"),
        ({"x": "1", "y": 1}, "needs a number x, not '1'"),
        ({"x": True, "y": 1}, "needs a number x, not True"),
        ({"x": nan, "y": 1}, "x is nan, which is nowhere"),
        ({"x": 1, "y": -inf}, "y is -inf, which is nowhere"),
        ({"x": 1, "y": 1, "x_to": 2}, "has x_to and y_to, not only x_to"),
        ({"x": 1, "y": 1, "y_to": 2}, "has x_to and y_to, not only y_to"),
        ({"x": 1, "y": 1, "x_to": 2, "y_to": "2"}, "needs a number y_to, not '2'"),
    ],
)
@pytest.mark.parametrize("grid", [TEN, FIELD])
def test_an_event_without_a_place_is_refused(grid, value, words):
    with pytest.raises(Misuse) as caught:
        grid.cells_of(value)
    assert words in str(caught.value)


@pytest.mark.parametrize("x", [10.0 * CUBE_CELL_INDEX_MAX, -1e300, 10**400])
def test_a_point_too_far_out_is_refused(x):
    with pytest.raises(Misuse, match="too far from 0 for cells of 10"):
        TEN.cells_of({"x": x, "y": 1})
    near = 10.0 * (CUBE_CELL_INDEX_MAX - 1)
    assert TEN.cells_of({"x": near, "y": 1}) == [(CUBE_CELL_INDEX_MAX - 1, 0)]


def test_an_area_of_too_many_cells_is_refused():
    wide = {"x": 0, "y": 0, "x_to": 10 * (CUBE_COPIES_MAX // 2) - 1, "y_to": 19}
    assert len(TEN.cells_of(wide)) == CUBE_COPIES_MAX
    with pytest.raises(TooLarge, match=f"cells of an event is {CUBE_COPIES_MAX + 1}"):
        TEN.cells_of({"x": 0, "y": 0, "x_to": 10 * CUBE_COPIES_MAX, "y_to": 0})
    with pytest.raises(TooLarge):
        TEN.cells_of({"x": -1e9, "y": -1e9, "x_to": 1e9, "y_to": 1e9})


# Filters.


@pytest.mark.parametrize(
    ("where", "columns"),
    [
        ("x BETWEEN 5 AND 14", [0, 1]),
        ("x >= 5 AND x < 10", [0]),
        ("x >= 5 AND x <= 10", [0, 1]),
        ("x > 9.99 AND x < 10.01", [0, 1]),
        ("x >= 10 AND x < 20.0", [1]),
        ("x > 10 AND x < 20", [1]),
        ("x > -10 AND x < 0", [-1]),
        ("x = 20", [2]),
        ("x IN (5, 6, 35)", [0, 3]),
        ("x BETWEEN 1 AND 12 OR x BETWEEN 8 AND 25", [0, 1, 2]),
        ("NOT (x < 0 OR x >= 10)", [0]),
        ("x BETWEEN 0 AND 35 AND x <> 15", [0, 1, 2, 3]),
        ("x BETWEEN 7 AND 3", []),
        ("x = 'here'", []),
        ("x IS NULL", []),
        ("x BETWEEN 1 AND 2 AND x_to = 'here'", []),
        ("x BETWEEN 1 AND 2 AND x_to IS NULL", [0]),
        ("x BETWEEN 1 AND 2 AND EXISTS x_to", [0]),
        # Areas: by their point, by their other corner, or by what lies between.
        ("x BETWEEN 1 AND 35 AND x_to BETWEEN 12 AND 13", [1]),
        ("x BETWEEN 12 AND 13 AND x_to BETWEEN 1 AND 35", [1]),
        ("x <= 25 AND x_to >= 15", [1, 2]),
        ("x < 20 AND x_to >= 15", [1]),
        ("x <= 15 AND x_to >= 38", [1]),
        ("x_to BETWEEN 12 AND 13", [1]),
    ],
)
def test_a_filter_needs_the_columns_of_what_matches(where, columns):
    assert row(TEN, where) == columns


@pytest.mark.parametrize(
    ("where", "columns"),
    [
        ("x < 10", [0]),
        ("x <= 10", [0, 1]),
        ("x < 0", [0]),
        ("x < -7", [0]),
        ("x > 30", [3]),
        ("x >= 29", [2, 3]),
        ("x > 99", [3]),
        ("x < 30", [0, 1, 2]),
        ("x < 40", [0, 1, 2, 3]),
        ("x <> 5", [0, 1, 2, 3]),
        ("EXISTS y", [0, 1, 2, 3]),
        ("x_to > 30", [3]),
        ("x < 10 AND x_to > 30", [0]),
    ],
)
def test_with_bounds_an_open_side_reaches_the_edge(where, columns):
    assert row(FIELD, where) == columns


def test_columns_and_rows_are_found_alike():
    assert cells(TEN, "x BETWEEN 0 AND 15 AND y BETWEEN 20 AND 29") == [(0, 2), (1, 2)]
    assert cells(TEN, "y BETWEEN 0 AND 15 AND x BETWEEN 20 AND 29") == [(2, 0), (2, 1)]
    both = "x = 1 AND y = 1 OR x = 11 AND y = 11"
    assert cells(TEN, both) == [(0, 0), (1, 1)]
    assert cells(FIELD, "x < 10 AND y >= 20") == [(0, 2)]


@pytest.mark.parametrize(
    ("where", "side"),
    [
        ("x > 5 AND y = 1", "x"),
        ("x < 5 AND y = 1", "x"),
        ("x <> 5 AND y = 1", "x"),
        ("x = 1", "y"),
        ("kind = 'bus'", "x"),
        ("x = 1 AND y = 1 OR kind = 'bus'", "x"),
        ("x <= 5 AND x_to <= 5 AND y = 1", "x"),
        ("x >= 5 AND x_to >= 5 AND y = 1", "x"),
    ],
)
def test_without_bounds_an_open_side_is_refused_by_its_name(where, side):
    with pytest.raises(Misuse, match=f"without bounds must say how far {side} reaches"):
        cells(TEN, where)


def test_a_filter_of_too_many_cells_is_refused():
    side = int(CUBE_CELLS_MAX**0.5)
    fits = f"x >= 0 AND x < {10 * side} AND y >= 0 AND y < {10 * side}"
    assert len(cells(TEN, fits)) == CUBE_CELLS_MAX
    with pytest.raises(TooLarge, match="cells of a subscription"):
        cells(TEN, fits.replace(f"x < {10 * side}", f"x <= {10 * side}"))
    # Two areas, each small enough.
    with pytest.raises(TooLarge, match="cells of a subscription"):
        cells(TEN, f"{fits} OR x = -1 AND y = -1")
    with pytest.raises(TooLarge):
        cells(TEN, "x BETWEEN 0 AND 1e9 AND y BETWEEN 0 AND 1e9")


def test_values_of_one_column_count_once():
    members = ", ".join(str(number / 1000) for number in range(CUBE_CELLS_MAX + 1))
    assert cells(TEN, f"x IN ({members}) AND y = 1") == [(0, 0)]


@pytest.mark.parametrize(
    ("grid", "words"),
    [
        (Grid(size=0.0), "size 0 is no side of a cell"),
        (Grid(size=-1.0), "size -1 is no side of a cell"),
        (Grid(size=nan), "size nan is no side of a cell"),
        (Grid(size=inf), "size inf is no side of a cell"),
        (Grid(size=1.0, bounds=(0.0, 0.0, 0.0, 1.0)), "bounds from 0 to 0 hold nothing"),
        (Grid(size=1.0, bounds=(0.0, 2.0, 1.0, 1.0)), "bounds from 2 to 1 hold nothing"),
        (Grid(size=1.0, bounds=(0.0, 0.0, inf, 1.0)), "bounds from 0 to inf hold nothing"),
        (Grid(size=1.0, bounds=(0.0, nan, 1.0, 1.0)), "bounds from nan to 1 hold nothing"),
        (Grid(size=1.0, bounds=(0.0, 0.0, 1.0, 1e10)), "size 1 is too small for bounds"),
        (Grid(size=1.0, bounds=(-1e10, 0.0, 1.0, 1.0)), "size 1 is too small for bounds"),
    ],
)
def test_what_is_no_grid_says_why(grid, words):
    assert words in (grid.trouble() or "")


def test_a_grid_has_no_trouble():
    assert TEN.trouble() is None
    assert FIELD.trouble() is None


# Rule 2: enough of them, whatever floats round to.

SIZES = (10.0, 0.1, 1 / 3, 7.0)


@st.composite
def worlds(draw):
    """A grid, numbers near its lines, a filter of them, and events at them."""
    size = draw(st.sampled_from(SIZES))
    bounds = draw(st.sampled_from([None, (-0.3, 0.7, -0.3 + 5 * size, 0.7 + 4.5 * size)]))
    origin = (0.0, 0.0) if bounds is None else bounds[:2]
    numbers = st.builds(
        lambda side, line, off: origin[side] + line * size + off * size,
        st.sampled_from([0, 1]),
        st.integers(-1, 5),
        st.sampled_from([0.0, 1e-17, -1e-17, 1e-16, -1e-16, 0.3, 0.5]),
    )
    values = draw(st.lists(numbers, min_size=8, max_size=12))
    test = st.builds(
        lambda name, op, value: f"{name} {op} {value!r}",
        st.sampled_from(["x", "y", "x_to", "y_to"]),
        st.sampled_from(["<", "<=", ">", ">=", "=", "<>"]),
        st.sampled_from(values),
    )
    between = st.builds(
        lambda name, one, other: f"{name} BETWEEN {min(one, other)!r} AND {max(one, other)!r}",
        st.sampled_from(["x", "y", "x_to", "y_to"]),
        st.sampled_from(values),
        st.sampled_from(values),
    )
    conjunction = st.lists(st.one_of(test, between), min_size=1, max_size=5).map(" AND ".join)
    where = draw(st.lists(conjunction, min_size=1, max_size=2).map(" OR ".join))
    return Grid(size=size, bounds=bounds), where, values


@settings(max_examples=200)
@given(worlds())
def test_every_event_that_matches_is_in_one_of_the_cells_of_the_filter(world):
    grid, where, values = world
    predicate = Predicate.parse(where)
    if grid.bounds is None:
        with suppress(Misuse):
            check_cells(grid, predicate, values)
    else:
        check_cells(grid, predicate, values)


def check_cells(grid: Grid, predicate: Predicate, values: list[float]) -> None:
    needed = set(grid.cells_for(predicate.bind({})))
    some = values[:4]
    events = [{"x": x, "y": y} for x, y in product(some, some)]
    events += [
        {"x": x, "y": y, "x_to": x_to, "y_to": y_to}
        for x, x_to, y, y_to in product(some, some, values[3:5], values[5:8])
    ]
    for event in events:
        if predicate.matches({}, event):
            assert needed & set(grid.cells_of(event)), (event, needed)


def test_lines_between_cells_are_where_comparing_finds_them():
    """Dividing alone would put some numbers at a line, or just below one, on the wrong side."""
    misled = []
    for size in (0.1, 1 / 3, 0.7, 0.07):
        grid = Grid(size=size)
        for index in range(1, 400):
            line = index * size
            below = nextafter(line, 0.0)
            assert grid.cells_of({"x": line, "y": below}) == [(index, index - 1)]
            misled.append((floor(line / size) < index, floor(below / size) >= index))
    above, under = zip(*misled, strict=True)
    assert any(above)
    assert any(under)


@given(worlds())
def test_cells_of_an_event_are_all_between_those_of_its_corners(world):
    """And lines between cells are found by comparing: what begins at a line is behind it."""
    grid, _, values = world
    for x in values:
        ((column, _),) = grid.cells_of({"x": x, "y": 0.0})
        origin = 0.0 if grid.bounds is None else grid.bounds[0]
        last = 4 if grid.bounds is not None else None
        assert (column == 0 and last is not None) or x >= origin + column * grid.size
        assert column == last or x < origin + (column + 1) * grid.size
