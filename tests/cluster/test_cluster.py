"""The commands on a real cluster: two executors on loopback, the driver in a third process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inorder.check.trace import read_table
from inorder.cli.sweep.plan import Sweep
from inorder.cli.sweep.point import row_of
from inorder.core.errors import Misuse
from inorder.pipeline import session as session_
from inorder.pipeline.fit_pair import fit_pair
from inorder.sim.scenario import parse
from inorder.sim.simulate import simulate_to_folder
from tests.cluster import cluster as cluster_
from tests.cluster.cluster import Cluster

WORLD = """
duration = 4.0
topics = 2
[network]
model = "wan"
[publishers]
count = 2
rate = 5.0
[[subscribers]]
count = 2
"""

SWEEP = """
seeds = 2
judge = true
[simulate]
duration = 2.0
[grid]
"publishers.rate" = [1, 5]
"""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world") / "trace"
    simulate_to_folder(parse(WORLD), 3, folder)
    return folder


def test_audit_on_the_cluster(cluster: Cluster, trace: Path) -> None:
    from inorder.check import History, judge

    ended = cluster.inorder("audit", trace, "--promises", "total", "--json")
    assert ended.returncode == 1, ended.stderr
    found = json.loads(ended.stdout)["promises"]
    for name, verdict in judge(History.read(trace), ["total"]).items():
        assert found[name]["violations"] == verdict.violations
    assert found["total"]["violations"] > 0
    assert ended.stderr == ""
    assert len(cluster.executors()) == 2


def test_sweep_on_the_cluster(cluster: Cluster, tmp_path: Path) -> None:
    file, out = tmp_path / "sweep.toml", tmp_path / "out"
    file.write_text(SWEEP)
    ended = cluster.inorder("sweep", file, "--out", out, "--json")
    assert ended.returncode == 0, ended.stderr
    said = json.loads(ended.stdout)
    assert (said["points"], said["ran"], said["failures"]) == (4, 4, [])
    plan = Sweep.load(file, out)
    assert len(plan.finished()) == 4
    here = [row_of(point) for point in plan.points]
    for line, rows in zip(said["summary"], (here[:2], here[2:]), strict=True):
        assert line["delivered"]["mean"] == sum(row["delivered"] for row in rows) / 2
        assert line["violations"]["total"] == sum(row["violations"]["total"] for row in rows)


def test_fit_submitted_to_the_cluster(cluster: Cluster, trace: Path, tmp_path: Path) -> None:
    """Without --master: spark-submit says where."""
    program = tmp_path / "inorder_main.py"
    program.write_text("from inorder.cli import main\n\nmain()\n")
    ended = cluster.submit(program, "fit", trace, "--phases", "1", "--json")
    assert ended.returncode == 0, ended.stderr
    pairs = json.loads(ended.stdout)["pairs"]
    first = pairs[0]
    rows = [
        (row.published_at, row.received_at - row.published_at)
        for row in read_table(trace, "deliveries")
        if (row.publisher, row.subscriber) == (first["publisher"], first["subscriber"])
    ]
    here = fit_pair(*zip(*rows, strict=True), 0.01, 1)
    assert {name: first[name] for name in here if name != "trouble"} == {
        name: value for name, value in here.items() if name != "trouble"
    }
    registered = (cluster.home / "master.log").read_text().count("Registered app inorder")
    assert registered >= 1


def test_the_driver_of_a_cluster_on_loopback_is_on_loopback() -> None:
    settings = session_._settings("spark://127.0.0.1:7077", {})
    assert settings["spark.driver.host"] == "127.0.0.1"
    assert "spark.driver.host" not in session_._settings("spark://elsewhere:7077", {})
    kept = session_._settings("spark://localhost:7077", {"spark.driver.host": "10.0.0.1"})
    assert kept["spark.driver.host"] == "10.0.0.1"


def test_workers_elsewhere_may_have_another_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    import os
    import sys

    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/python")
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", "")
    session_._choose_interpreter("yarn", {})
    assert os.environ["PYSPARK_PYTHON"] == "/opt/python"
    session_._choose_interpreter("yarn", {"spark.pyspark.python": "./environment/bin/python"})
    assert os.environ["PYSPARK_PYTHON"] == "./environment/bin/python"
    session_._choose_interpreter("local[2]", {})
    assert os.environ["PYSPARK_PYTHON"] == sys.executable


def test_without_java_a_build_fails_and_a_person_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(Misuse, match="Spark needs Java"):
        cluster_.need_java()
    monkeypatch.delenv("CI")
    with pytest.raises(pytest.skip.Exception, match="Spark needs Java"):
        cluster_.need_java()


def test_a_daemon_that_dies_is_told_with_its_own_words(tmp_path: Path) -> None:
    started: list = []
    process = cluster_.start(tmp_path, started, "master", "master.Nobody")
    with pytest.raises(AssertionError, match=r"master\.Nobody"):
        cluster_.wait_for(tmp_path / "master.log", "Starting", 1, process)
    assert started == [process]
    assert process.poll() is not None
