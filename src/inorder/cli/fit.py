"""`inorder fit`: the delays of a trace, the law they follow, and how long to wait."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inorder.cli.spark import Conf, Master, pairs, start

if TYPE_CHECKING:
    from collections.abc import Callable

# More pairs than these are nothing to look at one by one.
ROWS_SHOWN = 50
# A file or a pipe has no edge to keep away from.
WIDE = 160

LEGEND = (
    "Under a share: how long past its expected arrival a missing event is waited for, if that "
    "share of the events may come late; * too few samples for that share, the law answers."
)


def fit(
    path: Annotated[str, typer.Argument(help="A trace folder, or a log: Parquet, JSONL or CSV.")],
    late: Annotated[float, typer.Option(help="The share of events that may come late.")] = 0.01,
    columns: Annotated[
        str, typer.Option(help="Our names of a foreign log's columns: received_at=arrival,...")
    ] = "",
    phases: Annotated[
        int, typer.Option(help="Phases of the hypoexponential law; 1 is much faster.")
    ] = 5,
    json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")] = False,
    out: Annotated[Path | None, typer.Option(help="Write the rows here, as Parquet.")] = None,
    master: Master = "",
    conf: Conf = None,
) -> None:
    """Fit a law to the delays of every publisher-subscriber pair, and say how long to wait.

    Exit code 2 when no pair has a single delay.

    Example: inorder fit out/trace --late 0.05
    """
    from inorder.cli.screen import progress_steps
    from inorder.core.errors import Misuse

    mapping = pairs(columns.split(","), "--columns", "ours=theirs")
    if out is not None and out.exists():
        raise Misuse(f"{out} exists already: name a new folder")
    with progress_steps() as progress:
        rows = _rows(path, late, phases, mapping, out, start(master, conf, progress), progress)
    if json:
        import msgspec

        typer.echo(msgspec.json.encode({"path": path, "late": late, "pairs": rows}).decode())
    else:
        _show(path, late, rows, out)
    if not any(row["samples"] for row in rows):
        raise typer.Exit(2)


def _rows(
    path: str,
    late: float,
    phases: int,
    columns: dict[str, str],
    out: Path | None,
    spark: Any,
    progress: Callable[[str, float], None],
) -> list[dict[str, Any]]:
    from inorder.pipeline.boundary import boundary
    from inorder.pipeline.fit_stage import fit as fit_all

    progress("fitting on Spark", 0.0)
    with boundary(path):
        fitted = fit_all(spark, path, late=late, phases=phases, columns=columns)
        if out is not None:
            place = str(out.absolute())
            fitted.write.parquet(place)
            fitted = spark.read.parquet(place)
        rows = [row.asDict(recursive=True) for row in fitted.collect()]
    return sorted(rows, key=lambda row: (row["publisher"] or "", row["subscriber"] or ""))


def _show(path: str, late: float, rows: list[dict[str, Any]], out: Path | None) -> None:
    from rich.table import Table
    from rich.text import Text

    from inorder.cli.screen import console

    screen = console()
    if not screen.is_terminal:
        screen.width = WIDE
    shares = sorted({late, *(turn["late"] for row in rows for turn in row["dial"] or ())})[::-1]
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("publisher", "subscriber"):
        table.add_column(heading)
    for heading in ("samples", "min", "mean", "p50", "p99", "max"):
        table.add_column(heading, justify="right")
    table.add_column("law")
    table.add_column("p", justify="right")
    for share in shares:
        table.add_column(f"{share * 100:g} %", justify="right")
    for row in rows[:ROWS_SHOWN]:
        turns = {turn["late"]: turn for turn in row["dial"] or ()}
        turns.setdefault(late, {"wait": row["wait"], "from_law": False})
        table.add_row(
            *(Text(name) for name in _names(row)),
            f"{row['samples']:,}",
            *(_ms(row[name]) for name in ("min", "mean", "p50", "p99", "max")),
            row["law"] or "-",
            "" if row["p_value"] is None else f"{row['p_value']:.2f}",
            *(_wait(turns.get(share)) for share in shares),
        )
    title = Text.assemble((f"{len(rows):,} pairs", "bold"), f"  {path}  (milliseconds)")
    screen.print(title)
    screen.print(table)
    for row in rows[:ROWS_SHOWN]:
        if row["problem"]:
            screen.print(Text(f"{' to '.join(_names(row))}: {row['problem']}", "yellow"))
    if len(rows) > ROWS_SHOWN:
        screen.print(f"... and {len(rows) - ROWS_SHOWN:,} more: --json or --out has them all")
    screen.print(LEGEND, style="dim", highlight=False)
    if out is not None:
        screen.print(f"rows: {out}", highlight=False, markup=False)


def _names(row: dict[str, Any]) -> tuple[str, str]:
    return row["publisher"] or "-", row["subscriber"] or "-"


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1e3:.1f}"


def _wait(turn: dict[str, Any] | None) -> str:
    if turn is None or turn["wait"] is None:
        return "-"
    return _ms(turn["wait"]) + ("*" if turn["from_law"] else "")
