"""The log read without Spark: the fast columns say what plain Python reads."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inorder.core.errors import Damaged, InorderError, Misuse
from inorder.logs.broker import Run
from inorder.pipeline import source_columns
from inorder.pipeline.source_columns import Columns
from inorder.pipeline.source_log import EVENT_COLUMNS, open_log
from inorder.pipeline.source_options import read_options
from tests.pipeline.source import logs


def read(path: Any, start: int | None = None, stop: int | None = None, **options: str) -> list[Any]:
    with closing(open_log(read_options({"url": f"sqlite:///{path}", **options}))) as log:
        extent = log.extent()
        low = extent.first if start is None else start
        return [
            tuple(row.values())
            for batch in log.batches(low, extent.next if stop is None else stop)
            for row in batch.to_pylist()
        ]


@pytest.mark.parametrize("seed", range(6))
def test_columns_are_what_plain_python_reads(tmp_path, seed):
    logs.random_log(tmp_path / "a.db", seed)
    assert read(tmp_path / "a.db") == logs.plain_rows(tmp_path / "a.db")


def test_a_shifted_column_would_be_seen(tmp_path, monkeypatch):
    """Negative control for the comparison above."""
    logs.random_log(tmp_path / "a.db", 1)
    honest = source_columns._facts
    monkeypatch.setattr(source_columns, "_facts", lambda *of: honest(*of).take([*range(1, 10), 0]))
    with pytest.raises((AssertionError, InorderError, ValueError, IndexError)):
        assert read(tmp_path / "a.db") == logs.plain_rows(tmp_path / "a.db")


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    path = tmp_path_factory.mktemp("filled") / "a.db"
    for low in range(0, 200, 40):
        logs.fill(path, [*logs.numbered("orders", 30, low), *logs.numbered("payments", 10, low)])
    return path, logs.plain_rows(path)


@settings(max_examples=25)
@given(st.integers(0, 199), st.integers(1, 200), st.sampled_from(["orders", "payments", ""]))
def test_a_range_may_cut_through_a_run(filled, start, length, topic):
    path, rows = filled
    wanted = [row for row in rows[start : start + length] if not topic or row[0] == topic]
    low = rows[start][1]
    high = low + length
    options = {"subscribe": topic} if topic else {}
    assert read(path, low, min(high, rows[-1][1] + 1), **options) == wanted


@pytest.mark.parametrize(
    ("options", "topics"),
    [({"subscribe": "orders.*"}, {"orders.eu", "orders.us"}),
     ({"subscribe": "orders.eu, stock"}, {"orders.eu", "stock"}),
     ({"subscribe": ">"}, {"orders.eu", "orders.us", "payments", "stock"}),
     ({"subscribePattern": "orders.*"}, {"orders.eu", "orders.us"}),
     ({"subscribePattern": "orders"}, set()),
     ({"subscribe": "nothing.yet"}, set())],
)  # fmt: skip
def test_topics_patterns_and_regular_expressions(tmp_path, options, topics):
    for topic in ("orders.eu", "payments", "orders.us", "stock"):
        logs.fill(tmp_path / "a.db", logs.numbered(topic, 2))
    assert {row[0] for row in read(tmp_path / "a.db", **options)} == topics


def test_every_read_is_a_batch(tmp_path, monkeypatch):
    monkeypatch.setattr("inorder.pipeline.source_broker.SOURCE_BYTES_AT_ONCE", 10_000)
    for _ in range(30):
        logs.fill(tmp_path / "a.db", [("t", {"text": "x" * 5000})])
    with closing(open_log(read_options({"url": f"sqlite:///{tmp_path}/a.db"}))) as log:
        extent = log.extent()
        sizes = [batch.num_rows for batch in log.batches(extent.first, extent.next)]
    assert sum(sizes) == 30
    assert max(sizes) <= 3


def test_a_damaged_row_is_named_or_put_in_quarantine(tmp_path):
    path = tmp_path / "a.db"
    for low in range(0, 30, 10):
        logs.fill(path, logs.numbered("orders", 10, low))
    good = logs.plain_rows(path)
    at = good[10][1]
    logs.spoil(path, at)
    with pytest.raises(Damaged):
        read(path)
    rows = read(path, quarantine="true")
    held = [row for row in rows if row[-1] is not None]
    assert len(held) == 1
    named = dict(zip(EVENT_COLUMNS, held[0], strict=False))
    assert named["offset"] == named["position"] == at
    assert [named[name] for name in ("event", "seq", "attributes", "value")] == [None] * 4
    assert [row[:-1] for row in rows if row[-1] is None] == [*good[:10], *good[20:]]


def run_of(offset: int, count: int, values: bytes, topic: str = "t") -> Run:
    return Run(topic, "p", 1, offset, count, values, offset=offset)


@pytest.mark.parametrize(
    "values",
    [b"\x92\x01", b"\xc1", msgspec.msgpack.encode([{}]), b"\x92\x81\xa2\xff\xfe\x01\x80",
     msgspec.msgpack.encode([{"a": msgspec.msgpack.Ext(5, b"x")}, {}])],
    ids=["cut", "no array", "too few", "no text", "an extension"],
)  # fmt: skip
def test_values_that_cannot_be_read_cost_their_own_run_only(values):
    good = msgspec.msgpack.encode([{"n": 1}, {"n": 2}])
    runs = [run_of(0, 2, good), run_of(2, 2, values, "bad"), run_of(4, 2, good)]
    found = Columns("log", "place", True).batch(runs, 0, 6).to_pylist()
    assert [row["offset"] for row in found] == [0, 1, 2, 4, 5]
    assert [row["topic"] for row in found if row["quarantine"]] == ["bad"]
    with pytest.raises(Damaged, match="offset 2: its values cannot be read"):
        Columns("log", "place", False).batch(runs, 0, 6)


def test_events_that_are_gone_are_missed(tmp_path):
    path = tmp_path / "a.db"
    for low in range(0, 30, 10):
        logs.fill(path, logs.numbered("orders", 10, low))
    good = logs.plain_rows(path)
    logs.remove(path, good[12][1])
    with pytest.raises(Damaged, match=r"has lost its offsets 1 to 12 .*failOnDataLoss"):
        read(path, good[0][1])
    assert read(path, good[0][1], failOnDataLoss="false") == good[12:]
    assert read(path, good[12][1]) == good[12:]
    with pytest.raises(Damaged, match="has lost its offsets 31 to 39"):
        read(path, 31, 40)


def test_numbers_that_json_lacks_stay_what_they_are(tmp_path):
    logs.fill(tmp_path / "a.db", [("t", {"a": float("inf"), "b": [float("-inf")], "c": None})])
    [row] = read(tmp_path / "a.db")
    assert json.loads(row[12]) == {"a": float("inf"), "b": [float("-inf")], "c": None}


def test_what_spark_cannot_read_is_refused_at_once(tmp_path):
    text = tmp_path / "text.db"
    text.write_text("not a database at all\n" * 100)
    for path, told in ((tmp_path / "none.db", "there is no such file"), (text, "not a database")):
        with pytest.raises(InorderError, match=told):
            read(path)
    (tmp_path / "here").mkdir()
    with pytest.raises(Misuse, match="leads to no broker"):
        open_log(read_options({"url": f"kafcka:///{tmp_path}/here"}))
