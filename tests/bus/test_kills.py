"""Real processes on one file, killed and suspended at any moment, restarted under their names.

At the end: nothing accepted is lost, nothing is doubled, no order is broken. What has no receipt
was published once or never, and then for everybody.

`INORDER_KILLS` sets how many kills each of the tests makes.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from inorder.bus.store.sqlite.file import File
from inorder.check import History
from inorder.check.trace import DeliveryRow, EventRow, SubscriptionRow
from inorder.core.limits import OWNER_SILENT_S_MAX
from inorder.core.wire import Decoder
from inorder.guarantee.registry import guarantee
from tests.bus.judge import DONE, judged
from tests.bus.worker import TOPICS, lines

ROOT = Path(__file__).parents[2]
PUBLISHERS = ("p1", "p2")
SUBSCRIBERS = ("s1", "s2")


class Troupe:
    """The processes, by name."""

    def __init__(self, folder: Path, ordered: str) -> None:
        self.folder = folder
        self.guarantee = ordered
        self.path = folder / "bus.db"
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.kills: Counter[str] = Counter()
        self.roles = {
            "k1": "keep",
            **dict.fromkeys(PUBLISHERS, "publish"),
            **dict.fromkeys(SUBSCRIBERS, "subscribe"),
        }

    def start(self, name: str) -> None:
        url = f"sqlite:///{self.path}"
        words = [self.roles[name], url, self.guarantee, name, str(self.folder)]
        with open(self.folder / f"{name}.errors", "ab") as errors:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-m", "tests.bus.worker", *words], cwd=ROOT, stderr=errors
            )

    def kill(self, name: str) -> None:
        self.kills[name] += 1
        self.processes[name].kill()
        self.processes[name].wait()

    def accepted(self) -> int:
        return sum(
            line["outcome"] == "accepted"
            for name in PUBLISHERS
            for line in lines(self.folder / f"{name}.published")
        )

    def wait_for(self, more: int, patience_s: float = 30.0) -> None:
        """Until so many more publications were accepted."""
        goal = self.accepted() + more
        end = time.monotonic() + patience_s
        while self.accepted() < goal:
            for name, process in self.processes.items():
                assert process.poll() is None, self.errors(name)
            assert time.monotonic() < end, "nothing is accepted any more"
            time.sleep(0.02)

    def wait_until_at_work(self, name: str, patience_s: float = 30.0) -> None:
        """A process killed before it has begun proves nothing."""
        before = self._done(name)
        end = time.monotonic() + patience_s
        while self._done(name) <= before:
            assert self.processes[name].poll() is None, self.errors(name)
            assert time.monotonic() < end, f"{name} does not begin"
            time.sleep(0.02)

    def _done(self, name: str) -> int:
        """How much a process has written down; a keeper only says who it is."""
        if self.roles[name] != "keep":
            kind = "published" if name in PUBLISHERS else "delivered"
            return len(lines(self.folder / f"{name}.{kind}"))
        return int(self.owner_of(name) == name)

    def owner_of(self, node: str) -> str | None:
        """The process that owns a machine now."""
        with closing(sqlite3.connect(self.path)) as db:
            found = db.execute("SELECT process FROM owners WHERE node = ?", (node,)).fetchone()
        pids = {process.pid: name for name, process in self.processes.items()}
        return pids.get(found[0]) if found else None

    def finish(self) -> None:
        """Publishers first; subscribers when they have everything."""
        (self.folder / "stop").touch()
        for name in self.roles:
            if name not in SUBSCRIBERS:
                assert self.processes[name].wait(30) == 0, self.errors(name)
        file = File(self.path)
        wanted = sum(row.next for row in file.topics())
        file.close()
        end = time.monotonic() + 30
        while any(len(self.delivered(name)) < wanted for name in SUBSCRIBERS):
            assert time.monotonic() < end, [len(self.delivered(n)) for n in SUBSCRIBERS]
            time.sleep(0.05)
        (self.folder / "stop.subscribers").touch()
        for name in SUBSCRIBERS:
            assert self.processes[name].wait(30) == 0, self.errors(name)

    def errors(self, name: str) -> str:
        return f"{name}: {(self.folder / f'{name}.errors').read_text()[-2000:]}"

    def delivered(self, name: str) -> list[dict[str, object]]:
        return lines(self.folder / f"{name}.delivered")

    def end(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()

    # What happened.

    def logged(self) -> dict[str, EventRow]:
        """The log is the truth about what was published."""
        log = guarantee(self.guarantee).log
        decode = Decoder(log.messages).decode
        file = File(self.path)
        found: dict[str, EventRow] = {}
        for topic in file.topics():
            expected = 0
            for row in file.slice(topic.topic, 0, topic.next):
                assert row.offset == expected, f"{topic.topic} has a hole at {expected}"
                expected += row.count
                for event in log.events(decode(row.message)):
                    assert event.id not in found, f"{event.id} is in the log twice"
                    # Those who publish are processes that take nothing.
                    found[event.id] = EventRow(
                        event.id, event.topic, event.publisher, event.seq, event.published_at,
                        seen="{}",
                    )  # fmt: skip
        file.close()
        return found

    def may_be_unsure(self, name: str) -> int:
        """What a publisher had under way when it was killed, at most a batch of 7 each time, and
        what it was told to be unsure of."""
        told = sum("event" not in line for line in lines(self.folder / f"{name}.published"))
        return 7 * self.kills[name] + told

    def history(self) -> History:
        events = self.logged()
        for name in [name for name, role in self.roles.items() if role == "publish"]:
            for line in lines(self.folder / f"{name}.published"):
                if line["outcome"] == "accepted":
                    assert line["event"] in events, f"{line['event']} was accepted and is lost"
                    events[line["event"]].accepted_at = line["at"]
            unsure = [
                row for row in events.values()
                if row.publisher == name and row.accepted_at is None
            ]  # fmt: skip
            assert len(unsure) <= self.may_be_unsure(name), f"{name} got no answer to {unsure}"
            for row in unsure:
                row.outcome = "unknown"
        deliveries = []
        subscriptions = []
        for name in SUBSCRIBERS:
            # Held from before the first event on: a replay from the beginning misses nothing.
            subscriptions.append(SubscriptionRow(name, "subscribe", [*TOPICS], None, "{}", 0.0, 0))
            for nth, line in enumerate(self.delivered(name), 1):
                row = events[str(line["event"])]
                deliveries.append(DeliveryRow(
                    name, nth, row.event, str(line["topic"]), row.publisher, row.seq,
                    row.published_at, 1e12, 1e12, bool(line["in_order"]),
                ))  # fmt: skip
        return History(
            deliveries, events.values(), subscriptions, complete=True, ending=DONE, clock_error=0.0
        )


@pytest.mark.parametrize(("ordered", "kills"), [("total", 10), ("fifo", 4), ("none", 4)])
def test_killed_processes_lose_nothing_and_double_nothing(tmp_path, ordered, kills):
    kills = int(os.environ.get("INORDER_KILLS", kills))
    chance = random.Random(7)
    troupe = Troupe(tmp_path, ordered)
    try:
        for name in troupe.roles:
            troupe.start(name)
            time.sleep(0.1)  # so that the keeper owns the managers first
        for name in (*PUBLISHERS, *SUBSCRIBERS):
            troupe.wait_until_at_work(name)
        killed: Counter[str] = Counter()
        for number in range(kills):
            troupe.wait_for(10)
            time.sleep(chance.uniform(0.0, 0.2))
            # Everybody has a turn, the owner of the managers first.
            names = [*troupe.roles] if number % 5 else [troupe.owner_of("stage1") or "k1"]
            name = chance.choice(names)
            troupe.kill(name)
            killed[troupe.roles[name]] += 1
            troupe.start(name)
            troupe.wait_until_at_work(name)
        troupe.wait_for(10)
        troupe.finish()
        counts = judged(troupe.history(), ordered)
        assert counts["lost"] == 0
        assert counts["owed"] == 2 * troupe.accepted() > 0
        assert sum(killed.values()) == kills
        late = [line for name in SUBSCRIBERS for line in troupe.delivered(name)]
        assert ordered != "total" or all(line["in_order"] for line in late)
    finally:
        troupe.end()


def suspend(troupe: Troupe, name: str) -> None:
    """Stop a process at a moment when it does not hold the file's one lock: nobody could write
    then, whoever owns what (docs/bus.md says so)."""
    process = troupe.processes[name]
    for _ in range(200):
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.01)
        db = sqlite3.connect(troupe.path, timeout=0.3, isolation_level=None)
        try:
            db.execute("BEGIN IMMEDIATE")
            db.execute("ROLLBACK")
            return
        except sqlite3.OperationalError:
            process.send_signal(signal.SIGCONT)
            time.sleep(0.05)
        finally:
            db.close()
    raise AssertionError(f"{name} held the file whenever it was stopped")


def test_an_owner_that_was_suspended_comes_back_to_nothing(tmp_path):
    """Suspended in full work for longer than an owner may be silent; its turn is stale then."""
    troupe = Troupe(tmp_path, "total")
    troupe.roles["k1"] = "publish"  # the owner of the managers publishes, too
    try:
        troupe.start("k1")
        deadline = time.monotonic() + 20
        while not lines(tmp_path / "k1.published"):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        for name in (*PUBLISHERS, *SUBSCRIBERS):
            troupe.start(name)
        troupe.wait_for(50)
        assert troupe.owner_of("stage1") == "k1"
        suspend(troupe, "k1")
        before = troupe.accepted()
        time.sleep(OWNER_SILENT_S_MAX)
        troupe.wait_for(max(1, before + 50 - troupe.accepted()))
        assert troupe.owner_of("stage1") not in (None, "k1")
        own = len(lines(tmp_path / "k1.published"))
        troupe.processes["k1"].send_signal(signal.SIGCONT)
        troupe.wait_for(50)
        end = time.monotonic() + 20
        while len(lines(tmp_path / "k1.published")) < own + 20:
            assert troupe.processes["k1"].poll() is None, troupe.errors("k1")
            assert time.monotonic() < end, "the resumed process publishes nothing"
            time.sleep(0.05)
        troupe.finish()
        counts = judged(troupe.history(), "total")
        assert counts["lost"] == 0
        assert counts["owed"] > 0
    finally:
        for process in troupe.processes.values():
            process.send_signal(signal.SIGCONT)
        troupe.end()


def test_many_processes_create_one_file_at_once(tmp_path):
    code = (
        "import sys; from inorder.bus.store.sqlite.file import File; print(File(sys.argv[1]).name)"
    )
    words = [sys.executable, "-c", code, str(tmp_path / "new.db")]
    started = [subprocess.Popen(words, stdout=subprocess.PIPE, cwd=ROOT) for _ in range(6)]
    names = {process.communicate()[0] for process in started}
    assert [process.returncode for process in started] == [0] * 6
    assert len(names) == 1
