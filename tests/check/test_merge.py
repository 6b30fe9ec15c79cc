"""The traces of several processes as one run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inorder.check import History, judge
from inorder.check.ending import Ending
from inorder.check.merge import ending_of, summary_of
from inorder.check.trace import TraceWriter
from inorder.core.errors import BadTrace, Misuse

from .build import build, deliver, publish, subscribe

QUIET = Ending(quiet=True, ended_at=100.0, within=0.0)


def trace(folder: Path, *rows: object, ending: Ending | None = QUIET, clock: str = "one") -> Path:
    history = build(*rows)
    with TraceWriter(folder, "jsonl", {"clock": clock}) as writer:
        for table in ("events", "deliveries", "subscriptions"):
            for row in getattr(history, table):
                writer.write(table, row)
        if ending is not None:
            writer.ended(ending)
    return folder


def split(tmp_path: Path) -> list[Path]:
    """Who asks, who answers, and two who read: a history that no single trace could tell."""
    ask = publish("a:1", at=1.0)
    answer = publish("b:1", at=2.0, seen="b.s 1")
    return [
        trace(tmp_path / "a", ask),
        trace(tmp_path / "b", answer, subscribe("b.s"), deliver("b.s", "a:1")),
        trace(tmp_path / "c", subscribe("c"), deliver("c", "b:1 a:1")),
        trace(tmp_path / "d", subscribe("d"), deliver("d", "a:1")),
    ]


def test_what_no_trace_tells_alone_is_seen_in_all_together(tmp_path: Path) -> None:
    history = History.read_all(split(tmp_path))
    verdicts = judge(history)
    assert verdicts["causal"].violations == 1
    assert verdicts["causal"].witness["subscriber"] == "c"  # type: ignore[index]
    assert verdicts["reliable"].violations == 2  # b.s and d never got the answer
    assert verdicts["realtime"].violations == 1
    assert verdicts["accepted"].counts["accepted"] == 2
    alone = judge(History.read(tmp_path / "c"))
    assert alone["causal"].violations == 0


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([subscribe("b.s"), deliver("b.s", "x:1")], "subscriber 'b.s' is in .*b too"),
        ([subscribe("b.s")], "subscriber 'b.s' is in .*b too"),
        ([publish("b:7")], "application 'b' is in .*b too"),
        ([publish("x:1", application="a")], "application 'a' is in .*a too"),
        ([publish("a:1", application="x")], "published twice"),
    ],
)
def test_a_name_that_means_two_things_is_refused(
    tmp_path: Path, rows: list[object], problem: str
) -> None:
    folders = [*split(tmp_path), trace(tmp_path / "again", *rows)]
    with pytest.raises(BadTrace, match=problem):
        History.read_all(folders)


def test_a_trace_that_is_named_twice_is_refused_however_it_is_spelt(tmp_path: Path) -> None:
    split(tmp_path)
    with pytest.raises(Misuse, match="is named twice"):
        History.read_all([tmp_path / "a", f"{tmp_path}/b/../a"])


def test_clocks_of_two_hosts_leave_realtime_open(tmp_path: Path) -> None:
    folders = split(tmp_path)
    assert History.read_all(folders).clock_error == 0.0
    trace(tmp_path / "d", subscribe("d"), deliver("d", "a:1"), clock="two")
    assert History.read_all(folders).clock_error is None


def test_a_run_of_several_ends_with_the_last_and_is_quiet_if_all_were() -> None:
    early = Ending(quiet=False, ended_at=3.0, within=2.0, under_way=("x: 1",))
    late = Ending(quiet=True, ended_at=9.0, within=1.0)
    assert ending_of([early, late]) == Ending(False, 9.0, 2.0, ("x: 1",))
    assert ending_of([late, late]) == late
    assert ending_of([early, None]) is None


def test_who_held_a_topic_when_its_trace_ended_is_owed_nothing_later(tmp_path: Path) -> None:
    early = Ending(quiet=False, ended_at=3.0, within=0.0)
    late = Ending(quiet=False, ended_at=9.0, within=0.0)
    ask, then = publish("a:1", at=1.0), publish("a:2", at=5.0)
    folders = [
        trace(tmp_path / "a", ask, then, ending=late),
        trace(tmp_path / "c", subscribe("c"), ending=early),
    ]
    verdict = judge(History.read_all(folders))["reliable"]
    assert verdict.violations == 1
    assert verdict.witness["event"] == "a:1"  # type: ignore[index]


def test_who_held_a_topic_in_a_trace_that_ended_quiet_holds_it_for_ever(tmp_path: Path) -> None:
    early = Ending(quiet=True, ended_at=3.0, within=0.0)
    folders = [
        trace(tmp_path / "a", publish("a:1", at=5.0), ending=QUIET),
        trace(tmp_path / "c", subscribe("c"), ending=early),
    ]
    verdict = judge(History.read_all(folders))["reliable"]
    assert verdict.violations == 1


def test_what_others_published_is_invented_by_nobody_in_traces_of_a_live_run(
    tmp_path: Path,
) -> None:
    folders = split(tmp_path)[1:]  # without the one who asks
    assert judge(History.read_all(folders))["reliable"].also["integrity"].violations == 3
    summary = json.loads((folders[0] / "trace.json").read_text())
    (folders[0] / "trace.json").write_text(json.dumps(summary | {"driver": "live"}))
    integrity = judge(History.read_all(folders))["reliable"].also["integrity"]
    assert integrity.violations == 0
    assert integrity.counts["elsewhere"] == 3


def test_what_traces_do_not_agree_on_is_not_said_of_them_all() -> None:
    one = {"driver": "live", "order": {"guarantee": "total"}, "rows": {"events": 1}, "seed": 1}
    two = {"driver": "live", "order": {"guarantee": "none"}, "rows": {"events": 2}, "seed": 1}
    assert summary_of([one, two]) == {"driver": "live", "rows": {}, "seed": 1, "traces": 2}
    # Who counts no rows may lack columns, too: then none of them are known to be there.
    del two["rows"]
    assert "rows" not in summary_of([one, two])
