"""Places: the n-th event of something that has an order of its own.

On the hypercube the third event that peer 5 publishes on `chat` stands at the place
`(("chat", 5), 3)`: its *origin* is peer 5 on that topic. Over logs an origin is a log, and the
number is an offset. A causal stamp is a list of places that come before, *at least*: the earlier
numbers of the same origin are meant, too.

Rule 1: an origin's numbers have no holes for a subscriber, from the number on with which the origin
        begins for it (`begins`) to where it ends. What nobody holds any more is `lost`.
Rule 2: `placed` may come in any order. A network that gives places gives each of them once.

A client that has none of these three verbs gets `receive`, like on any network, and only what
counts: see `begins`.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from inorder.core.effect import Effect
from inorder.core.table import Numbers

# Where the numbers of an origin are counted (a topic), and its own number there (a peer's).
Origin = tuple[str, int]
Place = tuple[Origin, int]

# What comes before an event, in one topic: origins, growing, each with its highest number.
Places = tuple[tuple[int, int], ...]


@runtime_checkable
class Presettable(Protocol):
    """A client that can be told at once what `begins` and `joined` would tell it."""

    def preset(self, topic: str, origins: Numbers, me: int, now: float) -> list[Effect]:
        """All origins with a 1 in the array begin with number 1 and count from there; one's own is
        `me`. Clients of one process share the array."""


@runtime_checkable
class Placing(Protocol):
    """What a client may want to know besides what a client must be told (machine.Client)."""

    def begins(self, origin: Origin, start: int, counts: int, now: float) -> list[Effect]:
        """Events of this origin come from number `start` on, those from `counts` on are to be
        handed over, the others only set the order.

        Before `joined` for all origins known then, one's own included; later whenever another one
        begins, or one begins again: then `start` stays what it was.
        """

    def placed(self, place: Place, source: str, message: Any, now: float) -> list[Effect]:
        """A message of that place has come; instead of `receive`. One's own come, too, in the
        instant of their publication, behind what `publish` has answered."""

    def lost(self, place: Place, now: float) -> list[Effect]:
        """Nobody alive holds this place, nor those of the same origin before it that are missing
        here: nothing may wait for them. Whether it ever existed is not known."""


@runtime_checkable
class Forgetting(Protocol):
    """A client whose events rest on what it has taken in."""

    def forget(self, now: float) -> list[Effect]:
        """The network holds this client's past to be dead, and nothing may rest on it any more:
        what it has taken in orders nothing, what waits is gone. The topics that it holds begin
        anew, through `begins` and `joined`."""
