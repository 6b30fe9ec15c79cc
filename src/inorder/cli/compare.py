"""`inorder compare`: one scenario under several guarantees, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from inorder.sim.beside import Beside

ALL = "none,fifo,total,causal"


def compare(
    file: Annotated[Path, typer.Argument(help="The scenario (docs/scenarios.md).")],
    guarantees: Annotated[str, typer.Option(help="Which guarantees, as a list with commas.")] = ALL,
    seed: Annotated[int, typer.Option(help="Everything random in the runs comes from it.")] = 1,
    json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Run one scenario under several guarantees: what breaks, what is late, what it costs.

    Example: inorder compare examples/chat.toml
    """
    import msgspec

    from inorder.cli.screen import console, progress_bar
    from inorder.core.errors import Misuse
    from inorder.guarantee.registry import guarantee
    from inorder.sim.beside import under
    from inorder.sim.scenario import load

    names = [name.strip() for name in guarantees.split(",") if name.strip()]
    if not names:
        raise Misuse(f"--guarantees names none: {ALL}, for example")
    for name in names:
        guarantee(name)
    scenario = load(file)
    runs = []
    with progress_bar(f"comparing {len(names)} guarantees") as progress:
        for done, name in enumerate(names, 1):
            runs.append(under(scenario, name, seed))
            progress(done / len(names))
    if json:
        print(msgspec.json.encode(runs).decode())
        return
    screen = console()
    screen.print(_table(runs, f"{scenario.title or file.name}, seed {seed}"))


def _table(runs: list[Beside], title: str) -> object:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim", title=title, title_justify="left")
    table.add_column("")
    for run in runs:
        table.add_column(run.guarantee, justify="right")
    rows: list[tuple[str, list[str]]] = [
        ("events", [f"{run.events:,}" for run in runs]),
        ("deliveries", [f"{run.deliveries:,}" for run in runs]),
        ("answers before their questions", [f"{run.broken['causal']:,}" for run in runs]),
        ("out of their publisher's order", [f"{run.broken['fifo']:,}" for run in runs]),
        ("pairs in two orders", [f"{run.broken['total']:,}" for run in runs]),
        ("tagged as late", [f"{run.tagged:,}" for run in runs]),
        ("latency, mean", [f"{run.latency_mean_s * 1e3:,.0f} ms" for run in runs]),
        ("latency, p99", [f"{run.latency_p99_s * 1e3:,.0f} ms" for run in runs]),
        ("held back, mean", [f"{run.held_mean_s * 1e3:,.1f} ms" for run in runs]),
        ("held back, share", [f"{run.held_share:.1%}" for run in runs]),
        ("messages a delivery", [_each(run.messages, run) for run in runs]),
        ("bytes a delivery", [_each(run.message_bytes, run) for run in runs]),
    ]
    for name, cells in rows:
        table.add_row(name, *cells)
    return table


def _each(amount: int, run: Beside) -> str:
    return f"{amount / max(1, run.deliveries):,.1f}"
