"""Random schedules in the simulated world: whatever happens, the promises are kept.

INORDER_SCHEDULES multiplies the number of schedules (1 by default: about 3,000 in all).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from inorder.core.effect import Diffuse
from inorder.core.event import Event
from inorder.protocols.total.messages import Create, Walk
from inorder.sim.memory import Memory
from inorder.sim.scenario import from_table
from inorder.sim.simulate import simulate
from tests.protocols.total.schedules import MODES, draw, failures, reorder, run

# Changes of the order all the time, asked for by either measure, and given up before long.
HASTY = (
    {"swaps": "on", "report_every": 0.3, "change_timeout": 0.4},
    {"swaps": "on", "metric": "f", "alpha": 1.0, "beta": 0.05, "change_timeout": 0.4},
)

TIMES = int(os.environ.get("INORDER_SCHEDULES", "1"))


@pytest.mark.parametrize("part", range(3))
@pytest.mark.parametrize("mode", MODES)
def test_promises_are_kept_through_churn_and_faults(mode, part):
    count = 150 * TIMES
    assert failures(range(part * count, (part + 1) * count), MODES[mode]) == []


@pytest.mark.parametrize("mode", MODES)
def test_promises_are_kept_when_everybody_comes_and_goes(mode):
    assert failures(range(5000, 5000 + 150 * TIMES), MODES[mode], lively=True) == []


@pytest.mark.parametrize("mode", MODES)
def test_promises_are_kept_while_the_order_of_topics_changes(mode):
    order = {**MODES[mode], "swaps": "on"}
    assert failures(range(7000, 7000 + 120 * TIMES), order, act=reorder) == []


def test_promises_are_kept_when_order_and_subscriptions_change_together():
    order = {**MODES["hold"], "swaps": "on"}
    found = failures(range(8000, 8000 + 100 * TIMES), order, act=reorder, lively=True)
    assert found == []


@pytest.mark.parametrize("mode", ["tag", "buffer", "hold"])
def test_promises_are_kept_on_a_forest(mode):
    """The forest changes with the subscriptions, which the model of the errata left open."""
    order = {**MODES[mode], "path": "forest"}
    assert failures(range(9000, 9000 + 80 * TIMES), order) == []


def test_the_f_metric_swaps_and_comes_to_rest():
    order = {**MODES["hold"], "swaps": "on", "metric": "f", "alpha": 1.0, "beta": 0.05}
    assert failures(range(10_000, 10_000 + 60 * TIMES), order) == []


def test_a_fenced_publisher_keeps_order_across_its_topics():
    """P4', and without the fence it can fail: otherwise this would prove nothing."""
    across = {True: 0, False: 0}
    for fence in across:
        for seed in range(60):
            order = {**MODES["hold"], "fence": fence, "window": 64}
            memory, _, wrong = run(draw(seed, order, faulty=False, churn=False), seed)
            assert not wrong
            across[fence] += _inversions(memory)
    assert across[True] == 0
    assert across[False] > 0


def _inversions(memory):
    count = 0
    last: dict[tuple[str, str], int] = {}
    for row in memory.rows["deliveries"]:
        if row.publisher.startswith("p"):
            key = (row.subscriber, row.publisher)
            count += row.seq < last.get(key, 0)
            last[key] = max(row.seq, last.get(key, 0))
    return count


def test_publisher_side_diffusion_is_a_working_switch():
    order = {**MODES["tag"], "diffusion": "publisher"}
    assert failures(range(11_000, 11_060), order) == []


def test_a_tiny_hold_stops_reading_and_loses_nothing():
    """A full buffer does not drop: what was not read is asked for again."""
    order = {**MODES["hold"], "buffer": 1}
    marks: Counter[str] = Counter()
    for seed in range(12_000, 12_060):
        _, world, wrong = run(draw(seed, order, lively=True), seed)
        assert wrong == []
        marks.update(world.marks)
    assert marks["held_full"] > 20


def test_the_rare_paths_are_really_taken():
    marks: Counter[str] = Counter()
    for seed in range(200):
        mode = list(MODES)[seed % 4]
        scenario = draw(seed, {**MODES[mode], **HASTY[seed % 2]}, lively=seed % 3 == 0)
        marks.update(run(scenario, seed, act=reorder)[1].marks)
    for mark in ("resend", "repair", "early", "walk_passed_on", "old_session", "fenced", "ttl",
                 "buffer_full", "swap_asked", "swap_refused", "change_made", "change_not_worth",
                 "change_aborted", "thawed", "late"):  # fmt: skip
        assert marks[mark] > 0, f"{mark} never happened"


@pytest.mark.parametrize("mode", ["tag", "hold"])
def test_a_seed_gives_the_same_trace_twice(mode):
    for seed in range(20):
        scenario = draw(seed, MODES[mode])
        assert run(scenario, seed)[0].rows == run(scenario, seed)[0].rows


def test_tag_fed_in_the_order_of_hold_tags_nothing():
    """L5: the order a hold subscriber delivers in is one in which tag finds nothing late."""
    from inorder.protocols.total import Options
    from inorder.protocols.total.engine import Engine, EngineState

    for seed in range(30):
        memory, world, _ = run(draw(seed, MODES["hold"], faulty=False, churn=False), seed)
        stamps = {row.event: row.stamp for row in memory.rows["events"]}
        for name in {row.subscriber for row in memory.rows["deliveries"]}:
            held = world.nodes[name].machine.subscriber.s.engine  # type: ignore[attr-defined]
            state = EngineState(active=set(held.active), start=dict(held.start))
            state.clock = dict(held.start)
            engine = Engine(state, Options(mode="tag", buffer=0))
            for row in memory.rows["deliveries"]:
                if row.subscriber == name:
                    _feed(engine, row, stamps[row.event])
            assert engine.out
            assert all(effect.in_order for effect in engine.out)


def _feed(engine, row, stamp):
    import json

    from inorder.core.event import Event

    entries = json.loads(stamp)
    own = entries.pop(row.topic)
    event = Event(row.publisher, row.seq, row.topic)
    engine.arrive((row.topic, own), 0, tuple(sorted(entries.items())), event, 0.0)


def test_a_trace_does_not_depend_on_the_hash_seed():
    code = (
        "import hashlib\n"
        "from tests.protocols.total.schedules import MODES, draw, reorder, run\n"
        "digest = hashlib.sha256()\n"
        "for seed in range(12):\n"
        "    order = {**list(MODES.values())[seed % 4], 'swaps': 'on'}\n"
        "    memory = run(draw(seed, order, lively=True), seed, act=reorder)[0]\n"
        "    digest.update(repr(memory.rows).encode())\n"
        "print(digest.hexdigest())\n"
    )
    root = Path(__file__).parents[3]
    digests = set()
    for hash_seed in ("0", "1", "77"):
        env = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(root)}
        done = subprocess.run(
            [sys.executable, "-c", code], env=env, cwd=root, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        digests.add(done.stdout)
    assert len(digests) == 1


def test_tag_alone_waits_a_little_and_keeps_all_promises():
    assert failures(range(7000, 7000 + 60 * TIMES), {"mode": "tag"}, lively=True) == []


def test_tag_alone_tags_next_to_nothing_where_tag_without_a_buffer_tags_much():
    """Five busy topics over a wide-area network that loses nothing, and what the wait costs."""
    runs = {}
    for name, more in (("alone", {}), ("buffer 0", {"buffer": 0})):
        memory = Memory()
        market = from_table(
            {
                "duration": 20.0,
                "topics": 5,
                "order": {"guarantee": "total", "mode": "tag", **more},
                "network": {"model": "wan", "nodes": 100},
                "publishers": {"count": 5, "rate": 5.0, "topics": "own"},
                "subscribers": [{"count": 4}],
            }
        )
        simulate(market, 7, memory)
        rows = memory.rows["deliveries"]
        tagged = sum(not row.in_order for row in rows) / len(rows)
        latency = sum(row.delivered_at - row.published_at for row in rows) / len(rows)
        runs[name] = (tagged, latency)
    assert runs["alone"][0] == 0.0
    assert runs["buffer 0"][0] > 0.2
    assert runs["buffer 0"][1] < runs["alone"][1] < runs["buffer 0"][1] + 0.3


def test_a_thousand_topics_on_one_stage_are_no_deep_recursion():
    from inorder.protocols.total import Options, services

    topics = [f"t{number}" for number in range(1000)]
    options = Options(topics_per_stage=1000, links="trusted")
    stage = services(topics, options)["stage1"].make()
    for name, held in (("a", topics), ("b", topics[::2])):
        walk = Walk(name, 1 << 32, tuple(held), tuple(held))
        stage.receive(name, walk, 0.0)
    effects = stage.receive("p", Create(topics[-1], (Event("p", 1, topics[-1]),)), 0.0)
    (shown,) = [each.message for each in effects if isinstance(each, Diffuse)]
    assert len(shown.stamp) == 999
