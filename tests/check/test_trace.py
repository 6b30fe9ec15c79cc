"""The trace on disk: what is written can be read, also when the end is missing."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inorder.check.trace import (
    TABLES,
    DeliveryRow,
    EventRow,
    MessageRow,
    SubscriptionRow,
    TraceWriter,
    arrow_schema,
    read_summary,
    read_table,
)
from inorder.core.errors import BadTrace

EXTRA = {
    "events": {"accepted_at", "outcome", "application", "seen"},
    "subscriptions": {"after"},
}
FORMATS = ["parquet", "jsonl"]

names = st.text(min_size=1, max_size=8)
times = st.floats(0, 1e6)
ROWS = {
    "events": st.builds(
        EventRow,
        names,
        names,
        names,
        st.integers(1, 2**62),
        times,
        accepted_at=st.none() | times,
        outcome=st.none() | st.sampled_from(["accepted", "refused", "unknown"]),
        application=st.none() | names,
        seen=st.none() | st.just('{"s": 3}'),
        bytes=st.integers(0, 99),
        attributes=st.just('{"a": 1}'),
        stamp=st.just('{"t": 2}'),
    ),
    "deliveries": st.builds(
        DeliveryRow,
        names,
        st.integers(1, 9),
        names,
        names,
        names,
        st.integers(1, 9),
        times,
        times,
        times,
        st.booleans(),
    ),
    "subscriptions": st.builds(
        SubscriptionRow,
        names,
        st.sampled_from(["subscribe", "unsubscribe", "set"]),
        st.lists(names, max_size=3),
        st.none() | names,
        st.just("{}"),
        times,
    ),
    "messages": st.builds(MessageRow, names, names, names, st.integers(0, 9), times, st.none()),
}


@pytest.mark.parametrize("format", FORMATS)
@given(data=st.data())
def test_what_is_written_is_read(tmp_path_factory, format, data):
    folder = tmp_path_factory.mktemp("trace")
    rows = {table: data.draw(st.lists(ROWS[table], max_size=5)) for table in TABLES}
    with TraceWriter(folder, format, about={"seed": 7}, rows_per_part=2) as trace:
        for table, made in rows.items():
            for row in made:
                trace.write(table, row)
    for table, made in rows.items():
        assert list(read_table(folder, table)) == made
    summary = read_summary(folder)
    assert summary["complete"]
    assert summary["seed"] == 7
    assert summary["rows"] == {table: len(made) for table, made in rows.items()}


def delivery(number):
    return DeliveryRow("s", number, f"p:{number}", "t", "p", number, 0.0, 0.0, 0.0)


def write_ten(folder, format):
    with TraceWriter(folder, format, rows_per_part=4) as trace:
        for number in range(1, 11):
            trace.write("deliveries", delivery(number))


def test_a_torn_last_line_ends_the_trace_with_the_line_before(tmp_path):
    write_ten(tmp_path, "jsonl")
    path = tmp_path / "deliveries.jsonl"
    whole = path.read_bytes()
    last_line = whole.rindex(b"\n", 0, len(whole) - 1) + 1
    for cut in range(last_line, len(whole)):
        path.write_bytes(whole[:cut])
        assert [row.nth for row in read_table(tmp_path, "deliveries")] == list(range(1, 10))


def test_a_torn_last_part_ends_the_trace_with_the_part_before(tmp_path):
    write_ten(tmp_path, "parquet")
    path = tmp_path / "deliveries" / "part-00002.parquet"
    whole = path.read_bytes()
    for cut in (0, 4, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        assert [row.nth for row in read_table(tmp_path, "deliveries")] == list(range(1, 9))


def test_a_hole_in_the_middle_is_not_passed_over(tmp_path):
    write_ten(tmp_path, "parquet")
    path = tmp_path / "deliveries" / "part-00001.parquet"
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(BadTrace, match=r"part-00001.parquet: is not a whole Parquet file"):
        list(read_table(tmp_path, "deliveries"))


def test_a_bad_line_in_the_middle_names_its_number(tmp_path):
    write_ten(tmp_path, "jsonl")
    path = tmp_path / "deliveries.jsonl"
    lines = path.read_text().splitlines()
    lines[3] = lines[3].replace('"nth":4', '"nth":"four"')
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(BadTrace, match="line 4"):
        list(read_table(tmp_path, "deliveries"))


@pytest.mark.parametrize("format", FORMATS)
def test_a_writer_that_dies_leaves_whole_rows_and_says_it_is_not_complete(tmp_path, format):
    def dies():
        with TraceWriter(tmp_path, format, rows_per_part=4) as trace:
            for number in range(1, 7):
                trace.write("deliveries", delivery(number))
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError):
        dies()
    assert read_summary(tmp_path)["complete"] is False
    assert [row.nth for row in read_table(tmp_path, "deliveries")] == list(range(1, 7))


def test_memory_holds_one_part_at_most(tmp_path):
    trace = TraceWriter(tmp_path, "jsonl", rows_per_part=100)
    for number in range(1, 1001):
        trace.write("deliveries", delivery(number))
        assert sum(len(rows) for rows in trace._rows.values()) < 100


@pytest.mark.parametrize("format", FORMATS)
def test_a_new_trace_replaces_an_old_one_and_nothing_else(tmp_path, format):
    write_ten(tmp_path, "parquet")
    write_ten(tmp_path, "jsonl")
    (tmp_path / "notes.txt").write_text("mine")
    with TraceWriter(tmp_path, format) as trace:
        trace.write("deliveries", delivery(1))
    assert [row.nth for row in read_table(tmp_path, "deliveries")] == [1]
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_folder_with_somebody_elses_tables_is_not_overwritten(tmp_path):
    (tmp_path / "events.jsonl").write_text("precious")
    with pytest.raises(BadTrace, match=r"not an inorder trace, but holds .events.jsonl"):
        TraceWriter(tmp_path)
    assert (tmp_path / "events.jsonl").read_text() == "precious"


def test_a_missing_table_and_a_broken_summary_are_one_sentence(tmp_path):
    with pytest.raises(BadTrace, match="holds no table 'events'"):
        read_table(tmp_path, "events")
    (tmp_path / "trace.json").write_text("{")
    with pytest.raises(BadTrace, match=r"trace.json: is not JSON"):
        read_summary(tmp_path)


def test_both_formats_have_the_columns_of_the_design(tmp_path):
    assert arrow_schema("deliveries").names == [
        "subscriber", "nth", "event", "topic", "publisher", "seq",
        "published_at", "received_at", "delivered_at", "in_order", "epoch",
    ]  # fmt: skip
    write_ten(tmp_path, "jsonl")
    line = json.loads((tmp_path / "deliveries.jsonl").read_text().splitlines()[0])
    assert list(line) == arrow_schema("deliveries").names
    for table, extra in EXTRA.items():
        assert extra <= set(arrow_schema(table).names)
    assert set(arrow_schema("messages").names) == {
        "source", "target", "kind", "bytes", "sent_at", "received_at",
    }  # fmt: skip
