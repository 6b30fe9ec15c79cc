"""Stories of clocks and delays: steps, drift, sleep, congestion, and what is learnt of them."""

from __future__ import annotations

import random

import pytest

from inorder.core.event import Event
from inorder.protocols.fifo.header import Header
from tests.protocols.fifo.drive import GAP_US, Drive


def static() -> Drive:
    return Drive(estimator="static", latch=0.1)


# Clocks.


def test_a_publisher_clock_two_seconds_ahead_is_a_step():
    drive = Drive(record=0)
    following = drive.warm(50)
    for seq in range(following, following + 20):
        drive.arrive(seq, seq * 0.01 + 0.02, departure_us=seq * GAP_US + 2_000_000)
    level = drive.receiver.estimator.gauges()["level"]
    assert drive.receiver.estimator.steps == 1
    assert level == pytest.approx(0.02 - 2.0, abs=0.002)
    assert not any(drive.waits)


def test_a_publisher_clock_four_seconds_back_costs_two_tags():
    drive = Drive(record=0)
    for seq in range(1, 1001):
        drive.arrive(seq, seq * 0.01 + 0.02)
    for seq in range(1001, 1021):
        drive.arrive(seq, seq * 0.01 + 0.02, departure_us=seq * GAP_US - 4_000_000)
    assert drive.said.split()[1000:1004] == ["1001*", "1002*", "1003", "1004"]
    assert drive.counters.header_errors == 2
    assert drive.counters.clock_steps == 1
    level = drive.receiver.estimator.gauges()["level"]
    assert level == pytest.approx(4.02, abs=0.001)


def test_a_clock_that_stands_still_at_zero():
    drive = Drive(record=0)
    for seq in (*range(1, 200), 201, 200, 202):
        drive.arrive(seq, seq * 0.01, departure_us=0, prev_gap_us=0)
    drive.finish()
    assert sorted(drive.said.replace("*", "").split(), key=int) == [str(n) for n in range(1, 203)]
    assert drive.counters.header_errors == 0


def test_a_clock_that_only_falls_tags_everything_and_loses_nothing():
    drive = Drive(record=0)
    for seq in range(1, 101):
        drive.arrive(seq, seq * 0.01, departure_us=10_000_000 - seq * 1000)
    assert drive.said == " ".join(["1", *(f"{seq}*" for seq in range(2, 101))])
    assert drive.counters.header_errors == 99
    assert len(drive.receiver.seen.starts) == 1


def test_a_receiver_that_slept_ten_seconds_takes_what_queued_up_first():
    drive = static()
    drive.arrive(1, 0.0)
    drive.arrive(3, 0.0)
    assert drive.fire(10.0) == ""
    assert shown_at(drive, 2, 10.0) == "2 3"


def test_a_receiver_that_slept_gives_up_at_the_second_firing():
    drive = static()
    drive.arrive(1, 0.0)
    drive.arrive(3, 0.0)
    assert drive.receiver.fire(10.0) == []
    # The queue turned out to be empty.
    (last,) = drive.receiver.fire(10.0)
    assert (last.event.seq, last.in_order, last.waited_s) == (3, True, 10.0)


def shown_at(drive: Drive, seq: int, at: float) -> str:
    """An arrival after the process slept: no timer fires in between."""
    drive.now = at
    header = Header(0, seq, seq * GAP_US, GAP_US)
    return " ".join(
        str(each.event.seq) for each in drive.receiver.receive(header, Event("p", seq, "t"), at)
    )


def test_a_clock_that_drifts_200_ppm_for_an_hour():
    drive = Drive(record=0, late=0.01)
    rng = random.Random(1)
    arrivals = []
    for seq in range(1, 3601):
        arrivals.append((seq * 1.0002 + 0.02 + rng.expovariate(100.0), seq))
    for at, seq in sorted(arrivals):
        drive.arrive(seq, at, departure_us=seq * 1_000_000, prev_gap_us=1_000_000)
    assert drive.counters.clock_steps == drive.receiver.estimator.steps == 0
    assert drive.counters.late == 0
    assert drive.receiver.estimator.gauges()["scale"] < 0.05


# What the estimator has seen.


@pytest.mark.parametrize("estimator", ["predictive", "laplace2"])
def test_fewer_than_min_samples_means_the_initial_latch(estimator):
    drive = Drive(estimator=estimator, record=0, initial_latch=0.07)
    drive.arrive(1, 0.0)
    drive.arrive(3, 0.01)
    assert drive.receiver.deadline == pytest.approx(0.08)


def test_the_initial_latch_is_at_most_tau_max():
    drive = Drive(record=0, initial_latch=3.0, tau_max=0.2)
    drive.arrive(1, 0.0)
    drive.arrive(3, 0.0)
    assert drive.receiver.deadline == pytest.approx(0.2)


@pytest.mark.parametrize("estimator", ["predictive", "laplace2"])
def test_delays_all_alike_divide_by_nothing_and_wait_for_nothing(estimator):
    drive = Drive(estimator=estimator, record=0)
    for seq in range(1, 101):
        drive.arrive(seq, seq / 64, departure_us=seq * 15625, prev_gap_us=15625)
    assert drive.arrive(102, 102 / 64, departure_us=102 * 15625, prev_gap_us=15625) == "102"
    drive.finish()
    assert max(drive.waits) == 0


def test_a_single_huge_outlier_moves_neither_level_nor_latch():
    drive = Drive(record=0, late=0.05)
    following = drive.warm(200)
    before = drive.receiver.estimator.gauges()
    drive.arrive(following, following * 0.01 + 300.0)
    assert drive.receiver.estimator.gauges() == before
    assert drive.receiver.estimator.steps == 0


def test_delays_that_grow_fivefold_within_a_hundred_events():
    drive = Drive(record=0, late=0.05)
    rng = random.Random(2)
    arrivals = []
    for seq in range(1, 2001):
        factor = 1.0 + 4.0 * min(max(seq - 1000, 0), 100) / 100
        arrivals.append((seq * 0.01 + factor * (0.02 + rng.expovariate(100.0)), seq))
    for at, seq in sorted(arrivals):
        drive.arrive(seq, at)
    drive.finish()
    assert drive.counters.late / 2000 <= 0.08
    assert drive.receiver.estimator.gauges()["level"] > 0.08


def test_congestion_that_climbs_150_milliseconds_a_second():
    drive = Drive(record=0, late=0.05)
    rng = random.Random(3)
    arrivals = [
        (seq * 0.01 + 0.02 + 0.15 * seq * 0.01 + rng.expovariate(200.0), seq)
        for seq in range(1, 2001)
    ]
    for at, seq in sorted(arrivals):
        drive.arrive(seq, at)
    drive.finish()
    assert drive.receiver.estimator.steps == 0
    assert drive.counters.late / 2000 <= 0.0625
    assert max(drive.waits) < 500
