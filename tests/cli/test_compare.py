"""`inorder compare`: one scenario under several guarantees."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from inorder.cli import app
from inorder.core.errors import UnknownName
from inorder.sim.beside import under
from inorder.sim.scenario import load

CHAT = Path(__file__).parents[2] / "examples" / "chat.toml"


def test_the_chat_shows_what_each_guarantee_leaves_undone():
    result = CliRunner().invoke(app, ["compare", str(CHAT), "--json"])
    assert result.exit_code == 0, result.output
    runs = {run["guarantee"]: run for run in json.loads(result.output)}
    assert list(runs) == ["none", "fifo", "total", "causal"]
    broken = {name: run["broken"] for name, run in runs.items()}
    assert broken["none"]["causal"] > 100
    assert broken["none"]["fifo"] > 0
    assert broken["fifo"]["causal"] > 100
    assert broken["causal"]["causal"] == broken["causal"]["fifo"] == 0
    assert broken["causal"]["total"] > 0
    assert broken["total"] == {"causal": 0, "fifo": 0, "total": 0}
    # Causal order waits for causes, one order of everything waits for everybody.
    assert 0.0 == runs["none"]["held_mean_s"] < runs["causal"]["held_mean_s"]
    assert runs["causal"]["held_mean_s"] < runs["total"]["held_mean_s"]
    assert runs["none"]["message_bytes"] / runs["none"]["deliveries"] > 50


def test_the_table_names_guarantees_and_figures():
    result = CliRunner().invoke(app, ["compare", str(CHAT), "--guarantees", "causal"])
    assert result.exit_code == 0
    assert "answers before their questions" in result.output
    assert "causal" in result.output
    assert "none" not in result.output


def test_a_guarantee_that_is_none_is_refused():
    result = CliRunner().invoke(app, ["compare", str(CHAT), "--guarantees", "luck"])
    assert isinstance(result.exception, UnknownName)
    assert CliRunner().invoke(app, ["compare", str(CHAT), "--guarantees", ","]).exit_code == 1


def test_options_of_the_file_count_for_its_own_guarantee_only():
    scenario = load(CHAT, {"guarantee": "total", "mode": "tag", "buffer": 0})
    assert under(scenario, "total", 1).tagged > 0
    assert under(scenario, "none", 1).tagged == 0


@pytest.mark.parametrize("seed", [1, 2])
def test_a_seed_says_it_all(seed: int):
    scenario = load(CHAT)
    assert under(scenario, "causal", seed) == under(scenario, "causal", seed)
