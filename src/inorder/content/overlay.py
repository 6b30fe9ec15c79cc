"""Which brokers hang where: what a broker must know to refuse a link that would close a cycle.

Rule 1: each broker knows the name of every broker of its tree and the link behind which it is. What
        it tells a neighbour is everybody who is not behind that neighbour, itself included.
Rule 2: two ends whose trees have a broker in common must not be linked.

Routing over a cycle never ends (E-C18). Two links made in the same instant can close one though
each looked harmless; then the news of one reaches a broker that knows the same names elsewhere, and
it cuts the link the news came by.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct


class OverlayState(Struct):
    """`where` maps each broker of the tree to the link behind which it is."""

    name: str
    where: dict[str, str] = {}


class Overlay:
    """The tree as one broker sees it.

    >>> overlay = Overlay(OverlayState("b1"))
    >>> overlay.add("b2", ("b2", "b3"))
    >>> overlay.clash(("b3", "b4")), overlay.clash(("b4",)), overlay.beyond("b4")
    ('b3', None, ('b1', 'b2', 'b3'))
    """

    def __init__(self, state: OverlayState) -> None:
        self.s = state

    def __len__(self) -> int:
        return len(self.s.where) + 1

    def clash(self, members: Iterable[str]) -> str | None:
        """A broker of these that is in the tree already."""
        where, me = self.s.where, self.s.name
        return next((one for one in members if one == me or one in where), None)

    def add(self, link: str, members: Iterable[str]) -> None:
        self.s.where.update(dict.fromkeys(members, link))

    def remove(self, members: Iterable[str]) -> None:
        for one in members:
            self.s.where.pop(one, None)

    def behind(self, link: str) -> tuple[str, ...]:
        return tuple(sorted(one for one, where in self.s.where.items() if where == link))

    def beyond(self, link: str) -> tuple[str, ...]:
        """Everybody who is not behind a link."""
        others = (one for one, where in self.s.where.items() if where != link)
        return tuple(sorted((self.s.name, *others)))
