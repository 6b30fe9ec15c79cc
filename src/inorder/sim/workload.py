"""What applications do in a run: who publishes what when, who subscribes to what, who replies.

Everything is drawn from the seed, each node from a stream of its own, before it happens: a *story*
of publications, operations and faults. A story can be told again with parts left out, which is how
a failing run is shrunk.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from random import Random
from typing import Any, Literal

from msgspec import Struct

from inorder.core.event import Event, Scalar
from inorder.sim import cells, faults, topics
from inorder.sim.drawn import Drawn
from inorder.sim.models import Delays
from inorder.sim.scenario import ChurnTable, Scenario, SubscribersTable
from inorder.sim.world import World

# A reply to a reply to a reply is the last: a chain of causes long enough for any check.
REPLY_DEPTH_MAX = 3


class Publication(Struct, frozen=True, gc=False):
    at: float
    topic: str
    value: dict[str, Scalar]


class Operation(Struct, frozen=True, gc=False):
    at: float
    node: str
    op: Literal["subscribe", "unsubscribe"]
    topics: tuple[str, ...]


class Update(Struct, frozen=True, gc=False):
    """New values for the parameters of a filter."""

    at: float
    values: dict[str, Any]


class Story(Struct, frozen=True):
    """Everything that will be done and will go wrong, before anybody reacts.

    `luck` picks among the random streams of the network: the same deeds, other delays. `delays`
    are those of an earlier telling, to be used where they fit, or empty, to be filled.
    """

    publications: Mapping[str, Iterable[Publication]]
    operations: Sequence[Operation]
    faults: Sequence[faults.Fault]
    updates: Mapping[str, Iterable[Update]] = {}
    luck: int = 0
    delays: Delays | None = None


def publisher_names(scenario: Scenario) -> list[str]:
    return [f"p{number}" for number in range(1, scenario.publishers.count + 1)]


def subscriber_names(group: SubscribersTable) -> list[str]:
    return [f"{group.name}{number}" for number in range(1, group.count + 1)]


def node_names(scenario: Scenario) -> list[str]:
    """Every client of the scenario: publishers, then the groups of subscribers."""
    names = publisher_names(scenario)
    for group in scenario.subscribers:
        names.extend(subscriber_names(group))
    return names


def tell(scenario: Scenario, seed: int) -> Story:
    """Draw the story of a seed; publications are generated as they are needed."""
    names = publisher_names(scenario)
    publications = {name: _publications(scenario, f"{seed}", name) for name in names}
    for group in scenario.subscribers:
        if group.rate:
            for node in subscriber_names(group):
                publications[node] = _contributions(scenario, f"{seed}", group, node)
    return Story(
        publications=publications,
        operations=_operations(scenario, f"{seed}"),
        faults=faults.draw(
            scenario.faults,
            node_names(scenario),
            [
                *sorted(scenario.guarantee.services(scenario.topic_names, scenario.options)),
                *(scenario.network.brokers.names if scenario.matches_content else ()),
            ],
            scenario.faults_until,
            f"{seed}",
        ),
        updates={
            node: _updates(scenario, group, f"{seed}", node)
            for group in scenario.subscribers
            if group.updates
            for node in subscriber_names(group)
        },
    )


def _publications(scenario: Scenario, seed: str, name: str) -> Iterator[Publication]:
    table = scenario.publishers
    if table.rate == 0.0:
        return
    rng = Random(f"{seed}/publisher/{name}")
    names = scenario.topic_names
    own = names[(int(name[1:]) - 1) % len(names)]
    picker = topics.Picker(
        names, topics.weights(table.topics, len(names), table.share, table.exponent)
    )
    drawn = Drawn(scenario.attributes)
    period = 1.0 / table.rate
    at = rng.random() * period
    while at <= scenario.duration:
        if table.topics == "own":
            topic = own
        elif table.topics == "last":
            topic = names[-1]
        else:
            topic = picker.pick(rng)
        yield Publication(at, topic, _value(scenario, drawn, rng))
        at += period if table.arrivals == "periodic" else rng.expovariate(table.rate)


def _contributions(
    scenario: Scenario, seed: str, group: SubscribersTable, node: str
) -> Iterator[Publication]:
    """What a subscriber publishes, on the topics that it holds from the beginning."""
    rng = Random(f"{seed}/contributions/{node}")
    drawn = Drawn(scenario.attributes)
    held = _wanted(scenario, seed, group, node)
    at = rng.expovariate(group.rate)
    while at <= scenario.duration:
        yield Publication(at, rng.choice(held), _value(scenario, drawn, rng))
        at += rng.expovariate(group.rate)


def _updates(scenario: Scenario, group: SubscribersTable, seed: str, node: str) -> Iterator[Update]:
    rng = Random(f"{seed}/updates/{node}")
    drawn = Drawn(group.laws)
    at = rng.expovariate(group.updates)
    while at <= scenario.duration:
        yield Update(at, drawn.draw(rng))
        at += rng.expovariate(group.updates)


def _value(scenario: Scenario, drawn: Drawn, rng: Random) -> dict[str, Scalar]:
    value: dict[str, Scalar] = drawn.draw(rng)
    if scenario.publishers.bytes:
        value["body"] = "x" * scenario.publishers.bytes
    return value


def _wanted(scenario: Scenario, seed: str, group: SubscribersTable, node: str) -> list[str]:
    """The topics that a subscriber holds from the beginning."""
    names = scenario.topic_names
    if isinstance(group.topics, tuple):
        return list(group.topics)
    if group.topics == "all":
        return list(names)
    weights = topics.weights(group.topics, len(names), group.share, group.exponent)
    picker = topics.Picker(names, weights)
    return picker.pick_several(Random(f"{seed}/subscriber/{node}"), group.per)


def _operations(scenario: Scenario, seed: str) -> list[Operation]:
    held = {
        node: _wanted(scenario, seed, group, node)
        for group in scenario.subscribers
        for node in subscriber_names(group)
    }
    churn = scenario.churn
    spare = list(held)[len(held) - churn.spare :] if churn else []
    operations = [
        Operation(0.0, node, "subscribe", tuple(topics))
        for node, topics in held.items()
        if node not in spare
    ]
    if churn is not None and churn.session is not None:
        operations.extend(_sessions(scenario, churn, seed, held, spare))
    else:
        operations.extend(_churn(scenario, seed, held))
    return operations


def _sessions(
    scenario: Scenario, churn: ChurnTable, seed: str, held: dict[str, list[str]], spare: list[str]
) -> Iterator[Operation]:
    """Subscribers stay for a while each; who leaves is replaced by who has been away longest."""
    assert churn.session is not None
    rng = Random(f"{seed}/sessions")
    until = scenario.duration if churn.until is None else churn.until
    away = deque(spare)
    ends = [(churn.start + churn.session.draw(rng), node) for node in held if node not in spare]
    heapify(ends)
    while ends and ends[0][0] <= until:
        at, node = heappop(ends)
        yield Operation(at, node, "unsubscribe", tuple(held[node]))
        away.append(node)
        # Not the one that has just left, unless it is the only one.
        successor = away.popleft()
        yield Operation(at, successor, "subscribe", tuple(held[successor]))
        heappush(ends, (at + churn.session.draw(rng), successor))


def _churn(scenario: Scenario, seed: str, held: dict[str, list[str]]) -> Iterator[Operation]:
    churn = scenario.churn
    if churn is None or churn.rate == 0.0 or not held:
        return
    rng = Random(f"{seed}/churn")
    names = scenario.topic_names
    nodes = list(held)
    until = scenario.duration if churn.until is None else churn.until
    at = churn.start + rng.expovariate(churn.rate)
    while at <= until:
        node = rng.choice(nodes)
        mine = held[node]
        others = [topic for topic in names if topic not in mine]
        if others and (not mine or rng.random() < 0.5):
            chosen = rng.sample(others, rng.randint(1, min(2, len(others))))
            mine.extend(chosen)
            yield Operation(at, node, "subscribe", tuple(chosen))
        elif mine:
            chosen = rng.sample(mine, 1)
            mine.remove(chosen[0])
            yield Operation(at, node, "unsubscribe", tuple(chosen))
        at += rng.expovariate(churn.rate)


class Workload:
    """Acts a story out in a world, and reacts: replies, and subscribes again after a crash.

    A node has one operation under way at a time; the others wait for its answer.
    """

    def __init__(self, world: World, scenario: Scenario, seed: int, story: Story) -> None:
        self.published = 0
        self.missed = 0
        self._world = world
        self._wanted: dict[str, dict[str, None]] = {}
        self._queue: dict[str, deque[Operation]] = {}
        self._busy: dict[str, str] = {}
        self._reply: dict[str, tuple[float, Random]] = {}
        # What each node filters by: the predicate, and its values at present.
        self._filters: dict[str, tuple[str, dict[str, Any]]] = {}
        # Where topics have places, replies stand somewhere, too.
        self._somewhere = Drawn(cells.place_laws(scenario))
        for group in scenario.subscribers:
            for node in subscriber_names(group):
                if group.reply:
                    self._reply[node] = (group.reply, Random(f"{seed}/reply/{node}"))
                if group.where is not None:
                    moving = Drawn(group.laws).draw(Random(f"{seed}/parameters/{node}"))
                    self._filters[node] = (group.where, {**group.constants, **moving})
        for operation in story.operations:
            world.agenda.at(operation.at, self._operate, operation)
        for name, publications in story.publications.items():
            self._publish_next(name, iter(publications))
        for name, updates in story.updates.items():
            self._update_next(name, iter(updates))

    def _publish_next(self, name: str, publications: Iterator[Publication]) -> None:
        publication = next(publications, None)
        if publication is not None:
            self._world.agenda.at(publication.at, self._publish, name, publication, publications)

    def _publish(
        self, name: str, publication: Publication, publications: Iterator[Publication]
    ) -> None:
        if self._world.publish(name, publication.topic, publication.value):
            self.published += 1
        else:
            self.missed += 1
        self._publish_next(name, publications)

    def _update_next(self, name: str, updates: Iterator[Update]) -> None:
        update = next(updates, None)
        if update is not None:
            self._world.agenda.at(update.at, self._update, name, update, updates)

    def _update(self, name: str, update: Update, updates: Iterator[Update]) -> None:
        # Not while effects wait for the disk: deliveries decided before this call come first.
        if not self._world.nodes[name].waiting:
            self._filters[name][1].update(update.values)
            self._world.set(name, update.values)
        self._update_next(name, updates)

    def _operate(self, operation: Operation) -> None:
        wanted = self._wanted.setdefault(operation.node, {})
        for topic in operation.topics:
            if operation.op == "subscribe":
                wanted[topic] = None
            else:
                wanted.pop(topic, None)
        self._queue.setdefault(operation.node, deque()).append(operation)
        self._start_next(operation.node)

    def _start_next(self, node: str) -> None:
        queue = self._queue.get(node)
        world = self._world
        while queue and node not in self._busy:
            if world.nodes[node].absent:
                if not world.nodes[node].alive:
                    queue.clear()  # the restart subscribes to everything wanted
                    return
                world.agenda.after(0.1, self._start_next, node)
                return
            if world.nodes[node].waiting:
                # Deliveries decided before this call still wait for the disk: they come first.
                world.agenda.after(0.001, self._start_next, node)
                return
            operation = queue.popleft()
            self._busy[node] = operation.op
            if operation.op == "subscribe":
                where, values = self._filters.get(node, (None, None))
                world.subscribe(node, operation.topics, where, values)
            else:
                world.unsubscribe(node, operation.topics)

    # What the world tells the application.

    def answered(self, node: str, call: str, outcome: str) -> None:
        if call.startswith(f"{node}/"):
            self._busy.pop(node, None)
            # Not from inside the answer: the effects behind it come first.
            self._world.agenda.after(0.0, self._start_next, node)

    def restarted(self, node: str) -> None:
        self._busy.pop(node, None)
        self._queue.pop(node, None)
        if wanted := self._wanted.get(node):
            now = self._world.agenda.now
            self._operate(Operation(now, node, "subscribe", tuple(wanted)))

    def delivered(self, node: str, event: Event, in_order: bool) -> None:
        habit = self._reply.get(node)
        if habit is None or event.publisher == node:
            return
        probability, rng = habit
        depth = event.value.get("depth", 0)
        assert isinstance(depth, int)
        if rng.random() < probability and depth < REPLY_DEPTH_MAX:
            value: dict[str, Scalar] = {"reply_to": event.id, "depth": depth + 1}
            value.update(self._somewhere.draw(rng))
            # Not from inside the delivery: the effects behind it come first.
            self._world.agenda.after(0.0, self._world.publish, node, event.topic, value)
