"""Reads a log for all subscriptions of a bus.

Subscriptions that are equally far share what is read; one that is behind is read for alone. Who
has enough waiting is left out until the application has taken some of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress

from inorder.bus.subscription import Subscription
from inorder.core.errors import Damaged, InorderError, Refused, TooLarge, Unsure
from inorder.logs.broker import Broker, Log
from inorder.logs.topics import EVERYTHING, Topics

# Between two tries to read a log that refuses, and at most between two looks at one that is quiet.
TRY_AGAIN_S = 0.05
LOOK_AGAIN_S = 1.0

log_of = logging.getLogger("inorder.bus")


class Pump:
    """A task for one bus and one log."""

    def __init__(self, broker: Broker, log: Log) -> None:
        self.subscriptions: dict[Subscription[object], None] = {}
        self._broker = broker
        self._log = log
        # How far the log reaches, as far as we were told; and whether more may be there, since
        # somebody else has written and nobody has looked.
        self._end = 0
        self._unseen = True
        # A cancellation may be lost where a wait ends in the same instant.
        self._stopped = False
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._watch: asyncio.Task[None] | None = None
        self._unions: dict[tuple[tuple[str, ...], ...], Topics] = {}

    def add(self, subscription: Subscription[object]) -> None:
        self.subscriptions[subscription] = None
        if self._task is None:
            self._task = asyncio.create_task(self._run())
            self._watch = asyncio.create_task(self._listen())
        self._wake.set()

    def remove(self, subscription: Subscription[object]) -> None:
        self.subscriptions.pop(subscription, None)

    def grown(self, end: int) -> None:
        """The log reaches so far."""
        if end > self._end:
            self._end = end
            self._wake.set()

    def ring(self) -> None:
        """A subscription wants to read on."""
        self._wake.set()

    async def stop(self) -> None:
        self._stopped = True
        for task in (self._task, self._watch):
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    async def _listen(self) -> None:
        """Wait for others' appends."""
        while not self._stopped:
            try:
                await self._broker.moved({self._log.identity: self._end}, LOOK_AGAIN_S)
            except InorderError as error:
                log_of.warning("%s: %s", self._log.name, error)
                await asyncio.sleep(TRY_AGAIN_S)
            self._unseen = True
            self._wake.set()
            await asyncio.sleep(0)  # reading comes first
            try:
                # What came since the wake-up may have been read by nobody yet.
                self.grown((await self._broker.settle([self._log]))[self._log.identity].stable)
                self._unseen = False
            except (InorderError, KeyError):
                # The end stays unknown, so `moved` would return at once.
                await asyncio.sleep(TRY_AGAIN_S)

    async def _run(self) -> None:
        try:
            while not self._stopped:
                await self._wake.wait()
                self._wake.clear()
                while await self._read():
                    await asyncio.sleep(0)  # applications want their turns, too
        except asyncio.CancelledError:
            raise
        except Exception as error:
            log_of.error("reading has ended", exc_info=error)
            for subscription in list(self.subscriptions):
                subscription.broken(error)

    async def _read(self) -> bool:
        """One read for each place that somebody is at; whether there may be more."""
        places: dict[int, list[Subscription[object]]] = {}
        for subscription in self.subscriptions:
            if (offset := subscription.reader.wants) is not None:
                places.setdefault(offset, []).append(subscription)
        more = False
        for offset, some in places.items():
            more |= await self._read_at(offset, some)
        return more

    async def _read_at(self, offset: int, some: list[Subscription[object]]) -> bool:
        topics = self._union(each.reader.topics for each in some)
        limit = min(each.reader.limit for each in some)
        try:
            rows = await self._broker.read(self._log, offset, limit, topics)
        except Damaged as error:
            for subscription in some:
                subscription.damaged(offset, error)
            return error.upto is not None
        except (Refused, Unsure) as error:
            log_of.warning("%s cannot be read: %s", self._log.name, error)
            await asyncio.sleep(TRY_AGAIN_S)
            return True
        if rows.upto <= offset:
            return False
        self._end = max(self._end, rows.upto)
        for subscription in some:
            subscription.received(offset, rows)
        return self._unseen or rows.upto < self._end

    def _union(self, some: Iterable[Topics]) -> Topics:
        parts = {each.wanted: each for each in some}
        if len(parts) == 1:
            return next(iter(parts.values()))
        key = tuple(parts)
        union = self._unions.get(key)
        if union is None:
            if len(self._unions) > 100:
                self._unions.clear()
            try:
                union = Topics(name for wanted in parts for name in wanted)
            except TooLarge:
                union = EVERYTHING
            self._unions[key] = union
        return union
