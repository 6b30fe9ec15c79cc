"""What a peer has of a topic's publications, in case that their sources die.

Peer 2 keeps the last publications of peer 4, up to the number from which on peer 4 knows that all
have them. When peer 4 dies, peer 2 says which numbers it has, and sends those that others lack.

Rule 1: a publication is kept from its coming until it is *stable*: its source says so with a later
        one. Who leaves the topic keeps it all the same, since its application has seen it.
Rule 2: numbers of a dead source are *settled* when it is agreed which of them remain, and all that
        remain have come. Behind the highest at most a window of numbers can have been used.
Rule 3: a source that lives again begins with a number that its former life cannot have used. So a
        number tells which life it is of, and what is settled is never taken up again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic

from msgspec import Struct

from inorder.core.limits import CUBE_KEPT_WINDOWS, CUBE_LOST_RUNS_MAX
from inorder.protocols.cube.messages import MEMBER, Body, Row, Runs
from inorder.protocols.cube.runs import union, within, without

if TYPE_CHECKING:
    from inorder.protocols.cube.topic import Topic

# Above every number.
NEVER = 2**63 - 1


class RemainsState(Struct, Generic[Body], array_like=True):
    """In a snapshot."""

    kept: list[tuple[int, list[tuple[int, Body]]]]
    bases: list[tuple[int, tuple[int, int]]]
    settled: list[tuple[int, int]]
    ended: list[tuple[int, int]]
    lost: list[tuple[int, Runs]]
    dying: list[tuple[int, Runs | None]]
    unacked: list[int]
    gap: bool


class Remains:
    """One topic's."""

    __slots__ = ("bases", "dying", "ended", "gap", "kept", "lost", "settled", "unacked")

    def __init__(self) -> None:
        # By source the bodies that are not known to be stable, by number, as they came.
        self.kept: dict[int, dict[int, Any]] = {}
        # By source a life of it, and the first number that can be of this life.
        self.bases: dict[int, tuple[int, int]] = {}
        # Own publications that not everybody has acknowledged, rising.
        self.unacked: dict[int, bool] = {}
        # Whether the application has to be told that it has missed something.
        self.gap = False
        self.forget()

    def forget(self) -> None:
        """What belongs to one membership."""
        # By source up to which number it is settled, up to which life that is, and what of it is
        # lost.
        self.settled: dict[int, int] = {}
        self.ended: dict[int, int] = {}
        self.lost: dict[int, Runs] = {}
        # Dead sources that are not settled, with the numbers that remain if that is agreed.
        self.dying: dict[int, Runs | None] = {}

    # Publications of others.

    def keep(self, source: int, number: int, body: Any, window: int) -> None:
        bodies = self.kept.setdefault(source, {})
        bodies[number] = body
        if len(bodies) > CUBE_KEPT_WINDOWS * window:
            del bodies[next(iter(bodies))]

    def is_stable(self, source: int, stable: int) -> None:
        """Everybody has what this source has said up to this number."""
        bodies = self.kept.get(source)
        while bodies and (first := next(iter(bodies))) <= stable:
            del bodies[first]
        if bodies is not None and not bodies:
            del self.kept[source]

    def is_based(self, source: int, life: int, number: int) -> bool:
        """From this number on all is of this life, or a later one; whether it is another life than
        the one that was known."""
        known = self.bases.get(source, (0, 0))[0]
        if life > known:
            self.bases[source] = (life, number)
        return life > max(known, 1)

    # Own publications.

    def stable(self, following: int) -> int:
        """Up to which number everybody has them."""
        return next(iter(self.unacked), following) - 1

    # What is said and settled.

    def is_dying(self, source: int, over: int) -> None:
        """A source that has begun here has ended its lives up to `over`. One of them that has never
        begun here has given no numbers."""
        ended = self.ended.get(source)
        if source in self.dying or ended is None or ended < self.bases.get(source, (0, 0))[0]:
            self.dying[source] = None
            self.ended[source] = over

    def end(self, source: int, over: int) -> int:
        """The first number that is not of a life up to `over`."""
        life, number = self.bases.get(source, (0, 0))
        return number if life > over else NEVER

    def row(self, name: str, topic: Topic, source: int, over: int) -> Row | None:
        """What there is of a source's lives up to `over`; None if that is nothing at all."""
        end = self.end(source, over)
        runs = [(number, number) for number in self.kept.get(source, ())]
        start = settled = 0
        if topic.role == MEMBER and topic.phase == "in" and topic.begun >> source & 1:
            start = topic.start[source]
            if start < end:
                settled = self.settled.get(source, start - 1)
                lost = self.lost.get(source, ())
                # Of what lies behind the runs that are remembered nobody asks any more.
                first = lost[0][0] if len(lost) == CUBE_LOST_RUNS_MAX else start
                runs += without(((first, topic.have[source]),), lost)
                runs += [(number, number) for number in topic.ahead.get(source, ())]
            else:
                start = 0
        said = within(union(runs), 1, end - 1)
        return Row(name, source, start, settled, said) if start or said else None

    def settle(self, topic: Topic, source: int, upto: int) -> Runs:
        """Up to this number nothing more comes; what of it is lost, and was not before."""
        have = topic.have[source]
        topic.alike = None
        ahead = tuple((number, number) for number in topic.ahead.pop(source, ()))
        lost = without(((have + 1, upto),), ahead) if upto > have else ()
        topic.have[source] = max(have, upto)
        for number, _ in ahead:
            topic.come(source, number)
        self.lost[source] = union([*self.lost.get(source, ()), *lost])[-CUBE_LOST_RUNS_MAX:]
        self.settled[source] = max(upto, self.settled.get(source, 0))
        self.dying.pop(source, None)
        return lost

    # Snapshots.

    def packed(self) -> RemainsState[Any]:
        return RemainsState(
            [(source, list(bodies.items())) for source, bodies in sorted(self.kept.items())],
            sorted(self.bases.items()), sorted(self.settled.items()), sorted(self.ended.items()),
            sorted(self.lost.items()),
            sorted(self.dying.items()), list(self.unacked), self.gap,
        )  # fmt: skip

    @classmethod
    def unpacked(cls, state: RemainsState[Any]) -> Remains:
        remains = cls()
        remains.kept = {source: dict(bodies) for source, bodies in state.kept}
        remains.bases = dict(state.bases)
        remains.settled, remains.ended = dict(state.settled), dict(state.ended)
        remains.lost = dict(state.lost)
        remains.dying = dict(state.dying)
        remains.unacked = dict.fromkeys(state.unacked, True)
        remains.gap = state.gap
        return remains
