"""The command of a paper: `[NAME ...] [--figure N ...] [--quick] [--runs N] [--out FOLDER]`.

Some papers' points are run on Spark, with `--master`; the others' in this process (sweep.py).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown

from experiments.figure import Figure
from experiments.sweep import missing, sweep
from inorder.cli.screen import progress_steps
from inorder.cli.spark import start
from inorder.core.errors import InorderError

# What becomes of all tables together: the folder, the tables, whether they are the quick ones.
Finish = Callable[[Path, Sequence[str], bool], None]


def command(
    package: str,
    title: str,
    figures: Sequence[Figure],
    quick_takes: str,
    finish: Finish | None = None,
    on_spark: bool = False,
) -> None:
    """Run the figures that the arguments name, all if none, and show their tables."""
    try:
        _command(package, title, figures, quick_takes, finish, on_spark)
    except InorderError as error:
        sys.exit(f"experiments: {error}")
    except KeyboardInterrupt:
        print("experiments: stopped; the same command goes on", file=sys.stderr)
        sys.exit(130)


def _command(
    package: str,
    title: str,
    figures: Sequence[Figure],
    quick_takes: str,
    finish: Finish | None,
    on_spark: bool,
) -> None:
    known = [str(number) for figure in figures for number in figure.numbers]
    program = f"python -m experiments.{package}"
    parser = argparse.ArgumentParser(prog=program, description=title)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(known)}")
    parser.add_argument("--figure", action="append", choices=known, metavar="N")
    parser.add_argument("--quick", action="store_true", help=f"small and few: {quick_takes}")
    parser.add_argument("--runs", type=int, help="runs a point, instead of the figure's own")
    parser.add_argument("--most", type=int, metavar="N", help="nothing larger than so many nodes")
    if on_spark:
        parser.add_argument(
            "--master", default="", help="where Spark runs: local[2], spark://host:7077, ..."
        )
    parser.add_argument("--out", type=Path, default=Path(f"out/experiments/{package}"))
    arguments = parser.parse_args()
    if unknown := sorted({*arguments.names} - {*known}):
        parser.error(f"{unknown[0]!r} is not one of {', '.join(known)}")
    named = [*arguments.names, *(arguments.figure or ())]
    wanted = {*(named or known)}
    console = Console()
    tables = []
    chosen = [figure for figure in figures if {*map(str, figure.numbers)} & wanted]
    how = (arguments.out, arguments.quick, arguments.runs, arguments.most)
    if on_spark and (tasks := missing(chosen, *how)):
        with progress_steps() as progress:
            sweep(start(arguments.master, None, progress), tasks, progress)
    for figure in chosen:
        text = figure.reproduce(*how)
        tables.append(text)
        if console.is_terminal:
            console.print(Markdown(text))
        else:
            print(text)
    if not named:
        folder = arguments.out / "quick" if arguments.quick else arguments.out
        (folder / "tables.md").write_text(f"# {title}\n\n" + "\n".join(tables))
        if finish:
            finish(folder, tables, arguments.quick)
