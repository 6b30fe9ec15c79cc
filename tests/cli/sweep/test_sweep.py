"""Sweeps on Spark: the same rows as one process gives, and nothing is run twice."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import typer
from msgspec.structs import replace
from typer.testing import CliRunner

from inorder.check import judge
from inorder.cli.sweep import point as point_module
from inorder.cli.sweep.command import sweep as command
from inorder.cli.sweep.grid import SweepTable, points, read
from inorder.cli.sweep.plan import Sweep, sweep
from inorder.cli.sweep.point import Tally, row_of
from inorder.core.errors import Misuse
from inorder.sim.memory import Memory
from inorder.sim.scenario import from_table
from inorder.sim.simulate import simulate
from tests.cluster.cluster import kill

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLE = Path(__file__).parents[3] / "examples" / "sweep.toml"

app = typer.Typer()
app.command()(command)

FILE = """
seeds = 2
judge = true
[simulate]
duration = 3.0
topics = 2
[simulate.order]
guarantee = "total"
mode = "tag"
buffer = 0
[simulate.network]
model = "wan"
[simulate.publishers]
count = 2
[[simulate.subscribers]]
count = 3
[grid]
"order.guarantee" = ["none", "total"]
"publishers.rate" = [1, 8]
"""


def table() -> SweepTable:
    return read(FILE.encode(), "file")


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("sweep") / "out"
    assert Sweep(table(), out=out).run(spark) == 8
    return out


def files(folder: Path) -> dict[str, tuple[int, int]]:
    """What would change if a point were run again."""
    found = folder.glob("*.parquet")
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in found}


def told(spark: SparkSession, out: Path) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in Sweep(table(), out=out).rows(spark).collect()]


def test_a_row_on_spark_is_the_row_of_one_process(spark: SparkSession, folder: Path) -> None:
    rows = told(spark, folder)
    assert len(rows) == len(points(table())) == 8
    for row, point in zip(rows, points(table()), strict=True):
        here = row_of(point)
        for name in set(here) - {"seconds", "grid"}:
            assert row[name] == here[name], name


def test_a_row_says_what_simulate_and_the_judges_say(spark: SparkSession, folder: Path) -> None:
    for row, point in list(zip(told(spark, folder), points(table()), strict=True))[::3]:
        memory = Memory()
        outcome = simulate(from_table(point.scenario), point.seed, memory)
        delivered = memory.rows["deliveries"]
        delays = [each.delivered_at - each.published_at for each in delivered]
        assert row["published"] == outcome.published
        assert row["delivered"] == outcome.delivered == len(delivered)
        assert row["tagged"] == sum(not each.in_order for each in delivered)
        assert [row["delay_p50"], row["delay_p99"]] == np.quantile(delays, [0.5, 0.99]).tolist()
        assert (row["counters"], row["marks"]) == (outcome.account, outcome.marks)
        verdicts = judge(memory.history())
        assert row["violations"] == {
            name: verdict.violations for name, verdict in verdicts.items() if verdict.judged
        }


def test_the_sweep_shows_a_difference(spark: SparkSession, folder: Path) -> None:
    """Or the comparisons above would compare zeros with zeros."""
    rows = told(spark, folder)
    broken = {row["order.guarantee"]: 0 for row in rows}
    for row in rows:
        broken[row["order.guarantee"]] += row["violations"]["total"]
    assert broken["none"] > 0
    assert broken["total"] == 0
    assert any(row["tagged"] for row in rows)
    assert len({row["delay_p99"] for row in rows}) > 4


def test_the_summary_is_mean_and_spread_over_the_seeds(spark: SparkSession, folder: Path) -> None:
    lines = Sweep(table(), out=folder).summary(spark)
    rows = told(spark, folder)
    assert [line["values"] for line in lines] == [p.values for p in points(table())[::2]]
    for number, line in enumerate(lines, 1):
        mine = [row["delay_p99"] for row in rows if row["point"] == number]
        assert (line["seeds"], line["failed"]) == (2, 0)
        assert line["delay_p99"]["mean"] == pytest.approx(np.mean(mine))
        assert line["delay_p99"]["sd"] == pytest.approx(np.std(mine, ddof=1))


def test_finished_points_are_not_run_again(
    spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files(folder)
    assert Sweep(table(), out=folder).run(spark) == 0
    assert files(folder) == before
    # More seeds: only the new ones are run.
    frame = sweep(spark, {"simulate": table().simulate, "judge": True}, seeds=[9], out=folder)
    assert frame.count() == 1
    assert {name: files(folder)[name] for name in before} == before
    assert len(files(folder)) == len(before) + 1
    assert len(told(spark, folder)) == 8
    # And the comparison would notice a point that was run again.
    monkeypatch.setattr(Sweep, "finished", lambda self: set())
    one = Sweep(SweepTable(simulate=table().simulate, judge=True, seeds=(9,)), out=folder)
    changed = files(folder)
    assert one.run(spark) == 1
    assert len(files(folder).items() - changed.items()) == 1


def test_fresh_runs_everything_again(spark: SparkSession, tmp_path: Path) -> None:
    plan = Sweep(SweepTable(simulate={"duration": 1.0}, seeds=2), out=tmp_path / "out")
    assert plan.run(spark) == 2
    before = files(plan.out)
    assert plan.run(spark, fresh=True) == 2
    assert set(files(plan.out)) == set(before)
    assert not files(plan.out).items() & before.items()


def test_a_failed_point_leaves_its_error_and_is_tried_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    plan = Sweep(SweepTable(simulate={"duration": 1.0}, seeds=3), out=tmp_path / "out")
    good = plan.points
    plan.points = [good[0], replace(good[1], version="0.0.0"), good[2]]
    assert plan.run(spark) == 3
    rows = plan.rows(spark).collect()
    assert [row["error"] is None for row in rows] == [True, False, True]
    assert "asked for by 0.0.0" in rows[1]["error"]
    assert rows[1]["published"] is None
    assert plan.summary(spark)[0]["failed"] == 1
    plan.points = good
    assert plan.run(spark) == 1
    assert [row["error"] for row in plan.rows(spark).collect()] == [None] * 3


def test_a_folder_of_somebody_else_is_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(Misuse, match="not the folder of a sweep"):
        Sweep(table(), out=tmp_path).run(spark)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_a_folder_the_executors_do_not_see(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = Sweep(SweepTable(simulate={"duration": 1.0}), out=tmp_path / "out")
    (tmp_path / "out").mkdir()
    monkeypatch.setattr(plan, "_prepare", lambda fresh: None)
    with pytest.raises(Misuse, match=r"an executor does not see .*: 1 of 1 points are not run"):
        plan.run(spark)


def test_long_runs_are_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    [point] = points(SweepTable(simulate={"duration": 9.0}, judge=True))
    whole = row_of(point)
    assert whole["violations"]
    assert whole["unjudged"] is None
    monkeypatch.setattr(point_module, "SWEEP_JUDGED_DELIVERIES_MAX", 3)
    cut = row_of(point)
    assert (cut["violations"], cut["unjudged"]) == ({}, "over 3 deliveries")
    assert cut["delay_p50"] == whole["delay_p50"]
    assert Tally(keep=False).history() is None


def test_a_torn_write_is_no_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rename is the last thing that happens."""
    plan = Sweep(SweepTable(simulate={"duration": 1.0}), out=tmp_path / "out")
    plan._prepare(fresh=False)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(point_module.os, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            point_module.run_to_file(point_module.encode(plan.points[0]), str(plan.out))
    assert plan.finished() == set()
    point_module.run_to_file(point_module.encode(plan.points[0]), str(plan.out))
    assert len(plan.finished()) == 1


SLOW = """
seeds = 8
[simulate]
duration = 40.0
topics = 4
[simulate.order]
guarantee = "total"
[simulate.network]
model = "wan"
[simulate.publishers]
count = 4
rate = 8.0
[[simulate.subscribers]]
count = 12
"""


def test_after_kill_9_in_the_middle_only_the_rest_is_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    file, out = tmp_path / "slow.toml", tmp_path / "out"
    file.write_text(SLOW)
    words = ["sweep", str(file), "--out", str(out), "--master", "local[1]"]
    words += ["--conf", "spark.driver.memory=512m"]
    program = [sys.executable, "-c", "from inorder.cli import main; main()"]
    process = subprocess.Popen([*program, *words], start_new_session=True)
    try:
        while not files(out) and process.poll() is None:
            time.sleep(0.02)
    finally:
        kill(process)
    before = files(out)
    plan = Sweep.load(file, out)
    assert 1 <= len(before) < len(plan.points)
    assert plan.run(spark) == len(plan.points) - len(before)
    after = files(out)
    assert {name: after[name] for name in before} == before
    rows = [row.asDict(recursive=True) for row in plan.rows(spark).collect()]
    assert [row["seed"] for row in rows] == list(range(1, 9))
    kept = next(p for p in plan.points if point_module.file_name(p.digest) in before)
    again, stored = row_of(kept), rows[kept.seed - 1]
    assert {**again, "seconds": 0.0, "grid": ""} == {
        **{name: stored.get(name) for name in again}, "seconds": 0.0, "grid": "",
    }  # fmt: skip


def test_the_command_prints_a_table_and_json(
    spark: SparkSession, folder: Path, tmp_path: Path
) -> None:
    file = tmp_path / "sweep.toml"
    file.write_text(FILE)
    ran = CliRunner().invoke(app, [str(file), "--out", str(folder)])
    assert ran.exit_code == 0, ran.output
    assert "8 points" in ran.stdout
    assert "0 run now, 8 from before" in ran.stdout
    ran = CliRunner().invoke(app, [str(file), "--out", str(folder), "--json"])
    said = json.loads(ran.stdout)
    assert (said["points"], said["ran"], said["failures"]) == (8, 0, [])
    assert said["summary"][0]["values"] == {"order.guarantee": "none", "publishers.rate": 1}
    assert said["summary"][3]["violations"]["total"] == 0


def test_progress_counts_finished_points(spark: SparkSession, tmp_path: Path) -> None:
    seen: list[float] = []
    simulated = {"duration": 1.0}
    sweep(
        spark, {"simulate": simulated}, 4, tmp_path / "out",
        progress=lambda what, share: seen.append(share),
    )  # fmt: skip
    assert (seen[0], seen[-1]) == (0.0, 1.0)
    assert seen == sorted(seen)


def test_the_example_is_valid() -> None:
    assert len(Sweep.load(EXAMPLE).points) == 90
