"""The last so many event ids, and where each came from."""

from __future__ import annotations

from collections import OrderedDict

from inorder.content.messages import Pub

# Publisher, number, and the link it came by, oldest first.
Seen = tuple[str, int, str]


class Recent:
    """
    >>> recent, pub = Recent(2), Pub("t", "p", 1, {})
    >>> recent.origin(pub), recent.add(pub, "b2"), recent.origin(pub)
    (None, None, 'b2')
    """

    def __init__(self, room: int, seen: list[Seen] | None = None) -> None:
        self._room = room
        ids = (((publisher, seq), link) for publisher, seq, link in seen or ())
        self._links: OrderedDict[tuple[str, int], str] = OrderedDict(ids)

    def origin(self, pub: Pub) -> str | None:
        """The link an event came by; None when it is not remembered."""
        return self._links.get((pub.publisher, pub.seq))

    def add(self, pub: Pub, link: str) -> None:
        self._links[(pub.publisher, pub.seq)] = link
        if len(self._links) > self._room:
            self._links.popitem(last=False)

    def state(self) -> list[Seen]:
        return [(publisher, seq, link) for (publisher, seq), link in self._links.items()]
