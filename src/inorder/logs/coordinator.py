"""The other seam: the small facts that several processes agree on.

Publishers' lives, readers' positions, and (over several logs) the records of an order.

Rule 1: the answer to `append_if` is the value that stands at the number, mine or another's. A
        caller that repeats a call after a lost answer hears its own value, and so that it won.
Rule 2: a sequence has no hole: number n is refused if n - 1 does not exist.
Rule 3: a value with an epoch is overwritten by the same epoch or a larger one: `Replaced` tells a
        reader that another process reads under its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Coordinator(Protocol):
    """Where facts are kept. Embedded brokers are their own coordinator."""

    async def append_if(self, key: str, number: int, value: bytes) -> bytes:
        """Put a value at this number of a sequence (from 1) if there is none; the one that stands
        there now. `Refused` if the number before does not exist; `Unsure` if no answer came."""

    async def read_from(self, key: str, number: int) -> Sequence[tuple[int, bytes]]:
        """The values of a sequence from a number on, with their numbers."""

    async def final(self, key: str) -> int:
        """The last number of a sequence, 0 if it has none."""

    async def keys(self, prefix: str) -> Sequence[str]:
        """The sequences and values whose keys begin so, sorted."""

    async def forget(self, key: str, below: int) -> None:
        """Drop the values of a sequence below a number; its numbers are not given again."""

    async def put(self, key: str, value: bytes, epoch: int, durable: bool = True) -> None:
        """Overwrite a value; `Replaced` if a larger epoch has written it. On the disk on return,
        unless the caller can do without: an older value may then come back after a power cut."""

    async def get(self, key: str) -> tuple[bytes, int] | None:
        """A value and its epoch."""

    async def drop(self, key: str) -> None:
        """Forget a value or a whole sequence."""
