"""The broker alone and on short lines: links, sessions, confirmations, hostile messages."""

from __future__ import annotations

import contextlib
import random

import pytest

from inorder.content.broker import TIMER, Broker
from inorder.content.engine import forms_of
from inorder.content.messages import (
    Adv,
    Attach,
    Bye,
    Err,
    Flt,
    Hello,
    Installed,
    Pub,
    Sub,
)
from inorder.content.predicate import Predicate
from inorder.content.smoothing import Smoothing
from inorder.core.effect import Send
from inorder.core.errors import BadMessage, Misuse, UnknownName
from tests.content.network import Network

FORMS = forms_of(Predicate.parse("price < :x"), {"x": 10})
FORM = FORMS[0]


def told(net: Network, broker: str, link: str) -> list:
    topic = net.brokers[broker].topics.get("t")
    return sorted(form[1] for form in topic.table(link).values()) if topic else []


def pair(**options) -> Network:
    """A publisher p at b1, a subscriber s at b2."""
    net = Network(**options)
    net.line("b1", "b2")
    net.client("p", "b1")
    net.client("s", "b2")
    net.advertise("p", "t")
    net.run()
    return net


# Links.


def test_a_link_that_closes_a_cycle_is_refused():
    net = Network()
    net.line("b1", "b2", "b3")
    with pytest.raises(Misuse, match="cycle"):
        net.link("b3", "b1")
    with pytest.raises(Misuse, match="already"):
        net.link("b1", "b2")
    before = net.brokers["b1"].snapshot()
    refusal = net.brokers["b1"].receive("b9", Hello(("b3", "b9")), 0.0)
    assert refusal[0] == Send("b9", Bye("b3 is in both trees"))
    assert net.brokers["b1"].snapshot() == before


@pytest.mark.parametrize("seed", range(30))
def test_two_links_made_at_once_that_close_a_cycle_are_found_out(seed):
    rng = random.Random(seed)
    net = Network()
    net.line("a1", "a2")
    net.line("z1", "z2")
    net.link("a1", "z1")
    net.link(*rng.sample(["a2", "z2"], 2))
    while busy := net.busy():
        with contextlib.suppress(BadMessage):  # what still comes by a link that was cut
            net.step(rng.choice(busy))
    assert net.notes["cycle_cut"] + net.notes["cycle_refused"] >= 1
    links = sum(len(broker.neighbours) for broker in net.brokers.values()) // 2
    assert links <= 3
    # Nobody believes in a broker that it cannot reach any more.
    for name, broker in net.brokers.items():
        reached, waiting = {name}, [name]
        while waiting:
            for other in net.brokers[waiting.pop()].neighbours:
                if other not in reached:
                    reached.add(other)
                    waiting.append(other)
        assert {name, *broker._overlay.s.where} == reached


def test_both_ends_may_begin_a_link():
    net = Network()
    net.broker("b1", "b2")
    net.link("b1", "b2")
    net.link("b2", "b1")
    net.run()
    assert net.brokers["b1"].neighbours == ("b2",)
    assert net.brokers["b2"].neighbours == ("b1",)


def test_the_safety_net_drops_an_event_that_comes_by_two_links():
    broker = Broker("b1")
    for name in ("b2", "b3"):
        broker.receive(name, Hello((name,)), 0.0)
        broker.receive(name, Adv("t", True, 1), 0.0)
    broker.receive("c", Attach(), 0.0)
    broker.receive("c", Sub(1, "t", FORMS, 1), 0.0)
    event = Pub("t", "p", 1, {"price": 1})
    assert broker.receive("b2", event, 0.0) == [Send("c", event)]
    assert not any(isinstance(e, Send) for e in broker.receive("b3", event, 0.0))
    assert broker.account()["events_on_two_links"] == 1


def test_a_broken_link_is_forgotten_and_begins_anew():
    net = pair()
    sid = net.subscribe("s", "t", "price < :x", x=10)
    net.run()
    net.set("s", sid, x=20)  # lost on the way
    net.step(("s", "b2"))
    net.lose_link("b1", "b2")
    net.run()
    assert told(net, "b1", "b2") == []
    assert net.brokers["b1"]._overlay.s.where == {}
    net.link("b2", "b1")
    net.run()
    event = net.publish("p", "t", price=15)
    net.run()
    assert told(net, "b1", "b2") == [(20,)]
    assert net.got("s") == [event]


def test_a_restarted_broker_learns_everything_again():
    net = pair()
    sid = net.subscribe("s", "t", "price < :x", x=10)
    net.run()
    net.set("s", sid, x=20)
    for other in ("s", "b1"):
        net.lose_link("b2", other)
    net.brokers["b2"] = Broker("b2")
    net.link("b2", "b1")
    net.act("s", net.clients["s"].connect(0.0))
    net.run()
    event = net.publish("p", "t", price=15)
    net.run()
    assert (told(net, "b1", "b2"), net.got("s")) == ([(20,)], [event])
    assert net.clients["s"].installed(sid) == 2


def test_a_client_that_comes_back_takes_nothing_back_in_between():
    net = pair()
    kept = net.subscribe("s", "t", "price < :x", x=10)
    gone = net.subscribe("s", "t", "size < 3")
    net.run()
    before = len(net.said("b2", "b1", Flt))
    client = net.clients["s"]
    client.disconnect(0.0)
    client.unsubscribe(gone, 0.0)
    client.set(kept, {"x": 11}, 0.0)
    net.act("s", client.connect(0.0))
    while net.busy():
        assert any(vector[0] >= 10 for vector in told(net, "b1", "b2"))
        net.step(net.busy()[0])
    assert told(net, "b1", "b2") == [(11,)]
    assert all(not flt.reset for flt in net.said("b2", "b1", Flt)[before:])
    assert client.installed(kept) == 2


# Sessions.


def test_a_subscriber_may_be_older_than_its_advertiser():
    net = Network()
    net.line("b1", "b2", "b3")
    net.client("p", "b1")
    net.client("s", "b3")
    net.subscribe("s", "t", "price < 10")
    net.run()
    net.advertise("p", "t")
    net.run()
    event = net.publish("p", "t", price=3)
    net.run()
    assert net.got("s") == [event]
    assert [flt.reset for flt in net.said("b3", "b2", Flt)] == [True]


def test_late_filters_of_a_closed_session_are_ignored():
    net = pair()
    sid = net.subscribe("s", "t", "price < :x", x=1)
    net.step(("s", "b2"))
    assert len(net.queues[("b2", "b1")]) == 1  # a filter of the first session, under way
    net.advertise("p", "t", on=False)
    net.advertise("p", "t", on=True)
    net.step(("p", "b1"))
    net.step(("p", "b1"))
    net.step(("b2", "b1"))
    assert net.notes["stale_filter"] == 1
    assert told(net, "b1", "b2") == []
    net.set("s", sid, x=2)
    net.run()
    assert told(net, "b1", "b2") == [(2,)]
    assert net.clients["s"].installed(sid) == 2


def test_the_last_one_out_leaves_nothing_behind():
    net = pair()
    net.advertise("s", "t")
    ids = {name: net.subscribe(name, "t", "price < 10") for name in ("p", "s")}
    net.run()
    for name, sid in ids.items():
        net.unsubscribe(name, sid)
        net.advertise(name, "t", on=False)
    net.run()
    assert all(not broker.topics for broker in net.brokers.values())


# Publishing.


def test_what_is_not_advertised_is_refused_or_advertised_for_you():
    event = Pub("t", "c", 4, {})
    broker = Broker("b1")
    broker.receive("c", Attach(), 0.0)
    (refusal,) = broker.receive("c", event, 0.0)
    assert isinstance(refusal.message, Err)
    assert (refusal.message.version, refusal.message.code) == (4, "NOT_ADVERTISED")
    helpful = Broker("b1", auto_advertise=True)
    helpful.receive("b2", Hello(("b2",)), 0.0)
    helpful.receive("c", Attach(), 0.0)
    assert [e.message for e in helpful.receive("c", event, 0.0)] == [Adv("t", True, 1)]


@pytest.mark.parametrize("echo", [True, False])
def test_own_events_come_back_unless_told_otherwise(echo):
    net = Network(echo=echo)
    net.broker("b1")
    net.client("p", "b1")
    net.advertise("p", "t")
    net.subscribe("p", "t", "price < 10")
    event = net.publish("p", "t", price=1)
    net.run()
    assert net.got("p") == ([event] if echo else [])


# Confirmations.


def test_installed_comes_when_the_last_broker_has_it_and_in_order():
    net = Network(summary="everything")
    net.line("b1", "b2", "b3")
    net.client("p", "b1")
    net.client("s", "b3")
    net.advertise("p", "t")
    net.run()
    sid = net.subscribe("s", "t", "price < :x", x=1)
    net.set("s", sid, x=2)
    net.step(("s", "b3"))
    net.step(("s", "b3"))
    for hop in (("b3", "b2"), ("b2", "b1"), ("b1", "b2"), ("b2", "b3")):
        assert net.clients["s"].installed(sid) == 0
        assert not net.queues.get(("b3", "s"))
        net.step(hop)
    net.step(("b3", "s"))
    assert net.clients["s"].installed(sid) == 1
    net.run()
    assert [m.version for m in net.said("b3", "s", Installed)] == [1, 2]


def test_a_change_that_another_interest_carries_waits_for_it():
    """The second subscription causes no filter, but rests on one that is not confirmed yet."""
    net = pair(summary="grouped")
    net.client("s2", "b2")
    net.run()
    net.subscribe("s", "t", "price < :x", x=10)
    net.step(("s", "b2"))
    net.subscribe("s2", "t", "price < :x", x=5)
    net.step(("s2", "b2"))
    assert len(net.said("b2", "b1", Flt)) == 2  # the empty reset and the first change
    assert not net.queues.get(("b2", "s2"))
    net.run()
    assert net.clients["s2"].installed(1) == 1


def test_nobody_waits_for_an_advertiser_that_has_left():
    net = pair()
    net.subscribe("s", "t", "price < 1")
    net.step(("s", "b2"))
    net.advertise("p", "t", on=False)
    net.step(("p", "b1"))
    net.step(("b1", "b2"))
    assert [type(m) for m in net.queues[("b2", "s")]] == [Installed]


# Rates and smoothing.


def test_at_most_one_filter_in_an_interval_and_the_last_state_wins():
    net = pair(min_interval=1.0)
    net.now = 5.0
    sid = net.subscribe("s", "t", "price < :x", x=1)
    net.run()
    before = len(net.said("b2", "b1", Flt))
    for value in (2, 3, 4):
        net.now += 0.1
        net.set("s", sid, x=value)
        net.run()
    assert len(net.said("b2", "b1", Flt)) == before
    assert net.clients["s"].installed(sid) == 1  # nothing is confirmed that was not sent
    net.fire("b2", TIMER)
    net.run()
    assert told(net, "b1", "b2") == [(4,)]
    assert len(net.said("b2", "b1", Flt)) == before + 1
    assert net.clients["s"].installed(sid) == 4
    assert net.timers == {}


def test_a_change_taken_back_within_the_interval_is_confirmed_all_the_same():
    net = pair(min_interval=1.0)
    net.now = 5.0
    sid = net.subscribe("s", "t", "price < :x", x=1)
    net.run()
    net.now += 0.1
    for value in (2, 1):
        net.set("s", sid, x=value)
        net.run()
    net.fire("b2", TIMER)
    net.run()
    assert net.clients["s"].installed(sid) == 3


def test_smoothing_broadens_at_once_and_narrows_to_the_outermost_of_the_hold():
    net = pair(smoothing=Smoothing(hold=1.0, margin=0.0))
    sid = net.subscribe("s", "t", "price BETWEEN :lo AND :hi", lo=4, hi=60)
    net.run()
    before = len(net.said("b2", "b1", Flt))
    for hi in (40, 50, 45):
        net.set("s", sid, hi=hi)
        net.run()
        net.now += 0.1
    assert len(net.said("b2", "b1", Flt)) == before
    net.set("s", sid, lo=2)
    net.run()
    (broad,) = net.said("b2", "b1", Flt)[before:]
    assert broad.delta.moved[0][1] == (2, 60)
    net.fire("b2", TIMER)
    net.run()
    assert told(net, "b1", "b2") == [(2, 50)]
    net.fire("b2", TIMER)
    net.run()
    assert told(net, "b1", "b2") == [(2, 45)]
    assert net.timers == {}


def test_smoothing_with_a_margin_lets_small_steps_pass_in_silence():
    net = pair(smoothing=Smoothing(hold=1.0, margin=0.1))
    sid = net.subscribe("s", "t", "price < :x", x=100)
    net.run()
    net.set("s", sid, x=120)
    net.run()
    assert told(net, "b1", "b2") == [(132,)]
    before = len(net.said("b2", "b1", Flt))
    for value in (125, 130, 121, 132):
        net.set("s", sid, x=value)
        net.run()
    assert len(net.said("b2", "b1", Flt)) == before
    net.set("s", sid, x=10)
    net.run()
    twin = Broker.restore(net.brokers["b2"].snapshot())
    assert twin.snapshot() == net.brokers["b2"].snapshot()
    assert twin.fire(TIMER, 9.0) == net.brokers["b2"].fire(TIMER, 9.0)


# Snapshots.


@pytest.mark.parametrize("summary", ["everything", "exact", "grouped", "bounded(2)"])
def test_a_restored_broker_goes_on_where_it_was(summary):
    net = pair(summary=summary)
    sid = net.subscribe("s", "t", "price < :x OR size = :y", x=10, y=1)
    net.subscribe("p", "t", "price < 3")
    net.run()
    for name in ("b1", "b2"):
        broker = net.brokers[name]
        twin = net.brokers[name] = Broker.restore(broker.snapshot())
        assert twin.snapshot() == broker.snapshot()
    before = len(net.said("b2", "b1", Flt))
    net.set("s", sid, x=20)
    net.run()
    (change,) = net.said("b2", "b1", Flt)[before:]
    assert (change.delta.added, change.delta.deleted) == ((), ())
    events = [net.publish("p", "t", price=15), net.publish("p", "t", size=1)]
    net.run()
    assert net.got("s") == events


def test_a_session_with_very_many_entries_takes_several_messages():
    net = Network(summary="everything", engine="naive")
    net.line("b1", "b2")
    net.client("p", "b1")
    net.client("s", "b2")
    for limit in range(1200):
        net.subscribe("s", "t", "price < :x", x=limit)
    net.run()
    net.advertise("p", "t")
    net.run()
    assert [flt.reset for flt in net.said("b2", "b1", Flt)] == [True, False]
    assert len(told(net, "b1", "b2")) == 1200


def test_unknown_engines_and_summaries_are_refused():
    with pytest.raises(UnknownName):
        Broker("b", engine="steam")
    with pytest.raises(UnknownName):
        Broker("b", summary="none")


def test_empty_and_unsatisfiable_subscriptions_match_nothing():
    net = pair()
    net.act("s", [Send("b2", Sub(99, "t", (), 1))])
    sid = net.subscribe("s", "t", "price BETWEEN :lo AND :hi", lo=5, hi=1)
    net.subscribe("s", "t", "firm IN :firms", firms=[])
    net.run()
    net.publish("p", "t", price=3, firm="a")
    net.run()
    assert net.got("s") == []
    net.set("s", sid, hi=9)
    net.run()
    event = net.publish("p", "t", price=6)
    net.run()
    assert net.got("s") == [event]
