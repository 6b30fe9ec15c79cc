"""Each part of the receiver against an obvious model of itself."""

from __future__ import annotations

from itertools import pairwise
from math import ceil, inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from inorder.core.effect import Deliver, Diffuse
from inorder.core.event import Event
from inorder.protocols.fifo import Client, Options
from inorder.protocols.fifo.header import NUMBER_MAX, Header, Published, pack, unpack
from inorder.protocols.fifo.missing import Missing
from inorder.protocols.fifo.record import Record, RecordWriter, read_record, varint
from tests.protocols.fifo.drive import receiver

# Missing.

commands = st.lists(
    st.one_of(
        st.tuples(st.just("open"), st.integers(1, 5), st.integers(1, 6), st.integers(0, 9)),
        st.tuples(st.just("remove"), st.integers(1, 60)),
        st.tuples(st.just("settle"), st.integers(1, 60), st.integers(0, 9)),
        st.tuples(st.just("give up"), st.integers(1, 60)),
    ),
    max_size=40,
)


@given(commands)
@hypothesis_settings(max_examples=300)
def test_missing_is_a_dict_of_deadlines(script):
    missing = Missing()
    model: dict[int, tuple[float, bool]] = {}
    top = 0
    for command, *values in script:
        if command == "open":
            skip, length, deadline = values
            start, top = top + skip, top + skip + length - 1
            missing.open(start, top, float(deadline), False)
            model |= {number: (float(deadline), False) for number in range(start, top + 1)}
        elif command == "remove":
            assert missing.remove(values[0]) == (model.pop(values[0], None) is not None)
        elif command == "settle":
            number, deadline = values
            missing.settle(number, float(deadline))
            if number in model:
                model[number] = (min(model[number][0], float(deadline)), True)
        else:
            below = [number for number in model if number < values[0]]
            assert missing.give_up_below(values[0]) == len(below)
            model = {number: kept for number, kept in model.items() if number >= values[0]}
        agree(missing, model, top)


def agree(missing: Missing, model: dict[int, tuple[float, bool]], top: int) -> None:
    found = {
        number: (deadline, settled)
        for start, end, deadline, settled in zip(
            missing.starts, missing.ends, missing.deadlines, missing.settled, strict=True
        )
        for number in range(start, end + 1)
    }
    assert found == model
    for number in range(top + 2):
        assert missing.deadline(number) == model.get(number, (None,))[0]
        below = [deadline for each, (deadline, _) in model.items() if each < number]
        assert missing.until(number) == max(below, default=-inf)
    low, high = top // 3, 2 * top // 3
    expected = [(n, model[n][1]) for n in sorted(model) if low <= n <= high]
    assert missing.between(low, high) == expected


# Records and headers.


@given(st.integers(0, 2**70))
def test_varints_are_seven_bits_a_byte(number):
    frame = varint(number)
    assert len(frame) == max(1, ceil(number.bit_length() / 7))
    assert sum((byte & 0x7F) << (7 * place) for place, byte in enumerate(frame)) == number
    assert [byte > 0x7F for byte in frame] == [True] * (len(frame) - 1) + [False]


@given(
    st.integers(0, 255),
    st.sampled_from([(4, 0), (16, 4), (32, 6)]),
    st.lists(st.integers(0, 10**9), min_size=1, max_size=300),
)
def test_a_record_tells_the_last_k_events(k, kind, gaps):
    size, hashes = kind
    writer = RecordWriter(k, size, hashes)
    departures: list[int] = []
    summaries: list[bytes] = []
    now_us = 0
    for number, gap_us in enumerate(gaps):
        now_us += gap_us
        summary = number.to_bytes(size, "big")
        frame = writer.next(gap_us, summary)
        departures.append(now_us)
        summaries.append(summary)
    told = slice(max(0, len(gaps) - 1 - k), len(gaps) - 1)
    if not frame:
        assert k == 0 or len(gaps) == 1
        return
    wanted = Record(tuple(departures[told][::-1]), tuple(summaries[told][::-1]), hashes)
    assert read_record(frame, now_us) == wanted
    newest = read_record(frame, now_us, 3)
    assert newest.departures_us == wanted.departures_us[:3]
    assert newest.summaries == wanted.summaries[:3]


def header_bytes(record: int, **options: Any) -> int:
    """The header of an event in the middle of a stream, 10 milliseconds between events."""
    client = Client("p", ("orders",), Options(record=record, **options))
    effects: list[Any] = []
    for turn in range(400):
        value = {"firm": "IBM", "price": 9.5 + turn}
        effects = client.publish("orders", value, 1000.0 + turn * 0.01)
    (sent,) = (each.message for each in effects if isinstance(each, Diffuse))
    return len(sent.header)


def test_what_a_header_costs():
    assert header_bytes(0) <= 20
    for k in (5, 25, 255):
        assert 6 * k <= header_bytes(k) - header_bytes(0) <= 7 * k + 6
        each = (header_bytes(k, summary="content") - header_bytes(0)) / k
        assert 18 <= each <= 20
    assert 90 <= header_bytes(5, summary="content") - header_bytes(0) <= 100
    assert 450 <= header_bytes(25, summary="content") - header_bytes(0) <= 500


headers = st.builds(
    Header,
    st.none() | st.integers(0, NUMBER_MAX),
    st.integers(1, NUMBER_MAX),
    st.integers(0, NUMBER_MAX),
    st.integers(0, NUMBER_MAX),
    st.binary(max_size=50),
)


@given(headers)
def test_headers_survive_the_journey(header):
    assert unpack(pack(header)) == header


def test_departures_never_fall_though_the_clock_does():
    client = Client("p", ("t",), Options())
    sent = []
    for now in (5.0, 5.01, 1.0, 1.01, 0.0, 7.0):
        (out,) = (e for e in client.publish("t", {}, now) if isinstance(e, Diffuse))
        sent.append(unpack(out.message.header))
    departures = [each.departure_us for each in sent]
    assert departures == sorted(departures)
    assert [each.prev_gap_us for each in sent[1:]] == [
        later - earlier for earlier, later in pairwise(departures)
    ]
    assert [each.seq for each in sent] == [1, 2, 3, 4, 5, 6]


# Snapshots.

arrivals = st.lists(
    st.tuples(
        st.sampled_from(["p", "q"]),
        st.sampled_from([0, 0, 0, 1, 2, None]),
        st.integers(1, 14) | st.just(2000),
        st.sampled_from(["t", "u"]),
        st.sampled_from([0, 0, 1_000_000_000]),
        st.integers(0, 60),
        st.sampled_from(["arrive", "arrive", "arrive", "fire", "want", "publish", "rubbish"]),
    ),
    max_size=40,
)


def step(client: Client, turn: tuple[Any, ...], now: float) -> list[Any]:
    name, life, seq, topic, ahead_us, _, verb = turn
    if verb == "fire":
        return client.fire(name, now) if name in client._armed else []
    if verb == "want":
        client.want((((f"?{seq}",),),), now)
        return []
    if verb == "publish":
        return client.publish(topic, {"x": seq}, now)
    record = bytes((1, 4, 0, 100)) + seq.to_bytes(4, "big") if seq % 2 else b""
    header = pack(Header(life, seq, seq * 10_000 + ahead_us, 10_000, record))
    return client.receive(
        name, Published(Event(name, seq, topic), header if verb == "arrive" else b"?"), now
    )


@given(
    arrivals,
    st.integers(0, 40),
    st.sampled_from(["predictive", "laplace2", "static"]),
    st.booleans(),
)
@hypothesis_settings(max_examples=250)
def test_a_client_restored_in_the_middle_goes_on_alike(script, cut, estimator, adapt):
    options = Options(estimator=estimator, min_samples=2, adapt=adapt, late=0.1, record=3)
    client = Client("s", ("t", "u"), options)
    client.subscribe("c", ["t", "u"], 0.0)
    client.joined("t", 0.0)
    client.joined("u", 0.0)
    twin = client
    now = 0.0
    for place, turn in enumerate(script):
        if place == cut:
            twin = Client.restore(client.snapshot())
            assert twin.snapshot() == client.snapshot()
        now += turn[5] * 1e-3
        effects = step(client, turn, now)
        if twin is not client:
            assert step(twin, turn, now) == effects
    assert twin.snapshot() == client.snapshot()
    assert same(twin.account(), client.account())


def same(left: dict[str, float], right: dict[str, float]) -> bool:
    """Equal figure by figure, not-a-number included."""
    return {name: repr(value) for name, value in left.items()} == {
        name: repr(value) for name, value in right.items()
    }


@pytest.mark.parametrize("field", ["floor", "missing", "pending", "seen", "past", "incarnation"])
def test_a_snapshot_that_forgets_a_field_is_found(field):
    """The comparison above can fail: without any of these a restored client goes on otherwise."""
    client = Client("s", ("t",), Options(estimator="static", latch=3.0))
    client.subscribe("c", ["t"], 0.0)
    client.joined("t", 0.0)

    def hear(machine: Client, seq: int, life: int) -> list[Any]:
        header = pack(Header(life, seq, seq, 1))
        return machine.receive("p", Published(Event("p", seq, "t"), header), 0.5)

    for seq, life in ((1, 0), (2, 1), (4, 1)):
        hear(client, seq, life)
    twin = Client.restore(client.snapshot())
    forgetful, fresh = twin._receivers["p"], receiver(estimator="static", latch=3.0)
    setattr(forgetful, field, getattr(fresh, field))
    later = [(1, 1), (1, 0), (2, 1), (5, 1), (3, 1)]
    told = [
        [
            (each.event.seq, each.in_order)
            for seq, life in later
            for each in hear(machine, seq, life)
            if isinstance(each, Deliver)
        ]
        for machine in (client, twin)
    ]
    assert told[0] != told[1]


def test_a_restart_half_believed_survives_a_snapshot():
    client = Client("s", ("t",), Options(estimator="static", latch=3.0))
    client.subscribe("c", ["t"], 0.0)
    client.joined("t", 0.0)

    def hear(seq: int, departure_us: int) -> list[Any]:
        header = pack(Header(None, seq, departure_us, 1))
        return client.receive("p", Published(Event("p", seq, "t"), header), 0.5)

    hear(2000, 2000)
    hear(1, 3001)
    hear(2, 3002)
    client = Client.restore(client.snapshot())
    (third,) = hear(3, 3003)
    assert third.in_order
    assert hear(1, 3001) == []
