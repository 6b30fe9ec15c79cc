"""Pastry: hosts on a ring of 128-bit ids, found hop by hop.

Rule 1: a route ends at the host whose id is numerically closest to the key, wherever it starts.
Rule 2: every hop shares a longer prefix with the key than the one before, or as long a prefix and
        a smaller distance; so a route never turns in circles.
Rule 3: which host an entry of a routing table names is a pure function of the owner and the entry.

Theory (Rowstron and Druschel, Middleware 2001). A host knows its *leaf set*, the 8 next ids on
either side, and a *routing table*: row r, column c names some host that shares r hexadecimal digits
with the owner and has c as the next one. A key inside the leaf set goes straight to its closest
host. Otherwise the table gains one digit a hop, about log16 N hops in all. Where the table has a
hole, the closest host known anywhere in the row or the leaf set takes over.

Membership is fixed and known to all, so nothing is stored per host: hosts are sorted by id, those
with a given prefix stand next to each other, and an entry is computed when it is asked for.

Pastry fills an entry with a host near its owner. `near` tells which hosts are; an entry is the
first near one of a few even picks among all candidates, or the first pick where none is. Leaves are
leaves wherever they are, so the last hop of a route is often a slow one: as in the original.

Left out: hosts that come and go, and the repair of tables.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b

BITS = 128
DIGIT_BITS = 4
DIGITS = BITS // DIGIT_BITS
RING = 1 << BITS
LEAVES_PER_SIDE = 8
# Candidates tried for a near one. Fast pairs being common, more would hardly ever be looked at.
CANDIDATES_MAX = 16

# Whether two hosts are near each other.
Near = Callable[[str, str], bool]


def id_of(name: str) -> int:
    """The place of a host or a topic on the ring; even spread, the same everywhere.

    >>> hex(id_of("host1"))[:10]
    '0x13e94c7e'
    """
    return int.from_bytes(blake2b(name.encode(), digest_size=BITS // 8).digest(), "big")


def shared_digits(one: int, other: int) -> int:
    """How many leading hexadecimal digits two ids have in common.

    >>> shared_digits(0xAB << 120, 0xAC << 120)
    1
    """
    return (BITS - (one ^ other).bit_length()) // DIGIT_BITS


class Pastry:
    """The overlay of some hosts.

    >>> pastry = Pastry(f"host{number}" for number in range(1000))
    >>> pastry.route("host1", id_of("news"))
    ['host1', 'host849', 'host285', 'host385']
    >>> pastry.root(id_of("news"))
    'host385'
    """

    def __init__(self, hosts: Iterable[str], near: Near | None = None) -> None:
        ring = sorted((id_of(host), host) for host in hosts)
        assert ring, "an overlay needs at least one host"
        self._ids = [identifier for identifier, _ in ring]
        self._hosts = [host for _, host in ring]
        self._place = {host: place for place, host in enumerate(self._hosts)}
        self._near = near
        assert len({*self._ids}) == len(ring), "two hosts with one id"

    def __len__(self) -> int:
        return len(self._hosts)

    @property
    def hosts(self) -> list[str]:
        """All hosts, by id."""
        return list(self._hosts)

    def root(self, key: int) -> str:
        """The host closest to a key."""
        return self._hosts[self._closest(key)]

    def route(self, source: str, key: int) -> list[str]:
        """The hosts a message for the key passes, `source` first and the key's root last."""
        return [source, *self.hops(source, key)]

    def hops(self, source: str, key: int) -> Iterator[str]:
        """The same without `source`, found one by one: whoever joins a tree seldom needs all."""
        here = self._place[source]
        end = self._closest(key)
        slot = bisect_left(self._ids, key)
        for _ in self._hosts:
            if here == end:
                return
            here = self._next(here, key, slot, end)
            yield self._hosts[here]
        raise AssertionError(f"a route from {source} turns in circles")

    def _closest(self, key: int) -> int:
        after = bisect_left(self._ids, key) % len(self._ids)
        before = (after - 1) % len(self._ids)
        # Of two hosts equally far from the key, the one before it: any fixed rule does.
        closer = self._distance(before, key) <= self._distance(after, key)
        return before if closer else after

    def _distance(self, place: int, key: int) -> int:
        away = (self._ids[place] - key) % RING
        return min(away, RING - away)

    def _next(self, here: int, key: int, slot: int, end: int) -> int:
        """One hop; `slot` is where the key would stand among the hosts, `end` its root."""
        count = len(self._ids)
        ahead = (slot - here) % count
        among_leaves = ahead <= LEAVES_PER_SIDE or ahead > count - LEAVES_PER_SIDE
        if among_leaves or count <= 2 * LEAVES_PER_SIDE + 1:
            return end
        row = shared_digits(self._ids[here], key)
        entry = self._entry(here, row, key)
        return self._around_hole(here, row, key) if entry is None else entry

    def _entry(self, owner: int, row: int, key: int) -> int | None:
        """The owner's table entry that shares `row` + 1 digits with the key, if there is one."""
        shift = BITS - (row + 1) * DIGIT_BITS
        prefix = key >> shift
        first = bisect_left(self._ids, prefix << shift)
        last = bisect_left(self._ids, (prefix + 1) << shift)
        if first == last:
            return None
        count = last - first
        pick = (self._ids[owner] ^ prefix * 0x9E3779B97F4A7C15) % count
        if self._near:
            host = self._hosts[owner]
            for step in range(min(count, CANDIDATES_MAX)):
                other = first + (pick + step) % count
                if self._near(host, self._hosts[other]):
                    return other
        return first + pick

    def _around_hole(self, here: int, row: int, key: int) -> int:
        """The known host closest to the key among those that share no fewer digits with it."""
        shift = BITS - (row + 1) * DIGIT_BITS
        known = [(here + step) % len(self._ids) for step in (-LEAVES_PER_SIDE, LEAVES_PER_SIDE)]
        for digit in range(1 << DIGIT_BITS):
            entry = self._entry(here, row, key ^ (digit << shift))
            if entry is not None:
                known.append(entry)
        best = min(known, key=lambda place: (self._distance(place, key), place))
        assert self._distance(best, key) < self._distance(here, key), "a leaf is always closer"
        return best
