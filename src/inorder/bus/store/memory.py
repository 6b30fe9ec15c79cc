"""memory://NAME: everything in this process, gone with the last connection to it.

Several buses of one process may share a name; without one they share the nameless. They may live in
different threads, and may end without a word: an owner that has not been heard of for a while, or
whose event loop is closed, is replaced like one in another process.
"""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Lock

from msgspec import Struct

from inorder.bus.store.room import check_room
from inorder.bus.store.rows import LogRow, MailRow, TopicRow, Turn
from inorder.core.errors import Misuse, Replaced
from inorder.core.limits import MAIL_AT_ONCE, OWNER_SILENT_S_MAX


class Owner(Struct):
    """Who runs a machine; no holder is nobody."""

    holder: str = ""
    token: int = 0
    renewed_at: float = 0.0


class Hub:
    """What the connections to one name share; they may live in different threads."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.guarantees: dict[str, str] = {}
        self.next: dict[str, int] = {}
        self.names_bytes = 0
        self.log: list[LogRow] = []
        self.by_topic: dict[str, list[LogRow]] = {}
        # Mail by machine, and by number.
        self.mail: dict[str, dict[int, MailRow]] = {}
        self.target_of: dict[int, str] = {}
        self.mails = 0
        self.records: dict[str, list[bytes]] = {}
        self.owners: dict[str, Owner] = {}
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
        self._holder = holder
        self._arrived = arrived
        self._loop = asyncio.get_running_loop()
        with _hubs_lock:
            self._hub = _hubs.setdefault(self._name, Hub())
            self._hub.connected.append(self)

    async def close(self) -> None:
        with _hubs_lock:
            self._hub.connected.remove(self)
            if not self._hub.connected and _hubs.get(self._name) is self._hub:
                del _hubs[self._name]

    async def declare(self, topic: str, guarantee: str) -> str:
        hub = self._hub
        with hub.lock:
            if topic not in hub.next:
                check_room(len(hub.next), hub.names_bytes, topic)
                hub.names_bytes += len(topic.encode())
            hub.next.setdefault(topic, 0)
            return hub.guarantees.setdefault(topic, guarantee)

    async def topics(self) -> list[TopicRow]:
        hub = self._hub
        with hub.lock:
            return [
                TopicRow(topic, hub.guarantees[topic], 0, hub.next[topic])
                for topic in sorted(hub.guarantees)
            ]

    # Owners.

    async def claim(self, node: str) -> int | None:
        with self._hub.lock:
            owner = self._hub.owners.setdefault(node, Owner())
            if owner.holder != self._holder and self._lives(owner):
                return None
            token = owner.token + 1
            self._hub.owners[node] = Owner(self._holder, token, time.monotonic())
            return token

    async def owner_lives(self, node: str) -> bool:
        with self._hub.lock:
            owner = self._hub.owners.get(node)
            return owner is not None and owner.holder != self._holder and self._lives(owner)

    def _lives(self, owner: Owner) -> bool:
        if time.monotonic() - owner.renewed_at > OWNER_SILENT_S_MAX:
            return False
        return any(
            other._holder == owner.holder and not other._loop.is_closed()
            for other in list(self._hub.connected)
        )

    async def renew(self, owned: dict[str, int]) -> list[str]:
        lost: list[str] = []
        with self._hub.lock:
            for node, token in owned.items():
                owner = self._hub.owners.get(node)
                if owner is None or owner.token != token:
                    lost.append(node)
                else:
                    owner.renewed_at = time.monotonic()
        return lost

    async def release(self, owned: dict[str, int]) -> None:
        with self._hub.lock:
            for node, token in owned.items():
                owner = self._hub.owners.get(node)
                if owner is not None and owner.token == token:
                    owner.holder = ""

    async def drop_mail(self, kept: Sequence[str]) -> None:
        hub = self._hub
        with hub.lock:
            for target in [t for t in hub.mail if t not in kept]:
                if not self._lives(hub.owners.get(target, Owner())):
                    for id in hub.mail.pop(target):
                        del hub.target_of[id]

    # Writing and reading.

    async def records(self, node: str) -> list[bytes]:
        with self._hub.lock:
            return list(self._hub.records.get(node, ()))

    async def write(self, turn: Turn) -> int:
        hub = self._hub
        with hub.lock:
            for node, token in turn.owned.items():
                if hub.owners.get(node, Owner()).token != token:
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
                hub.mails = id = hub.mails + 1
                letter = MailRow(id, mail.target, mail.source, mail.message)
                hub.mail.setdefault(mail.target, {})[id] = letter
                hub.target_of[id] = mail.target
            for record in turn.records:
                kept = hub.records.setdefault(record.node, [])
                if record.whole:
                    kept.clear()
                kept.append(record.record)
            for taken in turn.taken:
                if target := hub.target_of.pop(taken, ""):
                    del hub.mail[target][taken]
            last_id = len(hub.log) if turn.appends else 0
        self._ring()
        return last_id

    def _ring(self) -> None:
        for other in list(self._hub.connected):
            if other is self:
                continue
            if other._loop is self._loop:
                other._arrived()
                continue
            # A loop that ended without closing its bus: nobody listens there any more.
            with suppress(RuntimeError):
                other._loop.call_soon_threadsafe(other._arrived)

    async def news(self, targets: Sequence[str]) -> tuple[list[MailRow], int]:
        hub = self._hub
        waiting: list[MailRow] = []
        with hub.lock:
            for target in targets:
                if letters := hub.mail.get(target):
                    waiting += letters.values()
            last_id = len(hub.log)
        waiting.sort(key=_id)
        return waiting[:MAIL_AT_ONCE], last_id

    async def log(self, topics: Sequence[str], after: int, up_to: int) -> tuple[list[LogRow], int]:
        found: list[LogRow] = []
        with self._hub.lock:
            for topic in topics:
                rows = self._hub.by_topic.get(topic, [])
                low = bisect_right(rows, after, key=_id)
                found += rows[low : bisect_right(rows, up_to, lo=low, key=_id)]
        found.sort(key=_id)
        return found, up_to

    async def id_of(self, topic: str, offset: int) -> int | None:
        with self._hub.lock:
            rows = self._hub.by_topic.get(topic, [])
            place = bisect_left(rows, offset + 1, key=_offset) - 1
            if place < 0 or rows[place].offset + rows[place].count <= offset:
                return None
            return rows[place].id


def _id(row: LogRow | MailRow) -> int:
    return row.id


def _offset(row: LogRow) -> int:
    return row.offset
