"""`python -m experiments.total [--figure N ...] [--quick] [--runs N] [--out FOLDER]`"""

from __future__ import annotations

from experiments.command import command
from experiments.figure import Figure
from experiments.total import (
    buffer,
    dynamic,
    latency,
    moving,
    overhead,
    patterns,
    rivals,
    sources,
    swap_fit,
)

FIGURES: list[Figure] = [
    sources.FIGURE,
    patterns.FIGURE,
    latency.FIGURE,
    overhead.FIGURE,
    buffer.FIGURE,
    swap_fit.FIGURE,
    *dynamic.FIGURES,
    moving.FIGURE,
    *rivals.FIGURES,
]


if __name__ == "__main__":
    command("total", "Report 9/2011, section 6", FIGURES, "minutes")
