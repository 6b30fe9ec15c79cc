"""`python -m experiments.fifo [--figure N ...] [--quick] [--runs N] [--out FOLDER]`"""

from __future__ import annotations

from experiments.command import command
from experiments.fifo import adaptive, congestion, delays, differences, effect, lanes
from experiments.figure import Figure

FIGURES: list[Figure] = [
    *delays.FIGURES,
    differences.FIGURE,
    congestion.FIGURE,
    lanes.FIGURE,
    *effect.FIGURES,
    adaptive.FIGURE,
]

if __name__ == "__main__":
    command("fifo", "Probabilistic FIFO order, sections III and IV", FIGURES, "seconds")
