"""`inorder publish`: put events on the embedded broker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any

import typer

# Lines of standard input that are published together, if so many are there.
AT_ONCE = 1000


def publish(
    url: Annotated[str, typer.Argument(help="sqlite:///FILE.db")],
    topic: Annotated[str, typer.Argument(help="The topic.")],
    values: Annotated[
        list[str] | None,
        typer.Argument(help="JSON objects; without any, one a line from standard input."),
    ] = None,
    key: Annotated[str | None, typer.Option(help="A key for every event.")] = None,
    name: Annotated[str | None, typer.Option(help="Publish under this name.")] = None,
    deadline: Annotated[float, typer.Option(help="Seconds to wait for an answer.")] = 10.0,
    json: Annotated[bool, typer.Option("--json", help="Print every receipt as JSON.")] = False,
) -> None:
    """Publish events; done when all of them are on disk. From a pipe, events go as they come.

    Exit code 0: all stored. 1: some were refused, or their fate is unknown. 2: a line is no
    event; those before it were published, and how many is said.

    Example: inorder publish sqlite:///events.db orders '{"id": 17, "amount": 120.0}'
    """
    from msgspec import to_builtins

    from inorder.bus.blocking import connect_sync

    outcomes = {"stored": 0, "refused": 0, "unknown": 0}
    reason = ""
    some: Iterable[Sequence[str | bytes]] = [values] if values else _at_hand()
    try:
        with connect_sync(url, name=name, deadline=deadline) as bus:
            for batch in _events(some):
                keys = None if key is None else [key] * len(batch)
                for receipt in bus.publish_many(topic, batch, keys=keys):
                    outcomes[receipt.outcome] += 1
                    reason = receipt.reason or reason
                    if json:
                        _print({**to_builtins(receipt), "event": receipt.event})
    finally:
        told = ", ".join(f"{count:,} {outcome}" for outcome, count in outcomes.items() if count)
        if told and not json:
            typer.echo(told)
    if not told and not json:
        typer.echo("nothing to publish")
    if reason:
        typer.echo(f"inorder: {reason}", err=True)
    raise typer.Exit(0 if outcomes["refused"] == outcomes["unknown"] == 0 else 1)


def _at_hand() -> Iterator[Sequence[str | bytes]]:
    """The lines of standard input, as many together as are there: who waits for more keeps nobody
    waiting."""
    import sys
    from queue import Empty, Queue
    from threading import Thread

    lines: Queue[str | bytes | None] = Queue(4 * AT_ONCE)

    def read() -> None:
        for line in getattr(sys.stdin, "buffer", sys.stdin):
            lines.put(line)
        lines.put(None)

    Thread(target=read, daemon=True).start()
    line = lines.get()
    while line is not None:
        some = [line]
        try:
            while (line := lines.get_nowait()) is not None and len(some) < AT_ONCE:
                some.append(line)
        except Empty:
            yield some
            line = lines.get()
        else:
            yield some


def _events(batches: Iterable[Sequence[str | bytes]]) -> Iterator[list[dict[str, Any]]]:
    """The events of these lines; what comes before a line that is none is there first."""
    import msgspec

    from inorder.core.errors import Misuse

    number = 0
    for lines in batches:
        some: list[dict[str, Any]] = []
        for line in lines:
            if not line.strip():
                continue
            number += 1
            try:
                some.append(msgspec.json.decode(line, type=dict[str, Any]))
            except (msgspec.DecodeError, UnicodeError) as error:
                if some:
                    yield some
                raise Misuse(f"value {number} is not a JSON object: {error}") from None
        if some:
            yield some


def _print(value: Any) -> None:
    import msgspec

    typer.echo(msgspec.json.encode(value).decode())
