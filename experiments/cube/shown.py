"""What the figures of this package have in common: sizes, runs, columns, claims and pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from experiments.chart import Layer, line, marks
from experiments.cube import thesis
from experiments.figure import Column, Row, holds

SIZES = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
QUICK_SIZES = (8, 16, 32, 64, 128)

LATENCY = Column("latency", "latency", 1)
LAST = Column("last", "to the last", 1)
COST = (Column("moved", "messages moved", 0), Column("seconds", "seconds", 2))

MEAN = "latency: mean over the subscribers; to the last: as the thesis defines it"
SRPT_IS = "SRPT: machine Srpt"


def sizes(quick: bool, most: int = 4096) -> list[int]:
    return [size for size in (QUICK_SIZES if quick else SIZES) if size <= most]


# Of copies that a run moves, so many runs of a point: a copy takes 5 to 30 millionths of a second.
RUNS = ((70_000, 40), (150_000, 20), (300_000, 5), (700_000, 3), (2_500_000, 2))


def runs(copies: float) -> int:
    """The thesis's 40 as long as a run moves little, one where it moves millions.

    >>> runs(4095), runs(256**2), runs(512**2), runs(1024**2), runs(4096**2)
    (40, 40, 5, 2, 1)
    """
    return next((count for most, count in RUNS if copies <= most), 1)


def close(claim: str, ours: float, theirs: float, within: float = 0.05) -> str:
    """A stated number beside ours; reproduced if they differ by less than a share of it.

    >>> close("latency", 739.0, 720.0)
    'reproduced: latency: 739 (thesis 720, +2.6 %)'
    """
    apart = ours / theirs - 1.0 if theirs else float(ours != theirs)
    shown = f"{claim}: {ours:.4g} (thesis {theirs:g}, {100.0 * apart:+.1f} %)"
    return holds(shown, abs(apart) <= within)


def where(rows: Sequence[Row], **settings: object) -> list[Row]:
    """The rows with these settings."""
    wanted = settings.items()
    return [row for row in rows if all(row.settings.get(key) == value for key, value in wanted)]


def only(rows: Sequence[Row], **settings: object) -> Row | None:
    chosen = where(rows, **settings)
    return chosen[0] if len(chosen) == 1 else None


def curves(
    named: Sequence[tuple[str, Sequence[Row]]],
    x: str,
    y: Callable[[Row], float],
    stated: Callable[[Row], float | None] = lambda row: None,
) -> list[Layer]:
    """A line for each name, and the thesis's numbers as marks of its colour."""
    layers: list[Layer] = []
    for colour, (name, rows) in enumerate(named):
        drawn = line([float(row.settings[x]) for row in rows], [y(row) for row in rows], name)
        layers.append(Layer("line", drawn.x, drawn.y, name, colour=colour))
        known = [(float(row.settings[x]), stated(row)) for row in rows]
        points = [(at, value) for at, value in known if value is not None]
        if points:
            layers.append(marks([at for at, _ in points], [v for _, v in points], colour))
    return layers


def named(rows: Sequence[Row], *keys: str) -> list[tuple[str, list[Row]]]:
    """Rows by the settings that make a curve, and its name."""
    by_name: dict[str, list[Row]] = {}
    for row in rows:
        by_name.setdefault(", ".join(str(row.settings[key]) for key in keys), []).append(row)
    return list(by_name.items())


def number(figure: str, quantity: str, **at: object) -> float | None:
    found = thesis.find(figure, quantity, **at)
    return found.value if found else None
