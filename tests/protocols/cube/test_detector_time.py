"""The failure detector in time: declarations, timers, restarts, links that take a while."""

from __future__ import annotations

import random

import pytest

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
from tests.protocols.cube.rounds import (
    TIMING,
    Timing,
    changes,
    sent,
    suspecting,
    timers,
    with_faulty,
)

unpack = unpacker(DetectorState)


# Declarations.


def test_an_old_suspicion_is_declared_and_not_withdrawn():
    detector = suspecting()
    assert changes(detector.expire(10.2)) == []
    assert changes(detector.expire(10.25)) == [Declares((1,))]
    assert detector.declared == (1,)
    assert detector.state().asked == ()
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


def test_hearing_of_a_suspicion_again_does_not_make_it_younger():
    detector = with_faulty(0, 4, {3})
    detector.tick(9.0)
    assert changes(detector.heard(2, room.Tested(1, ((3, 1),)), 9.1)) == []
    assert changes(detector.expire(10.0)) == [Declares((3,))]


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
    assert detector.state().since == ()
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
