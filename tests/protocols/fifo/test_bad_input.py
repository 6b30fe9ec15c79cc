"""Whatever a header says, its event is delivered; whatever a user sets wrongly is named."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import inorder.protocols.fifo.client as client_module
from inorder.core.effect import Deliver, Note
from inorder.core.errors import BadFrame, BadScenario, UnknownName
from inorder.core.event import Event
from inorder.core.limits import PENDING_EVENTS_MAX, RECORD_BYTES_MAX
from inorder.core.settings import convert
from inorder.protocols.fifo import Client, Options
from inorder.protocols.fifo.header import NUMBER_MAX, SEQ_JUMP_MAX, Header, Published, pack, unpack
from inorder.protocols.fifo.record import read_record
from tests.protocols.fifo.drive import GAP_US, Drive, stream

NOT_A_HEADER = [
    b"",
    b"\xc0",
    b"\x00" * 20,
    b"\xff" * 20,
    msgspec.msgpack.encode([0, 1.5, 10, 10]),
    msgspec.msgpack.encode([0, 1.0, 10, 10]),
    msgspec.msgpack.encode([0, 2, float("nan"), 10]),
    msgspec.msgpack.encode([0, 2, float("inf"), 10]),
    msgspec.msgpack.encode([0, 2, 10, float("-inf")]),
    msgspec.msgpack.encode([0, True, 10, 10]),
    msgspec.msgpack.encode([0, "2", 10, 10]),
    msgspec.msgpack.encode([0, None, 10, 10]),
    msgspec.msgpack.encode([0, 0, 10, 10]),
    msgspec.msgpack.encode([0, -1, 10, 10]),
    msgspec.msgpack.encode([-1, 2, 10, 10]),
    msgspec.msgpack.encode([2**63, 2, 10, 10]),
    msgspec.msgpack.encode([0, 2**64 - 1, 10, 10]),
    msgspec.msgpack.encode([0, 2, 2**63, 10]),
    msgspec.msgpack.encode([0.0, 2, 10, 10]),
    msgspec.msgpack.encode([0, 2, -10, 10]),
    msgspec.msgpack.encode([0, 2, 10, -10]),
    msgspec.msgpack.encode([0, 2, 10]),
    msgspec.msgpack.encode([0, 2, 10, 10, "text"]),
    msgspec.msgpack.encode([0, 2, 10, 10, b"x" * (RECORD_BYTES_MAX + 1)]),
    msgspec.msgpack.encode({"seq": 2}),
    pack(Header(0, 2, 10, 10)) + b"\x00",
    b"\x91" * 100_000,
]


def subscriber(**options: Any) -> Client:
    client = Client("s", ("t",), Options(**options))
    client.subscribe("c", ["t"], 0.0)
    client.joined("t", 0.0)
    return client


def hear(client: Client, header: bytes, seq: int = 1, now: float = 0.0) -> list[Any]:
    return client.receive("p", Published(Event("p", seq, "t"), header), now)


@pytest.mark.parametrize("header", NOT_A_HEADER, ids=range(len(NOT_A_HEADER)))
def test_bytes_that_are_no_header_cost_the_event_its_place_only(header):
    client = subscriber(when_late="drop")
    note, delivery = hear(client, header)
    assert isinstance(note, Note)
    assert note.mark == "no-order-header"
    assert isinstance(delivery, Deliver)
    assert not delivery.in_order
    account = client.account()
    assert (account["header_errors"], account["received"], account["late"]) == (1, 1, 0)
    with pytest.raises(BadFrame):
        unpack(header)


def test_a_header_nobody_can_read_moves_nothing():
    """Those that can be read around it are in order as if it had not come."""
    client = subscriber(record=0)
    for seq in (1, 2, 3):
        (delivery,) = hear(client, pack(Header(0, seq, seq, 1)), seq)
        assert delivery.in_order
        hear(client, b"rubbish", 99)
    assert client.account()["header_errors"] == 3


def test_a_client_that_trusts_headers_is_found(monkeypatch):
    monkeypatch.setattr(client_module, "unpack", msgspec.msgpack.Decoder(Header).decode)
    with pytest.raises(msgspec.MsgspecError):
        hear(subscriber(), b"\xc0")


def delivered_once(effects: list[Any], event: Event, client: Client) -> None:
    """The event is among the deliveries, waits, or is counted as the duplicate it claims to be."""
    now_out = [each for each in effects if isinstance(each, Deliver) and each.event == event]
    waits = [each for _, each in client._receivers["p"].pending.values() if each == event]
    duplicates = client._receivers["p"].counters.duplicates
    assert len(now_out) + len(waits) + min(duplicates, 1) >= 1
    if any(isinstance(each, Note) for each in effects):
        assert [each.in_order for each in now_out] == [False]


def warm() -> Client:
    client = subscriber()
    for header in stream(["t"] * 12, 25):
        hear(client, pack(header), header.seq, header.seq * 0.01 + 0.001 * (header.seq % 3))
    return client


WARM = warm().snapshot()


@given(st.binary(max_size=300))
def test_random_bytes_never_raise(frame):
    client = Client.restore(WARM)
    event = Event("p", 999, "t")
    delivered_once(client.receive("p", Published(event, frame), 0.2), event, client)


@given(st.data())
@hypothesis_settings(max_examples=300)
def test_a_valid_header_with_a_few_bytes_changed_or_cut_never_raises(data):
    frame = bytearray(pack(stream(["t"] * 20, 25)[-1]))
    for _ in range(data.draw(st.integers(1, 4))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(frame)) | st.just(len(frame)))
    client = Client.restore(WARM)
    event = Event("p", 999, "t")
    delivered_once(client.receive("p", Published(event, bytes(frame[:cut])), 0.21), event, client)


fields = st.integers(0, NUMBER_MAX) | st.integers(0, 50)


@given(
    st.lists(
        st.tuples(st.none() | st.integers(0, 3) | fields, fields, fields, fields, st.booleans()),
        max_size=12,
    ),
    st.sampled_from(["predictive", "laplace2", "static"]),
)
@hypothesis_settings(max_examples=200)
def test_well_formed_nonsense_is_delivered_or_known_for_a_duplicate(headers, estimator):
    drive = Drive(estimator=estimator, min_samples=1, tau_max=1.0)
    record = stream(["t"] * 9, 8)[-1].record
    for turn, (life, seq, departure_us, gap_us, bears) in enumerate(headers):
        header = Header(life, max(seq, 1), departure_us, gap_us, record if bears else b"")
        drive.take(header, turn * 0.01)
    drive.finish()
    assert len(drive.out) + drive.counters.duplicates == len(headers)


# Headers that contradict each other.


@pytest.mark.parametrize(
    ("jump", "taken"), [(1, True), (SEQ_JUMP_MAX, True), (SEQ_JUMP_MAX + 1, False)]
)
def test_a_jump_of_more_than_2_to_the_32_is_no_gap(jump, taken):
    drive = Drive(record=0)
    drive.arrive(5, 0.0, departure_us=0)
    said = drive.arrive(5 + jump, 0.01, departure_us=1)
    assert (said == f"{5 + jump}*") is not taken
    assert drive.counters.header_errors == (0 if taken else 1)
    drive.finish()
    assert drive.arrive(5 + jump, 0.5, departure_us=1) == "", "it is delivered once"


def test_a_jump_too_far_leaves_the_stream_where_it_was():
    drive = Drive(record=0)
    drive.arrive(1, 0.0)
    assert drive.arrive(2**60, 0.01) == f"{2**60}*"
    assert drive.arrive(2, 0.02) == "2"
    assert drive.arrive(3, 0.03) == "3"
    assert drive.receiver.estimator.gauges()["level"] == pytest.approx(-0.0, abs=0.03)


def test_one_departure_that_falls_back_is_tagged_and_not_sampled():
    drive = Drive(record=0)
    following = drive.warm(20)
    before = drive.receiver.estimator.gauges()
    assert drive.arrive(following, 0.3, departure_us=5) == f"{following}*"
    assert drive.receiver.estimator.gauges() == before
    assert drive.arrive(following + 1, 0.31) == str(following + 1)


# Records.


def test_a_record_must_hold_what_it_says():
    whole = stream(["t"] * 5, 25)[-1].record
    assert len(read_record(whole, 50_000).departures_us) == 4
    for cut in range(len(whole)):
        with pytest.raises(BadFrame):
            read_record(whole[:cut], 50_000)
    with pytest.raises(BadFrame, match="record of"):
        read_record(whole + b"\x00", 50_000)


def test_a_record_of_summaries_without_bytes_is_refused():
    with pytest.raises(BadFrame):
        read_record(bytes((2, 0, 0, 5, 5)), 100)


@pytest.mark.parametrize(
    "record", [b"\x01", b"\x01\x04", b"\x02\x04\x00\x05abcd", bytes((2, 0, 4, 5, 5))]
)
def test_an_event_with_a_broken_record_goes_out_tagged(record):
    drive = Drive()
    drive.arrive(1, 0.0)
    assert drive.arrive(4, 0.0, record=record) == "4*"
    assert drive.counters.header_errors == 1


def test_the_largest_record_there_can_be_is_read():
    drive = Drive(record=255, summary="content", summary_bytes=32)
    entries = b"".join(b"\x90\x4e" + b"\xff" * 32 for _ in range(255))
    drive.arrive(1, 0.0)
    drive.arrive(300, 0.0, record=bytes((255, 32, 4)) + entries, departure_us=300 * GAP_US)
    missing = drive.receiver.missing
    known, unknown = zip(missing.starts, missing.ends, missing.settled, strict=True)
    assert (known, unknown) == ((2, 44, False), (45, 299, True))


@given(st.binary(max_size=80), st.integers(1, 260))
def test_random_records_are_read_or_refused(frame, newest):
    try:
        record = read_record(frame, 10**6, newest)
    except BadFrame:
        return
    assert len(record.departures_us) == len(record.summaries) <= min(newest, 255)
    assert all(later >= earlier for later, earlier in pairwise((10**6, *record.departures_us)))


# Options.

NAN, INF = float("nan"), float("inf")

WRONG = [
    ("late", [0.0, -0.1, 0.500001, 1.0, NAN, INF], "0.5"),
    ("record", [-1, 256], "255"),
    ("summary_bytes", [0, 33], "32"),
    ("hashes", [0, 17], "16"),
    ("tau_max", [-1.0, 1e7, NAN, INF], "1e+06"),
    ("initial_latch", [-0.1, 1e7, NAN], "1e+06"),
    ("min_samples", [0, 1001], "1000"),
    ("window", [0, 100_001], "100000"),
    ("max_pair_gap", [-1.0, NAN], "inf"),
    ("latch", [-1.0, 1e7, NAN, INF], "1e+06"),
    ("max_pending", [0, PENDING_EVENTS_MAX + 1], "10000"),
    ("interest_window", [-1.0, NAN, INF], "1e+06"),
]


@pytest.mark.parametrize(
    ("key", "value", "limit"),
    [(key, value, limit) for key, values, limit in WRONG for value in values],
)
def test_an_option_out_of_range_is_named_with_its_range(key, value, limit):
    with pytest.raises(BadScenario, match=f"order.{key}") as caught:
        Options(**{key: value})
    assert caught.value.key == f"order.{key}"
    assert limit in caught.value.problem


def test_every_option_with_a_range_is_tried():
    tried = {key for key, _, _ in WRONG}
    free = {"estimator", "summary", "use_record", "adapt", "when_late"}
    assert tried | free == set(Options.__struct_fields__)


@pytest.mark.parametrize(
    "table",
    [{"late": "0.1"}, {"record": 2.5}, {"when_late": "never"}, {"summary": "both"}, {"p": 0.1}],
)
def test_an_option_of_the_wrong_kind_is_named(table):
    (key,) = table
    with pytest.raises(BadScenario, match=f"order.{key}"):
        convert(table, Options, "order")


def test_an_estimator_nobody_knows_is_refused_with_those_that_exist():
    with pytest.raises(UnknownName, match="laplace2, predictive, static"):
        Client("s", ("t",), Options(estimator="guess"))


@pytest.mark.parametrize("late", [1e-9, 0.5])
@pytest.mark.parametrize("estimator", ["predictive", "laplace2", "static"])
def test_the_edges_of_the_share_work(late, estimator):
    drive = Drive(estimator=estimator, late=late, record=0)
    following = drive.warm(40)
    drive.arrive(following + 1, 0.5)
    drive.finish()
    assert drive.said.split()[-1] == str(following + 1)
