"""`inorder sweep`: a grid of scenarios, each with many seeds, simulated on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inorder.cli.spark import Conf, Master, start

if TYPE_CHECKING:
    from inorder.cli.sweep.plan import Sweep

# A file or a pipe has no edge to keep away from.
WIDE = 160


def sweep(
    file: Annotated[Path, typer.Argument(help="The sweep (examples/sweep.toml is one).")],
    out: Annotated[Path | None, typer.Option(help="Overrides the file's folder.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Run finished points again.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
    master: Master = "",
    conf: Conf = None,
) -> None:
    """Simulate every combination of a grid with every seed, and sum up over the seeds.

    Finished points are kept: after an interruption the same command goes on. Exit code 1 when a
    point failed.

    Example: inorder sweep examples/sweep.toml --out out/sweep
    """
    from inorder.cli.screen import progress_steps
    from inorder.cli.sweep.plan import Sweep

    plan = Sweep.load(file, out)
    with progress_steps() as progress:
        spark = start(master, conf, progress)
        ran = plan.run(spark, fresh, progress)
        progress("summing up", 0.0)
        lines = plan.summary(spark)
        failures = _failures(plan, spark) if any(line["failed"] for line in lines) else []
    if json:
        import msgspec

        told = {"points": len(plan.points), "ran": ran, "failures": failures}
        answer = {"out": str(plan.out), **told, "summary": lines}
        typer.echo(msgspec.json.encode(answer).decode())
    else:
        _show(plan, ran, lines, failures)
    if failures:
        raise typer.Exit(1)


def _failures(plan: Sweep, spark: Any) -> list[dict[str, Any]]:
    failed = plan.rows(spark).where("error is not null").select("point", "seed", "error")
    return [row.asDict() for row in failed.collect()]


def _show(
    plan: Sweep, ran: int, lines: list[dict[str, Any]], failures: list[dict[str, Any]]
) -> None:
    from rich.table import Table
    from rich.text import Text

    from inorder.cli.screen import console

    screen = console()
    if not screen.is_terminal:
        screen.width = WIDE
    table = Table(box=None, pad_edge=False, header_style="dim")
    for key in plan.keys:
        table.add_column(key)
    for heading in ("seeds", "events", "deliveries", "late %", "p50 ms", "p99 ms"):
        table.add_column(heading, justify="right")
    table.add_column("broken promises" if plan.table.judge else "")
    for line in lines:
        table.add_row(
            *(Text(in_words(line["values"][key])) for key in plan.keys),
            f"{line['seeds'] - line['failed']}",
            *(_spread(line[name], 1.0, 0) for name in ("published", "delivered")),
            _spread(line["late_share"], 100.0, 2),
            *(_spread(line[name], 1e3, 1) for name in ("delay_p50", "delay_p99")),
            _broken(line),
        )
    kept = len(plan.points) - ran
    screen.print(
        f"[bold]{len(plan.points)} points[/bold]  {ran} run now, {kept} from before; "
        "mean ± standard deviation over the seeds",
        highlight=False,
    )
    screen.print(table)
    for failure in failures[:10]:
        place = f"point {failure['point']}, seed {failure['seed']}"
        screen.print(Text(f"failed: {place}: {failure['error']}", "red"))
    screen.print(f"rows: {plan.out}", highlight=False, markup=False)


def in_words(value: Any) -> str:
    """A value of the grid, short.

    >>> in_words({"guarantee": "total", "mode": "tag"}), in_words(5)
    ('guarantee=total mode=tag', '5')
    """
    if isinstance(value, dict):
        return " ".join(f"{key}={in_words(inner)}" for key, inner in value.items())
    return str(value)


def _spread(figure: dict[str, float | None], unit: float, digits: int) -> str:
    mean, sd = figure["mean"], figure["sd"]
    if mean is None:
        return "-"
    told = f"{mean * unit:,.{digits}f}"
    return told if sd is None else f"{told} ± {sd * unit:,.{digits}f}"


def _broken(line: dict[str, Any]) -> str:
    found = line["violations"]
    words = ", ".join(f"{name} {count:,}" for name, count in found.items() if count)
    return words or ("none" if found else "")
