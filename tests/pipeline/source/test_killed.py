"""Exactly once, also for a driver that is killed after a write and before its commit."""

from __future__ import annotations

import signal
import subprocess
import sys

from tests.pipeline.source import logs


def test_every_row_is_written_once_though_the_driver_is_killed(tmp_path):
    source, target, checkpoint = tmp_path / "a.db", tmp_path / "b.db", tmp_path / "c"
    logs.fill(source, logs.numbered("plain", 100))

    def run(fatal):
        command = [sys.executable, "-m", "tests.pipeline.source.killed",
                   str(source), str(target), str(checkpoint), str(fatal)]  # fmt: skip
        return subprocess.run(command, capture_output=True, text=True, timeout=300)

    done = run(1)
    assert done.returncode == -signal.SIGKILL, done.stderr
    # The second batch is in the file, and Spark does not know: it will run it again.
    assert len(logs.plain_rows(target)) == 80
    assert sorted(each.name for each in (checkpoint / "commits").glob("[0-9]*")) == ["0"]
    done = run(-1)
    assert done.returncode == 0, done.stderr
    assert sorted(each.name for each in (checkpoint / "commits").glob("[0-9]*")) == ["0", "1", "2"]
    found = sorted(row[12] for row in logs.plain_rows(target))
    assert found == sorted(row[12] for row in logs.plain_rows(source))
