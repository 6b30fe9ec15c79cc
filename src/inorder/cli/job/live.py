"""The processes a job brings along: publishers, and subscribers that record what they get."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from inorder.cli.job.feed import Feed
from inorder.cli.job.listen import Listen
from inorder.cli.job.tables import Member, PublishersTable
from inorder.core.errors import Misuse

# Seconds a process may take to begin, or to end after its work is over.
PATIENCE_S = 60.0
# Subscriber processes: few, because they share this machine with everything else.
LISTENERS = 3


class Load:
    """Runs the publishers between the subscribers' beginning and end."""

    def __init__(
        self,
        url: str,
        topics: Sequence[str],
        publishers: PublishersTable,
        members: Sequence[Member],
        folder: Path,
        seed: str,
    ) -> None:
        self._feeds = [
            Feed(
                url=url, name=f"publisher{number + 1}",
                topics=[topics[number % len(topics)]] if publishers.topics == "own" else [*topics],
                rate=publishers.rate, duration=publishers.duration,
                attributes=publishers.attributes, seed=f"{seed}/{number}",
            )
            for number in range(publishers.count)
        ]  # fmt: skip
        some = [list(members[place::LISTENERS]) for place in range(LISTENERS)]
        self._listens = [Listen(url=url, trace=str(folder), members=each) for each in some if each]
        self._duration = publishers.duration
        self._processes: list[subprocess.Popen[bytes]] = []

    def run(self, progress: Callable[[float], None]) -> dict[str, int]:
        """Everything, from the first subscriber to the last; the outcomes of publications."""
        try:
            return self._run(progress)
        finally:
            for process in self._processes:
                if process.poll() is None:
                    process.kill()
                process.wait()

    def _run(self, progress: Callable[[float], None]) -> dict[str, int]:
        listeners = [self._start("listen") for _ in self._listens]
        for process, settings in zip(listeners, self._listens, strict=True):
            self._tell(process, msgspec.json.encode(settings) + b"\n", end=False)
        for process in listeners:
            self._hear(process)
        feeders = [self._start("feed") for _ in self._feeds]
        for process, feed in zip(feeders, self._feeds, strict=True):
            self._tell(process, msgspec.json.encode(feed), end=True)
        self._wait(feeders, progress)
        total = {"stored": 0, "refused": 0, "unknown": 0}
        for process in feeders:
            for outcome, count in msgspec.json.decode(self._hear(process)).items():
                total[outcome] += count
        for process in listeners:
            assert process.stdin is not None
            process.stdin.close()
        for process in listeners:
            self._hear(process)
        return total

    def _start(self, module: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"inorder.cli.job.{module}"]
        pipe: Any = subprocess.PIPE
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)
        self._processes.append(process)
        return process

    def _tell(self, process: subprocess.Popen[bytes], text: bytes, end: bool) -> None:
        assert process.stdin is not None
        process.stdin.write(text)
        process.stdin.flush()
        if end:
            process.stdin.close()

    def _hear(self, process: subprocess.Popen[bytes]) -> bytes:
        """A line of a process, or why there is none."""
        assert process.stdout is not None
        if line := process.stdout.readline().strip():
            return line
        assert process.stderr is not None
        said = process.stderr.read().decode(errors="replace").strip().splitlines()
        raise Misuse(f"a process of the job ended early: {said[-1] if said else 'without a word'}")

    def _wait(
        self, feeders: Sequence[subprocess.Popen[bytes]], progress: Callable[[float], None]
    ) -> None:
        began = time.monotonic()
        while any(process.poll() is None for process in feeders):
            passed = time.monotonic() - began
            if passed > self._duration + PATIENCE_S:
                raise Misuse(f"a publisher did not end within {PATIENCE_S:g} s after its time")
            progress(min(1.0, passed / self._duration))
            time.sleep(0.05)
