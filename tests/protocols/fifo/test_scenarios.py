"""Stories of one publisher and one subscriber: each a few arrivals and what comes out."""

from __future__ import annotations

import pytest

from inorder.core.effect import CancelTimer, Deliver, SetTimer
from inorder.core.event import Event
from inorder.protocols.fifo import Client, Options
from inorder.protocols.fifo.header import Header, Published, pack
from inorder.protocols.fifo.receiver import Receiver
from inorder.protocols.fifo.summary import content_summary, elements, equals
from tests.protocols.fifo.drive import GAP_US, Drive, stream

STATIC = {"estimator": "static", "latch": 0.1}


def static(**options: object) -> Drive:
    return Drive(**{**STATIC, **options})


def burst_after(count: int, record: int) -> list[Header]:
    """Headers of a stream that goes on after `count` events with one every 100 microseconds."""
    shift_us = count * (GAP_US - 100)
    return [
        Header(0, each.seq, each.departure_us + shift_us, each.prev_gap_us, each.record)
        for each in stream(["t"] * (count + 10), record, 100)
    ]


# Order and loss.


@pytest.mark.parametrize("estimator", ["predictive", "laplace2", "static"])
def test_a_stream_in_order_is_never_held_back_and_sets_no_timer(estimator):
    drive = Drive(estimator=estimator, record=0)
    for seq in range(1, 1001):
        assert drive.arrive(seq, seq * 0.01 + 0.02) == str(seq)
        assert drive.receiver.deadline is None
    assert not any(drive.waits)
    assert (drive.counters.held, drive.counters.late, drive.counters.expired) == (0, 0, 0)


def test_two_that_swapped_places():
    drive = static()
    drive.arrive(1, 0.00)
    assert drive.arrive(3, 0.01) == ""
    assert drive.arrive(2, 0.02) == "2 3"
    assert drive.waits == [0, 0, 10]
    assert (drive.counters.held, drive.counters.held_useful) == (1, 1)


def test_ten_in_reverse():
    drive = static()
    drive.arrive(1, 0.0)
    for seq in range(11, 2, -1):
        assert drive.arrive(seq, 0.01) == ""
    assert drive.arrive(2, 0.01) == "2 3 4 5 6 7 8 9 10 11"
    assert drive.counters.held_useful == 9


def test_a_receiver_that_does_not_wait_tags_the_reversal(monkeypatch):
    monkeypatch.setattr(Receiver, "_open", lambda *_: None)
    drive = static()
    drive.arrive(1, 0.0)
    for seq in range(5, 1, -1):
        drive.arrive(seq, 0.01)
    assert drive.said == "1 5 4* 3* 2*"


def test_one_very_late_goes_out_at_once_and_tagged():
    drive = static()
    for seq in (1, 3, 4):
        drive.arrive(seq, 0.0)
    assert drive.arrive(2, 60.0) == "2*"
    assert drive.said == "1 3 4 2*"
    assert (drive.counters.late, drive.counters.expired) == (1, 1)


def test_late_events_can_be_dropped_and_are_still_counted():
    drive = static(when_late="drop")
    drive.arrive(1, 0.0)
    drive.arrive(3, 0.0)
    assert drive.arrive(2, 1.0) == ""
    assert (drive.said, drive.counters.late) == ("1 3", 1)


def test_a_lost_one_costs_one_latch():
    drive = static()
    drive.arrive(1, 0.0)
    drive.arrive(3, 0.0)
    assert drive.finish() == "3"
    assert drive.waits == [0, 100]
    assert (drive.counters.expired, drive.counters.spurious_relevance) == (1, 1)


def test_every_second_one_lost():
    drive = static()
    for seq in range(1, 400, 2):
        drive.arrive(seq, seq * 0.01)
    drive.finish()
    assert drive.said == " ".join(str(seq) for seq in range(1, 400, 2))
    assert set(drive.waits[1:]) == {100}
    assert drive.counters.expired == 199


def test_a_burst_of_five_within_a_millisecond():
    drive = static()
    for seq, at in ((1, 0.0), (4, 0.0002), (2, 0.0004), (5, 0.0006), (3, 0.0008)):
        drive.arrive(seq, at)
    assert drive.said == "1 2 3 4 5"
    assert drive.receiver.deadline is None


# Gaps.


@pytest.mark.parametrize("gap", [1, 5, 26, 1_000_000])
@pytest.mark.parametrize("estimator", ["predictive", "laplace2", "static"])
def test_a_gap_of_any_length_is_waited_for_and_costs_a_run_per_entry_at_most(gap, estimator):
    drive = Drive(estimator=estimator, record=25, latch=0.1)
    drive.arrive(1, 0.0)
    (last,) = stream(["t"] * 40, 25)[-1:]
    header = Header(0, gap + 2, last.departure_us, GAP_US, last.record)
    assert drive.take(header, 0.01) == ""
    assert 1 <= len(drive.receiver.missing) <= 26
    assert drive.finish() == str(gap + 2)
    assert drive.counters.expired == gap


def test_a_second_gap_while_the_first_is_open():
    drive = static()
    drive.arrive(1, 0.00)
    drive.arrive(3, 0.01)
    drive.arrive(5, 0.05)
    assert drive.run(0.12) == "3"
    assert drive.run(0.16) == "5"
    assert drive.waits == [0, 100, 100]


def test_the_second_gap_filled_does_not_open_the_first():
    drive = static()
    for seq, at in ((1, 0.0), (3, 0.01), (5, 0.02), (4, 0.03)):
        drive.arrive(seq, at)
    assert drive.said == "1"
    assert drive.arrive(2, 0.04) == "2 3 4 5"


def test_nine_comes_but_eight_does_not():
    """Only the earlier deadline of 8 counts when 9, which departed later, has come."""
    drive = Drive()
    following = drive.warm(50)
    headers = burst_after(50, 25)
    at = headers[following + 1].departure_us * 1e-6 + 0.0192
    drive.take(headers[following + 1], at)
    first, second = drive.receiver.missing.deadlines
    assert first < second == drive.receiver.deadline
    drive.take(headers[following], at + 0.0001)
    assert drive.receiver.deadline == first
    assert drive.finish() == f"{following + 1} {following + 2}"


def test_an_arrival_exactly_at_its_deadline_is_in_time():
    drive = static()
    drive.arrive(1, 0.0)
    drive.arrive(3, 0.0)
    assert drive.arrive(2, drive.receiver.deadline) == "2 3"
    assert drive.fired == 0


# Beginnings, restarts, duplicates.


@pytest.mark.parametrize("first", [1, 7, 10**9])
def test_the_first_event_is_taken_as_it_comes(first):
    drive = static()
    assert drive.arrive(first, 0.0) == str(first)
    assert drive.receiver.deadline is None
    assert drive.arrive(first + 1, 0.0) == str(first + 1)
    if first > 1:
        assert drive.arrive(first - 1, 0.0) == f"{first - 1}*"


def test_a_restart_lets_everything_that_waits_go_untagged():
    drive = static()
    for seq in (1, 3, 5):
        drive.arrive(seq, 0.0)
    assert drive.arrive(1, 0.01, life=1) == "3 5 1'"
    assert drive.counters.restarts == 1
    assert drive.receiver.deadline is None


def test_the_beginning_of_a_later_life_is_waited_for_if_the_record_reaches_it():
    drive = Drive()
    drive.arrive(5, 0.0)
    headers = [Header(1, *each_but_life(header)) for header in stream(["t"] * 3, 25)]
    assert drive.take(headers[2], 0.0) == ""
    drive.take(headers[0], 0.01)
    drive.take(headers[1], 0.02)
    assert drive.said == "5 1' 2' 3'"


def each_but_life(header: Header) -> tuple[int, int, int, bytes]:
    return header.seq, header.departure_us, header.prev_gap_us, header.record


def test_the_old_life_after_the_new_is_tagged():
    drive = static()
    drive.arrive(1, 0.0)
    drive.arrive(1, 0.0, life=1)
    assert drive.arrive(2, 0.0) == "2*"
    assert drive.arrive(2, 0.0, life=1) == "2'"
    assert drive.counters.late == 1


def test_an_old_life_is_no_longer_in_order_once_the_new_one_has_gone_out():
    drive = Drive()
    drive.arrive(1, 0.0)
    headers = [Header(1, *each_but_life(header)) for header in stream(["t"] * 2, 25)]
    drive.take(headers[1], 0.01)
    assert drive.arrive(2, 0.01) == "2"
    drive.finish()
    assert drive.arrive(3, 0.2) == "3*"
    assert drive.said == "1 2 2' 3*"


def test_a_restart_without_incarnation_is_believed_at_the_third_event():
    drive = static(record=0)
    for seq in range(2000, 2010):
        drive.arrive(seq, seq * 0.01, life=None)
    later_us = 2100 * GAP_US
    assert drive.arrive(1, 21.0, life=None, departure_us=later_us) == "1*"
    assert drive.arrive(2, 21.0, life=None, departure_us=later_us + 1) == "2*"
    assert drive.arrive(3, 21.0, life=None, departure_us=later_us + 2) == "3"
    assert drive.arrive(4, 21.0, life=None, departure_us=later_us + 3) == "4"
    assert drive.counters.restarts == 1


def test_old_events_of_a_publisher_without_incarnation_are_no_restart():
    drive = static(record=0)
    for seq in (5000, 1, 2, 3, 4, 5, 5001):
        drive.arrive(seq, 60.0, life=None)
    assert drive.said == "5000 1* 2* 3* 4* 5* 5001"
    assert drive.counters.restarts == 0


def test_duplicates_while_pending_after_delivery_and_after_a_restart():
    drive = static()
    drive.arrive(1, 0.0)
    drive.arrive(3, 0.0)
    assert drive.arrive(3, 0.01) == ""
    drive.arrive(2, 0.02)
    for seq in (1, 2, 3):
        assert drive.arrive(seq, 0.03) == ""
    drive.arrive(1, 0.04, life=1)
    for seq in (1, 2, 3):
        assert drive.arrive(seq, 0.05) == ""
    assert drive.arrive(1, 0.05, life=1) == ""
    assert drive.arrive(4, 0.06) == "4*"
    assert drive.arrive(4, 0.06) == ""
    assert drive.said == "1 2 3 1' 4*"
    assert drive.counters.duplicates == 9


# Records and interest.


def test_what_the_record_calls_irrelevant_is_not_waited_for():
    drive = Drive()
    headers = stream(["t", "other", "other", "t"], 25)
    drive.take(headers[0], 0.0)
    assert drive.take(headers[3], 0.01) == "4"
    assert (drive.counters.irrelevant, drive.counters.held) == (2, 0)


def test_the_same_gap_without_the_record_is_waited_for():
    drive = Drive(use_record=False)
    headers = stream(["t", "other", "other", "t"], 25)
    drive.take(headers[0], 0.0)
    assert drive.take(headers[3], 0.01) == ""


def content(value: dict[str, str], hashes: int = 4) -> bytes:
    return content_summary(elements("t", value), 16, hashes)


def bearing(seq: int, *summaries: bytes) -> Header:
    """A header whose record holds these content summaries, newest first."""
    entries = b"".join(b"\x90\x4e" + each for each in summaries)
    return Header(0, seq, seq * GAP_US, GAP_US, bytes((len(summaries), 16, 4)) + entries)


def test_a_false_positive_of_the_filter_costs_one_latch_and_nothing_else():
    drive = Drive(summary="content", initial_latch=0.05)
    drive.receiver.interests.want((((equals("firm", "IBM"),),),), -20.0)
    drive.arrive(1, 0.0)
    assert drive.take(bearing(3, b"\xff" * 16), 0.0) == ""
    assert drive.finish() == "3"
    assert drive.waits == [0, 50]
    assert drive.counters.spurious_relevance == 1
    assert drive.take(bearing(5, content({"firm": "Sun"})), 0.1) == "5"


def test_interest_that_changes_while_an_event_is_missing():
    """What the former interest wanted is still waited for; what neither wants is not."""
    drive = Drive(summary="content", interest_window=10.0, initial_latch=3.0)
    interests = drive.receiver.interests
    ibm, sun, dec = ({"firm": firm} for firm in ("IBM", "Sun", "DEC"))
    interests.want((((equals("firm", "IBM"),),),), -20.0)
    drive.arrive(1, 0.0)
    drive.take(bearing(3, content(ibm)), 0.0)
    interests.want((((equals("firm", "Sun"),),),), 0.5)
    assert drive.take(bearing(4, content(sun), content(ibm)), 0.6) == ""
    assert drive.arrive(2, 0.7) == "2 3 4"
    assert drive.take(bearing(6, content(dec)), 0.8) == "6"
    assert drive.take(bearing(8, content(ibm)), 0.9) == ""
    assert drive.take(bearing(9, content(sun), content(ibm)), 11.0) == "9"


def test_interest_that_narrowed_for_good_frees_whoever_waits():
    drive = Drive(summary="content", interest_window=0.1, initial_latch=3.0)
    interests = drive.receiver.interests
    interests.want((((equals("firm", "IBM"),),),), -20.0)
    drive.arrive(1, 0.0)
    drive.take(bearing(3, content({"firm": "IBM"})), 0.0)
    interests.want((((equals("firm", "Sun"),),),), 0.1)
    assert drive.take(bearing(4, content({}), content({"firm": "IBM"})), 0.5) == "3 4"


def test_a_record_shorter_than_the_gap_takes_the_oldest_departure_it_knows():
    drive = Drive()
    drive.warm(50)
    headers = burst_after(50, 2)
    drive.take(headers[55], headers[55].departure_us * 1e-6 + 0.0192)
    missing = drive.receiver.missing
    assert (missing.starts, missing.ends) == ([51, 54, 55], [53, 54, 55])
    assert missing.settled == [False, True, True]
    unknown, oldest, newest = missing.deadlines
    assert unknown == oldest == pytest.approx(newest - 0.0001)


def test_the_record_of_a_later_event_resolves_an_earlier_gap():
    drive = Drive()
    headers = stream(["t", "other", "t", "t"], 25)
    drive.take(headers[0], 0.0)
    bare = Header(0, 3, headers[2].departure_us, GAP_US)
    assert drive.take(bare, 0.01) == ""
    assert drive.take(headers[3], 0.02) == "3 4"
    assert drive.counters.irrelevant == 1


def test_the_record_of_a_late_event_resolves_a_gap_too():
    drive = Drive()
    headers = stream(["t", "other", "t", "t", "t"], 25)
    drive.arrive(1, 0.0)
    drive.arrive(5, 0.0)
    assert drive.take(headers[2], 0.01) == "3"
    assert drive.take(headers[3], 0.02) == "4 5"


# Several publishers, bounds.


def test_the_gap_of_one_publisher_never_delays_another():
    client = Client("s", ("t",), Options(record=0))
    client.subscribe("c", ["t"], 0.0)
    client.joined("t", 0.0)

    def hear(publisher: str, seq: int) -> list[object]:
        header = pack(Header(0, seq, seq * GAP_US, GAP_US))
        return client.receive(publisher, Published(Event(publisher, seq, "t"), header), 0.1)

    hear("p", 1)
    assert [type(each) for each in hear("p", 3)] == [SetTimer]
    for seq in range(1, 20):
        assert [type(each) for each in hear("q", seq)] == [Deliver]
    kinds = [type(each) for each in hear("p", 2)]
    assert kinds == [Deliver, Deliver, CancelTimer]


def test_overflow_lets_the_oldest_go_and_gives_their_gap_up():
    drive = static(max_pending=3, latch=5.0)
    drive.arrive(1, 0.0)
    for seq in (3, 5, 7):
        assert drive.arrive(seq, 0.01) == ""
    assert drive.arrive(9, 0.01) == "3"
    assert drive.counters.overflow == 1
    assert drive.arrive(2, 0.02) == "2*"
    assert drive.arrive(4, 0.02) == "4 5"
    assert len(drive.receiver.pending) == 2


@pytest.mark.parametrize("departure_us", [0, 1, 2**63, 2**64 - 1])
@pytest.mark.parametrize("prev_gap_us", [0, 2**64 - 1])
@pytest.mark.parametrize("estimator", ["predictive", "laplace2", "static"])
def test_times_at_the_edge_of_the_format_break_nothing(departure_us, prev_gap_us, estimator):
    drive = Drive(estimator=estimator, record=0, tau_max=0.5)
    following = drive.warm(20)
    edge = {"departure_us": departure_us, "prev_gap_us": prev_gap_us}
    drive.arrive(following + 1, 0.3, **edge)
    drive.arrive(following, 0.3, **edge)
    drive.arrive(following + 5, 0.3, **edge)
    drive.finish()
    numbers = drive.said.replace("*", "").split()
    assert sorted(map(int, numbers)) == [*range(1, following + 2), following + 5]
