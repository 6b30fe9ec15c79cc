"""Content brokers that crash, on links that lose, double, reorder and fall silent."""

from __future__ import annotations

import os
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from inorder.check import judge
from inorder.content.repair import Repair
from inorder.content.topic import Topic
from inorder.guarantee.lines import Lines
from inorder.protocols.session.incoming import Incoming
from inorder.sim.explore import run
from inorder.sim.faults import Crash, Fault, Faults, Partition, Pause, schedule
from inorder.sim.memory import Memory
from inorder.sim.scenario import Scenario, from_table
from inorder.sim.simulate import build, simulate
from inorder.sim.workload import Workload, tell
from tests.guarantee.test_filtering import ORDERS
from tests.sim.test_content import draw

TIMES = int(os.environ.get("CONTENT_TREES", "1"))
WEATHER = ("weather", "partition", "pause")


def faulty(
    seed: int,
    order: dict[str, Any],
    kinds: tuple[str, ...] = WEATHER,
    crashes: int = 3,
    **more: Any,
) -> Scenario:
    """A market of `draw`, links without order, and brokers that crash."""
    scenario = draw(seed, order)
    rng = Random(f"{seed}/crashes")
    listed: list[Fault] = []
    for _ in range(rng.randint(0, crashes)):
        at = rng.uniform(0.0, 3.0)
        back_s = rng.uniform(0.0, 3.0 - at)
        name = rng.choice(scenario.network.brokers.names)
        listed.append(Crash(at, name, effects=rng.randrange(8), restart_after=back_s))
    return replace(
        scenario,
        settle=300.0,
        network=replace(scenario.network, fifo=False),
        faults=Faults(draw=kinds, list=tuple(listed)),
        **more,
    )


def broken(scenario: Scenario, seed: int, *also: str, account: dict[str, float]) -> dict[str, Any]:
    promises = {*scenario.guarantee.promises(scenario.options), "filter", *also}
    memory, verdicts = run(scenario, seed, sorted(promises), account=account)
    found = {name: (each.why, each.witness) for name, each in verdicts.items()}
    if not found and not memory.ending.quiet:
        found["quiet"] = memory.ending.under_way
    return found


@pytest.mark.parametrize("name", ORDERS)
def test_every_guarantee_keeps_its_promises_over_brokers_that_crash(name):
    """Everything crashes, clients and topic managers too, and clocks jump."""
    kinds = (*WEATHER, "crash", "clock")
    account: dict[str, float] = {}
    for seed in range(20 * TIMES):
        scenario = faulty(seed, ORDERS[name], kinds, crashes=1)
        assert broken(scenario, seed, account=account) == {}, f"seed {seed}"
    assert account["frames_early"] > 0.05 * account["frames"]
    assert account["frames_again"] > 0.01 * account["frames"]


@pytest.mark.parametrize("name", ["none", "fifo"])
def test_nothing_is_lost_doubled_or_out_of_order_while_brokers_crash(name):
    """What no promise says, because clients that crash would break it."""
    account: dict[str, float] = {}
    for seed in range(100, 100 + 25 * TIMES):
        scenario = faulty(seed, ORDERS[name])
        found = broken(scenario, seed, "unique", "reliable", "fifo", account=account)
        assert found == {}, f"seed {seed}"
    assert account["events_again"] > 50, "no event has come twice"
    assert account["events_dropped"] == 0


# A line of three brokers: the publisher hangs on the first, a subscriber on the last.
LINE = {
    "topics": 1, "duration": 3.0, "settle": 300.0, "messages": False,
    "network": {
        "overlay": "brokers",
        "brokers": {
            "count": 3, "shape": "line", "match": "content",
            "link": {"law": "constant", "mean": 0.02},
        },
    },
    "publishers": {
        "count": 3, "rate": 20.0, "arrivals": "poisson",
        "attributes": {"price": {"uniform": [0, 100]}},
    },
    "subscribers": [
        {"name": "cheap", "count": 3, "where": "price < :limit", "parameters": {"limit": 50}},
        {"name": "all", "count": 3},
    ],
}  # fmt: skip


def on_a_line(*faults: Fault, **more: Any) -> Scenario:
    scenario = from_table({**LINE, **more})
    return replace(scenario, faults=Faults(list=faults, until=3.0))


def lost(scenario: Scenario, seed: int = 1) -> int:
    memory = Memory()
    simulate(scenario, seed, memory)
    assert memory.ending.quiet, memory.ending.under_way
    verdicts = judge(memory.history(), ["reliable", "unique", "fifo", "filter"])
    for name in ("unique", "fifo", "filter"):
        assert verdicts[name].kept, name
    assert verdicts["reliable"].counts["owed"] > 500
    return verdicts["reliable"].violations


CRASHES = {
    "in the middle": [Crash(1.0, "broker2", 3, 0.5)],
    "at the edge": [Crash(1.0, "broker1", 0, 0.5)],
    "two neighbours": [Crash(1.0, "broker1", 1, 0.6), Crash(1.2, "broker2", 2, 0.9)],
    "all": [Crash(1.0, f"broker{n}", n, 0.5) for n in (1, 2, 3)],
    "clients stand still": [
        *(Crash(1.0, f"broker{n}", n, 0.5) for n in (1, 2, 3)), Pause(0.9, 2.0, "all1"),
    ],
    "again and again": [Crash(0.5 + n / 4, "broker2", n, 0.05) for n in range(8)],
    "at once": [Crash(1.0, "broker2", 0, 0.0)],
    "behind a partition": [
        Partition(0.5, 1.5, ("broker3",)), Crash(1.0, "broker2", 0, 0.2),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", CRASHES)
def test_events_under_way_and_published_meanwhile_arrive(name):
    assert [lost(on_a_line(*CRASHES[name]), seed) for seed in range(3)] == [0, 0, 0]


def test_events_of_a_publisher_that_is_the_last_to_come_back_arrive():
    """What it had published when its broker crashed comes when all else has been said."""
    faults = [
        Partition(0.8, 1.1, ("broker1",)), Crash(1.0, "broker1", 0, 0.1), Pause(0.99, 1.7, "p1"),
    ]  # fmt: skip
    alone = {
        "publishers": {**LINE["publishers"], "count": 1, "rate": 150.0},
        "subscribers": [{"name": "cheap", "count": 2}],
    }
    scenario = on_a_line(*faults, **alone)
    world = build(scenario, 1, Memory())
    assert [world.network.ways.home(name) for name in ("p1", "cheap1", "cheap2")] == [
        "broker1", "broker2", "broker3"
    ]  # fmt: skip
    assert [lost(scenario, seed) for seed in range(3)] == [0, 0, 0]


def test_a_broker_that_is_down_loses_what_other_machines_say_through_it():
    """A topic manager's answers and requests pass the broker's process, too."""
    down = Crash(1.0, "broker2", 0, 0.5)
    scenario = replace(on_a_line(down, order={"guarantee": "total"}), messages=True)
    memory = Memory()
    simulate(scenario, 1, memory)
    between = [row for row in memory.rows["messages"]
               if not {row.source[:6], row.target[:6]} & {"broker"}]  # fmt: skip
    lost_at = [row.sent_at for row in between if row.received_at is None]
    assert len(lost_at) > 5
    assert all(0.9 < at < 1.6 for at in lost_at)
    assert judge(memory.history(), ["accepted", "total", "reliable"])["accepted"].kept


def test_after_a_crash_every_table_is_what_it_was():
    """All that stood for somebody who had not answered is gone."""
    tables = []
    for faults in ([], CRASHES["in the middle"], CRASHES["all"]):
        scenario = on_a_line(*faults)
        story = tell(scenario, 1)
        world = build(scenario, 1, Memory(), story=story)
        world.application = Workload(world, scenario, 1, story)
        schedule(world, story.faults, 3.0)
        while not world.at_rest:
            world.agenda.run(world.agenda.now + 1.0)
        tables.append(
            {
                name: (
                    sorted(topic.s.advertisers), sorted(topic.s.asked),
                    {n: sorted(map(str, topic.table(n).values())) for n in topic.s.asked},
                    {n: len(each) for n, each in topic.s.entries.items()},
                    machine.broker.neighbours, len(machine.broker._overlay),
                    machine.broker.repair.s,
                )
                for name in ("broker1", "broker2", "broker3")
                for machine in [world.nodes[name].machine]
                for topic in [machine.broker.topics["t1"]]
            }
        )  # fmt: skip
    assert tables[0] == tables[1] == tables[2]


def test_a_client_that_never_comes_back_is_given_up():
    faults = [
        Crash(1.0, "cheap1", 0, 500.0), Crash(1.2, "broker1", 0, 0.1),
        Crash(1.2, "broker2", 0, 0.1), Crash(1.2, "broker3", 0, 0.1),
    ]  # fmt: skip
    scenario = replace(on_a_line(*faults), faults=Faults(list=tuple(faults), until=400.0))
    memory = Memory()
    outcome = simulate(scenario, 1, memory)
    assert outcome.marks["client_given_up"] == 1
    assert judge(memory.history(), ["reliable"])["reliable"].kept
    assert memory.ending.quiet


# Negative controls: each rule removed alone loses events, or says too much too early.


def acknowledged_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Incoming, "acknowledged", Incoming.received)


def nobody_counts_as_wanting(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Repair, "look_at", lambda self, topic: None)
    patch.setattr(Repair, "look_again", lambda self, topic: None)
    patch.setattr(Repair, "opens", lambda self, topic, neighbour: None)


def neighbours_forget_at_once(patch: pytest.MonkeyPatch) -> None:
    put = Topic.put
    patch.setattr(
        Topic, "put",
        lambda self, link, number, *rest: None if number == 0 else put(self, link, number, *rest),
    )  # fmt: skip


def clients_are_not_expected(patch: pytest.MonkeyPatch) -> None:
    recover = Repair.recover
    patch.setattr(Repair, "recover", lambda self, near, clients: recover(self, near, ()))


def nothing_is_sent_again(patch: pytest.MonkeyPatch) -> None:
    begin = Lines._begin

    def forgetful(self: Lines, peer: str, line: Any, life: int) -> None:
        begin(self, peer, line, life)
        self.purge(peer, lambda pub: True)

    patch.setattr(Lines, "_begin", forgetful)


REMOVED = [
    (acknowledged_at_once, "behind a partition"),
    (nobody_counts_as_wanting, "all"),
    (neighbours_forget_at_once, "in the middle"),
    (clients_are_not_expected, "clients stand still"),
    (nothing_is_sent_again, "in the middle"),
]


@pytest.mark.parametrize(("rule", "name"), REMOVED, ids=lambda one: getattr(one, "__name__", one))
def test_each_rule_is_needed(rule, name, monkeypatch):
    rule(monkeypatch)
    assert sum(lost(on_a_line(*CRASHES[name]), seed) for seed in range(3)) > 0
