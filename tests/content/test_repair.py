"""A broker crashes and comes back with nothing: what its neighbours tell it, and what is confirmed
meanwhile. Links are renewed one by one, in the order that hurts."""

from __future__ import annotations

from typing import Any

import pytest

from inorder.content.broker import Broker
from inorder.content.door import delta_problem
from inorder.content.messages import Adv, Attach, Hello, Installed, Pub, Said, Sub
from inorder.content.repair import EVERYTHING, PATIENCE_S, TIMER, Repair
from inorder.content.summary import Delta
from inorder.content.topic import UNANSWERED, Topic
from inorder.core.effect import CancelTimer, Effect, Send, SetTimer
from inorder.core.errors import BadMessage
from tests.content.network import Network


def line(*brokers: str, **options: Any) -> Network:
    """A line of brokers, the publisher at its end, a subscriber at its beginning."""
    net = Network(**options)
    net.line(*brokers)
    net.client("p", brokers[-1])
    net.client("c", brokers[0])
    net.advertise("p", "quotes")
    net.run()
    return net


# Links of brokers that have crashed and have not been renewed.
dead: list[set[str]] = []


@pytest.fixture(autouse=True)
def _all_links_are_alive():
    dead.clear()


def crash(net: Network, name: str, *clients: str) -> None:
    """Everything it knew is gone, and all that was under way."""
    for link, queue in net.queues.items():
        if name in link:
            queue.clear()
    near = net.brokers[name].neighbours
    dead.extend({name, other} for other in near)
    net.brokers[name] = Broker(name, **net.options)
    net.act(name, net.brokers[name].recover(near, clients))


def renew(net: Network, one: str, other: str) -> None:
    """The link begins anew at both ends; what either said in the old one is gone."""
    dead[:] = [link for link in dead if link != {one, other}]
    for source, target in ((one, other), (other, one)):
        net.queues.pop((source, target), None)
    for source, target in ((one, other), (other, one)):
        net.act(source, net.brokers[source].renew(target, net.now))


def run_but(net: Network, *held: tuple[str, str]) -> None:
    """Until nothing moves except on these links, and on dead ones."""
    while busy := [link for link in net.busy() if link not in held and {*link} not in dead]:
        net.step(busy[0])


def installed(net: Network, client: str) -> int:
    return len(net.said(net.edges[client], client, Installed))


def test_a_link_to_a_neighbour_that_came_back_brings_everything_until_it_answers():
    net = line("b1", "b2", "b3")
    net.subscribe("c", "quotes", "price < 10")
    net.run()
    crash(net, "b2")
    assert net.brokers["b3"].topics["quotes"].table("b2"), "what it wanted is not forgotten yet"
    renew(net, "b2", "b3")
    assert net.brokers["b3"].topics["quotes"].table("b2") == {UNANSWERED: EVERYTHING}
    run_but(net)
    # b1 has not spoken: whatever comes may be for it.
    table = net.brokers["b2"].topics["quotes"].s.entries
    assert table["b1"][UNANSWERED].forms == (EVERYTHING,)
    renew(net, "b1", "b2")
    net.run()
    for name in ("b2", "b3"):
        entries = net.brokers[name].topics["quotes"].s.entries
        assert not any(UNANSWERED in each for each in entries.values()), name
        assert not net.brokers[name].repair.cautious
    assert net.brokers["b3"].topics["quotes"].table("b2") != {UNANSWERED: EVERYTHING}
    net.publish("p", "quotes", price=5)
    net.run()
    assert net.got("c") == ["p:1"]


def test_nothing_is_confirmed_past_a_neighbour_that_has_not_said_all():
    net = line("b1", "b2", "b3")
    assert not early(net)
    assert net.said("b1", "b2", Said)
    assert not net.said("b2", "b1", Said)
    renew(net, "b2", "b3")
    net.run()
    assert installed(net, "c") == 1
    net.publish("p", "quotes", price=5)
    net.run()
    assert net.got("c") == ["p:1"]


def early(net: Network) -> bool:
    """Whether a subscription made meanwhile is confirmed though b3 does not know of it."""
    crash(net, "b2")
    renew(net, "b1", "b2")
    net.subscribe("c", "quotes", "price < 10")
    run_but(net)
    return installed(net, "c") > 0


def early_before(net: Network) -> bool:
    """The same with a subscription that was on its way when b2 crashed."""
    net.subscribe("c", "quotes", "price < 10")
    net.step(("c", "b1"))
    crash(net, "b2")
    renew(net, "b1", "b2")
    run_but(net)
    return installed(net, "c") > 0


def test_what_needed_a_neighbour_before_it_crashed_still_does():
    net = line("b1", "b2", "b3")
    assert not early_before(net)
    renew(net, "b2", "b3")
    net.run()
    assert installed(net, "c") == 1


def not_listening(patch: pytest.MonkeyPatch) -> None:
    owe = Topic.owe
    patch.setattr(Topic, "owe", lambda self, *args: owe(self, *args[:3]))


def impatient(patch: pytest.MonkeyPatch) -> None:
    def say(self: Repair) -> list[Effect]:
        asking, self.s.asking = self.s.asking, {}
        return [Send(neighbour, Said()) for neighbour in asking]

    patch.setattr(Repair, "say", say)


@pytest.mark.parametrize("rule", [not_listening, impatient])
def test_each_of_these_rules_is_needed(rule, monkeypatch):
    rule(monkeypatch)
    assert early(line("b1", "b2", "b3"))


def test_what_needed_a_filter_that_may_be_forgotten_waits_on(monkeypatch):
    def suspend(self: Topic, neighbour: str) -> None:
        self.s.filters.pop(neighbour, None)
        self.filters.pop(neighbour, None)

    monkeypatch.setattr(Topic, "suspend", suspend)
    assert early_before(line("b1", "b2", "b3"))


def test_a_neighbour_still_advertises_what_it_advertised_until_it_has_said_all():
    net = line("b0", "b1", "b2", "b3")
    net.subscribe("c", "quotes", "price < 10")
    net.run()
    before = len(net.said("b1", "b0", Adv))
    crash(net, "b2")
    renew(net, "b2", "b3")
    renew(net, "b1", "b2")
    # Nothing of b0 arrives any more: it has said long ago what it wants.
    run_but(net, ("b0", "b1"))
    assert len(net.said("b1", "b0", Adv)) == before, "b0 never hears of it"
    net.publish("p", "quotes", price=5)
    run_but(net, ("b0", "b1"))
    assert net.got("c") == ["p:1"]


def test_what_a_neighbour_does_not_advertise_again_is_over():
    net = line("b1", "b2", "b3")
    net.advertise("p", "news")
    net.run()
    crash(net, "b2")
    crash(net, "b3")
    renew(net, "b1", "b2")
    run_but(net)
    assert "b2" in net.brokers["b1"].topics["news"].s.advertisers
    renew(net, "b2", "b3")
    net.run()
    assert "news" not in net.brokers["b1"].topics


def test_a_broker_waits_for_the_clients_that_it_knew_but_not_for_ever():
    net = line("b1", "b2")
    net.subscribe("c", "quotes", "price < 10")
    net.run()
    crash(net, "b1", "c", "gone")
    assert net.timers[("b1", TIMER)] == net.now + PATIENCE_S
    renew(net, "b1", "b2")
    net.run()
    entries = net.brokers["b1"].topics["quotes"].s.entries
    assert set(entries) == {"c", "gone"}
    assert not net.said("b1", "b2", Said)
    net.act("c", net.clients["c"].connect(net.now))
    net.run()
    entries = net.brokers["b1"].topics["quotes"].s.entries
    assert UNANSWERED not in entries["c"]
    assert set(entries) == {"c", "gone"}
    net.fire("b1", TIMER)
    net.run()
    assert net.notes["client_given_up"] == 1
    assert set(net.brokers["b1"].topics["quotes"].s.entries) == {"c"}
    assert net.said("b1", "b2", Said)


def test_a_client_counts_as_wanting_everything_until_it_has_said_its_last_subscription():
    broker = Broker("b1")
    [patience] = broker.recover((), ("c",))
    assert patience == SetTimer(TIMER, PATIENCE_S)
    broker.receive("p", Attach(("quotes",)), 0.0)
    broker.receive("c", Attach((), (7, 9)), 0.0)
    for sid in (7, 9):
        sent = broker.receive("p", Pub("quotes", "p", sid, {"price": 50}), 0.0)
        assert Send("c", Pub("quotes", "p", sid, {"price": 50})) in sent
        broker.receive("c", Sub(sid, "quotes", (), 1), 0.0)
    sent = broker.receive("p", Pub("quotes", "p", 10, {"price": 50}), 0.0)
    assert not any(isinstance(effect, Send) and effect.target == "c" for effect in sent)


def test_a_reset_in_several_pieces_stands_for_everything_until_its_last(monkeypatch):
    monkeypatch.setattr("inorder.content.links.CONTENT_FILTER_ENTRIES", 2)
    net = line("b1", "b2", summary="everything")
    for limit in range(5):
        net.subscribe("c", "quotes", "price < :limit", limit=limit)
    net.run()
    renew(net, "b1", "b2")
    while len(net.brokers["b2"].topics["quotes"].table("b1")) < 2:
        net.step(net.busy()[0])
    topic = net.brokers["b2"].topics["quotes"]
    while len(topic.table("b1")) < 6:
        assert topic.wanting({"price": 1000}) == ["b1"]
        net.step(("b1", "b2"))
        if ("b1", "b2") not in net.busy():
            net.step(net.busy()[0])
        if UNANSWERED not in topic.table("b1"):
            break
    assert len(topic.table("b1")) == 5
    assert topic.wanting({"price": 1000}) == []


def test_numbers_below_one_are_ours():
    broker = Broker("b1")
    broker.receive("c", Attach(), 0.0)
    with pytest.raises(BadMessage, match="numbers a subscription 0"):
        broker.receive("c", Sub(0, "quotes", (), 1), 0.0)
    delta = Delta(added=((0, EVERYTHING),))
    assert delta_problem(delta, {}, True) == "an entry has no number"


def test_who_greets_as_new_is_not_waited_for():
    broker = Broker("b1")
    broker.connect("b2", 0.0)
    effects = broker.receive("b2", Hello(("b2",)), 0.0)
    assert not any(isinstance(effect.message, Said) for effect in effects)
    broker.renew("b2", 1.0)
    effects = broker.receive("b2", Hello(("b2",), again=True), 1.0)
    assert Send("b2", Said()) in effects


def test_a_publisher_that_is_the_last_to_come_back_loses_nothing():
    """All else has been said; whoever hears of its topic only now may have wanted it all along."""
    broker = Broker("b1")
    broker.recover(("b2",), ("p",))
    broker.renew("b2", 0.0)
    broker.receive("b2", Hello(("b2",), again=True), 0.0)
    broker.receive("b2", Said(), 0.0)
    broker.receive("p", Attach(("quotes",)), 0.0)
    event = Pub("quotes", "p", 1, {"price": 5})
    assert Send("b2", event) in broker.receive("p", event, 0.0)
    assert not broker.repair.cautious


def test_a_topic_in_the_same_inbox_as_the_word_that_ends_repair_is_an_old_one():
    broker = Broker("b1")
    broker.recover(("b2", "b3"), ())
    for neighbour in ("b2", "b3"):
        broker.renew(neighbour, 0.0)
        broker.receive(neighbour, Hello((neighbour,), again=True), 0.0)
    broker.receive("b2", Said(), 0.0)
    broker.receive_all([("b3", Adv("quotes", True, 1)), ("b3", Said())], 0.0)
    event = Pub("quotes", "p", 1, {"price": 5})
    assert Send("b2", event) in broker.receive("b3", event, 0.0)
    assert not broker.repair.cautious


def test_one_that_is_silent_counts_as_wanting_what_is_advertised_meanwhile():
    """b2 advertised the topic itself, and so was never asked; now it has crashed, and the topic
    is advertised from the other side before b2 is back."""
    broker = Broker("b1")
    broker.recover(("b2", "b3"), ())
    for neighbour in ("b2", "b3"):
        broker.renew(neighbour, 0.0)
    broker.receive("b2", Hello(("b2",), again=True), 0.0)
    broker.receive("b2", Adv("quotes", True, 1), 0.0)
    broker.receive("b3", Hello(("b3",), again=True), 0.0)
    broker.renew("b2", 0.0)
    broker.receive("b3", Adv("quotes", True, 1), 0.0)
    event = Pub("quotes", "p", 1, {"price": 5})
    assert Send("b2", event) in broker.receive("b3", event, 0.0)


def up(clients: tuple[str, ...], *neighbours: str) -> Broker:
    """A broker that has crashed; its neighbours have greeted it again and said no more."""
    broker = Broker("b1")
    broker.recover(neighbours, clients)
    for neighbour in neighbours:
        broker.renew(neighbour, 0.0)
        broker.receive(neighbour, Hello((neighbour,), again=True), 0.0)
    return broker


def test_a_topic_is_an_old_one_while_a_client_or_a_neighbour_is_missing():
    event = Pub("quotes", "p", 1, {"price": 5})
    broker = up(("p", "c"), "b2")
    broker.receive("b2", Said(), 0.0)
    broker.receive("p", Attach(("quotes",)), 0.0)
    assert Send("b2", event) in broker.receive("p", event, 0.0)
    broker = up((), "b2", "b3")
    broker.receive("b2", Said(), 0.0)
    broker.receive("b3", Adv("quotes", True, 1), 0.0)
    assert Send("b2", event) in broker.receive("b3", event, 0.0)


def test_nobody_waits_any_more_when_the_last_client_is_back():
    broker = up(("c", "d"))
    assert CancelTimer(TIMER) not in broker.receive("c", Attach(), 0.0)
    assert CancelTimer(TIMER) in broker.receive("d", Attach(), 0.0)


def test_a_neighbour_that_begins_anew_is_told_all_before_the_word():
    broker = up((), "b2", "b3")
    broker.renew("b2", 0.0)
    assert Send("b2", Said()) not in broker.receive("b3", Said(), 0.0)
    assert Send("b2", Said()) in broker.receive("b2", Hello(("b2",), again=True), 0.0)


def test_a_neighbour_that_is_gone_for_good_is_not_waited_for():
    broker = up((), "b2", "b3")
    broker.receive("b3", Adv("quotes", True, 1), 0.0)
    assert Send("b2", Said()) in broker.disconnect("b3", 0.0)
    assert broker.repair.s.missing == {"b2": True}
