"""`inorder run`: the main job, from publications to a verdict."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inorder.cli.spark import Conf, Master, start

if TYPE_CHECKING:
    from rich.console import Console

    from inorder.cli.job import Job
    from inorder.cli.job.summary import Variant


def run(
    file: Annotated[Path, typer.Argument(help="The job (examples/market.toml is one).")],
    seed: Annotated[int | None, typer.Option(help="Overrides the file's seed.")] = None,
    out: Annotated[Path | None, typer.Option(help="Overrides the file's folder.")] = None,
    master: Master = "",
    conf: Conf = None,
    json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Run a described job: publish or simulate, match and order, audit on Spark, report, sum up.

    Example: inorder run examples/market.toml --seed 11
    """
    from inorder.cli.job import load_job
    from inorder.cli.screen import console, progress_steps

    job = load_job(file, seed=seed, out=out)
    with progress_steps() as progress:
        variants = job.run(lambda: start(master, conf, progress), progress)
    if json:
        print(job.as_json(variants))
    else:
        _summary(console(), job, variants)


def _summary(screen: Console, job: Job, variants: list[Variant]) -> None:
    from rich.table import Table

    screen.print(f"\n[bold]{job.title}[/bold]", highlight=False)
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("order", "events", "deliveries", "disagreements", "late", "detectors agree"):
        table.add_column(heading, justify="left" if heading == "order" else "right")
    for variant in variants:
        table.add_row(*variant.cells())
    screen.print(table)
    for line in job.sentences(variants):
        screen.print(line, highlight=False)
    for report in job.reports():
        screen.print(f"report: {report}", highlight=False)
