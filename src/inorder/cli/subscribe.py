"""`inorder subscribe`: print what the embedded broker has for us."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def subscribe(
    url: Annotated[str, typer.Argument(help="sqlite:///FILE.db")],
    topics: Annotated[list[str], typer.Argument(help="The topics.")],
    where: Annotated[
        str | None, typer.Option(help="A filter: price < :limit AND firm = 'IBM'.")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="A parameter of the filter: limit=10.")
    ] = None,
    guarantee: Annotated[str, typer.Option(help="none, fifo or total.")] = "total",
    order: Annotated[str, typer.Option(help="Its options: mode=tag,buffer=30.")] = "",
    replay: Annotated[
        str | None, typer.Option(help="Start in the past: all, or an offset.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=0, help="Stop after so many events.")] = None,
    idle: Annotated[float | None, typer.Option(help="Stop after so many quiet seconds.")] = None,
    name: Annotated[str | None, typer.Option(help="The subscriber's name.")] = None,
    trace: Annotated[Path | None, typer.Option(help="Write a trace to this folder.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print every event as JSON.")] = False,
) -> None:
    """Print events as they are delivered, one a line; LATE marks those out of order. A file that
    does not exist is made: others may publish there later.

    Example: inorder subscribe sqlite:///events.db orders payments --replay all --idle 1
    """
    import asyncio

    from inorder.bus.bus import connect
    from inorder.cli.screen import order_of
    from inorder.core.settings import assignment

    values = dict(assignment(word) for word in set_ or [])
    options: dict[str, Any] = order_of(order)
    start: str | int | None = int(replay) if replay and replay.isdigit() else replay

    file = Path(url.partition("?")[0].removeprefix("sqlite:///"))
    is_new = url.startswith("sqlite:///") and not file.exists()

    async def listen() -> None:
        count = 0
        async with (
            connect(url, guarantee, trace=trace, **options) as bus,
            bus.subscribe(
                *topics, where=where, parameters=values, replay=start, name=name, idle=idle
            ) as events,
        ):
            if is_new:
                typer.echo(f"inorder: there was no {file}: it is new, and empty", err=True)
            if limit == 0:
                return
            async for event in events:
                _show(event, json)
                count += 1
                if count == limit:
                    return

    asyncio.run(listen())


def _show(event: Any, as_json: bool) -> None:
    import msgspec

    text = msgspec.json.encode(event if as_json else event.value).decode()
    if not as_json:
        late = "" if event.in_order else " LATE"
        text = f"{event.nth} {event.topic} {event.id}{late} {text}"
    # Whoever reads this through a pipe wants it now.
    print(text, flush=True)
