"""Pastry finds the right host, SCRIBE trees reach each member once, faults act on every hop."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from math import ceil, log
from random import Random
from typing import Any

import pytest

from inorder.core.errors import BadScenario
from inorder.sim.pastry import LEAVES_PER_SIDE, RING, Pastry, id_of, shared_digits
from inorder.sim.scenario import parse
from inorder.sim.scribe import Scribe
from inorder.sim.simulate import build, simulate


class Memory:
    """A trace in memory."""

    def __init__(self) -> None:
        self.rows: dict[str, list[Any]] = {}

    def write(self, table: str, row: Any) -> None:
        self.rows.setdefault(table, []).append(row)

    def ended(self, ending: Any) -> None:
        pass

    def __getitem__(self, table: str) -> list[Any]:
        return self.rows.get(table, [])


def overlay(count: int) -> Pastry:
    return Pastry(f"host{number}" for number in range(count))


def distance(one: int, other: int) -> int:
    return min((one - other) % RING, (other - one) % RING)


# Routes.


@pytest.mark.parametrize("count", [1, 2, 3, 16, 17, 18, 19, 40, 150, 700])
def test_a_route_ends_at_the_host_numerically_closest_to_the_key(count: int) -> None:
    pastry = overlay(count)
    rng = Random(f"routes/{count}")
    keys = [rng.getrandbits(128) for _ in range(150)]
    keys += [0, RING - 1, *(id_of(host) for host in pastry.hosts[:20])]
    for key in keys:
        path = pastry.route(rng.choice(pastry.hosts), key)
        closest = min(distance(id_of(host), key) for host in pastry.hosts)
        assert distance(id_of(path[-1]), key) == closest
        assert path[-1] == pastry.root(key)


@pytest.mark.parametrize("count", [100, 1000, 10_000])
def test_a_route_takes_a_logarithmic_number_of_hops(count: int) -> None:
    pastry = overlay(count)
    rng = Random(f"hops/{count}")
    hops = [
        len(pastry.route(rng.choice(pastry.hosts), rng.getrandbits(128))) - 1 for _ in range(1500)
    ]
    assert max(hops) <= ceil(log(count, 16)) + 2
    assert sum(hops) / len(hops) <= log(count, 16) + 0.5


def test_every_hop_gains_a_digit_or_comes_closer() -> None:
    pastry = overlay(3000)
    rng = Random("progress")
    for _ in range(1000):
        key = rng.getrandbits(128)
        path = [id_of(host) for host in pastry.route(rng.choice(pastry.hosts), key)]
        for here, there in pairwise(path[:-1]):
            gained = shared_digits(there, key) - shared_digits(here, key)
            assert gained > 0 or (gained == 0 and distance(there, key) < distance(here, key))


def test_a_route_gets_around_holes_of_the_routing_table() -> None:
    # Keys beside a crowded neighbourhood: hardly any host shares a digit with them.
    pastry = overlay(5000)
    crowd = [host for host in pastry.hosts if id_of(host) >> 124 in (3, 4)]
    sparse = Pastry([*crowd, "host0", "host1"])
    for number in range(500):
        key = id_of(f"key{number}")
        path = sparse.route(crowd[number % len(crowd)], key)
        assert path[-1] == sparse.root(key)
        assert len({*path}) == len(path), "no host twice"


def test_few_hosts_know_each_other() -> None:
    pastry = overlay(2 * LEAVES_PER_SIDE + 1)
    for source in pastry.hosts:
        for target in pastry.hosts:
            assert len(pastry.route(source, id_of(target))) <= 2


def test_a_route_prefers_near_hosts_where_there_is_a_choice() -> None:
    def near(one: str, other: str) -> bool:
        return (id_of(one) ^ id_of(other)) % 4 > 0

    hosts = overlay(2000).hosts
    shares = []
    for pastry in (Pastry(hosts), Pastry(hosts, near)):
        rng = Random("near")
        hops = 0
        fast = 0
        for _ in range(500):
            key = rng.getrandbits(128)
            path = pastry.route(rng.choice(hosts), key)
            assert path[-1] == pastry.root(key)
            hops += len(path) - 1
            fast += sum(near(one, other) for one, other in pairwise(path))
        shares.append(fast / hops)
    plain, chosen = shares
    assert 0.7 < plain < 0.8
    assert chosen > 0.85


# Trees.


def check_tree(scribe: Scribe, topic: str) -> None:
    """Walk down from the root: each host once, all members met, every leaf a member."""
    seen: Counter[str] = Counter()
    todo = [scribe.root(topic)]
    while todo:
        host = todo.pop()
        seen[host] += 1
        children = scribe.children(topic, host)
        assert children or host in scribe.members(topic) or host == scribe.root(topic)
        for child in children:
            assert scribe.parents(topic)[child] == host
        todo.extend(children)
    assert set(seen.values()) == {1}
    assert set(scribe.members(topic)) <= seen.keys()
    assert seen.keys() - {scribe.root(topic)} == scribe.parents(topic).keys()


@pytest.mark.parametrize("count", [1, 5, 60, 800])
def test_a_tree_spans_its_members_through_all_joins_and_leaves(count: int) -> None:
    pastry = overlay(count)
    scribe = Scribe(pastry)
    rng = Random(f"churn/{count}")
    members: dict[str, None] = {}
    for step in range(300):
        host = rng.choice(pastry.hosts)
        if host in members:
            scribe.leave(host, "t")
            del members[host]
        else:
            scribe.join(host, "t")
            members[host] = None
        if step % 20 == 0:
            check_tree(scribe, "t")
            assert set(scribe.members("t")) == members.keys()
    for host in members:
        scribe.leave(host, "t")
    assert scribe.parents("t") == {}


def test_a_forwarder_stays_until_nobody_needs_it() -> None:
    scribe = Scribe(overlay(1000))
    path = scribe.pastry.route("host1", id_of("news"))
    middle = path[1]
    scribe.join("host1", "news")
    assert scribe.children("news", middle) == ["host1"]
    assert middle not in scribe.members("news")
    scribe.join(middle, "news")
    scribe.leave("host1", "news")
    assert scribe.parents("news").keys() == set(path[1:-1]), "a member stays, with those above"
    scribe.leave(middle, "news")
    assert scribe.parents("news") == {}


def test_joining_twice_and_leaving_without_joining_change_nothing() -> None:
    scribe = Scribe(overlay(300))
    scribe.join("host1", "t")
    before = scribe.parents("t")
    scribe.join("host1", "t")
    scribe.leave("host2", "t")
    assert scribe.parents("t") == before


def test_members_below_a_host_are_those_it_would_lose() -> None:
    pastry = overlay(500)
    scribe = Scribe(pastry)
    for host in pastry.hosts[::3]:
        scribe.join(host, "t")
    below_children = [
        member
        for child in scribe.children("t", scribe.root("t"))
        for member in scribe.tree("t").below(child)
    ]
    assert sorted([*below_children, *({scribe.root("t")} & set(scribe.members("t")))]) == sorted(
        scribe.members("t")
    )


def test_ten_thousand_hosts_with_a_thousand_topics_fit() -> None:
    pastry = overlay(10_000)
    scribe = Scribe(pastry)
    rng = Random("large")
    for host in pastry.hosts:
        for number in rng.sample(range(1000), 10):
            scribe.join(host, f"t{number}")
    assert sum(len(scribe.members(f"t{number}")) for number in range(1000)) == 100_000
    check_tree(scribe, "t7")


# In the simulator.

SCENARIO = """
duration = 20
topics = 5
[network]
model = "wan"
overlay = "scribe"
nodes = 60
[publishers]
count = 4
rate = 2
[[subscribers]]
count = 25
topics = "uniform"
per = 3
"""


def run(text: str, seed: int = 1) -> Memory:
    trace = Memory()
    simulate(parse(text), seed, trace)
    return trace


def test_every_member_gets_exactly_one_copy() -> None:
    trace = run(SCENARIO)
    held = {row.subscriber: set(row.topics) for row in trace["subscriptions"]}
    got = Counter((row.subscriber, row.event) for row in trace["deliveries"])
    assert set(got.values()) == {1}
    due = {
        (subscriber, event.event)
        for subscriber, topics in held.items()
        for event in trace["events"]
        if event.topic in topics
    }
    assert got.keys() == due


def test_a_lost_hop_loses_the_subtree_and_the_trace_says_so() -> None:
    weather = '[[faults.list]]\nkind = "weather"\nat = 0\nuntil = 20\nloss = 0.1\n'
    trace = run(SCENARIO + weather)
    lost = [row for row in trace["messages"] if row.received_at is None]
    due = len(trace["deliveries"]) + len(lost)
    assert due == len(run(SCENARIO)["deliveries"]), "each due copy arrived or is told of"
    # More hops than one: a subscriber loses more than the 10 % a single link would.
    assert len(lost) / due > 0.13


def test_a_doubled_hop_doubles_what_is_behind_it() -> None:
    weather = '[[faults.list]]\nkind = "weather"\nat = 0\nuntil = 20\nduplicate = 0.2\n'
    plain, doubled = run(SCENARIO), run(SCENARIO + weather)
    assert len(doubled["deliveries"]) > 1.3 * len(plain["deliveries"])


def test_a_partition_cuts_off_a_host_whoever_forwards() -> None:
    cut = '[[faults.list]]\nkind = "partition"\nat = 0\nuntil = 20\nnodes = ["s1"]\n'
    trace = run(SCENARIO + cut)
    assert not [row for row in trace["deliveries"] if row.subscriber == "s1"]
    lost = {row.target for row in trace["messages"] if row.received_at is None}
    assert "s1" in lost
    assert len(lost) < 25, "hosts that do not hear through s1's host are not concerned"


def test_links_keep_their_order_hop_by_hop() -> None:
    one = SCENARIO.replace("topics = 5", "topics = 1").replace("per = 3", "per = 1")
    last: dict[tuple[str, str], int] = {}
    for row in run(one)["deliveries"]:
        assert last.get((row.subscriber, row.publisher), 0) < row.seq
        last[row.subscriber, row.publisher] = row.seq


def test_a_longer_way_takes_longer() -> None:
    def mean(text: str) -> float:
        rows = run(text)["deliveries"]
        return float(sum(row.delivered_at - row.published_at for row in rows) / len(rows))

    assert mean(SCENARIO) > 1.5 * mean(SCENARIO.replace('"scribe"', '"direct"'))


def test_without_a_number_of_hosts_the_clients_are_the_overlay() -> None:
    text = SCENARIO.replace("nodes = 60", "")
    world = build(parse(text), 1, Memory())
    assert world.network.ways is not None
    assert run(text)["deliveries"]


def test_an_unknown_overlay_is_refused_with_the_known_ones() -> None:
    with pytest.raises(BadScenario, match=r"network\.overlay: 'chord' is not one of"):
        parse('[network]\noverlay = "chord"')


def test_the_same_seed_gives_the_same_run_under_any_hash_seed() -> None:
    program = (
        "import hashlib, sys\n"
        "sys.path.insert(0, 'tests/sim')\n"
        "import test_overlay as t\n"
        "rows = t.run(t.SCENARIO).rows\n"
        "print(hashlib.sha256(repr(rows).encode()).hexdigest())\n"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1
