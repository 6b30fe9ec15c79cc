"""`inorder status`: what a broker holds."""

from __future__ import annotations

from typing import Annotated

import typer


def status(
    url: Annotated[str, typer.Argument(help="sqlite:///FILE.db")],
    json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Show topics with their events, bytes, positions, names of publishers and subscriptions.

    Example: inorder status sqlite:///events.db
    """
    import asyncio
    from typing import Any

    import msgspec

    from inorder.brokers import broker_at

    async def ask() -> dict[str, Any]:
        broker = broker_at(url, 10.0)
        await broker.open()
        try:
            return await broker.status()
        finally:
            await broker.close()

    if url.startswith("sqlite:"):
        # A look at a file that does not exist must not make one.
        from inorder.brokers.sqlite.check import opened

        opened(url).close()
    figures = asyncio.run(ask())
    if json:
        typer.echo(msgspec.json.encode(figures).decode())
        return
    for name, value in figures.items():
        if isinstance(value, dict):
            typer.echo(f"{name}: {len(value):,}")
            for key, count in value.items():
                typer.echo(f"  {key}: {count:,}")
        elif isinstance(value, list):
            typer.echo(f"{name}: {', '.join(value) or 'none'}")
        else:
            typer.echo(f"{name}: {value:,}" if isinstance(value, int) else f"{name}: {value}")
