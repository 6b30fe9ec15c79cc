"""`inorder simulate`: one run of a scenario, written as a trace."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def simulate(
    file: Annotated[Path, typer.Argument(help="The scenario (docs/scenarios.md).")],
    order: Annotated[
        str, typer.Option(help="Replaces keys of the file's [order]: mode=tag,buffer=30")
    ] = "",
    seed: Annotated[int, typer.Option(help="Everything random in the run comes from it.")] = 1,
    out: Annotated[Path, typer.Option(help="The folder of the trace.")] = Path("out/trace"),
    format: Annotated[str, typer.Option(help="parquet or jsonl.")] = "parquet",
    json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> None:
    """Simulate a scenario and write what happened.

    Example: inorder simulate examples/partition.toml --seed 7 --out out/partition
    """
    import msgspec

    from inorder.cli.screen import console, order_of, progress_bar
    from inorder.core.errors import UnknownName
    from inorder.sim.scenario import load
    from inorder.sim.simulate import simulate_to_folder

    if format not in ("parquet", "jsonl"):
        raise UnknownName("format", format, ["jsonl", "parquet"])
    scenario = load(file, order_of(order))
    with progress_bar(f"simulating {file.name}, seed {seed}") as progress:
        outcome = simulate_to_folder(
            scenario, seed, out, format="jsonl" if format == "jsonl" else "parquet",
            progress=progress,
        )  # fmt: skip
    if json:
        print(msgspec.json.encode({"seed": seed, "out": str(out), "outcome": outcome}).decode())
        return
    screen = console()
    for line in outcome.describe():
        screen.print(line, highlight=False)
    screen.print(f"trace    {out}", highlight=False)
