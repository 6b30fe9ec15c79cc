"""A sweep: a grid of scenarios, each with many seeds, simulated side by side on Spark.

Rule 1: a point is a task's business alone. The task runs it and writes its file, aside and renamed;
        the driver only hands out points and counts, so a killed sweep keeps what is finished.
Rule 2: what has a file is not run again (the file's name is a digest of the point, grid.py); a
        point that failed is.
Rule 3: nothing starts before every point of the grid is known to be valid.

The folder must be one that the driver and all executors see under the same name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from inorder.cli.sweep.grid import Point, SweepTable, points, read
from inorder.cli.sweep.point import MARK, encode, file_name, run_to_file
from inorder.core.errors import BadScenario, Misuse
from inorder.core.limits import SWEEP_TASKS_MAX
from inorder.core.settings import convert

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Progress = Callable[[str, float], None]

# Seconds between two looks at how far the tasks are.
LOOK_S = 0.2

GROUP = "inorder sweep"


def sweep(
    spark: SparkSession,
    table: Mapping[str, Any],
    seeds: int | Sequence[int] | None = None,
    out: str | Path | None = None,
    *,
    fresh: bool = False,
    progress: Progress | None = None,
) -> DataFrame:
    """Run what is not finished yet; a row per point, with the grid's values as columns.

    `seeds` and `out` override those of the table; `fresh` runs everything again.
    """
    plan = Sweep(convert(dict(table), SweepTable, ""), seeds, out)
    plan.run(spark, fresh, progress)
    return plan.rows(spark)


class Sweep:
    """A validated sweep."""

    def __init__(
        self,
        table: SweepTable,
        seeds: int | Sequence[int] | None = None,
        out: str | Path | None = None,
    ) -> None:
        place = str(out or table.run.out)
        if "://" in place:
            raise Misuse(f"{place} is a URL: a sweep needs a folder that all hosts have mounted")
        self.out = Path(place).absolute()
        self.table = table
        self.points = points(table, seeds)
        self.keys = list(self.points[0].values)

    @classmethod
    def load(cls, path: Path, out: Path | None = None) -> Sweep:
        try:
            text = path.read_bytes()
        except OSError as error:
            raise BadScenario(str(path), f"cannot be read: {error.strerror}") from None
        return cls(read(text, str(path)), out=out)

    def finished(self) -> set[str]:
        """The digests of points that need not be run."""
        names = {path.name for path in self.out.glob("point-*.parquet")}
        return {point.digest for point in self.points if file_name(point.digest) in names}

    def run(
        self, spark: SparkSession, fresh: bool = False, progress: Progress | None = None
    ) -> int:
        """Run the points that are not finished; how many these were."""
        self._prepare(fresh)
        done = self.finished()
        waiting = [point for point in self.points if point.digest not in done]
        show = progress or (lambda what, share: None)
        if waiting:
            self._run_all(spark, waiting, show)
        return len(waiting)

    def _prepare(self, fresh: bool) -> None:
        mark = self.out / MARK
        try:
            self.out.mkdir(parents=True, exist_ok=True)
            if not mark.exists() and any(self.out.iterdir()):
                raise Misuse(f"{self.out} is not empty, and not the folder of a sweep")
            mark.write_bytes(msgspec.json.format(msgspec.json.encode(self.table)) + b"\n")
        except OSError as error:
            raise Misuse(f"cannot write to {self.out}: {error.strerror}") from None
        if fresh:
            for point in self.points:
                for failed in (False, True):
                    (self.out / file_name(point.digest, failed)).unlink(missing_ok=True)

    def _run_all(self, spark: SparkSession, waiting: list[Point], show: Progress) -> None:
        from pyspark import inheritable_thread_target

        context = spark.sparkContext
        counted = context.accumulator(0)
        folder = str(self.out)
        slices = min(len(waiting), SWEEP_TASKS_MAX)

        def in_task(encoded: Any) -> None:
            for each in encoded:
                run_to_file(each, folder)
                counted.add(1)

        def job() -> None:
            context.setJobGroup(GROUP, f"{len(waiting)} points", interruptOnCancel=True)
            context.parallelize(list(map(encode, waiting)), slices).foreachPartition(in_task)

        before = len(self.points) - len(waiting)

        def tell() -> None:
            done = min(before + int(counted.value or 0), len(self.points))
            show(f"{done} of {len(self.points)} points", done / len(self.points))

        tell()
        with ThreadPoolExecutor(1) as pool:
            running: Future[None] = pool.submit(inheritable_thread_target(spark)(job))
            try:
                while not _is_over(running):
                    tell()
            except BaseException:
                context.cancelJobGroup(GROUP)
                raise
        tell()
        self._check(running.exception(), waiting)

    def _check(self, error: BaseException | None, waiting: list[Point]) -> None:
        """Every point has left its file, or it is said how many have not."""
        there = {path.name for path in self.out.glob("*.parquet")}
        lost = [
            point
            for point in waiting
            if not there & {file_name(point.digest, failed) for failed in (False, True)}
        ]
        if error is not None:
            told = f"{len(lost)} of {len(self.points)} points are not run; call again to go on"
            raise Misuse(f"Spark gave up ({_said(error)}): {told}") from None
        if lost:
            told = f"{len(lost)} points left no file in {self.out}"
            raise Misuse(f"{told}: a sweep needs a folder that all hosts share")

    def rows(self, spark: SparkSession) -> DataFrame:
        """What is in the folder of the points of this sweep."""
        from inorder.cli.sweep.rows import rows

        return rows(spark, self.out, self.points)

    def summary(self, spark: SparkSession) -> list[dict[str, Any]]:
        """Mean and spread over the seeds, a line per combination of the grid's values."""
        from inorder.cli.sweep.rows import summary

        return summary(self.rows(spark), self.points)


def _is_over(running: Future[None]) -> bool:
    from concurrent.futures import wait

    return bool(wait([running], LOOK_S).done)


def _said(error: BaseException) -> str:
    """Our own words in a Java trace, if there are any."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith("inorder.core.errors.")]
    if ours:
        return ours[-1].partition(": ")[2]
    return (lines or [type(error).__name__])[-1 if len(lines) == 1 else 0][:200]
