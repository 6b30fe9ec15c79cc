"""`python -m experiments.content [--figure N ...] [--quick] [--runs N] [--out FOLDER]`"""

from __future__ import annotations

from experiments.command import command
from experiments.content import golden, panels, scale, size
from experiments.figure import Figure

FIGURES: list[Figure] = [golden.FIGURE, *panels.FIGURES, size.FIGURE, scale.FIGURE]

if __name__ == "__main__":
    command("content", "Parametric subscriptions, section 5", FIGURES, "seconds")
