"""Broker trees have the shape that was asked for."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inorder.sim import graphs

SHAPES = ("line", "star", "tree", "random", "long")


def distances(graph: graphs.Graph, start: int) -> dict[int, int]:
    """Links from one broker to each other, by going ever one link further."""
    far = {start: 0}
    edge = [start]
    while edge:
        edge = [there for here in edge for there in graph[here] if there not in far]
        far |= dict.fromkeys(edge, max(far.values()) + 1)
    return far


def diameter(graph: graphs.Graph) -> int:
    return max(max(distances(graph, start).values()) for start in range(len(graph)))


def check_tree(graph: graphs.Graph) -> None:
    edges = Counter((here, there) for here, near in enumerate(graph) for there in near)
    assert all(edges[there, here] == 1 == edges[here, there] for here, there in edges)
    assert len(edges) == 2 * (len(graph) - 1), "a tree has one link fewer than brokers"
    assert len(distances(graph, 0)) == len(graph), "every broker can be reached"


@st.composite
def trees(draw: st.DrawFn) -> tuple[Any, int, int | None, str]:
    count = draw(st.integers(1, 60))
    shape = draw(st.sampled_from(SHAPES))
    wanted = None
    if shape == "long" and draw(st.booleans()):
        wanted = draw(st.integers(min(2, count - 1), count - 1))
    return shape, count, wanted, str(draw(st.integers(0, 10**6)))


@given(trees())
def test_every_shape_is_a_tree_as_long_as_asked(asked: tuple[Any, int, int | None, str]) -> None:
    shape, count, wanted, _ = asked
    graph = graphs.tree(*asked)
    assert len(graph) == count
    check_tree(graph)
    assert graph == graphs.tree(*asked), "the same for the same seed"
    if shape == "long":
        assert diameter(graph) == (graphs.usual_diameter(count) if wanted is None else wanted)


@pytest.mark.parametrize("planted", [[[1, 2], [0, 2], [0, 1]], [[1], [0], []], [[1], [0, 2], []]])
def test_what_is_no_tree_is_seen(planted: graphs.Graph) -> None:
    with pytest.raises(AssertionError):
        check_tree(planted)


@pytest.mark.parametrize(("count", "wanted", "degree", "kinds"), [(46, 15, 3, 30), (8, 3, 4, 2)])
def test_the_networks_of_the_paper_are_long_and_of_low_degree(
    count: int, wanted: int, degree: int, kinds: int
) -> None:
    drawn = [graphs.tree("long", count, None, f"{seed}") for seed in range(30)]
    for graph in drawn:
        assert diameter(graph) == wanted
        assert max(map(len, graph)) <= degree
    assert len({str(graph) for graph in drawn}) >= kinds, "other seeds are other networks"


def test_the_plain_shapes_are_what_they_are_called() -> None:
    assert diameter(graphs.tree("line", 9, None, "")) == 8
    assert diameter(graphs.tree("star", 9, None, "")) == 2
    assert diameter(graphs.tree("tree", 15, None, "")) == 6
    assert max(map(len, graphs.tree("tree", 46, None, ""))) == 3
    assert diameter(graphs.tree("random", 46, None, "1")) < 15


@pytest.mark.parametrize(
    ("count", "wanted"), [(5, 5), (5, 1), (3, 1), (1, 1), (2, 0), (4, 0), (1, -1)]
)
def test_no_tree_has_an_impossible_diameter(count: int, wanted: int) -> None:
    assert graphs.impossible(count, wanted)
