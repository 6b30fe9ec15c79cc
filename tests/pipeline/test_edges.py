"""What stands at the very edge of a window, of a holding or of an acceptance is judged as in one
process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from inorder.check import History, judge
from inorder.check.ending import Ending
from inorder.pipeline.audit import audit
from tests.check.build import change, deliver, publish, subscribe, unsubscribe
from tests.check.test_merge import trace

from .test_agreement import assert_same

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROMISES = ["reliable", "accepted", "realtime"]

# Published at 10 and accepted at 10.5; with a window of 1 it is owed to who held from before 10
# until after 11.5, with filters that let it pass from 9 to 11.5.
EVENT = publish("p:1", at=10.0, x=1)

FILTER = "x < :limit"

ROWS: list[object] = [
    EVENT,
    publish("q:1", "u", at=10.5),  # as the first is accepted: either may come first
    publish("q:2", "u", at=10.6),
    publish("q:3", "u", at=10.7),
    publish("s:1", "u", at=19.0, accepted=False),  # the window before the end
    publish("s:2", "u", at=19.1, accepted=False),
    publish("r:1", "u", at=1.0, accepted=False, outcome="refused"),
    publish("r:2", "u", at=1.0, accepted=False, outcome="unknown"),
    deliver("a", "q:1 p:1"),
    deliver("b", "q:2 q:3 p:1"),
    deliver("bb", "p:1"),
    deliver("c", "q:2 p:1"),  # nearer to each other than clocks that are 0.1 s apart can tell
    subscribe("comes as it is published", at=10.0),
    subscribe("came before", at=9.9),
    subscribe("leaves at the end of the window", at=0.0),
    unsubscribe("leaves at the end of the window", at=11.5),
    subscribe("leaves behind the window", at=0.0),
    unsubscribe("leaves behind the window", at=11.6),
    subscribe("comes at the end of the window", at=11.5),
    subscribe("left as it was published", at=0.0),
    unsubscribe("left as it was published", at=10.0),
    subscribe("moved as the window began", at=0.0, where=FILTER, limit=0),
    change("moved as the window began", at=9.0, limit=5),
    subscribe("moved before the window began", at=0.0, where=FILTER, limit=0),
    change("moved before the window began", at=8.9, limit=5),
    subscribe("moved as the window ended", at=0.0, where=FILTER, limit=5),
    change("moved as the window ended", at=11.5, limit=0),
    subscribe("moved after the window", at=0.0, where=FILTER, limit=5),
    change("moved after the window", at=11.6, limit=0),
]


def test_what_stands_at_an_edge_is_judged_alike(spark: SparkSession, tmp_path: Path) -> None:
    ending = Ending(quiet=False, ended_at=20.0, within=1.0)
    folder = trace(tmp_path / "edges", *ROWS, ending=ending)
    for error, late in ((None, 2), (0.1, 1)):
        ours = audit(spark, str(folder), promises=PROMISES, clock_error=error).promises
        history = History.read(folder, clock_error=error)
        for name, expected in judge(history, PROMISES).items():
            assert_same(f"{name}, clocks {error}", ours[name], expected)
        assert ours["realtime"].violations == late, error
    counts = ours["accepted"].counts
    assert (counts["accepted"], counts["young"], counts["never"]) == (4, 1, 1)
    lost = ours["reliable"].counts
    assert (lost["deliverable"], lost["owed"], lost["lost"]) == (10, 4, 4)
    realtime = ours["realtime"]
    assert realtime.witness is not None
    assert realtime.witness["before"] == "q:3"


def test_an_application_of_several_publishers_goes_by_its_clock(
    spark: SparkSession, tmp_path: Path
) -> None:
    """By names and numbers b:1 came first, by the clock x:2 did, which saw the question."""
    rows = [
        publish("q:1", at=1.0),
        publish("x:2", at=2.0, seen="s 1", application="shop"),
        publish("b:1", at=3.0, application="shop"),
        deliver("s", "q:1"),
        deliver("c", "b:1 q:1 x:2"),
    ]
    folder = trace(tmp_path / "shop", *rows)
    ours = audit(spark, str(folder), promises=["causal"]).promises["causal"]
    assert_same("causal", ours, judge(History.read(folder), ["causal"])["causal"])
    assert ours.violations == 2


def test_what_others_published_in_a_live_run_is_told_from_what_nobody_did(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = [publish("p:2"), publish("p:5"), subscribe("a"), deliver("a", "p:1 p:3 p:6 q:1 p:5")]
    folder = trace(tmp_path / "live", *rows)
    (folder / "deliveries.jsonl").open("a").write(
        '{"subscriber":"a","nth":6,"event":"p:x","topic":"t","publisher":"p","seq":2,'
        '"published_at":1.0,"received_at":1.0,"delivered_at":1.0,"in_order":true}\n'
    )
    summary = json.loads((folder / "trace.json").read_text())
    (folder / "trace.json").write_text(json.dumps(summary | {"driver": "live"}))
    ours = audit(spark, str(folder), promises=["reliable"]).promises["reliable"]
    assert_same("reliable", ours, judge(History.read(folder), ["reliable"])["reliable"])
    counts = ours.also["integrity"].counts
    assert (counts["never_published"], counts["elsewhere"]) == (2, 3)


def test_a_run_that_ended_quiet_has_no_young_publications(
    spark: SparkSession, tmp_path: Path
) -> None:
    ending = Ending(quiet=True, ended_at=20.0, within=5.0)
    folder = trace(tmp_path / "quiet", *ROWS, ending=ending)
    ours = audit(spark, str(folder), promises=PROMISES).promises
    for name, expected in judge(History.read(folder), PROMISES).items():
        assert_same(name, ours[name], expected)
    assert ours["accepted"].violations == 2
