"""Peers of a cube under schedules without time, judged as they run.

A *plan* says how many peers there are, what their applications do, and how the network chooses.
`Cube` is a pool whose steps are chosen by others (tiny.py tries them all); `Drawn` chooses itself:
each run has a *mood*, and in most of them one that keeps some links, or kinds of messages on some
links, slow for the whole run, since even choice hardly ever lets two messages overtake a third.

    python -m tests.protocols.cube.world --schedules 100000
    python -m tests.protocols.cube.world --first 17 --schedules 1 --story
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any, cast

from msgspec import Struct, structs

from inorder.core import wire
from inorder.core.effect import Answer, Deliver, Effect, Launched, Note, Persist, Send
from inorder.core.machine import Client
from inorder.guarantee.peer import Order, Peered
from inorder.protocols.cube.messages import MEMBER, SOURCE, SUB, Sub
from inorder.protocols.cube.options import Options
from inorder.protocols.cube.peers import Peers
from inorder.sim import cube
from inorder.sim.narrate import describe
from inorder.sim.pool import Op, Pool
from tests.protocols.cube.judge import Broken, Judge
from tests.protocols.cube.packets import Packets

MOODS = ("even", "links", "links", "links", "nodes", "last", "newest")


class Plan(Struct, frozen=True):
    """One run."""

    seed: int
    count: int
    window: int
    guarantee: str = "causal"
    # Members and sources from the start; what each node does, in order.
    members: tuple[int, ...] = ()
    programs: dict[int, tuple[Op, ...]] = {}
    mood: str = "even"
    doubled: int = 0
    # Options of the guarantee.
    order: dict[str, str] = {}

    @property
    def names(self) -> list[str]:
        return [f"p{number:02}" for number in range(self.count)]

    @property
    def topics(self) -> list[str]:
        named = {topic for ops in self.programs.values() for op in ops for topic in op.topics}
        return sorted(named | {"t"})


class Cube(Pool):
    """A pool of peers that a judge watches."""

    def __init__(
        self, names: Sequence[str], topics: Sequence[str], window: int = 1,
        guarantee: str = "causal", members: Sequence[str] = (), order: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        known = Peers(names)
        options = self.options(window)
        self.order = Order(guarantee, order or {}, tuple(topics))
        super().__init__(
            {name: Peered(name, known, options, self.order) for name in known.names}, ordered=False
        )
        self.judge = Judge([*known.names], ordered=guarantee == "causal")
        self.seen_marks: dict[str, int] = {}
        # How many calls each node has made: payloads and names of calls are counted by it.
        self.asked: dict[str, int] = {}
        if members:
            self.preset(topics, members)

    def options(self, window: int) -> Options:
        return Options(window=window, links="trusted")

    def preset(self, topics: Sequence[str], members: Sequence[str]) -> None:
        """Members from the start; their applications subscribe, and are answered at once."""
        cube.preset(self.machines.values(), topics, members)
        for topic in topics:
            for name in members:
                self._carry_out(name, self._do(name, Op("subscribe", (topic,))), [])

    def fork(self) -> Cube:
        other = cast(Cube, super().fork())
        other.judge = self.judge.copy()
        return other

    def peer(self, name: str) -> Peered:
        return cast(Peered, self.machines[name])

    def key(self) -> bytes:
        snapshots = self._snapshots
        for name, machine in self.machines.items():
            if name not in snapshots:
                snapshots[name] = machine.snapshot()
        flying = [
            (link, sorted(map(wire.encode, bag))) for link, bag in sorted(self.links.items()) if bag
        ]
        states = [snapshots[name] for name in self.machines]
        programs = {name: ops for name, ops in self.programs.items() if ops}
        return wire.encode([states, flying, programs, self._waiting, self.judge.key()])

    # Inputs and effects, with the judge looking on.

    def _do(self, node: str, op: Op) -> list[Effect]:
        client = cast(Client, self._machine(node))
        topic = op.topics[0]
        self.asked[node] = self.asked.get(node, 0) + 1
        if op.verb == "publish":
            value = self.asked[node]
            call = cast(Any, client).next_call
            self.judge.called(node, op.verb, topic, call, value)
            effects = client.publish(topic, {"n": value}, 0.0)
        else:
            call = f"{node}/{self.asked[node]}"
            self.judge.called(node, op.verb, topic, call)
            verb = client.subscribe if op.verb == "subscribe" else client.unsubscribe
            effects = verb(call, [topic], 0.0)
        if op.wait:
            self._waiting[node] = call
        return effects

    def _act(self, node: str, effect: Effect) -> None:
        kind = type(effect)
        if kind is Send:
            self._send(node, effect.target, effect.message)  # type: ignore[union-attr]
        elif isinstance(effect, Deliver):
            self.judge.delivered(node, effect.event, effect.in_order)
        elif isinstance(effect, Launched):
            if self._waiting.get(node) == effect.call:
                self._waiting[node] = effect.event.id
            self.judge.launched(node, effect.call, effect.event)
        elif isinstance(effect, Answer):
            self.judge.answered(node, effect.call, effect.outcome)
            if self._waiting.get(node) == effect.call:
                del self._waiting[node]
        elif isinstance(effect, Note):
            self.seen_marks[effect.mark] = self.seen_marks.get(effect.mark, 0) + 1
        else:
            assert isinstance(effect, Persist), effect

    def _send(self, node: str, target: str, message: Any) -> None:
        link = (node, target)
        self.links[link] = (*self.links.get(link, ()), message)

    # The end.

    def finish(self) -> None:
        """Nothing is in flight: what must hold then (L1 to L5, L7)."""
        self.judge.finish()
        assert not self._waiting
        for topic in self.order.topics:
            self._check_views(topic)
        for name, machine in self.machines.items():
            self._check_rest(name, cast(Peered, machine))

    def _check_views(self, topic: str) -> None:
        """L4: everybody who is in knows the same, and that is the truth."""
        roles = {MEMBER: 0, SOURCE: 0}
        inside = []
        for number, machine in enumerate(self.machines.values()):
            known = cast(Peered, machine)._topics.get(topic)
            if known is not None and known.phase == "in":
                roles[known.role] |= 1 << number
                inside.append((cast(Peered, machine).name, known))
        for name, known in inside:
            seen = {MEMBER: known.members, SOURCE: known.sources}
            if seen != roles:
                raise Broken("L4", f"{name} sees {seen} of {topic}, true is {roles}")
        members = {name for name, known in inside if known.role == MEMBER}
        if members != self.judge.members(topic):
            raise Broken("L4", f"{members} are in, told so are {self.judge.members(topic)}")

    def _check_rest(self, name: str, peer: Peered) -> None:
        if not peer.idle or peer._trees._waves or peer._trees._withheld:
            raise Broken("L3", f"{name} still waits: {peer._trees.packed()}")
        if getattr(peer.inner, "waiting", 0):
            raise Broken("L2", f"{name} holds events back")
        for topic, known in peer._topics.items():
            if known.calls or known.early or known.ahead or known.outstanding:
                raise Broken("L7", f"{name} keeps something of {topic}: {known.packed()}")
            if known.phase not in ("out", "in"):
                raise Broken("L3", f"{name} is for ever in {known.phase}")
            left = (known.members, known.sources, known.begun, *known.packed().tables)
            if known.phase == "out" and any(left):
                raise Broken("L7", f"{name} has left {topic} and keeps {left}")


class Drawn(Cube):
    """A random schedule of a plan."""

    def __init__(self, plan: Plan) -> None:
        names = plan.names
        members = [names[number] for number in plan.members]
        super().__init__(names, plan.topics, plan.window, plan.guarantee, members, plan.order)
        self.packets = Packets(names, self.judge, plan.doubled > 0, not plan.order)
        for topic in plan.topics:
            for name in members:
                self.packets.preset(name, topic)
        self.rng = Random(f"{plan.seed}/schedule")
        self.mood = plan.mood
        self.plan = plan
        self.told = False
        self.lines: list[str] = []
        self.taken = 0
        # What may happen next: how slow it is, then a message, or a node that goes on. A packet
        # that the network has doubled says which membership of its receiver's it has come to first.
        self.flight: list[tuple[float, str, str, Any, int]] = []
        self._slow: dict[tuple[str, ...], float] = {}
        self._later = self.rng.choice(names)
        self._doubles = plan.doubled
        for number, ops in plan.programs.items():
            self.programs[names[number]] = ops
            self._go_on(names[number])

    # What may happen.

    def _go_on(self, node: str) -> None:
        if self.programs.get(node) and node not in self._waiting:
            self.flight.append((self.rng.random(), "", node, None, -1))

    def _send(self, node: str, target: str, message: Any) -> None:
        self.packets.sent(node, target, message)
        self._fly(node, target, message)

    def _fly(self, node: str, target: str, message: Any, late: int = -1) -> None:
        self.flight.append((self._speed(node, target, message), node, target, message, late))

    def _speed(self, node: str, target: str, message: Any) -> float:
        if self.mood == "links":
            lane: tuple[str, ...] = (node, target, type(message).__name__)
        elif self.mood == "nodes":
            lane = (target,)
        else:
            return float(self.mood == "last" and target == self._later)
        speed = self._slow.get(lane)
        if speed is None:
            speed = self._slow[lane] = self.rng.random()
        return speed

    def _change(self, node: str, topic: str) -> int:
        known = self.peer(node)._topics.get(topic)
        return 0 if known is None else known.change

    def _is_harmless(self, node: str, sub: Sub, change: int) -> bool:
        """Trusted links must not double a `Sub` that comes to another membership than the first
        copy, or is passed on again: see the test of that limit in test_schedules.py."""
        same = self._change(node, sub.topic) == change
        waves = self.peer(node)._trees._waves
        return same and (not sub.to or (SUB, sub.topic, sub.source, sub.change) in waves)

    def _choose(self) -> int:
        rng, flight = self.rng, self.flight
        mood = self.mood
        if mood == "even" or len(flight) == 1 or rng.random() < 0.05:
            return int(rng.random() * len(flight))
        if mood == "newest":
            return len(flight) - 1 if rng.random() < 0.8 else int(rng.random() * len(flight))
        if mood == "last":
            fast = [place for place, each in enumerate(flight) if each[0] < 1.0]
            return rng.choice(fast) if fast else int(rng.random() * len(flight))
        return min(range(len(flight)), key=[each[0] for each in flight].__getitem__)

    def run(self) -> None:
        while self.flight:
            self.step()
        self.finish()

    def step(self) -> None:
        place = self._choose()
        _, source, node, message, late = self.flight[place]
        self.flight[place] = self.flight[-1]
        self.flight.pop()
        self.taken += 1
        if message is None:
            op, self.programs[node] = self.programs[node][0], self.programs[node][1:]
            self._say(node, f"{node}: {op.verb} {op.topics[0]}")
            self._carry(node, self._do(node, op))
            self._go_on(node)
            return
        if late >= 0 and type(message) is Sub and not self._is_harmless(node, message, late):
            return
        self.packets.received(node, source, message)
        if self.told:
            self.lines.append(f"{node} receives {self.tell(source, node, message)} from {source}")
        if self._doubles and self.rng.random() < 0.05:
            self._doubles -= 1
            self._fly(source, node, message, self._change(node, message.topic))
            self._say(node, "(and will again)")
        waited = node in self._waiting
        self._carry(node, self.machines[node].receive(source, message, 0.0))
        if waited:
            self._go_on(node)

    def _carry(self, node: str, effects: list[Effect]) -> None:
        for effect in effects:
            if type(effect) is Launched:
                self.packets.launch(node, effect.event.topic, effect.event.id)
            if self.told and (line := describe(node, effect, self._words)):
                self.lines.append(line)
            self._act(node, effect)

    def _say(self, node: str, line: str) -> None:
        if self.told:
            self.lines.append(line)

    def finish(self) -> None:
        super().finish()
        self.packets.finish()


# Plans.


def draw(
    seed: int, *, counts: Sequence[int] = (), window: int = 0, guarantee: str = "causal"
) -> Plan:
    """A plan of the seed: churn of many, or a few who talk while others come and go."""
    rng = Random(f"{seed}/plan")
    count = rng.choice(counts or (1, 2, 3, 4, 4, 5, 6, 7, 8, 8, 9, 12, 16))
    members = [number for number in range(count) if rng.random() < rng.choice((0.2, 0.5, 0.8))]
    topics = ("t",) if rng.random() < 0.85 else ("t", "u")
    active = rng.sample(range(count), min(count, rng.randint(2, 6)))
    pure = rng.random() < 0.4
    patient = rng.choice((0.0, 0.3, 0.9))
    held = {(number, topic) for number in members for topic in topics}
    programs: dict[int, list[Op]] = {}
    for _ in range(rng.randint(4, 14)):
        node, topic = rng.choice(active), rng.choice(topics)
        inside = (node, topic) in held
        if rng.random() < 0.6 and (inside or pure):
            verb: Any = "publish"
        elif inside:
            verb = "unsubscribe"
            held.discard((node, topic))
        else:
            verb = "subscribe"
            held.add((node, topic))
        programs.setdefault(node, []).append(Op(verb, (topic,), wait=rng.random() < patient))
    return Plan(
        seed, count, window or rng.choice((1, 1, 2, 3, 4)), guarantee, tuple(members),
        {node: tuple(ops) for node, ops in sorted(programs.items())},
        rng.choice(MOODS), rng.choice((0, 0, 1, 2)),
    )  # fmt: skip


def run(plan: Plan) -> Drawn:
    """One schedule, judged; raises `Broken`."""
    drawn = Drawn(plan)
    drawn.run()
    return drawn


def broken(plan: Plan) -> str:
    """Which property a plan breaks, or nothing; anything else that is raised is `machine`."""
    try:
        run(plan)
    except Broken as error:
        return error.what
    except Exception:
        return "machine"
    return ""


def shrunk(plan: Plan) -> Plan:
    """A plan with fewer calls that breaks the same."""
    what = broken(plan)
    smaller = True
    while smaller:
        smaller = False
        for node, ops in plan.programs.items():
            for place in range(len(ops)):
                rest = {**plan.programs, node: ops[:place] + ops[place + 1 :]}
                less = structs.replace(plan, programs=rest)
                if broken(less) == what:
                    plan, smaller = less, True
                    break
            if smaller:
                break
    return plan


def story(plan: Plan) -> list[str]:
    """What happens in a run, and how it ends."""
    drawn = Drawn(plan)
    drawn.told = True
    try:
        drawn.run()
    except Exception as error:
        drawn.lines.append(f"{type(error).__name__}: {error}")
    return drawn.lines


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--schedules", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--guarantee", default="causal")
    parser.add_argument("--story", action="store_true")
    asked = parser.parse_args()
    started = time.process_time()
    steps = 0
    marks: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for seed in range(asked.first, asked.first + asked.schedules):
        plan = draw(seed, guarantee=asked.guarantee)
        try:
            drawn = run(plan)
        except Exception as error:
            plan = shrunk(plan)
            print(f"seed {seed}: {type(error).__name__}: {error}", plan, *story(plan), sep="\n")
            return 1
        steps += drawn.taken
        marks.update(drawn.seen_marks)
        counts.update(drawn.packets.counts)
        if asked.story:
            print(plan, *story(plan), sep="\n")
    print(f"{asked.schedules} schedules, {steps} steps, {time.process_time() - started:.0f} s")
    print(dict(marks), dict(counts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
