"""Points of a figure: each is run once per seed, kept on disk, and never run again.

A point is a table of settings. Its file is named after the settings, the seed and the version of
the code that runs it, so that a change of any of them is a new point. An interrupted figure goes
on where it stopped.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from hashlib import blake2b
from math import sqrt
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

ROOT = Path(__file__).parents[1]

# What runs of the real machines depend on.
MACHINES = (
    "src/inorder/protocols/total/*.py", "src/inorder/sim/*.py", "src/inorder/guarantee/none.py",
    "src/inorder/core/member.py", "experiments/*.py",
)  # fmt: skip

Settings = dict[str, Any]
Numbers = dict[str, Any]

# The place of a point among all points, and a seed.
Job = tuple[int, int]


class Store:
    """Finished points under one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, settings: Settings) -> Numbers | None:
        try:
            kept: dict[str, Any] = json.loads(self._path(settings).read_text())
        except (FileNotFoundError, ValueError):
            return None  # never run, or cut short by a crash
        numbers: Numbers = kept["numbers"]
        return numbers

    def put(self, settings: Settings, numbers: Numbers) -> None:
        path = self._path(settings)
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = path.with_suffix(".aside")
        aside.write_text(json.dumps({"settings": settings, "numbers": numbers}, sort_keys=True))
        os.replace(aside, path)

    def known(self, point: Settings, title: str, code: str) -> int:
        """How many runs of a point are there, from the first seed on."""
        return next(
            count
            for count, seed in enumerate(itertools.count(1))
            if self.get({**point, "seed": seed, "of": title, "code": code}) is None
        )

    def _path(self, settings: Settings) -> Path:
        text = json.dumps(settings, sort_keys=True)
        return self._folder / f"{blake2b(text.encode(), digest_size=10).hexdigest()}.json"


def run_all(
    store: Store,
    points: Sequence[Settings],
    runs: int | Sequence[int],
    run: Callable[..., Numbers],
    title: str,
    code: str | Sequence[str],
    workers: int = 1,
) -> list[list[Numbers]]:
    """The numbers of every point and seed, with a bar for what is not known yet.

    `runs` and `code` may differ from point to point. With several `workers`, which are processes,
    `run` must be a function of a module.
    """
    counts = [runs] * len(points) if isinstance(runs, int) else list(runs)
    codes = [code] * len(points) if isinstance(code, str) else list(code)
    seeds = range(1, max(counts, default=0) + 1)
    jobs = [(place, seed) for seed in seeds for place, count in enumerate(counts) if seed <= count]
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    found: dict[Job, Numbers] = {}
    missing: dict[Job, Settings] = {}
    with Progress(*columns, transient=True) as progress:
        task = progress.add_task(title, total=len(jobs))
        for place, seed in jobs:
            settings = {**points[place], "seed": seed, "of": title, "code": codes[place]}
            numbers = store.get(settings)
            if numbers is None:
                missing[place, seed] = settings
            else:
                found[place, seed] = numbers
                progress.advance(task)
        calls = {(place, seed): {**points[place], "seed": seed} for place, seed in missing}
        for job, numbers in _run(run, calls, workers):
            store.put(missing[job], numbers)
            found[job] = numbers
            progress.advance(task)
    return [
        [found[place, seed] for seed in range(1, count + 1)] for place, count in enumerate(counts)
    ]


def _run(
    run: Callable[..., Numbers], jobs: dict[Job, Settings], workers: int
) -> Iterator[tuple[Job, Numbers]]:
    """What each job gives, in this process or as the workers end them."""
    if workers == 1 or len(jobs) < 2:
        for job, settings in jobs.items():
            yield job, run(**settings)
        return
    with ProcessPoolExecutor(workers) as pool:
        running = {pool.submit(run, **settings): job for job, settings in jobs.items()}
        try:
            for done in as_completed(running):
                yield running[done], done.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def version(patterns: Sequence[str]) -> str:
    """A short name for the present state of some sources, given as globs from the root."""
    digest = blake2b(digest_size=8)
    for pattern in patterns:
        found = sorted(ROOT.glob(pattern))
        assert found, f"{pattern} matches nothing"
        for path in found:
            digest.update(path.read_bytes())
    return digest.hexdigest()


def mean(values: Iterable[float]) -> float:
    values = list(values)
    return sum(values) / len(values) if values else float("nan")


def spread(values: Iterable[float]) -> float:
    """The standard deviation between runs (of the sample, so a single run has none)."""
    values = list(values)
    if len(values) < 2:
        return 0.0
    middle = mean(values)
    return sqrt(sum((value - middle) ** 2 for value in values) / (len(values) - 1))


def shown(values: Iterable[float], digits: int = 2) -> str:
    """Mean and spread, as they stand in a table.

    >>> shown([1.0, 2.0, 3.0])
    '2.00 ± 1.00'
    """
    values = list(values)
    return f"{mean(values):.{digits}f} ± {spread(values):.{digits}f}"
