"""What changes a past that was written: an event erased, a range removed. Links stay as they are,
so that the marks of what is left do."""

from __future__ import annotations

from contextlib import suppress

from inorder.brokers import runs
from inorder.brokers.sqlite import block
from inorder.brokers.sqlite.file import File, damaged
from inorder.brokers.sqlite.reading import sound
from inorder.core.errors import Misuse, Refused
from inorder.logs.broker import Run


def erase(file: File, offset: int) -> None:
    """Leave a stub of an event. Its bytes are overwritten, in the file and in SQLite's log."""
    with file.turn(True):
        if not file.start()[0] <= offset < file.tail.end:
            raise Misuse(f"{file.path}: there is no event {offset}")
        file.db.execute("PRAGMA secure_delete = ON")
        old = sound(file, offset)
        some = [
            runs.without(run, offset - run.offset)
            if run.offset <= offset < run.offset + run.count
            else run
            for run in _runs(file, old)
        ]
        _replace(file, old, some, block.link_in(old[3]))
    _forget_old_pages(file)


def remove(file: File, below: int) -> None:
    """Drop what lies below an offset, to the event."""
    with file.turn(True):
        first, _ = file.start()
        below = min(below, file.tail.end)
        if below <= first:
            return
        old = sound(file, below - 1)
        # The mark of what is removed stays known, as the link into what is left.
        link = block.link_out(old[3])
        file.db.execute("DELETE FROM log WHERE last < ?", (below - 1,))
        if old[0] >= below:
            left = [
                runs.cut(run, max(0, below - run.offset), run.count)
                for run in _runs(file, old)
                if run.offset + runs.span(run) > below
            ]
            _replace(file, old, left, link, old[0] + 1 - below)
        else:
            file.db.execute("DELETE FROM log WHERE last = ?", (old[0],))
        file.facts.set(".start", 0, below, link)
    with suppress(Refused):
        file.vacuum()


def _runs(file: File, row: block.Row) -> list[Run]:
    last, n, head, seal, body = row
    try:
        block.verify_body(seal, body)
    except block.Unsound as error:
        raise damaged(file.path, str(error), last - n + 1, last) from None
    return list(block.runs_of(last, n, block.head_of(head), body, b""))


def _replace(
    file: File, old: block.Row, some: list[Run], link: bytes, n: int | None = None
) -> None:
    head = block.head_of(old[2])
    new = (
        block.row(some, old[0] + 1 - (n or old[1]), link, head.stored_at, block.link_out(old[3]))
        if some
        else block.sealed(old[0], n or old[1], old[2], b"", link, block.link_out(old[3]))
    )
    file.db.execute("INSERT OR REPLACE INTO log VALUES (?, ?, ?, ?, ?)", new)


def _forget_old_pages(file: File) -> None:
    with suppress(Refused):
        file.checkpoint()
