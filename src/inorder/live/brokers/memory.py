"""memory://NAME: everything in this process, gone with the last connection to it.

Several buses of one process may share a name; without one they share the nameless.
"""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from threading import Lock

from inorder.errors import Misuse, Replaced
from inorder.store.rows import LogRow, MailRow, TopicRow, Turn


class Hub:
    """What the connections to one name share; they may live in different threads."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.guarantees: dict[str, str] = {}
        self.next: dict[str, int] = {}
        self.log: list[LogRow] = []
        self.by_topic: dict[str, list[LogRow]] = {}
        self.mail: dict[int, MailRow] = {}
        self.mails = 0
        self.records: dict[str, list[bytes]] = {}
        # machine -> holder ("": nobody), token
        self.owners: dict[str, tuple[str, int]] = {}
        self.connected: list[MemoryBroker] = []


_hubs: dict[str, Hub] = {}
_hubs_lock = Lock()


class MemoryBroker:
    """A connection to a hub."""

    def __init__(self, rest: str, wait_s: float) -> None:
        if "/" in rest or "?" in rest:
            raise Misuse(f"memory://{rest}: a name has no / and no ?")
        self._name = rest
        self._holder = ""

    async def open(self, holder: str, arrived: Callable[[], None]) -> None:
        with _hubs_lock:
            self._hub = _hubs.setdefault(self._name, Hub())
            self._hub.connected.append(self)
        self._holder = holder
        self._arrived = arrived
        self._loop = asyncio.get_running_loop()

    async def close(self) -> None:
        with _hubs_lock:
            self._hub.connected.remove(self)
            if not self._hub.connected and _hubs.get(self._name) is self._hub:
                del _hubs[self._name]

    async def declare(self, topic: str, guarantee: str) -> str:
        with self._hub.lock:
            self._hub.next.setdefault(topic, 0)
            return self._hub.guarantees.setdefault(topic, guarantee)

    async def topics(self) -> list[TopicRow]:
        hub = self._hub
        with hub.lock:
            return [
                TopicRow(topic, hub.guarantees[topic], 0, hub.next[topic])
                for topic in sorted(hub.guarantees)
            ]

    async def claim(self, node: str) -> int | None:
        with self._hub.lock:
            holder, token = self._hub.owners.get(node, ("", 0))
            if holder not in ("", self._holder) and self._is_connected(holder):
                return None
            self._hub.owners[node] = (self._holder, token + 1)
            return token + 1

    async def owner_lives(self, node: str) -> bool:
        holder, _ = self._hub.owners.get(node, ("", 0))
        return holder != "" and self._is_connected(holder)

    def _is_connected(self, holder: str) -> bool:
        return any(other._holder == holder for other in self._hub.connected)

    async def renew(self, owned: dict[str, int]) -> list[str]:
        with self._hub.lock:
            return [n for n, token in owned.items() if self._hub.owners.get(n, ("", 0))[1] != token]

    async def release(self, owned: dict[str, int]) -> None:
        with self._hub.lock:
            for node, token in owned.items():
                if self._hub.owners.get(node, ("", 0))[1] == token:
                    self._hub.owners[node] = ("", token)

    async def records(self, node: str) -> list[bytes]:
        with self._hub.lock:
            return list(self._hub.records.get(node, ()))

    async def write(self, turn: Turn) -> int:
        hub = self._hub
        with hub.lock:
            for node, token in turn.owned.items():
                if hub.owners.get(node, ("", 0))[1] != token:
                    raise Replaced(node, token)
            now = time.time()
            for append in turn.appends:
                topic = append.topic
                offset = hub.next[topic]
                id = len(hub.log) + 1
                row = LogRow(id, topic, offset, append.count, now, append.message)
                hub.log.append(row)
                hub.by_topic.setdefault(topic, []).append(row)
                hub.next[topic] = offset + append.count
            for mail in turn.mails:
                hub.mails += 1
                hub.mail[hub.mails] = MailRow(hub.mails, mail.target, mail.source, mail.message)
            for record in turn.records:
                kept = hub.records.setdefault(record.node, [])
                if record.whole:
                    kept.clear()
                kept.append(record.record)
            for taken in turn.taken:
                hub.mail.pop(taken, None)
            last_id = len(hub.log) if turn.appends else 0
        self._ring()
        return last_id

    def _ring(self) -> None:
        for other in list(self._hub.connected):
            if other is self:
                continue
            if other._loop is self._loop:
                other._arrived()
            else:
                other._loop.call_soon_threadsafe(other._arrived)

    async def news(self, targets: Sequence[str]) -> tuple[list[MailRow], int]:
        named = {*targets}
        with self._hub.lock:
            waiting = [mail for mail in self._hub.mail.values() if mail.target in named]
            return waiting, len(self._hub.log)

    async def log(self, topics: Sequence[str], after: int, up_to: int) -> list[LogRow]:
        found: list[LogRow] = []
        with self._hub.lock:
            for topic in sorted(topics):
                rows = self._hub.by_topic.get(topic, [])
                low = bisect_right(rows, after, key=_id)
                found += rows[low : bisect_right(rows, up_to, lo=low, key=_id)]
        return found

    async def id_of(self, topic: str, offset: int) -> int | None:
        with self._hub.lock:
            rows = self._hub.by_topic.get(topic, [])
            place = bisect_left(rows, offset + 1, key=_offset) - 1
            if place < 0 or rows[place].offset + rows[place].count <= offset:
                return None
            return rows[place].id


def _id(row: LogRow) -> int:
    return row.id


def _offset(row: LogRow) -> int:
    return row.offset
