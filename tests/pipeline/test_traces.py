"""Several traces as one run on Spark, and what the columns of a trace allow to be judged."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from inorder.check import History, judge
from inorder.core.errors import BadTrace, Misuse
from inorder.guarantee.promises import OVER_A_LOG
from inorder.pipeline.audit import audit
from tests.bus.test_causes import QUESTIONS, ask_and_answer
from tests.check.build import publish, subscribe
from tests.check.test_merge import split, trace

from .logs import write_run
from .test_agreement import assert_same
from .test_cli import app

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_traces_of_several_processes_are_judged_as_in_one_process(
    spark: SparkSession, tmp_path: Path
) -> None:
    folders = split(tmp_path)
    ours = audit(spark, [str(folder) for folder in folders])
    for name, expected in judge(History.read_all(folders)).items():
        assert_same(name, ours.promises[name], expected)
    assert ours.promises["reliable"].violations == 2
    assert ours.rows == 4


def swap(folder: Path, nth: int) -> None:
    """A delivery and the next change places."""
    path = folder / "deliveries.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    one, other = rows[nth - 1], rows[nth]
    one["nth"], other["nth"] = other["nth"], one["nth"]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_live_buses_are_judged_together_and_what_a_log_keeps_decides(
    spark: SparkSession, tmp_path: Path
) -> None:
    """None of them published and read all. A log has one order, whatever the guarantee is."""
    ask_and_answer(tmp_path, "none")
    folders = [str(tmp_path / name) for name in ("asker", "answerer", "reader")]
    result = audit(spark, folders)
    assert result.promised == list(OVER_A_LOG)
    assert result.verdict == "kept"
    across = result.promises["causal_across_topics"]
    assert (across.violations, across.counts["caused"]) == (0, 2 * QUESTIONS - 1)
    swap(tmp_path / "reader", 1)
    ran = CliRunner().invoke(app, [*folders, "--json"])
    assert ran.exit_code == 1
    said = json.loads(ran.stdout)
    assert said["promises"]["causal_across_topics"]["violations"] == 1


def test_names_that_collide_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    folders = [str(folder) for folder in split(tmp_path)]
    with pytest.raises(Misuse, match="is named twice"):
        audit(spark, [folders[0], folders[0]])
    with pytest.raises(Misuse, match="is named twice"):
        audit(spark, [folders[0], f"{folders[0]}/../{Path(folders[0]).name}"])
    shutil.copytree(tmp_path / "c", tmp_path / "copy")
    with pytest.raises(BadTrace, match=r"subscriber 'c' is in .*c too"):
        audit(spark, [*folders, str(tmp_path / "copy")])
    trace(tmp_path / "shop", publish("x:1", application="a"))
    with pytest.raises(BadTrace, match=r"application 'a' is in .*a too"):
        audit(spark, [*folders, str(tmp_path / "shop")])
    (tmp_path / "log.csv").write_text("subscriber,nth,event\na,1,x\n")
    with pytest.raises(Misuse, match=r"log.csv: is no trace of ours"):
        audit(spark, [*folders, str(tmp_path / "log.csv")])


def test_the_window_and_the_error_of_the_clocks_can_be_given(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_run(tmp_path / "run", 42)
    promises = ["reliable", "realtime", "accepted"]
    plain = audit(spark, str(tmp_path / "run"), promises=promises).promises
    assert not plain["realtime"].judged
    given = audit(
        spark, str(tmp_path / "run"), promises=promises, within=6.0, clock_error=0.5
    ).promises
    history = History.read(tmp_path / "run", within=6.0, clock_error=0.5)
    for name, expected in judge(history, promises).items():
        assert_same(name, given[name], expected)
    assert given["realtime"].judged
    assert given["reliable"].counts["owed"] != plain["reliable"].counts["owed"]


def test_a_trace_without_outcomes_and_without_what_was_seen_says_so(
    spark: SparkSession, tmp_path: Path
) -> None:
    """As traces were before: nothing is guessed from times."""
    rows = [publish("p:1", accepted=False, seen=None), publish("q:1", accepted=False, seen=None)]
    folder = trace(tmp_path / "old", *rows, subscribe("a"), ending=None)
    lines = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    for line in lines:
        for column in ("outcome", "application", "seen"):
            del line[column]
    (folder / "events.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    ours = audit(spark, str(folder)).promises
    theirs = judge(History.read(folder))
    for name in ("accepted", "causal", "causal_across_topics"):
        assert not ours[name].judged
        assert ours[name].why == theirs[name].why
    assert "`outcome`" in ours["accepted"].why
    assert "`seen`" in ours["causal"].why


def test_an_outcome_that_is_none_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    folder = trace(tmp_path / "odd", publish("p:1", outcome="accepted"), subscribe("a"))
    path = folder / "events.jsonl"
    path.write_text(path.read_text().replace('"accepted"', '"perhaps"'))
    with pytest.raises(BadTrace, match=r"'outcome' holds none of"):
        audit(spark, str(folder), promises=["accepted"])
