"""The failure detector: who tests whom, how fast crashes are known, what is withdrawn."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inorder.core import wire
from inorder.protocols.cube import detector as room
from inorder.protocols.cube.detector import (
    Detector,
    DetectorState,
    Suspects,
    Withdraws,
)
from inorder.protocols.cube.topology import dimensions
from tests.protocols.cube.rounds import (
    TIMING,
    Rounds,
    Timing,
    changes,
    sent,
    suspecting,
    with_faulty,
)
from tests.protocols.cube.twins import PublishedDetector, RisingDetector, slow_cluster, slow_first

# Who tests whom.


def duties_by_rule(me, count, s, correct):
    """V4, word for word: j of my cluster s, if I come first in cluster s of j."""
    return sorted(
        j for j in slow_cluster(me, s) if j < count and slow_first(j, s, {*correct, me}) == me
    )


@given(st.integers(1, 40), st.data())
def test_duties_are_those_of_the_rule(count, data):
    me = data.draw(st.integers(0, count - 1))
    faulty = data.draw(st.sets(st.integers(0, count - 1), max_size=count)) - {me}
    detector = with_faulty(me, count, faulty)
    correct = set(range(count)) - faulty
    for s in range(1, dimensions(count) + 1):
        assert sorted(detector.duties(s)) == duties_by_rule(me, count, s, correct)


def test_without_faults_a_peer_tests_the_head_of_its_cluster():
    for me in range(16):
        for s in range(1, 5):
            assert list(Detector(me, 16, TIMING).duties(s)) == [slow_cluster(me, s)[0]]


def test_indexes_go_down_and_around():
    detector = Detector(0, 8, TIMING)
    targets = []
    for number in range(1, 8):
        [(target, test)] = sent(detector.tick(float(number)))
        targets.append(target)
        detector.heard(target, room.Tested(test.number), float(number))
    assert targets == [4, 2, 1, 4, 2, 1, 4]


def test_a_peer_has_one_tester_wherever_somebody_is_left_to_test():
    rng = random.Random(1)
    for _ in range(500):
        count = rng.randint(1, 33)
        faulty = {peer for peer in range(count) if rng.random() < rng.choice((0.1, 0.5, 0.9))}
        correct = [peer for peer in range(count) if peer not in faulty]
        for s in range(1, dimensions(count) + 1):
            testers = {peer: [] for peer in range(count)}
            for me in correct:
                for peer in with_faulty(me, count, faulty).duties(s):
                    testers[peer].append(me)
            for peer, names in testers.items():
                nearest = [j for j in slow_cluster(peer, s) if j in correct]
                assert names == nearest[:1]


def test_v4_the_published_rule_has_several_testers_of_one_peer():
    testers = {True: [], False: []}
    for me in range(4):
        for published in testers:
            detector = (PublishedDetector if published else Detector)(me, 8, TIMING)
            for peer in (5, 6, 7):
                detector._turn(peer, 1, 0.0)
            testers[published] += [me] * (4 in detector.duties(3))
    assert testers == {True: [0, 1, 2, 3], False: [0]}


# How fast a crash is known.


def latency(count, rng, rounds, dead, kind=Detector):
    """Rounds until all know, checking what else is promised on the way."""
    world = Rounds(count, rng, rounds=rounds, kind=kind)
    world.crash(*dead)
    took = world.until_agreed(10 * world.bound + 10)
    assert took is not None
    if kind is Detector:
        assert all(tests <= 1 for tested in world.tested for tests in tested.values())
        assert not any(isinstance(what, Withdraws) for _, what in world.opinions)
        assert all(what.peer in dead for _, what in world.opinions)
    return took, world


def draw_dead(rng, count):
    return rng.sample(range(count), rng.randint(1, max(1, count - 2)))


@pytest.mark.parametrize("count", [8, 11, 13, 16, 23, 32, 47, 64])
def test_any_crashes_at_once_are_known_within_the_bound(count):
    rng = random.Random(count)
    for _ in range(100):
        rounds = rng.randrange(dimensions(count))
        took, world = latency(count, rng, rounds, draw_dead(rng, count))
        assert took <= world.bound


@pytest.mark.parametrize("count", range(2, 10))
def test_all_crashes_of_few_peers_from_any_index_on_are_known_within_the_bound(count):
    rng = random.Random(count)
    for crashes in range(1, 2**count - 1):
        dead = [peer for peer in range(count) if crashes >> peer & 1]
        for rounds in range(dimensions(count)):
            took, world = latency(count, rng, rounds, dead)
            assert took <= world.bound


def test_the_bound_counts_from_the_last_crash():
    rng = random.Random(3)
    for _ in range(100):
        count = rng.choice((8, 16, 19, 32))
        world = Rounds(count, rng)
        for _ in range(rng.randint(1, 4)):
            world.crash(*rng.sample(range(count), rng.randint(1, count // 5)))
            for _ in range(rng.randint(0, 6)):
                world.round()
        world.crash(rng.choice(world.alive))
        took = world.until_agreed(world.bound)
        assert took is not None
        assert all(tests <= 1 for tested in world.tested for tests in tested.values())
        assert not any(isinstance(what, Withdraws) for _, what in world.opinions)


def test_in_d_rounds_there_are_at_most_d_tests_of_a_peer():
    world = Rounds(16, random.Random(4))
    for _ in range(4):
        world.round()
    assert all(sum(tested[peer] for tested in world.tested) == 4 for peer in range(16))


def test_indexes_that_go_up_miss_the_bound():
    """As the thesis has them: of nine peers 0, 1, 6 and 8 crash."""
    dead = [0, 1, 6, 8]
    rising = max(
        latency(9, random.Random(5), rounds, dead, RisingDetector)[0] for rounds in range(4)
    )
    falling = max(latency(9, random.Random(5), rounds, dead)[0] for rounds in range(4))
    assert falling <= 16 < rising


def test_v4_the_published_rule_misses_the_bound():
    worst, tests = 0, 0
    for seed in range(30):
        rng = random.Random(seed)
        took, world = latency(32, rng, 0, draw_dead(rng, 32), PublishedDetector)
        worst = max(worst, took - world.bound)
        tests = max(tests, *(n for tested in world.tested for n in tested.values()))
    assert worst > 0
    assert tests > 2


# Suspicions.


def test_a_test_without_an_answer_is_a_suspicion():
    detector = Detector(0, 2, TIMING)
    [(target, test)] = sent(detector.tick(3.0))
    assert (target, test.number, test.digest) == (1, 1, b"")
    assert detector.correct == 0b11
    assert changes(detector.expire(3.2)) == []
    assert changes(detector.expire(3.25)) == [Suspects(1)]
    assert detector.correct == 0b01
    assert detector._counters == {1: 1}


def test_an_answer_in_time_is_none():
    detector = Detector(0, 2, TIMING)
    detector.tick(0.0)
    assert detector.heard(1, room.Tested(1), 0.2) == []
    assert changes(detector.expire(0.25)) == []
    assert detector.correct == 0b11


def test_a_round_looks_at_what_is_due_before_it_tests():
    detector = Detector(0, 2, TIMING)
    detector.tick(0.0)
    outs = detector.tick(1.0)
    assert changes(outs) == [Suspects(1)]
    assert [target for target, _ in sent(outs)] == [1]


def test_a_suspicion_is_said_once():
    detector = suspecting()
    for now in (1.0, 2.0):
        assert changes(detector.tick(now)) == []
        assert changes(detector.expire(now + 0.25)) == []
    assert detector._counters == {1: 1}


def test_a_late_answer_withdraws():
    detector = suspecting()
    assert detector.heard(1, room.Tested(1), 0.5) == [Withdraws(1)]
    assert detector.correct == 0b11
    assert detector._counters == {1: 2}


def test_an_answer_to_an_earlier_test_that_was_not_answered_counts():
    """A peer that always takes longer than a round is not suspected for ever."""
    detector = suspecting()
    detector.tick(1.0)
    assert changes(detector.heard(1, room.Tested(1), 1.1)) == [Withdraws(1)]
    assert changes(detector.expire(1.25)) == []


def test_a_copy_of_an_older_answer_proves_nothing():
    detector = Detector(0, 2, TIMING)
    detector.tick(0.0)
    detector.heard(1, room.Tested(1), 0.1)
    detector.tick(1.0)
    assert changes(detector.expire(1.25)) == [Suspects(1)]
    assert detector.heard(1, room.Tested(1, ((1, 6),)), 1.3) == []
    assert detector.heard(1, room.Tested(3), 1.3) == []
    assert detector._counters == {1: 1}
    assert changes(detector.heard(1, room.Tested(2), 1.4)) == [Withdraws(1)]


def test_an_answer_that_nobody_asked_for_proves_nothing():
    detector = Detector(0, 4, TIMING)
    assert detector.heard(3, room.Tested(0, ((1, 1),)), 0.0) == []
    assert detector.state() == DetectorState()


def test_a_peer_has_one_test_under_way_at_a_time():
    slow = Timing(round_s=1.0, test_timeout_s=2.5, declare_after_s=10.0)
    detector = Detector(0, 2, slow)
    assert [target for target, _ in sent(detector.tick(0.0))] == [1]
    assert sent(detector.tick(1.0)) == []
    assert sent(detector.tick(2.0)) == []
    outs = detector.tick(3.0)
    assert changes(outs) == [Suspects(1)]
    assert [(target, test.number) for target, test in sent(outs)] == [(1, 4)]


def test_counters_are_copied_from_those_who_answer():
    detector = Detector(0, 4, TIMING)
    detector.tick(0.0)
    assert changes(detector.heard(2, room.Tested(1, ((1, 4), (3, 1))), 0.1)) == [Suspects(3)]
    assert detector._counters == {1: 4, 3: 1}
    assert detector.correct == 0b0111


def test_only_higher_counters_are_copied():
    detector = suspecting(4, 1)
    detector._turn(3, 3, 0.0)
    detector.tick(1.0)
    assert changes(detector.heard(2, room.Tested(3, ((1, 1), (3, 2))), 1.1)) == []
    assert detector._counters == {1: 1, 3: 3}
    detector.tick(2.0)
    detector.tick(3.0)
    assert changes(detector.heard(2, room.Tested(5, ((1, 2), (3, 4))), 3.1)) == [
        Withdraws(1),
        Withdraws(3),
    ]


def test_a_wrongly_suspected_peer_makes_its_counter_even():
    detector = Detector(0, 2, TIMING)
    detector.tick(0.0)
    assert changes(detector.heard(1, room.Tested(1, ((0, 5),)), 0.1)) == []
    assert detector._counters == {0: 6}
    detector.tick(1.0)
    detector.heard(1, room.Tested(2, ((0, 8),)), 1.1)
    assert detector._counters == {0: 8}
    assert detector.correct == 0b11


def test_answers_say_what_differs_and_nothing_where_nothing_does():
    one, other = suspecting(), Detector(1, 2, TIMING)
    [(_, test)] = sent(other.tick(0.0))
    assert one.heard(1, test, 0.0) == [(1, room.Tested(1, ((1, 1),)))]
    other.heard(0, room.Tested(1, ((1, 1),)), 0.1)
    [(_, test)] = sent(other.tick(1.0))
    assert one.heard(1, test, 1.0) == [(1, room.Tested(2, ((1, 1),)))]
    one._turn(1, 2, 1.1)
    assert one.heard(1, test, 1.2) == [(1, room.Tested(2))]
    assert len(wire.encode(test)) <= 18


def test_a_withdrawal_reaches_all_who_have_copied_the_suspicion():
    rng = random.Random(6)
    for _ in range(100):
        count = rng.randint(2, 20)
        world = Rounds(count, rng)
        slow = rng.randrange(count)
        world.crash(slow)
        world.until_agreed(world.bound)
        assert {me for me, _ in world.opinions} == set(range(count)) - {slow}
        # It was only slow: from now on it answers.
        world.dead.clear()
        world.peers[slow]._round = world.peers[slow - 1]._round
        assert world.until_agreed(world.bound + dimensions(count)) is not None
        withdrawn = [me for me, what in world.opinions if what == Withdraws(slow)]
        assert sorted(withdrawn) == sorted({*range(count)} - {slow})
