"""The simulated world: nodes with machines, carrying out their effects in virtual time.

Rule 1: effects are carried out in list order; a node may crash between any two of them.
Rule 2: nothing behind a `Persist` happens before the record is synced; a crash forgets the rest.
Rule 3: the trace tells true (virtual) time; machines see their node's own, possibly wrong, clock.
Rule 4: memory grows with what is in flight, not with what has happened: rows leave at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, cast

import msgspec

from inorder.check.ending import WITHIN_S, Ending
from inorder.check.trace import DeliveryRow, MessageRow, SubscriptionRow
from inorder.core.effect import (
    Answer,
    CancelTimer,
    Deliver,
    Diffuse,
    Effect,
    Join,
    Launched,
    Leave,
    Note,
    Persist,
    Send,
    SetTimer,
)
from inorder.core.event import Event, Scalar, event_id
from inorder.core.machine import Client, Durable, Machine, call_of
from inorder.guarantee.compose import Filtering
from inorder.sim import ending
from inorder.sim.agenda import Agenda
from inorder.sim.network import Model, Network
from inorder.sim.node import Node
from inorder.sim.publications import Publications, Recorder


class Application(Protocol):
    """What sits on top of the clients: a workload."""

    def delivered(self, node: str, event: Event, in_order: bool) -> None: ...

    def answered(self, node: str, call: str, outcome: str) -> None: ...

    def restarted(self, node: str) -> None: ...


class World:
    """Everything that exists in one run."""

    def __init__(
        self,
        model: Model,
        seed: str,
        trace: Recorder,
        *,
        fifo: bool = True,
        hosts: dict[str, str] | None = None,
        record_messages: bool = False,
        join_s: float = 0.0,
        sync_s: float = 0.0,
        write_behind: bool = False,
    ) -> None:
        self.agenda = Agenda()
        self.nodes: dict[str, Node] = {}
        self.network = Network(
            self.agenda, model, seed, self._hand_over,
            fifo=fifo, measure=record_messages, hosts=hosts,
        )  # fmt: skip
        self.application: Application | None = None
        self.marks: dict[str, int] = {}
        self._trace = trace
        self._record_messages = record_messages
        self._join_s = join_s
        self._sync_s = sync_s
        # A published defect kept for negative controls: effects do not wait for the disk.
        self._write_behind = write_behind
        self._publications = Publications(trace)
        self._subscribing: dict[str, list[str]] = {}
        # Sets that not everybody knows yet: whose, after which delivery, what, of which topics.
        self._setting: dict[str, tuple[str, int, dict[str, Any], list[str]]] = {}
        self._calls = 0
        self._timers = 0
        # The event that was delivered last, its name, and when it was published.
        self._shown: tuple[Event | None, str, float] = (None, "", 0.0)
        self._act: dict[type, Callable[[Node, Any], None]] = {
            Send: self._send,
            Diffuse: self._diffuse,
            Deliver: self._deliver,
            Persist: self._persist,
            SetTimer: self._set_timer,
            CancelTimer: self._cancel_timer,
            Answer: self._answer,
            Launched: self._launched,
            Join: self._join,
            Leave: self._leave,
            Note: self._note,
        }

    def add(self, name: str, build: Callable[[], Machine]) -> Node:
        node = self.nodes[name] = Node(name, build, slow_disk=self._sync_s > 0.0)
        return node

    # What applications ask for. Each returns whether the node was there to be asked.

    def publish(self, name: str, topic: str, value: dict[str, Scalar]) -> bool:
        node = self.nodes[name]
        if node.absent:
            return False
        client = cast(Client, node.machine)
        call, seq = call_of(name, client), client.next_seq
        effects = client.publish(topic, value, self.agenda.now + node.skew_s)
        self._publications.ask(node, call, seq, topic, value, self.agenda.now)
        self._carry_out(node, effects)
        return True

    def subscribe(
        self,
        name: str,
        topics: Iterable[str],
        where: str | None = None,
        values: Mapping[str, Any] | None = None,
    ) -> bool:
        node = self.nodes[name]
        if node.absent:
            return False
        wanted = sorted(topics)
        self._calls += 1
        call = f"{name}/{self._calls}"
        now = self.agenda.now + node.skew_s
        if where is None:
            effects = cast(Client, node.machine).subscribe(call, wanted, now)
        else:
            client = cast(Filtering, node.machine)
            effects = client.subscribe(call, wanted, now, where, values)
            node.filters.update({topic: (where, dict(values or {})) for topic in wanted})
        self._subscribing[call] = wanted
        self._carry_out(node, effects)
        return True

    def set(self, name: str, values: Mapping[str, Any]) -> bool:
        """Move the parameters of all filters of a node."""
        node = self.nodes[name]
        if node.absent or not node.filters:
            return False
        self._calls += 1
        # Not a change of subscriptions: those wait for each other's answers, sets do not.
        call = f"set/{name}/{self._calls}"
        topics = sorted(node.filters)
        now = self.agenda.now + node.skew_s
        effects = cast(Filtering, node.machine).set(call, topics, values, now)
        for topic in topics:
            where, old = node.filters[topic]
            node.filters[topic] = (where, {**old, **values})
        self._setting[call] = (node.name, node.nth, dict(values), topics)
        self._carry_out(node, effects)
        return True

    def unsubscribe(self, name: str, topics: Iterable[str]) -> bool:
        node = self.nodes[name]
        if node.absent:
            return False
        dropped = sorted(topics)
        self._calls += 1
        call = f"{name}/{self._calls}"
        client = cast(Client, node.machine)
        effects = client.unsubscribe(call, dropped, self.agenda.now + node.skew_s)
        self._drop(node, dropped)
        for topic in dropped:
            node.filters.pop(topic, None)
        for other, waiting in self._subscribing.items():
            if other.startswith(f"{name}/"):
                waiting[:] = [topic for topic in waiting if topic not in dropped]
        self._carry_out(node, effects)
        return True

    # What happens to nodes.

    def crash(self, name: str) -> None:
        """Everything in memory is gone; what was synced stays."""
        node = self.nodes[name]
        if not node.alive:
            return
        for topic in sorted(node.joined):
            self.network.leave(name, topic)
        if node.held:
            self._drop(node, sorted(node.held))
        for call in [call for call in self._subscribing if call.startswith(f"{name}/")]:
            del self._subscribing[call]
        for call in [call for call, (owner, *_) in self._setting.items() if owner == name]:
            del self._setting[call]
        node.crash()

    def restart(self, name: str) -> None:
        node = self.nodes[name]
        if node.alive:
            return
        node.restart()
        if isinstance(node.machine, Durable):
            for record in node.disk:
                node.machine.replay(record)
            self._carry_out(node, node.machine.resume(self.agenda.now + node.skew_s))
        if self.application:
            self.application.restarted(name)

    def pause(self, name: str) -> None:
        self.nodes[name].pause()

    def proceed(self, name: str) -> None:
        """End a pause: everything that came meanwhile is handled now, in order of arrival."""
        for handle, args in self.nodes[name].proceed():
            handle(*args)

    @property
    def at_rest(self) -> bool:
        """Whether nothing will happen any more, and nobody waits for anything."""
        machines = [node.machine for node in self.nodes.values()]
        waits = any(not getattr(each, "idle", True) or getattr(each, "owes", False)
                    for each in machines)  # fmt: skip
        return self.agenda.resting and not waits

    def finish(self, within: float = WITHIN_S) -> Ending:
        """The run is over: publications without an answer have an unknown fate if their publisher
        ended first, or if the run was cut within the window; sets without one are in force all the
        same."""
        under_way = ending.under_way(self.agenda, self.nodes.values())
        ended = Ending(not under_way, self.agenda.now, within, under_way)
        for call in list(self._setting):
            self._set_done(call)
        self._publications.finish(self.nodes, ended)
        self._trace.ended(ended)
        return ended

    # Inputs of machines.

    def _hand_over(
        self, source: str, target: str, message: Any, size: int, sent_at: float, arrives: bool
    ) -> None:
        node = self.nodes[target]
        if node.paused and arrives:
            node.inbox.append((self._hand_over, (source, target, message, size, sent_at, True)))
            return
        now = self.agenda.now
        arrives = arrives and node.alive
        if self._record_messages:
            kind = type(getattr(message, "body", message)).__name__
            received_at = now if arrives else None
            self._trace.write(
                "messages", MessageRow(source, target, kind, size, sent_at, received_at)
            )
        if arrives:
            self._carry_out(node, node.machine.receive(source, message, now + node.skew_s))

    def _fire(self, node: Node, timer: str, token: int) -> None:
        if node.timers.get(timer) != token:
            return  # cancelled, moved, or of an earlier life
        if node.paused:
            node.inbox.append((self._fire, (node, timer, token)))
            return
        del node.timers[timer]
        self._carry_out(node, node.machine.fire(timer, self.agenda.now + node.skew_s))

    def _joined(self, node: Node, topic: str, life: int) -> None:
        if node.life != life or topic not in node.joined:
            return
        if node.paused:
            node.inbox.append((self._joined, (node, topic, life)))
            return
        self.network.join(node.name, topic)
        client = cast(Client, node.machine)
        self._carry_out(node, client.joined(topic, self.agenda.now + node.skew_s))

    # Effects.

    def _carry_out(self, node: Node, effects: list[Effect]) -> None:
        if node.guarded:
            self._carry_out_guarded(node, effects)
            return
        act = self._act
        for effect in effects:
            act[type(effect)](node, effect)

    def _carry_out_guarded(self, node: Node, effects: list[Effect]) -> None:
        """The careful way: a crash may be planned, or the disk may be busy."""
        for effect in effects:
            if node.crash_after == 0:
                self._planned_crash(node)
                return
            if node.syncing:
                node.waiting.append(effect)
                continue
            if node.crash_after is not None:
                node.crash_after -= 1
            self._act[type(effect)](node, effect)
        if node.crash_after is not None and not node.syncing:
            self._planned_crash(node)

    def _planned_crash(self, node: Node) -> None:
        restart_after_s = node.restart_after_s
        self.crash(node.name)
        self.agenda.after(restart_after_s, self.restart, node.name)

    def _persist(self, node: Node, effect: Persist) -> None:
        if self._sync_s == 0.0:
            node.disk.append(effect.record)
            return
        node.unsynced.append(effect.record)
        if not self._write_behind:
            node.syncing = True
        self.agenda.after(self._sync_s, self._synced, node, node.life)

    def _synced(self, node: Node, life: int) -> None:
        if node.life != life or not node.alive:
            return
        node.disk.append(node.unsynced.pop(0))
        if node.syncing:
            node.syncing = False
            waiting, node.waiting = node.waiting, []
            self._carry_out_guarded(node, waiting)

    def _send(self, node: Node, effect: Send) -> None:
        self.network.send(node.name, effect.target, effect.message)

    def _diffuse(self, node: Node, effect: Diffuse) -> None:
        self.network.diffuse(node.name, effect.topic, effect.message)

    def _join(self, node: Node, effect: Join) -> None:
        node.joined.add(effect.topic)
        self.agenda.after(self._join_s, self._joined, node, effect.topic, node.life)

    def _leave(self, node: Node, effect: Leave) -> None:
        node.joined.discard(effect.topic)
        self.network.leave(node.name, effect.topic)

    def time(self, node: Node, effect: SetTimer | CancelTimer) -> None:
        """A timer that a machine sets or cancels before the run begins."""
        self._act[type(effect)](node, effect)

    def _set_timer(self, node: Node, effect: SetTimer) -> None:
        self._timers += 1
        node.timers[effect.name] = self._timers
        after_s = effect.after_s * node.drift
        wait = self.agenda.watch if effect.background else self.agenda.after
        wait(after_s, self._fire, node, effect.name, self._timers)

    def _cancel_timer(self, node: Node, effect: CancelTimer) -> None:
        node.timers.pop(effect.name, None)

    def _note(self, node: Node, effect: Note) -> None:
        self.marks[effect.mark] = self.marks.get(effect.mark, 0) + 1

    def _deliver(self, node: Node, effect: Deliver) -> None:
        event = effect.event
        now = self.agenda.now
        if event is not self._shown[0]:
            # One event goes to many subscribers: what is the same for all is found out once.
            self._shown = event, event_id(event.publisher, event.seq), self._true_time(event)
        _, name, published_at = self._shown
        node.nth = nth = node.nth + 1
        waited_s = effect.waited_s
        received_at = now - waited_s if waited_s > 0.0 else now
        row = DeliveryRow(
            node.name, nth, name, event.topic, event.publisher, event.seq, published_at,
            received_at, now, effect.in_order,
        )  # fmt: skip
        self._trace.write("deliveries", row)
        if self.application:
            self.application.delivered(node.name, event, effect.in_order)

    def _true_time(self, event: Event) -> float:
        publisher = self.nodes.get(event.publisher)
        if publisher is None:
            return event.published_at
        return publisher.true_time(event.seq, event.published_at)

    def _answer(self, node: Node, effect: Answer) -> None:
        now = self.agenda.now
        call = effect.call
        if self._publications.answer(effect, now):
            pass
        elif topics := self._subscribing.pop(call, None):
            self._hold(node, topics)
        elif call in self._setting:
            self._set_done(call)
        elif effect.outcome == "gap":
            # An announced gap: the subscription ends and begins anew, nothing before is owed.
            missed = [call.partition("/")[2]]
            self._drop(node, missed)
            self._hold(node, missed)
        if self.application:
            self.application.answered(node.name, call, effect.outcome)

    def _launched(self, node: Node, effect: Launched) -> None:
        self._publications.launch(node, effect, self.agenda.now)

    def _hold(self, node: Node, topics: list[str]) -> None:
        node.held.update(topics)
        for (where, values), alike in _alike(node, topics):
            self._record_subscription(node, "subscribe", alike, where, values)

    def _drop(self, node: Node, topics: list[str]) -> None:
        # A set counts from its call on; what it promised is over with the subscription.
        for call, (name, *_) in list(self._setting.items()):
            if name == node.name:
                self._set_done(call, topics)
        node.held.difference_update(topics)
        self._record_subscription(node, "unsubscribe", topics)

    def _set_done(self, call: str, only: list[str] | None = None) -> None:
        """Everybody knows: from now on all that matches is due. Deliveries were judged by the new
        values since the call, which is what `after` says."""
        name, after, values, topics = self._setting[call]
        done = [topic for topic in topics if only is None or topic in only]
        self._setting[call][3][:] = [topic for topic in topics if topic not in done]
        if not self._setting[call][3]:
            del self._setting[call]
        node = self.nodes[name]
        if held := [topic for topic in done if topic in node.held and topic in node.filters]:
            row = SubscriptionRow(name, "set", held, None, _json(values), self.agenda.now, after)
            self._trace.write("subscriptions", row)

    def _record_subscription(
        self,
        node: Node,
        op: str,
        topics: list[str],
        where: str | None = None,
        values: Mapping[str, Any] | None = None,
    ) -> None:
        row = SubscriptionRow(
            node.name, op, topics, where, _json(values or {}), self.agenda.now, after=node.nth
        )
        self._trace.write("subscriptions", row)


def _alike(
    node: Node, topics: list[str]
) -> list[tuple[tuple[str | None, dict[str, Any]], list[str]]]:
    """The topics by their filters: one row can tell of those that are filtered alike."""
    found: list[tuple[tuple[str | None, dict[str, Any]], list[str]]] = []
    for topic in topics:
        chosen = node.filters.get(topic, (None, {}))
        for known, alike in found:
            if known == chosen:
                alike.append(topic)
                break
        else:
            found.append((chosen, [topic]))
    return found


def _json(values: Mapping[str, Any]) -> str:
    return msgspec.json.encode(values).decode()
