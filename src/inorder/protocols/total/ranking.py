"""The owner of the topic order: changes it for everybody at once, or not at all.

Rule 1: a request names the epoch it was made in; one for another epoch is forgotten (compare and
        set). Asked again it does nothing, and two at once are done together or one is refused
        (E3). So a storm of requests ends: each stage asks at most once in an epoch.
Rule 2: one change at a time: freeze everybody, wait until all rounds have ended, then install the
        new order with the cut, the counters at which everything stood.
Rule 3: the log of inputs makes a half-done change resumable: the record that starts it is its
        PREPARE, the record of the last `Frozen` its COMMIT (service.py).

Theory. The report announces a new order and lets managers infer it from stamps (section 5), which
is impossible in general (E1), and discards stamps of older orders, which loses events (E2). Here,
when all are frozen no round of the old epoch exists any more. Every stamp of the new epoch has
entries at or above the cut, so all old events come before all new ones wherever both are held.
Freezing stops only what begins; what is under way needs nothing that is frozen, so it ends.

The same change installs a new forest (path.py) when a subscription needs one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from msgspec import Struct, field

from inorder.core.effect import Effect, Note, SetTimer
from inorder.core.errors import BadMessage, Misuse
from inorder.core.limits import FOREST_LINES_MAX
from inorder.core.pack import pack, unpacker
from inorder.protocols.session.links import Sessions
from inorder.protocols.total.directory import RANKING, Directory, directory_of
from inorder.protocols.total.messages import (
    Body,
    Demand,
    Freeze,
    Frozen,
    Install,
    Reorder,
    SwapRequest,
)
from inorder.protocols.total.options import Options
from inorder.protocols.total.path import Path, forest, path_of
from inorder.protocols.total.service import Fired, Service
from inorder.protocols.total.stamp import stamp_of

# Requests that come within this time of the first are installed together.
COLLECT_S = 0.05

COLLECT = "collect"


class _State(Struct):
    topics: tuple[str, ...]
    options: Options
    order: tuple[str, ...]
    epoch: int = 0
    parents: dict[str, str] = {}
    # Topic sets that must lie on one line of the forest: all ever asked for.
    lines: list[tuple[str, ...]] = []
    # The change being collected or under way: an operator's order, or the swaps asked for and
    # the topics they move; who has answered.
    wish: tuple[str, ...] | None = None
    swapped: tuple[str, ...] | None = None
    moved: list[str] = []
    collecting: bool = False
    changing: bool = False
    answered: dict[str, dict[str, int]] = {}
    sessions: Sessions[Body] = field(default_factory=Sessions)
    logged: int = 0


_unpack = unpacker(_State)


class Ranking(Service):
    """The machine that owns the order of topics."""

    def __init__(self, directory: Directory, options: Options) -> None:
        super().__init__(RANKING, directory, options)
        self._bodies = {
            SwapRequest: self._on_swap_request,
            Demand: self._on_demand,
            Frozen: self._on_frozen,
            Reorder: self._on_reorder,
        }
        self._become(_State(directory.topics, options, directory.topics))

    def _become(self, state: _State) -> None:
        self.s = state
        self.links.load(state.sessions)
        self._logged = state.logged

    @property
    def idle(self) -> bool:
        return self.links.idle and not (self.s.collecting or self.s.changing)

    def _check(self, source: str, session: int, body: Body) -> None:
        if source not in self.directory.stages or isinstance(body, Reorder):
            raise BadMessage(source, f"may not send {type(body).__name__}")
        topics: Sequence[str] = ()
        if isinstance(body, SwapRequest):
            topics = (body.upper, body.lower)
        elif isinstance(body, Demand):
            topics = body.topics
        elif isinstance(body, Frozen):
            mine = {*self.directory.topics_at(source)}
            if not self.s.changing or body.epoch != self.s.epoch or mine != {*dict(body.counts)}:
                raise BadMessage(source, f"is frozen in epoch {body.epoch}, unasked")
        for topic in topics:
            if topic not in self.directory:
                raise BadMessage(source, f"unknown topic {topic}")

    # What is asked for.

    def reorder(self, order: Sequence[str], now: float) -> list[Effect]:
        """An operator's wish: any permutation of the topics, when no change is under way."""
        if sorted(order) != sorted(self.s.order):
            raise Misuse("an order names every topic once")
        return self._tell(Reorder(tuple(order)), now)

    def _on_reorder(self, source: str, wish: Reorder, now: float) -> list[Effect]:
        self.s.wish = wish.order
        return [] if self.s.changing else self._collect()

    def _on_swap_request(self, source: str, request: SwapRequest, now: float) -> list[Effect]:
        s = self.s
        if request.epoch != s.epoch or s.changing:
            return [Note("swap_refused")]
        order = [*(s.swapped or s.order)]
        upper, lower = order.index(request.upper), order.index(request.lower)
        # A topic moves once in a change; the rest of the storm asks again if it still wants to.
        if upper > lower or request.upper in s.moved or request.lower in s.moved:
            return [Note("swap_refused")]
        order[upper], order[lower] = order[lower], order[upper]
        s.swapped = tuple(order)
        s.moved += [request.upper, request.lower]
        return self._collect()

    def _on_demand(self, source: str, demand: Demand, now: float) -> list[Effect]:
        """A subscription needs these topics on one line, now and in all forests to come.

        Every walk says so before it ends, over the link on which its stage will say `Frozen`: when
        a change is made, all lines in use are known.
        """
        s = self.s
        if demand.topics not in s.lines:
            s.lines.append(demand.topics)
            if len(s.lines) > FOREST_LINES_MAX:
                # One line for all of them: a longer way, still a correct one.
                s.lines = [tuple(sorted({topic for line in s.lines for topic in line}))]
        if s.changing or self._path().covers(demand.topics):
            return []  # the forest under way, or the one installed, has it
        return self._collect()

    def _collect(self) -> list[Effect]:
        if self.s.collecting:
            return []
        self.s.collecting = True
        return [SetTimer(COLLECT, COLLECT_S)]

    # The change.

    def _fire(self, timer: str, now: float) -> list[Effect]:
        """Enough collected: freeze everybody. The record of this is the change's PREPARE."""
        assert timer == COLLECT
        assert self.s.collecting
        assert not self.s.changing
        record = self._log(Fired(timer, now))
        return [*record, *self._on_fired(timer, now), *self.links.flush(now)]

    def _on_fired(self, timer: str, now: float) -> list[Effect]:
        s = self.s
        s.collecting = False
        s.changing = True
        s.answered = {}
        for stage in self.directory.stages:
            self.links.post(stage, Freeze(s.epoch))
        return [Note("change_begins")]

    def _on_frozen(self, source: str, frozen: Frozen, now: float) -> list[Effect]:
        s = self.s
        s.answered[source] = dict(frozen.counts)
        if len(s.answered) < len(self.directory.stages):
            return []
        # COMMIT: nothing of the old epoch exists any more.
        cut: dict[str, int] = {}
        for counts in s.answered.values():
            cut.update(counts)
        assert {*cut} == {*s.order}, "every topic has exactly one home"
        wish, s.wish = s.wish, None
        s.epoch += 1
        s.order = wish or s.swapped or s.order
        if self.options.path == "forest":
            s.parents = forest(s.order, s.lines)
        s.swapped = None
        s.moved = []
        s.changing = False
        s.answered = {}
        install = Install(s.epoch, s.order, stamp_of(cut), tuple(sorted(s.parents.items())))
        for stage in self.directory.stages:
            self.links.post(stage, install)
        return [Note("change_made")]

    def _resume(self, now: float) -> list[Effect]:
        return [SetTimer(COLLECT, COLLECT_S)] if self.s.collecting else []

    def _path(self) -> Path:
        s = self.s
        parents = tuple(sorted(s.parents.items()))
        return path_of(self.options.path, s.order, self.directory, parents)

    def snapshot(self) -> bytes:
        self.s.sessions = self.links.s
        self.s.logged = self._logged
        return pack(self.s)

    def _load(self, snapshot: bytes) -> None:
        self._become(_unpack(snapshot))

    @classmethod
    def restore(cls, snapshot: bytes) -> Self:
        state: _State = _unpack(snapshot)
        ranking = cls(directory_of(state.topics, state.options.topics_per_stage), state.options)
        ranking._become(state)
        return ranking
