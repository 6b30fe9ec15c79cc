"""The failure detector: who tests whom, how fast crashes are known, and what is withdrawn."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inorder.core import wire
from inorder.core.errors import BadMessage
from inorder.core.limits import CUBE_TURNS_MAX
from inorder.core.pack import pack, unpacker
from inorder.protocols.cube import detector as room
from inorder.protocols.cube.detector import (
    DEADLINE,
    ROUND,
    Declares,
    Detector,
    DetectorState,
    Suspects,
    Wakes,
    Withdraws,
)
from inorder.protocols.cube.topology import dimensions
from tests.protocols.cube.rounds import Rounds, Timing
from tests.protocols.cube.twins import PublishedDetector, RisingDetector, slow_cluster, slow_first

TIMING = Timing(round_s=1.0, test_timeout_s=0.25, declare_after_s=10.0)

unpack = unpacker(DetectorState)


def with_faulty(me, count, faulty):
    """A detector that holds these to be faulty."""
    detector = Detector(me, count, TIMING)
    for peer in sorted(faulty):
        detector._turn(peer, 1, 0.0)
    return detector


def sent(outs):
    return [out for out in outs if isinstance(out, tuple)]


def changes(outs):
    return [out for out in outs if isinstance(out, Suspects | Withdraws | Declares)]


def timers(outs):
    return [out for out in outs if isinstance(out, Wakes)]


def suspecting(count=2, target=1):
    """Peer 0 whose first test of `target` has run out at 0.25 s."""
    detector = Detector(0, count, TIMING)
    while target not in [peer for peer, _ in sent(detector.tick(0.0))]:
        detector._asked.clear()
    assert changes(detector.expire(0.25)) == [Suspects(target)]
    return detector


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


# Declarations.


def test_an_old_suspicion_is_declared_and_not_withdrawn():
    detector = suspecting()
    assert changes(detector.expire(10.2)) == []
    assert changes(detector.expire(10.25)) == [Declares((1,))]
    assert detector.declared == (1,)
    assert changes(detector.heard(1, room.Tested(1), 10.3)) == []
    assert detector.correct == 0b01
    assert detector.tick(11.0) == [Wakes(ROUND, 1.0)]
    assert detector.expire(100.0) == []


def test_a_declared_peer_stays_so_whatever_others_say():
    detector = suspecting(4, 1)
    detector.expire(10.25)
    detector._asked.clear()
    detector.tick(11.0)
    assert changes(detector.heard(2, room.Tested(3, ((1, 2),)), 11.1)) == []
    assert detector.correct & 0b10 == 0
    assert detector._counters[1] == 2


def test_suspicions_of_one_age_are_declared_together():
    detector = with_faulty(0, 8, {6, 3})
    detector._turn(5, 1, 1.0)
    assert changes(detector.expire(10.0)) == [Declares((3, 6))]
    assert changes(detector.expire(11.0)) == [Declares((5,))]
    assert detector.declared == (3, 5, 6)
    assert detector._since == {}


def test_a_suspicion_that_was_withdrawn_elsewhere_in_between_is_a_young_one():
    detector = with_faulty(0, 8, {3})
    assert detector._turn(3, 3, 9.0) == []
    assert changes(detector.expire(10.0)) == []
    assert changes(detector.expire(19.0)) == [Declares((3,))]


def test_a_withdrawn_suspicion_is_not_declared():
    detector = suspecting()
    detector.heard(1, room.Tested(1), 5.0)
    assert changes(detector.expire(10.25)) == []


def test_what_others_declare_counts_as_declared():
    detector = with_faulty(0, 8, {3})
    detector.declare([5, 3])
    assert detector.declared == (3, 5)
    assert detector.correct == 0b11010111
    assert changes(detector.expire(100.0)) == []
    assert all(peer not in (3, 5) for s in (1, 2, 3) for peer in detector.duties(s))
    detector.declare([5])
    assert detector.declared == (3, 5)
    with pytest.raises(AssertionError):
        detector.declare([0])


def test_a_peer_that_joins_again_is_tested_again():
    detector = suspecting()
    detector.readmit(1)
    assert detector.declared == ()
    assert detector._counters == {1: 1}
    detector.expire(10.25)
    detector.readmit(1)
    assert detector.declared == ()
    assert detector.correct == 0b11
    assert detector._counters == {1: 2}
    assert [target for target, _ in sent(detector.tick(20.0))] == [1]
    assert changes(detector.expire(20.25)) == [Suspects(1)]


# Timers.


def test_a_process_begins_with_a_timer_for_its_first_round():
    assert Detector(0, 2, TIMING).begin(5.0) == [Wakes(ROUND, 1.0)]
    assert Detector(0, 1, TIMING).begin(5.0) == []


def test_the_timer_for_what_is_due_is_set_when_it_must_come_earlier():
    detector = Detector(0, 4, TIMING)
    assert timers(detector.tick(1.0)) == [Wakes(ROUND, 1.0), Wakes(DEADLINE, 0.25)]
    assert timers(detector.expire(1.25)) == [Wakes(DEADLINE, 10.0)]
    assert timers(detector.tick(2.0)) == [Wakes(ROUND, 1.0), Wakes(DEADLINE, 0.25)]
    # Already set for then.
    assert timers(detector.tick(2.0)) == [Wakes(ROUND, 1.0)]


def test_a_timer_that_comes_too_early_is_set_for_the_rest():
    detector = Detector(0, 2, TIMING)
    detector.tick(1.0)
    assert detector.expire(1.125) == [Wakes(DEADLINE, 0.125)]
    assert changes(detector.expire(1.25)) == [Suspects(1)]


def test_a_timer_with_nothing_due_any_more_is_not_set_again():
    detector = Detector(0, 2, TIMING)
    detector.tick(0.0)
    detector.heard(1, room.Tested(1), 0.1)
    assert detector.expire(0.25) == []
    assert timers(detector.tick(1.0)) == [Wakes(ROUND, 1.0), Wakes(DEADLINE, 0.25)]


def test_a_copied_suspicion_sets_the_timer_for_its_declaration():
    detector = Detector(0, 4, TIMING)
    detector.tick(0.0)
    detector.expire(0.1)
    detector._wakes_at = None
    outs = detector.heard(2, room.Tested(1, ((1, 1),)), 0.125)
    assert outs == [Suspects(1), Wakes(DEADLINE, 10.0)]


def test_a_clock_that_falls_back_makes_things_late_only():
    detector = Detector(0, 2, TIMING)
    detector.tick(1000.0)
    assert detector.expire(0.0) == [Wakes(DEADLINE, 1000.25)]
    assert timers(detector.tick(0.5)) == [Wakes(ROUND, 1.0)]
    assert detector.heard(1, room.Tested(1), 0.6) == []


def test_a_suspicion_is_declared_by_the_timer_that_was_set_for_it():
    """With fractions that floating point cannot tell exactly."""
    rng = random.Random(7)
    for _ in range(300):
        timing = Timing(test_timeout_s=rng.random(), declare_after_s=10 * rng.random())
        detector = Detector(0, 2, timing)
        now = 1000 * rng.random()
        outs = detector.tick(now)
        for _ in range(8):
            for timer in timers(outs):
                if timer.timer == DEADLINE:
                    now += timer.after_s
            outs = detector.expire(now)
            if any(isinstance(out, Declares) for out in outs):
                break
        assert detector.declared == (1,)


def test_a_new_life_of_the_process_waits_anew():
    detector = suspecting(4, 1)
    detector.tick(1.0)
    again = Detector(0, 4, TIMING, unpack(pack(detector.state())))
    # Its clock begins elsewhere.
    assert again.begin(500.0) == [Wakes(ROUND, 1.0), Wakes(DEADLINE, 10.0)]
    assert again.correct == 0b1101
    assert changes(again.expire(509.0)) == []
    assert changes(again.expire(510.0)) == [Declares((1,))]


def test_a_new_life_forgets_what_was_due_and_takes_the_answer():
    detector = Detector(0, 2, TIMING)
    detector.tick(0.0)
    again = Detector(0, 2, TIMING, unpack(pack(detector.state())))
    assert again.begin(7.0) == [Wakes(ROUND, 1.0)]
    assert changes(again.expire(8.0)) == []
    assert again.heard(1, room.Tested(1), 8.1) == []
    assert again._asked == {}


# What may not be sent.


@pytest.mark.parametrize("source", [-1, 0, 4])
def test_a_stranger_is_refused(source):
    detector = Detector(0, 4, TIMING)
    for message in (room.Test(1), room.Tested(1)):
        with pytest.raises(BadMessage):
            detector.heard(source, message, 0.0)


@pytest.mark.parametrize(
    "rows",
    [
        ((4, 1),), ((-1, 1),), ((2, 1), (1, 1)), ((1, 1), (1, 3)), ((1, 0),), ((1, -1),),
        ((1, CUBE_TURNS_MAX + 1),), ((3, 1), (7, 1)),
    ],
)  # fmt: skip
def test_bad_rows_are_refused_and_change_nothing(rows):
    detector = Detector(0, 4, TIMING)
    detector.tick(0.0)
    before = pack(detector.state())
    with pytest.raises(BadMessage):
        detector.heard(2, room.Tested(1, rows), 0.1)
    assert pack(detector.state()) == before
    assert detector.correct == 0b1111


def test_the_largest_counter_is_taken():
    detector = Detector(0, 4, TIMING)
    detector.tick(0.0)
    detector.heard(2, room.Tested(1, ((3, CUBE_TURNS_MAX),)), 0.1)
    assert detector._counters == {3: CUBE_TURNS_MAX}


def test_messages_are_their_bytes():
    decoder = wire.Decoder(room.Test | room.Tested)
    for message in (
        room.Test(7),
        room.Test(7, b"12345678"),
        room.Tested(7),
        room.Tested(7, ((1, 1),)),
    ):
        assert decoder.decode(wire.encode(message)) == message


# State.


def test_the_state_is_all_there_is():
    """A detector that is packed and unpacked between any two inputs behaves as one that is not."""
    rng = random.Random(8)
    for _ in range(200):
        timing = Timing(1.0, 0.25, 3.0)
        kept, packed = Detector(3, 9, timing), Detector(3, 9, timing)
        now = 0.0
        for _ in range(40):
            now += rng.random()
            verb, *arguments = _draw_input(rng, kept.state().round)
            outs = getattr(kept, verb)(*arguments, now)
            packed = Detector(3, 9, timing, unpack(pack(packed.state())))
            assert getattr(packed, verb)(*arguments, now) == outs
            assert pack(packed.state()) == pack(kept.state())
            assert packed.correct == kept.correct


def _draw_input(rng, number):
    kind = rng.randrange(5)
    source = rng.choice([peer for peer in range(9) if peer != 3])
    if kind == 0:
        return ("expire",)
    if kind == 1:
        return ("heard", source, room.Test(rng.randint(1, 5)))
    if kind == 2:
        rows = tuple((peer, rng.randint(1, 4)) for peer in range(9) if rng.random() < 0.2)
        return ("heard", source, room.Tested(rng.randint(max(0, number - 3), number + 1), rows))
    return ("tick",)


def test_equal_states_have_equal_bytes():
    one, other = with_faulty(0, 8, {3, 6}), Detector(0, 8, TIMING)
    for peer in (6, 3):
        other._turn(peer, 1, 0.0)
    for peer in (6, 3):
        other.declare([peer])
    one.declare([3, 6])
    assert pack(one.state()) == pack(other.state())


# Links that take their time.


class Slow:
    """Peers out of step whose messages take a while, drawn by `delay`, with copies of some."""

    def __init__(self, count, rng, timing):
        self.count, self.rng = count, rng
        self.peers = [Detector(me, count, timing) for me in range(count)]
        self.now, self.number, self.agenda = 0.0, 0, []
        self.dead, self.changes = set(), []
        self.timers = {}
        for me in range(count):
            self.timers[me, ROUND] = rng.random()

    def run(self, until, delay):
        while True:
            due = [(at, 0, me, timer) for (me, timer), at in self.timers.items()]
            due += [(at, n, target, event) for at, n, target, event in self.agenda]
            at, number, me, event = min(due, key=lambda row: row[:2])
            if at > until:
                self.now = until
                return
            self.now = at
            if number:
                self.agenda = [row for row in self.agenda if row[1] != number]
            else:
                del self.timers[me, event]
            if me not in self.dead:
                self._act(me, self._input(me, event), delay)

    def _input(self, me, event):
        peer = self.peers[me]
        if event == ROUND:
            return peer.tick(self.now)
        if event == DEADLINE:
            return peer.expire(self.now)
        return peer.heard(*event, self.now)

    def _act(self, me, outs, delay):
        for out in outs:
            if isinstance(out, Wakes):
                self.timers[me, out.timer] = self.now + out.after_s
            elif isinstance(out, tuple):
                for _ in range(1 + (self.rng.random() < 0.1)):
                    self.number += 1
                    at = self.now + delay(self.rng)
                    self.agenda.append((at, self.number, out[0], (me, out[1])))
            else:
                self.changes.append((self.now, me, out))


@pytest.mark.parametrize("seed", range(25))
def test_wrong_suspicions_end_when_answers_come_in_time_again(seed):
    rng = random.Random(seed)
    count = rng.randint(2, 16)
    world = Slow(count, rng, Timing(1.0, 0.25, 1e9))
    world.run(20.0, lambda rng: rng.expovariate(3.0))
    assert any(isinstance(what, Suspects) for _, _, what in world.changes)
    world.dead = set(rng.sample(range(count), rng.randint(0, count - 1)))
    world.run(30.0, lambda rng: rng.expovariate(3.0))
    calm = 2 * dimensions(count) ** 2 + 15.0
    world.run(world.now + calm, lambda rng: 0.1 * rng.random())
    alive = [me for me in range(count) if me not in world.dead]
    for me in alive:
        assert world.peers[me].correct == sum(1 << peer for peer in alive)


def test_who_is_crashed_is_declared_and_who_answers_within_the_patience_is_not():
    for seed in range(10):
        rng = random.Random(seed)
        world = Slow(8, rng, Timing(1.0, 0.25, 40.0))
        world.dead = {rng.randrange(8)}
        world.run(20.0, lambda rng: rng.expovariate(3.0))
        world.run(100.0, lambda rng: 0.1 * rng.random())
        for me in range(8):
            if me not in world.dead:
                assert world.peers[me].declared == tuple(world.dead)


def test_who_was_declared_is_not_withdrawn_when_it_answers_again():
    rng = random.Random(9)
    world = Slow(8, rng, Timing(1.0, 0.25, 10.0))
    world.dead = {5}
    world.run(60.0, lambda rng: 0.1 * rng.random())
    assert sorted(me for _, me, what in world.changes if what == Declares((5,))) == [
        0, 1, 2, 3, 4, 6, 7,
    ]  # fmt: skip
    world.dead = set()
    # It has stood still for a minute, and begins again.
    world._act(5, world.peers[5].begin(world.now), lambda rng: 0.1)
    world.run(160.0, lambda rng: 0.1 * rng.random())
    assert not any(what == Withdraws(5) for _, _, what in world.changes)
    assert all(not peer.correct >> 5 & 1 for me, peer in enumerate(world.peers) if me != 5)
