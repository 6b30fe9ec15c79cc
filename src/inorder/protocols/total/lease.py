"""A stage's part in leases: who still listens, and what nobody can ask for any more.

A subscriber renews what it holds at a stage every `renew` seconds, in one message that says how far
each topic has come. One that has not renewed for `lease` seconds is forgotten: its stage keeps
nothing for it any more, and stamps need not regard it.

Rule 1: clocks decide only when somebody is forgotten, never in which order anything is delivered.
        A topic that forgets a holder raises its number `forgotten`, and every batch made from then
        on carries it. A subscriber that sees a larger number than it knows delivers nothing of the
        topic before its renewal is answered: it is still registered, or it was forgotten, and
        begins again behind a walk.
Rule 2: who was forgotten, and at which number, is kept beside the registration. A walk for another
        topic may have registered the subscriber again meanwhile; what it missed in between shows in
        that number alone.
Rule 3: time is counted in ticks of a timer, which no jump of a clock can hurry.
Rule 4: a renewal is answered only if there is something to say.

Why a number. Two subscribers hold two topics, and nobody else does. Both are cut off and forgotten
by the upper topic only. An event there is now stamped without an entry for the lower topic; both
come back, still members of the network, and deliver it on different sides of a lower event.

The same ticks end sessions with clients that neither hold nor say anything (../session/book.py).
"""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING

from msgspec import Struct

from inorder.core.effect import Effect, Note, Persist, Send, SetTimer
from inorder.core.errors import BadMessage
from inorder.protocols.total.messages import Forget, Renew, Renewed, Standing

if TYPE_CHECKING:
    from inorder.protocols.total.stage import Stage

LEASE = "lease"


class LeaseState(Struct):
    # Ticks since a holder has renewed, for those that have missed any.
    silent: dict[str, int] = {}
    running: bool = False


class Leases:
    """What a stage knows of its holders' silence."""

    def __init__(self, stage: Stage, state: LeaseState) -> None:
        self.s = state
        self._stage = stage
        options = stage.options
        self._serves = options.leased
        self._patience = max(2, round(options.lease / options.renew))

    def watch(self) -> list[Effect]:
        """Somebody may hold something now, or has a session."""
        if self.s.running or not self._serves:
            return []
        self.s.running = True
        return [SetTimer(LEASE, self._stage.options.renew, background=True)]

    def resume(self) -> list[Effect]:
        """A new owner has heard of nobody yet, and waits a whole lease for everybody."""
        self.s.silent.clear()
        self.s.running = False
        return self.watch()

    def on_renew(self, source: str, renew: Renew, now: float) -> list[Effect]:
        stage = self._stage
        for topic, _, _ in renew.topics:
            if topic not in stage.managers:
                raise BadMessage(source, f"renews {topic} at {stage.name}")
        self.s.silent.pop(source, None)
        stage.links.hear(source, now)
        standing: list[Standing] = []
        missing: list[Effect] = []
        for topic, have, known in renew.topics:
            manager = stage.managers[topic]
            manager.report(source, have)
            kept = manager.keeps(source, known)
            if not kept or known < manager.s.forgotten:
                standing.append((topic, known, manager.s.forgotten, kept))
            elif have < manager.s.published and topic not in stage.s.beats:
                # Nothing later will show that it is missing.
                repaired = manager.repair(have + 1, manager.s.published)
                missing += [Send(source, answer) for answer in repaired]
        answer = [Send(source, Renewed(tuple(standing)))] if standing else []
        return [*answer, *missing, *stage.links.flush(now)]

    def tick(self, now: float) -> list[Effect]:
        """Some seconds have passed."""
        stage = self._stage
        holders = sorted({name for each in stage.managers.values() for name in each.s.reported})
        silent = {name: self.s.silent.get(name, 0) + 1 for name in holders}
        lapsed = tuple(name for name in holders if silent[name] > self._patience)
        self.s.silent = {name: silent[name] for name in holders if name not in lapsed}
        ended = self._end_sessions(self.s.silent)
        forgotten = stage._tell(Forget(lapsed), now) if lapsed else []
        for manager in stage.managers.values():
            manager.tick()
        self.s.running = False
        busy = len(lapsed) < len(holders) or stage.links.has_clients
        effects = [*forgotten, *ended, *stage.links.flush(now), *(self.watch() if busy else [])]
        return sorted(effects, key=lambda effect: not isinstance(effect, Persist))

    def on_forget(self, source: str, forget: Forget, now: float) -> list[Effect]:
        for name in forget.subscribers:
            for manager in self._stage.managers.values():
                manager.forget(name)
        return [Note("forgotten", name) for name in forget.subscribers]

    def _end_sessions(self, holders: Container[str]) -> list[Effect]:
        stage = self._stage
        silent = stage.links.silent(self._patience)
        busy = self._under_way() if silent else set()
        effects: list[Effect] = []
        for peer in silent:
            if peer not in holders and peer not in busy:
                effects += stage._end_session(peer)
        return effects

    def _under_way(self) -> set[str]:
        """Clients that an answer is still to be made for."""
        s = self._stage.s
        names = [waiting.publisher for queue in s.requests.values() for waiting in queue]
        names += [walk.subscriber for walk in s.walks]
        names += [subscriber for subscriber, _, _ in s.entered]
        for manager in self._stage.managers.values():
            if manager.s.outstanding:
                names += [each.events[0].publisher for each in manager.s.log if each.stamp is None]
        return {*names}
