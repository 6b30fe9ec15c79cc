"""`inorder check`: look at every block of a file."""

from __future__ import annotations

from typing import Annotated

import typer


def check(
    url: Annotated[str, typer.Argument(help="sqlite:///FILE.db")],
    json: Annotated[bool, typer.Option("--json", help="Print what was seen as JSON.")] = False,
) -> None:
    """Look at every block of a file, its links, facts and witness. Nothing is changed.

    Exit code 0: everything is sound. 1: something is damaged or missing, and it is said what. What
    is intact stays readable; `inorder repair` makes a file of it.

    Example: inorder check sqlite:///events.db
    """
    import msgspec

    from inorder.brokers.sqlite.check import check as look
    from inorder.brokers.sqlite.check import opened
    from inorder.cli.screen import progress_bar

    file = opened(url)
    try:
        with progress_bar("looking") as progress:
            health = look(file, progress)
    finally:
        file.close()
    if json:
        typer.echo(msgspec.json.encode(health).decode())
    else:
        for flaw in health.flaws:
            typer.echo(f"{flaw}")
        state = f"{len(health.flaws):,} flaws" if health.flaws else "sound"
        typer.echo(f"{state}: {health.events:,} events in {health.rows:,} blocks")
    raise typer.Exit(1 if health.flaws else 0)
