"""memory://NAME: a log of this process, gone with the last connection to it.

Connections of one process share a name, also in different threads and event loops; without a name
they share the nameless one. A child process has none of its parent's.
"""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from threading import Lock
from typing import Any

from msgspec.structs import replace

from inorder.brokers import chosen, runs
from inorder.core.errors import Misuse, Refused, Replaced
from inorder.core.limits import EVENT_BYTES_MAX
from inorder.logs.broker import Author, End, Log, Rows, Run, Stored, Traits
from inorder.logs.coordinator import Coordinator
from inorder.logs.topics import Topics

# The offset of the first event: what lies below was never there, so it was not removed.
FIRST = 1


class Hub:
    """What the connections to one name share."""

    def __init__(self, name: str) -> None:
        self.lock = Lock()
        self.log = Log(uuid.uuid4().hex, f"memory://{name}")
        self.first = self.end = FIRST
        # Of what lies below the first offset kept.
        self.mark = bytes(8)
        self.runs: list[Run] = []
        self.authors = runs.Authors()
        # A sequence by key: the number before its first, and its values. A value by key, and epoch.
        self.sequences: dict[str, tuple[int, list[bytes]]] = {}
        self.values: dict[str, tuple[bytes, int]] = {}
        self.connected: list[MemoryBroker] = []


# By process, so that a child never goes on with a copy of its parent's.
_hubs: dict[tuple[int, str], Hub] = {}
_hubs_lock = Lock()
os.register_at_fork(after_in_child=lambda: globals().update(_hubs_lock=Lock()))


class MemoryBroker:
    """A connection to a hub, and its coordinator."""

    traits = Traits(
        wakes=True, refuses_repeats=True, atomic=True, shares=False, durable=False,
        event_bytes=EVENT_BYTES_MAX,
    )  # fmt: skip

    def __init__(self, name: str, options: dict[str, str], wait_s: float) -> None:
        chosen(f"memory://{name}", options, {})
        if "/" in name:
            raise Misuse(f"memory://{name}: a name has no /")
        self._name = name
        self._hub_or_none: Hub | None = None

    async def open(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._pid = os.getpid()
        with _hubs_lock:
            hub = _hubs.setdefault((self._pid, self._name), Hub(self._name))
            hub.connected.append(self)
        self._hub_or_none = hub

    async def close(self) -> None:
        hub, self._hub_or_none = self._hub_or_none, None
        if hub is not None and self._pid == os.getpid():
            with _hubs_lock:
                hub.connected.remove(self)
                if not hub.connected:
                    _hubs.pop((self._pid, self._name), None)
            self._news.set()

    @property
    def _hub(self) -> Hub:
        if self._hub_or_none is None:
            raise Refused(f"memory://{self._name}: the connection is closed")
        if self._pid != os.getpid():
            raise Misuse(f"memory://{self._name} was opened by another process, before a fork")
        return self._hub_or_none

    @property
    def coordinator(self) -> Coordinator:
        return self

    # Logs.

    async def logs(self, topics: Topics) -> Sequence[Log]:
        return [self._hub.log]

    async def append(self, log: Log, author: Author, runs_: Sequence[Run]) -> Stored:
        hub = self._hub
        first, count = runs.check(author, runs_, self.traits.event_bytes)
        with hub.lock:
            runs.admit(author, first, hub.authors.known(author))
            stored = range(hub.end, hub.end + count)
            self._store(hub, author, runs_)
        self._ring(hub)
        return Stored(stored)

    async def shut(self, log: Log, author: Author) -> int:
        hub = self._hub
        with hub.lock:
            if hub.authors.known(author)[0] >= author.epoch:
                raise Replaced(author.publisher, author.epoch)
            self._store(hub, author, [Run("", author.publisher, author.epoch, 0, 0, b"\x90")])
            offset = hub.end - 1
        self._ring(hub)
        return offset

    def _store(self, hub: Hub, author: Author, some: Sequence[Run]) -> None:
        now = max(time.time(), hub.runs[-1].stored_at if hub.runs else 0.0)
        for run in some:
            mark = self._mark(hub, hub.end + runs.span(run))
            hub.runs.append(replace(run, offset=hub.end, stored_at=now, mark=mark))
            hub.end += runs.span(run)
        hub.authors.note(author, max(0, run.sequence + run.count - 1))

    def _ring(self, hub: Hub) -> None:
        for other in list(hub.connected):
            if other._loop is self._loop:
                other._news.set()
                continue
            # A loop that ended without closing its connection hears nothing any more.
            with suppress(RuntimeError):
                other._loop.call_soon_threadsafe(other._news.set)

    async def last(self, log: Log, author: Author) -> int | None:
        return self._hub.authors.last(author)

    async def read(self, log: Log, offset: int, limit: int, topics: Topics) -> Rows:
        hub = self._hub
        with hub.lock:
            offset = max(offset, FIRST)
            removed = [(offset, hub.first)] if offset < hub.first else []
            offset = max(offset, hub.first)
            place = self._place(hub, offset)
            wanted: list[Run] = []
            upto, size = hub.end, 0
            for run in islice(hub.runs, place, None):
                if size and size >= limit:
                    upto = run.offset
                    break
                if run.offset + runs.span(run) <= offset:
                    continue
                if not run.count or topics.matches(run.topic):
                    wanted.append(runs.cut(run, max(0, offset - run.offset), run.count))
                    size += len(run.values)
        return Rows(wanted, max(upto, offset), removed)

    def _place(self, hub: Hub, offset: int) -> int:
        """Where the run that holds an offset stands."""
        return max(0, bisect_right(hub.runs, offset, key=_offset) - 1)

    async def settle(self, logs: Sequence[Log]) -> Mapping[str, End]:
        hub = self._hub
        with hub.lock:
            end = End(hub.first, hub.end, hub.end, self._mark_of(hub, hub.end))
        return {log.identity: end for log in logs if log.identity == hub.log.identity}

    async def at(self, log: Log, time: float) -> int:
        hub = self._hub
        with hub.lock:
            place = bisect_left(hub.runs, time, key=_stored_at)
            return hub.runs[place].offset if place < len(hub.runs) else hub.end

    async def mark(self, log: Log, offset: int) -> bytes | None:
        hub = self._hub
        if offset > hub.end:
            return b""
        with hub.lock:
            return self._mark_of(hub, offset) if offset >= hub.first else None

    def _mark_of(self, hub: Hub, offset: int) -> bytes:
        """That of the run with the event before this offset."""
        if offset == hub.first or not hub.runs:
            return hub.mark
        return hub.runs[self._place(hub, offset - 1)].mark

    def _mark(self, hub: Hub, end: int) -> bytes:
        """A hub never has another past, so that its identity and a number tell pasts apart."""
        return (int(hub.log.identity[:15], 16) ^ end).to_bytes(8)

    async def erase(self, log: Log, offset: int) -> None:
        hub = self._hub
        with hub.lock:
            if not hub.first <= offset < hub.end:
                raise Misuse(f"{log.name}: there is no event {offset}")
            place = self._place(hub, offset)
            run = hub.runs[place]
            if run.count:
                hub.runs[place] = runs.without(run, offset - run.offset)

    async def remove(self, log: Log, below: int) -> None:
        hub = self._hub
        with hub.lock:
            below = min(below, hub.end)
            if below <= hub.first:
                return
            hub.mark = self._mark_of(hub, below)
            hub.runs = hub.runs[self._place(hub, below) :]
            if hub.runs and (start := below - hub.runs[0].offset):
                if start < hub.runs[0].count:
                    hub.runs[0] = runs.cut(hub.runs[0], start, hub.runs[0].count)
                else:
                    hub.runs.pop(0)
            hub.first = below

    async def moved(self, ends: Mapping[str, int], timeout: float) -> None:
        hub = self._hub
        if hub.end > ends.get(hub.log.identity, hub.end):
            return
        self._news.clear()
        with suppress(TimeoutError):
            # Not `wait_for`: in Python 3.11 it may lose a cancellation.
            async with asyncio.timeout(timeout):
                await self._news.wait()

    async def status(self) -> dict[str, Any]:
        hub = self._hub
        topics: dict[str, int] = {}
        with hub.lock:
            for run in hub.runs:
                if run.count:
                    topics[run.topic] = topics.get(run.topic, 0) + run.count
            size = sum(len(run.values) for run in hub.runs)
            names = sorted({*hub.values, *hub.sequences})
        figures = {"identity": hub.log.identity, "first": hub.first, "end": hub.end}
        return {**figures, "bytes": size, "topics": topics, "names": names}

    # The coordinator.

    async def append_if(self, key: str, number: int, value: bytes) -> bytes:
        hub = self._hub
        with hub.lock:
            below, values = hub.sequences.get(key, (0, []))
            if below < number <= below + len(values):
                return values[number - below - 1]
            if number != below + len(values) + 1:
                problem = "was forgotten" if 0 < number <= below else "does not follow the last"
                raise Refused(f"{key}: number {number} {problem}")
            hub.sequences[key] = below, [*values, value]
        return value

    async def read_from(self, key: str, number: int) -> Sequence[tuple[int, bytes]]:
        below, values = self._hub.sequences.get(key, (0, []))
        start = max(0, number - below - 1)
        return list(enumerate(values[start:], below + 1 + start))

    async def final(self, key: str) -> int:
        below, values = self._hub.sequences.get(key, (0, []))
        return below + len(values)

    async def keys(self, prefix: str) -> Sequence[str]:
        hub = self._hub
        return sorted(key for key in {*hub.sequences, *hub.values} if key.startswith(prefix))

    async def forget(self, key: str, below: int) -> None:
        hub = self._hub
        with hub.lock:
            if key in hub.sequences:
                start, values = hub.sequences[key]
                gone = min(max(0, below - start - 1), len(values))
                hub.sequences[key] = start + gone, values[gone:]

    async def put(self, key: str, value: bytes, epoch: int, durable: bool = True) -> None:
        hub = self._hub
        with hub.lock:
            if hub.values.get(key, (b"", 0))[1] > epoch:
                raise Replaced(key, epoch)
            hub.values[key] = value, epoch

    async def get(self, key: str) -> tuple[bytes, int] | None:
        return self._hub.values.get(key)

    async def drop(self, key: str) -> None:
        hub = self._hub
        with hub.lock:
            hub.values.pop(key, None)
            hub.sequences.pop(key, None)


def _offset(run: Run) -> int:
    return run.offset


def _stored_at(run: Run) -> float:
    return run.stored_at
