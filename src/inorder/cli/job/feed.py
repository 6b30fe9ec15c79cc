"""A publisher process of a job: `python -m inorder.cli.job.feed`, settings on standard input.

It publishes at random instants, so many a second on average, and prints how it went.
"""

from __future__ import annotations

import asyncio
import sys
from random import Random
from typing import Any

import msgspec
from msgspec import Struct

import inorder
from inorder.bus.bus import Bus
from inorder.cli.job.tables import laws_of
from inorder.sim.drawn import Drawn

# Publications due within one tick go out together.
TICK_S = 0.01


class Feed(Struct, frozen=True, kw_only=True):
    url: str
    name: str
    topics: list[str]
    rate: float
    duration: float
    attributes: dict[str, dict[str, Any]]
    seed: str


async def feed(settings: Feed) -> dict[str, int]:
    """Publish for the whole duration; how many were stored, refused, unknown."""
    outcomes = {"stored": 0, "refused": 0, "unknown": 0}
    rng = Random(settings.seed)
    drawn = Drawn(laws_of(settings.attributes))
    loop = asyncio.get_running_loop()
    async with inorder.connect(settings.url, name=settings.name) as bus:
        start = loop.time()
        due = rng.expovariate(settings.rate)
        under_way: set[asyncio.Task[None]] = set()
        while due < settings.duration:
            await asyncio.sleep(max(TICK_S, start + due - loop.time()))
            passed = loop.time() - start
            while due <= min(passed, settings.duration):
                topic = rng.choice(settings.topics)
                task = asyncio.create_task(_publish(bus, topic, drawn.draw(rng), outcomes))
                under_way.add(task)
                task.add_done_callback(under_way.discard)
                due += rng.expovariate(settings.rate)
        await asyncio.gather(*under_way)
    return outcomes


async def _publish(bus: Bus, topic: str, value: dict[str, Any], outcomes: dict[str, int]) -> None:
    for receipt in await bus.publish_many(topic, [value]):
        outcomes[receipt.outcome] += 1


if __name__ == "__main__":
    settings = msgspec.json.decode(sys.stdin.buffer.read(), type=Feed)
    print(msgspec.json.encode(asyncio.run(feed(settings))).decode())
