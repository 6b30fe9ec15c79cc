"""What stands at the very edge of a window, of a holding or of an acceptance is judged as in one
process."""

from __future__ import annotations

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
    for error in (None, 0.1):
        ours = audit(spark, str(folder), promises=PROMISES, clock_error=error).promises
        history = History.read(folder, clock_error=error)
        for name, expected in judge(history, PROMISES).items():
            assert_same(f"{name}, clocks {error}", ours[name], expected)
    counts = ours["accepted"].counts
    assert (counts["accepted"], counts["young"], counts["never"]) == (4, 1, 1)
    lost = ours["reliable"].counts
    assert (lost["deliverable"], lost["owed"], lost["lost"]) == (10, 4, 4)
    realtime = ours["realtime"]
    assert realtime.violations == 1
    assert realtime.witness is not None
    assert realtime.witness["before"] == "q:3"


def test_a_run_that_ended_quiet_has_no_young_publications(
    spark: SparkSession, tmp_path: Path
) -> None:
    ending = Ending(quiet=True, ended_at=20.0, within=5.0)
    folder = trace(tmp_path / "quiet", *ROWS, ending=ending)
    ours = audit(spark, str(folder), promises=PROMISES).promises
    for name, expected in judge(History.read(folder), PROMISES).items():
        assert_same(name, ours[name], expected)
    assert ours["accepted"].violations == 2
