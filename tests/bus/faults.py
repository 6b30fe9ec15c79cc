"""What a store does to those who use it: refusals, answers that are lost, effects that come late.

A file fails in SQLite's own words, at any statement; a memory fails between its calls.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextvars import copy_context
from typing import Any

from msgspec.structs import replace

from inorder.brokers.memory import MemoryBroker
from inorder.core.errors import Refused, Replaced, Unsure
from inorder.logs.broker import Author, Log, Run, Stored
from tests.bus.virtual import PROCESS, Loop

# SQLite's codes, and how each is said.
CODES = {5: "database is locked", 10: "disk I/O error", 13: "database or disk is full"}


class Faults:
    """How often a call fails, and how often it did; at rest until `rate` is set."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.rate = 0.0
        # One kind only, while it is set: a disk that is full stays so.
        self.code: int | None = None
        self.seen: Counter[str] = Counter()

    def drawn(self) -> bool:
        return self.rate > 0 and self.chance.random() < self.rate

    def connection(self, *values: Any, **named: Any) -> sqlite3.Connection:
        """In the place of sqlite3.connect."""
        made = Connection(*values, **named)
        made.faults = self
        return made

    def error(self, what: str) -> sqlite3.OperationalError:
        code = self.code or self.chance.choice([*CODES])
        self.seen[f"{what} {code}"] += 1
        error = sqlite3.OperationalError(CODES[code])
        error.sqlite_errorcode = code
        return error


class Connection(sqlite3.Connection):
    faults: Faults | None = None

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        faults = self.faults
        if faults is None or sql == "ROLLBACK" or not faults.drawn():
            return super().execute(sql, *values)
        if sql == "COMMIT" and faults.chance.random() < 0.5:
            super().execute(sql)
            error = faults.error("committed, and")
            if error.sqlite_errorcode != 10:  # the others come before the commit
                error.sqlite_errorcode = 10
            raise error
        raise faults.error("commit" if sql == "COMMIT" else "statement")

    def executemany(self, sql: str, *values: Any) -> sqlite3.Cursor:
        if self.faults is not None and self.faults.drawn():
            raise self.faults.error("statement")
        return super().executemany(sql, *values)


class Memory(MemoryBroker):
    """A memory whose calls take their three steps, and may fail before and after they happen.

    With `repeats`, it is like a server that takes whatever a living author sends: repeats, late
    arrivals of what had no answer, older sequences behind newer ones. Only older lives are shut
    out.
    """

    def __init__(self, name: str, wait_s: float, faults: Faults, repeats: bool) -> None:
        super().__init__(name, {}, wait_s)
        self._faults = faults
        self._repeats = repeats
        self.traits = replace(MemoryBroker.traits, shares=True, refuses_repeats=not repeats)

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        return found if name not in STEPPED else super().__getattribute__("_stepped")(name, found)

    def _stepped(self, name: str, call: Any) -> Any:
        faults, loop = self._faults, self._loop
        assert isinstance(loop, Loop)

        async def late(*values: Any) -> None:
            await asyncio.sleep(faults.chance.random() * 0.2)
            try:
                await call(*values)
            except (Refused, Replaced):
                faults.seen[f"{name} late, refused"] += 1

        async def stepped(*values: Any, **named: Any) -> Any:
            await asyncio.sleep(loop.pause())
            kind = faults.chance.choice(["before", "after", "late"]) if faults.drawn() else ""
            if kind == "before" or (kind and name not in WRITES):
                faults.seen[f"{name} refused"] += 1
                raise Refused(f"{name}: not now")
            if kind == "late" and name == "append":
                faults.seen["append late"] += 1
                # It is on its way, whatever becomes of its sender.
                context = copy_context()
                context.run(PROCESS.set, "")
                loop.create_task(late(*values), context=context)
                raise Unsure("append: no answer")
            result = await call(*values, **named)
            if kind:
                faults.seen[f"{name} unsure"] += 1
                raise Unsure(f"{name}: no answer")
            await asyncio.sleep(loop.pause())
            return result

        return stepped

    async def append(self, log: Log, author: Author, runs_: Sequence[Run]) -> Stored:
        if not self._repeats:
            return await super().append(log, author, runs_)
        hub = self._hub
        if hub.authors.known(author)[0] > author.epoch:
            raise Replaced(author.publisher, author.epoch)
        count = sum(run.count for run in runs_)
        start = hub.end
        self._store(hub, author, runs_)
        self._ring(hub)
        return Stored(range(start, start + count))


WRITES = ("append", "shut", "append_if", "put", "forget")
STEPPED = (*WRITES, "read", "settle", "mark", "get", "final", "read_from")
