"""The audit says what the in-process judges say, on many random runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from inorder.check import History, Verdict, judge
from inorder.pipeline.audit import audit

from .logs import write_run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def assert_agrees(spark: SparkSession, folder: Path) -> None:
    ours = audit(spark, str(folder)).promises
    theirs = judge(History.read(folder))
    for name, expected in theirs.items():
        _assert_same(f"{folder.name}: {name}", ours[name], expected)


def _assert_same(what: str, ours: Verdict, theirs: Verdict) -> None:
    if ours.promise == "filter" and not ours.judged:
        assert theirs.violations == 0, what
        return
    assert (ours.judged, ours.kept, ours.violations) == (
        theirs.judged,
        theirs.kept,
        theirs.violations,
    ), what
    if ours.judged:
        for name, count in ours.counts.items():
            assert theirs.counts[name] == count, f"{what}: {name}"
        assert ours.witness == theirs.witness, what
    for name, also in ours.also.items():
        _assert_same(f"{what}, {name}", also, theirs.also[name])


@pytest.mark.parametrize("seed", range(40))
def test_a_random_run_is_judged_alike(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    write_run(tmp_path / f"run{seed}", seed)
    assert_agrees(spark, tmp_path / f"run{seed}")
