"""Clusters and trees: the thesis's examples, the recursive definition, and what trees promise."""

from __future__ import annotations

import random

import pytest

from inorder.protocols.cube.topology import (
    children,
    children_down,
    cluster,
    dimensions,
    everybody,
    first_child,
    members_of_cluster,
    parent,
    passes_on,
)
from tests.protocols.cube.twins import (
    published_children,
    published_down,
    slow_cluster,
    slow_down,
    slow_first,
    slow_index,
    slow_tree,
)


def mask_of(members):
    return sum(1 << j for j in members)


def tree(root, members, d):
    """The edges as the peers make them, none of which knows the root."""
    edges = []
    waiting = [(root, d)]
    while waiting:
        i, h = waiting.pop()
        for child in children_down(i, h, members):
            edges.append((i, child))
            waiting.append((child, cluster(i, child) - 1))
    return edges


def draw(rng):
    """A count of peers, a set of members among them and a root, which need not be a member."""
    count = rng.randint(1, 64)
    share = rng.choice((0.05, 0.3, 0.6, 0.9, 1.0))
    members = [j for j in range(count) if rng.random() < share]
    return count, members, rng.randrange(count)


# The thesis's own examples.

FIGURE_2_6 = {
    1: [[1], [0], [3], [2], [5], [4], [7], [6]],
    2: [[2, 3], [3, 2], [0, 1], [1, 0], [6, 7], [7, 6], [4, 5], [5, 4]],
    3: [
        [4, 5, 6, 7], [5, 4, 7, 6], [6, 7, 4, 5], [7, 6, 5, 4],
        [0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 0, 1], [3, 2, 1, 0],
    ],
}  # fmt: skip


def test_figure_2_6_the_clusters_of_eight_peers():
    for s, rows in FIGURE_2_6.items():
        for i, row in enumerate(rows):
            assert list(members_of_cluster(i, s)) == row


def test_the_examples_of_cluster():
    assert cluster(0, 1) == 1
    assert [cluster(0, j) for j in (2, 3)] == [2, 2]
    assert [cluster(0, j) for j in (4, 5, 6, 7)] == [3, 3, 3, 3]


def test_the_examples_of_first_child_as_v5_restores_them():
    assert first_child(0, 1, None) == 1
    assert first_child(1, 2, None) == 3
    assert first_child(1, 3, None) == 5
    assert first_child(4, 1, None) == 5
    without_5 = mask_of({0, 1, 2, 3, 4, 6, 7})
    assert first_child(1, 3, without_5) == 4
    assert first_child(4, 1, without_5) is None


def test_figure_2_7_the_children_of_4_in_the_tree_of_2():
    assert children(4, 2, 3, None) == (5,)
    assert children(4, 6, 2, None) == (5,)
    assert children(4, 4, 1, None) == (5,)


def test_figure_2_8_three_trees():
    complete = {0: (1, 2, 4), 1: (), 2: (3,), 3: (), 4: (5, 6), 5: (), 6: (7,), 7: ()}
    for i, expected in complete.items():
        assert children(i, 0, 3, None) == expected
    without_2_4_6 = mask_of({0, 1, 3, 5, 7})
    pruned = {0: (1, 3, 5), 1: (), 3: (), 5: (7,), 7: ()}
    for i, expected in pruned.items():
        assert children(i, 0, 3, without_2_4_6) == expected
    from_2 = {2: (3, 0, 6), 3: (), 0: (1,), 1: (), 6: (7, 4), 7: (), 4: (5,), 5: ()}
    for i, expected in from_2.items():
        assert children(i, 2, 3, None) == expected


def test_the_calls_of_figure_2_8_with_the_height_below_the_parent():
    assert [children_down(*call, None) for call in ((1, 0), (2, 1), (4, 2), (5, 0), (6, 1))] == [
        (), (3,), (5, 6), (), (7,),
    ]  # fmt: skip
    assert children_down(3, 1, mask_of({0, 1, 3, 5, 7})) == ()
    assert children_down(5, 2, mask_of({0, 1, 3, 5, 7})) == (7,)


def test_the_children_among_subscribers():
    assert children_down(0, 2, None) == (1, 2)
    assert children_down(0, 3, mask_of({0, 3, 4})) == (3, 4)
    assert children_down(4, 2, mask_of({0, 3, 4})) == ()
    figure_5_4 = mask_of({0, 2, 3, 5, 7})
    assert children_down(2, 3, figure_5_4) == (3, 0, 7)
    assert children_down(0, 1, figure_5_4) == ()
    assert children_down(7, 2, figure_5_4) == (5,)


# The recursive definition.


def test_clusters_are_those_of_the_recursive_definition():
    for d in range(6):
        for i in range(2**d):
            for s in range(1, d + 1):
                assert list(members_of_cluster(i, s)) == slow_cluster(i, s)
            for j in range(2**d):
                assert cluster(i, j) == slow_index(i, j, d)


def test_a_cluster_is_listed_by_growing_distance():
    for i in range(32):
        for s in range(1, 6):
            distances = [i ^ j for j in members_of_cluster(i, s)]
            assert distances == list(range(2 ** (s - 1), 2**s))


def test_first_children_are_those_of_the_list():
    rng = random.Random(1)
    for _ in range(3000):
        count, members, i = draw(rng)
        mask = mask_of(members)
        for s in range(1, dimensions(count) + 1):
            assert first_child(i, s, mask) == slow_first(i, s, members)
            assert first_child(i, s, None) == slow_cluster(i, s)[0]


def test_members_of_other_clusters_do_not_matter_to_a_first_child():
    for i in range(16):
        for s in range(1, 5):
            outside = (1 << 40) - 1 - mask_of(slow_cluster(i, s))
            assert first_child(i, s, outside) is None


def test_the_dimensions_of_a_count():
    assert [dimensions(count) for count in (1, 2, 3, 4, 5, 8, 9, 4096, 4097)] == [
        0, 1, 2, 2, 3, 3, 4, 12, 13,
    ]  # fmt: skip
    with pytest.raises(AssertionError):
        dimensions(0)


def test_everybody_is_no_mask_where_peers_fill_the_cube():
    assert [everybody(count) for count in (1, 2, 3, 4, 6)] == [None, None, 0b111, None, 0b111111]


# What trees promise (spanning trees of the thesis, section 2.4.1).


def check_tree(edges, root, members, d):
    """Exactly the members, once; at most d children; at most d hops from the root."""
    reached = [child for _, child in edges]
    assert sorted(reached) == sorted(set(members) - {root})
    depth = {root: 0}
    for i, child in edges:
        depth[child] = depth[i] + 1
    assert max(depth.values()) <= d
    degrees = [sum(1 for i, _ in edges if i == peer) for peer in depth]
    assert max(degrees) <= d


def test_trees_reach_exactly_the_members_within_their_bounds():
    rng = random.Random(2)
    for _ in range(3000):
        count, members, root = draw(rng)
        d = dimensions(count)
        edges = tree(root, mask_of(members), d)
        check_tree(edges, root, members, d)
        assert sorted(edges) == sorted(slow_tree(root, members, d))


@pytest.mark.parametrize("count", range(1, 18))
def test_any_count_of_peers_will_do(count):
    d = dimensions(count)
    for root in range(count):
        edges = tree(root, everybody(count), d)
        check_tree(edges, root, range(count), d)
        mask = mask_of(range(count))
        for i in range(count):
            below = tuple(child for peer, child in edges if peer == i)
            assert children(i, root, d, mask) == below


def test_children_are_those_in_the_tree_of_the_root():
    rng = random.Random(3)
    for _ in range(1000):
        count, members, root = draw(rng)
        d, mask = dimensions(count), mask_of(members)
        edges = slow_tree(root, members, d)
        inside = {root, *members}
        for i in range(count):
            below = tuple(child for peer, child in edges if peer == i)
            assert children(i, root, d, mask) == (below if i in inside else ())


def test_children_within_a_height_are_those_of_a_smaller_tree():
    rng = random.Random(4)
    for _ in range(1000):
        count, members, root = draw(rng)
        h = rng.randint(0, dimensions(count))
        edges = slow_tree(root, members, h)
        inside = {root, *(child for _, child in edges)}
        for i in range(count):
            below = tuple(child for peer, child in edges if peer == i)
            assert children(i, root, h, mask_of(members)) == (below if i in inside else ())


def test_what_lies_below_an_edge_does_not_depend_on_the_root():
    rng = random.Random(5)
    seen_twice = 0
    for _ in range(300):
        count, members, _ = draw(rng)
        d = dimensions(count)
        below = {}
        for root in range(count):
            edges = tree(root, mask_of(members), d)
            for edge in edges:
                subtree = _below(edge[1], edges)
                seen_twice += edge in below
                assert below.setdefault(edge, subtree) == subtree
    assert seen_twice > 10_000


def _below(peer, edges):
    children_of = {}
    for i, child in edges:
        children_of.setdefault(i, []).append(child)
    waiting, subtree = [peer], []
    while waiting:
        i = waiting.pop()
        for child in children_of.get(i, ()):
            subtree.append((i, child))
            waiting.append(child)
    return sorted(subtree)


def test_nothing_reaches_a_peer_twice_whatever_each_hop_believes():
    rng = random.Random(6)
    for _ in range(3000):
        count, _, root = draw(rng)
        d = dimensions(count)
        views = [rng.getrandbits(count) | rng.getrandbits(count) for _ in range(count)]
        waiting, reached = [(root, d)], [root]
        while waiting:
            i, h = waiting.pop()
            for child in children_down(i, h, views[i]):
                reached.append(child)
                waiting.append((child, cluster(i, child) - 1))
        assert len(reached) == len(set(reached))


# The complete cube.


def test_parents_on_the_complete_cube():
    for d in range(1, 6):
        for root in range(2**d):
            for i, child in slow_tree(root, range(2**d), d):
                assert parent(child, root) == i
            with pytest.raises(AssertionError):
                parent(root, root)


def test_who_passes_on_to_whom_on_the_complete_cube():
    for d in range(1, 5):
        for source in range(2**d):
            edges = slow_tree(source, range(2**d), d)
            for i in range(2**d):
                for child in range(2**d):
                    assert passes_on(i, source, child) == ((i, child) in edges)


def test_an_edge_of_bit_b_is_used_in_one_of_2_to_the_b_plus_1_trees():
    for b in range(4):
        users = [source for source in range(16) if passes_on(6, source, 6 ^ (1 << b))]
        assert len(users) == 16 >> (b + 1)


# Negative controls.


def test_v1_children_from_cluster_2_on_lose_the_leaves():
    assert published_down(0, 3, range(8)) == [2, 4]
    assert slow_down(0, 3, range(8)) == [1, 2, 4]


def test_v1_is_found_out_by_the_check_of_trees(monkeypatch):
    def published(i, h, members):
        return published_down(i, h, [j for j in range(64) if members >> j & 1])

    monkeypatch.setitem(globals(), "children_down", published)
    edges = tree(0, mask_of(range(8)), 3)
    with pytest.raises(AssertionError):
        check_tree(edges, 0, range(8), 3)


def test_v2_the_published_search_runs_into_nothing():
    # 4 holds nothing, and is alone in the rest of its cluster.
    with pytest.raises(TypeError):
        published_children(4, 0, 3, {0, 1, 2})
    assert children(4, 0, 3, mask_of({0, 1, 2})) == ()


def test_v2_the_published_search_answers_for_a_peer_beyond_the_height():
    # The tree of height 1 below 2 is 2 and 3; 4 is not in it.
    assert published_children(4, 2, 1, set(range(8))) == [5]
    assert children(4, 2, 1, None) == ()
