"""The file in its place: deleted, moved, replaced, shared, full, locked, of others."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from inorder.brokers import broker_at
from inorder.brokers.sqlite import file as module
from inorder.brokers.sqlite import reading
from inorder.brokers.sqlite.file import File
from inorder.core.errors import Damaged, InorderError, Misuse, Refused, Unsure
from inorder.logs.broker import Author
from inorder.logs.topics import EVERYTHING
from tests.brokers.hands import Writer, events, everything, expand, published, run

ROOT = Path(__file__).parents[2]
ME = Author("p", 1, True)


def one(file: File, n: int, **columns: Any) -> int:
    (offset,) = file.append(ME, [events(ME, "t", n, [n], **columns)])
    return offset


def content(path: Path) -> dict[int, Any]:
    file = File(path)
    rows = reading.read(file, 1, 1 << 30, EVERYTHING)
    file.close()
    return {s.offset: s.value for run in rows.runs for s in expand(run)}


# In its place.


def gone(path: Path) -> None:
    path.unlink()


def moved(path: Path) -> None:
    path.rename(path.with_name("elsewhere.db"))


def replaced(path: Path) -> None:
    shutil.copy(path, path.with_name("other.db"))
    path.with_name("other.db").rename(path)


@pytest.mark.parametrize("change", [gone, moved, replaced])
def test_a_file_that_is_not_there_any_more_gives_no_receipt(tmp_path, change):
    file = File(tmp_path / "log.db")
    one(file, 1)
    change(file.path)
    for verb in (
        lambda: one(file, 2),
        lambda: file.within(file.facts.put, "k", b"", 1),
        lambda: reading.settle(file),
        lambda: reading.read(file, 1, 100, EVERYTHING),
    ):
        with pytest.raises(Damaged, match="was deleted, moved or replaced while it was open"):
            verb()
    file.close()


def test_a_file_that_goes_while_a_turn_is_written_gives_no_receipt(tmp_path, monkeypatch):
    file = File(tmp_path / "log.db")
    one(file, 1)
    commit = file._commit
    monkeypatch.setattr(file, "_commit", lambda: (commit(), file.path.unlink()))
    with pytest.raises(Damaged, match="was deleted"):
        one(file, 2)
    file.close()


def test_a_witness_that_is_gone_is_said_and_made_again(tmp_path, caplog):
    file = File(tmp_path / "log.db")
    one(file, 1)
    witness = file.witness.path
    witness.unlink()
    one(file, 2)
    assert "was deleted; it is made again" in caplog.text
    file.close()
    for damage in (witness.unlink, lambda: witness.write_bytes(b"x" * 16)):
        damage()
        caplog.clear()
        file = File(tmp_path / "log.db")
        assert [r.levelname for r in caplog.records] == ["WARNING"]
        assert "missing or damaged" in caplog.text
        caplog.clear()
        file.close()
        file = File(tmp_path / "log.db")
        assert not caplog.records
        file.close()


def test_a_log_that_lost_its_end_says_so_and_takes_nothing(tmp_path, caplog):
    file = File(tmp_path / "log.db")
    for n in range(1, 4):
        one(file, n)
    file.close()
    with closing(sqlite3.connect(file.path)) as db:
        db.execute("DELETE FROM log WHERE last = 3")
        db.commit()
    file = File(tmp_path / "log.db")
    assert "offsets 3 to 3: were stored, and are lost" in caplog.text
    with pytest.raises(Damaged, match="are lost"):
        one(file, 4)
    assert reading.settle(file).stable == 4
    assert [r.offset for r in reading.read(file, 1, 100, EVERYTHING).runs] == [1, 2]
    with pytest.raises(Damaged) as caught:
        reading.read(file, 3, 100, EVERYTHING)
    assert (caught.value.start, caught.value.upto) == (3, 4)
    file.close()


def test_a_file_whose_log_is_empty_is_no_new_file(tmp_path):
    file = File(tmp_path / "log.db")
    one(file, 1)
    file.close()
    file.path.unlink()
    with pytest.raises(Damaged, match="it has lost everything"):
        File(tmp_path / "log.db")


# Sharing.


def started(*words: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.brokers.worker", *map(str, words)]
    return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE)


def lines(path: Path) -> list[tuple[int, int]]:
    """Whole lines: the last may be torn."""
    text = path.read_bytes() if path.exists() else b""
    rows = [line.split() for line in text[: text.rfind(b"\n") + 1].splitlines()]
    return [(int(offset), int(n)) for offset, n in rows]


def test_four_processes_open_a_new_file_at_once_and_write(tmp_path):
    path = tmp_path / "log.db"
    workers = [started("append", path, f"p{n}", tmp_path / f"r{n}", 60) for n in range(4)]
    for worker in workers:
        _, errors = worker.communicate(timeout=60)
        assert worker.returncode == 0, errors.decode()
    file = File(path)
    runs = reading.read(file, 1, 1 << 30, EVERYTHING).runs
    stored = {s.offset: (s.publisher, s.value) for run in runs for s in expand(run)}
    file.close()
    assert sorted(stored) == list(range(1, 241))
    for n in range(4):
        assert [stored[offset] for offset, _ in lines(tmp_path / f"r{n}")] == [
            (f"p{n}", value) for value in range(1, 61)
        ]


def test_kills_cost_no_receipt(tmp_path):
    """SIGKILL at any moment; receipts are a file. Some kill must hit between commit and receipt,
    or nothing was proved; kills go on until that has happened."""
    path, receipts = tmp_path / "log.db", tmp_path / "receipts"
    draw = random.Random(3)
    kills = 0
    while True:
        before = len(lines(receipts))
        worker = started("append", path, "p", receipts, 10**6)
        until = time.monotonic() + 30
        while len(lines(receipts)) < before + 5:
            assert worker.poll() is None
            assert time.monotonic() < until
            time.sleep(0.005)
        time.sleep(draw.random() * 0.02)
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        worker.stderr.close()  # type: ignore[union-attr]
        kills += 1
        stored, given = content(path), lines(receipts)
        assert {offset: stored.get(offset) for offset, _ in given} == dict(given)
        assert list(stored.values()) == list(range(1, len(stored) + 1))
        if kills >= 8 and len(stored) > len(given):
            break
        assert kills < 200, "no kill hit a commit"


def test_two_writers_share_a_file(tmp_path):
    """Each gets its turn, in one process and two loops' worth of threads."""

    async def job() -> None:
        url = f"sqlite:///{tmp_path}/log.db"
        brokers = [broker_at(url, 20.0) for _ in range(2)]
        for broker in brokers:
            await broker.open()
        (log,) = await brokers[0].logs(EVERYTHING)

        async def write(broker: Any, name: str) -> None:
            writer = Writer(broker, log, name)
            for n in range(300):
                await writer.write("t", [n])

        await asyncio.gather(*(write(b, f"p{n}") for n, b in enumerate(brokers)))
        read = published(await everything(brokers[0], log))
        for name in ("p0", "p1"):
            assert [s.value for s in read if s.publisher == name] == list(range(300))
        for broker in brokers:
            await broker.close()

    run(job)


def test_a_held_file_refuses_and_recovers(tmp_path):
    file = File(tmp_path / "log.db", busy_s=0.2)
    other = File(tmp_path / "log.db", busy_s=0.2)
    one(file, 1)
    with other.witness.locked(1.0), pytest.raises(Refused, match="another process holds the file"):
        one(file, 2)
    db = sqlite3.connect(file.path, isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    with pytest.raises(Refused, match="another process holds the file"):
        one(file, 2)
    db.execute("ROLLBACK")
    db.close()
    assert one(file, 2) == 2
    for each in (file, other):
        each.close()


def test_locks_that_do_not_lock_are_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(fcntl, "flock", lambda handle, how: None)
    with pytest.raises(Misuse, match="locks do not lock"):
        File(tmp_path / "log.db")


def test_a_connection_is_of_no_use_in_a_child(tmp_path):
    async def job() -> None:
        for url in (f"sqlite:///{tmp_path}/log.db", "memory://forked"):
            broker = broker_at(url, 10.0)
            await broker.open()
            (log,) = await broker.logs(EVERYTHING)
            broker._pid = -1  # as it is seen by a child
            for verb in (
                lambda b=broker, g=log: b.append(g, ME, [events(ME, "t", 1, [1])]),
                lambda b=broker, g=log: b.read(g, 1, 1, EVERYTHING),
            ):
                with pytest.raises(Misuse, match="before a fork"):
                    await verb()
            broker._pid = os.getpid()
            await broker.close()

    run(job)


# Full and broken disks.


class Small(File):
    """A file on a disk of our own making: `pages` is what fits."""

    pages = 2**30

    def _begin(self, durable: bool) -> None:
        super()._begin(durable)
        self.db.execute(f"PRAGMA max_page_count = {self.pages}")


def test_a_full_disk_refuses_and_recovers(tmp_path):
    file = Small(tmp_path / "log.db")
    one(file, 1)
    file.pages = 1  # as full as it is now
    large = ("k" * 50_000,)
    for _ in range(3):
        with pytest.raises(Refused, match="full"):
            one(file, 2, keys=large)
        with pytest.raises(Refused, match="full"):
            file.within(file.facts.put, "k", b"v" * 50_000, 1)
    file.pages = 2**30
    assert one(file, 2, keys=large) == 2
    assert file.seen(file.facts.get, "k") is None
    file.close()
    assert content(file.path) == {1: 1, 2: 2}


def test_a_commit_that_fails_on_the_disk_is_unknown(tmp_path, monkeypatch):
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

    file = File(tmp_path / "log.db")
    real = file.db
    file.db = Connection(real)  # type: ignore[assignment]
    with pytest.raises(Unsure, match="disk I/O error"):
        one(file, 1)
    file.db = real
    assert one(file, 1) == 1
    file.close()


# Whose it is.


def test_files_are_for_their_owner_only(tmp_path):
    file = File(tmp_path / "log.db")
    one(file, 1)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert {*modes.values()} == {0o600}
    assert len(modes) == 4
    file.close()


def test_who_has_no_rights_is_told_so(tmp_path):
    """In a process of another user: the superuser is above all rights."""
    if os.getuid() != 0:
        pytest.fail("only the superuser can become somebody else")
    folder = tmp_path / "shared"
    folder.mkdir()
    for parent in (tmp_path, *tmp_path.parents):
        if parent.stat().st_uid == 0 and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o055)
    File(folder / "log.db").close()

    def attempt(name: str, verb: str) -> str:
        words = [sys.executable, "-m", "tests.brokers.worker", "as_nobody", folder / name, verb]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    assert attempt("log.db", "open").startswith("Misuse /log.db-witness: Permission denied")
    assert attempt("new.db", "create").startswith("Misuse /new.db: Permission denied")
    for path in folder.iterdir():
        path.chmod(0o644)
    assert attempt("log.db", "open").startswith("Misuse")
    folder.chmod(0o777)
    for path in folder.iterdir():
        path.chmod(0o666)
    assert attempt("log.db", "open") == "done"
    (folder / "log.db").chmod(0o444)
    assert "readonly" in attempt("log.db", "open")


def test_files_that_are_not_ours_are_refused_and_left_alone(tmp_path):
    path = tmp_path / "log.db"
    path.write_text("no database" * 1000)
    with pytest.raises(Damaged, match="not a database"):
        File(path)
    assert path.read_text() == "no database" * 1000
    path.unlink()
    for statement, message in (
        ("CREATE TABLE theirs (x)", "none that this version has made"),
        ("PRAGMA user_version = 7", "has format 7, this version reads 2"),
    ):
        with closing(sqlite3.connect(path)) as db:
            if "7" in statement:
                db.execute(f"PRAGMA application_id = {module.APPLICATION}")
            db.execute(statement)
            db.commit()
        before = path.read_bytes()
        with pytest.raises(Misuse, match=message):
            File(path)
        assert path.read_bytes() == before
    path.unlink()
    path.mkdir()
    with pytest.raises(InorderError):
        File(path)
    with pytest.raises(Misuse, match="there is no folder"):
        File(tmp_path / "nowhere" / "log.db")
    with pytest.raises(Misuse, match="no such file"):
        File(tmp_path / "other.db", create=False)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("kafka://x", "leads to no broker: a URL begins with memory:// or sqlite://"),
        ("nothing", "leads to no broker"),
        (None, "leads to no broker"),
        ("sqlite://x.db", "write sqlite:///FILE.db"),
        ("sqlite:///", "write sqlite:///FILE.db"),
        ("sqlite:///x.db?fast=yes", "there is no option 'fast'; known: durable"),
        ("sqlite:///x.db?durable=maybe", "durable is yes or no, not 'maybe'"),
        ("sqlite:///x.db?durable", "an option is written name=value"),
        ("memory://a/b", "a name has no /"),
        ("memory://a?durable=no", "there is no option 'durable'; known: none"),
    ],
)
def test_urls_that_lead_nowhere(url, message):
    with pytest.raises(Misuse, match=message.replace("?", r"\?")):
        broker_at(url, 1.0)


# What only a file has.


def test_clocks_that_go_back_do_not_confuse_times(tmp_path, monkeypatch):
    file = File(tmp_path / "log.db")
    clock = iter([1000.0, 1000.0, 4600.0, 1000.0, 1000.0, 1000.0, 5000.0, 5000.0, 5000.0])
    monkeypatch.setattr(module.time, "time", lambda: next(clock, 6000.0))
    for n in range(1, 6):
        one(file, n)
    times = [run.stored_at for run in reading.read(file, 1, 1 << 20, EVERYTHING).runs]
    assert times == sorted(times)
    assert reading.at(file, times[-1]) == times.index(times[-1]) + 1
    assert reading.at(file, times[0]) == 1
    file.close()


def test_an_erased_secret_is_nowhere_in_the_file(tmp_path):
    file = File(tmp_path / "log.db")
    file.append(ME, [events(ME, "t", 1, ["before", "secret-of-erasure" * 400, "after"])])
    from inorder.brokers.sqlite.changing import erase

    erase(file, 2)
    for path in tmp_path.iterdir():
        assert b"secret-of-erasure" not in path.read_bytes(), path
    file.close()
    assert content(file.path) == {1: "before", 2: None, 3: "after"}


def test_what_is_removed_gives_its_pages_back(tmp_path):
    from inorder.brokers.sqlite.changing import remove

    file = File(tmp_path / "log.db")
    for n in range(1, 41):
        one(file, n, keys=("k" * 50_000,))
    file.checkpoint()
    before = file.path.stat().st_size
    remove(file, 40)
    file.checkpoint()
    assert file.path.stat().st_size < before / 4
    file.close()


def test_publishers_without_a_name_leave_a_bounded_number_of_rows(tmp_path, monkeypatch):
    from inorder.brokers import runs
    from inorder.brokers.sqlite import facts

    monkeypatch.setattr(facts, "NAMELESS_KEPT_MAX", 10)
    monkeypatch.setattr(runs, "NAMELESS_KEPT_MAX", 10)
    file = File(tmp_path / "log.db")
    for n in range(30):
        author = Author(f"random{n}")
        file.append(author, [events(author, "t", 1, [n])])
        file._authors.clear()
    for n in range(30):
        last = file.seen(file.facts.last, Author(f"random{n}"))
        assert last == (1 if n >= 20 else None)
    assert file.seen(file.facts.keys, "") == []
    with pytest.raises(Refused):
        file.append(Author("random29"), [events(Author("random29"), "t", 1, [0])])
    file.close()


def test_logging_goes_to_the_rooms_logger(tmp_path):
    assert module.log is logging.getLogger("inorder.brokers")
