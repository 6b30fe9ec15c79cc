"""sqlite:///FILE.db: a durable log without a server, for the processes of one host.

One thread writes (a commit waits for the disk), one reads. A writer tells all who listen by a
datagram (wake.py); beneath it every listener looks at the file's version now and then.

`sqlite:///file.db` is relative to the working folder, `sqlite:////folder/file.db` is absolute;
`?durable=no` does not wait for the disk at every commit.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from inorder.brokers import chosen
from inorder.brokers.sqlite import changing, reading
from inorder.brokers.sqlite.file import File
from inorder.brokers.sqlite.wake import Listener, Waker
from inorder.core.errors import Misuse, Refused
from inorder.core.limits import EVENT_BYTES_MAX
from inorder.logs.broker import Author, End, Log, Rows, Run, Stored, Traits
from inorder.logs.coordinator import Coordinator
from inorder.logs.topics import Topics

# Between two looks at the file's version by one who waits: datagrams are quick, but may be lost.
POLL_S = 0.05

T = TypeVar("T")


class Worker:
    """A thread that makes one call after the other."""

    def __init__(self, name: str) -> None:
        self._calls: SimpleQueue[Any] = SimpleQueue()
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def do(self, call: Callable[..., T], *values: Any, **named: Any) -> asyncio.Future[T]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._calls.put((loop, future, call, values, named))
        return future

    def stop(self) -> None:
        """Behind what is under way."""
        self._calls.put(None)

    def _run(self) -> None:
        while (job := self._calls.get()) is not None:
            loop, future, call, values, named = job
            result, failure = None, None
            try:
                result = call(*values, **named)
            except BaseException as error:
                failure = error
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(_settle, future, result, failure)
            del job, future, result, failure


def _settle(future: asyncio.Future[Any], result: Any, failure: BaseException | None) -> None:
    if future.done():
        return  # cancelled meanwhile
    if failure is None:
        future.set_result(result)
    else:
        future.set_exception(failure)


class SqliteBroker:
    """A connection to a file, and its coordinator."""

    def __init__(self, place: str, options: dict[str, str], wait_s: float) -> None:
        url = f"sqlite://{place}"
        if not place.startswith("/") or place == "/":
            raise Misuse(f"{url}: write sqlite:///FILE.db")
        durable = chosen(url, options, {"durable": ("yes", "no")})["durable"] == "yes"
        self.traits = Traits(
            wakes=True, refuses_repeats=True, atomic=True, shares=True, durable=durable,
            event_bytes=EVENT_BYTES_MAX,
        )  # fmt: skip
        self.path = place[1:]
        # Half the caller's patience, so that there is an answer before it runs out.
        self._busy_s = wait_s / 2
        self._is_open = False

    async def open(self) -> None:
        self._pid = os.getpid()
        self._writer, self._reader = Worker("inorder-write"), Worker("inorder-read")
        try:
            self._out = await self._writer.do(self._file)
            try:
                self._in = await self._reader.do(self._file)
            except BaseException:
                self._out.close()
                raise
        except BaseException:
            self._writer.stop()
            self._reader.stop()
            raise
        self._log = Log(self._out.identity, f"sqlite:///{self.path}")
        self._listener = Listener(self._log.identity)
        self._waker = Waker(self._log.identity, self._listener)
        self._version = -1, 0
        self._is_open = True

    def _file(self) -> File:
        return File(self.path, durable=self.traits.durable, busy_s=self._busy_s)

    async def close(self) -> None:
        if not self._is_open:
            return
        self._is_open = False
        if self._pid != os.getpid():
            return  # these threads are the parent's
        self._listener.close()
        # Behind what is still being read and written; nothing comes behind these.
        closing = self._reader.do(self._in.close), self._writer.do(self._out.close)
        self._reader.stop()
        self._writer.stop()
        await asyncio.gather(*closing)

    @property
    def coordinator(self) -> Coordinator:
        return self

    def _check(self) -> None:
        if not self._is_open:
            raise Refused(f"{self.path}: the connection is closed")
        if self._pid != os.getpid():
            raise Misuse(f"{self.path} was opened by another process, before a fork")

    async def _write(self, call: Callable[..., T], *values: Any, **named: Any) -> T:
        self._check()
        return await self._writer.do(call, *values, **named)

    async def _read(self, call: Callable[..., T], *values: Any) -> T:
        self._check()
        return await self._reader.do(call, *values)

    # Logs.

    async def logs(self, topics: Topics) -> Sequence[Log]:
        self._check()
        return [self._log]

    async def append(self, log: Log, author: Author, runs: Sequence[Run]) -> Stored:
        return Stored(await self._write(self._append, author, runs))

    def _append(self, author: Author, runs: Sequence[Run]) -> range:
        stored = self._out.append(author, runs)
        self._waker.ring()
        return stored

    async def shut(self, log: Log, author: Author) -> int:
        return await self._write(self._shut, author)

    def _shut(self, author: Author) -> int:
        offset = self._out.shut(author)
        self._waker.ring()
        return offset

    async def last(self, log: Log, author: Author) -> int | None:
        return await self._write(self._out.within, self._out.facts.last, author)

    async def read(self, log: Log, offset: int, limit: int, topics: Topics) -> Rows:
        return await self._read(reading.read, self._in, offset, limit, topics)

    async def settle(self, logs: Sequence[Log]) -> Mapping[str, End]:
        end = await self._read(reading.settle, self._in)
        return {log.identity: end for log in logs if log.identity == self._log.identity}

    async def at(self, log: Log, time: float) -> int:
        return await self._read(reading.at, self._in, time)

    async def mark(self, log: Log, offset: int) -> bytes | None:
        return await self._read(reading.mark, self._in, offset)

    async def erase(self, log: Log, offset: int) -> None:
        await self._write(changing.erase, self._out, offset)

    async def remove(self, log: Log, below: int) -> None:
        await self._write(changing.remove, self._out, below)

    async def moved(self, ends: Mapping[str, int], timeout: float) -> None:
        known = ends.get(self._log.identity)
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout
        while known is None or await self._read(self._end) <= known:
            left = until - loop.time()
            if left <= 0:
                return
            await self._listener.heard(min(left, POLL_S))
            self._check()

    def _end(self) -> int:
        """The end of the log, as the reader sees it; asked for only if somebody has written."""
        version = self._in.version()
        if version != self._version[0]:
            self._version = version, self._in.seen(self._in.end)
        return self._version[1]

    async def status(self) -> dict[str, Any]:
        return await self._read(reading.status, self._in)

    # The coordinator.

    async def append_if(self, key: str, number: int, value: bytes) -> bytes:
        return await self._write(self._out.within, self._out.facts.append_if, key, number, value)

    async def read_from(self, key: str, number: int) -> Sequence[tuple[int, bytes]]:
        return await self._read(self._in.seen, self._in.facts.read_from, key, number)

    async def final(self, key: str) -> int:
        return await self._read(self._in.seen, self._in.facts.final, key)

    async def keys(self, prefix: str) -> Sequence[str]:
        return await self._read(self._in.seen, self._in.facts.keys, prefix)

    async def forget(self, key: str, below: int) -> None:
        await self._write(self._out.within, self._out.facts.forget, key, below)

    async def put(self, key: str, value: bytes, epoch: int, durable: bool = True) -> None:
        put = self._out.facts.put
        await self._write(self._out.within, put, key, value, epoch, durable=durable)

    async def get(self, key: str) -> tuple[bytes, int] | None:
        return await self._read(self._in.seen, self._in.facts.get, key)

    async def drop(self, key: str) -> None:
        await self._write(self._out.within, self._out.facts.drop, key)
