"""Who takes part in a cube, and which number each peer has.

This is configuration, the same at all peers: the names of all machines, in their order. Peers of
one process share the object, because a table a peer would be 16.7 million entries at 4,096 peers.
"""

from __future__ import annotations

from collections.abc import Iterable

from inorder.core.errors import Misuse, TooLarge
from inorder.core.limits import CUBE_PEERS_MAX


class Peers:
    """Numbers follow the names, or the order given if they are `mapped` (mapping.py).

    >>> peers = Peers(["carol", "alice", "bob"])
    >>> peers.names, peers.ids["bob"], peers.everybody
    (('alice', 'bob', 'carol'), 1, 7)
    >>> Peers(["carol", "alice", "bob"], mapped=True).ids
    {'carol': 0, 'alice': 1, 'bob': 2}
    """

    __slots__ = ("everybody", "ids", "names")

    def __init__(self, names: Iterable[str], mapped: bool = False) -> None:
        self.names = tuple(names if mapped else sorted(names))
        if len(self.names) > CUBE_PEERS_MAX:
            raise TooLarge("peers of a cube", len(self.names), CUBE_PEERS_MAX)
        self.ids = {name: number for number, name in enumerate(self.names)}
        if len(self.ids) < len(self.names):
            raise Misuse("two peers of a cube have one name")
        # As bits, the lowest for peer 0.
        self.everybody = (1 << len(self.names)) - 1
