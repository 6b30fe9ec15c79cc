"""The witness beside a file: what the log had come to, the lock of all who write, and the identity.

SQLite drops everything behind the first bad frame of its log without a word. The witness is 16
bytes, written after each commit, before the receipt, and not synced: the page cache of the machine
outlives every process. It never tells of more than the file has, unless the file lost something.

The lock lies on the witness, never on the file: a process that closes any handle of a file gives up
all of SQLite's locks on it.
"""

from __future__ import annotations

import fcntl
import logging
import os
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from zlib import crc32

from inorder.core.errors import Damaged, Misuse, Refused

log = logging.getLogger("inorder.brokers")

_FACTS = struct.Struct(">Q4sI")
_TRY_AGAIN_S = 0.0003


class Witness:
    """One handle; `path` is that of the file it stands beside."""

    def __init__(self, path: Path) -> None:
        self._file = path
        self.path = path.with_name(path.name + "-witness")
        try:
            self._handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise Misuse(f"{self.path}: {error.strerror}") from None
        try:
            self._check_that_locks_lock()
            self._identity = _identity(self._file)
        except BaseException:
            os.close(self._handle)
            raise

    def close(self) -> None:
        os.close(self._handle)

    def _check_that_locks_lock(self) -> None:
        """Some network file systems take every lock and hold none."""
        other = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        try:
            with self.locked(5.0):
                try:
                    fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    return
        finally:
            os.close(other)
        raise Misuse(f"{self._file}: locks do not lock on this file system")

    @contextmanager
    def locked(self, wait_s: float) -> Iterator[None]:
        """Nobody else writes meanwhile."""
        until = 0.0
        while True:
            try:
                fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                now = time.monotonic()
                until = until or now + wait_s
                if now > until:
                    held = "another process holds the file"
                    raise Refused(f"{self._file}: {held}") from None
                time.sleep(_TRY_AGAIN_S)
        try:
            yield
        finally:
            fcntl.flock(self._handle, fcntl.LOCK_UN)

    def check_place(self) -> None:
        """Raise if what stands at the path is not the file that was opened."""
        if _identity(self._file) != self._identity:
            problem = "was deleted, moved or replaced while it was open; open it again"
            raise Damaged(str(self._file), problem)

    def is_blank(self) -> bool:
        """Whether it has never seen anything."""
        return os.fstat(self._handle).st_size == 0

    def read(self, identity: str) -> tuple[int, bytes] | None:
        """The last offset, and the beginning of the link out of it; None if there is none, or it
        is of another file."""
        facts = os.pread(self._handle, _FACTS.size + 1, 0)
        if len(facts) != _FACTS.size:
            return None
        last, link, total = _FACTS.unpack(facts)
        return (last, link) if _total(facts, identity) == total else None

    def write(self, identity: str, last: int, link: bytes) -> None:
        facts = _FACTS.pack(last, link[:4], 0)
        facts = facts[:-4] + _total(facts, identity).to_bytes(4)
        try:
            os.pwrite(self._handle, facts, 0)
            lost = os.fstat(self._handle).st_nlink == 0
        except OSError as error:
            log.warning("%s: cannot be written: %s", self.path, error.strerror)
            return
        if lost:
            log.warning("%s: was deleted; it is made again", self.path)
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            os.pwrite(handle, facts, 0)
            os.dup2(handle, self._handle, inheritable=False)
            os.close(handle)


def _total(facts: bytes, identity: str) -> int:
    return crc32(facts[:12], crc32(identity.encode()))


def _identity(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_dev, status.st_ino
