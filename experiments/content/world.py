"""Real brokers and clients in virtual time; a broker is one server with a queue.

Rule 1: every link, also a client's, takes `LINK_S` and keeps its order.
Rule 2: a broker handles one message at a time. How long that takes is charged from what the machine
        did (costs.py); what it sends leaves when that time is over.
Rule 3: clients take no time. Setting up (links, advertisements, first subscriptions) takes none
        either: `open` lets the network fall silent, then charging begins.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Literal

from experiments.content.costs import index_s, poset_s, rebuilds
from inorder.content.broker import Broker
from inorder.content.client import Client, Handed, Mode
from inorder.content.poset import Poset
from inorder.content.smoothing import Smoothing
from inorder.core.effect import Answer, CancelTimer, Note, Send, SetTimer
from inorder.sim.agenda import Agenda
from inorder.sim.graphs import Graph

EngineName = Literal["poset", "index"]
Price = Literal["counted", "told"]

LINK_S = 0.01
# What a broker tells its neighbours: Siena the maximal subscriptions, ours one entry a group.
SUMMARY = {"poset": "exact", "index": "grouped"}
# A `make` client waits for the confirmation this long before it gives up the old subscription.
PATIENCE_S = 60.0

Watch = Callable[[str, Any], None]


class World:
    """`watch` hears what clients hand over, drop and get confirmed; `carried` each message."""

    def __init__(
        self,
        graph: Graph,
        engine: EngineName,
        stands_for: int = 1,
        smoothing: Smoothing | None = None,
        price: Price = "counted",
    ) -> None:
        self.agenda = Agenda()
        self.brokers: dict[str, Broker] = {}
        self.clients: dict[str, Client] = {}
        self.watch: Watch = lambda client, effect: None
        self.carried: Callable[[str, str, Any], None] = lambda source, target, message: None
        self.busy_s: dict[str, float] = {}
        self._engine: EngineName = engine
        self._stands_for = stands_for
        self._price = price
        self._free = True  # of charge, while the network is built
        self._queues: dict[str, deque[tuple[str, Any]]] = {}
        self._timers: dict[tuple[str, str], int] = {}
        for number in range(len(graph)):
            name = f"b{number + 1}"
            self.brokers[name] = Broker(
                name, engine=engine, summary=SUMMARY[engine], smoothing=smoothing
            )
            self._queues[name] = deque()
            self.busy_s[name] = 0.0
        for number, others in enumerate(graph):
            for other in others:
                if number < other:
                    name = f"b{number + 1}"
                    self.act(name, self.brokers[name].connect(f"b{other + 1}", 0.0))
        self.agenda.run(0.0)

    def client(self, name: str, edge: str, mode: Mode = "parametric") -> Client:
        made = self.clients[name] = Client(name, edge, mode=mode, patience=PATIENCE_S)
        self.act(name, made.connect(self.now))
        return made

    def open(self) -> None:
        """Everybody has said what there is to say: now time begins."""
        self.agenda.run(0.0)
        self._free = False

    @property
    def now(self) -> float:
        return self.agenda.now

    def act(self, name: str, effects: Iterable[Any]) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                delay_s = 0.0 if self._free else LINK_S
                self.agenda.after(delay_s, self._arrive, name, effect.target, effect.message)
            elif isinstance(effect, SetTimer):
                mark = self._timers[name, effect.name] = (
                    self._timers.get((name, effect.name), 0) + 1
                )
                self.agenda.after(effect.after_s, self._fire, name, effect.name, mark)
            elif isinstance(effect, CancelTimer):
                self._timers[name, effect.name] = self._timers.get((name, effect.name), 0) + 1
            elif isinstance(effect, Handed | Note | Answer) and name in self.clients:
                self.watch(name, effect)

    def _mark(self, name: str, timer: str) -> int:
        """Only the last mark of a timer fires."""
        mark = self._timers[name, timer] = self._timers.get((name, timer), 0) + 1
        return mark

    def _fire(self, name: str, timer: str, mark: int) -> None:
        if self._timers[name, timer] != mark:
            return
        if name in self.clients:
            self.act(name, self.clients[name].fire(timer, self.now))
        else:
            self._enter(name, "", timer)  # waits its turn, or it would overtake what is in work

    def _arrive(self, source: str, target: str, message: Any) -> None:
        self.carried(source, target, message)
        if target in self.clients:
            self.act(target, self.clients[target].receive(source, message, self.now))
        elif self._free:
            self.act(target, self.brokers[target].receive(source, message, self.now))
        else:
            self._enter(target, source, message)

    def _enter(self, name: str, source: str, message: Any) -> None:
        queue = self._queues[name]
        queue.append((source, message))
        if len(queue) == 1:
            self._serve(name)

    def _serve(self, name: str) -> None:
        """Begin with the first of the queue; it stays there until it is done."""
        source, message = self._queues[name][0]
        broker = self.brokers[name]
        before = _work(broker)
        if source:
            effects = broker.receive(source, message, self.now)
        else:
            effects = broker.fire(message, self.now)
        if self._engine == "index":
            service_s = index_s(message)
        else:
            compared, tried, size = (x - y for x, y in zip(_work(broker), before, strict=True))
            if self._price == "told":
                compared = rebuilds(message) * max(before[2], before[2] + size)
            service_s = poset_s(compared, tried, self._stands_for)
        self.busy_s[name] += service_s
        self.agenda.after(service_s, self._done, name, effects)

    def _done(self, name: str, effects: list[Any]) -> None:
        queue = self._queues[name]
        queue.popleft()
        self.act(name, effects)
        if queue:
            self._serve(name)


def _work(broker: Broker) -> tuple[int, int, int]:
    """Comparisons and evaluations of a broker's posets so far, and their size.

    Summaries are not counted: Siena reads them off the same poset.
    """
    compared = tried = size = 0
    for topic in broker.topics.values():
        engine = topic.engine
        if isinstance(engine, Poset):
            compared += engine.comparisons
            tried += engine.evaluations
            size += len(engine.order.nodes)
    return compared, tried, size
