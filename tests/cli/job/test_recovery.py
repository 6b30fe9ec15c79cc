"""The stream of a job survives: a driver killed between a write and its commit, an executor killed
in the middle of a batch. The table is the one of an undisturbed run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from random import Random
from threading import Thread

import pytest

import inorder
from inorder.check.trace import read_table
from inorder.cli.job.stages import wait_for
from tests.cli.job.recover import TOPICS, stream
from tests.cluster.cluster import Cluster, cluster

__all__ = ["cluster"]

PROGRAM = Path(__file__).with_name("recover.py")


def table(out: Path) -> list[tuple[str, int, str, bool]]:
    rows = read_table(out / "pipeline", "deliveries")
    return sorted((row.subscriber, row.nth, row.event, row.in_order) for row in rows)


@pytest.fixture(scope="module")
def shop(spark, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list]:
    """A file with some hundred events, and what an undisturbed run makes of it."""
    folder = tmp_path_factory.mktemp("shop")
    rng = Random(5)
    with inorder.connect_sync(f"sqlite:///{folder}/shop.db", name="shop") as bus:
        for _ in range(40):
            values = [{"amount": rng.randrange(120)} for _ in range(rng.randint(1, 25))]
            receipts = bus.publish_many(rng.choice(TOPICS), values)
            assert all(receipt.outcome == "stored" for receipt in receipts)
    out = folder / "undisturbed"
    wait_for(stream(folder, out, 10_000).start(spark), 0, lambda share: None)
    expected = table(out)
    assert len(expected) > 1000
    assert all(in_order for *_, in_order in expected)
    return folder, expected


def test_a_driver_killed_between_the_write_and_the_commit(shop):
    folder, expected = shop
    out = folder / "driver"
    command = [sys.executable, str(PROGRAM), str(folder), str(out)]
    environment = {**os.environ, "PYTHONPATH": str(PROGRAM.parents[3])}
    died = subprocess.run([*command, "1"], env=environment, capture_output=True, timeout=300)
    assert died.returncode == -signal.SIGKILL, died.stderr.decode()[-2000:]
    commits = {path.name for path in (out / "checkpoint" / "commits").iterdir()}
    assert "0" in commits
    assert "1" not in commits
    assert (out / "pipeline" / "deliveries" / "batch-000000001").is_dir()
    again = subprocess.run(command, env=environment, capture_output=True, timeout=300)
    assert again.returncode == 0, again.stderr.decode()[-2000:]
    assert table(out) == expected


def test_an_executor_killed_in_the_middle(cluster: Cluster, shop):
    """On a real cluster; one core there, so that the batches take their time."""
    folder, expected = shop
    out = folder / "executor"
    killed: list[int] = []
    hunter = Thread(target=kill_one, args=(cluster, out / "checkpoint" / "commits", killed))
    hunter.start()
    environment = {"PYTHONPATH": str(PROGRAM.parents[3]), "SPARK_SUBMIT_OPTS": ""}
    ended = cluster.submit(PROGRAM, folder, out, env=environment)
    hunter.join()
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert len(killed) == 1
    assert table(out) == expected


def kill_one(running: Cluster, commits: Path, killed: list[int]) -> None:
    """SIGKILL for an executor, once the first batch is through."""
    until = time.monotonic() + 300
    while time.monotonic() < until:
        if (commits / "0").exists() and (found := executors(running)):
            os.kill(found[0], signal.SIGKILL)
            killed.append(found[0])
            return
        time.sleep(0.05)


def executors(running: Cluster) -> list[int]:
    """Processes of the cluster's executors."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (place / "cmdline").read_bytes().decode(errors="replace")
            ours = os.readlink(place / "cwd").startswith(str(running.home))
            if ours and "CoarseGrainedExecutorBackend" in words and "java" in words.split("\0")[0]:
                found.append(int(place.name))
    return found
