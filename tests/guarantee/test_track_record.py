"""Counterexamples of a review: each test failed when it was written, and says what should hold."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from inorder.check import judge
from inorder.content.broker import Broker
from inorder.content.messages import Attach, Bye, Fack, Flt, Hello
from inorder.content.summary import Delta
from inorder.core.effect import Deliver, Send
from inorder.core.errors import Misuse
from inorder.core.event import Event
from inorder.guarantee.attach import BrokerLink
from inorder.guarantee.broker import LinkedBroker
from inorder.guarantee.compose import Filtering
from inorder.guarantee.none import Published
from inorder.guarantee.registry import guarantee
from inorder.sim.memory import Memory
from inorder.sim.scenario import from_table
from inorder.sim.simulate import build
from inorder.sim.world import World
from tests.content.network import Network

CHEAP = "price < :limit"
DEAR = "price > :limit"


# Brokers.


def far_publisher(**options: Any) -> Network:
    """Publisher p at b1, subscriber s at b0."""
    network = Network(**options)
    network.line("b0", "b1")
    network.client("p", "b1")
    network.client("s", "b0")
    network.run()
    network.advertise("p", "t")
    network.run()
    return network


def drain(network: Network, source: str, target: str) -> None:
    while network.queues.get((source, target)):
        network.step((source, target))


def test_a_broker_restored_with_a_change_withheld_survives_that_it_is_taken_back():
    network = far_publisher(min_interval=1.0, summary="exact")
    network.now = 5.0
    network.subscribe("s", "t", "k = 1")
    network.run()
    network.now = 5.1
    withheld = network.subscribe("s", "t", "k = 2")
    network.run()
    network.brokers["b0"] = Broker.restore(network.brokers["b0"].snapshot())
    network.unsubscribe("s", withheld)
    network.run()
    network.fire("b0", "filters")


def test_a_client_that_crashed_takes_no_confirmation_of_its_former_life():
    network = far_publisher()
    network.subscribe("s", "t", CHEAP, limit=10)
    network.step(("s", "b0"))
    network.client("s", "b0")  # a new life
    network.subscribe("s", "t", DEAR, limit=50)
    drain(network, "s", "b0")
    network.step(("b0", "b1"))  # only the filter of the former life
    network.step(("b1", "b0"))
    drain(network, "b0", "s")
    installed = bool(network.answers)
    event = network.publish("p", "t", price=60)
    network.step(("p", "b1"))
    network.run()
    assert not installed or network.got("s") == [event]


def test_installed_waits_for_the_last_piece_of_a_change_that_was_withheld():
    network = far_publisher(min_interval=1.0, summary="exact")
    network.now = 5.0
    network.subscribe("s", "t", "k = -1")
    network.run()
    network.now = 5.1
    for number in range(1001):
        network.subscribe("s", "t", "k = :k", k=number)
    network.run()
    network.fire("b0", "filters")
    network.step(("b0", "b1"))  # the first thousand
    network.step(("b1", "b0"))
    drain(network, "b0", "s")
    installed = {answer.call for _, answer in network.answers}
    event = network.publish("p", "t", k=1000)
    network.step(("p", "b1"))
    network.run()
    assert "1002/1" not in installed or network.got("s") == [event]


def test_a_link_that_begins_anew_within_a_batch_gets_no_confirmation_of_the_old_one():
    broker = Broker("b0")
    broker.connect("n", 0.0)
    broker.receive("n", Hello(("n",)), 0.0)
    broker.receive("s", Attach(("t",)), 0.0)
    old = Flt("t", 1, 1, True, Delta())
    inbox = [("n", old), ("n", Bye("lost")), ("n", Hello(("n",)))]
    effects = broker.receive_all(inbox, 0.0)
    said = [each.message for each in effects if isinstance(each, Send)]
    # The new session has no filter yet: nothing of it can be confirmed.
    assert not [each for each in said if isinstance(each, Fack)]


def test_honest_brokers_never_have_more_unconfirmed_than_the_next_one_allows(monkeypatch):
    """Each client keeps to the limit; together they would pass it on the link between brokers."""
    monkeypatch.setattr("inorder.content.broker.CONTENT_UNCONFIRMED_MAX", 5)
    network = Network()
    network.line("b0", "b1", "b2")
    network.client("p", "b2")
    names = ("s", "v")
    for name in names:
        network.client(name, "b0")
    network.run()
    network.advertise("p", "t")
    network.run()
    sids = [network.subscribe(name, "t", f"{name} < :limit", limit=1) for name in names]
    network.run()
    for value in range(2, 6):
        for name, sid in zip(names, sids, strict=True):
            network.set(name, sid, limit=value)
    for link in (("s", "b0"), ("v", "b0"), ("b0", "b1")):
        drain(network, *link)
    network.run()
    event = network.publish("p", "t", s=4)
    network.run()
    assert network.got("s") == [event]


# The composition.


class Composed(Network):
    """Clients are whole compositions; `delivered` has what their applications got."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.delivered: list[tuple[str, str]] = []
        hosts: dict[str, Any] = self.brokers
        for name, other in (("b0", "b1"), ("b1", "b0")):
            hosts[name] = LinkedBroker(Broker(name, **options), [other])
        for name in ("b0", "b1"):
            self.act(name, hosts[name].begin(self.now))
        self.run()
        self.publisher = self.add("p", "b1")
        self.subscriber = self.add("s", "b0")
        self.run()

    def add(self, name: str, edge: str) -> Filtering:
        none = guarantee("none")
        link = BrokerLink(name, edge, ("t", "u"), "parametric")
        made = Filtering(none, none.client(name, ("t", "u"), None), link)
        clients: dict[str, Any] = self.clients
        clients[name] = made
        self.act(name, made.begin(self.now))
        return made

    def act(self, name: str, effects: Iterable[Any]) -> None:
        effects = list(effects)
        super().act(name, effects)
        self.delivered += [(name, each.event.id) for each in effects if isinstance(each, Deliver)]

    def say(self, effects: list[Any]) -> None:
        self.act("s", effects)

    def event(self, topic: str, **value: Any) -> str:
        number = self.publisher.next_seq
        self.act("p", self.publisher.publish(topic, value, self.now))
        self.run()
        return f"p:{number}"


def test_a_subscribe_that_names_a_held_topic_is_refused_as_a_whole():
    world = Composed()
    world.say(world.subscriber.subscribe("a", ["t"], 0.0, CHEAP, {"limit": 10}))
    world.run()
    with pytest.raises(Misuse, match="held already"):
        world.subscriber.subscribe("b", ["t", "u"], 0.0, CHEAP, {"limit": 100})
    event = world.event("t", price=5)
    world.event("t", price=50)
    assert world.delivered == [("s", event)]


def test_an_unsubscribe_leaves_the_filter_of_a_topic_that_it_does_not_drop():
    none = guarantee("none")
    made = Filtering(none, none.client("s", ("t", "u"), None))
    made.subscribe("a", ["t"], 0.0, CHEAP, {"limit": 10})
    made.joined("t", 0.0)
    made.subscribe("b", ["u"], 0.0, CHEAP, {"limit": 10})
    made.unsubscribe("c", ["t", "u"], 0.0)  # u is not held yet: the guarantee goes on joining it
    made.joined("u", 0.0)
    stranger = Published(Event("p", 1, "u", {"price": 50}))
    assert made.receive("p", stranger, 0.0) == []


def test_a_topic_subscribed_twice_while_joining_leaves_nothing_at_the_broker():
    world = Composed()
    world.say(world.subscriber.subscribe("a", ["t"], 0.0, CHEAP, {"limit": 10}))
    with pytest.raises(Misuse, match="held already"):
        world.subscriber.subscribe("b", ["t"], 0.0, CHEAP, {"limit": 20})
    world.run()
    world.say(world.subscriber.unsubscribe("c", ["t"], 0.0))
    world.run()
    assert world.brokers["b0"].broker.clients["s"].topics == {}


def test_a_refused_subscribe_changes_nothing():
    subscriber = Composed().subscriber
    before = subscriber.snapshot()
    with pytest.raises(Misuse):
        subscriber.subscribe("a", ["x" * 300], 0.0, CHEAP, {"limit": 10})
    assert subscriber.snapshot() == before


def test_a_subscribe_that_the_broker_refuses_is_answered(monkeypatch):
    monkeypatch.setattr("inorder.content.edge.CONTENT_SUBSCRIPTIONS_PER_CLIENT_MAX", 1)
    world = Composed()
    world.say(world.subscriber.subscribe("a", ["t"], 0.0, CHEAP, {"limit": 10}))
    world.run()
    world.say(world.subscriber.subscribe("b", ["u"], 0.0, CHEAP, {"limit": 10}))
    world.run()
    assert [answer.call for name, answer in world.answers if name == "s"] == ["a", "b"]


# The simulated world: what is owed.


def two_brokers(**brokers: Any) -> tuple[World, Memory]:
    """s1 is at one broker, p2 at the other; 0.1 s between them."""
    table = {
        "topics": 2,
        "order": {"guarantee": "none"},
        "network": {
            "overlay": "brokers",
            "brokers": {
                "count": 2, "shape": "line", "match": "content",
                "link": {"law": "constant", "mean": 0.1},
                "processing": {"law": "constant", "mean": 0.001}, **brokers,
            },
        },
        "publishers": {"count": 2},
        "subscribers": [{"name": "s", "where": CHEAP, "parameters": {"limit": 10}}],
    }  # fmt: skip
    memory = Memory()
    return build(from_table(table), 1, memory), memory


def broken(world: World, memory: Memory) -> dict[str, Any]:
    world.agenda.run(60.0)
    world.finish()
    verdicts = judge(memory.history(), ["filter", "reliable", "unique"])
    return {name: each.counts for name, each in verdicts.items() if each.broken}


def test_a_set_while_joining_is_not_owed_before_it_is_installed():
    world, memory = two_brokers(min_interval=1.0)
    world.agenda.run(5.0)
    world.subscribe("s1", ["t1"], CHEAP, {"limit": 10})
    world.agenda.run(5.01)
    world.set("s1", {"limit": 100})
    world.agenda.run(5.5)  # the subscription is installed, the set is withheld
    world.publish("p2", "t1", {"price": 50})
    assert broken(world, memory) == {}


def test_leaving_one_topic_does_not_make_a_set_due_on_another():
    world, memory = two_brokers(min_interval=1.0)
    world.subscribe("s1", ["t1", "t2"], CHEAP, {"limit": 10})
    world.agenda.run(5.0)
    world.set("s1", {"limit": 20})
    world.agenda.run(5.01)
    world.set("s1", {"limit": 100})
    world.agenda.run(5.3)
    world.unsubscribe("s1", ["t2"])
    world.agenda.run(5.4)
    world.publish("p2", "t1", {"price": 50})
    assert broken(world, memory) == {}


def test_a_set_of_a_former_life_is_over_with_it():
    world, memory = two_brokers()
    world.subscribe("s1", ["t1"], CHEAP, {"limit": 10})
    world.agenda.run(0.01)
    world.set("s1", {"limit": 100})
    world.agenda.run(0.02)
    world.crash("s1")  # before anything is held
    world.agenda.run(1.0)
    world.restart("s1")
    world.subscribe("s1", ["t1"], DEAR, {"limit": 50})
    world.agenda.run(5.0)
    world.publish("p2", "t1", {"price": 70})
    assert broken(world, memory) == {}


def test_a_topic_confirmed_before_the_others_of_its_call_is_held():
    world, memory = two_brokers(min_interval=1.0)
    world.agenda.run(5.0)
    world.subscribe("s1", ["t1"], CHEAP, {"limit": 10})
    world.agenda.run(5.3)
    world.unsubscribe("s1", ["t1"])
    world.agenda.run(5.4)
    world.subscribe("s1", ["t1", "t2"], CHEAP, {"limit": 10})
    world.agenda.run(5.8)  # t2 is installed, t1 is withheld: no answer yet
    world.publish("p2", "t2", {"price": 5})
    assert broken(world, memory) == {}


def test_nothing_is_owed_for_a_confirmation_of_a_former_life():
    world, memory = two_brokers()
    world.agenda.run(5.0)
    world.subscribe("s1", ["t1"], CHEAP, {"limit": 10})
    world.agenda.run(5.05)
    world.crash("s1")
    world.restart("s1")
    world.agenda.run(5.15)
    world.subscribe("s1", ["t1"], DEAR, {"limit": 50})
    world.agenda.run(5.22)
    world.publish("p2", "t1", {"price": 60})
    assert broken(world, memory) == {}
