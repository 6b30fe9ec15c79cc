"""Processes on one file, by name, and what they wrote down as a history."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from inorder.brokers.sqlite import reading
from inorder.brokers.sqlite.file import File
from inorder.check import History
from inorder.check.trace import DeliveryRow, EventRow, SubscriptionRow
from inorder.logs.broker import Run
from inorder.logs.topics import EVERYTHING
from tests.bus.judge import DONE
from tests.bus.worker import BATCH, TOPICS, lines

ROOT = Path(__file__).parents[2]
PUBLISHERS = ("p1", "p2")
SUBSCRIBERS = ("s1", "s2")
PATIENCE_S = 60.0


class Troupe:
    """`clocks`: by how many seconds a process's clock is off."""

    def __init__(self, folder: Path, clocks: dict[str, float] | None = None) -> None:
        self.folder, self.path = folder, folder / "bus.db"
        self.clocks = clocks or {}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.kills: Counter[str] = Counter()
        # By publisher: events that were stored when it was killed, and never had a receipt.
        self.unsaid: Counter[str] = Counter()

    def start(self, name: str) -> None:
        role = "publish" if name in PUBLISHERS else "subscribe"
        words = [role, f"sqlite:///{self.path}", name, str(self.folder)]
        clock = {"INORDER_TEST_CLOCK": str(self.clocks.get(name, 0.0))}
        with open(self.folder / f"{name}.errors", "ab") as errors:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-m", "tests.bus.worker", *words], cwd=ROOT, stderr=errors,
                env=os.environ | clock,
            )  # fmt: skip

    def begin(self) -> None:
        for name in (*PUBLISHERS, *SUBSCRIBERS):
            self.start(name)
        for name in self.processes:
            self.wait_until_at_work(name, 0)

    def kill(self, name: str, at_commit: bool) -> None:
        """SIGKILL, and back under the same name; if asked, when somebody has just committed."""
        done = self.done(name)
        self.kills[name] += 1
        if at_commit:
            self.await_commit()
        self.processes[name].kill()
        self.processes[name].wait()
        if name in PUBLISHERS:
            self.unsaid[name] = self.without_receipt(name)
        self.start(name)
        self.wait_until_at_work(name, done)

    def await_commit(self) -> None:
        """The witness is written behind each commit, before the receipt is given."""
        witness = self.path.with_name(self.path.name + "-witness")
        with witness.open("rb", buffering=0) as file:
            before, end = file.read(16), time.monotonic() + 1
            while time.monotonic() < end:
                if os.pread(file.fileno(), 16, 0) != before:
                    return

    def done(self, name: str) -> int:
        """How much a process has written down."""
        kind = "published" if name in PUBLISHERS else "delivered"
        return len(lines(self.folder / f"{name}.{kind}"))

    def wait_until_at_work(self, name: str, before: int) -> None:
        end = time.monotonic() + PATIENCE_S
        while self.done(name) <= before:
            assert self.processes[name].poll() is None, self.errors(name)
            assert time.monotonic() < end, f"{name} does not begin: {self.errors(name)}"
            time.sleep(0.01)

    def finish(self) -> None:
        """Publishers first; subscribers when they have everything."""
        (self.folder / "stop").touch()
        for name in PUBLISHERS:
            assert self.processes[name].wait(PATIENCE_S) == 0, self.errors(name)
        wanted = sum(run.count for run in self.runs())
        end = time.monotonic() + PATIENCE_S
        while any(len(self.delivered(name)) < wanted for name in SUBSCRIBERS):
            assert time.monotonic() < end, [len(self.delivered(n)) for n in SUBSCRIBERS]
            time.sleep(0.05)
        (self.folder / "stop.subscribers").touch()
        for name in SUBSCRIBERS:
            assert self.processes[name].wait(PATIENCE_S) == 0, self.errors(name)

    def end(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()

    def errors(self, name: str) -> str:
        return f"{name}: {(self.folder / f'{name}.errors').read_text()[-2000:]}"

    # What happened.

    def runs(self) -> list[Run]:
        """The log is the truth about what was published."""
        file = File(self.path)
        found: list[Run] = []
        offset = 0
        while (rows := reading.read(file, offset, 1 << 24, EVERYTHING)).upto > offset:
            assert not rows.removed
            found += rows.runs
            offset = rows.upto
        file.close()
        return found

    def delivered(self, name: str) -> list[dict[str, Any]]:
        """Each event once. A reader with a durable name is handed again what it had not finished
        when it was killed, and nothing else."""
        found: dict[int, dict[str, Any]] = {}
        again = 0
        for line in lines(self.folder / f"{name}.delivered"):
            again += line["position"] in found
            found[line["position"]] = line
        if name == "s1":
            # A torn last line is one whose cursor is not known.
            assert again == 0, f"{again} events again, though a cursor was stored for each"
        return list(found.values())

    def receipts(self, name: str) -> list[dict[str, Any]]:
        return [line for line in lines(self.folder / f"{name}.published") if "event" in line]

    def without_receipt(self, name: str) -> int:
        stored = sum(run.count for run in self.runs() if run.publisher == name)
        return stored - sum(line["outcome"] == "stored" for line in self.receipts(name))

    def history(self) -> History:
        events: dict[str, EventRow] = {}
        for run in self.runs():
            for index in range(run.count):
                name, place = f"{run.publisher}:{run.epoch}:{run.sequence + index}", run.offset
                assert name not in events, f"{name} is in the log twice"
                events[name] = EventRow(
                    name, run.topic, run.publisher, run.sequence + index, run.published_at,
                    seen="{}", epoch=run.epoch, log="log", offset=place + index,
                    position=place + index, outcome="unknown",
                )  # fmt: skip
        for name in PUBLISHERS:
            told = self.receipts(name)
            for line in told:
                assert line["outcome"] == "stored", line
                row = events.get(line["event"])
                assert row is not None, f"{line['event']} has a receipt and is lost"
                assert row.offset == line["offset"], (row, line)
                row.accepted_at, row.outcome = line["at"], "accepted"
            unsure = [e for e in events.values() if e.publisher == name and e.accepted_at is None]
            assert len(unsure) <= BATCH * self.kills[name], f"{name} got no answer to {unsure}"
        deliveries, subscriptions = [], []
        for name in SUBSCRIBERS:
            subscriptions.append(SubscriptionRow(name, "subscribe", [*TOPICS], None, "{}", 0.0, 0))
            for nth, line in enumerate(self.delivered(name), 1):
                row = events[line["event"]]
                assert row.position == line["position"]
                deliveries.append(DeliveryRow(
                    name, nth, row.event, line["topic"], row.publisher, row.seq,
                    row.published_at, 1e12, 1e12, True, row.epoch,
                ))  # fmt: skip
        return History(
            deliveries, events.values(), subscriptions, complete=True, ending=DONE, clock_error=0.0
        )
