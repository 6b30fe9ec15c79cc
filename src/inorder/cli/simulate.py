"""`inorder simulate`: one run of a scenario, written as a trace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from inorder.check.verdict import Verdict


def simulate(
    file: Annotated[Path, typer.Argument(help="The scenario (docs/scenarios.md).")],
    order: Annotated[
        str, typer.Option(help="Replaces keys of the file's [order]: mode=tag,buffer=30")
    ] = "",
    seed: Annotated[int, typer.Option(help="Everything random in the run comes from it.")] = 1,
    out: Annotated[Path, typer.Option(help="The folder of the trace.")] = Path("out/trace"),
    format: Annotated[str, typer.Option(help="parquet or jsonl.")] = "parquet",
    judge: Annotated[
        bool, typer.Option(help="Judge the run, in this process.", show_default=True)
    ] = True,
    json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> None:
    """Simulate a scenario, write what happened, and judge it.

    Exit code 1 when a promise of the guarantee was broken; the others are shown.

    Example: inorder simulate examples/partition.toml --seed 7 --out out/partition
    """
    import msgspec

    from inorder.check.decision import decide
    from inorder.cli.screen import console, order_of, progress_bar
    from inorder.cli.verdicts import show_verdicts
    from inorder.core.errors import UnknownName
    from inorder.sim import explore as explorer
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
    promised = explorer.promised(scenario)
    verdicts = _verdicts(out, outcome.delivered) if judge else {}
    verdict = decide(verdicts, promised) if verdicts else "incomplete"
    if json:
        said: dict[str, Any] = {"seed": seed, "out": str(out), "outcome": outcome}
        if judge:
            said |= {"verdict": verdict, "promised": promised, "promises": verdicts}
        print(msgspec.json.encode(said).decode())
    else:
        screen = console()
        for line in outcome.describe():
            screen.print(line, highlight=False)
        screen.print(f"trace    {out}", highlight=False)
        if verdicts:
            screen.print()
            show_verdicts(screen, verdicts, promised)
            screen.print(f"promised: {', '.join(promised)}", highlight=False, style="dim")
        elif judge:
            screen.print(f"not judged: too many deliveries for one process: inorder audit {out}")
    if verdict == "broken":
        raise typer.Exit(1)


def _verdicts(out: Path, deliveries: int) -> dict[str, Verdict]:
    """Nothing when there are too many deliveries to hold them all."""
    from inorder.check import History
    from inorder.check import judge as judged
    from inorder.core.limits import SWEEP_JUDGED_DELIVERIES_MAX

    if deliveries > SWEEP_JUDGED_DELIVERIES_MAX:
        return {}
    return judged(History.read(out))
