"""One process of the kill tests: `python -m tests.bus.worker ROLE URL NAME FOLDER`.

It may be killed at any instruction. Publishers write down each receipt, subscribers each event, a
line each, before they go on; a subscriber that starts again goes on with the last cursor it wrote
down, or with its durable name. When the file `stop` is there, everybody ends in good order.
`INORDER_TEST_CLOCK` shifts this process's clock by so many seconds.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

TOPICS = ("x", "y", "z")
BATCH = 7


class Notebook:
    """Lines that survive the process: written at once, torn at most at the end."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        if path.stat().st_size and not path.read_bytes().endswith(b"\n"):
            os.write(self._file, b"\n")

    def write(self, *some: Any) -> None:
        os.write(self._file, b"".join(msgspec.json.encode(line) + b"\n" for line in some))


def lines(path: Path) -> list[dict[str, Any]]:
    """What a notebook holds; a torn line is nothing."""
    found = []
    for line in path.read_bytes().split(b"\n") if path.exists() else ():
        try:
            found.append(msgspec.json.decode(line, type=dict[str, Any]))
        except msgspec.DecodeError:
            continue
    return found


async def publish(bus: Any, folder: Path, name: str) -> None:
    from inorder.core.errors import Refused, Unsure

    book = Notebook(folder / f"{name}.published")
    number = 0
    while not (folder / "stop").exists():
        number += 1
        topic = TOPICS[number % 3]
        value = {"by": name, "pid": os.getpid(), "n": number}
        if number % 3:
            try:
                receipts = [await bus.publish(topic, value)]
            except (Refused, Unsure) as error:
                book.write({"outcome": type(error).__name__, "why": str(error)})
                continue
        else:
            receipts = await bus.publish_many(topic, [value] * BATCH)
        now = time.time()
        book.write(
            *({"event": receipt.event, "outcome": receipt.outcome, "offset": receipt.offset,
               "at": now} for receipt in receipts)
        )  # fmt: skip


async def subscribe(bus: Any, folder: Path, name: str) -> None:
    path = folder / f"{name}.delivered"
    before = lines(path)
    # One is known by its cursors, the others by their names.
    by_cursor = name.endswith("1")
    start = before[-1]["cursor"] if before and by_cursor else "earliest"
    book = Notebook(path)
    durable = None if by_cursor else name
    async with bus.subscribe(*TOPICS, start=start, durable=durable, name=f"{name}.s") as events:
        while not (folder / "stop.subscribers").exists():
            try:
                event = await events.next(0.2)
            except TimeoutError:
                continue
            book.write({
                "event": event.id, "topic": event.topic, "position": event.position,
                "cursor": event.cursor,
            })  # fmt: skip


ROLES = {"publish": publish, "subscribe": subscribe}


async def main(role: str, url: str, name: str, folder: Path) -> None:
    import inorder

    async with inorder.connect(url, name=name) as bus:
        await ROLES[role](bus, folder, name)


if __name__ == "__main__":
    if shift := float(os.environ.get("INORDER_TEST_CLOCK", "0")):
        real = time.time
        time.time = lambda: real() + shift
    role, url, name, folder = sys.argv[1:]
    asyncio.run(main(role, url, name, Path(folder)))
