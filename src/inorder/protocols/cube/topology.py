"""The hypercube and its trees: which peer passes on to which.

Eight peers, and peer 0 publishes. It sends to 1, 2 and 4; peer 2 passes on to 3, peer 4 to 5 and 6,
peer 6 to 7. If only 0, 3 and 4 hold the topic, peer 0 sends to 3 and 4, and nobody passes on.

Rule 1: cluster s of peer i are the 2^(s-1) numbers whose highest bit different from i's is bit
        s - 1. Its order is that of the XOR distance from i, and its first member is i's child.
Rule 2: a peer that received from j passes on below dimension `cluster(j, i)` only. So the numbers
        below two children are disjoint, whatever members each peer on the way believes in, and
        nothing reaches a peer twice.
Rule 3: `members` is a bit mask over numbers, bit n for peer n. None means the complete cube of 2^d
        peers. Any count of peers will do (erratum V3): the numbers above it are never members, and
        `everybody` gives the mask, or None where none is needed.

Theory. The height of a tree, and the children of a peer, are at most d = `dimensions(count)`. What
lies below the edge from j to i depends on j, i and the members, *not on the root*: this is why a
peer may hold something back for a child without delaying it (../causal). All of it follows from one
fact: XOR with j keeps the order of distances from j and maps each cluster to a block of numbers.

The functions are those of João Paulo de Araujo, "A communication-efficient causal broadcast
publish/subscribe system", thesis, Sorbonne Université, 2019 ("the thesis"), section 2.4, with two
corrections: children begin with cluster 1 (V1), and a peer outside the tree has none (V2).
"""

from __future__ import annotations

Members = int | None


def dimensions(count: int) -> int:
    """How many bits number so many peers: ceil(log2 count)."""
    assert count >= 1, f"{count} peers"
    return (count - 1).bit_length()


def everybody(count: int) -> Members:
    """All peers below `count` as members; None if they fill a cube."""
    return None if count & (count - 1) == 0 else (1 << count) - 1


def cluster(i: int, j: int) -> int:
    """The index of i's cluster that holds j, 0 for i itself. It is the same seen from j.

    >>> [cluster(0, j) for j in range(8)]
    [0, 1, 2, 2, 3, 3, 3, 3]
    """
    return (i ^ j).bit_length()


def members_of_cluster(i: int, s: int) -> tuple[int, ...]:
    """Cluster s of peer i in the complete cube, nearest first.

    >>> members_of_cluster(5, 3)
    (1, 0, 3, 2)
    """
    head = i ^ (1 << (s - 1))
    return tuple(head ^ m for m in range(1 << (s - 1)))


def first_child(i: int, s: int, members: Members) -> int | None:
    """The member of i's cluster s that is nearest to i; None if there is none.

    >>> first_child(1, 3, None), first_child(1, 3, 0b1101_1111), first_child(4, 1, 0b1101_1111)
    (5, 4, None)
    """
    size = 1 << (s - 1)
    head = i ^ size
    if members is None or members >> head & 1:
        return head
    # The block of the numbers of the cluster: of its halves, the one on the head's side is nearer.
    child = head & -size
    block = members >> child & ((1 << size) - 1)
    if not block:
        return None
    while size > 1:
        size >>= 1
        halves = (block & ((1 << size) - 1), block >> size)
        upper = head & size != 0
        if not halves[upper]:
            upper = not upper
        block = halves[upper]
        child += size * upper
    return child


def children_down(i: int, h: int, members: Members) -> tuple[int, ...]:
    """The children of peer i below dimension h, by cluster. The root of a tree has h = d; a peer
    that received from j has h = cluster(j, i) - 1.

    >>> children_down(0, 3, None), children_down(0, 3, 0b0001_1001)
    ((1, 2, 4), (3, 4))
    """
    nearest = (first_child(i, s, members) for s in range(1, h + 1))
    return tuple(child for child in nearest if child is not None)


def children(i: int, r: int, h: int, members: Members) -> tuple[int, ...]:
    """The children of peer i in the tree of height h of root r; none if i is not in that tree.

    >>> children(4, 2, 3, None)
    (5,)
    """
    while i != r:
        s = cluster(r, i)
        if s > h:
            return ()
        next_root = first_child(r, s, members)
        if next_root is None:
            return ()
        r, h = next_root, s - 1
    return children_down(i, h, members)


def parent(x: int, root: int) -> int:
    """Who passes on to x in the tree of `root` on the complete cube.

    >>> [parent(x, 0) for x in range(1, 8)]
    [0, 0, 2, 0, 4, 4, 6]
    """
    assert x != root, f"peer {root} is the root of its tree"
    way = x ^ root
    return x ^ (way & -way)


def passes_on(i: int, source: int, child: int) -> bool:
    """Whether, on the complete cube, peer i forwards to `child` what `source` publishes: the edge
    flips bit b, and i agrees with the source in bits 0 to b.

    >>> [source for source in range(8) if passes_on(4, source, 6)]
    [0, 4]
    """
    edge = i ^ child
    return edge != 0 and edge & (edge - 1) == 0 and (i ^ source) & (2 * edge - 1) == 0


def is_parent(i: int, child: int, root: int, members: Members) -> bool:
    """Whether `child` gets what `root` sends to these members from peer i.

    >>> [root for root in range(8) if is_parent(4, 6, root, None)]
    [0, 4]
    >>> is_parent(4, 7, 0, 0b1001_0001), is_parent(0, 7, 4, 0b1001_0001)
    (True, False)
    """
    # On the way to the child, peer by peer: its cluster becomes smaller with every step.
    while s := cluster(root, child):
        nearest = first_child(root, s, members)
        if root == i or nearest is None:
            return nearest == child
        root = nearest
    return False
