"""`python -m experiments.cube [NAME ...] [--quick] [--runs N] [--most NODES] [--master WHERE]`"""

from __future__ import annotations

from experiments.command import command
from experiments.cube import (
    aggregation,
    answers,
    brokered,
    cells,
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
    cells.FIGURE,
]

if __name__ == "__main__":
    title = "The thesis on the hypercube, chapters 2 to 6"
    command("cube", title, FIGURES, "minutes", page.write, on_spark=True)
