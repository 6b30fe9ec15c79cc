"""`python -m experiments.cube [NAME ...] [--quick] [--runs N] [--out FOLDER]`"""

from __future__ import annotations

from experiments.command import command
from experiments.cube import brokered, churn, example, several, single, topics, trees
from experiments.figure import Figure

FIGURES: list[Figure] = [
    trees.FIGURE,
    example.FIGURE,
    *single.FIGURES,
    *several.FIGURES,
    topics.FIGURE,
    *churn.FIGURES,
    brokered.FIGURE,
]

if __name__ == "__main__":
    command("cube", "The thesis on the hypercube, chapters 2 to 5", FIGURES, "a minute")
