"""`inorder audit`: judge a trace, or somebody else's delivery log, on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inorder.cli.spark import Conf, Master, pairs, start

if TYPE_CHECKING:
    from rich.console import Console

    from inorder.pipeline.audit import AuditResult


def audit(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH",
            help="A trace folder (several are judged as one run), or a log: Parquet, JSONL or CSV.",
        ),
    ],
    columns: Annotated[
        str, typer.Option(help="Our names of a foreign log's columns: nth=offset,...")
    ] = "",
    promises: Annotated[
        str,
        typer.Option(
            help="Only these, and they decide: total, causal, causal_across_topics, fifo, "
            "per_publisher, unique, reliable, filter, accepted, realtime (with commas)."
        ),
    ] = "",
    within: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="Seconds that an answer, an event or a change of a filter may be under way: what "
            "is nearer to the end, or to a change, is not judged. Default: as the trace says.",
            show_default=False,
        ),
    ] = None,
    clock_error: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="Seconds by which the clocks of the publishers may be apart (for realtime).",
            show_default=False,
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    report: Annotated[Path | None, typer.Option(help="Write an HTML page here.")] = None,
    master: Master = "",
    conf: Conf = None,
) -> None:
    """Judge what was delivered: did the subscribers agree, and was anything lost or doubled?

    Of a trace of ours the promises of its guarantee decide; the others are shown.

    Exit code 0: kept. 1: broken. 2: could not judge.

    Example: inorder audit deliveries.csv --columns nth=offset,event=message_id

    Example: inorder audit out/shop out/billing out/mailer
    """
    from inorder.core.errors import InorderError

    try:
        result = _audit(paths, columns, promises, within, clock_error, report, master, conf)
    except InorderError as error:
        if json:
            _print_json({"verdict": "incomplete", "error": str(error), "rows": 0, "promises": {}})
        raise
    if json:
        _print_json(result.to_json())
    else:
        _show(result, report)
    raise typer.Exit(result.exit_code)


def _audit(
    paths: list[str],
    columns: str,
    promises: str,
    within: float | None,
    clock_error: float | None,
    report: Path | None,
    master: str,
    conf: list[str] | None,
) -> AuditResult:
    from inorder.cli.screen import progress_steps

    mapping = pairs(columns.split(","), "--columns", "ours=theirs")
    with progress_steps() as progress:
        spark = start(master, conf, progress)
        from inorder.pipeline.audit import audit as judge

        names = [name.strip() for name in promises.split(",") if name.strip()]
        result = judge(
            spark, paths, mapping, names, progress, within=within, clock_error=clock_error
        )
        if report is not None:
            from inorder.pipeline.report import write_report

            progress("writing the report", 0.0)
            write_report(spark, paths, result, report, mapping)
    return result


def _print_json(value: dict[str, Any]) -> None:
    import msgspec

    typer.echo(msgspec.json.encode(value).decode())


def _show(result: AuditResult, report: Path | None) -> None:
    from inorder.check.decision import decisive
    from inorder.cli.screen import console
    from inorder.cli.verdicts import show_verdicts

    screen = console()
    _print_title(screen, result)
    show_verdicts(screen, result.promises, decisive(result.promised, result.asked))
    if result.promised is not None and not result.asked:
        screen.print(f"promised: {', '.join(result.promised)}", highlight=False, style="dim")
    if not result.complete:
        screen.print("The trace is cut off: its run was not closed.", style="yellow")
    if report is not None:
        screen.print(f"report: {report}", highlight=False, markup=False)


def _print_title(screen: Console, result: AuditResult) -> None:
    from rich.text import Text

    from inorder.cli.verdicts import COLOURS

    title = Text.assemble(
        (result.verdict, f"bold {COLOURS[result.verdict]}"),
        f"  {result.source}  ({result.rows:,} deliveries)",
    )
    screen.print(title)
