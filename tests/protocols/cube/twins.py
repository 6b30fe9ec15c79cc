"""Slow twins of the cube's functions, from their recursive definitions, and the published rules.

Nothing here uses a closed form, and nothing of it is imported by the product.
"""

from __future__ import annotations

from inorder.protocols.cube.detector import Detector


def slow_cluster(i, s):
    """c(i, s) = i xor 2^(s-1), followed by c(i xor 2^(s-1), k) for k = 1, ..., s-1."""
    head = i ^ 2 ** (s - 1)
    return [head, *(j for k in range(1, s) for j in slow_cluster(head, k))]


def slow_index(i, j, d):
    """The cluster of i that holds j."""
    return next((s for s in range(1, d + 1) if j in slow_cluster(i, s)), 0)


def slow_first(i, s, members):
    """The first of c(i, s) among `members`, any container of numbers."""
    return next((j for j in slow_cluster(i, s) if j in members), None)


def slow_down(i, h, members):
    nearest = [slow_first(i, s, members) for s in range(1, h + 1)]
    return [j for j in nearest if j is not None]


def slow_tree(root, members, d):
    """The tree of a root as a list of edges (parent, child), by walking it."""
    edges = []
    waiting = [(root, d)]
    while waiting:
        i, h = waiting.pop()
        for s in range(1, h + 1):
            child = slow_first(i, s, members)
            if child is not None:
                edges.append((i, child))
                waiting.append((child, s - 1))
    return edges


# Published rules.


def published_down(i, h, members):
    """V1. Algorithm 1, line 3: 1 < s <= h."""
    nearest = [slow_first(i, s, members) for s in range(2, h + 1)]
    return [j for j in nearest if j is not None]


def published_children(i, r, h, members):
    """V2. Algorithm 1 asks neither whether there is a first child nor whether i is below h. (Its
    lower bound is mended, so that this defect shows alone.)"""
    if i == r:
        return slow_down(i, h, members)
    s = (r ^ i).bit_length()
    return published_children(i, slow_first(r, s, members), s - 1, members)


class PublishedDetector(Detector):
    """V4. "i tests j of its cluster s if j comes first in it": a test a round."""

    def duties(self, s):
        for peer in slow_cluster(self.me, s):
            if self.correct >> peer & 1:
                yield peer
                return


class RisingDetector(Detector):
    """Cluster indexes go up, as the thesis has them."""

    def duties(self, s):
        return super().duties(self._d + 1 - s)
