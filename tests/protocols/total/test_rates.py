"""The order the rates deserve: how good, how soon, how often; and when a manager says anything."""

from __future__ import annotations

from random import Random

import pytest

from inorder.protocols.total import Directory
from inorder.protocols.total.manager import Manager, TopicState
from inorder.protocols.total.rates import Rates
from tests.protocols.total.drive import Net


def zipf(count):
    weights = [(rank + 1) ** -0.9 for rank in range(count)]
    return [weight / sum(weights) for weight in weights]


def steps(order, weight):
    return sum(rank * weight[topic] for rank, topic in enumerate(order))


def adapt(topics, events, look_every, seed):
    """From the worst order on: changes made, and steps an event beside the best order's."""
    rng = Random(seed)
    weights = zipf(topics)
    names = [f"t{number:04d}" for number in range(topics)]
    weight = dict(zip(names, weights, strict=True))
    directory = Directory(names)
    order = tuple(reversed(names))
    rates = Rates()
    counts = dict.fromkeys(names, 0)
    changes = []
    for event, topic in enumerate(rng.choices(names, weights, k=events), 1):
        counts[topic] += 1
        if event % look_every == 0:
            rates.look(counts)
            if better := rates.better(order, directory):
                order = better
                changes.append(event)
                rates.changes()
    return changes, steps(order, weight) / steps(names, weight)


@pytest.mark.parametrize(("look_every", "ratio"), [(40, 1.2), (200, 1.2)])
def test_forty_topics_find_their_order_in_two_changes(look_every, ratio):
    for seed in range(20):
        changes, steps_ratio = adapt(40, 400, look_every, seed)
        assert 1 <= len(changes) <= 2, (seed, changes)
        assert steps_ratio < 1.35, seed
    mean = sum(adapt(40, 400, look_every, seed)[1] for seed in range(20)) / 20
    assert mean < ratio


def test_a_thousand_topics_find_their_order_too():
    changes, ratio = adapt(1000, 4000, 1000, 1)
    assert changes == [1000, 4000]
    assert ratio < 1.25


def test_noise_moves_nothing():
    """An order that is right stays, however long one looks."""
    for seed in range(10):
        changes, _ = adapt(40, 8000, 100, seed)
        assert len(changes) <= 4, changes


def test_an_event_counts_half_after_four_events_a_topic():
    rates = Rates()
    rates.look({"a": 16, "b": 0})
    assert rates.weights == {"a": 16.0, "b": 0.0}
    rates.look({"a": 16, "b": 8})
    assert rates.weights == {"a": 8.0, "b": 8.0}
    rates.look({"a": 16, "b": 8})
    assert rates.weights == {"a": 8.0, "b": 8.0}, "nothing happened: nothing ages"


def test_a_change_wants_evidence_and_the_next_wants_more():
    directory = Directory(["a", "b"])
    rates = Rates()
    rates.look({"a": 0, "b": 1})
    assert rates.better(("a", "b"), directory) == (), "one event"
    rates.look({"a": 0, "b": 2})
    assert rates.better(("a", "b"), directory) == ("b", "a")
    rates.changes()
    rates.look({"a": 4, "b": 2})
    assert rates.better(("b", "a"), directory) == (), "four events for two topics"
    rates.look({"a": 5, "b": 2})
    assert rates.better(("b", "a"), directory) == ("a", "b")
    rates.look({"a": 8, "b": 2})
    assert rates.better(("b", "a"), directory) == ("a", "b")


def test_a_small_gain_is_not_worth_a_stop():
    directory = Directory(["a", "b"])
    for count, better in ((129, ()), (131, ("b", "a"))):
        rates = Rates()
        rates.look({"a": 100, "b": count})
        assert rates.better(("a", "b"), directory) == better


def test_topics_nobody_publishes_on_keep_their_ranks():
    rates = Rates()
    rates.look({"a": 0, "b": 0, "c": 9, "d": 0})
    assert rates.better(("b", "a", "d", "c"), Directory("abcd")) == ("c", "b", "a", "d")


def test_topics_of_one_home_stay_together():
    """Hops inside a home cost nothing: the busier home goes up, whoever is in it."""
    directory = Directory("abcd", topics_per_stage=2)
    rates = Rates()
    rates.look({"a": 5, "b": 0, "c": 4, "d": 4})
    assert rates.better(tuple("abcd"), directory) == tuple("cdab")
    rates = Rates()
    rates.look({"a": 0, "b": 9, "c": 4, "d": 4})
    assert rates.better(tuple("abcd"), directory) == (), "a step inside a home is none"


# When a manager says that its rate has moved.


def manager(count=0):
    return Manager(TopicState("t", count), 1, True, 100)


def said(made, events, every=10.0):
    """At which of these times, an event at each, it says so."""
    times = []
    for now in events:
        made.s.count += 1
        if made.has_moved(every, now):
            times.append(now)
    return times


def test_a_rate_is_said_when_it_doubles_and_when_it_halves():
    made = manager()
    assert said(made, [float(second) for second in range(100, 200)]) == [110.0], "one a second"
    assert said(made, [200.0 + n / 4 for n in range(40)]) == []
    assert said(made, [210.0 + n / 4 for n in range(40)]) == [210.0]
    assert said(made, [220.0 + n for n in range(40)]) == [230.0]


def test_a_rate_is_not_said_twice_in_ten_seconds_nor_from_three_events():
    made = manager()
    assert said(made, [0.0, 1.0, 2.0, 2.5, 2.6, 9.9]) == []
    assert said(made, [10.0]) == [10.0]
    made = manager()
    assert said(made, [0.0, 20.0, 40.0, 60.0]) == []
    assert said(made, [80.0]) == [80.0]


def test_silence_is_seen_when_a_stamp_passes():
    made = manager()
    assert said(made, [n / 10 for n in range(101)]) == [10.0]
    assert not made.has_moved(10.0, 15.0)
    assert made.has_moved(10.0, 20.0), "a hundred events were to be expected"
    assert not made.has_moved(10.0, 99.0), "once"


def test_a_clock_set_back_begins_anew():
    made = manager()
    assert said(made, [1000.0, 1001.0, 5.0, 6.0, 7.0, 8.0]) == []
    assert said(made, [16.0]) == [16.0]


def test_a_world_without_publications_is_quiet():
    net = Net("a", swaps="on")
    net.call("a", "subscribe", "a/1", ["t1", "t2"])
    assert net.timers["ranking"] == []
    assert net.machines["ranking"].idle


def test_looks_at_the_rates_keep_their_distance():
    net = Net("a", "p", "q", swaps="on")
    net.call("a", "subscribe", "a/1", ["t1", "t2"])
    ranking = net.machines["ranking"]
    ranking.s.asked_at = 100.0
    (timer,) = ranking._on_moved("stage1", None, 104.0)
    assert timer.after_s == 6.0
    assert ranking._on_moved("stage2", None, 105.0) == [], "one look for all"
    (timer,) = ranking._on_reorder("ranking", type("Wish", (), {"order": ("t1", "t2", "t3")}), 0.0)
    assert timer.after_s == 0.05, "a wish does not wait for it"
    for asked_at, now in ((100.0, 200.0), (100.0, 50.0), (None, 0.0)):
        ranking.s.phase = "quiet"
        ranking.s.asked_at = asked_at
        (timer,) = ranking._on_moved("stage1", None, now)
        assert timer.after_s == 0.05


@pytest.mark.parametrize("phase", ["asking", "freezing"])
def test_a_rate_that_moves_during_a_look_is_looked_at_later(phase):
    net = Net("a", swaps="on")
    net.call("a", "subscribe", "a/1", ["t1", "t2"])
    ranking = net.machines["ranking"]
    ranking.s.asked_at = 100.0
    ranking.s.phase = phase
    assert ranking._on_moved("stage1", None, 101.0) == []
    ranking.s.phase = "quiet"
    (timer,) = ranking._go_on(102.0)
    assert timer.after_s == 8.0
    ranking.s.phase = "quiet"
    assert ranking._go_on(103.0) == [], "once"
