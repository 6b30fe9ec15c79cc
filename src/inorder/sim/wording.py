"""Messages of a cube in words, with the names of peers instead of their numbers.

    a->b Pub t1 a#3 a:7 after c#2 for d

The third publication of peer a on t1, which is event a:7 and rests on c's second one there, goes to
b, who passes it on to d. Where an event is called by the same number as its place, the place is
left out: `Pub t1 a:3 for d`.

    b->a Ack Sub t1 a change 1, says b change 2 next 4

What shares a packet stands in one line, with a plus between. Sessions do not show: a frame is what
it carries, and their own acknowledgements are `heard`. What peers say of the dead:

    a->b Flush, c is dead; of c on t1 has 1-3 5
    a->b Kept t1 c:4 for d
    a->b Tested, suspects c
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inorder.core.errors import BadFrame
from inorder.protocols.cube.detector import Test
from inorder.protocols.cube.messages import (
    KEPT,
    KINDS,
    PUB,
    SOURCE,
    Ack,
    Act,
    Flush,
    Kept,
    Packet,
    Probe,
    Pub,
    Standing,
    Sub,
    Uns,
)
from inorder.protocols.cube.parts import decode
from inorder.protocols.session.lives import Greeting
from inorder.protocols.session.messages import Ack as SessionAck
from inorder.protocols.session.messages import Frame
from inorder.sim.narrate import brief


class Wording:
    """What travels from `source` to `target`, of these peers.

    >>> words = Wording(["a", "b", "c", "d"], "a", "c")
    >>> words(Sub("t1", 0, 1, 1, 1, b"\\x03")), words(Ack(0, "t1", 2, 1, ((0, 2, 2, 4),)))
    ('Sub t1 a change 1 for d', 'Ack Sub t1 c change 1, says a change 2 source next 4')
    """

    def __init__(self, names: Sequence[str], source: str, target: str) -> None:
        self._names = names
        self._target = names.index(target)
        self._h = max((names.index(source) ^ self._target).bit_length() - 1, 0)

    def __call__(self, message: Any) -> str | None:
        """A message in words; None for those of others."""
        if isinstance(message, Pub | Kept):
            return self._pub(message)
        if isinstance(message, Sub):
            role = " as source" if message.role == SOURCE else ""
            following = f" next {message.base}" if message.base > 1 else ""
            return self._about(message) + role + following + self._rest(message.to)
        if isinstance(message, Act | Uns):
            return self._about(message) + self._rest(message.to)
        if isinstance(message, Frame):
            return self(message.body)
        if isinstance(message, SessionAck):
            return "heard"
        if isinstance(message, Greeting):
            return f"Greeting, I am in life {message.mine}, you in {message.yours}"
        if isinstance(message, Probe):
            return self._probe(message)
        if isinstance(message, Flush):
            return self._flush(message)
        if isinstance(message, Packet):
            return " + ".join(str(self(each)) for each in message.messages)
        return self._ack(message) if isinstance(message, Ack) else None

    def _about(self, message: Sub | Act | Uns) -> str:
        kind, source = type(message).__name__, self._name(message.source)
        return f"{kind} {message.topic} {source} change {message.change}"

    def _probe(self, probe: Probe) -> str:
        if isinstance(probe.body, Test):
            return "Test"
        suspected = [self._name(peer) for peer, counter in probe.body.rows if counter & 1]
        return "Tested" + (f", suspects {' '.join(suspected)}" if suspected else "")

    def _flush(self, flush: Flush) -> str:
        lives = dict(flush.view.lives)
        said = [
            f"{self._name(peer)} is in life {lives[peer]}" if peer in lives
            else f"{self._name(peer)} is dead"
            for peer, _ in flush.view.over
        ]  # fmt: skip
        for row in flush.rows:
            runs = " ".join(
                f"{first}-{last}" if first < last else f"{first}" for first, last in row.runs
            )
            said.append(f"of {self._name(row.source)} on {row.topic} has {runs or 'nothing'}")
        return f"Flush, {'; '.join(said)}" if said else "Flush"

    def _pub(self, pub: Pub[Any] | Kept[Any]) -> str:
        place = f"{self._name(pub.source)}#{pub.number}"
        body = brief(pub.body, self)
        event = getattr(pub.body, "event", None)
        if event is not None:
            body = event.id
            if event.id == f"{self._name(pub.source)}:{pub.number}":
                place = ""
            body += self._causes("", getattr(pub.body, "places", ()))
            for topic, places in getattr(pub.body, "others", ()):
                body += self._causes(f" on {topic}", places)
        words = (word for word in (type(pub).__name__, pub.topic, place, body) if word)
        return " ".join(words) + self._rest(pub.to)

    def _causes(self, where: str, places: Sequence[tuple[int, int]]) -> str:
        named = "".join(f" {self._name(origin)}#{number}" for origin, number in places)
        return f"{where} after{named}" if named else ""

    def _ack(self, ack: Ack) -> str:
        source = self._name(ack.source)
        what = (
            f"{source}#{ack.number}" if ack.kind in (PUB, KEPT) else f"{source} change {ack.number}"
        )
        kind = KINDS[ack.kind].__name__ if 0 <= ack.kind < len(KINDS) else f"kind {ack.kind}"
        said = " and".join(f" {self._standing(each)}" for each in ack.standings)
        return f"Ack {kind} {ack.topic} {what}" + (f", says{said}" if said else "")

    def _standing(self, standing: Standing) -> str:
        peer, change, role, following, *life = standing
        source = " source" if role == SOURCE else ""
        again = f" life {life[0]}" if life else ""
        return f"{self._name(peer)} change {change}{source} next {following}{again}"

    def _name(self, number: int) -> str:
        return self._names[number] if 0 <= number < len(self._names) else f"peer {number}"

    def _rest(self, to: bytes) -> str:
        """Whom the receiver passes it on to, itself or through others."""
        try:
            mask = decode(to, self._h) & ~1
        except BadFrame:
            return f" for {to.hex()}"
        offsets = (offset for offset in range(mask.bit_length()) if mask >> offset & 1)
        peers = sorted(self._target ^ offset for offset in offsets)
        return " for " + " ".join(map(self._name, peers)) if peers else ""
