"""Counterexamples: what broke a rule once, smallest first within a subject."""

from __future__ import annotations

import enum
from typing import Any

import pytest

import inorder.core.numbers
import inorder.protocols.fifo.client as client_module
import inorder.protocols.fifo.receiver as receiver_module
from inorder.core.effect import Deliver, Note, SetTimer
from inorder.core.errors import Misuse
from inorder.core.event import Event
from inorder.protocols.fifo import Client, Options
from inorder.protocols.fifo.header import NUMBER_MAX, Header, Published, pack
from inorder.protocols.fifo.interests import Interests
from inorder.protocols.fifo.predictive import Predictive
from inorder.protocols.fifo.receiver import Receiver
from inorder.protocols.fifo.summary import (
    Interest,
    content_summary,
    elements,
    equals,
    topic_summary,
)
from tests.protocols.fifo.drive import GAP_US, Drive, receiver, stream

STATIC = {"estimator": "static", "latch": 0.1}


def subscriber(*topics: str, **options: Any) -> Client:
    client = Client("s", topics, Options(**options))
    client.subscribe("c", topics, 0.0)
    for topic in topics:
        client.joined(topic, 0.0)
    return client


def published(seq: int, publisher: str = "p", topic: str = "t", **header: Any) -> Published:
    header.setdefault("departure_us", seq * GAP_US)
    header.setdefault("prev_gap_us", GAP_US)
    life = header.pop("life", 0)
    return Published(Event(publisher, seq, topic), pack(Header(life, seq, **header)))


# Publishers without incarnation.


def test_a_duplicate_of_a_publisher_without_incarnation_is_dropped():
    drive = Drive(**STATIC)
    for seq in (1, 2, 3, 2, 3):
        drive.arrive(seq, 0.0, life=None)
    assert drive.said == "1 2 3"
    assert drive.counters.duplicates == 2


def test_the_first_gap_of_a_publisher_without_incarnation_is_waited_for():
    drive = Drive(**STATIC)
    for seq in (1, 2, 4, 3):
        drive.arrive(seq, 0.0, life=None)
    assert drive.said == "1 2 3 4"


def test_the_doubtful_first_events_after_such_a_restart_are_delivered_once():
    drive = Drive(**STATIC)
    for seq in (2000, 2001):
        drive.arrive(seq, 0.0, life=None)
    for seq in (1, 2, 3, 1, 2):
        drive.arrive(seq, 0.0, life=None, departure_us=3000 * GAP_US + seq)
    assert drive.said == "2000 2001 1* 2* 3"


def test_no_event_of_a_new_life_is_swallowed_as_a_duplicate():
    """A duplicate departed when its original did; these departed after everything so far."""
    drive = Drive(**STATIC)
    for seq in range(1, 501):
        drive.arrive(seq, 0.0, life=None)
    for seq in range(1, 11):
        drive.arrive(seq, 1.0, life=None, departure_us=600 * GAP_US + seq)
    assert drive.said.replace("*", "").split()[500:] == [str(seq) for seq in range(1, 11)]


# Hostile headers.


@pytest.mark.parametrize("estimator", ["predictive", "laplace2"])
def test_a_record_with_an_endless_time_difference_is_a_header_error(estimator):
    """A varint of 200 bytes is a number no float can hold."""
    drive = Drive(estimator=estimator)
    following = drive.warm(30)
    record = bytes((1, 4, 0)) + b"\xff" * 200 + b"\x01" + topic_summary("t")
    drive.arrive(following + 1, 1.0, record=record)
    drive.finish()
    assert str(following + 1) in drive.said.replace("*", "").split()


def test_an_event_whose_record_is_broken_has_arrived_all_the_same():
    """Nobody waits for what is delivered already, and it is delivered once."""
    drive = Drive()
    drive.arrive(1, 0.0)
    assert drive.arrive(3, 0.0, record=b"\x05") == "3*"
    assert drive.arrive(3, 0.0, record=b"\x05") == ""
    assert drive.arrive(2, 0.0) == "2"
    assert drive.arrive(4, 0.0) == "4"


def test_a_stream_of_broken_records_finds_its_order_again_after_a_loss():
    """Numbers and times can be read: the record is all that is of no use."""
    drive = Drive()
    drive.arrive(1, 0.0, record=b"\x05")
    for seq in range(3, 40):
        drive.arrive(seq, seq * 0.01, record=b"\x05")
    assert drive.said.split()[-1] == "39"


def test_a_broken_record_is_noted_like_any_broken_header():
    client = subscriber("t")
    client.receive("p", published(1), 0.0)
    effects = client.receive("p", published(3, record=b"\x05"), 0.0)
    assert [each.mark for each in effects if isinstance(each, Note)] == ["no-order-header"]


def test_one_absurd_number_does_not_unbind_the_memory_for_ever(monkeypatch):
    monkeypatch.setattr(inorder.core.numbers, "NUMBER_RUNS_MAX", 1000)
    drive = Drive(**STATIC, max_pending=1)
    drive.arrive(1, 0.0)
    drive.arrive(2**60, 0.0)
    for seq in range(3, 4000, 2):
        drive.arrive(seq, 0.0)
    assert len(drive.receiver.seen.starts) <= 1000


def test_the_duplicate_of_an_event_that_made_no_sense_is_dropped_though_it_is_next_in_line():
    drive = Drive(**STATIC)
    drive.arrive(1, 0.0, departure_us=10 * GAP_US)
    assert drive.arrive(2, 0.0, departure_us=5 * GAP_US) == "2*"
    assert drive.arrive(2, 0.0, departure_us=20 * GAP_US) == ""
    assert drive.counters.duplicates == 1


def test_what_may_be_a_duplicate_or_not_is_delivered_tagged(monkeypatch):
    """Below the floor nobody remembers: 2 is new, 3 is a duplicate, and both go out."""
    monkeypatch.setattr(inorder.core.numbers, "NUMBER_RUNS_MAX", 10)
    drive = Drive(**STATIC, max_pending=1)
    for seq in range(1, 42, 2):
        drive.arrive(seq, 0.0)
    drive.finish()
    assert drive.receiver.seen.floor > 3
    assert [drive.arrive(seq, 1.0) for seq in (2, 3, 3, 41, 42)] == ["2*", "3*", "3*", "", "42"]


def test_a_straggler_of_a_former_life_that_may_be_a_duplicate_is_delivered_tagged(monkeypatch):
    monkeypatch.setattr(inorder.core.numbers, "NUMBER_RUNS_MAX", 10)
    drive = Drive(**STATIC, max_pending=1)
    for seq in range(1, 42, 2):
        drive.arrive(seq, 0.0)
    drive.arrive(1, 0.0, life=1)
    assert [drive.arrive(seq, 1.0) for seq in (2, 3, 41)] == ["2*", "3*", ""]


@pytest.fixture
def crowd(monkeypatch: pytest.MonkeyPatch) -> Receiver:
    """More events wait, each behind a gap of its own, than numbers are remembered."""
    monkeypatch.setattr(inorder.core.numbers, "NUMBER_RUNS_MAX", 50)
    waiting = receiver(estimator="static", latch=4.0)
    for seq in range(1, 203, 2):
        waiting.receive(Header(0, seq, seq, 1), Event("p", seq, "t"), 0.0)
    assert len(waiting.pending) == 100
    return waiting


def test_the_duplicate_of_an_event_that_waits_is_dropped_however_many_wait(crowd):
    assert crowd.receive(Header(0, 3, 3, 1), Event("p", 3, "t"), 1.0) == []
    assert crowd.counters.duplicates == 1


def test_the_duplicate_of_an_event_that_came_this_instant_crashes_nobody(crowd):
    crowd.receive(Header(0, 3, 3, 1), Event("p", 3, "t", {"other": 1}), 0.0)
    assert len(crowd.pending) == 100


def test_what_is_missing_is_bounded_however_long_the_records():
    """Each event tells of 255 that are missing; a run for each, ten thousand times over, is a third
    of a gigabyte, and letting them go one by one takes a time that grows with the square."""
    waiting = receiver(estimator="static", latch=4.0, use_record=True)
    record = bytes((255, 4, 0)) + (b"\x01" + topic_summary("t")) * 255
    for turn in range(500):
        seq = 1 + 256 * turn
        waiting.receive(Header(0, seq, seq, 1, record), Event("p", seq, "t"), 0.0)
    assert len(waiting.pending) == 499
    assert len(waiting.missing) <= 100_000


def test_many_gaps_are_given_up_like_many_events(monkeypatch):
    monkeypatch.setattr(receiver_module, "MISSING_RUNS_MAX", 20)
    waiting = receiver(estimator="static", latch=4.0)
    for turn in range(50):
        seq = 1 + 2 * turn
        waiting.receive(Header(0, seq, seq, 1), Event("p", seq, "t"), turn * 1e-3)
    assert len(waiting.missing) <= 20
    assert waiting.counters.overflow == 29


def test_a_life_with_the_last_number_there_is_can_be_snapshotted():
    client = subscriber("t", **STATIC)
    client.receive("p", published(5000, life=NUMBER_MAX), 0.0)
    for seq in (1, 2, 3):
        departure_us = 6000 * GAP_US + seq
        client.receive("p", published(seq, life=None, departure_us=departure_us), 0.0)
    assert client.snapshot()


# Snapshots and failed calls.


def test_a_subscriber_with_more_state_than_a_frame_holds_can_be_snapshotted():
    """Eight events of 150 kB wait. A hundred busy publishers are as much, without any waiting."""
    client = subscriber("t", **STATIC)
    for seq in (1, *range(3, 11)):
        header = pack(Header(0, seq, seq, 1))
        client.receive("p", Published(Event("p", seq, "t", {"x": "x" * 150_000}), header), 0.0)
    assert Client.restore(client.snapshot()).snapshot() == client.snapshot()


@pytest.mark.parametrize(
    ("topic", "now"),
    [("half \ud800", 0.0), ("t", float("nan")), ("t", float("inf")), ("t", 1e14)],
)
def test_a_publication_that_fails_changes_nothing(topic, now):
    """Else the reservation of numbers is lost with the effects, and they are used twice."""
    client = Client("p", ("t",), Options())
    before = client.snapshot()
    with pytest.raises((Misuse, UnicodeEncodeError)):
        client.publish(topic, {}, now)
    assert client.snapshot() == before


# Counters and the dial.


@pytest.mark.parametrize("count", [200, 3000])
def test_a_clock_step_in_an_orderly_stream_is_counted(count):
    client = stepped_clock(count)
    assert client.account()["clock_steps"] == 1


def stepped_clock(count: int) -> Client:
    """A subscriber after an orderly stream whose clock gained two seconds at event 100."""
    client = subscriber("t", record=0)
    for seq in range(1, count + 1):
        departure_us = seq * GAP_US + (2_000_000 if seq >= 100 else 0)
        now = seq * 0.01 + 0.001 * (seq % 7)
        client.receive("p", published(seq, departure_us=departure_us), now)
    return client


def test_counters_never_fall_when_publishers_make_room(monkeypatch):
    client = stepped_clock(200)
    before = client.account()
    monkeypatch.setattr(client_module, "PUBLISHERS_PER_SUBSCRIBER_MAX", 1)
    client.receive("p", published(1, "q"), 10.0)
    after = client.account()
    assert all(after[name] >= before[name] for name in ("received", "clock_steps"))


def test_nobody_waits_longer_than_planned():
    drive = Drive(**STATIC)
    for seq, at in ((1, 0.0), (3, 0.0), (5, 0.09)):
        drive.arrive(seq, at)
    drive.finish()
    assert drive.waits == [0, 100, 100]
    assert drive.counters.waited_s <= drive.counters.planned_s + 1e-9


def test_publishers_that_made_room_do_not_dilute_the_dial(monkeypatch):
    monkeypatch.setattr(client_module, "PUBLISHERS_PER_SUBSCRIBER_MAX", 2)
    client = subscriber("t", **STATIC)
    for name in range(10):
        client.receive("p", published(1, f"p{name}"), float(name))
    account = client.account()
    assert account["dial_wait_s"] / account["received"] == pytest.approx(0.1)


# Waiting.


def test_a_second_sleep_is_treated_like_the_first():
    drive = Drive(**STATIC)
    receiver = drive.receiver
    for seq in (1, 3):
        receiver.receive(Header(0, seq, seq, 1), Event("p", seq, "t"), 0.0)
    assert receiver.fire(10.0) == []
    for seq in (2, 5):
        receiver.receive(Header(0, seq, seq, 1), Event("p", seq, "t"), 10.0)
    assert receiver.fire(20.0) == [], "what queued up meanwhile goes first"
    (four, five) = receiver.receive(Header(0, 4, 4, 1), Event("p", 4, "t"), 20.0)
    assert four.in_order
    assert five.in_order


def test_an_arrival_gives_nobody_up_who_is_in_the_queue_behind_it():
    """The process sleeps while 61 to 63 are missing; then 63, 61 and 62 are in its queue. The
    record of 63 tells the departure of 62, and by that 62 is long overdue."""
    drive = Drive(record=1)
    drive.warm(60)
    headers = stream(["t"] * 64, 1)
    bare = Header(0, 64, 610_000, 0)
    assert drive.take(bare, 0.6205) == ""
    assert drive.receiver.missing.starts == [61]
    for seq in (63, 61, 62):
        each = headers[seq - 1]
        event = Event("p", seq, "t")
        drive.out += drive.receiver.receive(each, event, 10.0)
    assert drive.said.split()[60:] == ["61", "62", "63", "64"]


def test_nobody_waits_for_an_event_that_came_on_a_topic_left_meanwhile():
    client = subscriber("t", "u", record=0)
    client.receive("p", published(1), 0.0)
    client.unsubscribe("x", ["u"], 0.0)
    assert client.receive("p", published(2, topic="u"), 0.0) == []
    effects = client.receive("p", published(3), 0.0)
    assert [type(each) for each in effects] == [Deliver]


def test_after_a_clock_step_the_spread_is_still_known():
    """The level moves, window and scale stay: no need to fall back to the initial latch."""
    drive = Drive(record=0, initial_latch=4.0)
    following = drive.warm(50)
    for seq in range(following, following + 3):
        drive.arrive(seq, seq * 0.01 + 0.02, departure_us=seq * GAP_US + 2_000_000)
    assert drive.receiver.estimator.steps == 1
    assert drive.receiver.estimator.warm


def test_a_share_below_the_smallest_to_adapt_is_not_given_up_at_once():
    estimator = Predictive.from_options(Options(late=1e-5, adapt=True))
    estimator.feedback(False)
    assert estimator.share == pytest.approx(1e-5, rel=0.01)


# Bounds.


def test_former_interests_are_bounded():
    interests = Interests(10.0)
    for turn in range(20_000):
        interests.want((((equals("firm", turn),),),), 0.0)
    assert len(interests.s.former) <= 10_000


def test_publishers_are_bounded_even_if_each_of_them_has_a_gap(monkeypatch):
    monkeypatch.setattr(client_module, "PUBLISHERS_PER_SUBSCRIBER_MAX", 10)
    client = subscriber("t", **STATIC)
    timers = 0
    for name in range(100):
        for seq in (1, 3):
            effects = client.receive("p", published(seq, f"p{name}"), 0.0)
            timers += sum(isinstance(each, SetTimer) for each in effects)
    assert timers
    assert len(client._receivers) <= 10


# Summaries.


class Colour(str, enum.Enum):  # noqa: UP042
    RED = "red"


class Size(enum.IntEnum):
    SMALL = 1


@pytest.mark.parametrize(("shown", "wanted"), [(Colour.RED, "red"), (Size.SMALL, 1)])
def test_members_of_enumerations_are_the_values_they_travel_as(shown, wanted):
    summary = content_summary(elements("t", {"x": shown}), 16, 4)
    assert Interest(("t",), (((equals("x", wanted),),),)).concerns(summary, 4)
