"""Which machine gets which number: near machines at low-bit distance.

Machines 0 and 2 stand in one town, 1 and 3 in another. With numbers as the machines come, every
tree goes to the other town twice. With the order (0, 2, 1, 3), machine 2 gets number 1 and machine
1 number 2: numbers that differ in the lowest bit are in one town, and every tree crosses once.

Rule 1: blocks of 2^b numbers grow together. Each time the two nearest blocks are joined first, and
        a block is turned by the offset of XOR that brings its machines nearest to their partners:
        that changes nothing within the block.
Rule 2: then numbers are swapped at random, and a swap stays if the mean latency of the paths falls.
        Chance comes from outside, since no machine of a protocol draws any.
Rule 3: any count of machines will do. One block, that of the highest numbers, may be shorter than
        the others; it is never turned, but its partner is.

Theory. With 2^d numbers the edge from i to i xor 2^b lies in 2^d / 2^(b+1) of the trees, and 2^b
peers hang on it in each: every edge carries 2^d / 2 of the paths. So the mean latency of the paths
over all roots is the sum of L(i, i xor 2^b) over all i and b, divided by 2 (2^d - 1): all bits
weigh the same. Of the copies, though, the lowest bit carries half and the highest 2^-d: what is
near at low bits saves traffic. For other counts, and for topics that some hold, the trees are
counted (`edges`), which takes as many steps as there are edges.

*Who talks* (section 6.2.1 of the thesis names communication locality): with groups, the paths are
those of the topics' own trees, weighed by how much is published. A tree has its topic's members
only, so how many hops a path has is nearly the same for any numbers: what can be gained is that the
hops are short. Weighing the latency of pairs by how much they talk gains nothing at all: it makes
silent pairs neighbours, since these cost nothing (measured: the same as numbers at random). Hence
blocks are joined by latency alone, and the swaps look at the topics.

Measured, 64 machines, mean latency of the paths to that of random numbers: 0.60 for machines spread
over a plane, 0.47 for 8 sites; copies times latency 0.36 and 0.12. With 20 topics of 16 members:
0.70 with groups and 0.74 without (plane), 0.63 and 0.64 (sites), 0.96 and 1.0 where all pairs are
equally far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct

from inorder.core.errors import Misuse, TooLarge
from inorder.core.limits import CUBE_MAPPED_MAX, CUBE_MAPPING_EDGES_MAX
from inorder.protocols.cube.topology import dimensions, first_child

# Seconds from machine to machine; the same both ways.
Latency = Sequence[Sequence[float]]

# The machine of each number.
Order = tuple[int, ...]

# From which number to which, how much goes over it, and how many members it reaches.
Edge = tuple[int, int, float, int]

# Swaps that are tried for each machine.
SWAPS_PER_MACHINE = 40


class Group(Struct, frozen=True):
    """A topic: the machines that hold it, and how much each of its publishers says."""

    members: tuple[int, ...]
    rates: tuple[tuple[int, float], ...]


def edges(count: int, members: int, rates: Mapping[int, float]) -> Iterator[Edge]:
    """All edges of the trees of these roots over these members; all are numbers, members as bits.

    >>> list(edges(4, 0b1111, {0: 1.0}))
    [(0, 2, 1.0, 2), (0, 1, 1.0, 1), (2, 3, 1.0, 1)]
    """
    d = dimensions(count)
    # By the height below which a number passes on: how much reaches it with that height.
    reaching: list[dict[int, float]] = [{} for _ in range(d + 1)]
    reaching[d] = dict(rates)
    passing: dict[int, float] = {}
    for s in range(d, 0, -1):
        for number, amount in reaching[s].items():
            passing[number] = passing.get(number, 0.0) + amount
        below = reaching[s - 1]
        for number, amount in passing.items():
            child = first_child(number, s, members)
            if child is not None:
                below[child] = below.get(child, 0.0) + amount
                yield number, child, amount, _reached(members, child, s - 1)


def _reached(members: int, child: int, h: int) -> int:
    """How many members there are below this child, itself included."""
    return (members >> (child >> h << h) & ((1 << (1 << h)) - 1)).bit_count()


def path_latency(latency: Latency, order: Sequence[int], groups: Sequence[Group] = ()) -> float:
    """The mean latency from a publisher to a member, over all that is published.

    >>> towns = [[0, 9, 1, 9], [9, 0, 9, 1], [1, 9, 0, 9], [9, 1, 9, 0]]
    >>> path_latency(towns, (0, 1, 2, 3)), path_latency(towns, (0, 2, 1, 3))
    (6.666666666666667, 6.666666666666667)
    >>> traffic(towns, (0, 1, 2, 3)), traffic(towns, (0, 2, 1, 3))
    (6.333333333333333, 3.6666666666666665)
    """
    groups = groups or [everybody(len(order))]
    deliveries = sum(_deliveries(group) for group in groups)
    return sum(_paths(latency, order, group) for group in groups) / deliveries


def traffic(latency: Latency, order: Sequence[int], groups: Sequence[Group] = ()) -> float:
    """The mean latency of a copy: what the network carries, weighed by how far."""
    groups = groups or [everybody(len(order))]
    total = copies = 0.0
    for group in groups:
        for parent, child, amount, _ in _edges_of(order, group):
            total += amount * latency[order[parent]][order[child]]
            copies += amount
    return total / copies


def everybody(count: int) -> Group:
    """One topic that all machines hold, and publish on alike."""
    return Group(tuple(range(count)), tuple((machine, 1.0) for machine in range(count)))


def _edges_of(order: Sequence[int], group: Group) -> Iterator[Edge]:
    numbers = {machine: number for number, machine in enumerate(order)}
    members = sum(1 << numbers[machine] for machine in group.members)
    return edges(len(order), members, {numbers[machine]: rate for machine, rate in group.rates})


def _paths(latency: Latency, order: Sequence[int], group: Group) -> float:
    return sum(
        amount * below * latency[order[parent]][order[child]]
        for parent, child, amount, below in _edges_of(order, group)
    )


def _deliveries(group: Group) -> float:
    """How much arrives; what a publisher hands to itself does not travel."""
    holders = dict.fromkeys(group.members)
    return sum(rate * (len(holders) - (machine in holders)) for machine, rate in group.rates)


# Joining blocks.


def joined(latency: Latency) -> Order:
    """Nearest machines first into pairs, then nearest pairs, and so on.

    >>> joined([[0, 9, 1, 9], [9, 0, 9, 1], [1, 9, 0, 9], [9, 1, 9, 0]])
    (0, 2, 1, 3)
    """
    blocks: list[Order] = [(machine,) for machine in range(len(latency))]
    while len(blocks) > 1:
        blocks = _pairs(latency, blocks)
    return blocks[0] if blocks else ()


def _pairs(latency: Latency, blocks: list[Order]) -> list[Order]:
    """Blocks of twice the size; only the last of `blocks`, and of the answer, may be shorter."""
    size = len(blocks[0])
    rest: list[Order] = []
    if len(blocks) % 2 and len(blocks[-1]) < size:
        # A short block beside an even count of whole ones stays as it is.
        blocks, rest = blocks[:-1], blocks[-1:]
    offers: list[tuple[float, int, int, int]] = []
    for right in range(len(blocks)):
        for left in range(right):
            far, offset = _nearest(latency, blocks[left], blocks[right])
            offers.append((far / len(blocks[right]), left, right, offset))
    offers.sort()
    free = dict.fromkeys(range(len(blocks)))
    pairs: list[Order] = []
    for _, left, right, offset in offers:
        if left in free and right in free:
            del free[left], free[right]
            pairs.append((*_turned(blocks[left], offset), *blocks[right]))
    pairs.sort(key=len, reverse=True)
    return [*pairs, *(blocks[place] for place in free), *rest]


def _nearest(latency: Latency, block: Order, other: Order) -> tuple[float, int]:
    """The offset that brings a block nearest to one that is no longer than itself."""
    sums = (
        (
            sum(latency[block[place ^ offset]][machine] for place, machine in enumerate(other)),
            offset,
        )
        for offset in range(len(block))
    )
    return min(sums)


def _turned(block: Order, offset: int) -> Order:
    return tuple(block[place ^ offset] for place in range(len(block)))


# Swapping numbers.


class _Even:
    """Everybody talks to everybody alike: the edges stay where they are."""

    def __init__(self, latency: Latency, order: list[int]) -> None:
        self._latency = latency
        self.order = order
        self._near: list[list[tuple[int, float]]] = [[] for _ in order]
        for parent, child, amount, below in _edges_of(range(len(order)), everybody(len(order))):
            self._near[parent].append((child, amount * below))
            self._near[child].append((parent, amount * below))

    def work(self, one: int, other: int) -> int:
        return 2 * (len(self._near[one]) + len(self._near[other]))

    def _around(self, one: int, other: int) -> float:
        """What the edges of both cost. One between the two costs the same either way."""
        order, latency = self.order, self._latency
        return sum(
            much * latency[order[number]][order[end]]
            for number in (one, other)
            for end, much in self._near[number]
        )

    def gain(self, one: int, other: int) -> float:
        """Swap, and say by how much the paths get shorter."""
        before = self._around(one, other)
        self._swap(one, other)
        return before - self._around(one, other)

    def undo(self, one: int, other: int) -> None:
        self._swap(one, other)

    def _swap(self, one: int, other: int) -> None:
        order = self.order
        order[one], order[other] = order[other], order[one]


class _Groups:
    """Topics: all trees of the topics that either machine has to do with are counted again."""

    def __init__(self, latency: Latency, order: list[int], groups: Sequence[Group]) -> None:
        self._latency = latency
        self.order = order
        self._groups = groups
        self._costs = [_paths(latency, order, group) for group in groups]
        self._of: list[list[int]] = [[] for _ in order]
        for place, group in enumerate(groups):
            for machine in sorted({*group.members, *(machine for machine, _ in group.rates)}):
                self._of[machine].append(place)
        self._before: list[tuple[int, float]] = []

    def _concerned(self, one: int, other: int) -> list[int]:
        of, order = self._of, self.order
        return sorted({*of[order[one]], *of[order[other]]})

    def work(self, one: int, other: int) -> int:
        groups = (self._groups[place] for place in self._concerned(one, other))
        d = dimensions(len(self.order))
        return sum(len(group.members) + len(group.rates) for group in groups) * d

    def gain(self, one: int, other: int) -> float:
        places = self._concerned(one, other)
        self._before = [(place, self._costs[place]) for place in places]
        self._swap(one, other)
        for place in places:
            self._costs[place] = _paths(self._latency, self.order, self._groups[place])
        return sum(cost - self._costs[place] for place, cost in self._before)

    def undo(self, one: int, other: int) -> None:
        self._swap(one, other)
        for place, cost in self._before:
            self._costs[place] = cost

    def _swap(self, one: int, other: int) -> None:
        order = self.order
        order[one], order[other] = order[other], order[one]


def mapped(
    latency: Latency,
    draw: Callable[[int], int],
    groups: Sequence[Group] = (),
    swaps: int | None = None,
) -> Order:
    """The machine of each number; `draw(n)` gives some number below n. A swap must shorten the
    paths by a little more than what the rounding of floats might feign.

    >>> mapped([[0, 9, 1, 9], [9, 0, 9, 1], [1, 9, 0, 9], [9, 1, 9, 0]], lambda below: below - 1)
    (0, 2, 1, 3)
    """
    count = len(latency)
    _check(latency, groups)
    order = list(joined(latency))
    if count < 2 or not any(map(any, latency)):
        return tuple(order)
    costs = _Groups(latency, order, groups) if groups else _Even(latency, order)
    least = 1e-12 * max(map(max, latency))
    work = 0
    for _ in range(SWAPS_PER_MACHINE * count if swaps is None else swaps):
        one, other = draw(count), draw(count)
        work += costs.work(one, other)
        if work > CUBE_MAPPING_EDGES_MAX:
            break
        if costs.gain(one, other) <= least:
            costs.undo(one, other)
    return tuple(order)


def _check(latency: Latency, groups: Sequence[Group]) -> None:
    count = len(latency)
    if count > CUBE_MAPPED_MAX:
        raise TooLarge("machines whose latencies are compared", count, CUBE_MAPPED_MAX)
    for one, row in enumerate(latency):
        if len(row) != count:
            raise Misuse(f"machine {one} has {len(row)} latencies, not {count}")
        for other in range(one):
            if row[other] != latency[other][one] or not 0.0 <= row[other] < float("inf"):
                raise Misuse(
                    f"machines {other} and {one} have no latency that is the same both ways"
                )
    for group in groups:
        named = [*group.members, *(machine for machine, _ in group.rates)]
        if any(not 0 <= machine < count for machine in named):
            raise Misuse(f"a group names a machine that is none of {count}")
