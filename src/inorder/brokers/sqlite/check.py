"""Every block of a file, sound or not: what is damaged, and what is left.

A damaged row may say anything about its place. What is known is what lies around it: the offsets
between the last sound row before it and the first sound row behind it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import NamedTuple

from msgspec import Struct

from inorder.brokers import broker_at
from inorder.brokers.sqlite import block
from inorder.brokers.sqlite.broker import SqliteBroker
from inorder.brokers.sqlite.file import File
from inorder.core.errors import Damaged, Misuse

Progress = Callable[[float], None]


class Flaw(NamedTuple):
    """Something is wrong at the offsets from `first` to `last`; -1 where it is about none."""

    first: int
    last: int
    problem: str

    def __str__(self) -> str:
        return self.problem if self.first < 0 else f"offsets {self.first} to {self.last}: {self[2]}"


class Health(Struct):
    """What a look at a whole file has shown; `end` is above all that was ever stored."""

    identity: str
    first: int
    end: int
    rows: int = 0
    events: int = 0
    flaws: list[Flaw] = []


def opened(url: str) -> File:
    """The file a URL names, to be looked at: nothing in it is changed."""
    broker = broker_at(url, 10.0)
    if not isinstance(broker, SqliteBroker):
        raise Misuse(f"{url} is no file")
    return File(broker.path, create=False, recover=False)


def check(file: File, progress: Progress = lambda share: None) -> Health:
    """Look at everything: the pages, the rows with their links, the facts, the witness."""
    seen = file.witness.read(file.identity)
    flaws = [] if seen else [Flaw(-1, -1, f"{file.witness.path} is missing or damaged")]
    with file.snapshot():
        flaws += [Flaw(-1, -1, problem) for problem in (*_pages(file), *_facts(file))]
        upto, link = 1, None
        with suppress(Damaged):
            upto, link = file.start()
        health = Health(file.identity, upto, upto, flaws=flaws)
        for row in sound_rows(file, flaws, progress):
            first = row[0] - row[1] + 1
            if first > upto:
                flaws.append(Flaw(upto, first - 1, "damaged or missing"))
            elif first < upto or link not in (None, block.link_in(row[3])):
                flaws.append(Flaw(first, row[0], "does not follow what stands before it"))
            upto, link = row[0] + 1, block.link_out(row[3])
            health.rows += 1
            health.events += sum(s.count for s in block.head_of(row[2]).segments)
        if seen and seen[0] >= upto:
            flaws.append(Flaw(upto, seen[0], "stored, and lost"))
        health.end = max(upto, seen[0] + 1 if seen else 0, highest(file))
    return health


def _pages(file: File) -> list[str]:
    """What SQLite itself finds wrong."""
    try:
        rows = file.db.execute("PRAGMA integrity_check(20)").fetchall()
    except sqlite3.Error as error:
        return [str(error)]
    return [] if rows == [("ok",)] else [" ".join(str(row[0]).split()) for row in rows]


def _facts(file: File) -> Iterator[str]:
    with suppress(sqlite3.Error):
        for (key,) in file.db.execute("SELECT DISTINCT key FROM facts").fetchall():
            try:
                file.facts.rows("key = ?", key)
            except Damaged as error:
                yield error.problem


def sound_rows(file: File, flaws: list[Flaw], progress: Progress) -> Iterator[block.Row]:
    """Every row that is what was written; the others are flaws."""
    end = max(1, highest(file))
    upto = -1
    for number, row in enumerate(_rows(file.db, flaws)):
        try:
            block.verify(*row[:4])
            block.verify_body(row[3], row[4])
            block.head_of(row[2])
        except block.Unsound as error:
            flaws.append(Flaw(-1, -1, f"the block at {row[0]!r}: {error}"))
            continue
        if row[0] - row[1] >= upto:
            upto = row[0]
            yield row
        if number % 256 == 0:
            progress(min(1.0, row[0] / end))


def _rows(db: sqlite3.Connection, flaws: list[Flaw]) -> Iterator[block.Row]:
    """The rows by offset. A page that SQLite cannot read ends a query; the next one begins behind
    the stretch that cannot be read, which is found by halves."""
    after = -1
    query = "SELECT last, n, head, seal, body FROM log WHERE last > ? ORDER BY last"
    while True:
        try:
            for row in db.execute(query, (after,)):
                yield row
                after = row[0]
            return
        except sqlite3.Error as error:
            flaws.append(Flaw(-1, -1, f"behind offset {after}: {error}"))
        behind = _behind(db, after)
        if behind is None:
            return
        after = behind - 1


def _behind(db: sqlite3.Connection, after: int) -> int | None:
    """An offset above this one from which on a row can be read."""

    def readable(offset: int) -> int | None:
        query = "SELECT last, n, head, seal, body FROM log WHERE last >= ? ORDER BY last LIMIT 1"
        with suppress(sqlite3.Error):
            row = db.execute(query, (offset,)).fetchone()
            return int(row[0]) if row and row[0] > after else None
        return None

    low, high = after + 1, _final(db)
    if high <= after or readable(high) is None:
        return None
    while low < high:
        middle = (low + high) // 2
        if readable(middle) is None:
            low = middle + 1
        else:
            high = middle
    return readable(high)


def _final(db: sqlite3.Connection) -> int:
    with suppress(sqlite3.Error):
        last = db.execute("SELECT max(last) FROM log").fetchone()[0]
        if isinstance(last, int) and last < 2**62:
            return last
    return 0


def highest(file: File) -> int:
    """Above every offset that a row or the ceiling speaks of."""
    kept = None
    with suppress(sqlite3.Error, Damaged):
        kept = file.facts.get(".ceiling")
    return max(_final(file.db) + 1, kept[1] if kept else 0)
