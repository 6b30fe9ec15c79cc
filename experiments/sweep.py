"""The points of several figures as one sweep on Spark: a task for each point and seed.

Rule 1: a task runs its point and puts the numbers into the figure's store; the driver only counts.
        Whatever stops the sweep, what is finished is kept, and the next call goes on.
Rule 2: the points with the most runs are the cheapest ones (shown.runs), and go first; the longest
        are the last. An interrupted sweep has nearly complete tables.
Rule 3: a task runs the sources that the driver has loaded, or refuses: a file that is edited during
        a long sweep, or another checkout on another host, would mix two versions.
Rule 4: a point that fails is told at the end, and stops no other.

The folder, and this checkout, must be seen by the driver and all executors under the same names.
Figures that measure processor time, as those of `content` do, are not run so: two runs on one
machine disturb each other's clocks (points.py).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from experiments.figure import Figure
from experiments.points import ROOT, Job, Settings, Store, jobs, version
from inorder.cli.sweep.tasks import reason, run_tasks
from inorder.core.errors import Misuse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# How many failures are told.
TOLD = 5


class Task(Struct, frozen=True):
    """A run as it travels: `run` is `module:function`."""

    run: str
    settings: Settings
    kept: Settings
    folder: str
    sources: tuple[str, ...]
    code: str


def missing(
    figures: Sequence[Figure], folder: Path, quick: bool, runs: int | None, most: int | None
) -> list[Task]:
    """The runs of these figures that are not in their stores, in the order of rule 2."""
    ranked: dict[str, tuple[tuple[int, int, int], Task]] = {}
    for figure in figures:
        points = figure.points(quick)
        counts = figure.counts(folder, quick, runs, most)
        store = figure.store(folder)
        for job in jobs(points, counts, figure.title_kept, figure.codes(points)):
            # Figures that share their runs ask for them once.
            name = str(store.path(job.kept))
            if name not in ranked and store.get(job.kept) is None:
                ranked[name] = _rank(job, counts[job.place]), _task(figure, job, store)
    return [task for _, task in sorted(ranked.values(), key=lambda pair: pair[0])]


def _rank(job: Job, count: int) -> tuple[int, int, int]:
    return -count, job.settings.get("nodes", 0), job.settings["seed"]


def _task(figure: Figure, job: Job, store: Store) -> Task:
    run = f"{figure.run.__module__}:{figure.run.__qualname__}"
    folder = str(store.folder.absolute())
    return Task(run, job.settings, job.kept, folder, figure.sources(job.settings), job.code)


def sweep(spark: SparkSession, tasks: Sequence[Task], show: Callable[[str, float], None]) -> None:
    """Run them all; a `Misuse` says which have failed."""
    for folder in {task.folder for task in tasks}:
        Path(folder).mkdir(parents=True, exist_ok=True)

    def tell(done: int) -> None:
        show(f"{done} of {len(tasks)} runs", done / len(tasks))

    encoded = list(map(msgspec.msgpack.encode, tasks))
    complaints, failure = run_tasks(spark, encoded, _worker(str(ROOT)), tell)
    left = [task for task in tasks if Store(Path(task.folder)).get(task.kept) is None]
    if failure is not None:
        told = f"{len(left)} of {len(tasks)} runs are missing; call again to go on"
        raise Misuse(f"Spark gave up ({reason(failure)}): {told}")
    if complaints:
        more = f", and {len(complaints) - TOLD} more" if len(complaints) > TOLD else ""
        told = f"{len(complaints)} of {len(tasks)} runs failed"
        raise Misuse(f"{told}: {'; '.join(complaints[:TOLD])}{more}")
    if left:
        told = f"{len(left)} runs left no file in {left[0].folder}"
        raise Misuse(f"{told}: a sweep needs a folder that all hosts share")


def _worker(root: str) -> Callable[[bytes], str | None]:
    """What a task does. It travels by value, as an executor may not know this package yet."""

    def work(encoded: bytes) -> str | None:
        if root not in sys.path:
            sys.path.append(root)
        from experiments.sweep import run_to_store

        return run_to_store(encoded)

    return work


def run_to_store(encoded: bytes) -> str | None:
    """Run a task's point; what went wrong, if anything did."""
    task = msgspec.msgpack.decode(encoded, type=Task)
    folder = Path(task.folder)
    if not folder.is_dir():
        raise Misuse(f"an executor does not see {folder}: a sweep needs a folder all hosts share")
    module, _, name = task.run.partition(":")
    run = getattr(import_module(module), name)
    if _loaded(task.sources) != task.code:
        raise Misuse("the sources are not those that the sweep began with")
    try:
        numbers = run(**task.settings)
    except Exception as error:
        return f"{task.kept['of']} {task.settings}: {type(error).__name__}: {error}"
    Store(folder).put(task.kept, numbers)
    return None


@cache
def _loaded(sources: tuple[str, ...]) -> str:
    """Asked first when a worker has just imported them."""
    return version(sources)
