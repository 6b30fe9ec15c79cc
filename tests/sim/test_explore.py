"""Exploration: broken promises are found, shrunk and told; small worlds are searched completely."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inorder.guarantee import none
from inorder.sim import explore as explorer
from inorder.sim.exhaust import exhaust
from inorder.sim.faults import Clock, Partition
from inorder.sim.pool import Op, Pool, program
from inorder.sim.scenario import load, parse
from inorder.sim.shrink import fewest
from inorder.sim.workload import tell

EXPLORE = Path(__file__).parents[2] / "examples" / "explore.toml"
SILENCE = EXPLORE.with_name("explore-silence.toml")

SHAKY = """
duration = 4
settle = 10
topics = 2
messages = false
[network]
model = "biased"
fifo = false
[publishers]
count = 3
rate = 3
[[subscribers]]
count = 4
[faults]
draw = ["weather", "pause", "crash"]
"""


def test_a_disagreement_is_found_and_shrunk_to_two_events_and_two_subscribers():
    found = explorer.explore(parse(SHAKY), range(1, 50), ["total"])
    failure = found.failures[0]
    assert failure.broken == ("total",)
    story = failure.story
    assert story.startswith(f"seed {failure.seed}: broke Total")
    assert story.count(" publishes ") == 2
    assert story.count(" delivers ") == 4
    assert "fault" not in story, "no fault is needed to disagree"


def test_a_world_that_does_not_come_to_rest_is_a_failure():
    """A message is under way when the run is cut, and no judge of promises can say more."""
    text = SHAKY.replace("settle = 10", "settle = 0").replace('["weather", "pause", "crash"]', "[]")
    late = parse(text.replace("duration = 4", "duration = 0.5"), {"guarantee": "total"})
    failure = explorer.explore(late, range(1, 20), ["total"]).failures[0]
    assert failure.broken == ("quiet",)
    assert "the world never comes to rest\nstill to happen after 0.5 s: " in failure.story


def test_a_loss_is_shrunk_to_the_fault_that_causes_it():
    text = SHAKY.replace("fifo = false", "fifo = true").replace('"pause", "crash"', '"partition"')
    found = explorer.explore(parse(text), range(1, 200), ["reliable"])
    story = found.failures[0].story
    assert story.count("  fault ") == 1
    assert story.count(" publishes ") == 1


@pytest.mark.parametrize("file", [EXPLORE, SILENCE], ids=lambda file: file.stem)
@pytest.mark.parametrize(
    "order",
    [{"mode": "hold"}, {"mode": "tag"}, {"mode": "tag", "buffer": 0}, {"path": "forest"}],
    ids=str,
)
def test_explored_schedules_put_sessions_to_the_test(file, order):
    """Of the frames, 5 % at least come early and 1 % are sent again; and nothing breaks."""
    scenario = load(file, order)
    explored = explorer.explore(scenario, range(1, 16 if file == SILENCE else 51))
    assert explored.failures == ()
    account = explored.account
    assert account["frames_early"] >= 0.05 * account["frames"]
    assert account["frames_again"] >= 0.01 * account["frames"]


def test_silences_and_pairs_are_drawn_as_the_file_says():
    faults = [tell(load(SILENCE), seed).faults for seed in range(200)]
    cuts = [[each for each in some if isinstance(each, Partition)] for some in faults]
    long = [any(each.until - each.at >= 60.0 for each in some) for some in cuts]
    pairs = [any(len(each.nodes) == 2 and each.until - each.at > 60.0 for each in some)
             for some in cuts]  # fmt: skip
    jumps = [any(isinstance(each, Clock) for each in some) for some in faults]
    assert sum(long) >= 100, "half of the schedules have silences"
    assert sum(pairs) >= 20, "in a tenth two are cut off together"
    assert sum(jumps) >= 80
    hours = [tell(load(SILENCE.with_name("explore-hours.toml")), seed).faults for seed in range(50)]
    assert max(each.until - each.at for some in hours for each in some
               if isinstance(each, Partition)) > 3600.0  # fmt: skip


def test_the_same_seed_fails_again():
    first = explorer.explore(parse(SHAKY), range(1, 50), ["total"]).failures[0]
    again = explorer.explore(parse(SHAKY), [first.seed], ["total"]).failures[0]
    assert first == again


def test_a_promise_that_holds_is_not_reported():
    text = "[network]\nmodel='biased'\n[publishers]\nrate=3\n[[subscribers]]\ncount=3"
    found = explorer.explore(parse(text), range(1, 30), ["unique", "fifo", "reliable"])
    assert (found.schedules, found.failures) == (29, ())


def test_a_bug_in_a_machine_is_a_finding_with_its_seed(monkeypatch):
    def broken(self, source, message, now):
        raise AssertionError("a counter went back")

    monkeypatch.setattr(none.Client, "receive", broken)
    failure = explorer.explore(parse(SHAKY), range(1, 5), ["total"]).failures[0]
    assert failure.broken == (explorer.MACHINE,)
    assert "a counter went back" in failure.story


def test_the_explore_example_runs_and_draws_every_kind_of_fault():
    scenario = load(EXPLORE)
    kinds = set()
    for seed in range(1, 60):
        _memory, broken = explorer.run(scenario, seed, ["filter"])
        assert explorer.MACHINE not in broken, broken
        from inorder.sim.workload import tell

        kinds |= {type(fault).__name__ for fault in tell(scenario, seed).faults}
    assert kinds == {"Weather", "Partition", "Pause", "Crash", "Clock"}


@given(st.lists(st.integers(0, 50)), st.sets(st.integers(0, 50), max_size=4))
def test_fewest_keeps_exactly_what_is_needed(items, needed):
    if not needed <= set(items):
        return
    kept = fewest(items, lambda some: needed <= set(some))
    assert sorted(kept) == sorted(needed)


# The exhaustive search.


def listeners(*programs: Op):
    pool = Pool({name: none.Client(name) for name in ("a", "b", "p")})
    for name in ("a", "b"):
        pool.perform(name, Op("subscribe", ("t",)))
    while steps := pool.steps():
        pool.take(steps[0])
    pool.programs = {"p": programs}
    return pool


def disagreement(pool: Pool, final: bool) -> str | None:
    one, other = ([event for event, _ in pool.delivered.get(name, ())] for name in ("a", "b"))
    common = [event for event in one if event in other]
    if common != [event for event in other if event in one]:
        return f"a: {one}, b: {other}"
    return None


def test_every_interleaving_is_visited_once():
    """Two events to two subscribers, counted by hand: of the two arrivals of the first event none,
    one or both come before the second publication: 4! + 2 * 3! + 2 * 2! = 40 schedules."""
    found = exhaust(listeners(*program(("publish", "t"), ("publish", "t"))), lambda *_: None)
    assert found.complete
    assert found.final_states == 4
    assert found.schedules == 40, (
        "counted by hand: publish, then 4 arrivals with the second publish"
    )


def test_the_shortest_disagreement_is_told():
    found = exhaust(listeners(*program(("publish", "t"), ("publish", "t"))), disagreement)
    assert found.violation == "a: ['p:1', 'p:2'], b: ['p:2', 'p:1']"
    assert [line for line in found.story if "delivers" in line] == [
        "a delivers p:1",
        "a delivers p:2",
        "b delivers p:2",
        "b delivers p:1",
    ]


def test_a_search_that_is_cut_says_so():
    found = exhaust(listeners(*program(*[("publish", "t")] * 4)), lambda *_: None, states_max=50)
    assert (found.complete, found.violation) == (False, None)


def test_forked_pools_do_not_touch_each_other():
    pool = listeners(*program(("publish", "t")))
    key = pool.key()
    other = pool.fork()
    while steps := other.steps():
        other.take(steps[0])
    assert pool.key() == key
    assert other.delivered["a"] == (("p:1", True),)


@pytest.mark.parametrize("cut", [0, 1, 2, 3])
def test_a_pool_can_crash_a_node_between_any_two_effects(cut):
    pool = listeners(*program(("publish", "t")))
    lines = pool.take(pool.steps()[0], crash_after=cut)
    assert lines[-1] == "p crashes"
    pool.restart("p", none.Client("p"))
    pool.perform("p", Op("publish", ("t",)))
    ids = [entry[1] for entry in pool.done if entry[0] == "publish"]
    assert len(set(ids)) == len(ids) or cut == 0, "a number that was reserved is never used twice"
