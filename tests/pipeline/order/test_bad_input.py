"""What cannot be: one sentence before anything starts, or a reason beside the row."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from inorder.core.errors import BadScenario, Misuse, TooLarge, UnknownName
from inorder.pipeline.order_lane import Plan
from inorder.pipeline.order_rows import Rows
from inorder.pipeline.order_stage import PROVIDER, order
from tests.pipeline.order.traces import TOPICS, simulated, table_of

GOOD = simulated("hold", 1, duration=1.0).rows

SPOILT = {
    "no topic": {"topic": None},
    "no publisher": {"publisher": None},
    "no seq": {"seq": None},
    "no stamp": {"stamp": None},
    "no subscriber": {"subscriber": None},
    "no received_at": {"received_at": None},
    "received_at is not a number": {"received_at": float("nan")},
    "seq 0 is not above 0": {"seq": 0},
    "seq -7 is not above 0": {"seq": -7},
    "an empty topic": {"topic": ""},
    "not a stamp": {"stamp": '{"t1":'},
    "a stamp without a number": {"stamp": '{"other":3}'},
    "a stamp that nobody gave": {"stamp": '{"t1":3,"t2":3,"t3":3,"other":-4}'},
    "not a stamp: Expected `int`": {
        "stamp": '{"incarnation":0,"seq":7,"departure_us":1,"prev_gap_us":1,"record":""}'
    },
}


@pytest.mark.parametrize("reason", SPOILT)
def test_a_spoilt_row_says_why_and_the_others_pass(reason):
    rows = [dict(row) for row in GOOD]
    rows[20].update(SPOILT[reason])
    lane = Rows(Plan("total", strict=False))
    out = [row for each in (lane.feed(table_of(rows)), lane.finish()) for row in each.to_pylist()]
    bad = [row for row in out if row["quarantine"] not in (None, "duplicate")]
    assert [row["arrival"] for row in bad] == [rows[20]["arrival"]]
    assert bad[0]["quarantine"].startswith(reason)
    assert len(out) == len(rows)


def in_a_stream(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What leaves while nobody says that the input has ended."""
    lane = Rows(Plan("total", {"mode": "hold"}, start=dict.fromkeys(TOPICS, 0), strict=False))
    out = [lane.feed(table_of(rows)), lane.settle()]
    return [row for each in out for row in each.to_pylist()]


@pytest.mark.parametrize("reason", SPOILT)
def test_in_a_stream_the_others_pass_it(reason):
    """All but a row that does not tell where it belongs: there, what follows waits."""
    numbers = [msgspec.json.decode(row["stamp"])[row["topic"]] for row in GOOD]
    rows = [{**row, "offset": number - 1} for row, number in zip(GOOD, numbers, strict=True)]
    whole = {row["arrival"] for row in in_a_stream(rows)}
    assert whole == {row["arrival"] for row in rows}
    doubled = [(row["subscriber"], row["event"]) for row in rows]
    at = next(n for n, key in enumerate(doubled) if n >= 20 and doubled.count(key) == 1)
    rows[at] = {**rows[at], **SPOILT[reason]}
    left = {row["arrival"] for row in in_a_stream(rows)}
    if {"topic", "subscriber"} & {*SPOILT[reason]}:
        assert left < whole
    else:
        assert left == whole


@pytest.mark.parametrize("reason", SPOILT)
def test_without_quarantine_it_ends_with_a_sentence_that_names_the_event(reason):
    rows = [dict(row) for row in GOOD]
    rows[20].update(SPOILT[reason])
    row = rows[20]
    name = f"{row['publisher'] or '?'}:{'?' if row['seq'] is None else row['seq']}"
    with pytest.raises(Misuse, match=f"event {name.replace('?', '.')} cannot be put in order: "):
        Rows(Plan("total")).feed(table_of(rows))


def test_a_stamp_of_another_guarantee_is_refused_by_fifo():
    lane = Rows(Plan("fifo", strict=False))
    out = lane.feed(table_of(GOOD)).to_pylist()
    assert all(row["quarantine"].startswith("not an order header") for row in out)


def test_a_query_ends_with_that_sentence(spark):
    rows = [dict(row) for row in GOOD]
    rows[20]["stamp"] = "{"
    with pytest.raises(Exception, match=r"event p\d:\d+ cannot be put in order: not a stamp"):
        order(spark.createDataFrame(table_of(rows))).collect()


def test_calls_that_cannot_be_are_refused_before_anything_starts(spark):
    df = spark.createDataFrame(table_of(GOOD))
    for change, options, error, words in (
        (df, {"guarantee": "toal"}, UnknownName, "unknown guarantee 'toal'"),
        (df, {"mode": "hald"}, BadScenario, "order.mode: 'hald' is not one of tag, hold"),
        (df, {"bufer": 3}, BadScenario, "order.bufer: is not known here"),
        (df, {"mode": "hold", "ttl": 1.0}, BadScenario, "order.ttl"),
        (df, {"start": "end"}, Misuse, "start: 'end' is not one of"),
        (df, {"start": {"t1": -1}}, Misuse, "start"),
        (df, {"start": 3}, Misuse, "start"),
        (df, {"lanes": 0}, TooLarge, "lanes is 0"),
        (df, {"subscriber": "me"}, Misuse, "there is a column subscriber"),
        (df, {"arrival": "nowhere"}, Misuse, "no column"),
        (df, {"arrival": []}, Misuse, "arrival"),
        (df.drop("stamp", "topic"), {}, Misuse, "needs the columns topic, stamp"),
        (df.drop("arrival", "received_at"), {}, Misuse, "do not tell their order of arrival"),
        (df.withColumnRenamed("event", "nth"), {}, Misuse, "a column nth already"),
        (df.selectExpr("* except (seq)", "event as seq"), {}, Misuse, "seq is string"),
        (df.selectExpr("* except (arrival)", "array(1) as arrival"), {}, Misuse, "be sorted"),
    ):  # fmt: skip
        with pytest.raises(error, match=words):
            order(change, **options)


def test_a_stream_without_rocksdb_is_refused(spark, tmp_path):
    df = spark.createDataFrame(table_of(GOOD))
    df.write.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema(df.schema).parquet(str(tmp_path / "in"))
    provider = spark.conf.get(PROVIDER)
    spark.conf.set(PROVIDER, provider.replace("RocksDB", "HDFSBacked"))
    try:
        with pytest.raises(Misuse, match="keep their state in RocksDB"):
            order(stream)
    finally:
        spark.conf.set(PROVIDER, provider)


def test_none_needs_no_stamps(spark):
    df = spark.createDataFrame(table_of(GOOD)).drop("stamp")
    out = order(df, "none")
    assert out.count() == len(GOOD)
    assert "stamp" not in out.columns
