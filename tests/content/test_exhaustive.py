"""Every interleaving of small networks: two updates and three events, two or three brokers.

The search is the simulator's (sim/exhaust.py); the links are those of network.py. An event that
matches every version must be handed over exactly once whatever the order, one that matches none
never, and at the end everything is installed.
"""

from __future__ import annotations

from typing import Any, Self

import pytest

from inorder.content.client import Handed
from inorder.core import wire
from inorder.core.effect import Send
from inorder.sim.exhaust import exhaust
from tests.content.network import Network
from tests.content.test_mutants import partial_update, withdraw_then_send

Step = tuple[str, ...]


class Choices:
    """What may happen next in a network: an application's next act, or a link's next message."""

    def __init__(self, net: Network, programs: dict[str, list[tuple[Any, ...]]]) -> None:
        self.machines: dict[str, Any] = {**net.brokers, **net.clients}
        self.snapshots = {name: one.snapshot() for name, one in self.machines.items()}
        self.shared = set(self.machines)
        self.queues: dict[tuple[str, str], tuple[Any, ...]] = {}
        self.programs = {name: tuple(acts) for name, acts in programs.items()}
        self.handed: tuple[tuple[str, str, int], ...] = ()

    def fork(self) -> Self:
        other = self.__class__.__new__(self.__class__)
        for name, value in self.__dict__.items():
            other.__dict__[name] = dict(value) if isinstance(value, dict) else value
        other.shared = self.shared = set(self.machines)
        return other

    def key(self) -> bytes:
        flying = {"->".join(link): queue for link, queue in self.queues.items() if queue}
        states = [self._snapshot(name) for name in self.machines]
        left = {name: len(acts) for name, acts in self.programs.items()}
        return wire.encode([states, flying, left, sorted(self.handed)])

    def steps(self, timer_may_fire: Any = None) -> list[Step]:
        acts = [(name,) for name, program in self.programs.items() if program]
        return [*acts, *(link for link, queue in self.queues.items() if queue)]

    def take(self, step: Step) -> list[str]:
        name = step[-1]
        machine = self._own(name)
        if len(step) == 1:
            verb, *words = self.programs[name][0]
            self.programs[name] = self.programs[name][1:]
            effects = getattr(machine, verb)(*words, 0.0)
            told = f"{name}: {verb} {words}"
        else:
            message, *rest = self.queues[step]
            self.queues[step] = tuple(rest)
            effects = machine.receive(step[0], message, 0.0)
            told = f"{name} receives {message} from {step[0]}"
        for effect in effects:
            if isinstance(effect, Send):
                link = (name, effect.target)
                self.queues[link] = (*self.queues.get(link, ()), effect.message)
            elif isinstance(effect, Handed):
                pub = effect.pub
                self.handed += tuple((name, f"{pub.publisher}:{pub.seq}", s) for s in effect.sids)
        return [told]

    def _own(self, name: str) -> Any:
        if name in self.shared:
            self.machines[name] = type(self.machines[name]).restore(self._snapshot(name))
            self.shared = self.shared - {name}
        self.snapshots.pop(name, None)
        return self.machines[name]

    def _snapshot(self, name: str) -> bytes:
        if name not in self.snapshots:
            self.snapshots[name] = self.machines[name].snapshot()
        return self.snapshots[name]


def settled(brokers: list[str], places: dict[str, str], **options: Any) -> Network:
    """A line of brokers with a publisher p; everybody else will subscribe."""
    net = Network(engine="naive", summary=options.pop("summary", "everything"))
    net.line(*brokers)
    for name, edge in places.items():
        net.client(name, edge, **options)
    net.advertise("p", "t")
    net.run()
    return net


def judge_for(always: dict[str, list[str]], never: dict[str, list[str]]) -> Any:
    """Events each client must be handed once, and those it must not be handed at all."""

    def judge(state: Choices, final: bool) -> str | None:
        if len(set(state.handed)) != len(state.handed):
            return "handed over twice"
        got = {(name, event) for name, event, _ in state.handed}
        for name, events in never.items():
            if any((name, event) in got for event in events):
                return f"{name} was handed what it never wanted"
        if not final:
            return None
        for name, events in always.items():
            if any((name, event) not in got for event in events):
                return f"{name} lost an event"
            client = state.machines[name]
            if any(client.installed(sid) != client.version(sid) for sid in client.sids):
                return "never installed"
        return None

    return judge


def publications(*attributes: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [("publish", "t", one) for one in attributes]


def swap(**options: Any) -> tuple[Choices, Any]:
    """(p = x OR p = y) with x and y swapped, and back: p = 1 and p = 2 match all the time."""
    net = settled(["b1", "b2"], {"p": "b1", "s": "b2"}, **options)
    sid = net.subscribe("s", "t", "price = :x OR price = :y", x=1, y=2)
    net.run()
    programs = {
        "p": publications({"price": 1}, {"price": 2}, {"price": 3}),
        "s": [("set", sid, {"x": 2, "y": 1}), ("set", sid, {"x": 1, "y": 2})],
    }
    return Choices(net, programs), judge_for({"s": ["p:1", "p:2"]}, {"s": ["p:3"]})


def window(**options: Any) -> tuple[Choices, Any]:
    """Windows that overlap at 5, three brokers; a neighbour's interest does not move."""
    net = settled(["b1", "b2", "b3"], {"p": "b1", "s": "b3", "q": "b2"}, **options)
    sid = net.subscribe("s", "t", "price BETWEEN :lo AND :hi", lo=0, hi=5)
    net.subscribe("q", "t", "price BETWEEN 4 AND 8")
    net.run()
    programs = {
        "p": publications({"price": 5}, {"price": 8}, {"price": 99}),
        "s": [("set", sid, {"lo": 5, "hi": 9}), ("set", sid, {"lo": 3, "hi": 6})],
    }
    always = {"s": ["p:1"], "q": ["p:1", "p:2"]}
    return Choices(net, programs), judge_for(always, {"s": ["p:3"], "q": ["p:3"]})


def coming_and_going(**options: Any) -> tuple[Choices, Any]:
    """Another advertiser and another subscriber come and go; s does nothing and loses nothing."""
    net = settled(["b1", "b2"], {"p": "b1", "s": "b2", "q": "b2"}, **options)
    net.subscribe("s", "t", "price < 5")
    other = net.subscribe("q", "t", "price < 9")
    net.run()
    programs = {
        "p": publications({"price": 4}, {"price": 3}, {"price": 7}),
        "q": [("unsubscribe", other), ("advertise", "t"), ("unadvertise", "t")],
    }
    return Choices(net, programs), judge_for({"s": ["p:1", "p:2"]}, {"s": ["p:3"]})


def _name(one: Any) -> str:
    return getattr(one, "__name__", str(one))


CASES = [
    (swap, "everything"),
    (swap, "grouped"),
    (window, "everything"),
    (window, "grouped"),
    (coming_and_going, "everything"),
    (coming_and_going, "grouped"),
]


@pytest.mark.parametrize(("case", "summary"), CASES, ids=_name)
def test_every_interleaving_is_right(case, summary):
    found = exhaust(*case(summary=summary))
    assert found.violation is None, "\n".join(found.story)
    assert found.complete
    assert found.final_states > 0
    assert found.states > 300


@pytest.mark.parametrize(
    ("mutate", "case"), [(withdraw_then_send, swap), (partial_update, swap)], ids=_name
)
def test_a_mutant_is_found_with_its_shortest_story(mutate, case, monkeypatch):
    mutate(monkeypatch)
    found = exhaust(*case())
    assert found.violation == "s lost an event"
    assert found.story


def test_break_before_make_loses_events_and_make_before_break_does_not():
    """Of the two ways to update without parameters, only one loses what always matched."""
    assert exhaust(*swap(mode="break")).violation == "s lost an event"
    found = exhaust(*swap(mode="make"))
    assert found.violation is None, "\n".join(found.story)


def test_the_search_tells_its_queues_apart():
    """A control of the driver itself: a link keeps its order, two links do not wait for another."""
    choices, _ = swap()
    assert choices.steps() == [("p",), ("s",)]
    other = choices.fork()
    other.take(("p",))
    assert ("p", "b1") in other.steps()
    assert ("p", "b1") not in choices.steps()
    assert choices.key() != other.key()
