"""One process of the kill tests: `python -m tests.bus.worker ROLE URL GUARANTEE NAME FOLDER`.

It may be killed at any instruction. Publishers write down each receipt, subscribers each event with
its offset, one line each, before they go on; a subscriber that starts again goes on behind what it
has written down. Whoever finds the file `stop` ends in good order.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

import inorder
from inorder.core.errors import InorderError, Misuse, Refused, Unsure

TOPICS = ("x", "y", "z")


class Notebook:
    """Lines that survive the process: written at once, torn at most at the end."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        if path.stat().st_size and not path.read_bytes().endswith(b"\n"):
            os.write(self._file, b"\n")

    def write(self, line: Any) -> None:
        os.write(self._file, msgspec.json.encode(line) + b"\n")


def lines(path: Path) -> list[dict[str, Any]]:
    """What a notebook holds; a torn line is nothing."""
    found = []
    for line in path.read_bytes().split(b"\n") if path.exists() else ():
        try:
            found.append(msgspec.json.decode(line, type=dict[str, Any]))
        except msgspec.DecodeError:
            continue
    return found


async def opened(url: str, guarantee: str, name: str) -> Any:
    """The bus under this name, as soon as the former process of that name counts as dead."""
    while True:
        bus = inorder.connect(url, guarantee, name=name, deadline=10)
        try:
            await bus.open()
        except (Misuse, Refused):
            await asyncio.sleep(0.1)
        else:
            return bus


async def publish(bus: Any, folder: Path, name: str) -> None:
    book = Notebook(folder / f"{name}.published")
    number = 0
    while not (folder / "stop").exists():
        number += 1
        topic = TOPICS[number % 3]
        value = {"by": name, "pid": os.getpid(), "n": number}
        if number % 5:
            try:
                receipts = [await bus.publish(topic, value)]
            except (Refused, Unsure) as error:
                book.write({"outcome": type(error).__name__, "why": str(error)})
                continue
        else:
            receipts = await bus.publish_many(topic, [value] * 7)
        now = time.time()
        for receipt in receipts:
            book.write({
                "event": receipt.event, "topic": topic, "outcome": receipt.outcome, "at": now,
            })  # fmt: skip
        await asyncio.sleep(0.002)


async def subscribe(bus: Any, folder: Path, name: str) -> None:
    path = folder / f"{name}.delivered"
    known = {(line["topic"], line["offset"]) for line in lines(path)}
    book = Notebook(path)
    # The first place not written down: under fifo events of a topic may come out of its log's
    # order, those behind are passed over again.
    replay = {}
    for topic in TOPICS:
        replay[topic] = 0
        while (topic, replay[topic]) in known:
            replay[topic] += 1
    async with bus.subscribe(*TOPICS, replay=replay, name=f"{name}.s") as events:
        while not (folder / "stop.subscribers").exists():
            try:
                event = await events.next(0.2)
            except TimeoutError:
                continue
            if (event.topic, event.offset) not in known:
                book.write({
                    "event": event.id, "topic": event.topic, "offset": event.offset,
                    "in_order": event.in_order, "published_at": event.published_at,
                })  # fmt: skip


async def keep(bus: Any, folder: Path, name: str) -> None:
    """Only there to own the managers."""
    while not (folder / "stop").exists():
        await asyncio.sleep(0.05)


ROLES = {"publish": publish, "subscribe": subscribe, "keep": keep}


async def main(role: str, url: str, guarantee: str, name: str, folder: Path) -> None:
    bus = await opened(url, guarantee, name)
    try:
        await ROLES[role](bus, folder, name)
    finally:
        await bus.close()


if __name__ == "__main__":
    role, url, guarantee, name, folder = sys.argv[1:]
    try:
        asyncio.run(main(role, url, guarantee, name, Path(folder)))
    except InorderError as error:
        sys.exit(f"{name}: {type(error).__name__}: {error}")
