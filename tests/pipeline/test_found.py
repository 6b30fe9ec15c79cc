"""What a review found: each test is the smallest input that shows one claim of the pipeline broken.

Most of them need no Spark: lanes, plans and sinks are driven as Spark would drive them.
"""

from __future__ import annotations

import json
import math
import sqlite3
from contextlib import closing
from datetime import date
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType

import inorder
from inorder.errors import InorderError, Misuse
from inorder.event import Event
from inorder.job import PipelineJob, job_of
from inorder.job import pipeline as job_pipeline
from inorder.pipeline import order_lane, sink, source
from inorder.pipeline.order import _check_start
from inorder.pipeline.order_lane import Plan
from inorder.pipeline.order_rows import Rows, arrival_order
from inorder.pipeline.sequence_rows import Sequencing
from inorder.pipeline.source_log import Extent, open_log
from inorder.pipeline.source_options import Settings
from inorder.pipeline.source_plan import Slice, admitted
from inorder.total.gaps import Gaps
from inorder.total.messages import Events
from inorder.total.options import Options
from inorder.total.reader import Reader
from inorder.total.skim import ROOM
from tests.job.test_pipeline_job import delivered, plain, publish, quiet
from tests.pipeline.source.test_columns import read

TAG = {"mode": "tag"}
HOLD = {"mode": "hold"}


def row(place: int, topic: str, stamp: dict[str, int], **more: Any) -> dict[str, Any]:
    return {
        "subscriber": "s", "topic": topic, "offset": stamp.get(topic, 1) - 1, "arrival": place,
        "event": f"p:{place + 1}", "publisher": "p", "seq": place + 1,
        "received_at": float(place), "stamp": json.dumps(stamp), **more,
    }  # fmt: skip


def fed(plan: Plan, feeds: list[list[dict[str, Any]]], finish: bool = True) -> list[Any]:
    """Event, position, in_order and reason of what leaves, with a restart behind every feed."""
    lane = Rows(plan)
    out: list[Any] = []
    for rows in feeds:
        out += lane.feed(pa.Table.from_pylist(rows)).to_pylist()
        out += lane.settle().to_pylist()
        lane = Rows.unpack(plan, lane.pack())
    out += lane.finish().to_pylist() if finish else []
    names = ("event", "position", "in_order", "quarantine")
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


# Cuts.


def cut_by_the_source(rows: list[dict[str, Any]], limit: int) -> list[list[dict[str, Any]]]:
    """Micro-batches as maxOffsetsPerTrigger makes them, each in its order of arrival."""
    topics = sorted({each["topic"] for each in rows})
    left = {topic: [each for each in rows if each["topic"] == topic] for topic in topics}
    feeds = []
    while any(left.values()):
        waiting = [Slice(topic, 0, len(left[topic])) for topic in topics if left[topic]]
        batch = []
        for each in admitted(waiting, limit):
            batch += left[each.topic][: each.end]
            del left[each.topic][: each.end]
        feeds.append(sorted(batch, key=lambda each: each["arrival"]))
    return feeds


@pytest.mark.parametrize("options", [TAG, {**TAG, "buffer": 2}, {**TAG, "buffer": 4, "ttl": 1.0}])
def test_a_limit_of_the_source_changes_no_tag(options):
    """maxOffsetsPerTrigger takes shares of topics, not the first arrivals: in a log where nothing
    is late, every batch overtakes, and the rest is tagged."""
    a = [row(n, "a", {"a": n + 1}) for n in range(4)]
    b = [row(4 + n, "b", {"a": 4, "b": n + 1}) for n in range(4)]
    whole = fed(loose(options), [[*a, *b]])
    assert all(in_order for _, _, in_order, _ in whole)
    assert fed(loose(options), cut_by_the_source([*a, *b], 2)) == whole


def sequenced(rows: list[dict[str, Any]], arrival: tuple[str, ...]) -> list[dict[str, Any]]:
    table = pa.Table.from_pylist(rows)
    table = table.take(pa.array(arrival_order(table, arrival)))
    added = ("stamp", "offset", "publisher", "seq", "arrival")
    return Sequencing("total", arrival, added).new().feed(table).to_pylist()


def test_ties_of_arrival_do_not_depend_on_where_rows_lie():
    """Two rows that only differ in what they carry: whoever lies first gets the first stamp."""
    rows = [{"topic": "a", "received_at": 1.0, "attributes": text} for text in ("x", "y")]
    found = [
        {each["attributes"]: each["stamp"] for each in sequenced(order, ("received_at", "topic"))}
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
        found.append(sorted((each["stamp"], each["position"], each["in_order"]) for each in out))
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
    found = fed(loose(TAG), [[row(0, "a", {"a": 1}), row(1, "a", stamp)]])
    assert found[0] == ("p:1", 1, True, None)
    assert found[1][3] is not None


@pytest.mark.parametrize("start", [{"s": {"t": 0}, "a": 1}, {"a": 1, "s": {"t": 0}}])
def test_a_start_is_by_topic_or_by_subscriber(start):
    """Both at once pass the check, and end on a worker with an error of Python's."""
    with pytest.raises(Misuse):
        _check_start(start)


# Late rows, and rows that cannot be used.


def test_a_late_row_is_tagged_however_late():
    """Behind 131,072 numbers the hole is forgotten: the row that fills it is called a duplicate,
    and without quarantine it is gone."""
    reader = Reader("s", Options(mode="tag"))
    many = tuple(Event("p", number, "a") for number in range(2, 2**17 + 4))
    reader.receive("p", Events("a", 2, 0, (), many), 0.0)
    late = Event("p", 1, "a")
    effects = reader.receive("p", Events("a", 1, 0, (), (late,)), 0.0)
    assert [getattr(each, "event", None) for each in effects] == [late]


def test_a_full_memory_is_not_swept_for_every_row(monkeypatch):
    """A filter leaves holes (tag needs no unmatched rows): from 131,072 numbers on, every row
    sorts all of them once more, two thousand times the usual cost, for ever."""
    reader = Reader("s", Options(mode="tag"))
    reader.hold("a", 1)
    last = 2 * ROOM
    reader.gaps.topics["a"].beyond = {*range(2, last + 1, 2)}
    sweeps = []
    skip = Gaps.skip
    monkeypatch.setattr(Gaps, "skip", lambda *given: (sweeps.append(given), skip(*given)))
    for number in range(last + 2, last + 202, 2):
        reader.receive("p", Events("a", number, 0, (), (Event("p", number, "a"),)), 0.0)
    assert len(sweeps) <= 10


def test_a_row_put_aside_keeps_its_place():
    """One row with a good stamp and a bad seq: hold waits for its number, and a stream hands over
    nothing of any topic ever after."""
    rows = [row(n, "a", {"a": n + 1}) for n in range(4)]
    rows[1]["seq"] = 0
    found = fed(loose(HOLD), [rows], finish=False)
    assert [event for event, position, _, _ in found if position] == ["p:1", "p:3", "p:4"]


def test_what_sequence_stamps_order_can_use():
    """A publisher without a name passes sequence and takes a number; order refuses the row, and
    its number stays a hole."""
    rows = [{"topic": "a", "received_at": 1.0, "publisher": "", "seq": 1}]
    try:
        [found] = sequenced(rows, ("received_at", "topic"))
    except Misuse:
        return
    out = fed(loose(HOLD), [[{**found, "subscriber": "s", "event": "e"}]])
    assert [reason for _, _, _, reason in out] == [None]


def test_rows_that_sequence_names_are_nobody_elses():
    """A row of nobody's becomes spark:1, which a row of a publisher `spark` may be already."""
    rows = [
        {"topic": "a", "received_at": 1.0, "publisher": "spark", "seq": 1},
        {"topic": "a", "received_at": 2.0, "publisher": None, "seq": None},
    ]
    found = [(each["publisher"], each["seq"]) for each in sequenced(rows, ("received_at", "topic"))]
    assert len({*found}) == 2


# The sink.

_KINDS = {"s": StringType(), "n": LongType(), "x": DoubleType()}


def planned(path: Any, columns: dict[str, str], **options: str) -> sink.Plan:
    schema = StructType([StructField(name, _KINDS[kind]) for name, kind in columns.items()])
    return sink.plan({"url": f"sqlite:///{path}", **options}, schema, False)


def batch(**columns: Any) -> Any:
    return iter([pa.RecordBatch.from_pydict(columns)])


def test_a_task_that_is_empty_the_second_time_is_refused(tmp_path):
    """Rows that move to a task which was empty before: it has no receipt, and who lost them looks
    at none. They are there twice."""
    plan = planned(tmp_path / "a.db", {"topic": "s", "value": "n"})
    sink.append(plan, "s", 0, 0, batch(topic=["a"], value=[1]))
    sink.append(plan, "s", 0, 1, iter([]))
    try:
        sink.append(plan, "s", 0, 0, iter([]))
        sink.append(plan, "s", 0, 1, batch(topic=["a"], value=[1]))
    except InorderError:
        pass
    assert len(read(tmp_path / "a.db")) == 1


def test_a_sink_forgets_its_own_receipts_only(tmp_path):
    """The receipts of the sink `a/1` begin like those of batch 1 of the sink `a`."""
    plan = planned(tmp_path / "a.db", {"topic": "s", "value": "n"})
    sink.append(plan, "a/1", 7, 0, batch(topic=["t"], value=[1]))
    sink.StreamWriter(plan).commit([sink.Written("a")], 1 + sink.SINK_BATCHES_KEPT)
    sink.append(plan, "a/1", 7, 0, batch(topic=["t"], value=[1]))
    assert len(read(tmp_path / "a.db")) == 1


def test_two_jobs_of_one_publisher_publish_different_events(tmp_path):
    """Every batch job is batch 0: with the option publisher, the next one begins at 1 again."""
    plan = planned(tmp_path / "a.db", {"topic": "s", "value": "n"}, publisher="etl")
    for job in ("job-1", "job-2"):
        sink.append(plan, job, 0, 0, batch(topic=["t"], value=[1]))
    names = [each[3] for each in read(tmp_path / "a.db")]
    assert len(names) == len({*names}) == 2


def test_what_the_sink_takes_can_be_read(tmp_path):
    """A null in published_at is written as it is, and the log is damaged for every reader."""
    plan = planned(tmp_path / "a.db", {"topic": "s", "published_at": "x"})
    try:
        sink.append(plan, "s", 0, 0, batch(topic=["a"], published_at=pa.nulls(1, pa.float64())))
    except Misuse:
        return
    assert len(read(tmp_path / "a.db")) == 1


@pytest.mark.parametrize(
    ("columns", "options", "values"),
    [
        ({"attributes": "s"}, {}, {"attributes": [json.dumps({"n": 2**70})]}),
        ({"publisher": "s", "seq": "n", "stamp": "s"}, {"guarantee": "total"},
         {"publisher": ["p"], "seq": [1], "stamp": [json.dumps({"a": 1, "z": 2**70})]}),
    ],
    ids=["attribute", "stamp"],
)  # fmt: skip
def test_a_number_too_large_for_the_log_is_one_sentence(tmp_path, columns, options, values):
    plan = planned(tmp_path / "a.db", {"topic": "s", **columns}, **options)
    with pytest.raises(InorderError):
        sink.append(plan, "s", 0, 0, batch(topic=["a"], **values))


# The source.


def test_an_infinite_attribute_stays_infinite(tmp_path):
    """Live subscribers match `price > 5`; the source makes null of it, and Spark does not."""
    with inorder.connect_sync(f"sqlite:///{tmp_path}/a.db", guarantee="total") as bus:
        assert bus.publish("t", {"price": math.inf}).outcome == "accepted"
    with closing(open_log(Settings("sqlite", str(tmp_path / "a.db")))) as log:
        [found] = [each for part in log.batches("t", 0, 1) for each in part.to_pylist()]
    assert json.loads(found["attributes"]) == {"price": math.inf}


@pytest.mark.parametrize(
    ("first", "limit"),
    [({"a": Extent(0, 0)}, ReadAllAvailable()),
     ({"a": Extent(0, 1), "b": Extent(0, 100)}, ReadMaxRows(2))],
    ids=["empty", "no share of the limit"],
)  # fmt: skip
def test_another_topic_of_that_name_is_read_from_its_first_event(monkeypatch, first, limit):
    """It is noticed while it is shorter than what was read, but not remembered unless some of it
    is read at once; when it has grown, its first events are passed over."""
    reader = source.StreamReader({"url": "sqlite:////x.db", "failOnDataLoss": "false"})
    monkeypatch.setattr(source, "_extents", lambda _: first)
    before = reader.latestOffset({"a": 6}, limit)
    grown = {"a": Extent(0, 8)}
    monkeypatch.setattr(source, "_extents", lambda _: grown)
    after = reader.latestOffset(before, ReadAllAvailable())
    found = source.ranges_of(reader._settings, before, after, grown)
    assert found == [Slice("a", 0, 8)]


# The job.


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("run", {"lanes": 0}),
        ("run", {"trigger": "5 parsecs"}),
        ("source", {"startingOffsets": "earlist"}),
        ("source", {"maxOffsetsPerTrigger": 0}),
        ("source", {"subscribePattern": ".*"}),
        ("source", {"url": "sqlit:///shop.db"}),
        ("publishers", {"count": 0}),
        ("publishers", {"rate": -1.0}),
        ("publishers", {"guarantee": "totl"}),
    ],
)
def test_a_wrong_value_is_said_before_anything_starts(tmp_path, table, change):
    """Processes publish and Spark starts, and only then is the job refused."""
    found = plain(tmp_path)
    found[table] = {**found.get(table, {}), **change}
    with pytest.raises(InorderError):
        PipelineJob(found)


@pytest.mark.parametrize("count", [0, -1])
def test_a_group_of_nobody_is_refused(tmp_path, count):
    """A job whose subscriptions are none of anybody's delivers everything to `pipeline`."""
    with pytest.raises(InorderError):
        PipelineJob(plain(tmp_path, subscriptions=[{"name": "big", "count": count}]))


def test_a_sink_that_writes_nothing_is_refused(tmp_path):
    """Without a path the sink is left out in silence, whatever its format."""
    with pytest.raises(InorderError):
        PipelineJob(plain(tmp_path, sink={"format": "kafka", "options": {"topic": "x"}}))


def test_a_job_without_subscriptions_delivers_everything(spark, tmp_path):
    """As the file's own description says: all events for one subscriber."""
    publish(tmp_path, 0, 4)
    [variant] = job_of(plain(tmp_path, subscriptions=[])).run(lambda: spark, quiet)
    assert len(delivered(variant.folder)["pipeline"]) == 4


def damaged_job(spark: Any, folder: Any, mode: str, subscriptions: list[Any]) -> tuple[int, Any]:
    """Six events, of which the third cannot be read: rows put aside, and what was delivered."""
    publish(folder, 0, 6)
    with closing(sqlite3.connect(folder / "shop.db")) as db, db:
        db.execute("UPDATE log SET message = x'00' WHERE topic = 'orders' AND offset = 1")
    order = {"guarantee": "total", "mode": mode}
    job = job_of(plain(folder, order=order, subscriptions=subscriptions))
    variants = job.run(lambda: spark, quiet)
    return json.loads(job.as_json(variants))["quarantined"], delivered(variants[0].folder)


@pytest.mark.parametrize(
    "subscriptions",
    [[{"name": "big", "where": "amount > 1"}], [{"name": "x"}, {"name": "y"}]],
    ids=["nobody holds it", "two hold it"],
)
def test_a_damaged_row_is_counted_once(spark, tmp_path, subscriptions):
    """It is matched as if it had no attributes: put aside once for everybody who takes such, and
    gone without a word if nobody does."""
    assert damaged_job(spark, tmp_path, "tag", subscriptions)[0] == 1


def test_a_damaged_row_does_not_end_all_deliveries(spark, tmp_path):
    """Under hold, which is the default, everybody waits for its number for ever."""
    _, found = damaged_job(spark, tmp_path, "hold", [{"name": "x"}])
    assert found["x"] == [1, 2, 4, 5, 6]


def test_a_log_that_grows_meanwhile_is_judged_as_it_was_read(spark, tmp_path, monkeypatch):
    """The audit's events are read before the stream looks how far the log reaches."""
    publish(tmp_path, 0, 4)
    start = job_pipeline.Stream.start

    def published_meanwhile(stream, session):
        publish(tmp_path, 4, 4)
        return start(stream, session)

    monkeypatch.setattr(job_pipeline.Stream, "start", published_meanwhile)
    [variant] = job_of(plain(tmp_path)).run(lambda: spark, quiet)
    assert variant.audit.verdict == "kept"


def test_other_subscriptions_than_last_time_are_used_or_refused(spark, tmp_path):
    """The second run still serves the first file's subscribers, and finds its own deliveries
    missing."""
    publish(tmp_path, 0, 2)
    job_of(plain(tmp_path, subscriptions=[{"name": "old"}])).run(lambda: spark, quiet)
    publish(tmp_path, 2, 2)
    try:
        again = job_of(plain(tmp_path, subscriptions=[{"name": "new"}])).run(lambda: spark, quiet)
    except InorderError:
        return
    assert "new" in delivered(again[0].folder)


def test_a_stream_from_the_latest_event_on_remembers_where_it_began(spark, tmp_path):
    """A first run that finds nothing writes no offsets, and the next one begins at the end anew:
    what was published between them is lost."""
    table = plain(tmp_path)
    table["source"]["startingOffsets"] = "latest"
    publish(tmp_path, 0, 2)
    job_of(table).run(lambda: spark, quiet)
    publish(tmp_path, 2, 3)
    [variant] = job_of(table).run(lambda: spark, quiet)
    assert len(delivered(variant.folder).get("all", [])) == 3
