"""Which lives of which peers are over.

Peer 4 is declared dead in its first life. Whatever it says in that life from now on is ignored,
also if it was only slow: the fence stands. When it hears of that it begins its second life, which
nobody has declared dead.

Rule 1: lives are over for good, one after the other: of each peer the last one that is over says
        all. What two peers know of this is merged by the larger number, in any order.
Rule 2: a life is over when it was declared dead, or when another one of the same peer has begun.
"""

from __future__ import annotations

from collections.abc import Iterable

from inorder.protocols.cube.messages import Over


class Fence:
    """
    >>> fence = Fence()
    >>> fence.merge([(4, 1), (2, 1)]), fence.merge([(4, 1), (2, 3)]), fence.over
    ([2, 4], [2], ((2, 3), (4, 1)))
    >>> fence.of(4), fence.of(5)
    (1, 0)
    """

    def __init__(self, over: Over = ()) -> None:
        self._lives = dict(over)

    def of(self, peer: int) -> int:
        """The last life of a peer that is over, 0 if none is."""
        return self._lives.get(peer, 0)

    def merge(self, over: Iterable[tuple[int, int]]) -> list[int]:
        """Take in what somebody knows; the peers of which it is news, rising."""
        news = [peer for peer, life in over if life > self.of(peer)]
        if news:
            self._lives.update((peer, life) for peer, life in over if life > self.of(peer))
        return sorted(news)

    @property
    def over(self) -> Over:
        return tuple(sorted(self._lives.items()))
