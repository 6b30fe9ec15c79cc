"""A subscriber process of a job: `python -m inorder.cli.job.listen`, settings as its first line.

Each subscriber has a bus and a trace of its own and records what the broker hands it. The process
says "ready", listens until its standard input ends, and then until nothing has come for a while.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

import inorder
from inorder.bus.opening import Opening
from inorder.bus.subscription import Subscription
from inorder.cli.job.tables import Member

# Nothing came for so long after the publishers had ended: there is nothing more.
QUIET_S = 1.0


class Listen(Struct, frozen=True, kw_only=True):
    url: str
    trace: str
    members: list[Member]


async def listen(settings: Listen, ended: asyncio.Event) -> int:
    """Run all subscribers of the process; how many events they got."""
    ready = [asyncio.Event() for _ in settings.members]
    tasks = [
        asyncio.create_task(_one(settings, member, here, ended))
        for member, here in zip(settings.members, ready, strict=True)
    ]
    announcing = asyncio.create_task(_announce(ready))
    counts = await asyncio.gather(*tasks)
    await announcing
    return sum(counts)


async def _announce(ready: list[asyncio.Event]) -> None:
    for here in ready:
        await here.wait()
    print("ready", flush=True)


async def _one(settings: Listen, member: Member, ready: asyncio.Event, ended: asyncio.Event) -> int:
    folder = Path(settings.trace) / member.name
    async with inorder.connect(settings.url, trace=folder) as bus:
        opening: Opening[Any] = bus.subscribe(
            *member.topics, where=member.where, parameters=member.parameters, name=member.name
        )
        async with opening as events:
            ready.set()
            return await _read(events, ended)


async def _read(events: Subscription[Any], ended: asyncio.Event) -> int:
    count = 0
    while True:
        try:
            await events.next(QUIET_S)
            count += 1
        except TimeoutError:
            if ended.is_set():
                return count


async def main() -> None:
    loop = asyncio.get_running_loop()
    line = await loop.run_in_executor(None, sys.stdin.buffer.readline)
    settings = msgspec.json.decode(line, type=Listen)
    ended = asyncio.Event()

    async def wait_for_end() -> None:
        await loop.run_in_executor(None, sys.stdin.buffer.read)
        ended.set()

    watching = asyncio.create_task(wait_for_end())
    print(await listen(settings, ended), flush=True)
    await watching


if __name__ == "__main__":
    asyncio.run(main())
