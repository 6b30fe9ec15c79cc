"""One connection to a file, for one thread.

Rule 1: what changes the file is a turn: one transaction, under the lock, conditional on the tail
        that is known, then the witness, then a look at whether the file is still in its place. Only
        then it has happened.
Rule 2: a turn is on the disk when it ends (WAL, synchronous = FULL), if it is `durable`. A file
        opened with durable=no waits once in a million offsets: what may be used is written down,
        and after a power cut the log goes on above it.
Rule 3: a turn either happened, or raised `Refused` or `Replaced` (nothing was written, and nothing
        will be), or raised something else, and then it may have happened.
Rule 4: only errors of ours leave. A file that is not ours is not touched.
"""

from __future__ import annotations

import os
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from inorder.brokers import runs
from inorder.brokers.sqlite import block, facts
from inorder.brokers.sqlite.witness import Witness, log
from inorder.core.errors import Damaged, Misuse, Refused, Replaced, Unsure
from inorder.core.limits import CEILING_STEP, EVENT_BYTES_MAX
from inorder.logs.broker import Author, Run
from inorder.logs.topics import Topics

FORMAT = 2
# The offset of the first event: what lies below was never there, so it was not removed.
FIRST = 1
APPLICATION = int.from_bytes(b"inor")

TABLES = (
    """
CREATE TABLE log (
  last INTEGER PRIMARY KEY, n INTEGER NOT NULL, head BLOB NOT NULL, seal BLOB NOT NULL,
  body BLOB NOT NULL
)
""",
    facts.TABLE,
)

# SQLite's primary result codes (the low byte of an extended one).
_BUSY, _LOCKED, _FULL, _PROTOCOL = 5, 6, 13, 15
# No memory, read-only, interrupted, disk error, full, cannot open: of the moment, or of the place.
_PASSING = (7, 8, 9, 10, 13, 14)

_TRY_AGAIN_S = 0.01

T = TypeVar("T")


class Tail(NamedTuple):
    """Where the log goes on, and what it follows."""

    end: int
    link: bytes
    stored_at: float


class File:
    """The tables, behind verbs."""

    def __init__(self, path: str | os.PathLike[str], *, durable: bool = True, busy_s: float = 5.0,
                 create: bool = True, recover: bool = True) -> None:  # fmt: skip
        self.path = Path(path).absolute()
        self.durable = durable
        self._busy_s = busy_s
        self._version = -1
        self.tail = Tail(0, b"", 0.0)
        self._authors: dict[str, tuple[int, int]] = {}
        self._ceiling = 0
        # Whose topics are read (reading.py).
        self.wanted: Topics | None = None
        self._make(create)
        self.witness = Witness(self.path)
        try:
            with self.witness.locked(busy_s), translated(self.path, opening=True):
                self.db = sqlite3.connect(
                    self.path, timeout=busy_s, isolation_level=None, check_same_thread=False
                )
                # Texts in place of bytes are damage for us to name.
                self.db.text_factory = lambda text: text.decode(errors="replace")
                self.facts = facts.Facts(self.db, self.path)
                try:
                    self._prepare()
                except BaseException:
                    self.db.close()
                    raise
            if recover:
                self._recover()
        except BaseException:
            self.witness.close()
            raise

    def _make(self, create: bool) -> None:
        """Make the file, for its owner only, if there is none."""
        if not self.path.parent.is_dir():
            raise Misuse(f"{self.path}: there is no folder {self.path.parent}")
        if not create and not self.path.exists():
            raise Misuse(f"{self.path}: there is no such file")
        # Never a handle of a file that exists: closing it would give up SQLite's locks.
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            return
        except OSError as error:
            raise Misuse(f"{self.path}: {error.strerror}") from None

    def _prepare(self) -> None:
        db = self.db
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master")]
        if not tables and not self.witness.is_blank():
            seen = f"is empty, but {self.witness.path} is not: it has lost everything"
            raise Damaged(str(self.path), f"{seen} (to begin a new log, delete both)")
        if not tables:
            db.execute("PRAGMA auto_vacuum = INCREMENTAL")
        elif self._pragma("application_id") != APPLICATION:
            raise Misuse(f"{self.path}: is a SQLite file, but none that this version has made")
        elif (number := self._pragma("user_version")) != FORMAT:
            raise Misuse(f"{self.path}: has format {number}, this version reads {FORMAT}")
        until = time.monotonic() + self._busy_s
        while True:
            try:
                db.execute("PRAGMA journal_mode = WAL")
                break
            except sqlite3.OperationalError as error:
                # SQLite does not wait here while another process does the same.
                if code_of(error) != _BUSY or time.monotonic() > until:
                    raise
                time.sleep(_TRY_AGAIN_S)
        self._synced: bool | None = None
        self._sync(True)
        if not tables:
            self._create()
        found = self.facts.get(".identity")
        if found is None:
            raise Damaged(str(self.path), "has lost its identity")
        self.identity = found[0].decode()

    def _pragma(self, name: str) -> Any:
        return self.db.execute(f"PRAGMA {name}").fetchone()[0]

    def _create(self) -> None:
        identity = uuid.uuid4().hex
        self._begin(True)
        try:
            for statement in TABLES:
                self.db.execute(statement)
            self.db.execute(f"PRAGMA application_id = {APPLICATION}")
            self.db.execute(f"PRAGMA user_version = {FORMAT}")
            self.facts.set(".identity", 0, FORMAT, identity.encode())
            self.facts.set(".start", 0, FIRST, block.origin(identity))
        except BaseException:
            self._roll_back()
            raise
        self._commit()
        self.checkpoint()  # a file whose log is lost is still known as one of ours
        self.witness.write(identity, 0, block.origin(identity))

    def _recover(self) -> None:
        """Say what is wrong, and go on above what a power cut may have taken."""
        try:
            with self.turn(True):
                if self._is_unclean:
                    tail, now = self.tail, self._now()
                    log.warning(
                        "%s: was not closed before the machine stopped; what was at offsets %d to"
                        " %d is lost, if anything was", self.path, tail.end, self._ceiling - 1,
                    )  # fmt: skip
                    self._store([block.gap(tail.end, self._ceiling, tail.link, now)], now)
        except Damaged as error:
            log.error("%s", error)

    def close(self) -> None:
        if not self.durable and self._ceiling:
            with suppress(Damaged, Refused, Unsure), self.turn(True):
                # Everything below is on the disk with this turn: the next life may go on here.
                self.facts.set(".ceiling", 0, 0, b"")
        self.db.close()
        self.witness.close()

    # Turns.

    @contextmanager
    def turn(self, durable: bool) -> Iterator[None]:
        """One transaction; it has happened when this ends."""
        self.witness.check_place()
        with self.witness.locked(self._busy_s):
            before = self.tail
            try:
                with translated(self.path):
                    self._begin(durable)
                    self._look()
                    before = self.tail
                    yield
                self._commit()
            except BaseException:
                self._roll_back()
                self.tail, self._version = before, -1
                raise
            self.witness.write(self.identity, self.tail.end - 1, self.tail.link)
            self.witness.check_place()

    def within(self, call: Callable[..., T], *values: object, durable: bool = True) -> T:
        """A call, for instance of `facts`, as a turn."""
        with self.turn(durable):
            return call(*values)

    def seen(self, call: Callable[..., T], *values: object) -> T:
        """A call that only reads."""
        with self.snapshot():
            return call(*values)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Everything read inside is of one moment."""
        self.witness.check_place()
        with translated(self.path):
            self._roll_back()
            self.db.execute("BEGIN")
            try:
                yield
            finally:
                self._roll_back()

    def _begin(self, durable: bool) -> None:
        self._roll_back()  # what an earlier failure may have left open
        self._sync(durable)
        self.db.execute("BEGIN IMMEDIATE")

    def _sync(self, wanted: bool) -> None:
        """Whether the next commit waits for the disk; what was committed before it then waits, too,
        since the log of the database is one file."""
        if self._synced is not wanted:
            self.db.execute(f"PRAGMA synchronous = {'FULL' if wanted else 'NORMAL'}")
            self._synced = wanted

    def _commit(self) -> None:
        try:
            self.db.execute("COMMIT")
        except sqlite3.Error as error:
            # Before the commit mark was written; after any other error it may have been.
            refused = code_of(error) in (_BUSY, _LOCKED, _FULL)
            kind = Refused if refused else Unsure
            raise kind(f"{self.path}: {error}") from None

    def _roll_back(self) -> None:
        # SQLite rolls back by itself on the errors that end up here.
        with suppress(sqlite3.Error):
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")

    def checkpoint(self) -> None:
        """Empty SQLite's log into the file, if no reader needs it."""
        with translated(self.path):
            self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def vacuum(self) -> None:
        """Give back pages that are not used any more."""
        with translated(self.path):
            # Not execute: it frees one page, and stops where a row could come but none does.
            self.db.executescript("PRAGMA incremental_vacuum")

    def version(self) -> int:
        """Changes when another connection has written something."""
        with translated(self.path):
            return int(self._pragma("data_version"))

    def _look(self) -> None:
        """Learn what others have written."""
        version = self._pragma("data_version")
        if version == self._version:
            return
        self._authors.clear()
        boot, self._ceiling = self.facts.get(".ceiling") or (b"", 0)
        self.check_identity()
        tail = self._read_tail()
        seen = self.witness.read(self.identity)
        self._is_unclean = self._ceiling > tail.end and boot != boot_id()
        if seen is None:
            log.warning("%s: is missing or damaged; it is made again", self.witness.path)
        elif self._is_unclean and tail.end <= seen[0] < self._ceiling:
            pass  # what was not waited for is gone: `_recover` says so
        elif seen[0] >= tail.end or tail.end < self.tail.end:
            raise lost(self.path, tail.end, max(seen[0], self.tail.end - 1))
        elif seen[0] == tail.end - 1 and seen[1] != tail.link[:4]:
            raise damaged(self.path, "is not what its witness has seen", seen[0], seen[0])
        self.tail, self._version = tail, version

    def check_identity(self) -> None:
        """Raise if the file has become another one, under the same name."""
        found = self.facts.get(".identity")
        if found is None or found[0].decode(errors="replace") != self.identity:
            raise Damaged(str(self.path), "was replaced while it was open; open it again")

    def start(self) -> tuple[int, bytes]:
        """The first offset kept, and the link into its block."""
        found = self.facts.get(".start")
        if found is None:
            raise Damaged(str(self.path), "has lost its start")
        return found[1], found[0]

    def end(self) -> int:
        """The offset after the last, by its own account."""
        row = self.row("ORDER BY last DESC")
        return row[0] + 1 if row and isinstance(row[0], int) else self.start()[0]

    def _read_tail(self) -> Tail:
        row = self.row("ORDER BY last DESC")
        if row is None:
            return Tail(*self.start(), 0.0)
        try:
            block.verify(*row[:4])
            return Tail(row[0] + 1, block.link_out(row[3]), block.head_of(row[2]).stored_at)
        except block.Unsound as error:
            last = row[0] if isinstance(row[0], int) else self.tail.end
            raise damaged(self.path, str(error), last, last) from None

    def row(self, rest: str, *values: object) -> block.Row | None:
        """The first row that a query finds, as it stands there."""
        query = f"SELECT last, n, head, seal, body FROM log {rest} LIMIT 1"
        row: block.Row | None = self.db.execute(query, values).fetchone()
        return row

    # Verbs.

    def append(self, author: Author, some: Sequence[Run]) -> range:
        first, count = runs.check(author, some, EVENT_BYTES_MAX)
        while True:
            if not self.durable and self.tail.end + count > self._ceiling:
                self._raise_ceiling(count)
            with self.turn(self.durable):
                if not self.durable and self.tail.end + count > self._ceiling:
                    continue  # others have written, or closed: the ceiling first
                known = self._known(author)
                runs.admit(author, first, known)
                stored = range(self.tail.end, self.tail.end + count)
                now = self._now()
                self._store(block.blocks(some, self.tail.end, self.tail.link, now), now)
                self._note(author, some[-1].sequence + some[-1].count - 1, known)
            return stored

    def _raise_ceiling(self, count: int) -> None:
        with self.turn(True):
            wanted = self.tail.end + count
            if wanted > self._ceiling:
                self._ceiling = wanted + CEILING_STEP
                self.facts.set(".ceiling", 0, self._ceiling, boot_id())

    def shut(self, author: Author) -> int:
        with self.turn(True):
            known = self._known(author)
            if known[0] >= author.epoch:
                raise Replaced(author.publisher, author.epoch)
            life = Run("", author.publisher, author.epoch, 0, 0, b"\x90")
            now = self._now()
            self._store([block.row([life], self.tail.end, self.tail.link, now)], now)
            self._note(author, 0, known)
            return self.tail.end - 1

    def _known(self, author: Author) -> tuple[int, int]:
        return self._authors.get(author.publisher) or self.facts.known(author)

    def _note(self, author: Author, sequence: int, known: tuple[int, int]) -> None:
        self.facts.note(author, sequence, self.tail.end - 1, is_new=known == (0, 0))
        self._authors[author.publisher] = author.epoch, sequence

    def _store(self, rows: Sequence[block.Row], now: float) -> None:
        self.db.executemany("INSERT INTO log VALUES (?, ?, ?, ?, ?)", rows)
        self.tail = Tail(rows[-1][0] + 1, block.link_out(rows[-1][3]), now)

    def _now(self) -> float:
        """The clock, but never before what stands in the log: `at` looks by halves."""
        return max(time.time(), self.tail.stored_at)


def boot_id() -> bytes:
    """Which start of the machine this is: what no sync has forced to the disk outlives processes,
    but not the machine. Empty where that cannot be known, and then every opening is a new one."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()
    except OSError:
        return uuid.uuid4().bytes


def lost(path: Path, first: int, last: int) -> Damaged:
    """Receipts were given for offsets that the file does not have."""
    return damaged(path, "were stored, and are lost", first, last)


def damaged(path: Path, problem: str, first: int, last: int) -> Damaged:
    """What is wrong with these offsets, the last one included."""
    return Damaged(str(path), f"offsets {first} to {last}: {problem}", first, last + 1)


def code_of(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


@contextmanager
def translated(path: Path, opening: bool = False) -> Iterator[None]:
    """SQLite's errors as ours. Inside a turn they mean that nothing of it was written."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise  # a mistake in this file
    except sqlite3.Error as error:
        code = code_of(error)
        if code in (_BUSY, _LOCKED, _PROTOCOL):
            raise Refused(f"{path}: another process holds the file ({error})") from None
        if code in _PASSING:
            kind = Misuse if opening and code != _FULL else Refused
            raise kind(f"{path}: {error}") from None
        raise Damaged(str(path), str(error)) from None
