"""`inorder audit`: JSON contract, exit codes, words in the terminal, the report."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import typer
from typer.testing import CliRunner

from inorder.check import PROMISES
from inorder.check.verdict import Verdict
from inorder.cli.audit import audit as command
from inorder.cli.audit import pairs
from inorder.cli.verdicts import in_words
from inorder.core.errors import InorderError, Misuse
from inorder.pipeline import report as report_
from inorder.pipeline import session as session_

from .logs import write_run
from .test_foreign import ROWS, write_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

app = typer.Typer()
app.command()(command)


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    write_log(tmp_path / "kept.csv", ROWS[:2], ["subscriber", "nth", "event"])
    return tmp_path / "kept.csv"


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    write_log(tmp_path / "broken.csv", ROWS, ["subscriber", "offset", "event"])
    return tmp_path / "broken.csv"


def test_kept_is_0_and_the_json_keeps_its_contract(spark: SparkSession, kept: Path) -> None:
    ran = CliRunner().invoke(app, [str(kept), "--json"])
    assert ran.exit_code == 0
    result = json.loads(ran.stdout)
    assert list(result) == ["verdict", "rows", "promises", "promised"]
    assert result["promised"] is None
    assert (result["verdict"], result["rows"]) == ("kept", 2)
    assert list(result["promises"]) == list(PROMISES)
    for promise in result["promises"].values():
        assert {"judged", "kept", "violations", "witness"} <= set(promise)
        assert isinstance(promise["judged"], bool)
        assert isinstance(promise["kept"], bool)
        assert isinstance(promise["violations"], int)
        assert promise["extent"]


def test_broken_is_1_and_told_in_words(spark: SparkSession, broken: Path) -> None:
    ran = CliRunner().invoke(app, [str(broken), "--columns", "nth=offset"])
    assert ran.exit_code == 1
    words = " ".join(ran.stdout.split())
    assert "s1 delivered m1 before m2" in words
    assert "not judged" in words
    assert "6 deliveries" in words


def test_what_cannot_be_judged_is_2(spark: SparkSession, kept: Path) -> None:
    ran = CliRunner().invoke(app, [str(kept), "--promises", "fifo", "--json"])
    assert ran.exit_code == 2
    assert json.loads(ran.stdout)["verdict"] == "incomplete"


def test_an_error_is_json_too(spark: SparkSession, tmp_path: Path) -> None:
    ran = CliRunner().invoke(app, [str(tmp_path / "nope.csv"), "--json"])
    assert isinstance(ran.exception, InorderError)
    said = json.loads(ran.stdout)
    assert (said["verdict"], said["rows"], said["promises"]) == ("incomplete", 0, {})
    assert "does not exist" in said["error"]


def test_a_report_is_written(spark: SparkSession, tmp_path: Path) -> None:
    write_run(tmp_path / "run", 41)
    page = tmp_path / "out" / "report.html"
    ran = CliRunner().invoke(app, [str(tmp_path / "run"), "--report", str(page)])
    assert ran.exit_code == 1
    text = page.read_text()
    assert "</html>" in text
    assert "end to end" in text
    assert "<svg" in text
    assert list(page.parent.iterdir()) == [page]


def test_a_report_without_times_shows_nths(spark: SparkSession, broken: Path) -> None:
    page = broken.parent / "report.html"
    arguments = [str(broken), "--columns", "nth=offset", "--report", str(page)]
    assert CliRunner().invoke(app, arguments).exit_code == 1
    assert "s1 delivered m1 before m2" in page.read_text()


def test_an_interrupted_report_leaves_no_file(
    spark: SparkSession, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(report_.os, "replace", interrupted)
    folder = kept.parent / "out"
    with pytest.raises(KeyboardInterrupt):
        report_.write_whole(folder / "report.html", "half")
    assert list(folder.iterdir()) == []


def test_a_report_that_cannot_be_written(kept: Path) -> None:
    with pytest.raises(Misuse, match="cannot write"):
        report_.write_whole(kept / "report.html", "text")


def test_bins_cover_all() -> None:
    for low, high in ((0.0, 1.0), (0.001, 10.0), (2.0, 2.0), (-1.0, 1.0)):
        edges = report_.bins(low, high)
        assert edges[0] == low
        assert edges[-1] >= high
        assert edges == sorted(edges)


def test_pairs_are_checked() -> None:
    assert pairs(["a=b", " c = d ", ""], "--columns", "ours=theirs") == {"a": "b", "c": "d"}
    with pytest.raises(Misuse, match="'a' is not ours=theirs"):
        pairs(["a"], "--columns", "ours=theirs")
    with pytest.raises(Misuse, match="given twice"):
        pairs(["a=b", "a=c"], "--columns", "ours=theirs")


def test_an_unknown_witness_is_still_told() -> None:
    assert in_words(Verdict("new", True, False, 1, witness={"x": 1})) == "x 1"


def test_the_wrong_java_is_refused_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(Misuse, match=r"Java 17 or 21, and .* is Java 11"):
        session_.check_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(Misuse, match=r"JAVA_HOME=.* holds none"):
        session_.check_java()


def test_help_imports_no_spark() -> None:
    code = (
        "import sys, inorder, inorder.cli.audit\n"
        "sys.exit(any(name in sys.modules for name in ('pyspark', 'pyarrow', 'numpy', 'pandas')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
