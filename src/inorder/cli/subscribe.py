"""`inorder subscribe`: print what a log has for us."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def subscribe(
    url: Annotated[str, typer.Argument(help="sqlite:///FILE.db")],
    topics: Annotated[list[str], typer.Argument(help="Topics, or patterns: orders.* or orders.>")],
    where: Annotated[
        str | None, typer.Option(help="A filter: price < :limit AND firm = 'IBM'.")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="A parameter of the filter: limit=10.")
    ] = None,
    start: Annotated[
        str,
        typer.Option(help="latest, earliest, a position, a cursor, or a time: 2026-11-20T08:00Z."),
    ] = "latest",
    durable: Annotated[
        str | None, typer.Option(help="Go on where the last run under this name ended.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=0, help="Stop after so many events.")] = None,
    idle: Annotated[float | None, typer.Option(help="Stop after so many quiet seconds.")] = None,
    name: Annotated[str | None, typer.Option(help="The subscriber's name in a trace.")] = None,
    trace: Annotated[Path | None, typer.Option(help="Write a trace to this folder.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print every event as JSON.")] = False,
) -> None:
    """Print events as they are handed over, one a line: position, topic, name, value. A file that
    does not exist is made: others may publish there later.

    Example: inorder subscribe sqlite:///events.db orders payments --start earliest --idle 1
    """
    import asyncio

    from inorder.bus.bus import connect
    from inorder.bus.subscription import Subscription
    from inorder.core.settings import assignment

    values = dict(assignment(word) for word in set_ or [])
    file = Path(url.partition("?")[0].removeprefix("sqlite:///"))
    is_new = url.startswith("sqlite:///") and not file.exists()

    async def listen() -> None:
        count = 0
        events: Subscription[Any]
        async with (
            connect(url, trace=trace) as bus,
            bus.subscribe(
                *topics, where=where, parameters=values, start=start_of(start), durable=durable,
                name=name, idle=idle, removed="tell",
            ) as events,
        ):  # fmt: skip
            if is_new:
                typer.echo(f"inorder: there was no {file}: it is new, and empty", err=True)
            if limit == 0:
                return
            while (event := await _next(events)) is not None:
                _show(event, json)
                count += 1
                if count == limit:
                    return

    asyncio.run(listen())


async def _next(events: Any) -> Any:
    """The next event, or None at the end; what is gone or damaged is said, and reading goes on."""
    from inorder.core.errors import Damaged, Removed

    while True:
        try:
            event = await anext(events, None)
        except Damaged as error:
            if error.upto is None:
                raise
            event = error
        if not isinstance(event, Damaged | Removed):
            return event
        typer.echo(f"inorder: {event}", err=True)


def start_of(word: str) -> Any:
    """What a person writes for a start.

    >>> start_of("41"), start_of("earliest"), str(start_of("2026-11-20T08:00Z"))
    (41, 'earliest', '2026-11-20 08:00:00+00:00')
    """
    from datetime import datetime

    if word.lstrip("-").isdigit():
        return int(word)
    try:
        return datetime.fromisoformat(word)
    except ValueError:
        return word


def _show(event: Any, as_json: bool) -> None:
    import msgspec

    if as_json:
        text = msgspec.json.encode(event.as_dict()).decode()
    else:
        value = msgspec.json.encode(event.value).decode()
        text = f"{event.position} {printable(event.topic)} {printable(event.id)} {value}"
    # A program that reads this through a pipe wants it now.
    print(text, flush=True)


def printable(name: str) -> str:
    """A name without what would move a terminal's cursor or begin another line."""
    return name if name.isprintable() else repr(name)
