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
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from inorder.cli.sweep.grid import Point, SweepTable, points, read
from inorder.cli.sweep.point import MARK, encode, file_name, run_to_file
from inorder.cli.sweep.tasks import reason, run_tasks
from inorder.core.errors import BadScenario, Misuse
from inorder.core.settings import convert

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Progress = Callable[[str, float], None]


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
        before = len(self.points) - len(waiting)

        def tell(ran: int) -> None:
            done = before + ran
            show(f"{done} of {len(self.points)} points", done / len(self.points))

        work = partial(run_to_file, folder=str(self.out))
        _, failure = run_tasks(spark, list(map(encode, waiting)), work, tell)
        self._check(failure, waiting)

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
            raise Misuse(f"Spark gave up ({reason(error)}): {told}") from None
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
