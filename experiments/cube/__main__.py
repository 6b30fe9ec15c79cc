"""`python -m experiments.cube [NAME ...] [--quick] [--runs N] [--most NODES] [--out FOLDER]`"""

from __future__ import annotations

from experiments.command import command
from experiments.cube import (
    aggregation,
    answers,
    brokered,
    churn,
    entries,
    example,
    page,
    several,
    single,
    topics,
    trees,
)
from experiments.figure import Figure

FIGURES: list[Figure] = [
    trees.FIGURE,
    entries.FIGURE,
    *aggregation.FIGURES,
    example.FIGURE,
    *single.FIGURES,
    *several.FIGURES,
    answers.FIGURE,
    topics.FIGURE,
    *churn.FIGURES,
    brokered.FIGURE,
]

if __name__ == "__main__":
    command("cube", "The thesis on the hypercube, chapters 2 to 5", FIGURES, "minutes", page.write)
