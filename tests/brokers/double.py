"""A broker unlike a file: topics in partitions, offsets with holes, appends that store a prefix or
get no answer or come late, an author's last sequence that it does not know, reads that give less
than they could, ends that do not come, bells that ring for nothing. `oddities` counts them.

It is the seam's other end in tests of whatever stands above it: what works here and on the file
will work on a broker that somebody else wrote.
"""

from __future__ import annotations

import asyncio
import random
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any
from zlib import crc32

from msgspec.structs import replace

from inorder.brokers import runs
from inorder.core.errors import Misuse, Refused, Replaced, Unsure
from inorder.logs.broker import Author, End, Log, Rows, Run, Stored, Traits
from inorder.logs.topics import Topics

LARGEST = 64 * 1024


class Partition:
    """One log: runs that may be cut to one event, for every event may have a hole behind it."""

    def __init__(self, server: Server, number: int) -> None:
        self.log = Log(f"{server.name}-{number}", f"partition {number}")
        self.server = server
        self.first = self.end = self.origin = server.first
        self.runs: list[Run] = []
        self.offsets: list[int] = []
        self.lives: dict[str, int] = {}
        self.late: list[Sequence[Run]] = []

    def store(self, some: Sequence[Run]) -> list[int]:
        offsets: list[int] = []
        now = time.time()
        for run in some:
            for one in runs.pieces(run, 1):
                if self.server.odd("hole", 0.3):
                    self.end += self.server.random.randrange(1, 6)
                self.runs.append(replace(one, offset=self.end, stored_at=now))
                offsets.append(self.end)
                self.offsets.append(self.end)
                self.end += 1
        return offsets

    def land(self) -> None:
        """What was under way without an answer comes now."""
        for some in self.late:
            self.store(some)
        self.late.clear()


class Server:
    """What the connections share."""

    def __init__(self, name: str = "double", partitions: int = 2, first: int = 0, seed: int = 0,
                 odds: float = 1.0) -> None:  # fmt: skip
        self.name = name
        self.first = first
        self.odds = odds
        self.random = random.Random(seed)
        self.oddities: Counter[str] = Counter()
        self.partitions = [Partition(self, number) for number in range(partitions)]
        self.bells: list[asyncio.Event] = []

    def odd(self, what: str, share: float) -> bool:
        """Whether to be odd now; counted."""
        if self.random.random() >= share * self.odds:
            return False
        self.oddities[what] += 1
        return True

    def at(self, log: Log) -> Partition:
        for partition in self.partitions:
            if partition.log.identity == log.identity:
                return partition
        raise Misuse(f"there is no log {log.name}")

    def ring(self) -> None:
        for bell in self.bells:
            bell.set()

    def partition_of(self, topic: str) -> Partition:
        return self.partitions[crc32(topic.encode()) % len(self.partitions)]


class Double:
    """A connection."""

    traits = Traits(
        wakes=True, refuses_repeats=False, atomic=False, shares=True, durable=False,
        event_bytes=LARGEST,
    )  # fmt: skip

    def __init__(self, server: Server) -> None:
        self.server = server
        self._is_open = False

    async def open(self) -> None:
        self._bell = asyncio.Event()
        self.server.bells.append(self._bell)
        self._is_open = True

    async def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self.server.bells.remove(self._bell)

    async def _turn(self) -> None:
        """Every verb takes its time: others come in between."""
        if not self._is_open:
            raise Refused("the connection is closed")
        if self.server.odd("pause", 0.2):
            await asyncio.sleep(0)

    async def logs(self, topics: Topics) -> Sequence[Log]:
        """Patterns may be answered from every partition, a name from one."""
        await self._turn()
        if topics.patterns:
            return [partition.log for partition in self.server.partitions]
        held = {crc32(name.encode()) % len(self.server.partitions) for name in topics.names}
        return [self.server.partitions[number].log for number in sorted(held)]

    async def append(self, log: Log, author: Author, some: Sequence[Run]) -> Stored:
        await self._turn()
        partition = self.server.at(log)
        _, count = runs.check(author, some, LARGEST)
        if partition.lives.get(author.publisher, 0) > author.epoch:
            raise Replaced(author.publisher, author.epoch)
        odd = self.server.odd
        if odd("append refused", 0.1):
            raise Refused("the broker is busy")
        if odd("append late", 0.12):
            partition.late.append(_prefix(some, self.server.random.randrange(count + 1)))
            raise Unsure("the connection was cut")
        partition.lives[author.publisher] = author.epoch
        stored = count
        if odd("append stored a prefix", 0.15):
            stored = self.server.random.randrange(count)
        offsets = partition.store(_prefix(some, stored))
        self.server.ring()
        if odd("append without an answer", 0.12):
            raise Unsure("the connection was cut")
        return Stored(offsets, "the disk was full for a moment" if stored < count else "")

    async def last(self, log: Log, author: Author) -> int | None:
        await self._turn()
        self.server.oddities["last unknown"] += 1
        return None

    async def shut(self, log: Log, author: Author) -> int:
        await self._turn()
        partition = self.server.at(log)
        if partition.lives.get(author.publisher, 0) >= author.epoch:
            raise Replaced(author.publisher, author.epoch)
        partition.lives[author.publisher] = author.epoch
        (offset,) = partition.store([Run("", author.publisher, author.epoch, 0, 0, b"\x90")])
        if self.server.odd("a dead life's append lands", 0.5):
            partition.land()
        self.server.ring()
        return offset

    async def read(self, log: Log, offset: int, limit: int, topics: Topics) -> Rows:
        await self._turn()
        partition = self.server.at(log)
        odd = self.server.odd
        if odd("read refused", 0.15):
            raise Refused("the broker is busy")
        removed = [(offset, partition.first)] if offset < partition.first else []
        if removed:
            self.server.oddities["removed"] += 1
        start = max(offset, partition.first)
        below = partition.end
        if start + 1 < below and odd("read stops early", 0.2):
            below = min(below, start + self.server.random.randrange(1, 6))
        wanted: list[Run] = []
        upto, size = below, 0
        for place in range(bisect_left(partition.runs, start, key=_offset), len(partition.runs)):
            run = partition.runs[place]
            if run.offset >= below:
                break
            if size and size >= limit:
                upto = wanted[-1].offset + 1
                break
            if not wanted and run.offset > start and odd("read found a hole", 0.8):
                upto = run.offset
                break
            if not run.count or topics.matches(run.topic):
                wanted.append(run)
                size += len(run.values)
        return Rows(wanted, max(upto, start), removed)

    async def settle(self, logs: Sequence[Log]) -> Mapping[str, End]:
        await self._turn()
        answer: dict[str, End] = {}
        for log in logs:
            with suppress(Misuse):
                partition = self.server.at(log)
                if not self.server.odd("end missing", 0.2):
                    end = partition.end
                    answer[log.identity] = End(
                        partition.first, end, end, self._mark(partition, end)
                    )
        return answer

    async def at(self, log: Log, time: float) -> int:
        await self._turn()
        partition = self.server.at(log)
        return min((r.offset for r in partition.runs if r.stored_at >= time), default=partition.end)

    async def mark(self, log: Log, offset: int) -> bytes | None:
        await self._turn()
        partition = self.server.at(log)
        if offset > partition.end:
            return b""
        return None if offset < partition.first else self._mark(partition, offset)

    def _mark(self, partition: Partition, offset: int) -> bytes:
        events = bisect_left(partition.offsets, offset)
        return f"{crc32(partition.log.identity.encode()) ^ events:08x}".encode()

    async def erase(self, log: Log, offset: int) -> None:
        await self._turn()
        partition = self.server.at(log)
        for place, run in enumerate(partition.runs):
            if run.offset == offset and run.count:
                partition.runs[place] = runs.without(run, 0)
                return
        raise Misuse(f"there is no event {offset}")

    async def remove(self, log: Log, below: int) -> None:
        await self._turn()
        partition = self.server.at(log)
        partition.first = max(partition.first, min(below, partition.end))
        partition.runs = [run for run in partition.runs if run.offset >= partition.first]

    async def moved(self, ends: Mapping[str, int], timeout: float) -> None:
        await self._turn()
        if any(p.end > ends.get(p.log.identity, p.end) for p in self.server.partitions):
            return
        if self.server.odd("rang for nothing", 0.3):
            return
        self._bell.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._bell.wait(), timeout)

    async def status(self) -> dict[str, Any]:
        await self._turn()
        topics: Counter[str] = Counter()
        for partition in self.server.partitions:
            topics.update(run.topic for run in partition.runs if run.count)
        size = sum(len(run.values) for p in self.server.partitions for run in p.runs)
        return {"topics": dict(topics), "bytes": size, "names": []}


def _prefix(some: Sequence[Run], count: int) -> list[Run]:
    kept: list[Run] = []
    for run in some:
        if count <= 0:
            break
        kept.append(runs.cut(run, 0, min(count, run.count)))
        count -= run.count
    return kept


def _offset(run: Run) -> int:
    return run.offset
