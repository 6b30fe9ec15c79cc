"""Listeners of a file: a datagram socket each, in a folder of the file's identity.

A datagram says nothing but "look". It may be lost, and listeners that cannot have a socket have
none: beneath it they look at the file's version now and then.
"""

from __future__ import annotations

import asyncio
import os
import socket
import tempfile
import time
from contextlib import suppress
from itertools import count
from pathlib import Path

_numbers = count()

# No file system's clock is coarser, where sockets can be.
_TICK_NS = 100_000_000


def _folder(identity: str) -> Path:
    return Path(tempfile.gettempdir()) / f"inorder-{os.getuid()}" / identity


class Listener:
    """The end that hears, in the running loop."""

    def __init__(self, identity: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self.path = _folder(identity) / f"{os.getpid()}-{next(_numbers)}"
        self._socket: socket.socket | None = None
        made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            made.bind(str(self.path))
            made.setblocking(False)
            self._loop.add_reader(made, self._hear)
            self._socket = made
        except (OSError, NotImplementedError):
            made.close()

    def close(self) -> None:
        self._news.set()
        if self._socket is not None:
            self._loop.remove_reader(self._socket)
            self._socket.close()
            with suppress(OSError):
                self.path.unlink()
                self.path.parent.rmdir()

    def _hear(self) -> None:
        assert self._socket is not None
        with suppress(BlockingIOError):
            while True:
                self._socket.recv(16)
                self._news.set()

    async def heard(self, timeout: float) -> bool:
        """Whether somebody rang within so many seconds, or since the last call."""
        with suppress(TimeoutError):
            # Not `wait_for`: in Python 3.11 it may lose a cancellation.
            async with asyncio.timeout(timeout):
                await self._news.wait()
        heard = self._news.is_set()
        self._news.clear()
        return heard


class Waker:
    """The end that rings, from any thread."""

    def __init__(self, identity: str, own: Listener) -> None:
        """Rings everybody but the listener of the same connection."""
        self._folder = _folder(identity)
        self._own = own.path
        self._changed = 0
        self._listeners: list[str] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)

    def ring(self) -> None:
        try:
            changed = self._folder.stat().st_mtime_ns
            if changed != self._changed:
                others = (path for path in self._folder.iterdir() if path != self._own)
                self._listeners = [str(path) for path in others]
                # Two may come within one tick of the file system's clock: then look again.
                settled = time.time_ns() - changed > _TICK_NS
                self._changed = changed if settled else 0
        except OSError:
            return  # nobody listens
        for path in self._listeners:
            try:
                self._socket.sendto(b"", path)
            except ConnectionRefusedError:
                with suppress(OSError):  # its process was killed
                    Path(path).unlink()
            except OSError:
                continue  # it has more than enough to hear, or has gone meanwhile

    def close(self) -> None:
        self._socket.close()
