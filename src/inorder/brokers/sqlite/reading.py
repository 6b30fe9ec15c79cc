"""What is read from a file: events, ends, times, marks. Every row is verified with its links before
anything in it is believed, also a row that is passed over.

What is damaged is an error that names its offsets, when it is reached. What lies before and behind
it stays readable: a reader that begins above it hears nothing of it.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, closing
from typing import Any

from inorder.brokers import runs
from inorder.brokers.sqlite import block
from inorder.brokers.sqlite.file import FIRST, File, damaged, lost
from inorder.core.errors import Damaged
from inorder.logs.broker import End, Rows, Run
from inorder.logs.topics import EVERYTHING, Topics

# Rows looked at in one call: one who wants nothing of them keeps nobody waiting for long.
SCANNED_ROWS_MAX = 50_000

# From the block before an offset on, with a sign that no file can hold in place of a body that is
# not wanted.
_PASSED = os.urandom(16)
_ROWS = (
    "SELECT last, n, head, seal, CASE WHEN last >= ?1 {wanted} THEN body ELSE ?2 END FROM log"
    " WHERE last >= coalesce((SELECT max(last) FROM log WHERE last < ?1), 0) ORDER BY last"
)
_ALL, _SOME = _ROWS.format(wanted=""), _ROWS.format(wanted="AND wanted(head)")


def read(file: File, offset: int, limit: int, topics: Topics) -> Rows:
    """Events from an offset on, in about so many bytes."""
    seen = file.witness.read(file.identity)
    wanted: list[Run] = []
    removed: list[tuple[int, int]] = []
    with file.snapshot(), ExitStack() as ends:
        first, link = file.start()
        offset = max(offset, FIRST)
        if offset < first:
            removed.append((offset, first))
        start = max(offset, first)
        chain = Chain(file, start, first, link)
        size = 0
        # Closed here: what an error keeps alive would keep SQLite from the next query's function.
        rows = enumerate(ends.enter_context(closing(_rows(file, start, topics))))
        for number, (last, n, head, seal, body) in rows:
            if (size and size >= limit) or number > SCANNED_ROWS_MAX:
                break
            if isinstance(last, int) and last < start:
                chain.begin(last, n, head, seal)
                continue
            try:
                chain.follow(last, n, head, seal, body)
            except Damaged:
                if wanted or removed:
                    break
                raise
            if body != _PASSED:
                link = block.link_out(seal)
                size += _take(last, n, head, body, link, start, topics, wanted, removed)
        else:
            if seen and seen[0] >= chain.upto and not (wanted or removed):
                raise lost(file.path, chain.upto, seen[0])
    return Rows(wanted, max(chain.upto, offset), removed)


def _rows(file: File, start: int, topics: Topics) -> Any:
    """A query, which ends with the snapshot it is made in."""
    if topics == EVERYTHING:
        return file.db.execute(_ALL, (start, _PASSED))
    if file.wanted is None:
        # Once: SQLite prepares every statement again when a function is made.
        file.db.create_function("wanted", 1, lambda head: _is_wanted(head, file.wanted))
    file.wanted = topics
    return file.db.execute(_SOME, (start, _PASSED))


def _is_wanted(head: Any, topics: Topics | None) -> bool:
    """Whether a row has something for a reader; if that cannot be said, it is looked at closely."""
    try:
        segments = block.head_of(head).segments
    except (block.Unsound, TypeError):
        return True
    return (
        topics is None
        or not segments
        or any(not s.count or topics.matches(s.topic) for s in segments)
    )


def _take(
    last: int, n: int, head: bytes, body: bytes, link: bytes, start: int, topics: Topics,
    wanted: list[Run], removed: list[tuple[int, int]],
) -> int:  # fmt: skip
    """Put what a verified row has for a reader behind the rest; its weight."""
    facts = block.head_of(head)
    first = last - n + 1
    if not facts.segments:
        removed.append((max(first, start), last + 1))
    for run in block.runs_of(last, n, facts, body, link):
        if run.count == 0:
            if run.offset >= start:
                wanted.append(run)
        elif run.offset + run.count > start and topics.matches(run.topic):
            wanted.append(runs.cut(run, max(0, start - run.offset), run.count))
    return len(head) + len(body)


class Chain:
    """Rows in their order, each verified against the one before."""

    def __init__(self, file: File, start: int, first: int, link: bytes) -> None:
        self._path = file.path
        self._start = start
        # How far every row is verified, and the link out of the last; None if that is unknown.
        self.upto = first
        self._link: bytes | None = link

    def begin(self, last: int, n: Any, head: Any, seal: Any) -> None:
        """The row before the first that is wanted. If it is damaged itself, then nothing can be
        held against the row behind it; its own readers hear of it."""
        self.upto = last + 1
        try:
            block.verify(last, n, head, seal)
            self._link = block.link_out(seal)
        except block.Unsound:
            self._link = None

    def follow(self, last: Any, n: Any, head: Any, seal: Any, body: Any) -> None:
        """The next row: raise if it is not the one that was written behind the last."""
        try:
            block.verify(last, n, head, seal)
            if body != _PASSED:
                block.verify_body(seal, body)
        except block.Unsound as error:
            self._damaged(last, str(error))
        first = last - n + 1
        if self.upto < self._start and self.upto < first:
            # What is missing before the first that is wanted is not held against it.
            self.upto, self._link = min(first, self._start), None
        if first != self.upto or self._link not in (None, block.link_in(seal)):
            self._damaged(first - 1, "what was there is missing, or another row stands there")
        self.upto, self._link = last + 1, block.link_out(seal)

    def _damaged(self, last: Any, problem: str) -> None:
        until = max(last, self.upto) if isinstance(last, int) else self.upto
        raise damaged(self._path, problem, self.upto, until)


def settle(file: File) -> End:
    """The end of the log. A tail that was lost belongs to it: who reads up to there is told."""
    seen = file.witness.read(file.identity)
    with file.snapshot():
        file.check_identity()
        first, link = file.start()
        row = file.row("ORDER BY last DESC")
    end = first
    if row is not None:
        end, link = (row[0] + 1 if isinstance(row[0], int) else first), b""
        try:
            block.verify(*row[:4])
            link = block.link_out(row[3])
        except block.Unsound:
            pass  # its readers are told
    if seen and seen[0] >= end:
        end, link = seen[0] + 1, b""
    return End(first, end, end, link)


def at(file: File, time: float) -> int:
    """The first offset stored at this time or after: times in the log never fall."""
    with file.snapshot():
        first, _ = file.start()
        row = file.row("ORDER BY last DESC")
        low, high = first, (row[0] + 1 if row else first)
        # Below `low` everything is older; from `high` on nothing is, or nothing stands there.
        while low < high:
            middle = (low + high) // 2
            last, n, stored_at = _stored(file, middle)
            if stored_at < time:
                low = last + 1
            else:
                high = min(middle, last - n + 1)
        return low


def _stored(file: File, offset: int) -> tuple[int, int, float]:
    """The block that holds an offset: its last one, how many, and when it was stored."""
    last, n, head, _, _ = sound(file, offset)
    return last, n, block.head_of(head).stored_at


def sound(file: File, offset: int) -> block.Row:
    """The verified row that holds an offset, but for its body."""
    row = file.row("WHERE last >= ? ORDER BY last", offset)
    try:
        if row is None:
            raise block.Unsound("what was there is missing")
        block.verify(*row[:4])
        if row[0] - row[1] >= offset:
            raise block.Unsound("what was there is missing")
    except block.Unsound as error:
        raise damaged(file.path, str(error), offset, offset) from None
    return row


def mark(file: File, offset: int) -> bytes | None:
    """The link out of the block that holds the event before an offset."""
    with file.snapshot():
        first, link = file.start()
        if offset <= first:
            return link if offset == first else None
        row = file.row("ORDER BY last DESC")
        if row is None or offset > row[0] + 1:
            return b""
        row = sound(file, offset - 1)
        return block.link_out(row[3]) if block.head_of(row[2]).segments else None


def status(file: File) -> dict[str, Any]:
    """Figures for people."""
    topics: dict[str, int] = {}
    with file.snapshot():
        first, _ = file.start()
        row = file.row("ORDER BY last DESC")
        for (head,) in file.db.execute("SELECT head FROM log"):
            try:
                segments = block.head_of(head).segments
            except (block.Unsound, TypeError):
                continue  # for `check` to say
            for segment in segments:
                if segment.count:
                    topics[segment.topic] = topics.get(segment.topic, 0) + segment.count
        names = file.facts.keys("")
        publishers = file.facts.publishers()
    places = [file.path, file.path.with_name(file.path.name + "-wal")]
    return {
        "identity": file.identity, "first": first, "end": row[0] + 1 if row else first,
        "bytes": sum(place.stat().st_size for place in places if place.exists()),
        "topics": dict(sorted(topics.items())), "names": names, "publishers": publishers,
    }  # fmt: skip
