"""A world of peers that crash, stand still and answer late, with time (storm.py, plans.py)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any, cast

from msgspec import Struct

from inorder.core.effect import (
    Answer,
    CancelTimer,
    Deliver,
    Effect,
    Launched,
    Note,
    Persist,
    Send,
    SetTimer,
)
from inorder.core.machine import Client
from inorder.guarantee.peer import Order, Peered
from inorder.protocols.cube.messages import Packet, Probe, Pub
from inorder.protocols.cube.peers import Peers
from inorder.protocols.cube.topic import Topic
from inorder.protocols.session.messages import Frame
from inorder.sim import cube
from inorder.sim.narrate import describe
from inorder.sim.wording import Wording
from tests.protocols.cube.judge import Broken
from tests.protocols.cube.mourner import Mourner
from tests.protocols.cube.plans import (
    Cut,
    Do,
    Orphan,
    Pause,
    Plan,
    Split,
    Strike,
)
from tests.protocols.cube.rest import check_rest, check_views

# Virtual seconds: faults are over, and then everything must come to rest.
HEALED_S = 9.0
RESCUE_S = 15.0
REST_S = 60.0
STEPS_MAX = 40_000


class Told(Peered):
    """A peer that says what its member is given."""

    gave: Callable[[Pub[Any]], None] = staticmethod(lambda pub: None)

    def _hand_in(self, topic: Topic, pub: Pub[Any], now: float) -> None:
        self.gave(pub)
        super()._hand_in(topic, pub, now)

    def _hand_back(self, name: str, topic: Topic, number: int, message: Any, now: float) -> None:
        self.gave(Pub(name, self._me, number, b"", message))
        super()._hand_back(name, topic, number, message, now)


class Node(Struct):
    """A process."""

    name: str
    machine: Told
    alive: bool = True
    paused: bool = False
    inbox: list[tuple[Any, ...]] = []
    timers: dict[str, int] = {}
    disk: list[bytes] = []
    # What its application wants, as it has said; how often it was started.
    wants: dict[str, bool] = {}
    starts: int = 1
    calls: int = 0
    cuts: list[Cut] = []
    # How many inputs with effects there were, and those in which it is to crash.
    inputs: int = 0
    strikes: dict[int, Strike] = {}


class Storm:
    """One run of a plan."""

    peered: type[Told] = Told

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.now = 0.0
        self.rng = Random(f"{plan.seed}/storm")
        self.peers = Peers(plan.names)
        self.order = Order(plan.guarantee, dict(plan.order), tuple(plan.topics))
        self.judge = Mourner(plan.names, ordered=plan.guarantee == "causal")
        self.marks: Counter[str] = Counter()
        self.lines: list[str] = []
        self.told = False
        self.taken = 0
        # What happens when; how many of these are more than a background timer.
        self._heap: list[tuple[float, int, bool, str, tuple[Any, ...]]] = []
        self._order = count()
        self._ahead = 0
        self._slow: dict[tuple[str, ...], float] = {}
        # What a peer has sent lately and can be lost with it, by the number of its delivery.
        self._flying: dict[str, list[tuple[float, int]]] = {}
        self._lost: set[int] = set()
        self._orphans = [fault for fault in plan.faults if isinstance(fault, Orphan)]
        self._splits = [fault for fault in plan.faults if isinstance(fault, Split)]
        # The fault by publication that one peer only gets, and by peer that is about to answer one.
        self._doomed: dict[str, Orphan] = {}
        self._answers: dict[str, Orphan] = {}
        self._snail = self.rng.choice(plan.names)
        self.nodes = {name: Node(name, self._build(name)) for name in plan.names}
        if plan.members:
            self._preset([plan.names[number] for number in plan.members])
        for name, node in self.nodes.items():
            self._carry(node, node.machine.begin(0.0))
            node.cuts = [
                each for each in plan.faults
                if isinstance(each, Cut) and plan.names[each.node] == name
            ]  # fmt: skip
            node.strikes = {
                each.input: each for each in plan.faults
                if isinstance(each, Strike) and plan.names[each.node] == name
            }  # fmt: skip
        for call in plan.calls:
            self._at(call.at, "call", call)
        for fault in plan.faults:
            if isinstance(fault, Pause):
                self._at(fault.at, "pause", plan.names[fault.node])
                self._at(fault.until, "proceed", plan.names[fault.node])
        self._at(HEALED_S, "heal")

    def _build(self, name: str) -> Told:
        machine = self.peered(name, self.peers, self.plan.options, self.order)
        machine.gave = lambda pub: self._gave(name, pub)
        return machine

    def _gave(self, name: str, pub: Pub[Any]) -> None:
        event = pub.body.event.id
        if event in self.judge.fates:
            self.judge.gave(name, event)

    def _preset(self, members: list[str]) -> None:
        machines = [node.machine for node in self.nodes.values()]
        written = cube.preset(machines, self.plan.topics, members)
        for name, records in written.items():
            self.nodes[name].disk += [each.record for each in records]
            for topic in self.plan.topics:
                self._toggle(self.nodes[name], topic)

    # What will happen.

    def _at(self, at: float, kind: str, *given: Any, background: bool = False) -> int:
        number = next(self._order)
        self._ahead += not background
        heappush(self._heap, (at, number, background, kind, given))
        return number

    def run(self) -> None:
        while not (self.now > HEALED_S and self._is_quiet()):
            if self.now > REST_S or self.taken > STEPS_MAX:
                raise Broken("L3", f"no rest: {self._unrest()}")
            self.step()
        self.finish()

    def step(self) -> None:
        self.now, number, background, kind, given = heappop(self._heap)
        self._ahead -= not background
        if number in self._lost:
            self._lost.discard(number)
            return
        getattr(self, f"_on_{kind}")(*given)

    def _is_quiet(self) -> bool:
        # Of what is ahead one thing may be the rescue, if nothing is left for it to do.
        rescue = self.now < HEALED_S + RESCUE_S
        return self._ahead <= rescue and not self._unrest()

    def _unrest(self) -> str:
        """What has still to happen; nothing if all is over."""
        living = [node for node in self.nodes.values() if node.alive]
        for node in living:
            if not node.machine.idle:
                return f"{node.name} waits: {node.machine.packed()}"
            for number, other in enumerate(self.nodes.values()):
                if other.alive == node.machine._is_dead(number):
                    return f"{node.name} holds {other.name} to be {'dead' * other.alive}"
                if other.alive and other is not node:
                    known = node.machine._life_of(number)
                    if known != other.machine.life:
                        return f"{node.name} knows {other.name} in life {known}"
        return ""

    # Happenings.

    def _on_call(self, call: Do) -> None:
        node = self.nodes[self.plan.names[call.node]]
        if not node.alive or node.paused:
            return
        if call.verb == "publish":
            self._publish(node, call.topic)
        else:
            self._toggle(node, call.topic)

    def _publish(self, node: Node, topic: str) -> None:
        node.calls += 1
        value = node.starts * 1000 + node.calls
        call = node.machine.next_call
        self._say(f"{node.name}: publish {topic}")
        # The name of a call begins again with a process; the judge must not mix them up.
        self.judge.called(node.name, "publish", topic, self._name(node, call), value)
        self._carry(node, node.machine.publish(topic, {"n": value}, self.now))

    def _name(self, node: Node, call: str) -> str:
        return f"{call}#{node.starts}" if "/publish/" in call else call

    def _toggle(self, node: Node, topic: str) -> None:
        node.calls += 1
        call = f"{node.name}/{node.starts}/{node.calls}"
        verb = "unsubscribe" if node.wants.get(topic) else "subscribe"
        node.wants[topic] = verb == "subscribe"
        self._say(f"{node.name}: {verb} {topic}")
        self.judge.called(node.name, verb, topic, call)
        self._carry(node, getattr(cast(Client, node.machine), verb)(call, [topic], self.now))

    def _on_receive(self, name: str, source: str, message: Any) -> None:
        node = self.nodes[name]
        if not node.alive:
            return
        if node.paused:
            node.inbox.append(("receive", name, source, message))
            return
        self.taken += 1
        if self.told:
            words = Wording(self.peers.names, source, name)
            body = getattr(message, "body", message)
            self._say(f"{name} receives {words(body) or body} from {source}")
        self._carry(node, node.machine.receive(source, message, self.now))

    def _on_fire(self, name: str, timer: str, token: int) -> None:
        node = self.nodes[name]
        if not node.alive or node.timers.get(timer) != token:
            return
        if node.paused:
            node.inbox.append(("fire", name, timer, token))
            return
        del node.timers[timer]
        self.taken += 1
        self._carry(node, node.machine.fire(timer, self.now))

    def _on_reply(self, name: str, topic: str, starts: int) -> None:
        node = self.nodes[name]
        if node.alive and not node.paused and node.starts == starts and node.wants.get(topic):
            self._publish(node, topic)

    def _on_pause(self, name: str) -> None:
        node = self.nodes[name]
        if node.alive:
            self._say(f"{name} stands still")
            node.paused = True

    def _on_proceed(self, name: str) -> None:
        node = self.nodes[name]
        if node.paused:
            self._say(f"{name} goes on")
            node.paused = False
            inbox, node.inbox = node.inbox, []
            for kind, *given in inbox:
                getattr(self, f"_on_{kind}")(*given)

    def _on_heal(self) -> None:
        for name, node in self.nodes.items():
            node.cuts = []
            self._on_proceed(name)
        self._orphans = []
        self._at(HEALED_S + RESCUE_S, "rescue")

    def _on_rescue(self) -> None:
        """If all that live wait for others, as a minority has to, the others come back."""
        living = [node for node in self.nodes.values() if node.alive]
        if any(node.machine._flushing and node.machine._is_minority() for node in living):
            self.marks["rescue"] += 1
            for name in self._dead():
                self._on_restart(name)

    # Death.

    def crash(self, node: Node, back: float | None) -> None:
        self._say(f"{node.name} crashes")
        node.alive, node.paused = False, False
        node.inbox, node.timers = [], {}
        self.judge.crashed(node.name)
        self.marks["crash"] += 1
        if back is not None:
            self._at(max(self.now + back, self.now), "restart", node.name)

    def _on_restart(self, name: str) -> None:
        node = self.nodes[name]
        if node.alive:
            return
        self._say(f"{name} is back")
        node.alive = True
        node.starts += 1
        node.calls = 0
        node.machine = self._build(name)
        self.judge.restarted(name)
        for record in node.disk:
            node.machine.replay(record)
        self._carry(node, node.machine.resume(self.now))
        wanted, node.wants = node.wants, {}
        for topic, wants in sorted(wanted.items()):
            if wants and node.alive:
                self._toggle(node, topic)

    def _lose(self, name: str, since: float) -> None:
        self._lost.update(number for at, number in self._flying.get(name, ()) if at >= since)

    # Effects.

    def _carry(self, node: Node, effects: list[Effect]) -> None:
        if not effects:
            return
        node.inputs += 1
        cut, limit = self._cut(node, effects)
        before = len(self.judge.fates)
        for effect in effects[:limit]:
            self._act(node, effect)
        if cut is not None:
            for kind in {*map(kind_of, effects[limit:])} - {""}:
                self.marks[f"cut {kind}"] += 1
            self._lose(node.name, self.now - cut.lost_s)
            self.crash(node, cut.back)
        elif (self._orphans or self._answers) and len(self.judge.fates) > before:
            self._orphan(node, effects)

    def _cut(self, node: Node, effects: list[Effect]) -> tuple[Cut | Strike | None, int]:
        """Why these effects are cut off, if they are, and behind how many."""
        if strike := node.strikes.pop(node.inputs, None):
            return strike, strike.effects
        for cut in node.cuts:
            if cut.at <= self.now and (not cut.kind or cut.kind in map(kind_of, effects)):
                node.cuts.remove(cut)
                return cut, int(cut.part * (len(effects) + 1))
        return None, len(effects)

    def _orphan(self, node: Node, effects: list[Effect]) -> None:
        """A publication has been launched: one that shall be orphaned, or the answer to one."""
        name = node.name
        launched = [each.event.id for each in effects if isinstance(each, Launched)]
        for fault in self._orphans:
            if self.plan.names[fault.node] == name and fault.at <= self.now:
                self._orphans.remove(fault)
                self._doomed[launched[0]] = fault
                first = next((each for each in effects if kind_of(each) == "Pub"), None)
                self._lose(name, self.now)
                if isinstance(first, Send):
                    self._fly(name, first.target, first.message)
                self.crash(node, fault.back)
                return
        if fault := self._answers.pop(name, None):
            self.crash(node, fault.back)

    def _act(self, node: Node, effect: Effect) -> None:
        kind = type(effect)
        if self.told and (line := describe(node.name, effect, self._words)):
            self._say(line)
        if isinstance(effect, Send):
            self._send(node.name, effect.target, effect.message)
        elif isinstance(effect, SetTimer):
            token = node.timers[effect.name] = next(self._order)
            at = self.now + effect.after_s
            self._at(at, "fire", node.name, effect.name, token, background=effect.background)
        elif isinstance(effect, CancelTimer):
            node.timers.pop(effect.name, None)
        elif isinstance(effect, Deliver):
            self._deliver(node, effect)
        elif isinstance(effect, Launched):
            self.judge.launched(node.name, self._name(node, effect.call), effect.event)
            self.judge.gave(node.name, effect.event.id)
        elif isinstance(effect, Answer):
            self.judge.answered(node.name, self._name(node, effect.call), effect.outcome)
        elif isinstance(effect, Persist):
            node.disk.append(effect.record)
        else:
            assert kind is Note, effect
            self._note(node, cast(Note, effect))

    def _deliver(self, node: Node, effect: Deliver) -> None:
        event = effect.event
        self.judge.delivered(node.name, event, effect.in_order)
        if event.publisher == node.name:
            return
        fault = self._doomed.pop(event.id, None)
        if fault is not None and self.now < HEALED_S:
            self._answers[node.name] = fault
            self._at(self.now, "reply", node.name, event.topic, node.starts)
        elif self.now < HEALED_S and self.rng.random() < self.plan.reply:
            self._at(self.now, "reply", node.name, event.topic, node.starts)

    def _note(self, node: Node, note: Note) -> None:
        self.marks[note.mark] += 1
        if note.mark == "life":
            self.judge.lives_on(node.name)
        elif note.mark == "suspect":
            other = self.nodes[note.detail]
            self.marks["suspect wrongly"] += other.alive

    # The network.

    def _send(self, source: str, target: str, message: Any) -> None:
        rng, plan = self.rng, self.plan
        if self.now < HEALED_S:
            if rng.random() < plan.loss or self._is_cut_off(source, target, message):
                return
            if source in self._answers and self._is_of_orphan(message):
                return
            if rng.random() < plan.double:
                self._fly(source, target, message)
        self._fly(source, target, message)

    def _is_cut_off(self, source: str, target: str, message: Any) -> bool:
        link = (self.peers.ids[source], self.peers.ids[target])
        if link in self.plan.mute and not isinstance(message, Probe):
            return True
        return any(
            each.at <= self.now < each.until and (link[0] in each.nodes) != (link[1] in each.nodes)
            for each in self._splits
        )

    def _is_of_orphan(self, message: Any) -> bool:
        """What the only receiver of an orphan would pass on of it."""
        body = getattr(message, "body", None)
        bodies = body.messages if isinstance(body, Packet) else (body,)
        return any(
            isinstance(each, Pub) and each.body.event.publisher in self._dead() for each in bodies
        )

    def _dead(self) -> list[str]:
        return [name for name, node in self.nodes.items() if not node.alive]

    def _fly(self, source: str, target: str, message: Any) -> None:
        number = self._at(
            self.now + self._delay(source, target, message), "receive", target, source, message
        )
        flying = self._flying.setdefault(source, [])
        flying.append((self.now, number))
        del flying[:-200]

    def _delay(self, source: str, target: str, message: Any) -> float:
        rng, mood = self.rng, self.plan.mood
        delay = 0.01 + rng.expovariate(20.0)
        if mood in ("links", "kinds") and self.now < HEALED_S:
            kind = type(getattr(message, "body", message)).__name__ if mood == "kinds" else ""
            lane = (source, target, kind)
            slow = self._slow.get(lane)
            if slow is None:
                slow = self._slow[lane] = rng.choice((0.0, 0.0, 0.0, 0.05, 0.15, 0.3))
            delay += slow
        elif mood == "slow" and source == self._snail and self.now < HEALED_S:
            delay += rng.choice((0.0, 0.0, 0.5, 1.0))
        return delay

    # Words.

    def _words(self, source: str, target: str) -> Wording:
        return Wording(self.peers.names, source, target)

    def _say(self, line: str) -> None:
        if self.told:
            self.lines.append(f"{self.now:7.3f} {line}")

    # The end.

    def finish(self) -> None:
        self.judge.finish()
        for topic in self.plan.topics:
            check_views(self, topic)
        for node in self.nodes.values():
            if node.alive:
                check_rest(node)


def kind_of(effect: Effect) -> str:
    """What an effect sends, if it sends something of the cube's."""
    if not isinstance(effect, Send) or not isinstance(effect.message, Frame):
        return ""
    body = effect.message.body
    return type(body.messages[0] if isinstance(body, Packet) else body).__name__
