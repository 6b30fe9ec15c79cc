"""A real standalone cluster on loopback: a master and two workers, processes of their own.

Any test of this folder may ask for the fixture `cluster`; it is started once and killed at the end,
whatever happened. `cluster.run(...)` runs a command against it as a person would, in a process of
its own, because a JVM has one master for life.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from inorder.core.errors import Misuse

WORKERS = 2
# Seconds a JVM may take to start on a busy machine, and a command to end.
START_S = 120.0
RUN_S = 600.0
# JVMs that live for seconds: the second compiler and parallel collectors cost more than they save.
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# Small: the fixture must fit beside the session of all other tests.
CONF = {
    "spark.driver.extraJavaOptions": SHORT_LIVED,
    "spark.executor.extraJavaOptions": SHORT_LIVED,
    "spark.executor.memory": "512m",
    "spark.driver.memory": "512m",
    "spark.sql.shuffle.partitions": "4",
}


class Cluster:
    """Where it is, and how to run something on it."""

    def __init__(self, master: str, home: Path) -> None:
        self.master = master
        self.home = home

    def conf(self) -> list[str]:
        """Settings as words of a command."""
        return [word for pair in CONF.items() for word in ("--conf", "=".join(pair))]

    def inorder(self, *words: object, env: dict[str, str] | None = None) -> Ended:
        """`inorder WORDS --master spark://...`"""
        script = [sys.executable, "-c", "from inorder.cli import main; main()"]
        return run([*script, *map(str, words), "--master", self.master, *self.conf()], env)

    def submit(self, *words: object, env: dict[str, str] | None = None) -> Ended:
        """`spark-submit --master spark://... WORDS`"""
        program = str(spark_home() / "bin" / "spark-submit")
        found = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", **(env or {})}
        return run([program, "--master", self.master, *self.conf(), *map(str, words)], found)

    def executors(self) -> set[str]:
        """The workers that were asked to run an executor so far, by the master's log."""
        said = (self.home / "master.log").read_text()
        return set(re.findall(r"Launching executor \S+ on worker (\S+)", said))


Ended = subprocess.CompletedProcess[str]


def run(command: list[str], env: dict[str, str] | None = None) -> Ended:
    """A command with no setting of the caller's Spark; nothing of it is left when this returns."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYSPARK_")}
    process = subprocess.Popen(
        command, env={**clean, **(env or {})}, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        out, err = process.communicate(timeout=RUN_S)
    finally:
        kill(process)
    return Ended(command, process.returncode, out, err)


def kill(process: subprocess.Popen[Any]) -> None:
    """A process and all it has started, at once; it must have been given a session of its own.

    Not its process group: PySpark's workers have groups of their own.
    """
    while inside := members(process.pid):
        for pid in inside:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.poll()
        time.sleep(0.01)
    process.wait()


def members(session: int) -> list[int]:
    """The living processes of a session."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, _, _, its = (place / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(its) == session and state != "Z":
                found.append(int(place.name))
    return found


def spark_home() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent


def need_java() -> None:
    """Skip without Java; a build that must prove everything fails instead."""
    from inorder.pipeline.session import check_java

    try:
        check_java()
    except Misuse as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


@contextmanager
def standalone(home: Path, workers: int = WORKERS) -> Iterator[Cluster]:
    """A cluster in a folder, until the block is left."""
    started: list[subprocess.Popen[str]] = []
    try:
        master = start(home, started, "master", "master.Master", "--host", "127.0.0.1", "--port", 0)
        [url] = wait_for(home / "master.log", r"Starting Spark master at (spark://\S+)", 1, master)
        for number in range(1, workers + 1):
            words = ("--host", "127.0.0.1", "--cores", 1, "--memory", "1g")
            folder = home / f"worker{number}"
            start(home, started, folder.name, "worker.Worker", *words, "--work-dir", folder, url)
        wait_for(home / "master.log", r"Registering worker (\S+)", workers, master)
        yield Cluster(url, home)
    finally:
        for process in started:
            kill(process)


def start(
    home: Path, started: list[subprocess.Popen[str]], name: str, kind: str, *words: object
) -> subprocess.Popen[str]:
    """One daemon, its words in NAME.log; the ports of its web pages are any free ones."""
    program = str(spark_home() / "bin" / "spark-class")
    command = [program, f"org.apache.spark.deploy.{kind}", *map(str, words), "--webui-port", "0"]
    env = {**os.environ, "SPARK_HOME": str(spark_home()), "SPARK_LOCAL_IP": "127.0.0.1"}
    env |= {"SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": SHORT_LIVED}
    with open(home / f"{name}.log", "w") as log:
        process = subprocess.Popen(
            command, env=env, cwd=home, stdout=log, stderr=log, text=True, start_new_session=True
        )
    started.append(process)
    return process


def wait_for(log: Path, pattern: str, count: int, process: subprocess.Popen[str]) -> list[str]:
    """The first `count` things a log says that match; what it said instead, if it does not."""
    until = time.monotonic() + START_S
    while time.monotonic() < until and process.poll() is None:
        found = re.findall(pattern, log.read_text())
        if len(found) >= count:
            return found[:count]
        time.sleep(0.1)
    raise AssertionError(f"{log.name} never said {pattern!r} {count} times:\n{log.read_text()}")


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    need_java()
    with standalone(tmp_path_factory.mktemp("cluster")) as running:
        yield running
