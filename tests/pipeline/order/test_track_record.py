"""What was found wrong once with `order` and `sequence`: the smallest inputs that showed it.

Lanes and readers are driven as Spark would drive them.
"""

from __future__ import annotations

import json
import math
from datetime import date
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from inorder.core import numbers as core_numbers
from inorder.core.errors import Misuse
from inorder.core.event import Event
from inorder.core.numbers import Numbers
from inorder.pipeline import order_lane
from inorder.pipeline.order_lane import Lane, Plan
from inorder.pipeline.order_rows import Rows, arrival_order
from inorder.pipeline.order_stage import _check_start
from inorder.pipeline.sequence_rows import Sequencing
from inorder.protocols.total import skim, skim_run
from inorder.protocols.total.messages import Events
from inorder.protocols.total.options import Options
from inorder.protocols.total.reader import Reader

TAG = {"mode": "tag"}
HOLD = {"mode": "hold"}


def row(place: int, topic: str, stamp: dict[str, int], **more: Any) -> dict[str, Any]:
    return {
        "subscriber": "s", "topic": topic, "offset": min(stamp.get(topic, 1), 2**63) - 1,
        "arrival": place, "event": f"p:{place + 1}", "publisher": "p", "seq": place + 1,
        "received_at": float(place), "stamp": json.dumps(stamp), **more,
    }  # fmt: skip


def fed(plan: Plan, feeds: list[list[dict[str, Any]]], finish: bool = True) -> list[Any]:
    """Event, nth, in_order and reason of what leaves, with a restart behind every feed."""
    lane = Rows(plan)
    out: list[Any] = []
    for rows in feeds:
        out += lane.feed(pa.Table.from_pylist(rows)).to_pylist()
        out += lane.settle().to_pylist()
        lane = Rows.unpack(plan, lane.pack())
    out += lane.finish().to_pylist() if finish else []
    names = ("event", "nth", "in_order", "quarantine")
    return sorted(tuple(map(each.get, names)) for each in out)


def both_ways(plan: Plan, feeds: list[list[dict[str, Any]]], finish: bool = True) -> list[Any]:
    """What the quick way says, and what the plain way says."""
    found = []
    with pytest.MonkeyPatch.context() as patch:
        for least in (1, 10**9):
            patch.setattr(order_lane, "SKIM_ROWS_MIN", least)
            found.append(fed(plan, feeds, finish))
    return found


def loose(options: dict[str, Any], start: Any = "beginning") -> Plan:
    return Plan("total", options, start=start, strict=False)


# Ties, and types of columns.


def sequenced(rows: list[dict[str, Any]], arrival: tuple[str, ...]) -> list[dict[str, Any]]:
    table = pa.Table.from_pylist(rows)
    table = table.take(pa.array(arrival_order(table, arrival)))
    return Sequencing(arrival).new().feed(table).to_pylist()


def test_ties_of_arrival_do_not_depend_on_where_rows_lie():
    """Two rows that only differ in what they carry: not the one that lies first is the first."""
    rows = [{"topic": "a", "received_at": 1.0, "attributes": text} for text in ("x", "y")]
    found = [
        {
            each["attributes"]: each["position"]
            for each in sequenced(order, ("received_at", "topic"))
        }
        for order in (rows, rows[::-1])
    ]
    assert found[0] == found[1]


def test_ties_of_arrival_between_stamps_do_not_depend_on_where_rows_lie():
    """An event that was stamped twice: which of the two is in order depends on the shuffle."""
    rows = [row(0, "a", {"a": number}, offset=0) for number in (1, 2)]
    keys = ("arrival", "topic", "offset", "publisher", "seq")
    found = []
    for order in (rows, rows[::-1]):
        table = pa.Table.from_pylist(order)
        out = Rows(loose(TAG)).feed(table.take(pa.array(arrival_order(table, keys)))).to_pylist()
        found.append(sorted((each["stamp"], each["nth"], each["in_order"]) for each in out))
    assert found[0] == found[1]


def test_ties_of_times_that_are_no_numbers_are_broken_too():
    table = pa.table({"when": [math.nan, math.nan], "topic": ["b", "a"]})
    assert list(arrival_order(table, ("when", "topic"))) == [1, 0]


def test_a_stream_may_arrive_by_date():
    """order() accepts a date as arrival; a table sorts by it, a stream dies of it."""
    table = pa.table({"when": [date(2026, 1, 2), date(2026, 1, 1)]})
    assert list(arrival_order(table, ("when",))) == [1, 0]


def test_a_stream_may_have_whole_numbers_as_times():
    """order() accepts a bigint received_at; a table casts it, a stream dies of it."""
    rows = [row(0, "a", {"a": 1}, received_at=1)]
    assert fed(loose(TAG), [rows]) == [("p:1", 1, True, None)]


# Numbers.


def test_quick_duplicates_beyond_53_bits():
    """A topic without holes: numpy makes floats of an empty list and the numbers behind it."""
    number = 2**53 + 1
    feeds = [[row(0, "a", {"a": number})], [row(1, "a", {"a": number})]]
    quick, plainly = both_ways(loose(TAG, "first"), feeds)
    assert quick == plainly


def test_quick_sums_that_run_over():
    """The sum over the entries wraps around to the next place, and what must wait is released."""
    top = 2**63 - 1
    rows = [row(0, "b", {"b": 1, "c": top, "d": top, "e": 2})]
    plan = loose(HOLD, dict.fromkeys("bcde", 0))
    quick, plainly = both_ways(plan, [rows], finish=False)
    assert quick == plainly == []


def test_quick_entries_beyond_64_bits_of_a_topic_the_first_row_does_not_name():
    """read() expects the overflow of its first table only."""
    rows = [row(0, "a", {"a": 1}), row(1, "a", {"a": 2, "z": 2**63})]
    quick, plainly = both_ways(loose(TAG), [rows])
    assert quick == plainly


@pytest.mark.parametrize("stamp", [{"a": 2, "z": 2**70}, {"a": 2**70}])
def test_a_stamp_beyond_64_bits_is_put_aside(stamp):
    """Taken for good, it can never be packed: every micro-batch fails from then on."""
    found = fed(loose(TAG), [[row(0, "a", {"a": 1}), row(1, "a", stamp, offset=1)]])
    assert found[0] == ("p:1", 1, True, None)
    assert found[1][3] is not None


@pytest.mark.parametrize("start", [{"s": {"t": 0}, "a": 1}, {"a": 1, "s": {"t": 0}}])
def test_a_start_is_by_topic_or_by_subscriber(start):
    """Both at once pass the check, and end on a worker with an error of Python's."""
    with pytest.raises(Misuse):
        _check_start(start)


# Late rows, and rows that cannot be used.


def test_a_late_row_is_tagged_however_late():
    """Once the hole was forgotten behind 131,072 numbers: the row that fills it was called a
    duplicate, and without quarantine it was gone."""
    reader = Reader("s", Options(mode="tag"))
    many = tuple(Event("p", number, "a") for number in range(2, 2**17 + 4))
    reader.receive("p", Events("a", 2, 0, (), many), 0.0)
    late = Event("p", 1, "a")
    effects = reader.receive("p", Events("a", 1, 0, (), (late,)), 0.0)
    assert [getattr(each, "event", None) for each in effects] == [late]


def test_a_row_put_aside_keeps_its_place():
    """One row with a good stamp and a bad seq: hold waits for its number, and a stream hands over
    nothing of any topic ever after."""
    rows = [row(n, "a", {"a": n + 1}) for n in range(4)]
    rows[1]["seq"] = 0
    found = fed(loose(HOLD), [rows], finish=False)
    assert [event for event, nth, _, _ in found if nth] == ["p:1", "p:3", "p:4"]


def test_a_row_of_a_publisher_without_a_name_gets_one():
    """It passed sequence as it was and took a number; order refused it, and the number stayed a
    hole."""
    rows = [{"topic": "a", "received_at": 1.0, "publisher": "", "seq": 7}]
    [found] = sequenced(rows, ("received_at", "topic"))
    assert (found["position"], found["publisher"], found["seq"]) == (0, "spark", 1)


def test_rows_that_sequence_names_are_nobody_elses():
    """A row of nobody's becomes spark:1, which a row of a publisher `spark` may be already."""
    rows = [
        {"topic": "a", "received_at": 1.0, "publisher": "spark", "seq": 1},
        {"topic": "a", "received_at": 2.0, "publisher": None, "seq": None},
    ]
    found = [(each["publisher"], each["seq"]) for each in sequenced(rows, ("received_at", "topic"))]
    assert len({*found}) == 2


def test_numbers_behind_a_hole_cost_nothing():
    """A row that never comes, and whatever follows it: one run."""
    reader = Reader("s", Options(mode="tag"))
    many = tuple(Event("p", number, "a") for number in range(2, 5000))
    reader.receive("p", Events("a", 2, 0, (), many), 0.0)
    assert reader.received["a"] == Numbers(0, 4999, [2], [4999])


def test_what_may_be_new_is_tagged_when_holes_are_forgotten(monkeypatch):
    """A filter leaves a hole before every row. Below the last three runs nobody can tell."""
    monkeypatch.setattr(core_numbers, "NUMBER_RUNS_MAX", 3)
    reader = Reader("s", Options(mode="tag"))

    def told(number: int) -> Any:
        event = Event("p", number, "a")
        [effect] = reader.receive("p", Events("a", number, 0, (), (event,)), 0.0)
        return getattr(effect, "in_order", "duplicate")

    assert all(told(number) is True for number in range(2, 22, 2))
    assert len(reader.received["a"].starts) == 3
    assert [told(number) for number in (1, 2, 13, 14, 1)] == [False] * 5
    assert [told(number) for number in (16, 17, 17, 20)] == [
        "duplicate", False, "duplicate", "duplicate",
    ]  # fmt: skip


def few_runs(patch: pytest.MonkeyPatch, most: int = 3) -> None:
    for module in (core_numbers, skim_run):
        patch.setattr(module, "NUMBER_RUNS_MAX", most)


def noted(numbers: list[int]) -> list[dict[str, Any]]:
    return [row(n, "a", {"a": number}) for n, number in enumerate(numbers)]


@pytest.mark.parametrize("numbers", [[4, 5, 6], [6, 4, 5], [5, 8, 9, 4, 12]])
def test_numbers_skimmed_are_remembered_like_those_received(numbers):
    quick, plainly = (Reader("s", Options(mode="tag")) for _ in range(2))
    for reader in (quick, plainly):
        reader.receive("p", Events("a", 1, 0, (), (Event("p", 1, "a"),) * 3), 0.0)
    stamps = json.dumps([{"a": number} for number in numbers]).encode()
    codes = np.zeros(len(numbers), np.intp)
    assert skim.read(["a"], codes, stamps).skim(quick, np.arange(len(numbers))) is not None
    for number in numbers:
        plainly.receive("p", Events("a", number, 0, (), (Event("p", number, "a"),)), 0.0)
    assert quick.received == plainly.received


@settings(max_examples=150)
@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=40),
    st.lists(st.integers(0, 40)),
    st.booleans(),
    st.sampled_from([2, 3, 10, 11]),
)
@example([2, 4, 6, 8, 10, 2], [], False, 3)  # a duplicate that is forgotten in the meantime
def test_numbers_are_forgotten_alike_however_rows_are_read(numbers, cuts, rise, most):
    rows = noted(sorted({*numbers}) if rise else numbers)
    edges = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    feeds = [rows[low:high] for low, high in pairwise(edges) if low < high]
    with pytest.MonkeyPatch.context() as patch:
        few_runs(patch, most)
        quick, plainly = both_ways(loose(TAG), feeds)
        assert quick == plainly
        assert plainly == both_ways(loose(TAG), [rows])[1]


@settings(max_examples=100)
@given(
    st.permutations(range(1, 13)),
    st.lists(st.integers(1, 16)),
    st.integers(0, 20),
    st.sampled_from([2, 3, 4, 10]),
)
# What is in order at once is a run beside those that wait: 1 is forgotten.
@example([1, 3, 5, 7, 2, 4, 6, 8, 9, 10, 11, 12], [1], 12, 3)
def test_numbers_are_forgotten_alike_when_rows_wait(numbers, more, cut, most):
    rows = noted([*numbers, *more])
    feeds = [feed for feed in (rows[:cut], rows[cut:]) if feed]
    with pytest.MonkeyPatch.context() as patch:
        few_runs(patch, most)
        quick, plainly = both_ways(loose(HOLD, {"a": 0}), feeds)
        assert quick == plainly


@pytest.mark.parametrize("numbers", [[2, 4, 6, 8, 10, 7, 2], [2, 4, 6, 8, 10, 12, 2]])
def test_a_skim_that_forgets_too_little_is_caught(numbers, monkeypatch):
    """The comparison above would notice."""
    rows = noted(numbers)
    few_runs(monkeypatch)
    quick, plainly = both_ways(loose(TAG), [rows])
    assert quick == plainly
    monkeypatch.setattr(skim_run.Run, "_fits", lambda _: True)
    quick, plainly = both_ways(loose(TAG), [rows])
    assert quick != plainly


SPOILT = [
    {"seq": 0}, {"seq": None}, {"publisher": None}, {"publisher": ""}, {"stamp": None},
    {"stamp": "{"}, {"stamp": '{"b":1}'}, {"received_at": None}, {"received_at": math.inf},
    {"seq": None, "publisher": None, "stamp": None, "received_at": math.nan},
]  # fmt: skip


def two_topics() -> list[dict[str, Any]]:
    a = [row(2 * n, "a", {"a": n + 1, "b": n}) for n in range(4)]
    b = [row(2 * n + 1, "b", {"a": n + 1, "b": n + 1}) for n in range(4)]
    return sorted([*a, *b], key=lambda each: each["arrival"])


@pytest.mark.parametrize("unmatched", [False, True])
@pytest.mark.parametrize("spoilt", SPOILT, ids=str)
@pytest.mark.parametrize("least", [1, 10**9])
def test_nobody_waits_for_a_row_that_cannot_be_used(spoilt, unmatched, least, monkeypatch):
    monkeypatch.setattr(order_lane, "SKIM_ROWS_MIN", least)
    rows = two_topics()
    rows[2] |= spoilt
    if unmatched:
        rows = [{**each, "matched": each["arrival"] != 2} for each in rows]
    plan = loose(HOLD, {"a": 0, "b": 0})
    found = fed(plan, [rows[:5], rows[5:]], finish=False)
    told = [(event, in_order) for event, nth, in_order, _ in found if nth]
    assert told == [(f"p:{n}", True) for n in (1, 2, 4, 5, 6, 7, 8)]
    assert len(found) == 7 + (not unmatched), "it is put aside once, or only keeps its place"


@pytest.mark.parametrize("spoilt", SPOILT[4:7], ids=str)
def test_without_a_placeholder_they_would_wait(spoilt, monkeypatch):
    monkeypatch.setattr(Lane, "_keep_place", lambda *_: None)
    rows = two_topics()
    rows[2] |= spoilt
    found = fed(loose(HOLD, {"a": 0, "b": 0}), [rows], finish=False)
    assert [event for event, nth, _, _ in found if nth] == ["p:1", "p:2"]


def test_an_unmatched_row_without_any_number_is_said_if_nothing_may_be_put_aside():
    rows = [{**each, "matched": each["arrival"] != 2} for each in two_topics()]
    rows[2] |= {"stamp": None}
    plan = Plan("total", HOLD, start={"a": 0, "b": 0})
    assert Rows(plan).feed(pa.Table.from_pylist(rows)).num_rows == 7
    rows[2] |= {"offset": None}
    with pytest.raises(Misuse, match="p:3 cannot be put in order: not a stamp"):
        Rows(plan).feed(pa.Table.from_pylist(rows))


@pytest.mark.parametrize("name", ["none", "fifo", "total"])
def test_a_row_of_nobody_is_put_aside_under_every_guarantee(name):
    rows = [row(0, "a", {"a": 1}, publisher=None), row(1, "", {"a": 1})]
    found = fed(Plan(name, {}, strict=False), [rows])
    assert [reason for _, _, _, reason in found] == ["no publisher", "an empty topic"]


def test_a_row_without_topic_gets_no_position_and_takes_none():
    rows = [
        {"topic": topic, "received_at": float(n), "publisher": "p", "seq": n + 1}
        for n, topic in enumerate(["a", None, "", "a"])
    ]
    found = sequenced(rows, ("received_at", "topic"))
    assert [each["position"] for each in found] == [0, None, None, 1]
