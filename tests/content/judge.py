"""Random trees under an independent judge.

The judge keeps its own books from what the applications did: every version of every subscription,
every publication, who advertises. It knows predicates by their meaning (the tree, word by word) and
brokers by their tables. Numbers A1 ... A16 are the properties of the specification.

Half of the trees run without summaries and with *marked* predicates: each form holds `mark <> :m`
with a mark for this client, subscription and version, so that a table shows which version it has.
"""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise
from typing import Any

from inorder.content.bind import boxes_of
from inorder.content.messages import Adv, Flt, Hello, Installed, Pub
from inorder.content.predicate import Predicate
from inorder.core.effect import Send
from inorder.core.pack import pack
from tests.content.network import Network

TOPICS = ["t", "u"]
SHAPES = [
    "price < :x{m}",
    "price BETWEEN :x AND :y{m}",
    "(price = :x{m}) OR (price = :y{m})",
    "price = :x AND size = :y{m}",
    "(firm = 'a' AND price < :x{m}) OR (size > :y{m})",
    "price IN (:x, :y) AND firm = 'b'{m}",
    "price >= :x AND size <= :y{m}",
]
PREDICATES = {
    (shape, marked): Predicate.parse(shape.replace("{m}", " AND mark <> :m" if marked else ""))
    for shape in SHAPES
    for marked in (False, True)
}


def draw_event(rng: random.Random) -> dict[str, Any]:
    event = {"mark": "event", "price": rng.randint(0, 9), "size": rng.randint(0, 9)}
    event["firm"] = rng.choice("ab")
    if rng.random() < 0.1:
        del event[rng.choice(["price", "size", "firm"])]
    return event


class Version:
    """A predicate with its values, as some application has had it."""

    def __init__(self, predicate: Predicate, values: dict[str, Any]) -> None:
        self.predicate = predicate
        self.values = dict(values)

    def matches(self, attributes: dict[str, Any] | None) -> bool:
        if attributes is None:
            return bool(self.predicate.bind(self.values))
        return self.predicate.matches(self.values, attributes)

    def forms(self) -> list[bytes]:
        vectors = self.predicate.values_of(self.values)
        return sorted(map(pack, zip(self.predicate.skeleton, vectors, strict=True)))


class Judge:
    """Watches a network; what it finds wrong is an AssertionError that names the property."""

    def __init__(self, net: Network, marked: bool, rng: random.Random) -> None:
        self.net, self.marked, self.rng = net, marked, rng
        self.versions: dict[tuple[str, int], list[Version]] = {}
        self.topic_of: dict[tuple[str, int], str] = {}
        self.advertising: set[tuple[str, str]] = set()
        self.published: dict[str, tuple[str, Any]] = {}
        # Pairs (event, subscription) with the version that was in force when it was published.
        self.due: dict[tuple[str, tuple[str, int]], int] = {}
        self.established: set[tuple[str, str]] = set()
        self.delivered: Counter[tuple[str, tuple[str, int]]] = Counter()
        self.carried: set[tuple[str, str, str]] = set()
        self.newest: dict[tuple[str, str, str], int] = {}
        self.lossy: set[str] = set()
        self.count: Counter[str] = Counter()
        net.watchers.append(self)

    # What the network does.

    def before(self, source: str, target: str, messages: list[Any]) -> None:
        self.count["messages"] += len(messages)
        for message in messages:
            if isinstance(message, Pub):
                event = f"{message.publisher}:{message.seq}"
                hop = (source, target, event)
                assert hop not in self.carried, f"A2: {event} goes twice from {source} to {target}"
                self.carried.add(hop)
                topic, attributes = self.published[event]
                assert (message.topic, message.attributes) == (topic, attributes), "A3: phantom"

    def after(self, source: str, target: str, messages: list[Any], effects: list[Any]) -> None:
        if target in self.net.clients:
            for message in messages:
                if isinstance(message, Pub):
                    self._handed(target, message)
                elif isinstance(message, Installed):
                    self._installed(target, message)
            return
        if not any(isinstance(message, Adv | Hello) for message in messages):
            echoes = [e for e in effects if isinstance(e, Send) and isinstance(e.message, Flt)]
            assert all(e.target != source for e in echoes), "A6: a filter goes back where it came"
        self._probe(target, source)

    def _handed(self, client: str, message: Pub) -> None:
        event = f"{message.publisher}:{message.seq}"
        last = self.net.handed[-1] if self.net.handed else None
        got: tuple[int, ...] = ()
        if last and last[0] == client and last[1].pub == message:
            got = last[1].sids
        wanted = [
            sid
            for (name, sid), versions in sorted(self.versions.items())
            if name == client
            and self.topic_of[(name, sid)] == message.topic
            and versions[-1].matches(message.attributes)
        ]
        assert list(got) == wanted, f"A1: {client} was handed {event} for {got}, not {wanted}"
        for sid in got:
            self.delivered[(event, (client, sid))] += 1
            assert self.delivered[(event, (client, sid))] == 1, "A2: handed over twice"
        self.count["deliveries"] += len(got)

    def _probe(self, broker: str, link: str) -> None:
        """A4, A5, A16 at a broker that has just acted, for the link it heard from."""
        machine = self.net.brokers[broker]
        for name, topic in machine.topics.items():
            if self.marked:
                forms = [f for entry in topic.s.entries.get(link, {}).values() for f in entry.forms]
                self._unmixed(broker, link, forms)
            for neighbour, one in topic.filters.items():
                others = [
                    form
                    for other, entries in topic.s.entries.items()
                    if other != neighbour
                    for entry in entries.values()
                    for form in entry.forms
                ]
                told = list(one.s.told.values())
                event = draw_event(self.rng)
                if not one.s.withheld and _some(others, event):
                    assert _some(told, event), f"A4: {broker} tells {neighbour} too little"
                flying = self.net.queues.get((broker, neighbour), ())
                asked = self._asked(neighbour, broker, name)
                if asked == one.s.session and not any(isinstance(m, Flt) for m in flying):
                    table = self.net.brokers[neighbour].topics[name].table(broker)
                    assert _bytes(table) == _bytes(one.s.told), "A4: a table is not what was sent"

    def _asked(self, broker: str, link: str, topic: str) -> int | None:
        known = self.net.brokers[broker].topics.get(topic)
        asked = known.s.asked.get(link) if known else None
        return asked.session if asked else None

    def _unmixed(self, broker: str, link: str, forms: list[Any]) -> None:
        """A5: all forms of a subscription are of one version. A16: which never goes back."""
        for subscription, found in self._by_mark(forms).items():
            client, sid, _ = subscription.split("/")
            marks = {mark for mark, _ in found}
            assert len(marks) == 1, f"A5: {broker} mixes {sorted(marks)}"
            version = next(iter(marks))
            history = self.versions.get((client, int(sid)))
            if history is not None:
                whole = history[version].forms()
                assert sorted(pack(form) for _, form in found) == whole, "A5: a part of a version"
            place = (broker, link, subscription)
            assert version >= self.newest.get(place, 0), f"A16: {broker} goes back to {version}"
            self.newest[place] = version

    def _by_mark(self, forms: list[Any]) -> dict[str, list[tuple[int, Any]]]:
        found: dict[str, list[tuple[int, Any]]] = {}
        for form in forms:
            mark = next(v for v in form[1] if isinstance(v, str) and "/" in v)
            subscription, _, version = mark.rpartition("/")
            found.setdefault(subscription, []).append((int(version), form))
        return found

    def _installed(self, client: str, message: Installed) -> None:
        """A13: on the way from every established advertiser the version, or a later one, is in."""
        machine = self.net.clients[client]
        for sid in machine.sids:
            state = machine._subscriptions[sid].s
            if state.wire != message.sid or state.installed != message.version:
                continue
            self.count["installed"] += 1
            versions = self.versions[(client, sid)][message.version - 1 :]
            for publisher, topic in sorted(self.established):
                if topic == state.topic:
                    self._in_force(client, sid, message.version, versions, publisher, topic)

    def _in_force(
        self,
        client: str,
        sid: int,
        version: int,
        versions: list[Version],
        publisher: str,
        topic: str,
    ) -> None:
        path = self.path(self.net.edges[publisher], self.net.edges[client])
        hops = [*pairwise(path), (path[-1], client)]
        events = [draw_event(self.rng) for _ in range(4)]
        for broker, towards in hops:
            entries = self.net.brokers[broker].topics[topic].s.entries.get(towards, {})
            forms = [form for entry in entries.values() for form in entry.forms]
            if self.marked:
                found = self._by_mark(forms).get(f"{client}/{sid}/", [])
                # Versions count from 1, the list of them from 0.
                assert all(mark + 1 >= version for mark, _ in found), "A13: installed too early"
                assert found or not versions[0].forms(), "A13: installed nowhere"
            for event in events:
                if all(one.matches(event) for one in versions):
                    assert _some(forms, event), "A13: installed too early"

    # What the applications do.

    def draw_values(
        self, predicate: Predicate, client: str, sid: int, version: int
    ) -> dict[str, Any]:
        values = {"x": self.rng.randint(0, 9), "y": self.rng.randint(0, 9)}
        values["m"] = f"{client}/{sid}//{version}"
        return {use.name: values[use.name] for use in predicate.parameters}

    def subscribe(self, client: str, topic: str) -> None:
        predicate = PREDICATES[(self.rng.choice(SHAPES), self.marked)]
        sid = self.net.clients[client]._s.next_sid
        values = self.draw_values(predicate, client, sid, 0)
        self.versions[(client, sid)] = [Version(predicate, values)]
        self.topic_of[(client, sid)] = topic
        _, effects = self.net.clients[client].subscribe(topic, predicate, values, self.net.now)
        self.net.act(client, effects)

    def change(self, client: str, sid: int, whole: bool) -> None:
        history = self.versions[(client, sid)]
        predicate = history[-1].predicate
        machine = self.net.clients[client]
        if whole:
            predicate = PREDICATES[(self.rng.choice(SHAPES), self.marked)]
        values = self.draw_values(predicate, client, sid, len(history))
        if not whole and self.rng.random() < 0.4:
            values["x"] = history[-1].values["x"]
        version = machine.version(sid)
        if whole:
            effects = machine.replace(sid, predicate, values, self.net.now)
        else:
            effects = machine.set(sid, values, self.net.now)
        if machine.version(sid) > version:
            history.append(Version(predicate, values))
        else:
            assert effects == [], "an update that changes nothing says something"
        self.net.act(client, effects)
        self.count["updates"] += 1

    def unsubscribe(self, client: str, sid: int) -> None:
        self.net.unsubscribe(client, sid)
        del self.versions[(client, sid)], self.topic_of[(client, sid)]

    def advertise(self, client: str, topic: str) -> None:
        on = (client, topic) not in self.advertising
        self.net.advertise(client, topic, on)
        (self.advertising.add if on else self.advertising.discard)((client, topic))
        self.established.discard((client, topic))

    def publish(self, client: str, topic: str) -> str:
        attributes = draw_event(self.rng) if self.rng.random() < 0.97 else None
        machine = self.net.clients[client]
        event = f"{client}:{machine.next_seq}"
        self.published[event] = (topic, attributes)
        if (client, topic) in self.established:
            for (name, sid), of in self.topic_of.items():
                installed = self.net.clients[name].installed(sid)
                if of == topic and installed and name not in self.lossy:
                    self.due[(event, (name, sid))] = installed
        self.net.act(client, machine.publish(topic, attributes, self.net.now))
        self.count["events"] += 1
        return event

    # When all is quiet.

    def settle(self) -> None:
        """Let everything arrive; then every account must be balanced."""
        self.net.run(self.rng)
        for (event, owner), installed in sorted(self.due.items()):
            if owner not in self.versions:
                continue
            attributes = self.published[event][1]
            since = self.versions[owner][installed - 1 :]
            if all(version.matches(attributes) for version in since):
                assert self.delivered[(event, owner)] == 1, f"A14, A15: {owner} lost {event}"
                self.count["owed events"] += 1
        self.due.clear()
        self.established = set(self.advertising)
        for name, sid in sorted(self.versions):
            machine = self.net.clients[name]
            assert machine.installed(sid) == machine.version(sid), "A13: never installed"
        self.fixpoint()

    def probe(self) -> None:
        """A10: exactly the matching subscriptions get an event published now."""
        for client, topic in sorted(self.advertising):
            event = self.publish(client, topic)
            self.due.clear()
            self.net.run(self.rng)
            attributes = self.published[event][1]
            for owner, of in sorted(self.topic_of.items()):
                wanted = of == topic and self.versions[owner][-1].matches(attributes)
                assert self.delivered[(event, owner)] == wanted, f"A10: {owner} and {event}"

    def fixpoint(self) -> None:
        """A11: the tables are what follows from the clients' present state."""
        for name, broker in self.net.brokers.items():
            for topic in TOPICS:
                known = broker.topics.get(topic)
                advertisers = set(known.s.advertisers) if known else set()
                asked = set(known.s.asked) if known else set()
                assert advertisers == self._right_advertisers(name, topic), "A11: advertisers"
                for neighbour in broker.neighbours:
                    side = self.side(name, neighbour)
                    here = any(
                        of == topic and self.net.edges[client] not in side
                        for client, of in self.advertising
                    )
                    assert (neighbour in asked) == here, "A11: who was told of an advertiser"
                    table = known.table(neighbour) if known else {}
                    self._right_table(table, topic, side if here else set())
            # A broker keeps no topic that nobody cares for.
            cared = {of for _, of in self.advertising} | set(self.topic_of.values())
            assert set(broker.topics) <= cared, "A11: a topic is kept for nobody"

    def _right_advertisers(self, broker: str, topic: str) -> set[str]:
        right: set[str] = set()
        for client, of in self.advertising:
            if of == topic:
                path = self.path(broker, self.net.edges[client])
                right.add(path[1] if len(path) > 1 else client)
        return right

    def _right_table(self, table: dict[int, Any], topic: str, side: set[str]) -> None:
        behind = [
            self.versions[owner][-1]
            for owner, of in self.topic_of.items()
            if of == topic and self.net.edges[owner[0]] in side
        ]
        if self.marked:
            right = sorted(form for version in behind for form in version.forms())
            assert sorted(map(pack, table.values())) == right, "A11: a table"
        for event in [draw_event(self.rng) for _ in range(3)]:
            wanted = any(version.matches(event) for version in behind)
            found = _some(list(table.values()), event)
            assert found or not wanted, "A11: a table holds too little"
            if self.net.options.get("summary") in ("exact", "everything"):
                assert wanted or not found, "A11: a table holds too much"
        assert bool(table) <= bool(behind), "A11: a table for nobody"

    def side(self, broker: str, neighbour: str) -> set[str]:
        """The brokers behind a neighbour, from the tree alone."""
        found, waiting = {neighbour}, [neighbour]
        while waiting:
            for other in self.net.brokers[waiting.pop()].neighbours:
                if other != broker and other not in found:
                    found.add(other)
                    waiting.append(other)
        return found

    def path(self, a: str, b: str) -> list[str]:
        if a == b:
            return [a]
        for neighbour in self.net.brokers[a].neighbours:
            if b in self.side(a, neighbour):
                return [a, *self._onwards(a, neighbour, b)]
        raise AssertionError("no path in a tree")

    def _onwards(self, came: str, a: str, b: str) -> list[str]:
        if a == b:
            return [a]
        for neighbour in self.net.brokers[a].neighbours:
            if neighbour != came and b in self.side(a, neighbour):
                return [a, *self._onwards(a, neighbour, b)]
        raise AssertionError("no path in a tree")


def _bytes(table: dict[int, Any]) -> bytes:
    return pack(sorted(table.items()))


def _some(forms: list[Any], event: dict[str, Any]) -> bool:
    return any(box.contains(event) for form in forms for box in boxes_of(*form))


KINDS: list[tuple[str, bool, dict[str, Any]]] = [
    ("everything", True, {}),
    ("everything", True, {"batches": True}),
    ("grouped", False, {}),
    ("exact", False, {"wired": True}),
    ("grouped", False, {"modes": True}),
    ("bounded(2)", False, {}),
]


def plant(seed: int) -> tuple[Judge, random.Random]:
    """A random tree with clients, links up, nobody interested in anything yet."""
    rng = random.Random(seed)
    summary, marked, options = KINDS[seed % len(KINDS)]
    options = dict(options)
    modes = options.pop("modes", False)
    engine = "naive" if seed // len(KINDS) % 3 else "index"
    net = Network(summary=summary, engine=engine, **options)
    judge = Judge(net, marked, rng)
    names = [f"b{number}" for number in range(rng.randint(2, 8))]
    net.broker(*names)
    for number, name in enumerate(names[1:], 1):
        net.link(*rng.sample([name, names[rng.randrange(number)]], 2))
    for number in range(rng.randint(3, 7)):
        mode = rng.choice(["parametric", "make", "break"]) if modes else "parametric"
        net.client(f"c{number}", rng.choice(names), mode=mode)
        if mode == "break":
            judge.lossy.add(f"c{number}")
    net.run(rng)
    assert all(len(broker._overlay) == len(names) for broker in net.brokers.values())
    return judge, rng


def mingle(judge: Judge, rng: random.Random, acts: int, weights: list[int]) -> None:
    """Applications act and links deliver, in any order."""
    net, clients = judge.net, sorted(judge.net.clients)
    verbs = ["publish", "set", "replace", "subscribe", "unsubscribe", "advertise"]
    while acts:
        busy = net.busy()
        if busy and rng.random() < 0.6:
            net.step(rng.choice(busy))
            continue
        acts -= 1
        verb = rng.choices(verbs, weights)[0]
        owners = sorted(judge.versions)
        if verb == "publish" and judge.advertising:
            judge.publish(*rng.choice(sorted(judge.advertising)))
        elif verb in ("set", "replace") and owners:
            judge.change(*rng.choice(owners), whole=verb == "replace")
        elif verb == "unsubscribe" and owners:
            judge.unsubscribe(*rng.choice(owners))
        elif verb == "subscribe" and len(owners) < 12:
            judge.subscribe(rng.choice(clients), rng.choice(TOPICS))
        elif verb == "advertise":
            judge.advertise(rng.choice(clients), rng.choice(TOPICS))


def judged_tree(seed: int) -> Counter[str]:
    """One random tree from its first link to its last word."""
    judge, rng = plant(seed)
    mingle(judge, rng, 25, [5, 3, 1, 10, 1, 8])
    judge.settle()
    judge.probe()
    mingle(judge, rng, 40, [25, 15, 4, 3, 2, 3])
    judge.settle()
    judge.probe()
    for owner in sorted(judge.versions):
        judge.unsubscribe(*owner)
    for client, topic in sorted(judge.advertising):
        judge.advertise(client, topic)
    judge.net.run(rng)
    judge.fixpoint()
    assert all(not broker.topics for broker in judge.net.brokers.values()), "something is left"
    alarms = ("event_on_two_links", "repeated_event", "bad_message", "cycle_cut", "refused")
    assert not any(judge.net.notes[alarm] for alarm in alarms), judge.net.notes
    judge.count["stale filters"] = judge.net.notes["stale_filter"]
    return judge.count
