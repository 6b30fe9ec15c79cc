"""sqlite:///FILE.db: a durable broker without a server, for the processes of one host.

One thread writes (a commit may wait for the disk), one reads, and one watches: SQLite tells nobody
that something was written, so the watcher asks for the file's version, often while there is
traffic and rarely when there is none. Asking costs microseconds and touches no page.

`sqlite:///file.db` is relative to the working folder, `sqlite:////folder/file.db` is absolute;
`?durable=no` does not wait for the disk at every commit.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread
from typing import TypeVar

from inorder.bus.store.rows import LogRow, MailRow, TopicRow, Turn
from inorder.bus.store.sqlite.file import File
from inorder.core.errors import InorderError, Misuse, Refused

# Between two looks at the file: just after something was new, and when all is quiet.
WATCH_BUSY_S = 0.001
WATCH_QUIET_S = 0.005
# How long "just after" lasts.
BUSY_S = 0.25

T = TypeVar("T")


class SqliteBroker:
    """A connection to a file."""

    def __init__(self, rest: str, wait_s: float) -> None:
        path, _, query = rest.partition("?")
        if not path.startswith("/") or path == "/":
            raise Misuse(f"sqlite://{rest}: write sqlite:///FILE.db")
        if query not in ("", "durable=yes", "durable=no"):
            raise Misuse(f"sqlite://{rest}: the one option is durable=yes or durable=no")
        self._path = path[1:]
        self._durable = query != "durable=no"
        # Half the caller's patience, so that there is an answer before it runs out.
        self._busy_s = wait_s / 2
        self._holder = ""
        self._closed = Event()

    async def open(self, holder: str, arrived: Callable[[], None]) -> None:
        self._holder = holder
        self._arrived = arrived
        self._loop = asyncio.get_running_loop()
        self._writer = ThreadPoolExecutor(1, "inorder-write")
        self._reader = ThreadPoolExecutor(1, "inorder-read")
        files: list[File] = []
        try:
            for thread in (self._writer, self._reader, self._reader):
                files.append(await self._loop.run_in_executor(thread, self._open))
        except BaseException:
            for file in files:
                file.close()
            self._writer.shutdown(wait=False)
            self._reader.shutdown(wait=False)
            raise
        self._out, self._in, watched = files
        self._watcher = Thread(target=self._watch, args=[watched], daemon=True)
        self._watcher.start()

    def _open(self) -> File:
        return File(self._path, durable=self._durable, busy_s=self._busy_s)

    async def close(self) -> None:
        self._closed.set()
        await asyncio.to_thread(self._watcher.join)
        # Behind whatever is still being read and written; nobody comes behind these.
        await self._loop.run_in_executor(self._reader, self._in.close)
        await self._loop.run_in_executor(self._writer, self._out.close)
        self._reader.shutdown()
        self._writer.shutdown()

    def _watch(self, file: File) -> None:
        """Ring when somebody has written, ourselves included: that costs one look in vain."""
        seen = 0
        changed_at = time.monotonic()
        try:
            while not self._closed.is_set():
                busy = time.monotonic() - changed_at < BUSY_S
                time.sleep(WATCH_BUSY_S if busy else WATCH_QUIET_S)
                try:
                    version = file.version()
                except InorderError:
                    version = -1  # whoever reads the file will hear why
                if version != seen:
                    seen = version
                    changed_at = time.monotonic()
                    self._loop.call_soon_threadsafe(self._arrived)
        except RuntimeError:
            pass  # the loop is closed: nobody listens any more
        finally:
            file.close()

    async def _writing(self, call: Callable[[], T]) -> T:
        self._check_open()
        return await self._loop.run_in_executor(self._writer, call)

    async def _reading(self, call: Callable[[], T]) -> T:
        self._check_open()
        return await self._loop.run_in_executor(self._reader, call)

    def _check_open(self) -> None:
        if self._closed.is_set():
            raise Refused(f"{self._path}: the bus was closed")

    async def declare(self, topic: str, guarantee: str) -> str:
        return await self._writing(lambda: self._out.declare(topic, guarantee))

    async def topics(self) -> list[TopicRow]:
        return await self._reading(lambda: self._in.topics())

    async def claim(self, node: str) -> int | None:
        return await self._writing(lambda: self._out.claim(node, self._holder, time.time()))

    async def owner_lives(self, node: str) -> bool:
        return await self._reading(lambda: self._in.owner_lives(node, time.time(), self._holder))

    async def renew(self, owned: dict[str, int]) -> list[str]:
        return await self._writing(lambda: self._out.renew(owned, time.time()))

    async def release(self, owned: dict[str, int]) -> None:
        await self._writing(lambda: self._out.release(owned))

    async def drop_mail(self, kept: Sequence[str]) -> None:
        await self._writing(lambda: self._out.drop_mail(kept, time.time()))

    async def records(self, node: str) -> list[bytes]:
        return await self._writing(lambda: self._out.records(node))

    async def write(self, turn: Turn) -> int:
        return await self._writing(lambda: self._out.write(turn))

    async def news(self, targets: Sequence[str]) -> tuple[list[MailRow], int]:
        return await self._reading(lambda: (self._in.mail(targets), self._in.last_id()))

    async def log(self, topics: Sequence[str], after: int, up_to: int) -> tuple[list[LogRow], int]:
        return await self._reading(lambda: self._in.log(topics, after, up_to))

    async def id_of(self, topic: str, offset: int) -> int | None:
        return await self._reading(lambda: self._in.id_of(topic, offset))
