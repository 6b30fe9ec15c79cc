"""`inorder repair`: a new file with everything that is intact in a damaged one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def repair(
    url: Annotated[str, typer.Argument(help="sqlite:///FILE.db")],
    out: Annotated[Path, typer.Option(help="The new file.")],
) -> None:
    """Write what is intact into a new file: the same log, with the same positions. The old file is
    left as it is, and must not be used beside the new one.

    What is missing is a removed range to its readers. New events stand a million positions higher,
    above everything that the old file may have held.

    Example: inorder repair sqlite:///events.db --out repaired.db
    """
    from inorder.brokers.sqlite.check import opened
    from inorder.brokers.sqlite.copying import repair as write
    from inorder.cli.screen import progress_bar

    file = opened(url)
    try:
        with progress_bar("copying what is intact") as progress:
            flaws = write(file, out, progress)
    finally:
        file.close()
    for flaw in flaws:
        typer.echo(f"{flaw}")
    typer.echo(f"{out}: {len(flaws):,} flaws left behind" if flaws else f"{out}: nothing was wrong")
