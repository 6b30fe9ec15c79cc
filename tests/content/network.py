"""A tree of brokers with clients, whose links deliver when somebody says so.

Links keep their order; which link delivers next is the caller's choice, by hand or by a seeded
generator. `python -m tests.content.network --trees 3000` runs that many random trees under the
judge (judge.py).
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter, deque
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from inorder.content.broker import Broker
from inorder.content.client import Client, Handed
from inorder.content.messages import Message, Pub
from inorder.content.predicate import Predicate
from inorder.core import wire
from inorder.core.effect import Answer, CancelTimer, Note, Send, SetTimer

_decoder = wire.Decoder(Message)


class Network:
    """`log` has every message handled, in order: (source, target, message)."""

    def __init__(self, *, wired: bool = False, batches: bool = False, **options: Any) -> None:
        self.options = options
        self.wired = wired
        self.batches = batches
        self.brokers: dict[str, Broker] = {}
        self.clients: dict[str, Client] = {}
        self.edges: dict[str, str] = {}
        self.queues: dict[tuple[str, str], deque[Any]] = {}
        self.log: list[tuple[str, str, Any]] = []
        self.handed: list[tuple[str, Handed]] = []
        self.answers: list[tuple[str, Answer]] = []
        self.notes: Counter[str] = Counter()
        self.timers: dict[tuple[str, str], float] = {}
        self.now = 0.0
        self.watchers: list[Any] = []

    # Building.

    def broker(self, *names: str) -> None:
        for name in names:
            self.brokers[name] = Broker(name, **self.options)

    def link(self, a: str, b: str) -> None:
        self.act(a, self.brokers[a].connect(b, self.now))

    def client(self, name: str, edge: str, **options: Any) -> Client:
        client = self.clients[name] = Client(name, edge, **options)
        self.edges[name] = edge
        self.act(name, client.connect(self.now))
        return client

    def line(self, *names: str) -> None:
        self.broker(*names)
        for a, b in pairwise(names):
            self.link(a, b)
        self.run()

    # Moving.

    def busy(self) -> list[tuple[str, str]]:
        return [link for link, queue in self.queues.items() if queue]

    def step(self, link: tuple[str, str]) -> list[Any]:
        """The oldest message of a link arrives; with `batches`, all of its messages."""
        source, target = link
        queue = self.queues[link]
        messages = [queue.popleft()]
        if self.batches and target in self.brokers:
            messages += queue
            queue.clear()
        if self.wired:
            messages = [_decoder.decode(wire.encode(message)) for message in messages]
        self.log += [(source, target, message) for message in messages]
        for watcher in self.watchers:
            watcher.before(source, target, messages)
        machine: Any = self.brokers.get(target) or self.clients[target]
        if len(messages) == 1:
            effects = machine.receive(source, messages[0], self.now)
        else:
            effects = machine.receive_all([(source, message) for message in messages], self.now)
        self.act(target, effects)
        for watcher in self.watchers:
            watcher.after(source, target, messages, effects)
        return effects

    def run(self, rng: random.Random | None = None, steps: int = 100_000) -> int:
        """Until nothing moves; the number of steps."""
        count = 0
        while busy := self.busy():
            self.step(rng.choice(busy) if rng else busy[0])
            count += 1
            assert count < steps, "the network never falls silent"
        return count

    def fire(self, name: str, timer: str) -> None:
        self.now = max(self.now, self.timers.pop((name, timer)))
        machine: Any = self.brokers.get(name) or self.clients[name]
        self.act(name, machine.fire(timer, self.now))

    def act(self, name: str, effects: Iterable[Any]) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                self.queues.setdefault((name, effect.target), deque()).append(effect.message)
            elif isinstance(effect, Handed):
                self.handed.append((name, effect))
            elif isinstance(effect, Answer):
                self.answers.append((name, effect))
            elif isinstance(effect, Note):
                self.notes[effect.mark] += 1
            elif isinstance(effect, SetTimer):
                self.timers[(name, effect.name)] = self.now + effect.after_s
            elif isinstance(effect, CancelTimer):
                self.timers.pop((name, effect.name), None)

    # What tests ask for.

    def subscribe(self, name: str, topic: str, text: str, **values: Any) -> int:
        client = self.clients[name]
        sid, effects = client.subscribe(topic, Predicate.parse(text), values, self.now)
        self.act(name, effects)
        return sid

    def set(self, name: str, sid: int, **values: Any) -> None:
        self.act(name, self.clients[name].set(sid, values, self.now))

    def replace(self, name: str, sid: int, text: str, **values: Any) -> None:
        predicate = Predicate.parse(text)
        self.act(name, self.clients[name].replace(sid, predicate, values, self.now))

    def unsubscribe(self, name: str, sid: int) -> None:
        self.act(name, self.clients[name].unsubscribe(sid, self.now))

    def advertise(self, name: str, topic: str, on: bool = True) -> None:
        client = self.clients[name]
        call = client.advertise if on else client.unadvertise
        self.act(name, call(topic, self.now))

    def publish(self, name: str, topic: str, **attributes: Any) -> str:
        client = self.clients[name]
        event = f"{name}:{client.next_seq}"
        self.act(name, client.publish(topic, attributes, self.now))
        return event

    def got(self, name: str) -> list[str]:
        """The ids of the events a client was handed, in order."""
        return [f"{h.pub.publisher}:{h.pub.seq}" for client, h in self.handed if client == name]

    def said(self, source: str, target: str, kind: type) -> list[Any]:
        """The messages of a kind that one node sent another, handled or not."""
        handled = [m for s, t, m in self.log if (s, t) == (source, target)]
        waiting = self.queues.get((source, target), ())
        return [m for m in [*handled, *waiting] if isinstance(m, kind)]

    def lose_link(self, a: str, b: str) -> None:
        """A link breaks: what is under way is lost, both ends are told."""
        for link in ((a, b), (b, a)):
            self.queues.pop(link, None)
        for name, other in ((a, b), (b, a)):
            if name in self.brokers:
                self.act(name, self.brokers[name].disconnect(other, self.now))
            else:
                self.act(name, self.clients[name].disconnect(self.now))


def is_event(message: Any) -> bool:
    return isinstance(message, Pub)


def main() -> None:
    from tests.content.judge import judged_tree

    parser = argparse.ArgumentParser()
    parser.add_argument("--trees", type=int, default=3000)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    started = time.process_time()
    totals: Counter[str] = Counter()
    for seed in range(options.first, options.first + options.trees):
        try:
            totals.update(judged_tree(seed))
        except BaseException:
            print(f"tree {seed}")
            raise
    print(f"{options.trees} trees, {time.process_time() - started:.0f} s")
    print(", ".join(f"{count:,} {what}" for what, count in sorted(totals.items())))


if __name__ == "__main__":
    main()
