"""`inorder copy`: a file as it is at one moment, while others write."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def copy(
    url: Annotated[str, typer.Argument(help="sqlite:///FILE.db")],
    new: Annotated[Path, typer.Argument(help="The new file.")],
    restore: Annotated[
        bool, typer.Option("--restore", help="The same log: it takes the place of the old file.")
    ] = False,
) -> None:
    """Copy a file, as it is at one moment, also while it is written. Every block is verified.

    The copy is a log of its own: cursors of the old file are no cursors of it. With --restore it is
    the same log, and must not be used beside the old file.

    Example: inorder copy sqlite:///events.db backup.db
    """
    from inorder.brokers.sqlite.check import opened
    from inorder.brokers.sqlite.copying import copy as write
    from inorder.cli.screen import progress_bar

    file = opened(url)
    try:
        with progress_bar("copying") as progress:
            identity = write(file, new, restore, progress)
    finally:
        file.close()
    typer.echo(f"{new}: log {identity}")
