"""The `inorder` command: one file a command, each a thin skin over a function of the library."""

from __future__ import annotations

import sys

import typer

from inorder.cli.audit import audit
from inorder.cli.check import check
from inorder.cli.compare import compare
from inorder.cli.copy import copy
from inorder.cli.explore import explore
from inorder.cli.fit import fit
from inorder.cli.publish import publish
from inorder.cli.repair import repair
from inorder.cli.run import run
from inorder.cli.simulate import simulate
from inorder.cli.status import status
from inorder.cli.subscribe import subscribe
from inorder.cli.sweep.command import sweep
from inorder.core.errors import InorderError

app = typer.Typer(
    help="Publish/subscribe whose subscribers agree on the order.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(run)
app.command()(publish)
app.command()(subscribe)
app.command()(status)
app.command()(check)
app.command()(repair)
app.command()(copy)
app.command()(simulate)
app.command()(compare)
app.command()(audit)
app.command()(explore)
app.command()(fit)
app.command()(sweep)


def main() -> None:
    """Run the command line; our own errors become one sentence and exit code 2."""
    if not __debug__:
        sys.exit("inorder: python -O removes the checks the machines rely on; run without it")
    try:
        app()
    except InorderError as error:
        print(f"inorder: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("inorder: stopped", file=sys.stderr)
        sys.exit(130)
