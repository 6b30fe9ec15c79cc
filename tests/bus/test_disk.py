"""Full, locked, read-only, damaged and foreign files.

What cannot be written is refused, what was accepted stays, and work goes on when the cause is gone.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pytest

import inorder
from inorder.bus.store.rows import Append, Mail, Record, Turn
from inorder.bus.store.sqlite import broker as sqlite
from inorder.bus.store.sqlite.file import File
from inorder.core.errors import Damaged, InorderError, Misuse, Refused, Replaced, Unsure
from inorder.core.limits import LOG_BYTES_AT_ONCE
from tests.bus.judge import run, take

ROOT = Path(__file__).parents[2]
ALL = pytest.mark.parametrize("guarantee", ["none", "fifo", "total"])


def url(folder: Path) -> str:
    return f"sqlite:///{folder}/bus.db"


class Small(File):
    """A file on a disk of our own making: `pages` is what fits."""

    pages = 2**30

    def write(self, turn: Turn, expected: Any = None) -> int:
        self._db.execute(f"PRAGMA max_page_count = {self.pages}")
        return super().write(turn, expected)

    def claim(self, node: str, holder: str, now: float) -> int | None:
        self._db.execute(f"PRAGMA max_page_count = {self.pages}")
        return super().claim(node, holder, now)


async def publish_until_refused(bus: Any, kept: list[int], size: int = 2000) -> None:
    for n in range(len(kept), 10_000):
        (receipt,) = await bus.publish_many("t", [{"n": n, "x": "a" * size}])
        if receipt.outcome != "accepted":
            assert (receipt.outcome, "full" in receipt.reason) == ("refused", True), receipt
            return
        kept.append(n)
    raise AssertionError("the disk never filled")


@ALL
def test_a_full_disk_refuses_and_recovers(tmp_path, guarantee, monkeypatch):
    monkeypatch.setattr(sqlite, "File", Small)
    monkeypatch.setattr(Small, "pages", 2**30)

    async def job() -> None:
        kept: list[int] = []
        async with (
            inorder.connect(url(tmp_path), guarantee, deadline=4, name="me") as bus,
            bus.subscribe("t") as events,
        ):
            for _ in range(2):
                await bus.publish("t", {"n": len(kept)})
                kept.append(len(kept))
                monkeypatch.setattr(Small, "pages", 1)  # as full as it is now
                await publish_until_refused(bus, kept)
                for _ in range(3):
                    (receipt,) = await bus.publish_many("t", [{"n": -1, "x": "a" * 5000}])
                    assert receipt.outcome == "refused", receipt
                monkeypatch.setattr(Small, "pages", 2**30)
            await bus.publish("t", {"n": len(kept)})
            kept.append(len(kept))
            assert [e.value["n"] for e in await take(events, len(kept))] == kept
            async with bus.subscribe("t", replay="all") as past:
                assert [e.value["n"] for e in await take(past, len(kept))] == kept

    run(job)


def without(reason: str) -> NoReturn:
    """Skip; a build that must prove everything fails instead."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@contextmanager
def mounted(folder: Path, size: str) -> Iterator[Path]:
    """A small disk, where that is allowed."""
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    try:
        done = subprocess.run(words, capture_output=True)
    except OSError:
        without("there is no mount")
    if done.returncode:
        without("mounting is not allowed here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@ALL
def test_a_disk_that_is_really_full(tmp_path, guarantee):
    with mounted(tmp_path / "disk", "4m") as disk:
        ballast = disk / "ballast"
        kept: list[int] = []

        async def job() -> None:
            ballast.write_bytes(b"x" * 1_000_000)
            bus = inorder.connect(url(disk), guarantee, deadline=4, name="me")
            async with bus, bus.subscribe("t") as events:
                await publish_until_refused(bus, kept)
                with pytest.raises(Refused):
                    await bus.publish("t", {"n": -1, "x": "a" * 5000})
                ballast.unlink()
                await bus.publish("t", {"n": len(kept)})
                kept.append(len(kept))
                assert [e.value["n"] for e in await take(events, len(kept))] == kept

        run(job)

        async def later() -> None:
            bus = inorder.connect(url(disk), guarantee, name="me")
            async with bus, bus.subscribe("t", replay="all") as past:
                assert [e.value["n"] for e in await take(past, len(kept))] == kept

        run(later)


LIMITED = """
import asyncio, resource, sys
import inorder
from inorder.core.errors import InorderError

async def main():
    async with inorder.connect(sys.argv[1], sys.argv[2], deadline=3) as bus:
        size = 400_000
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        for n in range(5000):
            try:
                await bus.publish("t", {"n": n, "x": "a" * 2000})
            except InorderError as error:
                print(type(error).__name__)
                break
            print(n, flush=True)
asyncio.run(main())
"""


@ALL
def test_a_file_that_may_not_grow_loses_nothing_that_was_accepted(tmp_path, guarantee):
    """Not a full disk but a disk error, perhaps at the commit itself: it may be unknown."""
    words = [sys.executable, "-c", LIMITED, url(tmp_path), guarantee]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, timeout=60)
    told = done.stdout.split()
    assert told[-1] in ("Refused", "Unsure"), done
    accepted = [int(n) for n in told[:-1]]
    assert accepted

    async def later() -> None:
        async with (
            inorder.connect(url(tmp_path), guarantee) as bus,
            bus.subscribe("t", replay="all") as past,
        ):
            assert [e.value["n"] for e in await take(past, len(accepted))] == accepted

    run(later)


@ALL
def test_a_locked_file_refuses_and_recovers(tmp_path, guarantee):
    async def job() -> None:
        async with (
            inorder.connect(url(tmp_path), guarantee, deadline=0.6, name="me") as bus,
            bus.subscribe("t") as events,
        ):
            await bus.publish("t", {"n": 0})
            lock = sqlite3.connect(tmp_path / "bus.db", isolation_level=None)
            lock.execute("BEGIN IMMEDIATE")
            with pytest.raises(Refused, match="another process holds the file"):
                await bus.publish("t", {"n": 1})
            with pytest.raises(Refused, match="another process holds the file"):
                await inorder.connect(url(tmp_path), deadline=0.2).open()
            lock.execute("ROLLBACK")
            lock.close()
            await bus.publish("t", {"n": 2}, deadline=5)
            assert [e.value["n"] for e in await take(events, 2)] == [0, 2]

    run(job)


@ALL
def test_a_file_that_became_read_only_refuses(tmp_path, guarantee, monkeypatch):
    class ReadOnly(File):
        on = False

        def write(self, turn: Turn, expected: Any = None) -> int:
            self._db.execute(f"PRAGMA query_only = {self.on}")
            return super().write(turn, expected)

    monkeypatch.setattr(sqlite, "File", ReadOnly)

    async def job() -> None:
        async with inorder.connect(url(tmp_path), guarantee, deadline=2, name="me") as bus:
            await bus.publish("t", {"n": 0})
            monkeypatch.setattr(ReadOnly, "on", True)
            with pytest.raises(Refused, match="readonly"):
                await bus.publish("t", {"n": 1})
            monkeypatch.setattr(ReadOnly, "on", False)
            await bus.publish("t", {"n": 2})
            async with bus.subscribe("t", replay="all") as past:
                assert [e.value["n"] for e in await take(past, 2)] == [0, 2]

    run(job)


# Damage.


def flip(path: Path, table: str, row: int) -> None:
    """Turn one bit of a blob."""
    column = "record" if table == "records" else "message"
    with sqlite3.connect(path) as db:
        (blob,) = db.execute(f"SELECT {column} FROM {table} WHERE id = ?", (row,)).fetchone()
        changed = bytes([*blob[:-1], blob[-1] ^ 1])
        db.execute(f"UPDATE {table} SET {column} = ? WHERE id = ?", (changed, row))
    db.close()


@ALL
def test_a_damaged_event_stops_its_readers_and_only_them(tmp_path, guarantee):
    async def job() -> None:
        async with inorder.connect(url(tmp_path), guarantee) as bus:
            for n in range(3):
                await bus.publish("t", {"n": n})
            flip(tmp_path / "bus.db", "log", 2)
            async with bus.subscribe("t", replay="all") as past:
                assert (await past.next(5)).value["n"] == 0
                with pytest.raises(Damaged, match="row 2 of log does not match its checksum"):
                    await past.next(5)
            async with bus.subscribe("t", replay=2) as behind, bus.subscribe("t") as live:
                assert (await behind.next(5)).value["n"] == 2
                await bus.publish("t", {"n": 3})
                assert (await live.next(5)).value["n"] == 3

    run(job)


def test_damaged_records_of_a_manager_stop_whoever_would_take_it_over(tmp_path):
    async def job() -> None:
        async with inorder.connect(url(tmp_path)) as bus:
            await bus.publish("t", {})
        with sqlite3.connect(tmp_path / "bus.db") as db:
            (row,) = db.execute("SELECT max(id) FROM records WHERE node = 'stage1'").fetchone()
        db.close()
        flip(tmp_path / "bus.db", "records", row)
        with pytest.raises(Damaged, match="of records does not match its checksum"):
            await inorder.connect(url(tmp_path)).open()

    run(job)


def test_damaged_mail_is_sent_again(tmp_path):
    async def job() -> None:
        async with inorder.connect(url(tmp_path)) as owner, inorder.connect(url(tmp_path)) as bus:
            await bus.publish("t", {})
            news = owner.host.broker.news
            flipped = 0

            async def damaging(targets: Any) -> Any:
                nonlocal flipped
                with sqlite3.connect(tmp_path / "bus.db") as db:
                    found = db.execute("SELECT id FROM mail WHERE target = 'stage1'").fetchone()
                db.close()
                if found and not flipped:
                    flip(tmp_path / "bus.db", "mail", found[0])
                    flipped += 1
                return await news(targets)

            owner.host.broker.news = damaging  # type: ignore[method-assign]
            await bus.publish("t", {"n": 1})
            assert flipped == 1
            assert owner.host.marks["refused: BadFrame"] == 1

    run(job)


def test_a_truncated_file_is_said_to_be_damaged(tmp_path):
    async def read_all() -> None:
        async with (
            inorder.connect(url(tmp_path), deadline=2) as bus,
            bus.subscribe("t", replay="all") as past,
        ):
            await take(past, 200)

    async def job() -> None:
        async with inorder.connect(url(tmp_path)) as bus:
            await bus.publish_many("t", [{"x": "a" * 1000}] * 200)
        path = tmp_path / "bus.db"
        os.truncate(path, path.stat().st_size // 2)
        with pytest.raises(Damaged):
            await read_all()

    run(job)


def test_files_that_are_not_ours_are_refused_and_left_alone(tmp_path):
    async def refused(expected: type[InorderError], told: str) -> None:
        with pytest.raises(expected, match=told) as caught:
            await inorder.connect(url(tmp_path)).open()
        assert "\n" not in str(caught.value)

    path = tmp_path / "bus.db"
    path.write_text("no database" * 1000)
    run(lambda: refused(Damaged, "not a database"))
    assert path.read_text() == "no database" * 1000
    path.unlink()
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE theirs (x)")
    db.close()
    before = path.read_bytes()
    run(lambda: refused(Misuse, "not one of inorder's"))
    assert path.read_bytes() == before
    path.unlink()
    path.mkdir()
    run(lambda: refused(Misuse, "unable to open"))
    with pytest.raises(Misuse, match="there is no folder"):
        File(tmp_path / "nowhere" / "bus.db")
    with pytest.raises(Misuse, match="no such file"):
        File(tmp_path / "other.db", create=False)


# The file itself.


def test_a_failed_transaction_leaves_none_open(tmp_path, monkeypatch):
    """Every writing verb, failing in the middle, then working again."""
    monkeypatch.setattr(Small, "pages", 2**30)
    file = Small(tmp_path / "f.db")
    file.declare("t", "none")
    token = file.claim("m", "h", 0.0) or 0
    large = b"x" * 100_000

    def verbs() -> Iterator[Any]:
        yield lambda: file.write(Turn(appends=[Append("t", large, 1)]))
        yield lambda: file.write(Turn(mails=[Mail("m", "n", large)]))
        yield lambda: file.write(Turn(records=[Record("m", token, large)]))
        yield lambda: file.claim("n" * 100_000, "h", 0.0)
        yield lambda: file.declare("t" * 100_000, "none")

    for verb in verbs():
        monkeypatch.setattr(Small, "pages", 1)
        file._db.execute("PRAGMA max_page_count = 1")
        with pytest.raises(Refused, match="full"):
            verb()
        monkeypatch.setattr(Small, "pages", 2**30)
        file._db.execute(f"PRAGMA max_page_count = {2**30}")
        assert not file._db.in_transaction
        verb()
    with pytest.raises(Replaced):
        file.write(Turn([Append("t", b"x", 1)], owned={"m": token + 1}))
    with pytest.raises(Misuse, match="never declared"):
        file.write(Turn(appends=[Append("nobody", b"x", 1)]))
    assert file.renew({"m": token, "q": 1}, 1.0) == ["q"]
    file.close()


def test_what_is_read_at_once_is_bounded_in_bytes(tmp_path):
    file = File(tmp_path / "f.db")
    file.declare("t", "none")
    each = LOG_BYTES_AT_ONCE // 4
    for _ in range(10):
        file.write(Turn([Append("t", b"x" * each, 1)], [Mail("m", "n", b"x" * each)]))
    rows, reached = file.log(["t"], 0, 10)
    assert (len(rows), reached) == (4, 4)
    assert len(file.mail(["m"])) == 4
    huge = b"x" * (2 * LOG_BYTES_AT_ONCE)
    file.write(Turn([Append("t", huge, 1)]))
    rows, reached = file.log(["t"], 10, 11)
    assert (len(rows), reached) == (1, 11)
    file.close()


def test_a_commit_that_fails_on_the_disk_is_unknown(tmp_path):
    """Neither accepted nor refused, and never tried again."""

    class Connection:
        def __init__(self, inner: Any) -> None:
            self._inner = inner

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

        def execute(self, sql: str, *values: Any) -> Any:
            if sql == "COMMIT":
                error = sqlite3.OperationalError("disk I/O error")
                error.sqlite_errorcode = 1034  # the sync failed
                raise error
            return self._inner.execute(sql, *values)

    file = File(tmp_path / "f.db")
    file.declare("t", "none")
    file._db = Connection(file._db)  # type: ignore[assignment]
    with pytest.raises(Unsure, match="disk I/O error"):
        file.write(Turn([Append("t", b"x", 1)]))
    file.close()


def test_waiting_for_a_lock_does_not_stop_the_loop(tmp_path):
    async def job() -> None:
        async with inorder.connect(url(tmp_path), deadline=2) as bus:
            await bus.publish("t", {})
            lock = sqlite3.connect(tmp_path / "bus.db", isolation_level=None)
            lock.execute("BEGIN IMMEDIATE")
            publishing = asyncio.create_task(bus.publish("t", {}))
            for _ in range(10):
                await asyncio.sleep(0.01)
            lock.execute("ROLLBACK")
            lock.close()
            assert (await publishing).outcome == "accepted"

    run(job)
