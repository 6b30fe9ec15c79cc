"""A position that is stored under a name, so that a program goes on where it was."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Literal

from inorder.core.errors import InorderError, Refused, Unsure
from inorder.logs.coordinator import Coordinator
from inorder.logs.cursor import Cursor

TRY_AGAIN_S = 0.2

log_of = logging.getLogger("inorder.bus")


def key_of(name: str) -> str:
    return f"position/{name}"


class Durable:
    """Stores how far a subscription is. `mark` gives the log's mark of the past below an offset;
    `failed` hears why nothing can be stored, when that is final."""

    def __init__(
        self,
        coordinator: Coordinator,
        name: str,
        epoch: int,
        cursor: Cursor,
        ack: Literal["next", "manual"],
        mark: Callable[[int], Awaitable[bytes | None]],
        failed: Callable[[Exception], None],
    ) -> None:
        self.ack = ack
        # Stored, or being stored.
        self.position = cursor.position
        self._coordinator = coordinator
        self._key, self._epoch = key_of(name), epoch
        self._cursor = cursor
        self._mark = mark
        self._failed = failed
        self._stored = cursor.position
        self._task: asyncio.Task[None] | None = None
        # Why nothing more is stored.
        self.error: Exception | None = None

    def note(self, position: int) -> None:
        """Store this position, soon."""
        self.position = max(self.position, position)
        if self.error is not None:
            return
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._store())

    async def store(self, position: int, wait: bool) -> None:
        self.note(position)
        while wait and self._stored < position:
            if self.error is not None:
                raise self.error
            assert self._task is not None
            await asyncio.shield(self._task)
            if self._stored < position:
                self.note(position)

    async def close(self, patience: float) -> None:
        """Wait for what is being stored, but not for ever."""
        if self._task is not None:
            await asyncio.wait([self._task], timeout=patience)
            if self._task.cancel():
                log_of.warning("position %d was not stored in time", self.position)
            elif not self._task.cancelled():
                self._task.exception()  # `failed` has heard of it

    async def _store(self) -> None:
        """One write at a time; what was done meanwhile goes with the next."""
        while self._stored < self.position:
            wanted = self.position
            try:
                digest = await self._mark(wanted + 1)
                cursor = Cursor(self._cursor.order, wanted, digest or b"", self._cursor.born)
                text, durable = str(cursor).encode(), self.ack == "manual"
                await self._coordinator.put(self._key, text, self._epoch, durable)
            except (Refused, Unsure) as error:
                log_of.warning("a position was not stored: %s", error)
                await asyncio.sleep(TRY_AGAIN_S)
                continue
            except InorderError as error:
                self.error = error
                self._failed(error)
                return
            self._stored = wanted
