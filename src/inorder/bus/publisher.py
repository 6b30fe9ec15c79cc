"""Drives what one bus has under way on a log (logs/publications.py).

A task appends; whoever publishes while it waits for the broker goes with its next append.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from inorder.bus.receipt import Outcome, Receipt
from inorder.core.errors import Damaged, InorderError, Misuse, Refused, Replaced, TooLarge, Unsure
from inorder.core.limits import READ_BYTES_AT_ONCE
from inorder.logs.broker import Author, Broker, Log, Run
from inorder.logs.publications import (
    Append,
    Effect,
    Fate,
    Look,
    Publication,
    Publications,
    Renew,
)
from inorder.logs.topics import EVERYTHING

# Between two tries to read what an append without an answer has left behind.
TRY_AGAIN_S = 0.05

log_of = logging.getLogger("inorder.bus")

# The receipts of a call, once all of its events have a fate.
Told = Callable[[list[Receipt]], None]


class Call:
    """A publication and the receipts it has so far."""

    __slots__ = ("count", "publication", "receipts", "told")

    def __init__(self, publication: Publication, told: Told) -> None:
        self.publication, self.count, self.told = publication, publication.count, told
        self.receipts: list[Receipt] = []


class Publisher:
    """`begin` gives the life under which events are published, when the first one is."""

    def __init__(
        self,
        broker: Broker,
        log: Log,
        begin: Callable[[], Any],
        on_stored: Callable[[int], None],
    ) -> None:
        self._broker = broker
        self._log = log
        self._begin = begin
        self._on_stored = on_stored
        self._machine: Publications | None = None
        self._calls: dict[int, Call] = {}
        self._number = 0
        self._todo: list[Effect] = []
        self._early: list[Publication] = []
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.error: Exception | None = None

    @property
    def waiting(self) -> int:
        """Calls without an answer."""
        return len(self._calls)

    def publish(
        self,
        topic: str,
        values: bytes,
        count: int,
        published_at: float,
        until: float,
        told: Told,
        keys: tuple[str | None, ...] | None = None,
        headers: tuple[Mapping[str, str] | None, ...] | None = None,
    ) -> None:
        """`told` hears the receipts, soon or late; raises if it is refused at once."""
        if self.error is not None:
            raise self.error
        self._number += 1
        publication = Publication(
            self._number, topic, count, values, published_at, until, keys, headers
        )
        if self._machine is None:
            self._early.append(publication)
        else:
            try:
                self._todo += self._machine.publish(publication)
            except TooLarge as error:
                raise Refused(str(error)) from None
        self._calls[self._number] = Call(publication, told)
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        self._wake.set()
        self._watch(until)

    async def close(self) -> None:
        """Nothing more is sent; what has no fate yet is told that."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        if self._timer is not None:
            self._timer.cancel()
        self._fail(Refused("the bus was closed"))

    # The task.

    async def _run(self) -> None:
        try:
            await self._first()
            while True:
                while self._todo:
                    await self._act(self._todo.pop(0))
                self._wake.clear()
                await self._wake.wait()
        except asyncio.CancelledError:
            raise
        except Exception as error:
            self._fail(error)

    async def _first(self) -> None:
        while True:
            try:
                author, known = await self._begin()
                break
            except (Refused, Unsure, KeyError) as error:
                # Nothing was sent. The next publication tries again.
                log_of.warning("%s: no life to publish under: %s", self._log.name, error)
                self._refuse_early(str(error))
                self._wake.clear()
                await self._wake.wait()
        self._machine = Publications(author, self._broker.traits.refuses_repeats, known)
        early, self._early = self._early, []
        for publication in early:
            self._todo += self._machine.publish(publication)

    async def _act(self, effect: Effect) -> None:
        assert self._machine is not None
        machine = self._machine
        if isinstance(effect, Append):
            try:
                stored = await self._broker.append(self._log, effect.author, effect.runs)
            except Unsure as error:
                log_of.warning("an append had no answer: %s", error)
                await asyncio.sleep(TRY_AGAIN_S)
                self._do(machine.unsure())
            except Refused as error:
                self._do(machine.refused(str(error)))
            else:
                if stored.offsets:
                    self._on_stored(stored.offsets[-1] + 1)
                self._do(machine.stored(stored))
        elif isinstance(effect, Look):
            runs, upto = await self._look(effect)
            self._do(machine.found(runs, upto))
        elif isinstance(effect, Renew):
            try:
                author, known = await self._begin()
            except (Refused, Unsure, KeyError) as error:
                log_of.warning("%s: no new life yet: %s", self._log.name, error)
                await asyncio.sleep(TRY_AGAIN_S)
                self._todo.append(effect)
            else:
                self._do(machine.renewed(author, known))

    async def _look(self, look: Look) -> tuple[Sequence[Run], int]:
        """Everything of an author from an offset to the stable end of the log."""
        while True:
            try:
                end = (await self._broker.settle([self._log]))[self._log.identity].stable
                runs: list[Run] = []
                offset = look.offset
                while offset < end:
                    rows = await self._broker.read(
                        self._log, offset, READ_BYTES_AT_ONCE, EVERYTHING
                    )
                    runs += (run for run in rows.runs if _is_by(run, look.author))
                    offset = rows.upto
                return runs, max(end, offset)
            except (Refused, Unsure, KeyError) as error:
                log_of.warning("the log cannot be read: %s", error)
                await asyncio.sleep(TRY_AGAIN_S)

    def _do(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Fate):
                self._tell(effect)
            else:
                self._todo.append(effect)

    # Answers.

    def _tell(self, fate: Fate) -> None:
        call = self._calls[fate.call]
        outcome: Outcome = fate.outcome  # type: ignore[assignment]
        author, topic, log = fate.author, call.publication.topic, self._log.identity
        name, epoch, seq = author.publisher, author.epoch, fate.sequence
        if outcome == "stored":
            call.receipts += [
                Receipt(topic, name, epoch, number, outcome, offset, log)
                for number, offset in enumerate(fate.offsets, seq)
            ]
        else:
            call.receipts += [
                Receipt(topic, name, epoch, seq and seq + number, outcome, None, log, fate.reason)
                for number in range(fate.count)
            ]
        if len(call.receipts) == call.count:
            del self._calls[fate.call]
            call.told(call.receipts)

    def _watch(self, until: float) -> None:
        """Look at the time when the first publication has waited long enough."""
        loop = asyncio.get_running_loop()
        if self._timer is not None and not self._timer.cancelled():
            if self._timer.when() <= until:
                return
            self._timer.cancel()
        self._timer = loop.call_at(until, self._expire)

    def _expire(self) -> None:
        now = asyncio.get_running_loop().time()
        self._timer = None
        if self._machine is not None:
            self._do(self._machine.expire(now))
        else:
            late = [each for each in self._early if each.until <= now]
            self._early = [each for each in self._early if each.until > now]
            for publication in late:
                self._tell(_refused(publication, "not sent in time"))
        if self._calls:
            left = (each.publication.until for each in self._calls.values())
            self._watch(max(min(left), now + 0.001))

    def _fail(self, error: Exception) -> None:
        """This publisher has ended."""
        if self.error is not None:
            return
        self.error = error if isinstance(error, InorderError) else Misuse(f"a defect: {error!r}")
        reason = str(error)
        if not isinstance(error, Refused | Replaced | Damaged | Misuse | Unsure):
            log_of.error("the publisher has ended", exc_info=error)
        if self._machine is not None:
            if not isinstance(error, Replaced | Misuse):
                self._machine.unsure()  # what was sent may have arrived
            self._do(self._machine.ended(reason))
        self._refuse_early(reason)

    def _refuse_early(self, reason: str) -> None:
        early, self._early = self._early, []
        for publication in early:
            self._tell(_refused(publication, reason))


def _refused(publication: Publication, reason: str) -> Fate:
    nobody = Author("", 0)
    return Fate(publication.call, 0, publication.count, "refused", nobody, 0, (), reason)


def _is_by(run: Run, author: Author) -> bool:
    return run.publisher == author.publisher and run.epoch == author.epoch
