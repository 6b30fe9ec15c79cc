"""Points of figures on Spark: the numbers of one process, each point once, and a clean end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import experiments.sweep as module
import msgspec
import pytest
from experiments.cube import cells, chapter4, churn, example, several, single
from experiments.cube.__main__ import FIGURES
from experiments.cube.aggregation import FIGURES as CHAPTER_4
from experiments.figure import Figure
from experiments.points import ROOT, Numbers, Settings, Store
from experiments.sweep import missing, run_to_store, sweep

from inorder.core.errors import Misuse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def small(figure: Figure, nodes: int = 16) -> Figure:
    """Its quick points of so many nodes."""

    def points(quick: bool) -> list[Settings]:
        return [each for each in figure.points(True) if each.get("nodes", nodes) == nodes]

    return replace(figure, points=points)


def silent(what: str, share: float) -> None:
    pass


def timeless(runs: object) -> object:
    """Without the processor seconds, which are the only number that differs."""
    if isinstance(runs, dict):
        return {key: timeless(value) for key, value in runs.items() if not key.endswith("seconds")}
    return [timeless(each) for each in runs] if isinstance(runs, list) else runs


def numbers(figure: Figure, folder: Path) -> object:
    kept = msgspec.json.decode((folder / "quick" / f"figure-{figure.name}.json").read_bytes())
    return timeless([point["runs"] for point in kept["points"]])


def never(**settings: object) -> Numbers:
    raise AssertionError(f"{settings} was run in this process")


def refused(curve: str, order: str, share: int, nodes: int, seed: int) -> Numbers:
    """Figure 5.6, which cannot be run with 25 %."""
    if share == 25:
        raise ValueError("no quarter")
    return single.run(curve, order, share, nodes, seed)


def test_a_point_on_spark_is_the_point_of_one_process(spark: SparkSession, tmp_path: Path) -> None:
    churned = replace(churn.FIGURES[1], points=lambda quick: [
        {"curve": curve, "a": "second", "percent": 10, "nodes": 32, "subscribers": 10}
        for curve in ("SRPT", "VCube-PS")
    ])  # fmt: skip
    walked = replace(cells.FIGURE, points=lambda quick: [
        {"rate": 0.5, "size": 50.0, "nodes": 6, "moves": 1}
    ])  # fmt: skip
    figures = [small(single.FIGURES[0]), churned, walked, small(CHAPTER_4[0], 8)]
    here, there = tmp_path / "here", tmp_path / "there"
    tasks = missing(figures, there, True, 2, None)
    assert len(tasks) == 2 * sum(len(figure.points(True)) for figure in figures)
    sweep(spark, tasks, silent)
    assert missing(figures, there, True, 2, None) == []
    for figure in figures:
        figure.reproduce(here, True, 2)
        replace(figure, run=never).reproduce(there, True, 2)
        assert numbers(figure, there) == numbers(figure, here)


def test_cheap_points_go_first_and_shared_runs_are_asked_for_once(tmp_path: Path) -> None:
    tasks = missing(FIGURES, tmp_path, False, None, None)
    assert len({str(task.kept) for task in tasks}) == len(tasks) > 9000
    of_chapter_4 = [task for task in tasks if task.run == "experiments.cube.chapter4:run"]
    points = {str(point) for figure in CHAPTER_4 for point in figure.points(False)}
    assert {str(_point(task.settings)) for task in of_chapter_4} == points
    assert all(task.sources == chapter4.CODE for task in of_chapter_4)
    sizes = [task.settings["nodes"] for task in tasks if task.run.endswith("several:run_58")]
    half = len(sizes) // 2
    assert max(sizes[:half]) <= 256
    assert sizes[-1] == max(sizes) == 4096
    assert [task.settings["seed"] for task in tasks if task.settings.get("nodes") == 4096][-1] == 1


def _point(settings: Settings) -> Settings:
    return {key: value for key, value in settings.items() if key != "seed"}


def test_what_is_finished_is_not_run_again(spark: SparkSession, tmp_path: Path) -> None:
    figure = small(single.FIGURES[0])
    tasks = missing([figure], tmp_path, True, 2, None)
    sweep(spark, tasks[1:], silent)
    assert missing([figure], tmp_path, True, 2, None) == tasks[:1]
    kept = {path.name: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json")}
    sweep(spark, missing([figure], tmp_path, True, 2, None), silent)
    after = {path.name: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json")}
    assert len(after) == len(tasks) == len(kept) + 1
    assert {name: after[name] for name in kept} == kept


def test_a_point_that_fails_is_told_and_stops_no_other(spark: SparkSession, tmp_path: Path) -> None:
    figure = replace(small(single.FIGURES[0]), run=refused)
    tasks = missing([figure], tmp_path, True, 1, None)
    with pytest.raises(Misuse, match=r"3 of 6 runs failed: figure 5\.6 .*ValueError: no quarter"):
        sweep(spark, tasks, silent)
    left = missing([figure], tmp_path, True, 1, None)
    assert [task.settings["share"] for task in left] == [25] * 3


def test_a_stopped_sweep_keeps_what_is_finished(spark: SparkSession, tmp_path: Path) -> None:
    figure = small(several.FIGURES[0], 64)
    tasks = missing([figure], tmp_path, True, 40, None)
    seen: list[float] = []

    def stop(what: str, share: float) -> None:
        seen.append(share)
        if share:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(spark, tasks, stop)
    left = missing([figure], tmp_path, True, 40, None)
    assert len(tasks) == 320
    assert 160 < len(left) < 320
    # Tasks that were running may end; then nothing goes on behind.
    before = None
    while left != before:
        time.sleep(1.0)
        before, left = left, missing([figure], tmp_path, True, 40, None)
    assert len(left) > 160
    assert not [*tmp_path.rglob("*.aside")]


def test_sources_that_have_changed_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    [task, *_] = missing([example.FIGURE], tmp_path, True, 1, None)
    old = msgspec.structs.replace(task, code="0123")
    with pytest.raises(Misuse, match=r"not those that the sweep began with.*1 of 1 runs are miss"):
        sweep(spark, [old], silent)


def test_a_folder_that_executors_do_not_see_or_do_not_share(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [task, *_] = missing([example.FIGURE], tmp_path, True, 1, None)
    with pytest.raises(Misuse, match="an executor does not see"):
        run_to_store(msgspec.msgpack.encode(task))
    Path(task.folder).mkdir(parents=True)
    assert run_to_store(msgspec.msgpack.encode(task)) is None
    assert Store(Path(task.folder)).get(task.kept)["relays"] == 2

    def elsewhere(root: str) -> Callable[[bytes], str | None]:
        return lambda encoded: None

    monkeypatch.setattr(module, "_worker", elsewhere)
    other = msgspec.structs.replace(task, folder=str(tmp_path / "other"))
    with pytest.raises(Misuse, match=r"1 runs left no file in .*other"):
        sweep(spark, [other], silent)


def test_an_interrupted_command_ends_and_goes_on(tmp_path: Path) -> None:
    """As from the keyboard: every process of the command's group hears it."""
    words = [sys.executable, "-m", "experiments.cube", "5.8", "--quick", "--out", str(tmp_path),
             "--master", "local[1]"]  # fmt: skip
    process = subprocess.Popen(
        words, cwd=ROOT, start_new_session=True, stderr=subprocess.PIPE, text=True
    )
    try:
        while not [*tmp_path.rglob("*.json")] and process.poll() is None:
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 130
    assert said == "experiments: stopped; the same command goes on\n"
    several = next(figure for figure in FIGURES if figure.name == "5.8")
    tasks = len(several.points(True)) * several.quick_runs
    assert 0 < len(missing([several], tmp_path, True, None, None)) < tasks
