"""What a peer expects, and what it will pass on to whom, as far as it can know.

Peer 4 of eight gets peer 0's message, which rests on one of peer 2's that has not come. Peer 4 is a
member, and peer 2 begins for it below that: it is on its way. In the tree of peer 2 peer 5 gets it
from peer 4, peer 6 does not.

Rule 1: only a member that is in expects anything: numbers from the origin's beginning on, up to
        those which have all come. A number that is given up (`give_up`) is not expected, nor are
        those before it.
Rule 2: who passes on to whom follows from the peer's own view. Others may have chosen otherwise,
        since a source decides by its own; then the answer is a guess, and only costs or saves
        packets.
Rule 3: with a single tree, what comes from below a child is not passed on to that child first: its
        publisher has it already, and may not be made to wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from inorder.core.place import Origin, Place, Places
from inorder.protocols.cube.messages import MEMBER, Pub
from inorder.protocols.cube.peers import Peers
from inorder.protocols.cube.topic import Topic
from inorder.protocols.cube.topology import cluster, everybody, is_parent, passes_on

# Who spreads for all others in a single tree.
ROOT_PEER = 0


class Outlook:
    """Of peer `me`; `topic_of` gives what it knows of a topic."""

    def __init__(
        self, me: int, peers: Peers, single: bool, topic_of: Callable[[str], Topic | None]
    ) -> None:
        self._me = me
        self._single = single
        self._topic_of = topic_of
        self._full = peers.everybody if everybody(len(peers.names)) is None else -1
        # Up to which number nothing of an origin is expected any more.
        self.given_up: dict[Origin, int] = {}

    def view(self, name: str) -> int | None:
        """The members of a topic; None if this peer expects nothing there."""
        topic = self._topic_of(name)
        if topic is None or topic.phase != "in" or topic.role != MEMBER:
            return None
        return topic.members

    def missing(self, pub: Pub[Any]) -> Places:
        """What a publication rests on directly and is expected here."""
        topic = self._topic_of(pub.topic)
        # Messages of guarantees that know no causes are never worth waiting for.
        places: Places | None = getattr(pub.body, "places", None)
        if places is None or topic is None or self.view(pub.topic) is None:
            return ()
        before = (pub.source, pub.number - 1)
        return tuple(place for place in (before, *places) if self._expects(topic, pub.topic, place))

    def _expects(self, topic: Topic, name: str, place: tuple[int, int]) -> bool:
        origin, number = place
        # What has not begun has everything. Others choose these numbers: any may come.
        if not 0 <= origin < len(topic.have) or number <= topic.have[origin]:
            return False
        if number < topic.start[origin]:
            return False
        return not self.given_up or self.given_up.get((name, origin), 0) < number

    def passes_on(self, name: str, source: int, child: int) -> bool:
        """Whether the child will get this source's publications from this peer."""
        members = self.view(name)
        if members is None:
            return False
        me = self._me
        if self._single:
            height = cluster(me, child) - 1
            below = source >> height == child >> height
            return not below and is_parent(me, child, ROOT_PEER, members & ~(1 << source))
        if members == self._full:
            return passes_on(me, source, child)
        return is_parent(me, child, source, members)

    def far_first(self, children: Iterable[int]) -> list[int]:
        """These by the sub-cubes behind them, the largest first."""
        return sorted(children, key=lambda child: self._me ^ child, reverse=True)

    def give_up(self, places: Iterable[Place]) -> None:
        """These, and all before them of the same origins, will not come. That is never taken back:
        numbers are not used twice."""
        for origin, number in places:
            self.given_up[origin] = max(number, self.given_up.get(origin, 0))
