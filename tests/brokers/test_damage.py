"""Damaged files: bits flipped, rows edited. What is read is what was written, or an error says
where it is not; nothing is missing without a word.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from inorder.brokers.sqlite import reading
from inorder.brokers.sqlite.check import check
from inorder.brokers.sqlite.copying import copy, repair
from inorder.brokers.sqlite.file import File
from inorder.core.errors import Damaged, InorderError, Misuse
from inorder.core.limits import CEILING_STEP
from inorder.logs.broker import Author
from inorder.logs.topics import EVERYTHING, Topics
from tests.brokers.disk import Disk
from tests.brokers.hands import Seen, events, expand

ME = Author("p", 1, True)
T = Topics(["t"])


def filled(path: Path) -> File:
    """200 events on two topics, in blocks of different sizes."""
    file = File(path)
    draw = random.Random(4)
    n = 0
    while n < 200:
        count = min(200 - n, draw.choice([1, 2, 3, 20]))
        values = [{"n": n + m, "x": "x" * draw.choice([5, 50, 500])} for m in range(count)]
        keys = tuple(f"k{n + m}" for m in range(count))
        run = events(ME, draw.choice("tu"), n + 1, values, keys=keys, published_at=5.0)
        file.append(ME, [run])
        n += count
    return file


def looked_at(file: File, topics: Topics = EVERYTHING) -> tuple[dict[int, Seen], list[str], int]:
    """Everything a patient reader gets, the errors on its way, and the end."""
    seen: dict[int, Seen] = {}
    errors: list[str] = []
    end = reading.settle(file)
    at = end.first
    while at < end.stable and len(errors) < 500:
        try:
            rows = reading.read(file, at, 1 << 12, topics)
        except Damaged as error:
            errors.append(str(error))
            at = max(at + 1, min(error.upto or 0, end.stable))
            continue
        errors += [f"removed {pair}" for pair in rows.removed]
        seen |= {s.offset: s for run in rows.runs for s in expand(run)}
        at = rows.upto
    return seen, errors, end.stable


@pytest.fixture(autouse=True)
def a_quick_disk(tmp_path: Path) -> Iterator[None]:
    """Thousands of files are opened; none of them has to outlive the machine."""
    with Disk(tmp_path / "disk").below():
        yield


class Victim:
    """A file, as it lies there when its writer was killed, or has left, to be damaged and read."""

    def __init__(self, folder: Path, is_closed: bool) -> None:
        (folder / "whole").mkdir(parents=True)
        file = filled(folder / "whole" / "log.db")
        self.written, errors, self.end = looked_at(file)
        assert (len(self.written), errors) == (200, [])
        if is_closed:
            file.close()
        self._parts = {
            path.name: path.read_bytes()
            for path in (folder / "whole").iterdir()
            if not path.name.endswith("-shm")
        }
        if not is_closed:
            file.close()
        self._folder = folder / "damaged"
        self.path = self._folder / "log.db"

    def again(self) -> dict[str, Path]:
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir()
        for name, content in self._parts.items():
            (self._folder / name).write_bytes(content)
        return {name: self._folder / name for name in self._parts}

    def judge(self, topics: Topics, caplog: pytest.LogCaptureFixture) -> str:
        """Read it; nothing wrong, nothing silent, no error but ours."""
        caplog.clear()
        try:
            file = File(self.path)
        except InorderError:
            return "said at once"
        try:
            seen, errors, end = looked_at(file, topics)
        except InorderError:
            return "said"
        finally:
            file.close()
        wanted = {o: s for o, s in self.written.items() if topics.matches(s.topic)}
        for offset, event in seen.items():
            assert wanted.get(offset) == event, "wrong"
        if len(seen) < len(wanted) or end < self.end:
            assert errors or any(r.levelname == "ERROR" for r in caplog.records), "silent"
        assert not errors or len(seen) < len(wanted) or topics != EVERYTHING, "a false alarm"
        return "said" if errors else "sound"


@pytest.mark.parametrize("is_closed", [False, True])
def test_flipped_bits_are_never_believed(tmp_path, is_closed, caplog):
    victim = Victim(tmp_path, is_closed)
    draw = random.Random(int(is_closed))
    outcomes: dict[str, int] = {}
    for number in range(500):
        parts = victim.again()
        part = parts[draw.choice([*parts])]
        content = bytearray(part.read_bytes())
        if not content:
            continue
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        part.write_bytes(content)
        outcome = victim.judge(T if number % 2 else EVERYTHING, caplog)
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    assert outcomes["sound"] > 20  # unused space, other topics, the witness
    assert outcomes["said"] + outcomes.get("said at once", 0) > 50, outcomes


def edited(value: Any, draw: random.Random) -> Any:
    """Another value, sometimes of another type."""
    choices: list[Any] = [None, 0, -1, 7, 2**40, "text", b"", b"\x90", 1.5, b"x" * 24]
    if isinstance(value, int):
        choices += [value + 1, value - 1, value + 100]
    if isinstance(value, bytes) and value:
        choices += [value[:-1], value + b"\x00", value[::-1], bytes([value[0] ^ 1]) + value[1:]]
    return draw.choice([other for other in choices if other != value])


def test_edited_rows_are_never_believed(tmp_path, caplog):
    victim = Victim(tmp_path, True)
    draw = random.Random(9)
    said = done = 0
    while done < 1000:
        victim.again()
        with closing(sqlite3.connect(victim.path, isolation_level=None)) as db:
            # As somebody with a tool would, past the rules of the tables.
            db.execute("PRAGMA ignore_check_constraints = ON")
            rows = db.execute("SELECT last FROM log").fetchall()
            try:
                if draw.random() < 0.15:
                    column = draw.choice(["number", "epoch", "value", "sum", "key"])
                    (key,) = draw.choice(db.execute("SELECT key FROM facts").fetchall())
                    query = f"SELECT {column} FROM facts WHERE key = ?"
                    (value,) = db.execute(query, (key,)).fetchone()
                    query = f"UPDATE facts SET {column} = ? WHERE key = ?"
                    db.execute(query, (edited(value, draw), key))
                elif draw.random() < 0.15:
                    db.execute("DELETE FROM log WHERE last = ?", draw.choice(rows))
                elif draw.random() < 0.15:
                    (one,), (other,) = draw.sample(rows, 2)
                    query = (
                        "UPDATE log SET (n, head, seal, body) ="
                        " (SELECT n, head, seal, body FROM log WHERE last = ?) WHERE last = ?"
                    )
                    db.execute(query, (one, other))
                else:
                    column = draw.choice(["last", "n", "head", "seal", "body"])
                    (last,) = draw.choice(rows)
                    query = f"SELECT {column} FROM log WHERE last = ?"
                    (value,) = db.execute(query, (last,)).fetchone()
                    query = f"UPDATE log SET {column} = ? WHERE last = ?"
                    db.execute(query, (edited(value, draw), last))
            except sqlite3.Error:
                continue
        done += 1
        said += victim.judge(T if done % 2 else EVERYTHING, caplog) != "sound"
    assert said > 700


def test_what_is_intact_stays_readable(tmp_path):
    file = filled(tmp_path / "log.db")
    written, _, _ = looked_at(file)
    with closing(sqlite3.connect(file.path)) as db:
        rows = db.execute("SELECT last, n FROM log").fetchall()
        gone: set[int] = set()
        for last, n in (rows[3], rows[4], rows[10], rows[-2]):
            db.execute("UPDATE log SET head = CAST(head || x'00' AS BLOB) WHERE last = ?", (last,))
            gone |= set(range(last - n + 1, last + 1))
        db.execute("DELETE FROM log WHERE last = ?", (rows[15][0],))
        gone |= set(range(rows[15][0] - rows[15][1] + 1, rows[15][0] + 1))
        db.commit()
    seen, errors, _ = looked_at(file)
    assert set(written) - set(seen) == gone
    first, last = rows[3][0] - rows[3][1] + 1, rows[3][0]
    assert f"offsets {first} to {last}: the sum does not match" in errors[0]
    file.close()


# Check, repair, copy.


def hurt(path: Path) -> tuple[set[int], list[tuple[int, int]]]:
    with closing(sqlite3.connect(path)) as db:
        rows = db.execute("SELECT last, n FROM log").fetchall()
        db.execute("UPDATE log SET body = x'00' WHERE last = ?", (rows[3][0],))
        db.execute("DELETE FROM log WHERE last = ?", (rows[7][0],))
        db.execute("DELETE FROM log WHERE last = ?", (rows[0][0],))
        db.execute("DELETE FROM log WHERE last = ?", (rows[-1][0],))
        db.commit()
    ranges = [(rows[n][0] - rows[n][1] + 1, rows[n][0]) for n in (0, 3, 7, -1)]
    return {offset for a, b in ranges for offset in range(a, b + 1)}, ranges


def test_check_says_what_is_damaged(tmp_path):
    file = filled(tmp_path / "log.db")
    health = check(file)
    assert (health.flaws, health.events, health.first, health.end) == ([], 200, 1, 201)
    gone, ranges = hurt(file.path)
    health = check(file)
    ranged = [(flaw.first, flaw.last) for flaw in health.flaws if flaw.first > 0]
    assert ranged == ranges
    assert health.events == 200 - len(gone)
    assert health.end == 201
    file.close()


def test_repair_keeps_what_is_intact_where_it_was(tmp_path):
    old = filled(tmp_path / "log.db")
    old.within(old.facts.append_if, "epoch/p", 1, b"1")
    written, _, _ = looked_at(old)
    marks = {offset: reading.mark(old, offset) for offset in range(1, 201)}
    gone, ranges = hurt(old.path)
    shares: list[float] = []
    flaws = repair(old, tmp_path / "new.db", shares.append)
    assert [(f.first, f.last) for f in flaws if f.first > 0] == ranges
    assert shares == sorted(shares)
    assert 0.0 < shares[-1] <= 1.0
    new = File(tmp_path / "new.db")
    assert new.identity == old.identity
    seen, errors, end = looked_at(new)
    assert seen == {offset: event for offset, event in written.items() if offset not in gone}
    told = sorted(eval(error.removeprefix("removed ")) for error in errors)
    assert told == [(a, b + 1) for a, b in ranges[:-1]] + [(ranges[-1][0], 201 + CEILING_STEP)]
    assert end == 201 + CEILING_STEP
    assert check(new).flaws == []
    for offset, mark in marks.items():
        if offset - 1 in seen:
            assert reading.mark(new, offset) == mark
        elif offset > 1:
            assert reading.mark(new, offset) is None
    assert new.append(ME, [events(ME, "t", 201, [1])]) == range(end, end + 1)
    assert new.seen(new.facts.final, "epoch/p") == 1
    with pytest.raises(Misuse, match="is there already"):
        repair(old, tmp_path / "new.db")
    new.close()
    old.close()


def test_repair_of_pages_that_cannot_be_read(tmp_path):
    file = filled(tmp_path / "log.db")
    written, _, _ = looked_at(file)
    file.close()
    content = bytearray(file.path.read_bytes())
    pages = len(content) // 4096
    for page in (pages // 2, pages // 2 + 1):
        content[page * 4096 : page * 4096 + 4096] = bytes(4096)
    file.path.write_bytes(content)
    old = File(file.path, recover=False)
    flaws = repair(old, tmp_path / "new.db")
    old.close()
    new = File(tmp_path / "new.db")
    seen, _, _ = looked_at(new)
    new.close()
    assert flaws
    assert 50 < len(seen) < 200
    assert all(written[offset] == event for offset, event in seen.items())


def test_a_copy_is_whole_and_another_log(tmp_path):
    old = filled(tmp_path / "log.db")
    writer = File(old.path)
    writer.append(ME, [events(ME, "t", 201, ["last"])])
    written, _, _ = looked_at(old)
    identity = copy(old, tmp_path / "new.db")
    restored = copy(old, tmp_path / "same.db", restore=True)
    assert identity != old.identity == restored
    for name, expected in (("new", identity), ("same", restored)):
        made = File(tmp_path / f"{name}.db")
        assert made.identity == expected
        assert looked_at(made) == (written, [], 202)
        assert made.append(ME, [events(ME, "t", 202, [1])]) == range(202, 203)
        assert check(made).flaws == []
        assert made.path.stat().st_mode & 0o777 == 0o600
        made.close()
    hurt(old.path)
    with pytest.raises(Damaged, match="repair it first"):
        copy(old, tmp_path / "third.db")
    assert not list(tmp_path.glob("third*"))
    writer.close()
    old.close()


def test_a_copy_is_of_one_moment_while_others_write(tmp_path):
    old = filled(tmp_path / "log.db")
    writer = File(old.path)
    sequence = 200

    def write(share: float) -> None:
        nonlocal sequence
        sequence += 1
        writer.append(ME, [events(ME, "t", sequence, [sequence])])

    copy(old, tmp_path / "new.db", progress=write)
    assert sequence > 200
    new = File(tmp_path / "new.db")
    seen, errors, end = looked_at(new)
    assert (len(seen), errors, end) == (200, [], 201)
    for file in (new, writer, old):
        file.close()
