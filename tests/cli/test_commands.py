"""The command line without Spark: what it prints, what it writes, how it ends."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from inorder.bus.blocking import connect_sync
from inorder.check.trace import read_summary, read_table
from inorder.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def inorder(monkeypatch, capsys):
    """Runs a command in this process; gives exit code, standard output and standard error."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["inorder", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return ended.value.code, out, err

    return run


def test_help_lists_the_commands_and_each_has_an_example(inorder):
    code, out, _ = inorder("--help")
    assert code == 0
    commands = ("run", "publish", "subscribe", "simulate", "audit", "explore", "fit", "sweep")
    for command in (*commands, "status", "check", "repair", "copy"):
        assert command in out
        code, text, _ = inorder(command, "--help")
        assert code == 0
        assert "Example: inorder" in " ".join(text.split())


def test_simulate_writes_a_complete_trace(inorder, tmp_path):
    out = tmp_path / "trace"
    code, text, _ = inorder("simulate", EXAMPLES / "partition.toml", "--seed", 3, "--out", out)
    assert code == 0
    assert "fault    4.000  partition: until=8.0 nodes=('shop1',)" in text
    assert read_summary(out)["complete"]
    assert sum(1 for _ in read_table(out, "deliveries")) > 1000


def test_simulate_prints_json_and_nothing_else(inorder, tmp_path):
    out = tmp_path / "trace"
    words = ("simulate", EXAMPLES / "partition.toml", "--out", out, "--format", "jsonl", "--json")
    code, text, err = inorder(*words)
    assert (code, err) == (0, "")
    said = json.loads(text)
    assert said["seed"] == 1
    assert said["outcome"]["delivered"] == sum(1 for _ in read_table(out, "deliveries"))
    assert (out / "deliveries.jsonl").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["simulate", "nowhere.toml"], "inorder: nowhere.toml: cannot be read: No such file"),
        (["simulate", "bad.toml"], "inorder: network.model: 'warp' is not one of ideal, delay"),
        (
            ["simulate", "good.toml", "--format", "xml"],
            "inorder: unknown format 'xml'; known:",
        ),
        (["explore", "good.toml", "--promises", "luck"], "inorder: unknown promise 'luck'; known:"),
        (["run", "bad.toml"], "inorder: file: has neither [source] nor [simulate]"),
        (["run", "job.toml"], "inorder: simulate.network.model: 'warp' is not one of"),
    ],
)
def test_misuse_is_one_sentence_and_exit_code_2(inorder, tmp_path, monkeypatch, words, sentence):
    monkeypatch.chdir(tmp_path)
    Path("bad.toml").write_text("[network]\nmodel = 'warp'\n")
    Path("good.toml").write_text("")
    Path("job.toml").write_text("[simulate.network]\nmodel = 'warp'\n")
    code, out, err = inorder(*words)
    assert code == 2
    assert out == ""
    assert err.startswith(sentence)
    assert err.count("\n") == 1
    assert not Path("out").exists(), "nothing is written half-way"


def test_explore_finds_a_disagreement_and_tells_its_story(inorder, tmp_path):
    path = tmp_path / "wan.toml"
    path.write_text("duration=3\n[network]\nmodel='wan'\n[publishers]\ncount=3\nrate=5\n"
                    "[[subscribers]]\ncount=3\n")  # fmt: skip
    code, out, _ = inorder("explore", path, "--promises", "total", "--schedules", 100)
    assert code == 1
    assert "broke Total" in out
    assert "1 broken (total)" in out


def test_explore_takes_another_order_from_the_command_line(inorder):
    words = ("explore", EXAMPLES / "explore.toml", "--order", "mode=tag", "--schedules", 3)
    code, out, _ = inorder(*words)
    assert code == 0
    assert out.startswith("3 schedules, 0 broken (total, causal, fifo, unique, reliable,")
    code, _, err = inorder("explore", EXAMPLES / "explore.toml", "--order", "mode=luck")
    assert (code, err) == (2, "inorder: order.mode: 'luck' is not one of tag, hold\n")


def test_explore_that_finds_nothing_ends_with_0(inorder, tmp_path):
    path = tmp_path / "calm.toml"
    path.write_text("duration = 1.0\n[publishers]\nrate = 5\n")
    code, out, _ = inorder("explore", path, "--promises", "total,unique", "--schedules", 5)
    assert code == 0
    assert out.startswith("5 schedules, 0 broken (total, unique)")


def test_the_installed_command_runs():
    command = Path(sys.executable).with_name("inorder")
    done = subprocess.run([command, "--help"], capture_output=True, text=True)
    assert done.returncode == 0
    assert "subscribers agree on the order" in done.stdout


def test_publish_and_subscribe_over_a_file(inorder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    url = "sqlite:///shop.db"
    assert inorder("publish", url, "orders", '{"amount": 120}', '{"amount": 20}')[:2] == (
        0, "2 accepted\n",
    )  # fmt: skip
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"amount": 7}\n\n{"amount": 300}\n'))
    _, out, _ = inorder("publish", url, "payments", "--json")
    outcomes = [json.loads(line)["outcome"] for line in out.splitlines()]
    assert outcomes == ["accepted", "accepted"]
    listen = ["subscribe", url, "orders", "payments", "--replay", "all", "--idle", "0.3"]
    _, out, _ = inorder(*listen, "--json")
    assert [json.loads(line)["nth"] for line in out.splitlines()] == [1, 2, 3, 4]
    _, out, _ = inorder(*listen, "--where", "amount > :floor", "--set", "floor=100")
    assert [line.split()[1] for line in out.splitlines()] == ["orders", "payments"]
    _, out, _ = inorder(*listen, "--limit", "1")
    assert len(out.splitlines()) == 1
    _, out, err = inorder("subscribe", "sqlite:///typo.db", "orders", "--idle", "0.1")
    assert (out, err) == ("", "inorder: there was no typo.db: it is new, and empty\n")


def test_publish_sends_what_a_pipe_has_and_tells_it_when_a_later_line_is_none(tmp_path):
    """Who feeds it slowly is not kept waiting for a thousand lines, nor for the end."""
    command = Path(sys.executable).with_name("inorder")
    url = f"sqlite:///{tmp_path}/slow.db"
    pipe = subprocess.Popen(
        [command, "publish", url, "t"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    assert pipe.stdin is not None
    with connect_sync(url) as bus, bus.subscribe("t") as events:
        for n in range(3):
            pipe.stdin.write(b'{"n": %d}\n' % n)
            pipe.stdin.flush()
            assert events.next(20).value == {"n": n}
        pipe.stdin.write(b'{"n": 3}\n\xff\xfe\n')
        out, err = pipe.communicate(timeout=20)
        assert events.next(20).value == {"n": 3}
    assert (pipe.returncode, out) == (2, b"4 accepted\n")
    assert err.startswith(b"inorder: value 5 is not a JSON object")
    assert err.count(b"\n") == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["subscribe", "sqlite:///a.db", "t", "--trace", "file"], "cannot be a folder"),
        (["subscribe", "sqlite:///a.db", "t", "--idle", "-1"], "idle is a number of seconds"),
        (["subscribe", "sqlite:///a.db", "t", "--idle", "nan"], "idle is a number of seconds"),
        (["simulate", "file"], "file: is not TOML"),
        (["simulate", "fine.toml", "--out", "file"], "cannot be a folder"),
        (["publish", "nats://x", "t", "{}"], "leads to no broker"),
        (["publish", "sqlite:///a.db", "t", "[1]"], "value 1 is not a JSON object"),
        (["publish", "sqlite:///no/a.db", "t", "{}"], "there is no folder"),
        (["publish", "sqlite:///a.db", "t", "{}", "--guarantee", "most"], "unknown guarantee"),
        (["subscribe", "sqlite:///a.db", "t", "--where", "a <"], "SYNTAX"),
        (["subscribe", "sqlite:///a.db", "t", "--replay", "9"], "offsets"),
        (["subscribe", "sqlite:///a.db", "t", "--order", "mode=late"], "order.mode"),
    ],
)
def test_misuse_of_the_bus_is_one_sentence(words, told, inorder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("= neither a table nor a folder\n")
    (tmp_path / "fine.toml").write_text("topics = 2\nduration = 1.0\n")
    code, _, err = inorder(*words)
    assert code == 2
    assert told in err
    assert err.count("\n") == 1


WORLD = """
topics = 2
duration = 3
settle = {settle}
[order]
guarantee = "{guarantee}"
[network]
model = "wan"
[publishers]
count = 3
rate = 5
[[subscribers]]
count = 3
"""


@pytest.mark.parametrize("guarantee", ["none", "fifo", "total"])
def test_simulate_judges_and_only_what_was_promised_decides(
    inorder, tmp_path, monkeypatch, guarantee
):
    """`none` disagrees about everything, and promised nothing of it."""
    monkeypatch.chdir(tmp_path)
    Path("world.toml").write_text(WORLD.format(guarantee=guarantee, settle=9))
    code, out, _ = inorder("simulate", "world.toml")
    assert code == 0
    words = " ".join(out.split())
    assert "accepted kept 0 45 publications: 45 accepted" in words
    assert "promised: " in words
    assert ("total not kept " in words) == (guarantee != "total")
    assert "broken" not in words


def test_simulate_says_1_when_a_promise_is_broken(inorder, tmp_path, monkeypatch):
    """The run goes on long after the answers are due, and nobody gets one."""
    from inorder.guarantee import none

    publish = none.Client.publish
    monkeypatch.setattr(none.Client, "publish", lambda *args: publish(*args)[:-1])
    monkeypatch.chdir(tmp_path)
    Path("world.toml").write_text(WORLD.format(guarantee="none", settle=9))
    code, out, _ = inorder("simulate", "world.toml")
    assert code == 1
    words = " ".join(out.split())
    assert "accepted broken 45 p" in words
    assert "was never told what became of p" in words
    code, out, _ = inorder("simulate", "world.toml", "--json")
    assert code == 1
    said = json.loads(out)
    assert (said["verdict"], said["promised"]) == ("broken", ["accepted"])
    assert said["promises"]["accepted"]["counts"]["never"] == 45
    code, out, _ = inorder("simulate", "world.toml", "--no-judge")
    assert code == 0
    assert "accepted" not in out


def test_simulate_says_what_was_still_to_happen_when_it_was_cut(inorder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("world.toml").write_text(WORLD.format(guarantee="none", settle=0))
    code, out, _ = inorder("simulate", "world.toml")
    assert code == 0
    assert "cut      at 3 s, still to happen: messages to s" in out


def test_a_guarantee_that_promises_nothing_must_be_told_what_to_explore(
    inorder, tmp_path, monkeypatch
):
    from inorder.sim import explore

    monkeypatch.setattr(explore, "promised", lambda scenario: ())
    monkeypatch.chdir(tmp_path)
    Path("good.toml").write_text("")
    code, _, err = inorder("explore", "good.toml")
    assert code == 2
    assert "this guarantee claims no promise: name what to judge" in err
