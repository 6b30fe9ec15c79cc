"""What a figure is made of, and how its table is written."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from pathlib import Path

from experiments.points import Numbers, Settings, Store, mean, run_all, shown, spread, version

NOT_RUN = "not run at this size"


@dataclass(frozen=True)
class Column:
    """One measured number: its key, its heading, how many digits, what to multiply it with."""

    key: str
    heading: str
    digits: int = 2
    times: float = 1.0


@dataclass(frozen=True)
class Row:
    """One point of a figure, all its runs."""

    settings: Settings
    runs: Sequence[Numbers]

    def values(self, key: str) -> list[float]:
        return [float(numbers[key]) for numbers in self.runs if numbers.get(key) is not None]

    def mean(self, key: str) -> float:
        return mean(self.values(key))

    def exceeds(self, other: Row, key: str) -> bool:
        """Clearly above another point of the same seeds: by two standard errors of the difference.

        A difference no larger than that is called no difference, in whichever direction.
        """
        # One of them may have fewer runs yet; both begin with the first seed.
        pairs = zip(self.values(key), other.values(key), strict=False)
        gains = [mine - others for mine, others in pairs]
        return bool(gains) and mean(gains) > 2.0 * spread(gains) / sqrt(len(gains))


@dataclass(frozen=True)
class Figure:
    """`labels` are the settings shown in the table; `paper` gives the paper's number for a row."""

    name: str
    title: str
    setting: str
    points: Callable[[bool], list[Settings]]
    run: Callable[..., Numbers]
    columns: Sequence[Column]
    labels: Sequence[str]
    judge: Callable[[list[Row]], list[str]]
    paper: Callable[[Settings], str] = lambda settings: "shape"
    # What the paper calls the last column, and the figures that `--figure` finds this one by.
    source: str = "report"
    numbers: Sequence[int | str] = field(default_factory=tuple)
    # Pictures to write beside the tables: file name and content.
    charts: Callable[[list[Row]], Mapping[str, str]] = lambda rows: {}
    # Sources a point depends on: it is run again when one of them changes.
    code: Sequence[str] = ()
    # Full runs a point; the report's simulations have 10, its prototype 5.
    runs: int = 10
    quick_runs: int = 3
    # Fewer runs of points that move much; of quick ones too, if that is fewer.
    runs_at: Callable[[Settings], int] | None = None
    # Sources that only the points of a curve depend on.
    code_of: Mapping[str, Sequence[str]] = field(default_factory=dict)
    # Several figures that show different numbers of the same points keep them under one name.
    kept_as: str = ""
    # The state of these sources when they were imported, whatever is edited during a long run.
    loaded: str = field(init=False)
    loaded_of: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "loaded", version(self.code))
        loaded = {curve: version((*self.code, *more)) for curve, more in self.code_of.items()}
        object.__setattr__(self, "loaded_of", loaded)

    @property
    def title_kept(self) -> str:
        return f"figure {self.kept_as or self.name}"

    def store(self, folder: Path) -> Store:
        return Store(folder / "points" / (self.kept_as or self.name))

    def sources(self, point: Settings) -> tuple[str, ...]:
        """What its numbers depend on."""
        return (*self.code, *self.code_of.get(point.get("curve", ""), ()))

    def codes(self, points: Sequence[Settings]) -> list[str]:
        """The version of each point's sources, when they were imported."""
        return [self.loaded_of.get(point.get("curve", ""), self.loaded) for point in points]

    def counts(
        self, folder: Path, quick: bool, runs: int | None, most: int | None = None
    ) -> list[int]:
        """How many runs of each point. Points of more nodes than `most` are not run; what is known
        of them is shown."""
        count = self._count(quick, runs)
        points = self.points(quick)
        counts = [self._runs(point, count, runs is None) for point in points]
        if most is not None:
            store = self.store(folder)
            for place, (point, code) in enumerate(zip(points, self.codes(points), strict=True)):
                if point.get("nodes", 0) > most:
                    known = store.known(point, self.title_kept, code)
                    counts[place] = min(counts[place], known)
        return counts

    def reproduce(
        self, folder: Path, quick: bool, runs: int | None, most: int | None = None
    ) -> str:
        """Run what is missing, write JSON and Markdown, return the Markdown."""
        points = self.points(quick)
        counts = self.counts(folder, quick, runs, most)
        codes = self.codes(points)
        found = run_all(self.store(folder), points, counts, self.run, self.title_kept, codes)
        rows = [Row(point, each) for point, each in zip(points, found, strict=True)]
        return self._written(folder / "quick" if quick else folder, rows, quick, runs)

    def redraw(self, folder: Path) -> str | None:
        """The table and the pictures of the numbers that are in the folder, by the words, claims
        and pictures of today; nothing is run. None without numbers."""
        file = folder / f"figure-{self.name}.json"
        if not file.exists():
            return None
        kept = json.loads(file.read_text())
        rows = [Row(point["settings"], point["runs"]) for point in kept["points"]]
        return self._written(folder, rows, kept["quick"], kept["runs"])

    def _written(self, folder: Path, rows: list[Row], quick: bool, runs: int | None) -> str:
        folder.mkdir(parents=True, exist_ok=True)
        count = self._count(quick, runs)
        text = self._markdown(rows, count, quick)
        (folder / f"figure-{self.name}.md").write_text(text)
        (folder / f"figure-{self.name}.json").write_text(self._json(rows, count, quick))
        if drawn := [row for row in rows if row.runs]:
            for name, content in self.charts(drawn).items():
                (folder / name).write_text(content)
        return text

    def _count(self, quick: bool, runs: int | None) -> int:
        return runs or (self.quick_runs if quick else self.runs)

    def _judged(self, rows: list[Row]) -> list[str]:
        """By what has been run."""
        some = [row for row in rows if row.runs]
        return self.judge(some) if some else []

    def _runs(self, point: Settings, count: int, free: bool) -> int:
        return min(count, self.runs_at(point)) if self.runs_at and free else count

    def _markdown(self, rows: list[Row], count: int, quick: bool) -> str:
        shows = self.runs_at is not None
        labels = [*self.labels, "runs"] if shows else self.labels
        head = [*labels, *(column.heading for column in self.columns), self.source]
        size = "quick sizes" if quick else "full sizes"
        fewest = min((len(row.runs) for row in rows if row.runs), default=0)
        runs = f"{fewest} to {count}" if fewest < count else f"{count}"
        lines = [
            f"## Figure {self.name}: {self.title}",
            "",
            f"{self.setting}. {size.capitalize()}, {runs} runs a point, mean ± standard deviation"
            f"{self._common(rows)}.",
            "",
            "| " + " | ".join(head) + " |",
            "|" + "---|" * len(head),
        ]
        for row in rows:
            told = {**row.settings, "runs": len(row.runs)}
            cells = [str(told.get(label, "")) for label in labels]
            for column in self.columns:
                values = [column.times * value for value in row.values(column.key)]
                cells.append(shown(values, column.digits) if values else "")
            if not row.runs:
                cells[len(labels)] = NOT_RUN
            lines.append("| " + " | ".join([*cells, self.paper(row.settings)]) + " |")
        return "\n".join([*lines, "", *(f"- {line}" for line in self._judged(rows)), ""])

    def _common(self, rows: list[Row]) -> str:
        """Settings that are the same everywhere and stand in no column."""
        first, *rest = (row.settings for row in rows)
        same = [
            f"{key} {value}"
            for key, value in first.items()
            if key not in self.labels and all(other.get(key) == value for other in rest)
        ]
        return f"; {', '.join(same)}" if same else ""

    def _json(self, rows: list[Row], count: int, quick: bool) -> str:
        keys = [column.key for column in self.columns]
        points = [
            {
                "settings": row.settings,
                "mean": {key: row.mean(key) for key in keys if row.values(key)},
                "std": {key: spread(row.values(key)) for key in keys if row.values(key)},
                self.source: self.paper(row.settings),
                "runs": list(row.runs),
            }
            for row in rows
        ]
        summary = {
            "figure": self.name, "title": self.title, "setting": self.setting, "quick": quick,
            "runs": count, "points": points, "findings": self._judged(rows),
        }  # fmt: skip
        return json.dumps(summary, indent=1) + "\n"


def holds(claim: str, true: bool) -> str:
    """A claim of the paper, and whether it is ours.

    >>> holds("latency grows", False)
    'NOT reproduced: latency grows'
    """
    return f"{'reproduced' if true else 'NOT reproduced'}: {claim}"
