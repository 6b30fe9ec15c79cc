"""Whole runs: what they promise about themselves, whatever the protocol does."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from inorder.check import judge
from inorder.sim.scenario import parse
from inorder.sim.simulate import simulate, simulate_to_folder
from inorder.sim.world import World
from tests.sim.helpers import run

EVERYTHING = (Path(__file__).parents[2] / "examples" / "explore.toml").read_text()


def test_without_faults_on_fifo_links_everything_owed_arrives_once():
    text = (
        "topics=3\n[network]\nmodel='wan'\n[publishers]\ncount=3\nrate=5\n[[subscribers]]\ncount=5"
    )
    memory, outcome = run(text)
    verdicts = judge(memory.history())
    assert {name for name, v in verdicts.items() if v.judged and not v.kept} == {
        "total",
        "realtime",
    }
    assert outcome.published == 150
    assert outcome.delivered == len(memory.rows["deliveries"])


def test_an_ideal_network_keeps_everybody_in_agreement():
    memory, _ = run("topics=2\n[publishers]\ncount=3\nrate=9\n[[subscribers]]\ncount=3")
    assert all(v.kept for v in judge(memory.history()).values() if v.judged)


def test_a_crash_costs_deliveries_and_the_restart_subscribes_again():
    text = """
    duration = 10
    [publishers]
    rate = 20
    [[subscribers]]
    count = 2
    [faults]
    list = [{kind="crash", at=2.0, node="s1", restart_after=3.0}]
    """
    memory, _ = run(text)
    ops = [
        (row.op, round(row.at)) for row in memory.rows["subscriptions"] if row.subscriber == "s1"
    ]
    assert ops == [("subscribe", 0), ("unsubscribe", 2), ("subscribe", 5)]
    verdicts = judge(memory.history())
    assert verdicts["reliable"].kept, "what was missed while down is not owed"
    counts = dict.fromkeys(("s1", "s2"), 0)
    for row in memory.rows["deliveries"]:
        counts[row.subscriber] += 1
    assert counts["s2"] == 200 > counts["s1"] > 100


def test_a_crashed_publisher_never_reuses_an_event_id():
    text = """
    [publishers]
    rate = 50
    [faults]
    list = [
        {kind="crash", at=2.0, node="p1", effects=0, restart_after=0.5},
        {kind="crash", at=4.0, node="p1", effects=1, restart_after=0.5},
        {kind="crash", at=6.0, node="p1", effects=2, restart_after=0.5},
    ]
    """
    memory, outcome = run(text)
    seqs = [row.seq for row in memory.rows["events"]]
    assert len(seqs) == len(set(seqs))
    assert outcome.missed > 0
    assert judge(memory.history())["unique"].kept


def test_replies_make_causes_that_the_judge_sees():
    text = """
    topics = 1
    [network]
    model = "wan"
    [publishers]
    rate = 10
    [[subscribers]]
    count = 8
    reply = 0.1
    """
    memory, _ = run(text)
    verdict = judge(memory.history())["causal"]
    assert verdict.judged
    assert verdict.violations > 0, "a wide-area network lets replies overtake their cause"


def test_churn_changes_subscriptions_and_the_ground_rules_hold():
    memory, _ = run("topics=4\n[publishers]\nrate=30\n[[subscribers]]\ncount=5\n[churn]\nrate=5")
    ops = {row.op for row in memory.rows["subscriptions"]}
    assert ops == {"subscribe", "unsubscribe"}
    verdict = judge(memory.history())["reliable"]
    assert verdict.kept
    assert verdict.also["integrity"].kept


def test_the_messages_table_tells_sizes_and_losses():
    memory, _ = run(
        "[publishers]\nrate=9\n[faults]\nlist=[{kind='weather', at=0, until=9, loss=0.5}]"
    )
    rows = memory.rows["messages"]
    assert rows
    assert all(row.bytes > 0 for row in rows)
    assert 0 < sum(row.received_at is None for row in rows) < len(rows)


def test_memory_holds_what_is_in_flight_and_not_what_has_happened(monkeypatch):
    kept = []
    finish = World.finish

    def spy(self, within):
        kept.append((len(self._publications), len(self.agenda)))
        return finish(self, within)

    monkeypatch.setattr(World, "finish", spy)

    class Nowhere:
        def write(self, table, row):
            pass

        def ended(self, ending):
            pass

    text = "duration=200\nmessages=false\n[network]\nmodel='wan'\n[publishers]\ncount=3\nrate=20"
    simulate(parse(text), 1, Nowhere())
    assert kept == [(0, 0)]


def digest(folder: Path) -> str:
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            total.update(path.relative_to(folder).as_posix().encode() + path.read_bytes())
    return total.hexdigest()


PROGRAM = """
import sys
from tests.sim.test_simulate import EVERYTHING, digest
from inorder.sim.scenario import parse
from inorder.sim.simulate import simulate_to_folder
from pathlib import Path
text = EVERYTHING.replace("messages = false", "messages = true")
for seed in range(1, 51):
    folder = Path(sys.argv[1]) / str(seed)
    simulate_to_folder(parse(text), seed, folder, format=sys.argv[2])
    print(seed, digest(folder))
"""


@pytest.mark.parametrize("format", ["parquet", "jsonl"])
def test_fifty_seeds_give_the_same_bytes_in_two_processes_with_other_hash_seeds(tmp_path, format):
    processes = []
    for hash_seed in ("1", "2"):
        command = [sys.executable, "-c", PROGRAM, str(tmp_path / hash_seed), format]
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.getcwd()}
        processes.append(
            subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        )
    outputs = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert outputs[0] == outputs[1]
    digests = [line.split()[1] for line in outputs[0].splitlines()]
    assert len(digests) == 50
    assert len(set(digests)) == 50, "other seeds are other runs"


def test_a_run_that_dies_leaves_a_trace_that_says_it_is_not_complete(tmp_path, monkeypatch):
    from inorder.check.trace import read_summary

    def dies(self, within):
        raise RuntimeError("power cut")

    monkeypatch.setattr(World, "finish", dies)
    with pytest.raises(RuntimeError):
        simulate_to_folder(parse(""), 1, tmp_path / "t", format="jsonl")
    assert read_summary(tmp_path / "t")["complete"] is False
