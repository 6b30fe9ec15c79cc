"""The papers' rules that break the order, each as a test double to be put in alone.

They exist nowhere else. A test that re-enables one must find a violation; if it finds none, the
tests have become too weak. Names in brackets are those of the errata.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from inorder.core.effect import Effect, Join, Note
from inorder.protocols.session import incoming, links
from inorder.protocols.total import (
    engine,
    epoch,
    groups,
    manager,
    path,
    ranking,
    stage,
    subscriber,
)
from inorder.protocols.total.messages import Create
from inorder.protocols.total.version import version_of

Patch = Callable[[pytest.MonkeyPatch], None]


def increment_on_subscribe(patch: pytest.MonkeyPatch) -> None:
    """A subscription takes a number (R6, S3, S4): a hole that nobody fills."""
    walk = manager.Manager.walk

    def published(self: Any, message: Any, entries: Any) -> None:
        if self.s.topic in message.topics:
            self.s.count += 1
        walk(self, message, entries)

    patch.setattr(manager.Manager, "walk", published)


def threshold_two(patch: pytest.MonkeyPatch) -> None:
    """Two common subscribers before topics are sequenced (R2, S7)."""
    init = groups.Group.__init__

    def published(self: Any, topic: str, threshold: int, subs: Any) -> None:
        init(self, topic, 2, subs)

    patch.setattr(groups.Group, "__init__", published)


def equality(patch: pytest.MonkeyPatch) -> None:
    """Other entries must equal the clock, not just be reached (S6)."""

    def published(self: Any, key: Any, stamp: Any) -> bool:
        s = self.s
        topic, number = key
        if number != s.clock[topic] + 1:
            return False
        return all(
            entry == s.clock[other] if other in s.active else other not in s.pending
            for other, entry in stamp
        )

    patch.setattr(engine.Engine, "_ready", published)


def overwrite_clocks(patch: pytest.MonkeyPatch) -> None:
    """The end of a subscription sets the whole clock, old topics too (R4, S5)."""
    activate = engine.Engine.activate

    def published(self: Any, topics: Any, stamp: Any, now: float) -> None:
        activate(self, topics, stamp, now)
        self.s.clock.update(dict(stamp))

    patch.setattr(engine.Engine, "activate", published)


def pending_does_not_block(patch: pytest.MonkeyPatch) -> None:
    """Entries of topics whose walk is under way are ignored."""

    def published(self: Any, key: Any, stamp: Any) -> bool:
        s = self.s
        topic, number = key
        if number != s.clock[topic] + 1:
            return False
        return all(entry <= s.clock[other] for other, entry in stamp if other in s.active)

    patch.setattr(engine.Engine, "_ready", published)


def group_only_path(patch: pytest.MonkeyPatch) -> None:
    """Stamps go straight to the topics of their group and overtake each other (S8, S9)."""
    patch.setattr(path.Path, "next", lambda self, at, target: target)


def definition_3(patch: pytest.MonkeyPatch) -> None:
    """No entry below the clock, one above it, whichever (R1)."""

    def published(self: Any, key: Any, epoch: int, stamp: Any) -> bool:
        clock = self.s.clock
        entries = [key, *stamp]
        return all(n >= clock.get(t, -1) for t, n in entries) and any(
            n > clock.get(t, -1) for t, n in entries
        )

    patch.setattr(engine.Engine, "_fresh", published)


def forget_at_unsubscribe(patch: pytest.MonkeyPatch) -> None:
    """Whoever leaves a topic forgets what it knew about it (R3)."""
    drop = engine.Engine.drop

    def published(self: Any, topics: Any, now: float) -> None:
        drop(self, topics, now)
        for topic in topics:
            self.s.clock.pop(topic, None)
            self.s.last.pop(topic, None)

    patch.setattr(engine.Engine, "drop", published)


def no_repair(patch: pytest.MonkeyPatch) -> None:
    """Not a published rule, but what the papers lack: nobody asks for what is missing."""
    patch.setattr(subscriber.Subscriber, "_mind", lambda self, topics: [])
    patch.setattr(subscriber.Subscriber, "_arm", lambda self: [])
    patch.setattr(stage.Stage, "_watch", lambda self, topic: [])


def walk_before_join(patch: pytest.MonkeyPatch) -> None:
    """The network is asked for the topic's events when the walk is done (R5)."""
    go_on = subscriber.Subscriber._go_on
    done = subscriber.Subscriber.on_walk_done
    next_change = subscriber.Subscriber._next_change

    def walk_first(self: Any, now: float) -> list[Effect]:
        self.s.joining = set()
        return [e for e in go_on(self, now) if not isinstance(e, Join)]

    def quietly(self: Any, now: float) -> list[Effect]:
        return [e for e in next_change(self, now) if not isinstance(e, Join)]

    def join_last(self: Any, source: str, message: Any, now: float) -> list[Effect]:
        started = sorted(self.s.engine.pending)
        return [*(Join(topic) for topic in started), *done(self, source, message, now)]

    patch.setattr(subscriber.Subscriber, "_go_on", walk_first)
    patch.setattr(subscriber.Subscriber, "_next_change", quietly)
    patch.setattr(subscriber.Subscriber, "on_walk_done", join_last)


def direct_updates(patch: pytest.MonkeyPatch) -> None:
    """Whoever leaves tells each manager directly and does not wait (Figure 8). With versions this
    is harmless; it is what makes them necessary."""
    go_on = subscriber.Subscriber._go_on

    def published(self: Any, now: float) -> list[Effect]:
        s = self.s
        if s.current is None or s.current.op != "unsubscribe":
            return go_on(self, now)
        held = tuple(sorted(s.engine.active))
        s.count += 1
        for topic in sorted(s.registered):
            walk = subscriber.Walk(self._name, version_of(self._life, s.count), held, (topic,))
            self._links.post(self._directory.home(topic), walk)
        s.registered = {*held}
        return self._finish_change(now)  # type: ignore[no-any-return]

    done = subscriber.Subscriber.on_walk_done

    def answered(self: Any, source: str, message: Any, now: float) -> list[Effect]:
        return [] if self.s.walking is None else done(self, source, message, now)

    patch.setattr(subscriber.Subscriber, "_go_on", published)
    patch.setattr(subscriber.Subscriber, "on_walk_done", answered)
    patch.setattr(stage, "check_body", lambda *anything: None)


def no_versions(patch: pytest.MonkeyPatch) -> None:
    """The last registration to arrive wins, however old it is (S13)."""
    register = groups.Group.register

    def published(self: Any, sub: str, version: int, topics: Any) -> bool:
        known = self.subs.get(sub)
        if known is not None and version <= known.version:
            version = known.version + 1
        return register(self, sub, version, topics)

    patch.setattr(groups.Group, "register", published)


def ttl_runs_while_pending(patch: pytest.MonkeyPatch) -> None:
    """Events of pending topics are forced out like all others."""
    hold = engine.Engine._hold

    def expire(self: Any, key: Any, now: float) -> None:
        if key in self.held:
            self.s.start.setdefault(key[0], 0)
            self._force(key, now)

    def published(self: Any, key: Any, held: Any, now: float) -> None:
        hold(self, key, held, now)
        if key[0] in self.s.pending:
            self._start_timer(key)

    patch.setattr(engine.Engine, "_hold", published)
    patch.setattr(engine.Engine, "expire", expire)


def _no_barrier(patch: pytest.MonkeyPatch) -> None:
    """A new order is announced, not agreed: nobody freezes, nobody waits."""

    def announce(self: Any, timer: str, now: float) -> list[Effect]:
        s = self.s
        s.phase = "quiet"
        s.epoch += 1
        s.order = s.wish or s.swapped or s.order
        s.wish = s.swapped = None
        s.moved = []
        install = ranking.Install(s.epoch, s.order, (), ())
        for each in self.directory.stages:
            self.links.post(each, install)
        return [Note("announced")]

    def install(self: Any, source: str, message: Any, now: float) -> list[Effect]:
        its = self._stage
        if message.epoch <= its.s.epoch:
            return []
        its.s.epoch, its.s.order = message.epoch, message.order
        its.lay_path()
        for each in its.managers.values():
            each.install(())
        return its.catch_up(now)  # type: ignore[no-any-return]

    def left(self: Any, source: str, message: Any, now: float) -> list[Effect]:
        # Stages disagree on where a walk entered; nobody freezes, so nobody needs to know.
        key = (message.subscriber, message.version)
        self.s.entered = [each for each in self.s.entered if each[:2] != key]
        return []

    patch.setattr(stage.Stage, "_on_left", left)
    go_on = path.Path.next

    def straight(self: Any, at: str, target: str) -> str:
        # On the papers' path a stamp goes where it is wanted, whatever a stage believes is above.
        return target if self._kind == "sg" else go_on(self, at, target)

    patch.setattr(path.Path, "next", straight)
    patch.setattr(ranking.Ranking, "_on_fired", announce)
    patch.setattr(epoch.Epochs, "on_install", install)
    patch.setattr(stage, "check_body", lambda *anything: None)


def discard_old_epochs(patch: pytest.MonkeyPatch) -> None:
    """Stamps of an older order are thrown away (E2): their publishers wait for ever."""
    _no_barrier(patch)
    on_fill = stage.Stage._on_fill

    def published(self: Any, source: str, fill: Any, now: float) -> list[Effect]:
        if fill.epoch < self.s.epoch:
            return [Note("discarded")]
        return on_fill(self, source, fill, now)

    patch.setattr(stage.Stage, "_on_fill", published)
    patch.setattr(stage.Stage, "_on_walk", _walk_on)


def _walk_on(self: Any, source: str, walk: Any, now: float) -> list[Effect]:
    """Walks go on in whatever order the stage knows."""
    if walk.epoch < 0:
        return self._enter(replace(walk, seen=0))  # type: ignore[no-any-return]
    return self._visit_walk(replace(walk, epoch=self.s.epoch), [*walk.stamp])  # type: ignore[no-any-return]


def infer_the_order(patch: pytest.MonkeyPatch) -> None:
    """A newer stamp tells the number of the new order, not the order itself (E1)."""
    discard_old_epochs(patch)
    on_fill = stage.Stage._on_fill

    def published(self: Any, source: str, fill: Any, now: float) -> list[Effect]:
        self.s.epoch = max(self.s.epoch, fill.epoch)
        return on_fill(self, source, fill, now)

    patch.setattr(stage.Stage, "_on_fill", published)


def no_epoch_check(patch: pytest.MonkeyPatch) -> None:
    """Compact stamps of two epochs are compared as if they shared topics (E5)."""
    fresh = engine.Engine._fresh
    patch.setattr(engine.Engine, "_fresh", lambda self, key, epoch, stamp: fresh(
        self, key, self.s.last_epoch, stamp))  # fmt: skip


def no_cut(patch: pytest.MonkeyPatch) -> None:
    """An order is installed without saying where the counters stood."""
    patch.setattr(manager.Manager, "install", lambda self, cut: setattr(self, "_split", None))


def no_duplicate_filter(patch: pytest.MonkeyPatch) -> None:
    """A request that arrives twice is numbered twice (F2)."""

    place = links.Links.place

    def again(self: Any, source: str, frame: Any) -> str:
        where = place(self, source, frame)
        doubled = where == "again" and isinstance(frame.body, Create)
        return "next" if doubled else where

    take = incoming.Incoming.take

    def count(self: Any, number: int) -> int:
        return 0 if number <= self.received else take(self, number)

    patch.setattr(links.Links, "place", again)
    patch.setattr(incoming.Incoming, "take", count)
    patch.setattr(manager.Manager, "is_duplicate", lambda self, events: False)


def keep_old_clocks_with_compact(patch: pytest.MonkeyPatch) -> None:
    """Compact stamps, but the clocks of old topics are not raised at the end of a walk."""

    def published(self: Any, topics: Any, stamp: Any, now: float) -> None:
        compact, self._compact = self._compact, False
        activate(self, topics, stamp, now)
        self._compact = compact

    activate = engine.Engine.activate
    patch.setattr(engine.Engine, "activate", published)
