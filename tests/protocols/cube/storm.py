"""Peers of a cube that crash, stand still and answer late, under drawn schedules with time.

A *plan* says who does what and when, and who dies how: a `Cut` strikes a node in the first input
from some time on whose effects send a message of some kind, and cuts these effects at any place.
What was just sent may be lost with it. An `Orphan` is the worst case: a publication reaches one
peer only, which answers it; then both die. Everything is judged by mourner.py as it happens.

    python -m tests.protocols.cube.storm --schedules 1000
    python -m tests.protocols.cube.storm --first 17 --schedules 1 --story
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any, Literal, cast

from msgspec import Struct, structs

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
from inorder.protocols.cube.messages import MEMBER, SOURCE, Packet, Probe, Pub
from inorder.protocols.cube.options import Options
from inorder.protocols.cube.peers import Peers
from inorder.protocols.cube.topic import Topic
from inorder.protocols.session.messages import Frame
from inorder.sim import cube
from inorder.sim.narrate import describe
from inorder.sim.wording import Wording
from tests.protocols.cube.judge import Broken
from tests.protocols.cube.mourner import Mourner

# What a cut may wait for: the first input whose effects send one of these. "" is any input.
KINDS = ("Sub", "Act", "Uns", "Pub", "Ack", "Flush", "Kept", "")
MOODS = ("even", "links", "links", "kinds", "slow")

# Virtual seconds: faults are over, and then everything must come to rest.
HEALED_S = 9.0
RESCUE_S = 15.0
REST_S = 60.0
STEPS_MAX = 40_000


class Do(Struct, frozen=True):
    """What an application does; `toggle` joins or leaves."""

    at: float
    node: int
    verb: Literal["publish", "toggle"]
    topic: str = "t"


class Cut(Struct, frozen=True):
    """A crash. `part` of the effects happen; back after a while, or never; what it sent within the
    last `lost_s` seconds is lost."""

    at: float
    node: int
    kind: str
    part: float
    back: float | None
    lost_s: float = 0.0


class Strike(Struct, frozen=True):
    """A crash in the input of a node that has this number, behind so many effects."""

    node: int
    input: int
    effects: int
    back: float | None
    lost_s: float = 0.0


class Pause(Struct, frozen=True):
    """A process stands still."""

    at: float
    node: int
    until: float


class Split(Struct, frozen=True):
    """Some hear nothing of the others for a while, nor these of them."""

    at: float
    until: float
    nodes: tuple[int, ...]


class Orphan(Struct, frozen=True):
    """The first publication of a node from some time on reaches one peer only; that one answers,
    and when the answer has left both are dead. They come back, or not."""

    at: float
    node: int
    back: float | None


Fault = Cut | Strike | Pause | Split | Orphan


class Plan(Struct, frozen=True):
    """One run."""

    seed: int
    count: int
    window: int = 2
    members: tuple[int, ...] = ()
    calls: tuple[Do, ...] = ()
    faults: tuple[Fault, ...] = ()
    mood: str = "even"
    loss: float = 0.0
    double: float = 0.0
    reply: float = 0.0
    guarantee: str = "causal"
    order: dict[str, str] = {}
    aggregate: Any = "none"
    watch: Any = "cube"
    # Links that lose all but the detector's words, until the faults are over.
    mute: tuple[tuple[int, int], ...] = ()

    @property
    def names(self) -> list[str]:
        return [f"p{number:02}" for number in range(self.count)]

    @property
    def topics(self) -> list[str]:
        return sorted({"t", *(call.topic for call in self.calls)})

    @property
    def options(self) -> Options:
        return Options(
            window=self.window, resend=0.2, detection=True, round=0.5, test_timeout=0.45,
            declare_after=2.5, aggregate=self.aggregate, watch=self.watch,
        )  # fmt: skip


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
            self._check_views(topic)
        for node in self.nodes.values():
            if node.alive:
                self._check_rest(node)

    def _check_views(self, topic: str) -> None:
        """L4: all that live and are in have the same view, and it is true."""
        roles = {MEMBER: 0, SOURCE: 0}
        inside = []
        for number, node in enumerate(self.nodes.values()):
            known = node.machine._topics.get(topic)
            if node.alive and known is not None and known.phase == "in":
                roles[known.role] |= 1 << number
                inside.append((node.name, known))
        for name, known in inside:
            seen = {MEMBER: known.members, SOURCE: known.sources}
            if seen != roles:
                raise Broken("L4", f"{name} sees {seen} of {topic}, true is {roles}")
        members = {name for name, known in inside if known.role == MEMBER}
        wanting = {
            name for name, node in self.nodes.items() if node.alive and node.wants.get(topic)
        }
        if members != wanting or members != self.judge.members(topic):
            told = self.judge.members(topic)
            raise Broken("L4", f"{members} are in, told so are {told}, {wanting} want to be")

    def _check_rest(self, node: Node) -> None:
        peer = node.machine
        if peer._trees._waves or peer._trees._later or peer._trees._withheld:
            raise Broken("L3", f"{node.name} still waits: {peer._trees.packed()}")
        if getattr(peer.inner, "waiting", 0):
            raise Broken("L2", f"{node.name} holds events back")
        for topic, known in peer._topics.items():
            if known.calls or known.early or known.ahead or known.outstanding:
                raise Broken("L7", f"{node.name} keeps something of {topic}: {known.packed()}")
            if known.phase not in ("out", "in"):
                raise Broken("L3", f"{node.name} is for ever in {known.phase}")
            remains = known.remains
            if remains.dying or remains.unacked or remains.gap:
                raise Broken("L7", f"{node.name} has not done with {topic}: {remains.packed()}")


def kind_of(effect: Effect) -> str:
    """What an effect sends, if it sends something of the cube's."""
    if not isinstance(effect, Send) or not isinstance(effect.message, Frame):
        return ""
    body = effect.message.body
    return type(body.messages[0] if isinstance(body, Packet) else body).__name__


# Plans.


def draw(seed: int, **given: Any) -> Plan:
    """The plan of a seed."""
    rng = Random(f"{seed}/plan")
    size = given.pop("count", 0) or rng.choice((3, 4, 5, 6, 7, 8, 8, 8, 9, 11, 13, 16))
    share = rng.choice((0.4, 0.7, 1.0))
    members = tuple(number for number in range(size) if rng.random() < share)
    topics = ("t",) if rng.random() < 0.8 else ("t", "u")
    busy = rng.random() < 0.5
    calls = []
    for _ in range(rng.randint(6, 24)):
        # Many calls at nearly the same time, or spread over the run.
        at = rng.choice((1.0, 2.0, 4.0)) + rng.random() * 0.3 if busy else rng.uniform(0.0, 7.0)
        verb: Any = "publish" if rng.random() < 0.7 else "toggle"
        calls.append(Do(at, rng.randrange(size), verb, rng.choice(topics)))
    drawn = faults(rng, size, members)
    calls += [Do(each.at, each.node, "publish") for each in drawn if isinstance(each, Orphan)]
    plan = Plan(
        seed, size, rng.choice((1, 2, 3)), members, tuple(sorted(calls, key=lambda each: each.at)),
        drawn, rng.choice(MOODS), rng.choice((0.0, 0.0, 0.03, 0.1)), rng.choice((0.0, 0.1)),
        rng.choice((0.0, 0.1, 0.3)),
    )  # fmt: skip
    return structs.replace(plan, **given)


def faults(rng: Random, size: int, members: tuple[int, ...]) -> tuple[Fault, ...]:
    """Cuts, pauses and orphans; those that never come back are a minority."""
    drawn: list[Fault] = []
    mortal = rng.sample(range(size), (size - 1) // 2)
    for _ in range(rng.randint(1, 4)):
        node = rng.randrange(size)
        back = rng.choice((0.0, 0.3, 1.5, 4.0, 6.0))
        for_good = node in mortal and rng.random() < 0.5
        lost_s = rng.choice((0.0, 0.0, 0.2, 1.0))
        at = rng.uniform(0.0, 6.0)
        drawn.append(
            Cut(at, node, rng.choice(KINDS), rng.random(), None if for_good else back, lost_s)
        )
    for _ in range(rng.choice((0, 0, 1, 2))):
        at = rng.uniform(0.0, 6.0)
        drawn.append(Pause(at, rng.randrange(size), at + rng.choice((0.7, 1.5, 3.0, 5.0))))
    if size > 2 and rng.random() < 0.15:
        apart = tuple(sorted(rng.sample(range(size), rng.randint(1, size // 2))))
        at = rng.uniform(0.5, 4.0)
        drawn.append(Split(at, at + rng.choice((1.0, 4.0, 6.0)), apart))
    if len(members) > 3 and rng.random() < 0.5:
        drawn.append(Orphan(rng.uniform(0.5, 5.0), rng.choice(members), rng.choice((4.0, 6.0))))
    return tuple(drawn)


def neighbours(plan: Plan) -> Plan:
    """The same over edges of the cube only."""
    return structs.replace(plan, watch="neighbours")


def clocks(plan: Plan) -> Plan:
    """The thesis's chapter 4: members never change, stamps are clocks, and they are bundled by."""
    calls = tuple(call for call in plan.calls if call.verb == "publish")
    return structs.replace(
        plan, calls=calls, members=tuple(range(plan.count)), order={"stamps": "clock"},
        aggregate="causal",
    )  # fmt: skip


def run(plan: Plan, storm: type[Storm] = Storm) -> Storm:
    """One schedule, judged; raises `Broken`."""
    made = storm(plan)
    made.run()
    return made


def broken(plan: Plan, storm: type[Storm] = Storm) -> str:
    """Which property a plan breaks, or nothing; anything else that is raised is `machine`."""
    try:
        run(plan, storm)
    except Broken as error:
        return error.what
    except Exception:
        return "machine"
    return ""


def shrunk(plan: Plan) -> Plan:
    """A plan with fewer calls and faults that breaks the same."""
    what = broken(plan)
    smaller = True
    while smaller:
        smaller = False
        for field in ("faults", "calls"):
            several = getattr(plan, field)
            for place in range(len(several)):
                rest = several[:place] + several[place + 1 :]
                less = structs.replace(plan, **{field: rest})
                if broken(less) == what:
                    plan, smaller = less, True
                    break
            if smaller:
                break
    return plan


def story(plan: Plan) -> list[str]:
    """What happens in a run, and how it ends."""
    made = Storm(plan)
    made.told = True
    try:
        made.run()
    except Exception as error:
        made.lines.append(f"{type(error).__name__}: {error}")
    return made.lines


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--schedules", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--neighbours", action="store_true", help="edges of the cube only")
    parser.add_argument("--clocks", action="store_true", help="chapter 4: members never change")
    parser.add_argument("--story", action="store_true")
    parser.add_argument("--go-on", action="store_true", help="count what breaks, tell no story")
    asked = parser.parse_args()
    started = time.process_time()
    marks: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    steps = 0
    for seed in range(asked.first, asked.first + asked.schedules):
        plan = draw(seed)
        if asked.neighbours:
            plan = neighbours(plan)
        if asked.clocks:
            plan = clocks(plan)
        made = Storm(plan)
        try:
            made.run()
        except Exception as error:
            if asked.go_on:
                wrong[type(error).__name__ + getattr(error, "what", "")] += 1
                print(f"seed {seed}: {type(error).__name__}: {str(error)[:300]}")
                continue
            plan = shrunk(plan)
            print(f"seed {seed}: {type(error).__name__}: {error}", *story(plan), plan, sep="\n")
            return 1
        steps += made.taken
        marks.update(made.marks)
        if asked.story:
            print(plan, *story(plan), sep="\n")
    print(f"{asked.schedules} schedules, {steps} steps, {time.process_time() - started:.0f} s")
    print(dict(sorted(marks.items())), dict(wrong))
    return 0


if __name__ == "__main__":
    sys.exit(main())
