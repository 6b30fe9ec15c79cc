"""Random trees under the judge, and the examples of the paper's figures on a whole network."""

from __future__ import annotations

import os

import pytest

from inorder.content.engine import forms_of
from inorder.content.messages import Adv, Flt, Pub
from inorder.content.predicate import Predicate
from tests.content.judge import judged_tree
from tests.content.network import Network

TREES = 300 * int(os.environ.get("CONTENT_TREES", "1"))
CHUNKS = 10


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_trees_keep_every_property(chunk):
    counts = [judged_tree(seed) for seed in range(chunk, TREES, CHUNKS)]
    # A judge that saw nothing proves nothing.
    for what in ("deliveries", "owed events", "installed", "stale filters", "updates"):
        assert sum(count[what] for count in counts) > 10, what


def quotes(summary: str) -> Network:
    """Figure 1: c1, c2 at b1, c3, c4 at b2, both below b3; publishers c5 at b4 and c6 at b5."""
    net = Network(summary=summary)
    net.broker("b1", "b2", "b3", "b4", "b5")
    for a, b in (("b1", "b3"), ("b2", "b3"), ("b3", "b4"), ("b3", "b5")):
        net.link(a, b)
        net.run()
    for name, edge in (("c1", "b1"), ("c2", "b1"), ("c3", "b2"), ("c4", "b2"), ("c5", "b4")):
        net.client(name, edge)
    net.client("c6", "b5")
    net.advertise("c5", "quotes")
    net.advertise("c6", "quotes")
    net.run()
    return net


def limits(net: Network, broker: str, link: str) -> list:
    table = net.brokers[broker].topics["quotes"].table(link)
    return sorted(form[1][0] for form in table.values())


@pytest.mark.parametrize("summary", ["grouped", "exact"])
def test_figure_7_an_update_is_one_value_on_each_link(summary):
    net = quotes(summary)
    first = net.subscribe("c1", "quotes", "price < :x", x=10)
    net.run()
    assert limits(net, "b3", "b1") == [10]
    before = len(net.said("b1", "b3", Flt))
    net.subscribe("c2", "quotes", "price < :x", x=5)
    net.run()
    # What is covered is not passed on.
    assert len(net.said("b1", "b3", Flt)) == before
    net.set("c1", first, x=30)
    net.run()
    (change,) = net.said("b1", "b3", Flt)[before:]
    assert (change.delta.deleted, change.delta.added) == ((), ())
    assert [vector for _, vector in change.delta.moved] == [(30,)]
    assert limits(net, "b3", "b1") == limits(net, "b4", "b3") == limits(net, "b5", "b3") == [30]
    cheap, dear = net.publish("c5", "quotes", price=4), net.publish("c6", "quotes", price=20)
    net.run()
    assert sorted(net.got("c1")) == sorted([cheap, dear])
    assert net.got("c2") == [cheap]
    assert net.got("c3") == []


def test_figure_1_summaries_of_summaries():
    net = quotes("grouped")
    for name, limit in (("c1", 10), ("c2", 5), ("c3", 20), ("c4", 15)):
        net.subscribe(name, "quotes", "price < :x", x=limit)
    net.run()
    assert limits(net, "b3", "b1") == [10]
    assert limits(net, "b3", "b2") == [20]
    assert limits(net, "b4", "b3") == limits(net, "b5", "b3") == [20]


def test_figure_4_leaving_and_coming_back_falls_back_to_the_next():
    net = quotes("grouped")
    first = net.subscribe("c1", "quotes", "price < 10")
    net.subscribe("c2", "quotes", "price < 5")
    net.run()
    net.unsubscribe("c1", first)
    net.run()
    assert limits(net, "b3", "b1") == [5]
    net.subscribe("c1", "quotes", "price < 30")
    net.run()
    assert limits(net, "b3", "b1") == limits(net, "b4", "b3") == [30]


def test_the_maximum_moves_between_clients_by_one_value_message():
    net = quotes("grouped")
    one = net.subscribe("c1", "quotes", "price < :x", x=10)
    net.subscribe("c2", "quotes", "price < :x", x=7)
    net.run()
    before = len(net.said("b1", "b3", Flt))
    net.set("c1", one, x=3)
    net.run()
    (change,) = net.said("b1", "b3", Flt)[before:]
    assert [vector for _, vector in change.delta.moved] == [(7,)]
    assert not change.delta.added
    assert not change.delta.deleted


@pytest.mark.parametrize("summary", ["everything", "exact", "grouped", "bounded(2)"])
def test_equal_values_of_different_variables_stay_apart(summary):
    """E-C9b: after the static one leaves, the parameter of the other must still be known."""
    net = quotes(summary)
    static = net.subscribe("c1", "quotes", "price < 10")
    moving = net.subscribe("c2", "quotes", "price < :y", y=10)
    net.run()
    net.unsubscribe("c1", static)
    net.run()
    net.set("c2", moving, y=20)
    net.run()
    event = net.publish("c5", "quotes", price=15)
    net.run()
    assert net.got("c2") == [event]


def test_two_clients_with_one_predicate_are_both_served_and_one_may_leave():
    net = quotes("grouped")
    first = net.subscribe("c1", "quotes", "price < 10")
    net.subscribe("c2", "quotes", "price < 10")
    net.run()
    net.unsubscribe("c1", first)
    net.run()
    event = net.publish("c6", "quotes", price=1)
    net.run()
    assert (net.got("c1"), net.got("c2")) == ([], [event])


def test_a_truth_value_is_not_the_number_it_looks_like():
    net = quotes("grouped")
    sid = net.subscribe("c1", "quotes", "flag = TRUE")
    net.run()
    net.replace("c1", sid, "flag = 1")
    net.run()
    number, truth = net.publish("c5", "quotes", flag=1), net.publish("c5", "quotes", flag=True)
    net.run()
    assert net.got("c1") == [number] != [truth]


def test_an_event_crosses_each_link_once_and_only_where_it_is_wanted():
    net = quotes("grouped")
    for name in ("c1", "c2", "c5"):
        net.subscribe(name, "quotes", "price < 10 OR size < 10")
        net.subscribe(name, "quotes", "price < 8")
    net.run()
    start = len(net.log)
    net.publish("c5", "quotes", price=1, size=1)
    net.run()
    hops = [(s, t) for s, t, m in net.log[start:] if isinstance(m, Pub)]
    # Its own event comes back to the publisher through its edge; nothing goes to b2 or b5.
    expected = [("b1", "c1"), ("b1", "c2"), ("b3", "b1"), ("b4", "b3"), ("b4", "c5"), ("c5", "b4")]
    assert sorted(hops) == expected


def test_a_change_costs_at_most_two_messages_on_each_link():
    """A12: a filter and its confirmation, or an advertisement and the filter that answers it."""
    net = quotes("everything")
    sid = net.subscribe("c1", "quotes", "price < :x", x=1)
    net.run()
    acts = [
        lambda: net.set("c1", sid, x=2),
        lambda: net.advertise("c2", "quotes"),
        lambda: net.advertise("c5", "quotes", on=False),
        lambda: net.unsubscribe("c1", sid),
    ]
    for act in acts:
        start = len(net.log)
        act()
        net.run()
        between = [(s, t, m) for s, t, m in net.log[start:] if s in net.brokers]
        said = [one for one in between if one[1] in net.brokers and isinstance(one[2], Flt | Adv)]
        assert len(said) <= 2 * 4


def test_without_attributes_everybody_interested_is_reached():
    net = quotes("grouped")
    net.subscribe("c1", "quotes", "price < 10")
    net.subscribe("c3", "quotes", "size = 3")
    net.subscribe("c4", "other", "size = 3")
    net.run()
    net.act("c5", net.clients["c5"].publish("quotes", None, 0.0, body={"any": "thing"}))
    net.run()
    assert net.got("c1") == net.got("c3") == ["c5:1"]
    assert net.got("c4") == []
    assert net.handed[0][1].pub.body == {"any": "thing"}


def test_tables_hold_forms_and_no_names():
    net = quotes("everything")
    net.subscribe("c1", "quotes", "price < :secret", secret=9)
    net.run()
    (form,) = net.brokers["b4"].topics["quotes"].table("b3").values()
    assert form == forms_of(Predicate.parse("price < 9"), {})[0]
