"""A stage: the process that is home to some topics, and its part in rounds, walks and epochs.

Rule 1: a round or walk belongs to the epoch in which it entered (epoch.py).
Rule 2: stamps and walks take the same way (path.py), hop by hop in order of arrival.
Rule 3: the payload came with the request, so the manager itself diffuses. In the report the
        publisher does, and one that dies in between leaves a hole for ever (F3).

Back-pressure: a manager has OUTSTANDING_ROUNDS_MAX rounds under way, further requests queue here,
and when QUEUED_REQUESTS_MAX wait, requests are left with their senders (../session sends again). So
are those of a client that has not acknowledged LINK_ANSWERS_MAX answers: a session that was cut for
them would begin anew with the same requests, and be cut again, for ever.
"""

from __future__ import annotations

from typing import Any, Self

from msgspec import Struct, field
from msgspec.structs import replace

from inorder.core.effect import Diffuse, Effect, Note, Send, SetTimer
from inorder.core.errors import BadMessage
from inorder.core.event import Stamp
from inorder.core.limits import LINK_ANSWERS_MAX, OUTSTANDING_ROUNDS_MAX, QUEUED_REQUESTS_MAX
from inorder.core.pack import pack, unpacker
from inorder.protocols.session.book import Sessions
from inorder.protocols.total.directory import RANKING, Directory, directory_of
from inorder.protocols.total.epoch import Epochs, EpochState
from inorder.protocols.total.lease import LEASE, Leases, LeaseState
from inorder.protocols.total.manager import Batch, Manager, TopicState
from inorder.protocols.total.messages import (
    Abort,
    Accepted,
    Ask,
    Body,
    Complete,
    Create,
    Demand,
    Events,
    Fill,
    Forget,
    Freeze,
    Heartbeat,
    Install,
    Left,
    Moved,
    Renew,
    Repair,
    SwapRequest,
    Walk,
    WalkDone,
)
from inorder.protocols.total.metric import wants_swap
from inorder.protocols.total.options import Options
from inorder.protocols.total.path import path_of
from inorder.protocols.total.service import Service
from inorder.protocols.total.stage_check import check_body
from inorder.protocols.total.stamp import stamp_of, with_own, without
from inorder.protocols.total.version import life_of, session_of

HEARTBEAT = "heartbeat"


class Waiting(Struct, frozen=True, gc=False):
    """A request that waits, and the session its answer goes to."""

    publisher: str
    session: int
    request: Create


class _State(Struct):
    name: str
    topics: tuple[str, ...]
    options: Options
    order: tuple[str, ...]
    epoch: int = 0
    parents: dict[str, str] = {}
    managers: dict[str, TopicState] = {}
    change: EpochState = field(default_factory=EpochState)
    # Requests by topic and walks that may not enter yet; walks entered here and under way, each
    # with the topic at which it did.
    requests: dict[str, list[Waiting]] = {}
    walks: list[Walk] = []
    entered: list[tuple[str, int, str]] = []
    # The epoch in which a swap was last asked for.
    asked: int = -1
    # Where a topic stood when its heartbeat's timer was set.
    beats: dict[str, int] = {}
    sessions: Sessions[Body] = field(default_factory=Sessions)
    lease: LeaseState = field(default_factory=LeaseState)
    logged: int = 0


_unpack = unpacker(_State)


class Stage(Service):
    """The machine of one stage."""

    def __init__(self, name: str, directory: Directory, options: Options) -> None:
        super().__init__(name, directory, options)
        self._bodies = {
            Create: self._on_create,
            Fill: self._on_fill,
            Complete: self._on_complete,
            Walk: self._on_walk,
            Left: self._on_left,
            Forget: self._on_forget,
            Ask: lambda *said: self.epochs.on_ask(*said),
            Freeze: lambda *said: self.epochs.on_freeze(*said),
            Abort: lambda *said: self.epochs.on_abort(*said),
            Install: lambda *said: self.epochs.on_install(*said),
        }
        self._casuals = {Repair: self._on_repair, Renew: lambda *said: self.leases.on_renew(*said)}
        s = _State(name, directory.topics, options, directory.topics)
        s.managers = {topic: TopicState(topic) for topic in directory.topics_at(name)}
        self._become(s)

    def _become(self, state: _State) -> None:
        self.s = state
        self.links.load(state.sessions)
        self._logged = state.logged
        self.managers = {topic: self._manager(each) for topic, each in state.managers.items()}
        self.epochs = Epochs(self, state.change)
        self.leases = Leases(self, state.lease)
        self.lay_path()

    def lay_path(self) -> None:
        s = self.s
        parents = tuple(sorted(s.parents.items()))
        self.path = path_of(self.options.path, s.order, self.directory, parents)

    def _manager(self, state: TopicState) -> Manager:
        options = self.options
        full = options.stamp == "full"
        return Manager(state, options.threshold, full, options.retention, options.leased)

    @property
    def idle(self) -> bool:
        """Nothing under way, nothing waiting: what a finished world must look like (L3)."""
        s = self.s
        waiting = s.walks or s.entered or any(s.requests.values())
        under_way = any(each.outstanding for each in s.managers.values())
        changing = s.change.early or s.change.frozen
        return self.links.idle and not (waiting or under_way or changing)

    @property
    def owes(self) -> bool:
        """Whether somebody may still miss an event, until a renewal says that nobody does."""
        return self.options.leased and any(each.unreported for each in self.managers.values())

    def _check(self, source: str, session: int, body: Body) -> None:
        check_body(self, source, session, body)

    def _full(self, source: str, body: Body) -> bool:
        s = self.s
        # Only what comes from a client may wait there. What has entered must always be taken: a
        # freeze may be waiting for it, and what is queued here waits for the end of the freeze.
        if not isinstance(body, Create) and not (isinstance(body, Walk) and _is_new(body)):
            return False
        if isinstance(body, Create) and self.links.carries(source) >= LINK_ANSWERS_MAX:
            return True
        waiting = len(s.walks) + sum(len(queue) for queue in s.requests.values())
        return waiting >= QUEUED_REQUESTS_MAX

    # Publishing.

    def _on_create(self, source: str, request: Create, now: float) -> list[Effect]:
        """A publisher wants numbers. Requests of one topic never overtake each other here: who
        comes while others wait queues behind them, whatever they wait for."""
        waiting = Waiting(source, self.links.session(source), request)
        queue = self.s.requests.get(request.topic)
        if queue or not self._may_begin(request.topic):
            self.s.requests.setdefault(request.topic, []).append(waiting)
            return []
        return [*self._begin(waiting, now), *self.leases.watch()]

    def _may_begin(self, topic: str) -> bool:
        if self.epochs.stops(topic):
            return False
        return self.s.managers[topic].outstanding < OUTSTANDING_ROUNDS_MAX

    def _begin(self, waiting: Waiting, now: float) -> list[Effect]:
        """Number a batch and send its stamp up. From here on the round must end before the
        epoch does: it counts as outstanding until its `Complete` is back."""
        request = waiting.request
        manager = self.managers[request.topic]
        if manager.is_duplicate(request.events):
            return [Note("duplicate_create", request.events[0].id), *self._answer_again(waiting)]
        rank = self.path.rank
        first, entries, above = manager.create(request.events, waiting.session, rank, now)
        topic = request.topic
        if self.options.rated:
            self._watch_rates(manager, entries, now)
        fill = Fill(self.s.epoch, topic, first, len(request.events), topic, above, ())
        return self._climb(fill, entries, now)

    def _answer_again(self, waiting: Waiting) -> list[Effect]:
        """A request that comes again in another session: its answer may have been lost with the
        session before. One that is still under way is answered when it ends."""
        topic, events = waiting.request.topic, waiting.request.events
        batch = self.managers[topic].batch_of(events)
        if batch is None:
            # Known to be numbered, but no more where: nothing of it is kept.
            answer = Accepted(topic, events[0].seq, 0, len(events), 0, ())
        elif batch.stamp is None:
            return []
        else:
            answer = self._accepted(topic, batch, batch.stamp)
        self.links.post(waiting.publisher, answer, waiting.session)
        return []

    def _on_fill(self, source: str, fill: Fill, now: float) -> list[Effect]:
        """A stamp from below. Its sender may have installed the next epoch before us."""
        if self.epochs.is_early(fill.epoch):
            return self.epochs.wait(fill)
        return self._climb(fill, [*fill.stamp], now)

    def _climb(self, fill: Fill, entries: list[tuple[str, int]], now: float) -> list[Effect]:
        """From `fill.at`, which is ours, up to another stage, or home when nothing is missing."""
        effects: list[Effect] = []
        at = fill.at
        want = fill.want
        done = 0
        while True:
            if done < len(want) and want[done] == at:
                manager = self.managers[at]
                if self.options.swaps == "on":
                    effects += self._watch_rates(manager, entries, now)
                manager.fill(entries, self.path.rank)
                done += 1
            if done == len(want):
                return [*effects, *self._return(fill, stamp_of(dict(entries)), now)]
            at = self.path.next(at, want[done])
            if at not in self.managers:
                passed = replace(fill, at=at, want=want[done:], stamp=tuple(entries))
                self.links.post(self.directory.home(at), passed)
                return effects

    def _return(self, fill: Fill, stamp: Stamp, now: float) -> list[Effect]:
        """Nothing is missing: straight home. The way back needs no order, hence no path."""
        complete = Complete(fill.topic, fill.first, stamp)
        home = self.directory.home(fill.topic)
        if home == self.name:
            return self._on_complete(self.name, complete, now)
        self.links.post(home, complete)
        return []

    def _on_complete(self, source: str, complete: Complete, now: float) -> list[Effect]:
        """A stamp of ours is back: show the batch, make room for the next, and if this was the
        last round of a frozen epoch say so."""
        topic = complete.topic
        manager = self.managers[topic]
        others = without(complete.stamp, topic)
        batch = manager.complete(complete.first, self.s.epoch, others)
        self.epochs.took(now - batch.begun)
        effects = self._show(topic, batch, others)
        effects += self._watch(topic)
        effects += self._drain(topic, now)
        self.epochs.try_answer()
        return effects

    def _drain(self, topic: str, now: float) -> list[Effect]:
        """Begin what waited for room, or for the end of a freeze."""
        effects: list[Effect] = []
        # Taken out meanwhile: a round that ends at once must not drain from inside.
        queue = self.s.requests.pop(topic, [])
        begun = 0
        while begun < len(queue) and self._may_begin(topic):
            effects += self._begin(queue[begun], now)
            begun += 1
        if begun < len(queue):
            self.s.requests[topic] = queue[begun:]
        return effects

    def _show(self, topic: str, batch: Batch, others: Stamp) -> list[Effect]:
        """Diffuse a complete batch and tell its publisher."""
        events = batch.events
        accepted = self._accepted(topic, batch, others)
        self.links.post(events[0].publisher, accepted, batch.session)
        if self.options.diffusion == "publisher":
            return []
        shown = Events(topic, batch.first, batch.epoch, others, events, batch.forgotten)
        return [Diffuse(topic, shown)]

    def _accepted(self, topic: str, batch: Batch, others: Stamp) -> Accepted:
        events = batch.events
        stamp = with_own(others, topic, batch.last)
        where = (topic, events[0].seq, batch.first, len(events), batch.epoch, stamp)
        return Accepted(*where, batch.forgotten)

    # Subscriptions.

    def _on_walk(self, source: str, walk: Walk, now: float) -> list[Effect]:
        """A subscriber's change: on its way up, or still looking for the stage where it enters.

        Walks take the path of the stamps, so a walk is a point of the total order: what is before
        it at one manager is before it at all (the consistent cut of section 6).
        """
        s = self.s
        if walk.seen > s.epoch or (walk.epoch >= 0 and self.epochs.is_early(walk.epoch)):
            return self.epochs.wait(walk)
        if walk.epoch >= 0:
            return self._visit_walk(walk, [*walk.stamp])
        home = self.directory.home(self.path.upwards(walk.visit)[0])
        if home != self.name:
            # The subscriber knows an older order than ours.
            self.links.post(home, replace(walk, seen=s.epoch))
            return [Note("walk_passed_on", home)]
        return self._enter(walk)

    def _enter(self, walk: Walk) -> list[Effect]:
        """Let a walk in, unless nothing may enter now or the forest does not reach its topics."""
        s = self.s
        if self.epochs.keeps_out(walk):
            s.walks.append(walk)
            return []
        if self.options.ranked and len(walk.visit) > 1:
            # Said even if the forest has the line already: later forests must keep it, and the
            # ranking must know what belongs together.
            self.links.post(RANKING, Demand(walk.visit))
            if not self.path.covers(walk.visit):
                s.walks.append(walk)
                return [Note("demand")]
        want = self.path.upwards(walk.visit)
        s.entered.append((walk.subscriber, walk.version, want[0]))
        entered = replace(walk, epoch=s.epoch, at=want[0], want=want)
        return self._visit_walk(entered, [])

    def _visit_walk(self, walk: Walk, entries: list[tuple[str, int]]) -> list[Effect]:
        """From `walk.at`, which is ours, up to another stage or to the walk's end."""
        at = walk.at
        done = 0
        forgotten = [*walk.forgotten]
        while at in self.managers:
            if walk.want[done] == at:
                self.managers[at].walk(walk, entries)
                if at in walk.topics and (number := self.managers[at].s.forgotten):
                    forgotten.append((at, number))
                done += 1
            if done == len(walk.want):
                walk = replace(walk, forgotten=tuple(forgotten))
                return [*self.leases.watch(), *self._end_walk(walk, stamp_of(dict(entries)))]
            at = self.path.next(at, walk.want[done])
        passed = replace(
            walk, at=at, want=walk.want[done:], stamp=tuple(entries), forgotten=tuple(forgotten)
        )
        self.links.post(self.directory.home(at), passed)
        return self.leases.watch()

    def _end_walk(self, walk: Walk, stamp: Stamp) -> list[Effect]:
        """Everybody knows: tell the subscriber, and the stage that answers for the walk."""
        done = WalkDone(walk.subscriber, walk.version, stamp, walk.forgotten)
        self.links.post(walk.subscriber, done, session_of(life_of(walk.version)))
        left = Left(walk.subscriber, walk.version)
        home = self.directory.home(self.path.upwards(walk.visit)[0])
        if home == self.name:
            return self._on_left(self.name, left, 0.0)
        self.links.post(home, left)
        return []

    def _on_left(self, source: str, left: Left, now: float) -> list[Effect]:
        # A walk that was made twice has entered twice (subscriber.py).
        walk = (left.subscriber, left.version)
        self.s.entered.remove(next(each for each in self.s.entered if each[:2] == walk))
        self.epochs.try_answer()
        return []

    def _on_forget(self, source: str, forget: Forget, now: float) -> list[Effect]:
        return self.leases.on_forget(source, forget, now)

    # Changes of the order (epoch.py).

    def catch_up(self, now: float) -> list[Effect]:
        """What waited for the end of a freeze goes on, in order of arrival."""
        s = self.s
        effects: list[Effect] = []
        early, s.change.early = s.change.early, []
        for message in early:
            if isinstance(message, Fill):
                effects += self._on_fill(self.name, message, now)
            else:
                effects += self._on_walk(self.name, message, now)
        walks, s.walks = s.walks, []
        for walk in walks:
            effects += self._on_walk(self.name, walk, now)
        for topic in sorted(s.requests):
            effects += self._drain(topic, now)
        return effects

    def _watch_rates(
        self, manager: Manager, entries: list[tuple[str, int]], now: float
    ) -> list[Effect]:
        """Tell the ranking that a topic has become busier or quieter; or, by the report's measure,
        that one below deserves its place, once an epoch."""
        s = self.s
        topic = manager.s.topic
        if self.options.metric == "rate":
            if manager.has_moved(self.options.report_every, now):
                self.links.post(RANKING, Moved(topic))
            return []
        lower = None
        if s.asked != s.epoch:
            lower = wants_swap(self.options, manager, entries, self.path.rank)
        if lower is None:
            return []
        s.asked = s.epoch
        self.links.post(RANKING, SwapRequest(s.epoch, topic, lower))
        return [Note("swap_asked")]

    # Repair and heartbeats: neither is in the log.

    def _on_repair(self, source: str, repair: Repair, now: float) -> list[Effect]:
        """Rounds not yet complete are passed over: they will be diffused, or asked for again."""
        if repair.topic not in self.managers or not 1 <= repair.first <= repair.last:
            raise BadMessage(source, f"asks {self.name} for numbers of {repair.topic}")
        answers = self.managers[repair.topic].repair(repair.first, repair.last)
        return [Note("repair"), *(Send(source, answer) for answer in answers)]

    def _watch(self, topic: str) -> list[Effect]:
        """An event was diffused: if none follows it, its loss shows in nothing else (L6)."""
        s = self.s
        manager = self.managers[topic]
        if topic in s.beats or not manager.s.reported:
            return []
        s.beats[topic] = manager.s.published
        wait_s = manager.quiet_s(self.options.heartbeat)
        return [SetTimer(f"{HEARTBEAT}/{topic}", wait_s)]

    def _fire(self, timer: str, now: float) -> list[Effect]:
        if timer == LEASE:
            return self.leases.tick(now)
        topic = timer.partition("/")[2]
        manager = self.managers[topic]
        if self.s.beats.pop(topic) < manager.s.published:
            return self._watch(topic)  # another one has followed
        if not manager.unreported:
            return []
        # Said once. Renewals find out who has missed this too.
        return [Diffuse(topic, Heartbeat(topic, manager.s.published))]

    def _resume(self, now: float) -> list[Effect]:
        """A batch may have been complete but not diffused when we crashed: heartbeats find out
        who misses it, so nothing needs to be diffused twice."""
        self.s.beats.clear()
        effects = self.leases.resume()
        for topic in self.managers:
            if self.managers[topic].unreported:
                effects += self._watch(topic)
        return effects

    # The whole state.

    def snapshot(self) -> bytes:
        self.s.sessions = self.links.s
        self.s.logged = self._logged
        return pack(self.s)

    def _load(self, snapshot: bytes) -> None:
        self._become(_unpack(snapshot))

    @classmethod
    def restore(cls, snapshot: bytes) -> Self:
        state: Any = _unpack(snapshot)
        directory = directory_of(state.topics, state.options.topics_per_stage)
        stage = cls(state.name, directory, state.options)
        stage._become(state)
        return stage


def _is_new(walk: Walk) -> bool:
    return walk.epoch < 0 and not walk.seen
