"""The small facts of a file, a row each: those of the coordinator, and the file's own.

A value stands at number 0 of its key, a sequence at 1 and above. Number -1 of a sequence whose last
values were forgotten keeps the number it had come to, as its epoch. Keys of the file itself begin
with a dot:

| key             | epoch              | value                                                    |
|-----------------|--------------------|----------------------------------------------------------|
| .identity       | format             | the log's identity                                       |
| .start          | first offset kept  | the link into its block                                  |
| .ceiling        | offset             | the boot of the machine that may use offsets below it    |
| .author/NAME    | its last epoch     | 8 bytes: the last offset; 8 bytes: the last sequence     |
| .nameless/NAME  | the same           | the same                                                 |
"""

from __future__ import annotations

import sqlite3
from itertools import pairwise
from pathlib import Path
from zlib import crc32

from inorder.brokers import runs
from inorder.core.errors import Damaged, Misuse, Refused, Replaced
from inorder.core.limits import NAMELESS_KEPT_MAX
from inorder.logs.broker import Author

TABLE = """
CREATE TABLE facts (
  key TEXT NOT NULL, number INTEGER NOT NULL, epoch INTEGER NOT NULL, value BLOB NOT NULL,
  sum INTEGER NOT NULL, PRIMARY KEY (key, number)
) WITHOUT ROWID
"""

# A row of the table.
Row = tuple[str, int, int, bytes, int]


class Facts:
    """The table, within a turn of its file."""

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        self._db = db
        self._path = path

    def rows(self, where: str, *values: object) -> list[Row]:
        """Rows, each verified."""
        query = f"SELECT key, number, epoch, value, sum FROM facts WHERE {where}"
        rows: list[Row] = self._db.execute(query, values).fetchall()
        for key, number, epoch, value, total in rows:
            if not isinstance(value, bytes) or _sum(key, number, epoch, value) != total:
                raise Damaged(str(self._path), f"fact {key!r} does not match its sum")
        return rows

    def _at(self, key: str, number: int) -> Row | None:
        rows = self.rows("key = ? AND number = ?", key, number)
        return rows[0] if rows else None

    def set(self, key: str, number: int, epoch: int, value: bytes) -> None:
        row = key, number, epoch, value, _sum(key, number, epoch, value)
        self._db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?, ?, ?, ?)", row)

    # The coordinator.

    def append_if(self, key: str, number: int, value: bytes) -> bytes:
        if row := self._at(_own(key), number):
            return row[3]
        final = self.final(key)
        if number != final + 1:
            problem = "was forgotten" if 0 < number <= final else "does not follow the last"
            raise Refused(f"{key}: number {number} {problem}")
        self.set(key, number, 0, value)
        return value

    def read_from(self, key: str, number: int) -> list[tuple[int, bytes]]:
        rows = self.rows("key = ? AND number >= ? ORDER BY number", key, max(1, number))
        for before, after in pairwise(rows):
            if after[1] != before[1] + 1:
                problem = f"{key}: number {before[1] + 1} is missing"
                raise Damaged(str(self._path), problem)
        return [(row[1], row[3]) for row in rows]

    def final(self, key: str) -> int:
        rows = self.rows("key = ? ORDER BY number DESC LIMIT 1", key)
        if not rows:
            return 0
        return rows[0][2] if rows[0][1] < 0 else rows[0][1]

    def keys(self, prefix: str) -> list[str]:
        found = self._db.execute("SELECT DISTINCT key FROM facts ORDER BY key").fetchall()
        return [key for (key,) in found if key[:1] != "." and key.startswith(prefix)]

    def forget(self, key: str, below: int) -> None:
        final = self.final(_own(key))
        if 0 < final < below:
            self.set(key, -1, final, b"")
        self._db.execute(
            "DELETE FROM facts WHERE key = ? AND number > 0 AND number < ?", (key, below)
        )

    def put(self, key: str, value: bytes, epoch: int) -> None:
        row = self._at(_own(key), 0)
        if row and row[2] > epoch:
            raise Replaced(key, epoch)
        self.set(key, 0, epoch, value)

    def get(self, key: str) -> tuple[bytes, int] | None:
        row = self._at(key, 0)
        return (row[3], row[2]) if row else None

    def drop(self, key: str) -> None:
        self._db.execute("DELETE FROM facts WHERE key = ?", (_own(key),))

    # Publishers.

    def known(self, author: Author) -> tuple[int, int]:
        """The last epoch of a publisher, and the last sequence of that."""
        row = self._at(_author(author), 0)
        return (row[2], int.from_bytes(row[3][8:])) if row else (0, 0)

    def last(self, author: Author) -> int | None:
        return runs.last(author, self.known(author), self._nameless())

    def note(self, author: Author, sequence: int, offset: int, is_new: bool) -> None:
        if is_new and not author.named and self._nameless() >= NAMELESS_KEPT_MAX:
            # Values begin with the last offset: the one that was silent for longest goes.
            self._db.execute(
                f"DELETE FROM facts WHERE key = (SELECT key FROM facts WHERE {_NAMELESS}"
                " ORDER BY value LIMIT 1)"
            )
        value = offset.to_bytes(8) + sequence.to_bytes(8)
        self.set(_author(author), 0, author.epoch, value)

    def publishers(self) -> list[str]:
        """Those who have a name."""
        rows = self.rows("key > '.author/' AND key < '.author0' ORDER BY key")
        return [row[0].removeprefix(".author/") for row in rows]

    def _nameless(self) -> int:
        count: int
        (count,) = self._db.execute(f"SELECT count(*) FROM facts WHERE {_NAMELESS}").fetchone()
        return count


_NAMELESS = "key > '.nameless/' AND key < '.nameless0'"


def _author(author: Author) -> str:
    return f".{'author' if author.named else 'nameless'}/{author.publisher}"


def _own(key: str) -> str:
    if key.startswith("."):
        raise Misuse(f"{key!r}: a key does not begin with a dot")
    return key


def _sum(key: object, number: object, epoch: object, value: bytes) -> int:
    return crc32(value, crc32(repr((key, number, epoch)).encode()))
