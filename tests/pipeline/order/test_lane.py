"""A lane says what the simulator said, and what a plain loop says, however its rows are cut."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inorder.core.errors import Misuse
from inorder.pipeline.order_lane import Lane, Plan
from inorder.pipeline.order_rows import Rows
from tests.pipeline.order.traces import (
    OTHERS,
    WAYS,
    Delivery,
    Run,
    delivered,
    looped,
    simulated,
    table_of,
)

STRICT_WAYS = [way for way in WAYS if way != "none"]


def in_one(run: Run, rows: list[dict[str, Any]] | None = None) -> list[Delivery]:
    lane = Rows(run.plan)
    fed = lane.feed(table_of(run.rows if rows is None else rows))
    return sorted([*delivered(fed), *delivered(lane.settle()), *delivered(lane.finish())])


def in_pieces(run: Run, cuts: list[int]) -> list[Delivery]:
    """A new life between any two pieces."""
    lane = Rows(run.plan)
    found: list[Delivery] = []
    edges = [0, *sorted(min(cut, len(run.rows)) for cut in cuts), len(run.rows)]
    for low, high in pairwise(edges):
        if low < high:
            found += delivered(lane.feed(table_of(run.rows[low:high])))
            found += delivered(lane.settle())
            lane = Rows.unpack(run.plan, lane.pack())
    return sorted([*found, *delivered(lane.finish())])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(6))
def test_the_simulator_delivered_the_same(way, seed):
    run = simulated(way, seed)
    assert len(run.deliveries) > 100
    assert in_one(run) == looped(run.plan, run.rows)
    assert in_one(run) == run.deliveries


@pytest.mark.parametrize("way", OTHERS)
@pytest.mark.parametrize("seed", range(2))
def test_the_simulator_delivered_the_same_from_other_stamps(way, seed):
    run = simulated(way, seed)
    assert len(run.deliveries) > 100
    assert any('"":' in row["stamp"] for row in run.rows) == (way == "forest"), "epochs"
    assert in_one(run) == run.deliveries


@pytest.mark.parametrize(("start", "at_once"), [("first", 2), ("beginning", 0), ({"t": 8}, 2)])
def test_a_topic_starts_where_the_plan_says(start, at_once):
    """Numbers 9 and 10: from the beginning, eight events are waited for."""
    rows = [
        {
            "topic": "t", "publisher": "p", "seq": number, "event": f"p:{number}",
            "stamp": f'{{"t":{number}}}', "subscriber": "s",
        }
        for number in (9, 10)
    ]  # fmt: skip
    lane = Rows(Plan("total", start=start))
    assert len(delivered(lane.feed(pa.Table.from_pylist(rows)))) == at_once
    assert len(delivered(lane.finish())) == 2 - at_once


def test_what_puts_no_rows_in_order_yet_says_so_before_it_starts():
    with pytest.raises(Misuse, match="'causal' puts no recorded rows in order yet"):
        Lane(Plan("causal"))


@settings(max_examples=60)
@given(
    st.sampled_from(sorted(WAYS)),
    st.integers(0, 10_000),
    st.lists(st.integers(0, 200), max_size=8),
    st.floats(0, 0.5),
    st.floats(0, 0.6),
)
def test_cuts_and_restarts_change_nothing(way, seed, cuts, duplicate, reorder):
    run = simulated(way, seed, duplicate=duplicate, reorder=reorder, duration=1.5)
    expected = looped(run.plan, run.rows)
    assert in_one(run) == expected
    assert in_pieces(run, cuts) == expected


@pytest.mark.parametrize("way", WAYS)
def test_every_row_alone_changes_nothing(way):
    run = simulated(way, 3, duration=1.2)
    assert in_pieces(run, list(range(len(run.rows)))) == in_one(run)


@pytest.mark.parametrize("way", STRICT_WAYS)
def test_every_row_leaves_once_or_is_a_duplicate(way):
    run = simulated(way, 5, duplicate=0.5)
    lane = Rows(run.plan)
    out = [lane.feed(run.table), lane.settle(), lane.finish()]
    rows = [row for table in out for row in table.to_pylist()]
    assert sorted(row["arrival"] for row in rows) == list(range(len(run.rows)))
    reasons = {row["quarantine"] for row in rows}
    assert reasons == {None, "duplicate"}
    assert all((row["nth"] is None) == (row["quarantine"] is not None) for row in rows)
    seen = {(row["subscriber"], row["event"]) for row in rows}
    assert len([row for row in rows if row["nth"]]) == len(seen)


def test_rows_that_are_not_matched_only_keep_their_place():
    run = simulated("hold", 2)
    whole = in_one(run)
    import pyarrow as pa

    wanted = [row["seq"] % 3 != 0 for row in run.rows]
    table = run.table.append_column("matched", pa.array(wanted))
    lane = Rows(run.plan)
    found = [*delivered(lane.feed(table)), *delivered(lane.settle()), *delivered(lane.finish())]
    names = {row["event"] for row, fits in zip(run.rows, wanted, strict=True) if fits}
    expected = []
    for subscriber in sorted({each.subscriber for each in whole}):
        kept = [x for x in whole if x.subscriber == subscriber and x.event in names]
        expected += [Delivery(subscriber, n, x.event, x.in_order) for n, x in enumerate(kept, 1)]
    assert sorted(found) == sorted(expected)


# What a test that cannot fail would miss.


def broken_somewhere(way: str) -> bool:
    runs = [simulated(way, seed, duplicate=0.4, reorder=0.6) for seed in range(3)]
    return any(in_pieces(run, [60, 120]) != looped(run.plan, run.rows) for run in runs)


@pytest.mark.parametrize("way", ["ttl", "latch", "fifo"])
def test_without_timers_the_difference_is_seen(way, monkeypatch):
    assert not broken_somewhere(way)
    monkeypatch.setattr(Lane, "_fire", lambda *_, **__: None)
    assert broken_somewhere(way)


def test_without_a_memory_of_duplicates_the_difference_is_seen(monkeypatch):
    from inorder.core.numbers import Numbers
    from inorder.protocols.total.skim_run import Run as Skimming

    run = simulated("tag", 1, duplicate=0.5)
    expected = run.deliveries
    assert in_one(run) == expected
    monkeypatch.setattr(Numbers, "add", lambda *_: "new")
    monkeypatch.setattr(Skimming, "_find_duplicates", lambda run: run.own < 0)
    assert in_one(run) != expected


@pytest.mark.parametrize("way", ["hold", "fifo"])
def test_without_the_state_the_difference_is_seen(way, monkeypatch):
    assert not broken_somewhere(way)
    monkeypatch.setattr(Rows, "unpack", classmethod(lambda cls, plan, state: cls(plan)))
    assert broken_somewhere(way)
