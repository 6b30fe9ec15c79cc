"""`python -m experiments.total [--figure N ...] [--quick] [--runs N] [--out FOLDER]`"""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown

from experiments.total import buffer, dynamic, latency, overhead, patterns, rivals
from experiments.total.figure import Figure

FIGURES: list[Figure] = [
    patterns.FIGURE,
    latency.FIGURE,
    overhead.FIGURE,
    buffer.FIGURE,
    *dynamic.FIGURES,
    *rivals.FIGURES,
]


def main() -> None:
    known = sorted(number for figure in FIGURES for number in figure.numbers)
    parser = argparse.ArgumentParser(prog="python -m experiments.total", description=__doc__)
    parser.add_argument("--figure", type=int, action="append", choices=known, metavar="N")
    parser.add_argument("--quick", action="store_true", help="small sizes, few runs: minutes")
    parser.add_argument("--runs", type=int, help="runs a point, instead of the figure's own")
    parser.add_argument("--out", type=Path, default=Path("out/experiments/total"))
    arguments = parser.parse_args()
    wanted = arguments.figure or known
    console = Console()
    tables = []
    for figure in FIGURES:
        if {*figure.numbers} & {*wanted}:
            text = figure.reproduce(arguments.out, arguments.quick, arguments.runs)
            tables.append(text)
            if console.is_terminal:
                console.print(Markdown(text))
            else:
                print(text)
    if arguments.figure is None:
        folder = arguments.out / "quick" if arguments.quick else arguments.out
        (folder / "tables.md").write_text("# Report 9/2011, section 6\n\n" + "\n".join(tables))


if __name__ == "__main__":
    main()
