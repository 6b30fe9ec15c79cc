"""Total order in one process: how fast stamps are made and held events released.

All figures are events per second through the real machines, driven by the shortest possible loop
(a queue of messages, no network, no clock). Batches are what a publisher sends as one request.

- one manager: publisher requests to one stage with one topic
- a chain of five: requests on the lowest of five topics that one subscriber holds together, so
  every stamp is filled by five stages in turn
- releasing: events arrive in the worst order at a holding subscriber: the one everybody waits for
  comes last
"""

from __future__ import annotations

from collections import deque
from typing import Any

from rich.console import Console
from rich.table import Table

from benches.measure import Contest
from inorder.core import wire
from inorder.core.effect import Diffuse, Join, Send
from inorder.core.event import Event
from inorder.core.machine import make_all
from inorder.guarantee.registry import guarantee
from inorder.protocols.total.messages import Create, Events

TOTAL = guarantee("total")
BATCHES = (1, 10, 100, 1000)
EVENTS = 20_000


class Loop:
    """Machines and a queue of messages between them; diffusions are counted, not delivered."""

    def __init__(self, topics: list[str], links: str) -> None:
        self.options = TOTAL.options(links=links, window=1024)
        self.topics = topics
        self.machines: dict[str, Any] = dict(make_all(TOTAL.services(topics, self.options)))
        self.queue: deque[tuple[str, str, Any]] = deque()
        self.diffused = 0

    def client(self, name: str) -> Any:
        machine = self.machines[name] = TOTAL.client(name, self.topics, self.options)
        return machine

    def carry_out(self, name: str, effects: list[Any]) -> None:
        for effect in effects:
            kind = type(effect)
            if kind is Send:
                self.queue.append((name, effect.target, effect.message))
            elif kind is Diffuse and isinstance(effect.message, Events):
                self.diffused += len(effect.message.events)
            elif kind is Join:
                self.carry_out(name, self.machines[name].joined(effect.topic, 0.0))

    def run(self) -> None:
        queue, machines = self.queue, self.machines
        while queue:
            source, target, message = queue.popleft()
            if target in machines:
                self.carry_out(target, machines[target].receive(source, message, 0.0))


def stamps(topics: int, batch: int, links: str) -> int:
    """Requests on the lowest topic; returns how many events were numbered and diffused."""
    names = [f"t{number}" for number in range(1, topics + 1)]
    loop = Loop(names, links)
    subscriber = loop.client("s")
    loop.carry_out("s", subscriber.subscribe("s/1", names, 0.0))
    loop.run()
    publisher = loop.client("p")
    lowest = names[-1]
    if links == "trusted":
        home = publisher.directory.home(lowest)
        for first in range(1, EVENTS + 1, batch):
            events = tuple(Event("p", seq, lowest) for seq in range(first, first + batch))
            loop.queue.append(("p", home, Create(lowest, events)))
            loop.machines.pop("p", None)  # nobody waits for the receipts
            loop.run()
    else:
        for _ in range(EVENTS):
            loop.carry_out("p", publisher.publish(lowest, {}, 0.0))
            if len(loop.queue) > 64:
                loop.run()
        loop.run()
    assert loop.diffused == EVENTS, loop.diffused
    return EVENTS


def release(buffer: int) -> int:
    """Runs of `buffer` events on two topics, each arriving backwards."""
    loop = Loop(["t1", "t2"], "trusted")
    subscriber = loop.client("s")
    loop.carry_out("s", subscriber.subscribe("s/1", ["t1", "t2"], 0.0))
    loop.run()
    home = subscriber.directory.home("t2")
    delivered = 0
    for first in range(1, EVENTS + 1, buffer):
        for number in reversed(range(first, first + buffer)):
            event = Event("p", number, "t2")
            message = Events("t2", number, 0, (("t1", 0),), (event,))
            effects = subscriber.receive(home, message, 0.0)
            delivered += sum(type(effect).__name__ == "Deliver" for effect in effects)
    assert delivered == EVENTS, delivered
    return delivered


def stamp_bytes() -> None:
    table = Table(title="Bytes of order facts per event (the report: 24 per entry)")
    for heading in ("entries", "batch of 1", "batch of 100"):
        table.add_column(heading, justify="right")
    for entries in (1, 2, 5, 10, 50):
        stamp = tuple((f"topic{number:02d}", 1_000_000) for number in range(entries - 1))
        cells = []
        for batch in (1, 100):
            events = tuple(Event("p", seq, "topic99") for seq in range(1, batch + 1))
            message = Events("topic99", 1_000_000, 0, stamp, events)
            bare = sum(wire.size(event) for event in events)
            cells.append(f"{(wire.size(message) - bare) / batch:.1f}")
        table.add_row(str(entries), *cells)
    Console(width=100).print(table)


def main() -> None:
    command = "python -m benches.total"
    for topics, title in ((1, "One topic manager"), (5, "A chain of five stages")):
        contest = Contest(f"{title}: numbering {EVENTS:,} events", "events", rounds=3)
        for batch in BATCHES:
            contest.add(f"batches of {batch}", lambda t=topics, b=batch: stamps(t, b, "trusted"))
        contest.add(
            "single publish calls, sessions and log", lambda t=topics: stamps(t, 1, "sessions")
        )
        contest.run(command)
    contest = Contest("Releasing held events, worst order", "events", rounds=3)
    for buffer in (10, 100, 1000, 10_000):
        contest.add(f"{buffer} held at a time", lambda b=buffer: release(b))
    contest.run(command)
    stamp_bytes()


if __name__ == "__main__":
    main()
