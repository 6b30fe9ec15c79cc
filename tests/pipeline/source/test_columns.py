"""The logs read without Spark: the fast columns say what plain Python reads."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inorder.bus.store.sqlite.file import File
from inorder.core.errors import Damaged, InorderError, Misuse
from inorder.pipeline import source_columns
from inorder.pipeline.source_log import EVENT_COLUMNS, open_log
from inorder.pipeline.source_options import Settings
from tests.pipeline.source import logs


def read(path, slices=None, **options):
    log = open_log(Settings("sqlite", str(path), **options))
    wanted = slices or [(topic, each.first, each.next) for topic, each in log.extents().items()]
    rows = []
    for topic, start, end in sorted(wanted):
        for batch in log.batches(topic, start, end):
            assert batch.num_rows > 0
            rows += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    log.close()
    return rows


@pytest.mark.parametrize("seed", range(8))
def test_columns_are_what_plain_python_reads(tmp_path, seed):
    logs.random_log(tmp_path / "a.db", seed)
    assert read(tmp_path / "a.db") == logs.plain_rows(tmp_path / "a.db")


def test_a_swapped_column_would_be_seen(tmp_path, monkeypatch):
    """Negative control for the comparison above."""
    logs.random_log(tmp_path / "a.db", 1)
    honest = source_columns._event_columns

    def swapped(pairs, broken):
        columns = honest(pairs, broken)
        return {**columns, "event": columns["publisher"]}

    monkeypatch.setattr(source_columns, "_event_columns", swapped)
    assert read(tmp_path / "a.db") != logs.plain_rows(tmp_path / "a.db")


@pytest.fixture(scope="module")
def batched(tmp_path_factory):
    path = tmp_path_factory.mktemp("batched") / "a.db"
    logs.fill(path, "total", logs.batched(1000, 64))
    return path, logs.plain_rows(path)


@settings(max_examples=40)
@given(st.integers(0, 999), st.integers(1, 1000))
def test_a_slice_may_cut_through_a_message(batched, start, length):
    path, rows = batched
    end = min(1000, start + length)
    assert read(path, [("orders", start, end)]) == rows[start:end]


def test_large_messages_make_small_batches(tmp_path, monkeypatch):
    monkeypatch.setattr("inorder.pipeline.source_sqlite.SOURCE_BYTES_AT_ONCE", 10_000)
    values = [("plain", {"text": "x" * 5000})] * 300
    logs.fill(tmp_path / "a.db", "none", logs.diffused("none", values))
    log = open_log(Settings("sqlite", str(tmp_path / "a.db")))
    sizes = [batch.num_rows for batch in log.batches("plain", 0, 300)]
    assert sum(sizes) == 300
    assert max(sizes[1:]) <= 2


@pytest.mark.parametrize("column", ["message", "crc", "count"])
def test_a_damaged_row_is_named_or_put_in_quarantine(tmp_path, column):
    path = tmp_path / "a.db"
    logs.fill(path, "total", logs.batched(200, 10))
    good = logs.plain_rows(path)
    logs.spoil(path, "orders", 50, column)
    with pytest.raises(Damaged, match="topic 'orders', offset 50: the message"):
        read(path, fail_on_loss=False)
    rows = read(path, quarantine=True, fail_on_loss=False)
    held = [row for row in rows if row[-1] is not None]
    count = 7 if column == "count" else 10
    assert [row[1] for row in held] == list(range(50, 50 + count))
    for row in held:
        named = dict(zip(EVENT_COLUMNS, row, strict=False))
        assert named["topic"] == "orders"
        assert named["guarantee"] == "total"
        assert named["arrival"] == 6
        empty = ("event", "publisher", "seq", "published_at", "attributes", "stamp")
        assert [named[name] for name in empty] == [None] * 6
    whole = [row[:-1] for row in rows if row[-1] is None]
    assert whole == good[:50] + good[60:]


def test_a_message_of_another_kind_is_damage(tmp_path):
    path = tmp_path / "a.db"
    logs.fill(path, "none", logs.diffused("none", [("plain", {"n": n}) for n in range(20)]))
    db = sqlite3.connect(path)
    db.execute("UPDATE topics SET guarantee = 'fifo'")
    db.commit()
    db.close()
    with pytest.raises(Damaged, match="offset 0: not a message of ours"):
        read(path)
    rows = read(path, quarantine=True)
    assert len(rows) == 20
    assert all(row[-1].startswith("not a message of ours") for row in rows)


def test_rows_that_are_gone_are_missed(tmp_path):
    path = tmp_path / "a.db"
    logs.fill(path, "total", logs.batched(200, 10))
    good = logs.plain_rows(path)
    db = sqlite3.connect(path)
    db.execute("DELETE FROM log WHERE offset IN (50, 190)")
    db.commit()
    db.close()
    with pytest.raises(Damaged, match="has lost its offsets 50 to 59"):
        read(path)
    with pytest.raises(Damaged, match="has lost its offsets 190 to 199"):
        read(path, [("orders", 60, 200)])
    assert read(path, fail_on_loss=False) == good[:50] + good[60:190]


def test_files_that_are_not_ours_are_refused(tmp_path):
    text = tmp_path / "text.db"
    text.write_text("not a database at all\n" * 100)
    other = tmp_path / "other.db"
    db = sqlite3.connect(other)
    db.execute("CREATE TABLE t (x)")
    db.close()
    for path, told in (
        (tmp_path / "none.db", "there is no such file"),
        (text, "file is not a database"),
        (other, "is a SQLite file, but not one of inorder's"),
    ):
        with pytest.raises(InorderError, match=told):
            read(path)


def test_a_truncated_file_is_refused(tmp_path):
    path = tmp_path / "a.db"
    logs.fill(path, "total", logs.batched(5000, 10))
    whole = path.read_bytes()
    for share in (0.3, 0.6, 0.9):
        cut = tmp_path / f"cut{share}.db"
        cut.write_bytes(whole[: int(len(whole) * share)])
        with pytest.raises(InorderError):
            read(cut)


def test_an_unknown_guarantee_is_refused_before_anything_is_read(tmp_path):
    file = File(tmp_path / "a.db", durable=False)
    file.declare("orders", "magic")
    file.close()
    with pytest.raises(Misuse, match="unknown guarantee 'magic'"):
        read(tmp_path / "a.db")
