from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from inorder.check import PROMISES, History, judge
from inorder.check.ending import clocks_apart
from inorder.check.trace import DeliveryRow, EventRow, SubscriptionRow, TraceWriter
from inorder.core.errors import BadTrace, UnknownName

from .build import build, deliver, publish, subscribe


def write(folder: Path, history: History, **flags: str) -> None:
    about = {"clock": "simulated"}
    with TraceWriter(folder, format=flags.get("format", "jsonl"), about=about) as trace:  # type: ignore[arg-type]
        if history.ending is not None:
            trace.ended(history.ending)
        for event in history.events or ():
            trace.write("events", event)
        for row in history.deliveries:
            trace.write("deliveries", row)
        for change in history.subscriptions or ():
            trace.write("subscriptions", change)


SMALL = build(
    subscribe("a"), subscribe("b"), publish("p:1"), publish("p:2"),
    deliver("a", "p:1 p:2"), deliver("b", "p:2 ?p:1"),
)  # fmt: skip


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_a_trace_folder_is_read_back_as_it_was(tmp_path: Path, format: str) -> None:
    write(tmp_path, SMALL, format=format)
    history = History.read(tmp_path)
    assert history.complete
    assert history.accepted_known
    assert not history.bare
    assert msgspec.json.encode(judge(history)) == msgspec.json.encode(judge(SMALL))
    assert all(verdict.kept for verdict in judge(history).values())


def test_a_trace_that_does_not_say_so_is_not_complete(tmp_path: Path) -> None:
    write(tmp_path, SMALL)
    (tmp_path / "trace.json").write_text('{"complete": false, "rows": {}}')
    assert not History.read(tmp_path).complete
    (tmp_path / "trace.json").unlink()
    assert not History.read(tmp_path).complete


def test_tables_that_are_not_there_are_absent(tmp_path: Path) -> None:
    write(tmp_path, SMALL)
    (tmp_path / "events.jsonl").unlink()
    (tmp_path / "subscriptions.jsonl").unlink()
    history = History.read(tmp_path)
    assert history.events is None
    assert history.subscriptions is None
    found = judge(history)
    judged = [name for name in found if found[name].judged]
    assert judged == ["total", "fifo", "per_publisher", "unique"]
    assert all(verdict.judged or verdict.why for verdict in found.values())


def test_there_is_no_history_without_deliveries(tmp_path: Path) -> None:
    with pytest.raises(BadTrace, match="deliveries"):
        History.read(tmp_path)


def test_acceptance_is_unknown_when_a_foreign_trace_never_records_it(tmp_path: Path) -> None:
    write(tmp_path, SMALL)
    row = {"event": "p:9", "topic": "t", "publisher": "p", "seq": 9, "published_at": 1.0}
    (tmp_path / "events.jsonl").write_text(json.dumps(row) + "\n")
    assert History.read(tmp_path).accepted_known  # our own writer would have recorded it
    (tmp_path / "trace.json").write_text('{"complete": true, "quiet": true, "ended_at": 9}')
    history = History.read(tmp_path)
    assert not history.accepted_known
    assert judge(history)["reliable"].violations == 2


def test_a_trace_that_says_how_it_ended_is_judged_by_that(tmp_path: Path) -> None:
    """And one that does not was cut when the last thing happened: nothing is owed in SMALL then."""
    write(tmp_path, SMALL)
    assert History.read(tmp_path).ending == SMALL.ending
    assert judge(History.read(tmp_path))["reliable"].counts["owed"] == 4
    (tmp_path / "trace.json").write_text('{"complete": true, "rows": {}}')
    history = History.read(tmp_path)
    assert (history.ending, history.within, history.clock_error) == (None, 10.0, None)
    assert judge(history)["reliable"].counts["owed"] == 0
    (tmp_path / "trace.json").write_text('{"quiet": "who knows", "ended_at": 1}')
    with pytest.raises(BadTrace, match=r"trace.json: .*quiet"):
        History.read(tmp_path)


def test_a_window_that_is_asked_for_replaces_that_of_the_run(tmp_path: Path) -> None:
    write(tmp_path, SMALL)
    history = History.read(tmp_path, within=3.0)
    assert history.ending is not None
    assert (history.within, history.ending.within) == (3.0, 3.0)


def test_traces_of_one_clock_have_no_error() -> None:
    one, other, silent = {"clock": "a"}, {"clock": "b"}, {}
    assert clocks_apart([one, one]) == 0.0
    assert clocks_apart([one, other]) is None
    assert clocks_apart([one, silent]) is None
    assert clocks_apart([silent]) is None


def test_deliveries_are_read_by_nth() -> None:
    history = History.foreign([("b", 1, "x"), ("a", 9, "z"), ("a", 2, "y")])
    assert history.sequences == {"a": ["y", "z"], "b": ["x"]}
    assert list(history.by_subscriber) == ["a", "b"]


@pytest.mark.parametrize(
    ("deliveries", "problem"),
    [
        ([("a", 1, "x"), ("a", 1, "y")], "twice at 1"),
        ([("a", 0, "x")], "at place 0"),
    ],
)
def test_senseless_deliveries_are_refused(
    deliveries: list[tuple[str, int, str]], problem: str
) -> None:
    with pytest.raises(BadTrace, match=problem):
        History.foreign(deliveries)


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        ([publish("p:1"), publish("p:1")], "published twice"),
        ([publish("p:1"), EventRow("x", "t", "p", 1, 0.0)], "published twice"),
        ([publish("p:0")], "the number 0"),
        ([publish("p:1", outcome="perhaps")], "the outcome 'perhaps'"),
    ],
)
def test_senseless_events_are_refused(events: list[EventRow], problem: str) -> None:
    with pytest.raises(BadTrace, match=problem):
        History([], events)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[]", "trace.json: is not a JSON object"),
        ("[" * 100_000, "trace.json: is not JSON"),
        ('{"quiet": true, "ended_at": 1, "within": -5}', "`within` is -5, no window"),
        ('{"quiet": true, "ended_at": 1, "within": NaN}', "`within` is nan, no window"),
        ('{"quiet": true, "ended_at": Infinity}', "`ended_at` is inf"),
        ('{"quiet": true, "ended_at": 1, "under_way": 3}', "under_way"),
    ],
)
def test_a_summary_that_makes_no_sense_is_refused_by_name(
    tmp_path: Path, text: str, problem: str
) -> None:
    (tmp_path / "deliveries.jsonl").write_text("")
    (tmp_path / "trace.json").write_text(text)
    with pytest.raises(BadTrace, match=problem):
        History.read(tmp_path)


def test_a_clock_without_a_name_is_no_one_clock(tmp_path: Path) -> None:
    (tmp_path / "deliveries.jsonl").write_text("")
    (tmp_path / "trace.json").write_text('{"clock": ["host", 1]}')
    assert History.read(tmp_path).clock_error is None


def test_an_unknown_op_is_refused() -> None:
    with pytest.raises(BadTrace, match="unknown op 'resubscribe'"):
        build(subscribe("a", op="resubscribe"))


@pytest.mark.parametrize("text", ["", "[]", "{", "5", "[" * 100_000, "9" * 5000])
def test_parameters_that_are_no_json_object_are_refused(text: str) -> None:
    row = SubscriptionRow("a", "subscribe", ["t"], None, text, 0.0)
    with pytest.raises(BadTrace, match="parameters of a"):
        judge(History([], [], [row]))


def test_attributes_that_are_no_json_object_are_refused() -> None:
    history = build(subscribe("a", where="x"), publish("p:1"), deliver("a", "p:1"))
    history.event_rows["p:1"].attributes = "[]"
    with pytest.raises(BadTrace, match="attributes of p:1"):
        judge(history)


def test_an_empty_history_breaks_nothing() -> None:
    assert all(verdict.kept for verdict in judge(build()).values())


def test_an_unknown_promise_is_refused() -> None:
    with pytest.raises(UnknownName, match="known: total, causal, causal_across_topics, fifo"):
        judge(SMALL, ["total", "fairness"])


def test_only_the_promises_asked_for_are_judged() -> None:
    assert list(judge(SMALL, ["unique", "total"])) == ["unique", "total"]
    assert list(judge(SMALL)) == list(PROMISES)


def test_a_delivery_row_of_ours_is_in_order_unless_it_says_otherwise() -> None:
    row = DeliveryRow("a", 1, "p:1", "t", "p", 1, 0.0, 0.0, 0.0)
    assert History([row]).sequences == {"a": ["p:1"]}


SAME = """
import random, msgspec
from check.random_history import any_history
from inorder.check import judge
for seed in range(60):
    print(msgspec.json.encode(judge(any_history(random.Random(seed)))).decode())
"""


def test_the_same_history_gives_the_same_verdict_whatever_the_hash_seed() -> None:
    tests = str(Path(__file__).parents[1])
    said = [
        subprocess.run(
            [sys.executable, "-c", SAME],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": tests},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert said[0] == said[1]
    assert said[0].count(b'"kept":false') > 60
