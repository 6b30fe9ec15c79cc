"""The owner of the topic order: changes it for everybody at once, or not at all.

Rule 1: a request for a swap names the epoch it was made in; one for another epoch is forgotten
        (compare and set). Asked again it does nothing, and two at once are done together or one is
        refused (E3). So a storm of requests ends: each stage asks at most once in an epoch.
Rule 2: one change at a time, in two steps. `Ask`: is everybody there? Nobody stops, and whoever
        stands still stops nobody. When all are `Ready` the order is decided, and all are told to
        `Freeze` the topics it concerns (parts.py); when the last round of these has ended, the
        order is installed with the cut, the counters at which they stood.
Rule 3: whoever stands still after it was ready stops the topics concerned for `change_timeout`
        seconds, or three times the longest round of late if that is more: then the attempt is
        aborted, everybody goes on as before, and after as long a rest we ask again. The next
        attempt waits twice as long. Answers to an attempt that is over count for nothing. After
        the last `Frozen` there is no abort.
Rule 4: the log of inputs makes a half-done change resumable: the record of the last `Ready` is its
        PREPARE, that of the timer its ABORT, that of the last `Frozen` its COMMIT (service.py).

Theory. The report announces a new order and lets managers infer it from stamps (section 5), which
is impossible in general (E1), and discards stamps of older orders, which loses events (E2). Here,
when all are frozen no round of the topics concerned exists any more. Every stamp of the new epoch
has entries at or above the cut, so all their old events come before all new ones wherever both are
held. Topics that go on are in parts which share nobody with these and which the change leaves as
they are: to them it has not happened. What is under way needs nothing that is frozen, so it ends.

The same change installs a new forest (path.py) when a subscription needs one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Self

from msgspec import Struct, field

from inorder.core.effect import CancelTimer, Effect, Note, SetTimer
from inorder.core.errors import BadMessage, Misuse
from inorder.core.limits import FOREST_LINES_MAX
from inorder.core.pack import pack, unpacker
from inorder.protocols.session.book import Sessions
from inorder.protocols.total.directory import RANKING, Directory, directory_of
from inorder.protocols.total.messages import (
    Abort,
    Ask,
    Body,
    Demand,
    Freeze,
    Frozen,
    Install,
    Moved,
    Ready,
    Reorder,
    SwapRequest,
)
from inorder.protocols.total.options import Options
from inorder.protocols.total.parts import concerned, join
from inorder.protocols.total.path import Path, forest, path_of
from inorder.protocols.total.rates import Rates
from inorder.protocols.total.service import Fired, Service
from inorder.protocols.total.stamp import stamp_of

# Requests that come within this time of the first are installed together.
COLLECT_S = 0.05

# A freeze ends with the rounds under way: it may take so many of the longest.
ROUNDS = 3

# From attempt to attempt the wait doubles, this often at most.
DOUBLED_MAX = 6

COLLECT = "collect"
CHANGE = "change"


class _State(Struct):
    topics: tuple[str, ...]
    options: Options
    order: tuple[str, ...]
    epoch: int = 0
    parents: dict[str, str] = {}
    # Topic sets that must lie on one line of the forest: all ever asked for.
    lines: list[tuple[str, ...]] = []
    # Topics that belong together, by the name of their part (parts.py).
    parts: dict[str, str] = {}
    rates: Rates = field(default_factory=Rates)
    # What is wished for: an operator's order, or the swaps asked for and the topics they move.
    wish: tuple[str, ...] | None = None
    swapped: tuple[str, ...] | None = None
    moved: list[str] = []
    # The change under way. waiting: for the next attempt, or for the next look at the rates, which
    # a wish need not wait for. collecting: more wishes may come.
    phase: Literal["quiet", "waiting", "collecting", "asking", "freezing"] = "quiet"
    # Of this epoch: how often we have asked, and how often in vain.
    attempt: int = 0
    aborted: int = 0
    # Counters by stage, of those who have answered; the longest round of anybody.
    answered: dict[str, dict[str, int]] = {}
    sessions: Sessions[Body] = field(default_factory=Sessions)
    longest: float = 0.0
    # Decided: the order to come, whether for the rates' sake, and the topics that stand still.
    coming: tuple[str, ...] = ()
    for_rates: bool = False
    stopped: list[str] = []
    asked_at: float | None = None
    # Whether a rate has moved since.
    due: bool = False
    logged: int = 0


_unpack = unpacker(_State)


class Ranking(Service):
    """The machine that owns the order of topics."""

    def __init__(self, directory: Directory, options: Options) -> None:
        super().__init__(RANKING, directory, options)
        self._bodies = {
            SwapRequest: self._on_swap_request,
            Moved: self._on_moved,
            Demand: self._on_demand,
            Ready: self._on_ready,
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
        return self.links.idle and self.s.phase == "quiet"

    def _check(self, source: str, session: int, body: Body) -> None:
        if source not in self.directory.stages or isinstance(body, Reorder):
            raise BadMessage(source, f"may not send {type(body).__name__}")
        topics: Sequence[str] = ()
        if isinstance(body, SwapRequest):
            topics = (body.upper, body.lower)
        elif isinstance(body, Demand):
            topics = body.topics
        elif isinstance(body, Moved):
            topics = (body.topic,)
        elif isinstance(body, Ready | Frozen) and self._is_current(body):
            mine = [*self.directory.topics_at(source)]
            if isinstance(body, Frozen):
                mine = self._stopped_at(source)
            if sorted(dict(body.counts)) != sorted(mine):
                raise BadMessage(source, "counts topics it was not asked for")
        for topic in topics:
            if topic not in self.directory:
                raise BadMessage(source, f"unknown topic {topic}")

    # What is asked for.

    def reorder(self, order: Sequence[str], now: float) -> list[Effect]:
        """An operator's wish: any permutation of the topics. It waits for a change under way."""
        if sorted(order) != sorted(self.s.order):
            raise Misuse("an order names every topic once")
        return self._tell(Reorder(tuple(order)), now)

    def _on_reorder(self, source: str, wish: Reorder, now: float) -> list[Effect]:
        self.s.wish = wish.order
        return self._collect()

    def _on_swap_request(self, source: str, request: SwapRequest, now: float) -> list[Effect]:
        s = self.s
        if request.epoch != s.epoch or s.phase in ("asking", "freezing"):
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

    def _on_moved(self, source: str, moved: Moved | None, now: float) -> list[Effect]:
        """Somebody's rate is another. All are looked at together, but not too often."""
        s = self.s
        if s.phase in ("asking", "freezing"):
            s.due = True  # its counter may have been read before
            return []
        every = self.options.report_every
        since = now - s.asked_at if s.asked_at is not None else every
        return self._collect(max(COLLECT_S, every - since) if since >= 0.0 else COLLECT_S)

    def _go_on(self, now: float) -> list[Effect]:
        """A change, or a look, has ended: what came meanwhile takes its turn."""
        s = self.s
        due, s.due = s.due, False
        if s.wish:
            return self._collect()
        return self._on_moved(self.name, None, now) if due else []

    def _on_demand(self, source: str, demand: Demand, now: float) -> list[Effect]:
        """These topics belong together, now and in all changes and forests to come.

        Every walk says so before it ends, over the link on which its stage will say `Frozen`: when
        a change is made, all parts and lines in use are known.
        """
        s = self.s
        join(s.parts, demand.topics)
        if self.options.path != "forest":
            return []
        if demand.topics not in s.lines:
            s.lines.append(demand.topics)
            if len(s.lines) > FOREST_LINES_MAX:
                # One line for all of them: a longer way, still a correct one.
                s.lines = [tuple(sorted({topic for line in s.lines for topic in line}))]
        if self._path().covers(demand.topics):
            return []
        return self._collect()

    def _collect(self, wait_s: float = COLLECT_S) -> list[Effect]:
        """Begin soon, unless something has begun: then the wish takes its turn."""
        s = self.s
        if s.phase == "quiet":
            s.phase = "waiting" if wait_s > COLLECT_S else "collecting"
            return [SetTimer(COLLECT, wait_s)]
        if s.phase == "waiting" and not s.aborted and wait_s <= COLLECT_S:
            s.phase = "collecting"
            return [SetTimer(COLLECT, wait_s)]
        return []

    # Is everybody there?

    def _fire(self, timer: str, now: float) -> list[Effect]:
        phases = ("freezing",) if timer == CHANGE else ("waiting", "collecting")
        if self.s.phase not in phases:
            return []
        record = self._log(Fired(timer, now))
        return [*record, *self._on_fired(timer, now), *self.links.flush(now)]

    def _on_fired(self, timer: str, now: float) -> list[Effect]:
        s = self.s
        if timer == CHANGE:
            # As long a rest as everybody has waited.
            wait_s = self._patience()
            s.aborted += 1
            return self._abort(wait_s)
        s.phase = "asking"
        s.attempt += 1
        s.answered = {}
        s.longest = 0.0
        s.asked_at = now
        for stage in self.directory.stages:
            self.links.post(stage, Ask(s.epoch, s.attempt))
        return []

    def _is_current(self, answer: Ready | Frozen) -> bool:
        """Whether somebody answers what we have asked last."""
        s = self.s
        phase = "asking" if isinstance(answer, Ready) else "freezing"
        return (answer.epoch, answer.attempt, phase) == (s.epoch, s.attempt, s.phase)

    def _on_ready(self, source: str, ready: Ready, now: float) -> list[Effect]:
        s = self.s
        if not self._is_current(ready):
            return [Note("late", "ready")]
        s.answered[source] = dict(ready.counts)
        s.longest = max(s.longest, ready.longest)
        if len(s.answered) < len(self.directory.stages):
            return []
        if self.options.rated:
            s.rates.look(self._counted())
        self._decide()
        if not s.coming:
            s.phase = "quiet"
            return [Note("change_not_worth"), *self._go_on(now)]
        return self._begin()

    def _decide(self) -> None:
        """The order to come: an operator's, the swaps', the rates', or the same in a new forest."""
        s = self.s
        s.for_rates = False
        s.coming = s.wish or s.swapped or ()
        if not s.coming and self.options.rated:
            s.coming = s.rates.better(s.order, self.directory)
            s.for_rates = bool(s.coming)
        path = self._path()
        if not s.coming and not all(path.covers(line) for line in s.lines):
            s.coming = s.order

    # The change.

    def _begin(self) -> list[Effect]:
        """Freeze whom it concerns. The record of this is the change's PREPARE."""
        s = self.s
        s.stopped = self._concerned(self._parents(s.coming))
        s.phase = "freezing"
        s.answered = {}
        for stage in self.directory.stages:
            topics = tuple(self._stopped_at(stage))
            self.links.post(stage, Freeze(s.epoch, s.attempt, topics))
        return [Note("change_begins"), SetTimer(CHANGE, self._patience())]

    def _on_frozen(self, source: str, frozen: Frozen, now: float) -> list[Effect]:
        s = self.s
        if not self._is_current(frozen):
            return [Note("late", "frozen")]
        s.answered[source] = dict(frozen.counts)
        if len(s.answered) < len(self.directory.stages):
            return []
        parents = self._parents(s.coming)
        if not {*self._concerned(parents)} <= {*s.stopped}:
            # A walk has joined what was apart, and with it what goes on to what stands still.
            return self._abort(COLLECT_S)
        return [CancelTimer(CHANGE), *self._commit(parents), *self._go_on(now)]

    def _commit(self, parents: dict[str, str]) -> list[Effect]:
        """Nothing of the old epoch exists any more of what the change concerns."""
        s = self.s
        install = Install(
            s.epoch + 1, s.coming, stamp_of(self._counted()), tuple(sorted(parents.items()))
        )
        if s.coming == s.wish:
            s.wish = None
        if s.for_rates:
            s.rates.changes()
        s.swapped = None
        s.moved = []
        s.epoch += 1
        s.order = s.coming
        s.parents = parents
        self._end()
        s.attempt = s.aborted = 0
        for stage in self.directory.stages:
            self.links.post(stage, install)
        return [Note("change_made")]

    def _abort(self, wait_s: float) -> list[Effect]:
        """Somebody stands still: nobody waits for it. The wish stands."""
        s = self.s
        for stage in self.directory.stages:
            self.links.post(stage, Abort(s.epoch, s.attempt))
        self._end()
        return [Note("change_aborted"), CancelTimer(CHANGE), *self._collect(wait_s)]

    def _end(self) -> None:
        s = self.s
        s.phase = "quiet"
        s.coming = ()
        s.stopped = []
        s.answered = {}

    def _resume(self, now: float) -> list[Effect]:
        if self.s.phase in ("waiting", "collecting"):
            waiting = self.s.phase == "waiting"
            return [SetTimer(COLLECT, self.options.change_timeout if waiting else COLLECT_S)]
        return [SetTimer(CHANGE, self._patience())] if self.s.phase == "freezing" else []

    # Small questions.

    def _patience(self) -> float:
        """Seconds a freeze may take. In vain, the next may take longer: the network may be slow."""
        timeout = self.options.change_timeout
        base = max(timeout, ROUNDS * self.s.longest)
        return float(base * 2 ** min(self.s.aborted, DOUBLED_MAX))

    def _counted(self) -> dict[str, int]:
        return {topic: n for counts in self.s.answered.values() for topic, n in counts.items()}

    def _parents(self, order: tuple[str, ...]) -> dict[str, str]:
        return forest(order, self.s.lines) if self.options.path == "forest" else {}

    def _concerned(self, parents: dict[str, str]) -> list[str]:
        s = self.s
        return concerned(self.options.path, s.parts, (s.order, s.parents), (s.coming, parents))

    def _stopped_at(self, stage: str) -> list[str]:
        stopped = {*self.s.stopped}
        return [topic for topic in self.directory.topics_at(stage) if topic in stopped]

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
