"""A world without time: somebody else chooses what happens next.

The timed world draws delays; here every message in flight is a choice. Scripts choose by hand, the
exhaustive explorer tries every choice. Diffused messages may overtake each other. Those from one
machine to another keep their order, unless the pool is not `ordered`: then sessions are put to the
test as well.

A pool can be forked cheaply: machines are shared until one of them takes a step, then copied
through `snapshot` and `restore`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, Self, cast

from msgspec import Struct

from inorder.core import wire
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
from inorder.core.event import Scalar
from inorder.core.machine import Client, Durable, Machine, call_of
from inorder.sim.narrate import Words, brief, describe
from inorder.sim.wording import Wording

Link = tuple[str, str]


class Op(Struct, frozen=True):
    """Something an application does; it does one thing after the other."""

    verb: Literal["publish", "subscribe", "unsubscribe"]
    topics: tuple[str, ...]
    value: dict[str, Scalar] = {}
    # Wait for the answer before the next thing. Changes of a subscription always wait.
    wait: bool = False


class Step(Struct, frozen=True, order=True):
    """One choice. `index` picks among the messages of a link that may come next."""

    kind: Literal["do", "join", "receive", "fire"]
    node: str
    source: str = ""
    index: int = 0
    diffused: bool = False


class Pool:
    """Machines, what is in flight between them, and what they have done."""

    def __init__(self, machines: dict[str, Machine], ordered: bool = True) -> None:
        self.machines = dict(machines)
        self.ordered = ordered
        self.programs: dict[str, tuple[Op, ...]] = {}
        self.links: dict[Link, tuple[Any, ...]] = {}
        self.diffused: dict[Link, tuple[Any, ...]] = {}
        self.joining: tuple[Link, ...] = ()
        self.members: dict[str, tuple[str, ...]] = {}
        self.timers: dict[str, tuple[str, ...]] = {}
        self.disks: dict[str, tuple[bytes, ...]] = {}
        # What happened: deliveries per node, then publications and subscription changes with the
        # number of deliveries their node had made. Histories must be part of the state.
        self.delivered: dict[str, tuple[tuple[str, bool], ...]] = {}
        self.done: tuple[tuple[str, str, str, int], ...] = ()
        self.marks: tuple[str, ...] = ()
        self._waiting: dict[str, str] = {}
        # What machines are told of time: it stands still unless somebody moves it.
        self.now = 0.0
        self._calls = 0
        self._shared: set[str] = set()
        self._snapshots: dict[str, bytes] = {}

    def fork(self) -> Self:
        """A copy that may go another way; machines are copied when they take a step."""
        other = self.__class__.__new__(self.__class__)
        for name, value in self.__dict__.items():
            other.__dict__[name] = dict(value) if isinstance(value, dict) else value
        other._shared = set(self.machines)
        self._shared = set(self.machines)
        return other

    def key(self) -> bytes:
        """Equal keys mean equal futures and equal pasts (as far as judges look)."""
        snapshots = self._snapshots
        for name, machine in self.machines.items():
            if name not in snapshots:
                snapshots[name] = machine.snapshot()
        flying = {
            "->".join(link): bag if self.ordered else sorted(map(wire.encode, bag))
            for link, bag in self.links.items()
            if bag
        }
        bags = {
            "->".join(link): sorted(wire.encode(message) for message in bag)
            for link, bag in self.diffused.items()
            if bag
        }
        rest = [self.programs, flying, bags, sorted(self.joining), self.members, self.timers]
        past = [self.delivered, self.done, self._waiting]
        states = [snapshots[name] for name in self.machines]
        return wire.encode([states, rest, past])

    # What may happen next.

    def steps(self, timer_may_fire: Callable[[str], bool] = lambda timer: True) -> list[Step]:
        """Every choice there is, in a fixed order."""
        found = [
            Step("do", node)
            for node, program in self.programs.items()
            if program and node not in self._waiting
        ]
        found += [Step("join", node, source=topic) for node, topic in self.joining]
        for (source, node), queue in self.links.items():
            if queue:
                places = [0] if self.ordered else _distinct(queue)
                found += [Step("receive", node, source, place) for place in places]
        for (source, node), bag in self.diffused.items():
            found += [Step("receive", node, source, place, True) for place in _distinct(bag)]
        for node, timers in self.timers.items():
            found += [Step("fire", node, source=name) for name in timers if timer_may_fire(name)]
        return sorted(found)

    def take(self, step: Step, crash_after: int | None = None) -> list[str]:
        """Let it happen; returns what could be seen. `crash_after` cuts the node's effects."""
        lines: list[str] = []
        effects = self._input(step, lines)
        self._carry_out(step.node, effects, lines, crash_after)
        return lines

    def crash(self, node: str) -> None:
        """Memory is gone: timers, memberships and half-done calls with it."""
        self.timers.pop(node, None)
        self._waiting.pop(node, None)
        self.joining = tuple(pair for pair in self.joining if pair[0] != node)
        for topic, names in self.members.items():
            self.members[topic] = tuple(name for name in names if name != node)

    def restart(self, node: str, machine: Machine) -> list[str]:
        self.machines[node] = machine
        self._touch(node)
        lines: list[str] = []
        if isinstance(machine, Durable):
            for record in self.disks.get(node, ()):
                machine.replay(record)
            self._carry_out(node, machine.resume(self.now), lines)
        return lines

    def begin(self, node: str, effects: list[Effect]) -> None:
        """What a machine does when its process begins."""
        self._carry_out(node, effects, [])

    def lose(self, source: str, node: str, index: int = 0) -> str:
        """Drop a message in flight: the point-to-point ones first, then the diffused."""
        return f"lost {self.tell(source, node, self._pull(source, node, index))}"

    def double(self, source: str, node: str, index: int = 0) -> str:
        message = self._pull(source, node, index)
        link = (source, node)
        self.diffused[link] = (*self.diffused.get(link, ()), message, message)
        return f"doubled {self.tell(source, node, message)}"

    def perform(self, node: str, op: Op) -> list[str]:
        """An application acts at once, outside any program."""
        lines: list[str] = []
        self._carry_out(node, self._do(node, op), lines)
        return lines

    # Words.

    def tell(self, source: str, target: str, message: Any) -> str:
        return brief(message, self._words(source, target))

    def _words(self, source: str, target: str) -> Words:
        """Peers of a cube call each other by numbers, people call them by their names."""
        peers = getattr(self.machines.get(source), "peers", None)
        return Wording(peers.names, source, target) if peers else lambda value: None

    # Inputs.

    def _input(self, step: Step, lines: list[str]) -> list[Effect]:
        node = step.node
        if step.kind == "do":
            op, self.programs[node] = self.programs[node][0], self.programs[node][1:]
            lines.append(f"{node}: {op.verb} {' '.join(op.topics)}")
            return self._do(node, op)
        machine = self._machine(node)
        if step.kind == "join":
            pair = (node, step.source)
            self.joining = tuple(item for item in self.joining if item != pair)
            self.members[step.source] = tuple(sorted({*self.members.get(step.source, ()), node}))
            lines.append(f"{node} has joined {step.source}")
            return cast(Client, machine).joined(step.source, self.now)
        if step.kind == "fire":
            self._forget_timer(node, step.source)
            lines.append(f"{node} timer {step.source}")
            return machine.fire(step.source, self.now)
        table = self.diffused if step.diffused else self.links
        queue = table[(step.source, node)]
        message = queue[step.index]
        table[(step.source, node)] = queue[: step.index] + queue[step.index + 1 :]
        lines.append(f"{node} receives {self.tell(step.source, node, message)} from {step.source}")
        return machine.receive(step.source, message, self.now)

    def _do(self, node: str, op: Op) -> list[Effect]:
        client = cast(Client, self._machine(node))
        position = len(self.delivered.get(node, ()))
        if op.verb == "publish":
            call = call_of(node, client)
            effects = client.publish(op.topics[0], op.value, self.now)
            if ":" in call:
                self.done = (*self.done, ("publish", call, op.topics[0], position))
        else:
            self._calls += 1
            call = f"{node}/{self._calls}"
            verb = client.subscribe if op.verb == "subscribe" else client.unsubscribe
            effects = verb(call, op.topics, self.now)
            if op.verb == "unsubscribe":
                self.done = (*self.done, ("unsubscribe", node, " ".join(op.topics), position))
        if op.wait or op.verb != "publish":
            self._waiting[node] = f"{call} {op.verb} {' '.join(op.topics)}"
        return effects

    # Effects.

    def _carry_out(
        self, node: str, effects: list[Effect], lines: list[str], crash_after: int | None = None
    ) -> None:
        for number, effect in enumerate(effects):
            if number == crash_after:
                break
            self._act(node, effect)
            if line := describe(node, effect, self._words):
                lines.append(line)
        if crash_after is not None:
            lines.append(f"{node} crashes")
            self.crash(node)

    def _act(self, node: str, effect: Effect) -> None:
        if isinstance(effect, Send):
            link = (node, effect.target)
            self.links[link] = (*self.links.get(link, ()), effect.message)
        elif isinstance(effect, Diffuse):
            for target in self.members.get(effect.topic, ()):
                link = (node, target)
                self.diffused[link] = (*self.diffused.get(link, ()), effect.message)
        elif isinstance(effect, Deliver):
            log = self.delivered.get(node, ())
            self.delivered[node] = (*log, (effect.event.id, effect.in_order))
        elif isinstance(effect, Persist):
            self.disks[node] = (*self.disks.get(node, ()), effect.record)
        elif isinstance(effect, SetTimer):
            self.timers[node] = tuple(sorted({*self.timers.get(node, ()), effect.name}))
        elif isinstance(effect, CancelTimer):
            self._forget_timer(node, effect.name)
        elif isinstance(effect, Join):
            self.joining = (*self.joining, (node, effect.topic))
        elif isinstance(effect, Leave):
            self.joining = tuple(pair for pair in self.joining if pair != (node, effect.topic))
            names = self.members.get(effect.topic, ())
            self.members[effect.topic] = tuple(name for name in names if name != node)
        elif isinstance(effect, Launched):
            self._launched(node, effect)
        elif isinstance(effect, Answer):
            self._answer(node, effect)
        else:
            assert isinstance(effect, Note), effect
            self.marks = (*self.marks, effect.mark)

    def _launched(self, node: str, effect: Launched) -> None:
        """A publication is made when it is launched: that is when it has seen what it has."""
        event = effect.event
        position = len(self.delivered.get(node, ()))
        self.done = (*self.done, ("publish", event.id, event.topic, position))
        call, _, what = self._waiting.get(node, "").partition(" ")
        if call == effect.call:
            self._waiting[node] = f"{event.id} {what}"

    def _answer(self, node: str, effect: Answer) -> None:
        position = len(self.delivered.get(node, ()))
        waiting = self._waiting.get(node, "")
        call, _, what = waiting.partition(" ")
        if call == effect.call:
            del self._waiting[node]
            verb, _, topics = what.partition(" ")
            if verb == "subscribe":
                self.done = (*self.done, ("subscribe", node, topics, position))
        if ":" in effect.call:
            self.done = (*self.done, (effect.outcome, effect.call, "", position))

    def _machine(self, node: str) -> Machine:
        machine = self.machines[node]
        if node in self._shared:
            snapshot = self._snapshots.get(node) or machine.snapshot()
            machine = self.machines[node] = type(machine).restore(snapshot)
        self._touch(node)
        return machine

    def _touch(self, node: str) -> None:
        self._shared.discard(node)
        self._snapshots.pop(node, None)

    def _forget_timer(self, node: str, timer: str) -> None:
        self.timers[node] = tuple(name for name in self.timers.get(node, ()) if name != timer)

    def _pull(self, source: str, node: str, index: int) -> Any:
        link = (source, node)
        queue = self.links.get(link, ())
        table = self.links if index < len(queue) else self.diffused
        index = index if table is self.links else index - len(queue)
        queue = table[link]
        table[link] = queue[:index] + queue[index + 1 :]
        return queue[index]


def _distinct(bag: tuple[Any, ...]) -> list[int]:
    """The places of messages that differ: equal ones are one choice."""
    if len(bag) == 1:
        return [0]
    places: dict[bytes, int] = {}
    for place, message in enumerate(bag):
        places.setdefault(wire.encode(message), place)
    return [*places.values()]


def program(*ops: Iterable[str] | Op) -> tuple[Op, ...]:
    """Short spelling: `program(("publish", "t1"), ("subscribe", "t1", "t2"))`."""
    made: list[Op] = []
    for op in ops:
        if isinstance(op, Op):
            made.append(op)
        else:
            verb, *topics = op
            made.append(Op(cast(Any, verb), tuple(topics)))
    return tuple(made)
