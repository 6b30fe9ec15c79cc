"""Lives: machines that forget count how often they began, and a session is between two lives.

a is in its third life and b in its fifth. Their session is named by both, so nothing that was said
in it is taken for something of another one. b crashes and comes back in its sixth life; the next
word between the two names it, whoever says it, and both begin another session.

Rule 1: a life is on disk before anything of it is visible. Lives grow.
Rule 2: whatever names the lives of both ends tells them: a frame, an acknowledgement, a greeting.
        An older life of the sender says nothing; an older life of ours is answered with a greeting.
Rule 3: who reads of a life of its own that has not begun lives on above it. Nobody invents one:
        either its disk was lost, or it was declared dead, and everything up to there with it.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from inorder.core.errors import BadMessage
from inorder.core.limits import LINE_LIVES_MAX
from inorder.protocols.session.messages import Ack, Frame


class Greeting(Struct, frozen=True, gc=False, array_like=True, tag="greeting"):
    """The life of the sender, and of the other end as far as the sender knows. 0 asks for an
    answer: the sender does not know it, or not whether it is known itself."""

    mine: int
    yours: int


Spoken = Frame[Any] | Ack | Greeting


class Heard(Struct, frozen=True, gc=False):
    """What a message says of lives. `begins`: the sender's is new here. `mutual`: each end knows
    the other's present one. `answers`: the sender has to be told ours."""

    begins: bool
    mutual: bool
    answers: bool


class Lives:
    """The lives of one machine and of those it talks to, as far as it knows."""

    def __init__(self, name: str, life: int) -> None:
        self.life = life
        self._name = name
        # Those heard of; others have none yet.
        self.known: dict[str, int] = {}

    def of(self, peer: str) -> int:
        """The last life heard of, 0 if none."""
        return self.known.get(peer, 0)

    def session(self, peer: str, theirs: int) -> int:
        """The number of the session with this life of a peer.

        >>> Lives("a", 3).session("b", 5) == Lives("b", 5).session("a", 3) == 3 * 2**31 + 5
        True
        """
        one, other = (self.life, theirs) if self._name < peer else (theirs, self.life)
        return one * LINE_LIVES_MAX + other

    def named(self, source: str, message: Spoken) -> tuple[int, int]:
        """The lives that a message names: ours, and that of its sender. Only ours may be above the
        one we are in, and then something can be above it."""
        if isinstance(message, Greeting):
            yours, theirs = message.yours, message.mine
        else:
            one, other = divmod(message.session, LINE_LIVES_MAX)
            yours, theirs = (one, other) if self._name < source else (other, one)
        ahead = yours > self.life
        if not 0 < theirs < LINE_LIVES_MAX or not 0 <= yours < LINE_LIVES_MAX - ahead:
            raise BadMessage(source, f"is in life {theirs}, and names life {yours}")
        return yours, theirs

    def hear(self, source: str, yours: int, theirs: int, greets: bool) -> Heard:
        """Take in what a message names; `greets` says that it does nothing else."""
        known = self.of(source)
        begins = theirs > known
        if begins:
            known = self.known[source] = theirs
        present = theirs == known
        return Heard(
            begins,
            mutual=present and yours == self.life,
            answers=yours < self.life and (present or greets),
        )

    def live_on(self, above: int) -> None:
        """Begin a life above one that others have heard of."""
        self.life = max(self.life, above) + 1
