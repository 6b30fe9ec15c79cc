"""Points of a figure: each is run once per seed, kept on disk, and never run again.

A point is a table of settings. Its file is named after the settings, the seed and the version of
the code that runs it, so that a change of any of them is a new point. An interrupted figure goes
on where it stopped.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from math import sqrt
from pathlib import Path
from typing import Any
from uuid import uuid4

from msgspec import Struct
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

ROOT = Path(__file__).parents[1]

# What runs of the real machines depend on.
MACHINES = (
    "src/inorder/protocols/total/*.py", "src/inorder/sim/*.py", "src/inorder/guarantee/none.py",
    "src/inorder/core/member.py", "experiments/*.py",
)  # fmt: skip

Settings = dict[str, Any]
Numbers = dict[str, Any]


class Job(Struct, frozen=True):
    """One run: `place` is that of its point among all points, `settings` are with the seed."""

    place: int
    settings: Settings
    title: str
    code: str

    @property
    def kept(self) -> Settings:
        """What names its file."""
        return {**self.settings, "of": self.title, "code": self.code}


def jobs(
    points: Sequence[Settings], counts: Sequence[int], title: str, codes: Sequence[str]
) -> list[Job]:
    """The runs of these points, so many of each: first all of the first seed.

    >>> [job.settings for job in jobs([{"n": 8}, {"n": 9}], [2, 1], "figure", ["v1", "v1"])]
    [{'n': 8, 'seed': 1}, {'n': 9, 'seed': 1}, {'n': 8, 'seed': 2}]
    """
    return [
        Job(place, {**points[place], "seed": seed}, title, codes[place])
        for seed in range(1, max(counts, default=0) + 1)
        for place, count in enumerate(counts)
        if seed <= count
    ]


class Store:
    """Finished points under one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, settings: Settings) -> Numbers | None:
        try:
            kept: dict[str, Any] = json.loads(self.path(settings).read_text())
        except (FileNotFoundError, ValueError):
            return None  # never run, or cut short by a crash
        numbers: Numbers = kept["numbers"]
        return numbers

    def put(self, settings: Settings, numbers: Numbers) -> None:
        path = self.path(settings)
        path.parent.mkdir(parents=True, exist_ok=True)
        # Two attempts at one point may run at once: each has its own.
        aside = path.with_name(f"{path.stem}.{uuid4().hex}.aside")
        aside.write_text(json.dumps({"settings": settings, "numbers": numbers}, sort_keys=True))
        os.replace(aside, path)

    def known(self, point: Settings, title: str, code: str) -> int:
        """How many runs of a point are there, from the first seed on."""
        return next(
            count
            for count, seed in enumerate(itertools.count(1))
            if self.get({**point, "seed": seed, "of": title, "code": code}) is None
        )

    def path(self, settings: Settings) -> Path:
        text = json.dumps(settings, sort_keys=True)
        return self.folder / f"{blake2b(text.encode(), digest_size=10).hexdigest()}.json"


def run_all(
    store: Store,
    points: Sequence[Settings],
    runs: int | Sequence[int],
    run: Callable[..., Numbers],
    title: str,
    code: str | Sequence[str],
) -> list[list[Numbers]]:
    """The numbers of every point and seed, with a bar for what is not known yet.

    `runs` and `code` may differ from point to point. What is missing is run here, one after the
    other: nothing else disturbs the clock of a run that measures time. sweep.py runs it before, on
    Spark, where points are many and count messages.
    """
    counts = [runs] * len(points) if isinstance(runs, int) else list(runs)
    codes = [code] * len(points) if isinstance(code, str) else list(code)
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    found: list[list[Numbers]] = [[] for _ in points]
    with Progress(*columns, transient=True) as progress:
        wanted = jobs(points, counts, title, codes)
        for job in progress.track(wanted, description=title):
            numbers = store.get(job.kept)
            if numbers is None:
                numbers = run(**job.settings)
                store.put(job.kept, numbers)
            found[job.place].append(numbers)
    return found


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
