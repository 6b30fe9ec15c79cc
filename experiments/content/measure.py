"""One run of a workload, and the paper's metrics of it (Sec. 5.2).

- throughput: events handed to the application, per subscriber and second;
- delay: from an update to the first event handed over that matches the new values and not the old;
- propagation: from an update until it is in force everywhere (`Installed`); the paper has no such
  metric, and its delay is undefined for a narrowing and mostly waits for the next event (E-C20);
- spurious: events that arrive and match nothing any more, per subscriber and second;
- busy: the share of its time the busiest broker works.

A delay is cut short by the next update or by the end, propagation by the end, the more so the
longer they are. So a mean is estimated as the time all updates waited, divided by the number of
those that saw the end of it: right for an exponential law, too low for queues that grow for ever.
"""

from __future__ import annotations

from functools import cache
from random import Random
from typing import Any

from experiments.content.workloads import TOPIC, Benchmark, event, first, moved, workload
from experiments.content.world import EngineName, Price, World
from experiments.points import Numbers
from inorder.content.client import Handed, Mode
from inorder.content.messages import Installed
from inorder.content.predicate import Predicate
from inorder.content.smoothing import Smoothing
from inorder.core.effect import Note

SID = 1


class _Wait:
    """Updates that wait for something."""

    def __init__(self) -> None:
        self.waited_s = 0.0
        self.ended = 0

    def add(self, waited_s: float, ended: bool) -> None:
        self.waited_s += waited_s
        self.ended += ended

    def mean_s(self) -> float | None:
        return self.waited_s / self.ended if self.ended else None


class _Subscriber:
    def __init__(self, predicate: Predicate, values: dict[str, Any], rng: Random) -> None:
        self.predicate = predicate
        self.values = values
        self.rng = rng
        self.version = 1
        self.old: dict[str, Any] | None = None
        self.since_s = 0.0


class _Run:
    """A world, its publishers and subscribers, and what is counted from `start_s` on."""

    def __init__(self, world: World, benchmark: Benchmark, start_s: float, end_s: float) -> None:
        self.world, self.benchmark = world, benchmark
        self.start_s, self.end_s = start_s, end_s
        self.delivered = self.spurious = self.updates = 0
        self.delay, self.propagation = _Wait(), _Wait()
        self.subscribers: dict[str, _Subscriber] = {}
        self._unconfirmed: dict[tuple[str, int], float] = {}
        world.watch, world.carried = self._watch, self._carried

    def publish(self, name: str, rate: float, rng: Random) -> None:
        client = self.world.clients[name]
        attributes = event(self.benchmark, rng)
        self.world.act(name, client.publish(TOPIC, attributes, self.world.now))
        self.world.agenda.after(rng.expovariate(rate), self.publish, name, rate, rng)

    def update(self, name: str, rate: float) -> None:
        one, now = self.subscribers[name], self.world.now
        self._stop_waiting(one)
        one.old, one.values = one.values, moved(self.benchmark, one.predicate, one.values, one.rng)
        one.since_s = now
        one.version += 1
        if now >= self.start_s:
            self.updates += 1
            self._unconfirmed[name, one.version] = now
        self.world.act(name, self.world.clients[name].set(SID, one.values, now))
        assert self.world.clients[name].version(SID) == one.version
        self.world.agenda.after(one.rng.expovariate(rate), self.update, name, rate)

    def finish(self) -> None:
        for one in self.subscribers.values():
            self._stop_waiting(one)
        for since_s in self._unconfirmed.values():
            self.propagation.add(self.end_s - since_s, False)

    def _stop_waiting(self, one: _Subscriber, ended: bool = False) -> None:
        if one.old is not None and one.since_s >= self.start_s:
            self.delay.add(self.world.now - one.since_s, ended)
        one.old = None

    def _watch(self, name: str, effect: Any) -> None:
        if self.world.now < self.start_s:
            return
        if isinstance(effect, Handed):
            self.delivered += 1
            one = self.subscribers[name]
            attributes = effect.pub.attributes or {}
            if one.old is not None and not one.predicate.matches(one.old, attributes):
                self._stop_waiting(one, True)
        elif isinstance(effect, Note) and effect.mark == "spurious_event":
            self.spurious += 1

    def _carried(self, source: str, target: str, message: Any) -> None:
        if isinstance(message, Installed):
            since_s = self._unconfirmed.pop((target, message.version), None)
            if since_s is not None:
                self.propagation.add(self.world.now - since_s, True)


@cache
def measured(
    benchmark: Benchmark,
    engine: EngineName,
    mode: Mode,
    update_rate: float,
    event_rate: float,
    stands_for: int,
    seconds: float,
    seed: int,
    hold_s: float = 0.0,
    price: Price = "counted",
    warm_s: float = 0.5,
) -> Numbers:
    """`warm_s` to warm up, then `seconds`. The update rate is one subscriber's."""
    work = workload(benchmark, event_rate, seed)
    smoothing = Smoothing(hold_s) if hold_s else None
    world = World(work.graph, engine, stands_for, smoothing, price)
    run = _Run(world, benchmark, warm_s, warm_s + seconds)
    for name, edge in work.publishers.items():
        client = world.client(name, edge)
        world.act(name, client.advertise(TOPIC, 0.0))
    for name, edge in work.subscribers.items():
        rng = Random(f"{benchmark}/{seed}/{name}")
        predicate, values = first(benchmark, rng)
        run.subscribers[name] = _Subscriber(predicate, values, rng)
        client = world.client(name, edge, mode)
        world.act(name, client.subscribe(TOPIC, predicate, values, 0.0)[1])
    world.open()
    each = event_rate / len(work.publishers)
    for name in work.publishers:
        rng = Random(f"{benchmark}/{seed}/{name}")
        world.agenda.at(rng.expovariate(each), run.publish, name, each, rng)
    if update_rate > 0.0:
        for name, one in run.subscribers.items():
            world.agenda.at(one.rng.expovariate(update_rate), run.update, name, update_rate)
    world.agenda.run(run.end_s)
    run.finish()
    count = len(run.subscribers) * seconds
    return {
        "throughput": run.delivered / count,
        "spurious": run.spurious / count,
        "delay": run.delay.mean_s(),
        "propagation": run.propagation.mean_s(),
        "confirmed": run.propagation.ended / max(1, run.updates),
        "busy": max(world.busy_s.values()) / run.end_s,
    }
