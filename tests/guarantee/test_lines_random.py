"""Random trees of linked brokers that crash, under a judge. Unlike in the simulated world, clients
advertise some topics and not others, and their own links lose and reorder, too."""

from __future__ import annotations

import os
from collections import Counter
from random import Random
from typing import Any

from inorder.content.broker import Broker
from inorder.content.client import Client, Handed
from inorder.content.predicate import Predicate
from inorder.content.repair import TIMER as PATIENCE
from inorder.content.topic import UNANSWERED
from inorder.core.effect import Answer, CancelTimer, Effect, Note, Persist, Send, SetTimer
from inorder.guarantee.broker import LinkedBroker
from inorder.guarantee.lines import GREET, Lines
from inorder.protocols.session.book import RESEND

TIMES = int(os.environ.get("CONTENT_TREES", "1"))
PREDICATES = [Predicate.parse(text) for text in ("k < :a", "k BETWEEN :a AND :b", "k = :a")]


class Application:
    """A client at the end of a line."""

    def __init__(self, name: str, edge: str) -> None:
        self.edge = edge
        self.client = Client(name, edge)
        self.lines = Lines(name, 1, 0.5, lambda peer, event: True)

    def do(self, effects: list[Any], now: float) -> list[Any]:
        return [*self._posted(effects), *self.lines.flush(now)]

    def _posted(self, effects: list[Any]) -> list[Any]:
        for effect in effects:
            if isinstance(effect, Send):
                self.lines.post(effect.target, effect.message)
        return [effect for effect in effects if not isinstance(effect, Send)]

    def receive(self, source: str, message: Any, now: float) -> list[Any]:
        begins, effects = self.lines.hear(source, message)
        if begins:
            effects += self._posted(self.client.connect(now))
            self.lines.drain(source)
        for _, body in self.lines.take(source, message, now):
            effects += self._posted(self.client.receive(source, body, now))
        return [*effects, *self.lines.flush(now)]

    def fire(self, timer: str, now: float) -> list[Effect]:
        assert timer.partition("/")[0] in (GREET, RESEND)
        return self.lines.fire(timer, now)


class Tree:
    """Machines, what is under way between them, and what their applications have asked for."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = Random(f"{seed}/lines")
        self.options = {"summary": rng.choice(["grouped", "exact", "bounded"])}
        self.near: dict[str, list[str]] = {"b0": []}
        for number in range(1, rng.randint(2, 5)):
            other, name = f"b{rng.randrange(number)}", f"b{number}"
            self.near[other].append(name)
            self.near[name] = [other]
        self.now, self.deeds = 1.0, 0
        self.loss = self.twice = 0.0
        self.window = rng.choice([1, 3, 20, 1000])
        self.under_way: list[tuple[str, str, Any]] = []
        self.timers: dict[tuple[str, str], float] = {}
        self.disks: dict[str, list[bytes]] = {name: [] for name in self.near}
        self.nodes: dict[str, Any] = {name: self.broker(name) for name in self.near}
        self.handed: list[tuple[str, Handed]] = []
        # (client, subscription): the versions confirmed, and when.
        self.confirmed: dict[tuple[str, int], list[tuple[int, int]]] = {}
        self.advertised: dict[tuple[str, str], int] = {}
        self.versions: dict[tuple[str, int], dict[int, tuple[Predicate, dict[str, int]]]] = {}
        self.topic_of: dict[tuple[str, int], str] = {}
        self.published: list[tuple[str, int, str, int, int, int]] = []
        self.owed = 0
        for name in self.near:
            self.act(name, self.nodes[name].begin(0.0))
        self.clients = [f"c{number}" for number in range(rng.randint(2, 6))]
        for name in self.clients:
            self.nodes[name] = Application(name, rng.choice([*self.near]))
            self.act(name, self.nodes[name].lines.greet(self.nodes[name].edge))
        self.run()

    def broker(self, name: str) -> LinkedBroker:
        return LinkedBroker(Broker(name, **self.options), self.near[name])

    def crash(self, name: str) -> None:
        self.timers = {key: at for key, at in self.timers.items() if key[0] != name}
        self.nodes[name] = self.broker(name)
        for record in self.disks[name]:
            self.nodes[name].replay(record)
        self.act(name, self.nodes[name].resume(self.now))

    def act(self, name: str, effects: list[Any]) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                self.under_way.append((name, effect.target, effect.message))
            elif isinstance(effect, Handed):
                self.handed.append((name, effect))
            elif isinstance(effect, Persist):
                self.disks.setdefault(name, []).append(effect.record)
            elif isinstance(effect, SetTimer):
                self.timers[name, effect.name] = self.now + effect.after_s
            elif isinstance(effect, CancelTimer):
                self.timers.pop((name, effect.name), None)
            elif isinstance(effect, Answer) and effect.outcome == "done":
                sid, _, version = effect.call.partition("/")
                known = self.confirmed.setdefault((name, int(sid)), [])
                known.append((self.deeds, int(version)))
            elif isinstance(effect, Note):
                assert effect.mark not in ("bad_frame", "link_refused", "cycle_cut"), effect

    def step(self) -> bool:
        rng = self.rng
        self.now += 0.001
        timers = {key: at for key, at in self.timers.items() if key[1] != PATIENCE}
        if self.under_way and not (timers and rng.random() < 0.03):
            place = rng.randrange(min(len(self.under_way), self.window))
            source, target, message = self.under_way.pop(place)
            if rng.random() >= self.loss:
                if rng.random() < self.twice:
                    self.under_way.append((source, target, message))
                self.act(target, self.nodes[target].receive(source, message, self.now))
        elif timers:
            name, timer = first = min(timers, key=lambda key: timers[key])
            self.now = max(self.now, self.timers.pop(first))
            self.act(name, self.nodes[name].fire(timer, self.now))
        return bool(self.under_way or timers)

    def run(self) -> None:
        for _ in range(60_000):
            if not self.step():
                return
        raise AssertionError(f"never quiet: {self.under_way[:3]} {self.timers}")

    def deed(self) -> None:
        """One client does something; a topic counts as advertised from the next quiet time on."""
        rng, self.deeds = self.rng, self.deeds + 1
        name, topic = rng.choice(self.clients), rng.choice("tu")
        client, kind = self.nodes[name].client, rng.random()
        predicate = rng.choice(PREDICATES)
        values = {one.name: rng.randint(0, 9) for one in predicate.parameters}
        mine = [key for key in self.versions if key[0] == name]
        effects: list[Any] = []
        if kind < 0.2:
            if (name, topic) not in self.advertised:
                self.advertised[name, topic] = self.deeds
                effects = client.advertise(topic, self.now)
            elif rng.random() < 0.3:
                del self.advertised[name, topic]
                effects = client.unadvertise(topic, self.now)
        elif kind < 0.35:
            sid, effects = client.subscribe(topic, predicate, values, self.now)
            self.versions[name, sid], self.topic_of[name, sid] = {1: (predicate, values)}, topic
        elif kind < 0.5 and mine:
            sid = rng.choice(mine)[1]
            if rng.random() < 0.2:
                del self.versions[name, sid]
                effects = client.unsubscribe(sid, self.now)
            else:
                effects = client.replace(sid, predicate, values, self.now)
                self.versions[name, sid][client.version(sid)] = (predicate, values)
        elif (name, topic) in self.advertised:
            k = rng.randint(0, 9)
            since = self.advertised[name, topic]
            self.published.append((name, client.next_seq, topic, k, self.deeds, since))
            effects = client.publish(topic, {"k": k}, self.now)
        self.act(name, self.nodes[name].do(effects, self.now))

    # Judging.

    def judge(self, established: int) -> None:
        got = Counter(
            (name, sid, one.pub.publisher, one.pub.seq)
            for name, one in self.handed for sid in one.sids
        )  # fmt: skip
        assert not [key for key, count in got.items() if count > 1]
        highest: Counter[tuple[str, str]] = Counter()
        for name, one in self.handed:
            assert one.pub.seq > highest[name, one.pub.publisher], "out of order"
            highest[name, one.pub.publisher] = one.pub.seq
        for publisher, seq, topic, k, at, since in self.published:
            if since > established or self.advertised.get((publisher, topic)) != since:
                continue
            for (name, sid), versions in self.versions.items():
                before = [one for when, one in self.confirmed.get((name, sid), ()) if when < at]
                due = [each for one, each in versions.items() if before and one >= max(before)]
                if due and self.topic_of[name, sid] == topic and all(
                    predicate.matches(values, {"k": k}) for predicate, values in due
                ):  # fmt: skip
                    self.owed += 1
                    assert got[name, sid, publisher, seq] == 1, (name, sid, publisher, seq)
        self.published.clear()

    def is_as_without_faults(self) -> None:
        for name, sid in self.versions:
            client = self.nodes[name].client
            assert client.installed(sid) == client.version(sid)
        assert self.timers == {}
        for name, near in self.near.items():
            broker, lines = self.nodes[name].broker, self.nodes[name]._lines
            state = broker.repair.s
            waits = [state.missing, state.asking, state.expected, *state.stale.values()]
            assert not any(waits), name
            assert not lines._open
            assert not any(one.waiting or one.debts or one.open for one in lines._lines.values())
            for topic in "tu":
                for other in near:
                    behind = broker._overlay.behind(other)
                    wanted = any(
                        one == topic and self.nodes[client].edge in behind
                        for client, one in self.advertised
                    )
                    known = broker.topics.get(topic)
                    assert wanted == (known is not None and other in known.s.advertisers)
                    if wanted:
                        there = self.nodes[other].broker.topics[topic].table(name)
                        assert known.filters[other].s.told == there
            for known in broker.topics.values():
                assert not known.s.duties
                assert not any(UNANSWERED in each for each in known.s.entries.values())


def test_random_trees_of_brokers_that_crash_keep_what_they_promise():
    owed = 0
    for seed in range(100 * TIMES):
        tree = Tree(seed)
        rng = tree.rng
        for phase in range(3):
            established = tree.deeds
            tree.loss, tree.twice = rng.choice([0.0, 0.0, 0.1, 0.3]), rng.choice([0.0, 0.1])
            crashes = rng.choice([0, 1, 2, 4]) if phase else 0
            for _ in range(rng.randint(10, 60)):
                tree.deed()
                for _ in range(rng.randint(0, 12)):
                    tree.step()
                if crashes and rng.random() < 0.15:
                    crashes -= 1
                    tree.crash(rng.choice([*tree.near]))
            tree.loss = tree.twice = 0.0
            tree.run()
            tree.judge(established)
            tree.is_as_without_faults()
        owed += tree.owed
    assert owed > 300
