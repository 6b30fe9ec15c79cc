"""`inorder publish`: put events on the embedded broker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

# Values read from standard input before they are published together.
AT_ONCE = 1000


def publish(
    url: Annotated[str, typer.Argument(help="sqlite:///FILE.db")],
    topic: Annotated[str, typer.Argument(help="The topic.")],
    values: Annotated[
        list[str] | None,
        typer.Argument(help="JSON objects; without any, one a line from standard input."),
    ] = None,
    guarantee: Annotated[str, typer.Option(help="none, fifo or total.")] = "total",
    name: Annotated[str | None, typer.Option(help="Publish under this name.")] = None,
    deadline: Annotated[float, typer.Option(help="Seconds to wait for an answer.")] = 10.0,
    json: Annotated[bool, typer.Option("--json", help="Print every receipt as JSON.")] = False,
) -> None:
    """Publish events; done when all of them are on disk.

    Exit code 0: all accepted. 1: some were refused, or their fate is unknown.

    Example: inorder publish sqlite:///events.db orders '{"id": 17, "amount": 120.0}'
    """
    import sys

    from inorder.live.blocking import connect_sync

    outcomes = {"accepted": 0, "refused": 0, "unknown": 0}
    reason = ""
    lines = iter(values) if values else (line for line in sys.stdin if line.strip())
    with connect_sync(url, guarantee, name=name, deadline=deadline) as bus:
        for some in _batches(lines):
            for receipt in bus.publish_many(topic, some):
                outcomes[receipt.outcome] += 1
                reason = receipt.reason or reason
                if json:
                    _print(receipt)
    if not json:
        told = [f"{count:,} {outcome}" for outcome, count in outcomes.items() if count]
        typer.echo(", ".join(told) or "nothing to publish")
    if reason:
        typer.echo(f"inorder: {reason}", err=True)
    raise typer.Exit(0 if outcomes["refused"] == outcomes["unknown"] == 0 else 1)


def _batches(lines: Iterator[str]) -> Iterator[list[dict[str, Any]]]:
    import msgspec

    from inorder.errors import Misuse

    some: list[dict[str, Any]] = []
    for number, line in enumerate(lines, 1):
        try:
            some.append(msgspec.json.decode(line, type=dict[str, Any]))
        except msgspec.DecodeError as error:
            raise Misuse(f"value {number} is not a JSON object: {error}") from None
        if len(some) == AT_ONCE:
            yield some
            some = []
    if some:
        yield some


def _print(value: Any) -> None:
    import msgspec

    typer.echo(msgspec.json.encode(value).decode())
