"""One connection to the file, for one thread.

Rule 1: a turn is one transaction, durable when `write` returns (WAL, synchronous = FULL; `durable
        = False` gives up the last instants before a power cut, not before a crash of the process).
        Mail alone does not wait for the disk: a power cut may lose it, and its senders repeat it.
Rule 2: whoever writes for a machine shows its token inside the transaction; who has been replaced
        gets `Replaced`, and nothing is written.
Rule 3: `write` either happened, or raised `Refused` (nothing was written, and nothing will be), or
        raised `Unsure` (the disk failed at the commit itself).
Rule 4: a blob whose checksum is wrong is never handed out: `Damaged`, or an empty message where
        mail is concerned, which its sender will repeat.
Rule 5: only errors of ours leave. A file that is not ours is not touched.
"""

from __future__ import annotations

import os
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from zlib import crc32

from inorder.bus.store.room import check_room
from inorder.bus.store.rows import Append, LogRow, MailRow, TopicRow, Turn
from inorder.bus.store.sqlite.schema import FORMAT, TABLES
from inorder.core.errors import Damaged, Misuse, Refused, Replaced, Unsure
from inorder.core.limits import (
    LOG_BYTES_AT_ONCE,
    MAIL_AT_ONCE,
    MAIL_BYTES_AT_ONCE,
    OWNER_SILENT_S_MAX,
)

# SQLite's primary result codes (the low byte of an extended one).
_BUSY, _LOCKED, _FULL, _PROTOCOL = 5, 6, 13, 15
# No memory, read-only, interrupted, disk error, full, cannot open: of the moment, or of the place.
_PASSING = (7, 8, 9, 10, 13, 14)

# Between two tries to make a new file one of ours while others do the same.
_TRY_AGAIN_S = 0.01

# The rows of a topic that hold its events from one offset on, up to before another.
_SLICE = (
    "FROM log WHERE topic = ? AND offset >= coalesce((SELECT max(offset) FROM log"
    " WHERE topic = ? AND offset <= ?), 0) AND offset < ? ORDER BY offset"
)

# id, offset, count, at, message, crc
RawRow = tuple[int, int, int, float, bytes, int]


class File:
    """The tables, behind verbs."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        create: bool = True,
        durable: bool = True,
        busy_s: float = 5.0,
    ) -> None:
        self.path = Path(path)
        if not create and not self.path.exists():
            raise Misuse(f"{self.path}: there is no such file")
        if not self.path.parent.is_dir():
            raise Misuse(f"{self.path}: there is no folder {self.path.parent}")
        with _translated(self.path, opening=True):
            self._db = sqlite3.connect(
                self.path, timeout=busy_s, isolation_level=None, check_same_thread=False
            )
        try:
            with _translated(self.path, opening=True):
                self._prepare(create, durable, time.monotonic() + busy_s)
        except BaseException:
            self._db.close()
            raise

    def _prepare(self, create: bool, durable: bool, until: float) -> None:
        db = self._db
        names = self._names()
        if names and "about" not in names:
            raise Misuse(f"{self.path}: is a SQLite file, but not one of inorder's")
        while True:
            try:
                db.execute("PRAGMA journal_mode = WAL")
                break
            except sqlite3.OperationalError as error:
                # SQLite does not wait here while another process does the same.
                if _code(error) != _BUSY or time.monotonic() > until:
                    raise
                time.sleep(_TRY_AGAIN_S)
        self._durable = durable
        self._synced = not durable
        self._sync(durable)
        if create and not names:
            self._create()
        found = dict(db.execute("SELECT * FROM about")) if "about" in self._names() else {}
        if found.get("format") != str(FORMAT):
            raise Misuse(f"{self.path}: is a SQLite file, but not one of inorder's")
        self.name = found["name"]

    def _sync(self, wanted: bool) -> None:
        """Whether the next commit waits for the disk; what was committed before it then waits, too,
        since the log of the database is one file."""
        if self._synced is not wanted:
            self._db.execute(f"PRAGMA synchronous = {'FULL' if wanted else 'NORMAL'}")
            self._synced = wanted

    def _create(self) -> None:
        with self._transaction():
            if not self._names():
                for statement in TABLES.split(";"):
                    self._db.execute(statement)
                facts = [("format", str(FORMAT)), ("name", uuid.uuid4().hex)]
                self._db.executemany("INSERT INTO about VALUES (?, ?)", facts)

    def _names(self) -> list[str]:
        return [name for (name,) in self._db.execute("SELECT name FROM sqlite_master")]

    def close(self) -> None:
        self._db.close()

    # Writing.

    def write(self, turn: Turn, expected: Mapping[str, int] | None = None, digest: str = "") -> int:
        """Write a turn; returns the id of the last row it appended to the log, 0 if none.

        `expected` are the offsets at which topics must go on: anything else is refused. `digest`
        tells what is in a batch with a key (see `receipt`).
        """
        db = self._db
        with self._transaction(durable=bool(turn.appends or turn.records or turn.key)):
            self._check_owners(turn)
            is_new = self._is_new(turn, digest)
            last_id = self._append(turn.appends, expected or {}) if is_new else 0
            db.executemany(
                "INSERT INTO mail (target, source, message, crc) VALUES (?, ?, ?, ?)",
                ((m.target, m.source, m.message, crc32(m.message)) for m in turn.mails),
            )
            self._record(turn)
            if turn.taken:
                db.executemany("DELETE FROM mail WHERE id = ?", ((id,) for id in turn.taken))
        return last_id

    @contextmanager
    def _transaction(self, durable: bool = True) -> Iterator[None]:
        with _translated(self.path):
            self._roll_back()  # what an earlier failure may have left open
            self._sync(durable and self._durable)
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._roll_back()
                raise
        self._commit()

    def _commit(self) -> None:
        try:
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            # Before the commit mark was written; after any other error it may have been.
            refused = _code(error) in (_BUSY, _LOCKED, _FULL)
            self._roll_back()
            kind = Refused if refused else Unsure
            raise kind(f"{self.path}: {error}") from None

    def _roll_back(self) -> None:
        try:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        except sqlite3.Error:
            # SQLite rolls back by itself on the errors that end up here.
            return

    def _check_owners(self, turn: Turn) -> None:
        for node, token in turn.owned.items():
            found = self._db.execute("SELECT token FROM owners WHERE node = ?", (node,)).fetchone()
            if found is None or found[0] != token:
                raise Replaced(node, token)

    def _is_new(self, turn: Turn, digest: str) -> bool:
        """Whether a batch with a key has not been written yet; notes it, and what is in it."""
        if not turn.key:
            return True
        values = sum(append.count for append in turn.appends), time.time()
        insert = "INSERT OR IGNORE INTO receipts VALUES (?, ?, ?)"
        is_new = self._db.execute(insert, (turn.key, *values)).rowcount > 0
        if is_new and digest:
            self._db.execute(insert, (f"{turn.key}={digest}", *values))
        return is_new

    def _append(self, appends: list[Append], expected: Mapping[str, int]) -> int:
        following: dict[str, int] = {}
        rows: list[tuple[str, int, int, float, bytes, int]] = []
        now = time.time()
        for topic, message, count in ((a.topic, a.message, a.count) for a in appends):
            offset = following.get(topic)
            if offset is None:
                offset = self._next(topic)
                if expected.get(topic, offset) != offset:
                    told = f"goes on at offset {offset}, not at {expected[topic]}"
                    raise Refused(f"{self.path}: topic {topic!r} {told}")
            following[topic] = offset + count
            rows.append((topic, offset, count, now, message, crc32(message)))
        self._db.executemany(
            "INSERT INTO log (topic, offset, count, at, message, crc) VALUES (?, ?, ?, ?, ?, ?)",
            rows,
        )
        self._db.executemany(
            "UPDATE topics SET next = ? WHERE topic = ?",
            [(offset, topic) for topic, offset in following.items()],
        )
        return self.last_id() if rows else 0

    def _next(self, topic: str) -> int:
        found = self._db.execute("SELECT next FROM topics WHERE topic = ?", (topic,)).fetchone()
        if found is None:
            raise Misuse(f"topic {topic!r} was never declared")
        return int(found[0])

    def forget(self, prefix: str) -> None:
        """Drop the receipts whose keys begin like this: nobody will bring those batches again."""
        with _translated(self.path):
            self._db.execute(
                "DELETE FROM receipts WHERE key >= ? AND key < ?", (prefix, prefix + chr(0x10FFFF))
            )

    def _record(self, turn: Turn) -> None:
        for each in turn.records:
            if each.whole:
                self._db.execute("DELETE FROM records WHERE node = ?", (each.node,))
            self._db.execute(
                "INSERT INTO records (node, record, crc) VALUES (?, ?, ?)",
                (each.node, each.record, crc32(each.record)),
            )

    def declare(self, topic: str, guarantee: str) -> str:
        """Make a topic known; returns the guarantee it really has, which its first use decided."""
        found = self._guarantee(topic)
        if found is None:
            with self._transaction():
                known, size = self._db.execute(
                    "SELECT count(*), coalesce(sum(length(CAST(topic AS BLOB))), 0) FROM topics"
                ).fetchone()
                check_room(known, size, topic)
                self._db.execute(
                    "INSERT OR IGNORE INTO topics VALUES (?, ?, 0)", (topic, guarantee)
                )
            found = self._guarantee(topic)
        assert found is not None
        return found

    def _guarantee(self, topic: str) -> str | None:
        with _translated(self.path):
            found = self._db.execute(
                "SELECT guarantee FROM topics WHERE topic = ?", (topic,)
            ).fetchone()
        return None if found is None else str(found[0])

    # Owners.

    def claim(self, node: str, holder: str, now: float) -> int | None:
        """Become the owner of a machine: the token, or None while another owner lives."""
        with self._transaction():
            found = self._db.execute(
                "SELECT token, process, holder, renewed_at FROM owners WHERE node = ?", (node,)
            ).fetchone()
            if found and found[2] and found[2] != holder and _lives(found[1], found[3], now):
                return None
            token: int = found[0] + 1 if found else 1
            self._db.execute(
                "INSERT OR REPLACE INTO owners VALUES (?, ?, ?, ?, ?)",
                (node, token, os.getpid(), holder, now),
            )
        return token

    def renew(self, owned: dict[str, int], now: float) -> list[str]:
        """Say that we are alive; returns the machines that have another owner meanwhile."""
        lost: list[str] = []
        with self._transaction():
            for node, token in owned.items():
                done = self._db.execute(
                    "UPDATE owners SET renewed_at = ? WHERE node = ? AND token = ?",
                    (now, node, token),
                )
                if not done.rowcount:
                    lost.append(node)
        return lost

    def release(self, owned: dict[str, int]) -> None:
        """Let others have these machines at once."""
        with self._transaction():
            self._db.executemany(
                "UPDATE owners SET holder = '' WHERE node = ? AND token = ?", owned.items()
            )

    def owner_lives(self, node: str, now: float, holder: str = "") -> bool:
        """Whether somebody other than `holder` may own a machine."""
        with _translated(self.path):
            found = self._db.execute(
                "SELECT process, holder, renewed_at FROM owners WHERE node = ?", (node,)
            ).fetchone()
        if not found or found[1] in ("", holder):
            return False
        return _lives(found[0], found[2], now)

    def drop_mail(self, kept: Sequence[str], now: float) -> int:
        """Drop the mail of machines that nobody owns, but for those in `kept`: they will come
        back under another session, or never. Returns how many letters that were."""
        with _translated(self.path):
            targets = [t for (t,) in self._db.execute("SELECT DISTINCT target FROM mail")]
        dead = [t for t in targets if t not in kept and not self.owner_lives(t, now)]
        dropped = 0
        if dead:
            with self._transaction():
                for target in dead:
                    if not self.owner_lives(target, now):
                        done = self._db.execute("DELETE FROM mail WHERE target = ?", (target,))
                        dropped += done.rowcount
        return dropped

    # Reading.

    def version(self) -> int:
        """Changes when another connection has written something."""
        with _translated(self.path):
            return int(self._db.execute("PRAGMA data_version").fetchone()[0])

    def topics(self) -> list[TopicRow]:
        """All topics, by name."""
        with _translated(self.path):
            found = self._db.execute(
                "SELECT t.topic, t.guarantee, coalesce((SELECT min(offset) FROM log l WHERE"
                " l.topic = t.topic), t.next), t.next FROM topics t ORDER BY t.topic"
            ).fetchall()
        return [TopicRow(*row) for row in found]

    def last_id(self) -> int:
        """The id of the last row of the log; 0 if it is empty."""
        with _translated(self.path):
            return int(self._db.execute("SELECT coalesce(max(id), 0) FROM log").fetchone()[0])

    def log(self, topics: Sequence[str], after: int, up_to: int) -> tuple[list[LogRow], int]:
        """Rows committed after one id and up to another, in that order, and how far they reach:
        not to `up_to` if that would be too many bytes."""
        marks = ", ".join("?" * len(topics))
        # By id, not by topic: SQLite would rather look through a whole topic for its last rows.
        query = (
            "SELECT id, topic, offset, count, at, message, crc FROM log NOT INDEXED"
            f" WHERE id > ? AND id <= ? AND topic IN ({marks}) ORDER BY id"
        )
        found: list[LogRow] = []
        size = 0
        with self._rows(query, (after, up_to, *topics)) as rows:
            for row in rows:
                size += len(row[5])
                # What is damaged is said when it comes first; what is before it can be read.
                if found and (size > LOG_BYTES_AT_ONCE or crc32(row[5]) != row[6]):
                    return found, found[-1].id
                found += self._checked([row])
        return found, up_to

    @contextmanager
    def _rows(self, query: str, values: Sequence[object]) -> Iterator[sqlite3.Cursor]:
        """A query that ends here, however it ends: one left open would show the file as it is now
        to everything read later."""
        with _translated(self.path), closing(self._db.execute(query, tuple(values))) as rows:
            yield rows

    def slice(self, topic: str, start: int, end: int) -> Iterator[LogRow]:
        """The rows of a topic that hold its events from offset `start` on, up to before `end`."""
        query = f"SELECT id, topic, offset, count, at, message, crc {_SLICE}"
        with self._rows(query, (topic, topic, start, end)) as rows:
            while some := rows.fetchmany(1000):
                yield from self._checked(some)

    def fetcher(self, topic: str, start: int, end: int) -> Callable[[int], list[RawRow]]:
        """The same rows, so many at a time as asked for, with checksums that nobody looked at."""
        query = f"SELECT id, offset, count, at, message, crc {_SLICE}"
        with _translated(self.path):
            rows = self._db.execute(query, (topic, topic, start, end))

        def fetch(number: int) -> list[RawRow]:
            with _translated(self.path):
                return rows.fetchmany(number)

        return fetch

    def places(self, topic: str, start: int, end: int) -> Iterator[tuple[int, str, int, int]]:
        """Id, topic, offset and count of the same rows."""
        query = f"SELECT id, topic, offset, count {_SLICE}"
        with self._rows(query, (topic, topic, start, end)) as rows:
            yield from rows

    def id_of(self, topic: str, offset: int) -> int | None:
        """The id of the row that holds the event at this offset, if there is one."""
        with _translated(self.path):
            found = self._db.execute(
                "SELECT id, offset + count FROM log WHERE topic = ? AND offset <= ?"
                " ORDER BY offset DESC LIMIT 1",
                (topic, offset),
            ).fetchone()
        return None if found is None or found[1] <= offset else int(found[0])

    def mail(self, targets: Sequence[str]) -> list[MailRow]:
        """Some of what waits for these machines, oldest first. What is damaged comes as an empty
        message: it is to be taken, and its sender will repeat it."""
        marks = ", ".join("?" * len(targets))
        query = (
            "SELECT id, target, source, message, crc FROM mail"
            f" WHERE target IN ({marks}) ORDER BY id LIMIT {MAIL_AT_ONCE}"
        )
        found: list[MailRow] = []
        size = 0
        with self._rows(query, targets) as rows:
            for id, target, source, message, crc in rows:
                size += len(message)
                if size > MAIL_BYTES_AT_ONCE and found:
                    break
                sound = crc32(message) == crc
                found.append(MailRow(id, target, source, message if sound else b""))
        return found

    def records(self, node: str) -> list[bytes]:
        """What a machine must not forget, oldest first."""
        with _translated(self.path):
            found = self._db.execute(
                "SELECT id, record, crc FROM records WHERE node = ? ORDER BY id", (node,)
            ).fetchall()
        for id, record, crc in found:
            self._check("records", id, record, crc)
        return [record for _, record, _ in found]

    def receipt(self, key: str, digest: str = "") -> int | None:
        """How many events were appended under a key; None if it is unused, or if not for these."""
        key = f"{key}={digest}" if digest else key
        with _translated(self.path):
            found = self._db.execute("SELECT rows FROM receipts WHERE key = ?", (key,)).fetchone()
        return None if found is None else int(found[0])

    def _checked(
        self, rows: Iterable[tuple[int, str, int, int, float, bytes, int]]
    ) -> list[LogRow]:
        found = []
        for id, topic, offset, count, at, message, crc in rows:
            self._check("log", id, message, crc)
            found.append(LogRow(id, topic, offset, count, at, message))
        return found

    def _check(self, table: str, id: int, blob: bytes, crc: int) -> None:
        if crc32(blob) != crc:
            raise Damaged(str(self.path), f"row {id} of {table} does not match its checksum")


def _lives(process: int, renewed_at: float, now: float) -> bool:
    """Whether an owner may still be there: it said so lately, and its process exists. A word from
    the future is no news either: somebody has set the clock back since."""
    if abs(now - renewed_at) > OWNER_SILENT_S_MAX:
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


@contextmanager
def _translated(path: Path, opening: bool = False) -> Iterator[None]:
    """SQLite's errors as ours. Inside a transaction they mean that nothing of it was written."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise  # a mistake in this file
    except sqlite3.Error as error:
        code = _code(error)
        if code in (_BUSY, _LOCKED, _PROTOCOL):
            raise Refused(f"{path}: another process holds the file ({error})") from None
        if code in _PASSING:
            kind = Misuse if opening and code != _FULL else Refused
            raise kind(f"{path}: {error}") from None
        raise Damaged(str(path), str(error)) from None
