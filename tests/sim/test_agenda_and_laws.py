"""Virtual time and the named distributions."""

from __future__ import annotations

from itertools import count
from random import Random
from statistics import fmean, pstdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inorder.sim import laws, models, topics
from inorder.sim.agenda import Agenda


def test_what_is_due_at_one_instant_runs_in_the_order_it_was_put_in():
    agenda, seen = Agenda(), []
    for name in "cab":
        agenda.at(1.0, seen.append, name)
    agenda.run()
    assert seen == ["c", "a", "b"]


def test_the_past_means_now_and_behind_what_is_due():
    agenda, seen = Agenda(), []
    agenda.at(0.0, seen.append, "first")
    agenda.at(5.0, lambda: agenda.at(1.0, lambda: seen.append(agenda.now)))
    agenda.run()
    assert seen == ["first", 5.0]


def test_running_until_a_time_stops_there_and_goes_on_later():
    agenda, seen = Agenda(), []
    for at in (1.0, 2.0, 3.0):
        agenda.at(at, seen.append, at)
    assert agenda.run(2.0) == 2
    assert (agenda.now, seen, len(agenda)) == (2.0, [1.0, 2.0], 1)
    assert (agenda.run(2.5), agenda.now) == (0, 2.5)
    agenda.run()
    assert seen == [1.0, 2.0, 3.0]


def test_what_is_put_in_for_one_time_keeps_its_order_whatever_comes_between():
    # 1.0 is left for 2.0 and taken up again: the heap has two places for it.
    agenda, seen = Agenda(), []
    for at, name in ((1.0, "a"), (1.0, "b"), (2.0, "d"), (1.0, "c"), (2.0, "e")):
        agenda.at(at, seen.append, name)
    assert [args for _, args in agenda.pending()] == [("a",), ("b",), ("c",), ("d",), ("e",)]
    assert (len(agenda), agenda.run()) == (5, 5)
    assert seen == ["a", "b", "c", "d", "e"]


def test_what_an_action_puts_in_for_its_own_time_comes_behind_the_others():
    agenda, seen = Agenda(), []

    def twice(name):
        seen.append(name)
        if len(name) < 3:
            agenda.after(0.0, twice, name + name[0])

    agenda.at(1.0, twice, "a")
    agenda.at(1.0, twice, "b")
    agenda.run()
    assert seen == ["a", "b", "aa", "bb", "aaa", "bbb"]


def test_an_action_that_raises_takes_nothing_with_it():
    agenda, seen = Agenda(), []
    for action in (seen.append, [].remove, seen.append):
        agenda.at(1.0, action, len(agenda))
    with pytest.raises(ValueError, match="not in list"):
        agenda.run()
    assert (seen, len(agenda)) == ([0], 1)
    agenda.run()
    assert seen == [0, 2]


def test_what_only_watches_does_not_keep_an_agenda_from_rest():
    agenda = Agenda()
    agenda.watch(1.0, print)
    agenda.after(1.0, list)
    agenda.after(1.0, list)
    assert not agenda.resting
    assert [action for action, _ in agenda.pending()] == [list, list]
    agenda.run(0.5)
    assert (agenda.resting, len(agenda)) == (False, 3)
    agenda.watch(2.0, list)
    agenda.run(1.0)
    assert (agenda.resting, len(agenda)) == (True, 1)


@given(st.lists(st.integers(0, 3)))
def test_what_is_pending_stands_in_the_order_in_which_it_happens(times):
    agenda, seen = Agenda(), []
    for nth, at in enumerate(times):
        agenda.at(at, seen.append, nth)
    pending = [args[0] for _, args in agenda.pending()]
    agenda.run()
    assert seen == pending


@given(st.lists(st.tuples(st.integers(0, 3), st.lists(st.integers(0, 2), max_size=3)), max_size=8))
def test_an_agenda_does_what_a_sorted_list_does(plans):
    """Each thing to do puts in some more, so many seconds later."""

    def by_hand():
        waiting = [(at, nth, after) for nth, (at, after) in enumerate(plans)]
        done, following = [], len(waiting)
        while waiting:
            waiting.sort(key=lambda entry: entry[:2])
            now, nth, after = waiting.pop(0)
            done.append((now, nth))
            for each in after:
                waiting.append((now + each, following, []))
                following += 1
        return done

    agenda, done, names = Agenda(), [], count()

    def act(nth, after):
        done.append((agenda.now, nth))
        for each in after:
            agenda.after(each, act, next(names), [])

    for at, after in plans:
        agenda.at(at, act, next(names), after)
    agenda.run()
    assert done == by_hand()


def test_what_watches_has_a_place_of_its_own():
    agenda, seen = Agenda(), []
    agenda.at(1.0, seen.append, "a")
    agenda.watch(2.0, seen.append, "d")
    agenda.watch(2.0, list)
    agenda.at(1.0, seen.append, "b")
    agenda.at(1.0, seen.append, "c")
    agenda.at(2.0, seen.append, "e")
    agenda.run()
    assert seen == ["a", "b", "c", "d", "e"]


def test_all_that_is_put_in_for_one_instant_takes_one_place_of_the_heap():
    agenda = Agenda()
    for _ in range(1000):
        agenda.at(1.0, list)
    assert (len(agenda._heap), len(agenda)) == (1, 1000)
    agenda.run()
    assert (len(agenda._heap), len(agenda)) == (0, 0)


def test_a_machine_that_answers_itself_for_ever_is_caught(monkeypatch):
    monkeypatch.setattr("inorder.sim.agenda.SIM_STEPS_AT_ONE_INSTANT_MAX", 100)
    agenda = Agenda()

    def again():
        agenda.after(0.0, again)

    agenda.at(1.0, again)
    with pytest.raises(AssertionError, match="time stands still"):
        agenda.run()


# Seeded, 20,000 draws: means within 3 % of the law's, which is over five standard errors for the
# widest of them.
@pytest.mark.parametrize(
    ("law", "mean"),
    [
        (laws.Constant(mean=0.5), 0.5),
        (laws.Exponential(mean=0.2), 0.2),
        (laws.Lognormal(median=1.0, sigma=0.5), 1.1331),
        (laws.Hops(hops=5, mean_per_hop=0.02), 0.1),
        # Cut at zero: E[X | X > 0] = mean + std * phi(a) / (1 - Phi(a)), a = -mean/std.
        (models.FAST, 0.02169),
        (models.SLOW, 0.24956),
    ],
)
def test_a_law_has_its_mean_and_is_never_negative(law, mean):
    rng = Random("law")
    drawn = [law.draw(rng) for _ in range(20_000)]
    assert min(drawn) >= 0.0
    assert fmean(drawn) == pytest.approx(mean, rel=0.03)


def test_hops_spread_less_than_one_exponential():
    rng = Random("hops")
    drawn = [laws.Hops(hops=4, mean_per_hop=1.0).draw(rng) for _ in range(20_000)]
    assert pstdev(drawn) == pytest.approx(2.0, rel=0.05)


def test_the_wide_area_network_has_two_classes_fixed_per_pair():
    wan = models.Wan("seed")
    rng = Random("wan")
    means = {}
    for number in range(300):
        pair = (f"a{number}", f"b{number}")
        there = [wan.arrival(*pair, 0, 0.0, rng) for _ in range(30)]
        back = [wan.arrival(*reversed(pair), 0, 0.0, rng) for _ in range(30)]
        means[pair] = (fmean(there), fmean(back))
    slow = [pair for pair, (there, _) in means.items() if there > 0.1]
    assert all((back > 0.1) == (there > 0.1) for there, back in means.values())
    assert 0.12 < len(slow) / len(means) < 0.28  # 20 %, three standard errors either way


def test_its_classes_can_be_drawn_for_every_message():
    wan = models.WanPerMessage()
    rng = Random("wan")
    means = [fmean(wan.arrival("a", f"b{n}", 0, 0.0, rng) for _ in range(100)) for n in range(100)]
    # Every pair is alike: 0.8 x 21 ms + 0.2 x 250 ms (cut at zero), with one deviation of 12 ms.
    assert 0.03 < min(means) < fmean(means) < max(means) < 0.12
    assert fmean(means) == pytest.approx(0.8 * 0.022 + 0.2 * 0.25, rel=0.06)


def test_packets_queue_behind_each_other_one_copy_a_destination():
    packet = models.Packet(0.001, 8_000.0, laws.Constant(mean=0.5))
    rng = Random("packet")
    # 100 bytes at 1,000 bytes/s take 0.1 s each; the second waits for the first.
    first = packet.arrival("a", "b", 100, 0.0, rng)
    second = packet.arrival("a", "c", 100, 0.0, rng)
    other = packet.arrival("b", "c", 100, 0.0, rng)
    assert (first, second, other) == pytest.approx((0.601, 0.701, 0.601))
    assert packet.arrival("a", "b", 100, 10.0, rng) == pytest.approx(10.601)


def test_biased_links_keep_one_of_four_speeds():
    biased = models.Biased("seed", 1.0)
    rng = Random("biased")
    means = [
        fmean(biased.arrival("a", f"b{n}", 0, 0.0, rng) for _ in range(400)) for n in range(40)
    ]
    assert max(means) > 20 * min(means)


@pytest.mark.parametrize(("count", "share"), [(1000, 0.4), (1000, 0.005), (50, 0.1)])
def test_a_power_law_gives_its_share_of_topics_eighty_percent(count, share):
    weights = topics.power_weights(count, share)
    assert sum(weights) == pytest.approx(1.0)
    assert sum(weights[: round(count * share)]) == pytest.approx(0.8, abs=0.005)
    assert weights == sorted(weights, reverse=True)


def test_zipf_halves_from_first_to_second():
    weights = topics.zipf_weights(10, 1.0)
    assert weights[0] == pytest.approx(2 * weights[1])


def test_several_picks_are_different_even_under_a_steep_law():
    names = [f"t{n}" for n in range(50)]
    picker = topics.Picker(names, topics.power_weights(50, 0.001))
    picked = picker.pick_several(Random("x"), 30)
    assert len(set(picked)) == 30
    assert picked == sorted(picked, key=names.index)
