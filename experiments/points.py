"""Points of a figure: each is run once per seed, kept on disk, and never run again.

A point is a table of settings. Its file is named after the settings, the seed and the version of
the code that runs it, so that a change of any of them is a new point. An interrupted figure goes
on where it stopped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
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

    def _path(self, settings: Settings) -> Path:
        text = json.dumps(settings, sort_keys=True)
        return self._folder / f"{blake2b(text.encode(), digest_size=10).hexdigest()}.json"


def run_all(
    store: Store,
    points: Sequence[Settings],
    runs: int,
    run: Callable[..., Numbers],
    title: str,
    code: str,
) -> list[list[Numbers]]:
    """The numbers of every point and seed, with a bar for what is not known yet."""
    jobs = [(point, seed) for seed in range(1, runs + 1) for point in points]
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    found: dict[tuple[int, int], Numbers] = {}
    with Progress(*columns, transient=True) as progress:
        task = progress.add_task(title, total=len(jobs))
        for place, (point, seed) in enumerate(jobs):
            settings = {**point, "seed": seed, "of": title, "code": code}
            numbers = store.get(settings)
            if numbers is None:
                numbers = run(**point, seed=seed)
                store.put(settings, numbers)
            found[place % len(points), seed] = numbers
            progress.advance(task)
    return [[found[place, seed] for seed in range(1, runs + 1)] for place in range(len(points))]


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
