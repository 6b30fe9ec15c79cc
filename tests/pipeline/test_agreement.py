"""The audit says what the in-process judges say, on many random runs and on every path."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from inorder.check import History, Verdict, judge
from inorder.check.trace import DeliveryRow, EventRow, TraceWriter
from inorder.pipeline import bounds, coded, inversions
from inorder.pipeline.audit import audit

from .logs import write_run

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession


def assert_agrees(spark: SparkSession, folder: Path) -> None:
    ours = audit(spark, str(folder)).promises
    theirs = judge(History.read(folder))
    assert list(ours) == list(theirs)
    for name, expected in theirs.items():
        assert_same(f"{folder.name}: {name}", ours[name], expected)


def assert_same(what: str, ours: Verdict, theirs: Verdict) -> None:
    if ours.promise == "filter" and not ours.judged:
        assert theirs.violations == 0, what
        return
    assert ours.judged == theirs.judged, what
    assert ours.violations == theirs.violations, what
    assert ours.kept == theirs.kept, what
    if ours.judged:
        assert {*ours.counts} <= {*theirs.counts}
        for name, count in ours.counts.items():
            assert theirs.counts[name] == count, f"{what}: {name}"
        assert ours.witness == theirs.witness, what
    for name, also in ours.also.items():
        assert_same(f"{what}, {name}", also, theirs.also[name])


@pytest.mark.parametrize("seed", range(18))
def test_a_random_run_is_judged_alike(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    write_run(tmp_path / f"run{seed}", seed)
    assert_agrees(spark, tmp_path / f"run{seed}")


def test_a_run_in_json_lines_is_judged_alike(spark: SparkSession, tmp_path: Path) -> None:
    write_run(tmp_path / "run", 31, format="jsonl")
    assert_agrees(spark, tmp_path / "run")


def test_an_unfinished_run_is_judged_alike(spark: SparkSession, tmp_path: Path) -> None:
    write_run(tmp_path / "run", 25, complete=False)
    assert_agrees(spark, tmp_path / "run")
    result = audit(spark, str(tmp_path / "run"))
    assert result.verdict == "incomplete"
    assert not result.complete


@pytest.mark.parametrize("spoilt", [False, True])
def test_two_deliveries_handed_over_swapped_are_found_by_audit(
    spark: SparkSession, tmp_path: Path, spoilt: bool
) -> None:
    """Nobody contradicts the only subscriber but the positions."""
    with TraceWriter(tmp_path / "run") as trace:
        handed = [1, 2, 4, 3, 5] if spoilt else [1, 2, 3, 4, 5]
        for seq in range(1, 6):
            trace.write(
                "events", EventRow(f"p:{seq}", "t", "p", seq, 1.0, 1.0, position=7 * seq, log="l")
            )
        for nth, seq in enumerate(handed, 1):
            trace.write(
                "deliveries", DeliveryRow("a", nth, f"p:{seq}", "t", "p", seq, 1.0, 1.0, 1.0)
            )
    assert_agrees(spark, tmp_path / "run")
    result = audit(spark, str(tmp_path / "run"), promised=["total"])
    assert result.verdict == ("broken" if spoilt else "kept")
    related = result.promises["total"].also["position"]
    assert related.witness == ({
        "events": ["p:4", "p:3"], "subscriber": "a", "nths": [3, 4], "positions": [28, 21],
    } if spoilt else None)  # fmt: skip


SMALL: dict[str, dict[str, int]] = {
    "slices": {"SLICE_ROWS_MAX": 10},
    "slices by a shuffle": {"SLICE_ROWS_MAX": 10, "RESCANS_MAX": 0, "TASK_ROWS": 3},
    "block pairs": {"LOCAL_COMPARISONS_MAX": 0, "BLOCK_ROWS_MAX": 5},
    "slices and block pairs": {"SLICE_ROWS_MAX": 10, "BLOCK_ROWS_MAX": 7},
    "no place table": {"PLACE_CELLS_MAX": 0},
    "few columns of pasts": {"PAST_CELLS_MAX": 1},
}


@pytest.mark.parametrize("path", SMALL)
@pytest.mark.parametrize("seed", [41])
def test_small_bounds_change_no_verdict(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, seed: int
) -> None:
    for name, value in SMALL[path].items():
        monkeypatch.setattr(bounds, name, value)
    write_run(tmp_path / "run", seed)
    assert_agrees(spark, tmp_path / "run")


def test_beyond_the_steps_kept_only_acyclic_is_not_judged(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "STEPS_MAX", 1)
    write_run(tmp_path / "run", 41)
    ours = audit(spark, str(tmp_path / "run"), promises=["total"]).promises["total"]
    theirs = judge(History.read(tmp_path / "run"))["total"]
    assert (ours.violations, ours.witness) == (theirs.violations, theirs.witness)
    assert not ours.also["acyclic"].judged
    assert "limit" in ours.also["acyclic"].why


@pytest.mark.parametrize("seed", [20, 41])
def test_names_that_share_a_code_are_told_apart(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Seed 20 is a tidy run: with every third event taken for another it would look broken."""
    right = coded.code
    attempts = []

    def colliding(name: str, attempt: int) -> Column:
        from pyspark.sql import functions as F

        attempts.append(attempt)
        column = right(name, attempt)
        return column if attempt else F.pmod(column, F.lit(3))

    monkeypatch.setattr(coded, "code", colliding)
    write_run(tmp_path / "run", seed)
    assert_agrees(spark, tmp_path / "run")
    assert max(attempts) == 1


def test_nths_beyond_31_bits_are_read(spark: SparkSession, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    far = 2**40
    lines = [("a", far, "x"), ("a", far + 1, "y"), ("b", -5, "y"), ("b", 7, "x")]
    log.write_text("subscriber,nth,event\n" + "".join(f"{s},{p},{e}\n" for s, p, e in lines))
    total = audit(spark, str(log), promises=["total"]).promises["total"]
    assert total.violations == 1
    assert total.witness is not None
    assert total.witness["nths"] == {"a": [far, far + 1], "b": [7, -5]}


def test_without_scipys_private_count_the_answer_is_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import numpy as np

    random = np.random.default_rng(3)
    for size in (2, 3, 7, 64, 1000):
        values: Any = random.permutation(size)
        quick = inversions.inversions(values)
        assert quick == sum(int((values[:at] > values[at]).sum()) for at in range(size))
        with monkeypatch.context() as patch:
            patch.setattr(inversions, "_fenwick", lambda: None)
            assert inversions.inversions(values) == quick
