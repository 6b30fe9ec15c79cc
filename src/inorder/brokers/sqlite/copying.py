"""Files made from files: `repair` takes what is intact, `copy` takes everything.

A repaired file is the same log: it keeps the identity, says of what is missing that it was removed,
and goes on so far above everything the old one may have used that no offset is given twice. Of two
files with one identity one has to go.

A copy is of one moment while others write, and is a log of its own; `restore` keeps the identity,
for a backup that takes the place of a file that is gone.
"""

from __future__ import annotations

import sqlite3
import uuid
from contextlib import suppress
from pathlib import Path

from inorder.brokers.sqlite import block
from inorder.brokers.sqlite.check import Flaw, Progress, check, sound_rows
from inorder.brokers.sqlite.file import FORMAT, File, Tail
from inorder.core.errors import Damaged, Misuse
from inorder.core.limits import CEILING_STEP

_INSERT = "INSERT INTO log VALUES (?, ?, ?, ?, ?)"


def repair(old: File, new: Path, progress: Progress = lambda share: None) -> list[Flaw]:
    """Write what is intact into a new file; what is wrong with the old one."""
    health = check(old, lambda share: progress(share / 2))
    end = health.end + CEILING_STEP
    _transfer(old, new, old.identity, end, [], lambda share: progress(0.5 + share / 2))
    return health.flaws


def copy(
    old: File, new: Path, restore: bool = False, progress: Progress = lambda share: None
) -> str:
    """Write everything into a new file; its identity. `Damaged` if not everything is intact."""
    identity = old.identity if restore else uuid.uuid4().hex
    flaws: list[Flaw] = []
    try:
        _transfer(old, new, identity, 0, flaws, progress)
        if flaws:
            raise Damaged(str(old.path), f"{flaws[0]} (repair it first)")
    except BaseException:
        for part in ("", "-wal", "-shm", "-witness"):
            new.with_name(new.name + part).unlink(missing_ok=True)
        raise
    return identity


def _transfer(
    old: File, new: Path, identity: str, end: int, flaws: list[Flaw], progress: Progress
) -> None:
    """The sound rows, and a block for every range that is missing, also for that up to `end`."""
    for part in (new, new.with_name(new.name + "-witness")):
        if part.exists():
            raise Misuse(f"{part} is there already")
    made = File(new)
    try:
        seen = old.witness.read(old.identity)  # before the snapshot: never ahead of it
        with old.snapshot(), made.turn(True):
            _facts(old, made, flaws)
            made.identity = identity
            made.facts.set(".identity", 0, FORMAT, identity.encode())
            made.facts.set(".ceiling", 0, 0, b"")
            upto, link = made.start()
            stored_at = 0.0
            for last, n, head, seal, body in sound_rows(old, flaws, progress):
                first = last - n + 1
                if first > upto:
                    flaws.append(Flaw(upto, first - 1, "damaged or missing"))
                    link = _gap(made, upto, first, link, stored_at)
                # The link out stays as it was: it is the mark that cursors keep.
                out = block.link_out(seal)
                made.db.execute(_INSERT, block.sealed(last, n, head, body, link, out))
                upto, link, stored_at = last + 1, out, block.head_of(head).stored_at
            if seen and seen[0] >= upto:
                flaws.append(Flaw(upto, seen[0], "stored, and lost"))
            if end > upto:
                link, upto = _gap(made, upto, end, link, stored_at), end
            made.tail = Tail(upto, link, stored_at)
        made.checkpoint()
    finally:
        made.close()


def _gap(made: File, first: int, end: int, link: bytes, stored_at: float) -> bytes:
    row = block.gap(first, end, link, stored_at)
    made.db.execute(_INSERT, row)
    return block.link_out(row[3])


def _facts(old: File, made: File, flaws: list[Flaw]) -> None:
    keys = []
    with suppress(sqlite3.Error):
        keys = old.db.execute("SELECT DISTINCT key FROM facts").fetchall()
    for (key,) in keys:
        try:
            for row in old.facts.rows("key = ?", key):
                made.facts.set(*row[:4])
        except (Damaged, sqlite3.Error) as error:
            flaws.append(Flaw(-1, -1, str(error)))
