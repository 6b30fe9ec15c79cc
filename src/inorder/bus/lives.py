"""Which life of a name this is: a number that only grows, agreed on by all processes."""

from __future__ import annotations

from uuid import uuid4

from inorder.core.errors import Refused
from inorder.logs.coordinator import Coordinator


async def next_epoch(coordinator: Coordinator, name: str) -> int:
    """A life above all earlier ones of this name; no other process gets the same."""
    key, mine = f"epoch/{name}", uuid4().bytes
    epoch = await coordinator.final(key) + 1
    while True:
        try:
            if await coordinator.append_if(key, epoch, mine) == mine:
                break
            epoch += 1
        except Refused:
            # Others have come and have forgotten the numbers below theirs.
            if (final := await coordinator.final(key)) < epoch:
                raise
            epoch = final + 1
    await coordinator.forget(key, epoch)
    return epoch
