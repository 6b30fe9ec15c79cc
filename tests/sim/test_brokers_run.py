"""Whole runs over brokers: who is reached, what faults do, which scenarios are refused."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest

from inorder.check import judge
from inorder.core.errors import BadScenario
from inorder.sim.brokers import Brokers
from inorder.sim.scenario import parse
from inorder.sim.simulate import build
from tests.sim.helpers import Memory, run

SCENARIO = """
duration = 5
topics = 5
[network]
overlay = "brokers"
[network.brokers]
count = 12
shape = "random"
[publishers]
count = 4
rate = 4
[[subscribers]]
count = 32
topics = "uniform"
per = 2
"""

LINE = """
duration = 5
[network]
overlay = "brokers"
[network.brokers]
count = 4
shape = "line"
[publishers]
count = 1
rate = 20
[[subscribers]]
count = 7
"""


def fault(**fields: Any) -> str:
    lines = [f"{key} = {value!r}" for key, value in fields.items()]
    return "\n".join(["[[faults.list]]", "at = 0", "until = 5", *lines]) + "\n"


def ways_of(text: str, seed: int = 1) -> Brokers:
    ways = build(parse(text), seed, Memory()).network.ways
    assert isinstance(ways, Brokers)
    return ways


def test_every_member_gets_exactly_one_copy() -> None:
    trace, outcome = run(SCENARIO)
    held = {row.subscriber: set(row.topics) for row in trace.rows["subscriptions"]}
    got = Counter((row.subscriber, row.event) for row in trace.rows["deliveries"])
    assert set(got.values()) == {1}
    due = {
        (subscriber, event.event)
        for subscriber, topics in held.items()
        for event in trace.rows["events"]
        if event.topic in topics
    }
    assert got.keys() == due
    assert outcome.published == len(trace.rows["events"]) > 50


def test_roles_are_spread_evenly_and_by_the_seed() -> None:
    text = SCENARIO.replace("count = 12", "count = 46").replace("count = 32", "count = 456")
    homes = [ways_of(text, seed)._homes for seed in (1, 1, 2)]
    assert set(Counter(homes[0].values()).values()) == {10}
    assert homes[0] == homes[1] != homes[2]


def test_a_group_called_broker_is_no_broker() -> None:
    quiet = "workers = 1000\nprocessing = { law = 'constant', mean = 0.05 }\nshape"
    text = SCENARIO.replace("[[subscribers]]", "[[subscribers]]\nname = 'broker'")
    text = text.replace("shape", quiet)
    ways = ways_of(text)
    assert ways.home("broker1").startswith("broker")
    deliveries = run(text)[0].rows["deliveries"]
    assert len(deliveries) > 500
    for row in deliveries:
        hops = ways.hops(row.publisher, row.subscriber)
        assert row.delivered_at - row.published_at == pytest.approx(0.05 * hops + 0.01 * (hops - 1))


@pytest.mark.parametrize("cut_off", ["a broker", "those who hang on it"])
def test_a_partition_loses_the_members_behind_it_and_no_others(cut_off: str) -> None:
    ways = ways_of(LINE)
    roles = [f"s{number}" for number in range(1, 8)]
    apart = next(name for name in ("broker2", "broker3") if name != ways.home("p1"))
    nodes = [apart] if cut_off == "a broker" else [r for r in roles if ways.home(r) == apart]
    trace, _ = run(LINE + fault(kind="partition", nodes=nodes))
    behind = {role for role in roles if apart in ways.way("p1", role)}
    assert 2 <= len(behind) < 7
    # Those on a broker that is cut off still hear nothing, as the publisher is elsewhere.
    reached = {row.subscriber for row in trace.rows["deliveries"]}
    assert reached == {*roles} - behind
    lost = Counter(row.target for row in trace.rows["messages"] if row.received_at is None)
    assert lost == dict.fromkeys(behind, len(trace.rows["events"]))


def test_a_lost_copy_is_told_of_for_everybody_behind_it() -> None:
    trace, _ = run(SCENARIO + fault(kind="weather", loss=0.1))
    lost = [row for row in trace.rows["messages"] if row.received_at is None]
    due = len(trace.rows["deliveries"]) + len(lost)
    assert due == len(run(SCENARIO)[0].rows["deliveries"])
    assert len(lost) / due > 0.13, "more links than one"


def test_a_doubled_copy_doubles_what_is_behind_it() -> None:
    doubled, _ = run(SCENARIO + fault(kind="weather", duplicate=0.2))
    assert len(doubled.rows["deliveries"]) > 1.3 * len(run(SCENARIO)[0].rows["deliveries"])


def test_brokers_break_total_order_and_the_guarantee_of_it_mends_it() -> None:
    judged = []
    for order in ("none", "total"):
        text = SCENARIO.replace("[network]", f"[order]\nguarantee = '{order}'\n[network]", 1)
        trace, _ = run(text)
        judged.append(judge(trace.history(), ["total", "unique", "reliable"]))
    assert judged[0]["total"].violations > 0
    assert [verdict.violations for verdict in judged[1].values()] == [0, 0, 0]


@pytest.mark.parametrize(
    ("lines", "key", "words"),
    [
        ("count = 0", "count", "0 is not between 1 and 2000"),
        ("count = 2001", "count", "2001 is not between"),
        ("count = 2.5", "count", "expected `int`"),
        ("shape = 'ring'", "shape", "'ring' is not one of line, star, tree, random, long"),
        ("shape = 'long'\ncount = 8\ndiameter = 8", "diameter", "8 is more than 8 brokers"),
        ("shape = 'long'\ncount = 8\ndiameter = 1", "diameter", "1 is less than 8 brokers"),
        ("shape = 'line'\ndiameter = 7", "diameter", "has no meaning without shape"),
        ("workers = 0", "workers", "0 is not between 1"),
        ("slow = 9", "slow", "9 is not between 0 and 8"),
        ("slow = -1", "slow", "-1 is not between"),
        ("slow_factor = 0", "slow_factor", "0 is not between"),
        ("slow_factor = nan", "slow_factor", "nan is not between"),
        ("link = {law='constant', mean=-1}", "link", "must not be negative"),
        ("link = {law='constant', mean=inf}", "link", "never end"),
        ("processing = {law='normal', mean=0, std=1}", "processing", "mean must be above 0"),
        ("processing = 3", "processing", "expected"),
        ("congestion = {period=0, height=0.1}", "congestion.period", "0 is not between"),
        ("congestion = {period=1, height=-1}", "congestion.height", "-1 is not between"),
        ("congestion = {period=3, height=1}", "congestion.height", "1 is not below 0.95"),
        ("congestion = {period=3}", "congestion", "missing required field `height`"),
        ("speed = 1", "speed", "is not known here; allowed: count, shape"),
    ],
)
def test_rubbish_is_refused_with_its_key(lines: str, key: str, words: str) -> None:
    with pytest.raises(BadScenario) as refused:
        parse(f"[network]\noverlay = 'brokers'\n[network.brokers]\n{lines}")
    assert refused.value.key == f"network.brokers.{key}"
    assert words in refused.value.problem


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("[network]\noverlay = 'brokers'\nmodel = 'wan'", "network.model"),
        ("[network]\noverlay = 'brokers'\nnodes = 3", "network.nodes"),
        ("[network.brokers]\ncount = 3", "network.brokers"),
        (LINE + fault(kind="partition", nodes=["broker5"]), "faults.list[1]"),
        (LINE + "[[faults.list]]\nkind='crash'\nat=0\nnode='broker1'", "faults.list[1]"),
    ],
)
def test_what_does_not_go_together_is_refused(text: str, key: str) -> None:
    with pytest.raises(BadScenario) as refused:
        parse(text)
    assert refused.value.key == key


PROGRAM = """
import hashlib
from tests.sim import test_brokers_run as t
for seed in range(1, 6):
    text = t.SCENARIO.replace("shape", "workers = 3\\nslow = 2\\nshape") if seed % 2 else t.SCENARIO
    rows = t.run(text + t.fault(kind="weather", loss=0.05, duplicate=0.05), seed)[0].rows
    print(seed, hashlib.sha256(repr(rows).encode()).hexdigest())
"""


def test_the_same_seed_gives_the_same_run_under_any_hash_seed() -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.getcwd()},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in ("1", "2")
    ]
    outputs = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert outputs[0] == outputs[1]
    assert len({line.split()[1] for line in outputs[0].splitlines()}) == 5
