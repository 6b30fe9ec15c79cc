"""Our simulator beside SimPy on one workload: messages forwarded down a tree, with queueing.

A root sends messages at fixed times; every node passes each message on to its two children. A node
transmits one message at a time (its output queue is FIFO), then the message travels. A *hop* is one
message arriving at one node; every way counts the same hops at the same virtual times (checked).

Three of our ways: the agenda alone with plain functions; the whole simulator (machines, effects,
packet model); and the same with a trace of every message.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import simpy

from benches.measure import Contest
from inorder.core.effect import Effect, Send
from inorder.sim.agenda import Agenda
from inorder.sim.laws import Constant
from inorder.sim.models import Packet
from inorder.sim.world import World

NODES = 1023
MESSAGES = 60
PERIOD_S = 0.5
TRANSMIT_S = 0.01
TRAVEL_S = 0.1
SIZE = 100

Arrivals = list[tuple[float, int]]


def children(node: int) -> list[int]:
    return [child for child in (2 * node + 1, 2 * node + 2) if child < NODES]


def simpy_processes(log: Arrivals | None = None) -> int:
    """The way SimPy is meant to be used: a process per node, a store as its queue."""
    env = simpy.Environment()
    inboxes = [simpy.Store(env) for _ in range(NODES)]
    hops = 0

    def travel(child: int, message: int) -> Iterator[Any]:
        nonlocal hops
        yield env.timeout(TRAVEL_S)
        hops += 1
        if log is not None:
            log.append((round(env.now, 6), child))
        inboxes[child].put(message)

    def node(number: int) -> Iterator[Any]:
        while True:
            message = yield inboxes[number].get()
            for child in children(number):
                yield env.timeout(TRANSMIT_S)
                env.process(travel(child, message))

    def source() -> Iterator[Any]:
        for message in range(MESSAGES):
            inboxes[0].put(message)
            yield env.timeout(PERIOD_S)

    for number in range(NODES):
        env.process(node(number))
    env.process(source())
    env.run()
    return hops


def simpy_callbacks(log: Arrivals | None = None) -> int:
    """SimPy as a bare event queue, with the queueing computed instead of waited for."""
    env = simpy.Environment()
    free_at = [0.0] * NODES
    hops = 0

    def at(when: float, child: int) -> None:
        timeout = env.timeout(when - env.now, child)
        timeout.callbacks.append(arrive)

    def arrive(event: Any) -> None:
        nonlocal hops
        number = event.value
        if number:
            hops += 1
            if log is not None:
                log.append((round(env.now, 6), number))
        for child in children(number):
            sent = free_at[number] = max(free_at[number], env.now) + TRANSMIT_S
            at(sent + TRAVEL_S, child)

    for message in range(MESSAGES):
        at(message * PERIOD_S, 0)
    env.run()
    return hops


def our_agenda(log: Arrivals | None = None) -> int:
    """Our loop alone, with plain functions."""
    agenda = Agenda()
    free_at = [0.0] * NODES
    hops = 0

    def arrive(number: int) -> None:
        nonlocal hops
        if number:
            hops += 1
            if log is not None:
                log.append((round(agenda.now, 6), number))
        for child in children(number):
            sent = free_at[number] = max(free_at[number], agenda.now) + TRANSMIT_S
            agenda.at(sent + TRAVEL_S, arrive, child)

    for message in range(MESSAGES):
        agenda.at(message * PERIOD_S, arrive, 0)
    agenda.run()
    return hops


class Forwarder:
    """A machine that passes every message on to its children."""

    hops = 0
    log: Arrivals | None = None

    def __init__(self, number: int) -> None:
        self._number = number
        self._children = [f"n{child}" for child in children(number)]

    def receive(self, source: str, message: Any, now: float) -> list[Effect]:
        if source:
            Forwarder.hops += 1
            if Forwarder.log is not None:
                Forwarder.log.append((round(now, 6), self._number))
        return [Send(child, message) for child in self._children]

    def fire(self, timer: str, now: float) -> list[Effect]:
        return []

    def snapshot(self) -> bytes:
        return b""

    @classmethod
    def restore(cls, snapshot: bytes) -> Forwarder:
        return cls(0)


class Nowhere:
    def write(self, table: str, row: Any) -> None:
        pass

    def ended(self, ending: Any) -> None:
        pass


def our_world(log: Arrivals | None = None, trace: bool = False) -> int:
    """The whole simulator: machines behind the effect contract over the packet model."""
    Forwarder.hops = 0
    Forwarder.log = log
    body = "x" * (SIZE - 2)  # two bytes of frame around it
    packet = Packet(0.0, SIZE * 8 / TRANSMIT_S, Constant(mean=TRAVEL_S))
    world = World(packet, "bench", Nowhere(), fifo=False, record_messages=trace)
    for number in range(NODES):
        world.add(f"n{number}", lambda number=number: Forwarder(number))
    for message in range(MESSAGES):
        world.agenda.at(message * PERIOD_S, world._hand_over, "", "n0", body, 0, 0.0, True)
    world.agenda.run()
    return Forwarder.hops


def check_that_all_do_the_same() -> None:
    logs: dict[str, Arrivals] = {}
    for way in (simpy_processes, simpy_callbacks, our_agenda, our_world):
        logs[way.__name__] = []
        way(logs[way.__name__])
    first = sorted(logs["simpy_processes"])
    for name, log in logs.items():
        assert sorted(log) == first, f"{name} simulates something else"


def main() -> None:
    check_that_all_do_the_same()
    contest = Contest(f"Simulating {MESSAGES} messages down a tree of {NODES} nodes", "hops")
    contest.add("SimPy, processes", simpy_processes)
    contest.add("SimPy, callbacks", simpy_callbacks)
    contest.add("inorder, agenda alone", our_agenda)
    contest.add("inorder, machines over packets", our_world)
    contest.add("inorder, the same with a trace", lambda: our_world(trace=True))
    contest.run("python -m benches.simulator")


if __name__ == "__main__":
    main()
