"""`inorder explore`: many seeds of one scenario, each judged."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def explore(
    file: Annotated[Path, typer.Argument(help="The scenario (docs/scenarios.md).")],
    schedules: Annotated[int, typer.Option(help="How many seeds to run.")] = 1000,
    order: Annotated[
        str, typer.Option(help="Replaces keys of the file's [order]: mode=tag,buffer=30")
    ] = "",
    seed: Annotated[int, typer.Option(help="The first seed.")] = 1,
    promises: Annotated[
        str, typer.Option(help="Judge these, not those the guarantee claims: total,fifo,...")
    ] = "",
) -> None:
    """Search for a schedule that breaks a promise, and shrink it.

    Exit code 1 when one was found. Example: inorder explore examples/explore.toml --schedules 5000
    """
    from time import perf_counter

    from inorder.cli.screen import console, order_of, progress_bar
    from inorder.core.errors import Misuse
    from inorder.sim import explore as explorer
    from inorder.sim.scenario import load

    scenario = load(file, order_of(order))
    asked = [name.strip() for name in promises.split(",") if name.strip()]
    judged = asked or list(explorer.promised(scenario))
    if not judged:
        raise Misuse("this guarantee claims no promise: name what to judge with --promises")
    started = perf_counter()
    with progress_bar(f"exploring {file.name}") as progress:
        found = explorer.explore(
            scenario, range(seed, seed + schedules), judged,
            progress=lambda done: progress(done / schedules),
        )  # fmt: skip
    elapsed = perf_counter() - started
    screen = console()
    for failure in found.failures:
        screen.print(failure.story, highlight=False, markup=False)
    rate = found.schedules / elapsed if elapsed else 0.0
    screen.print(
        f"{found.schedules} schedules, {len(found.failures)} broken ({', '.join(judged)}), "
        f"{rate:.0f} schedules/s",
        highlight=False,
    )
    for line in scenario.guarantee.describe(found.account, scenario.options):
        screen.print(line, highlight=False)
    if found.failures:
        raise typer.Exit(1)
