"""`inorder audit`: judge a trace, or somebody else's delivery log, on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inorder.cli.spark import Conf, Master, pairs, start

if TYPE_CHECKING:
    from rich.console import Console

    from inorder.check.verdict import Verdict
    from inorder.pipeline.audit import AuditResult


def audit(
    path: Annotated[str, typer.Argument(help="A trace folder, or a log: Parquet, JSONL or CSV.")],
    columns: Annotated[
        str, typer.Option(help="Our names of a foreign log's columns: nth=offset,...")
    ] = "",
    promises: Annotated[
        str, typer.Option(help="Only these: total,causal,fifo,unique,reliable,filter.")
    ] = "",
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    report: Annotated[Path | None, typer.Option(help="Write an HTML page here.")] = None,
    master: Master = "",
    conf: Conf = None,
) -> None:
    """Judge what was delivered: did the subscribers agree, and was anything lost or doubled?

    Exit code 0: kept. 1: broken. 2: could not judge.

    Example: inorder audit deliveries.csv --columns nth=offset,event=message_id
    """
    from inorder.core.errors import InorderError

    try:
        result = _audit(path, columns, promises, report, master, conf)
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
    path: str, columns: str, promises: str, report: Path | None, master: str, conf: list[str] | None
) -> AuditResult:
    from inorder.cli.screen import progress_steps

    mapping = pairs(columns.split(","), "--columns", "ours=theirs")
    with progress_steps() as progress:
        spark = start(master, conf, progress)
        from inorder.pipeline.audit import audit as judge

        names = [name.strip() for name in promises.split(",") if name.strip()]
        result = judge(spark, path, mapping, names, progress)
        if report is not None:
            from inorder.pipeline.report import write_report

            progress("writing the report", 0.0)
            write_report(spark, path, result, report, mapping)
    return result


def _print_json(value: dict[str, Any]) -> None:
    import msgspec

    typer.echo(msgspec.json.encode(value).decode())


def _show(result: AuditResult, report: Path | None) -> None:
    from rich.table import Table

    from inorder.cli.screen import console

    screen = console()
    colour = {"kept": "green", "broken": "red", "incomplete": "yellow"}[result.verdict]
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("promise", "verdict", "violations", "smallest witness"):
        table.add_column(heading, justify="right" if heading == "violations" else "left")
    for name, verdict in result.promises.items():
        _add(table, name, verdict)
        for also, other in verdict.also.items():
            _add(table, f"  {also}", other)
    _print_title(screen, result, colour)
    screen.print(table)
    if not result.complete:
        screen.print("The trace is cut off: its run was not closed.", style="yellow")
    if report is not None:
        screen.print(f"report: {report}", highlight=False, markup=False)


def _print_title(screen: Console, result: AuditResult, colour: str) -> None:
    from rich.text import Text

    title = Text.assemble(
        (result.verdict, f"bold {colour}"), f"  {result.source}  ({result.rows:,} deliveries)"
    )
    screen.print(title)


def _add(table: Any, name: str, verdict: Verdict) -> None:
    from rich.text import Text

    if not verdict.judged:
        table.add_row(name, Text("not judged", "yellow"), "", Text(verdict.why))
    elif verdict.kept:
        table.add_row(name, Text("kept", "green"), "0", "")
    else:
        words = Text(in_words(verdict))
        table.add_row(name, Text("broken", "red"), f"{verdict.violations:,}", words)


def in_words(verdict: Verdict) -> str:
    """The witness as a sentence."""
    witness = verdict.witness or {}
    match witness:
        case {"events": [e, f], "subscribers": [a, b]}:
            return f"{a} delivered {e} before {f}, {b} the other way round"
        case {"cycle": cycle}:
            return " before ".join([*cycle[:6], "..." if len(cycle) > 6 else cycle[0]])
        case {"cause": cause, "effect": effect, "subscriber": s}:
            return f"{s} delivered {effect} before its cause {cause}"
        case {"events": [later, late], "subscriber": s, "nths": [at, _]}:
            return f"{s} delivered {later} at {at}, and only then {late}"
        case {"event": event, "subscriber": s, "nths": [first, again]}:
            return f"{s} delivered {event} at {first} and again at {again}"
        case {"event": event, "subscriber": s, "held_since": _, "topic": topic}:
            return f"{s}, holding {topic}, never got {event}"
        case {"event": event, "subscriber": s, "where": where}:
            return f"{s} got {event}, which does not match {where}"
    return ", ".join(f"{key} {value}" for key, value in witness.items())
