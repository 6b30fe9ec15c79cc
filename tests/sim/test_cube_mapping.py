"""Numbers of peers by latency and by talk: what runs measure, and what a file may ask for."""

from __future__ import annotations

from collections import Counter

import pytest

from inorder.core.errors import BadScenario
from inorder.guarantee.peer import Peered, order_of
from inorder.protocols.cube.mapping import Group, path_latency
from inorder.protocols.cube.peers import Peers
from inorder.sim import cube, simulate
from inorder.sim.laws import Constant
from inorder.sim.memory import Memory
from inorder.sim.models import FAST, SLOW, Delay, Ideal, Wan, WanPerMessage
from inorder.sim.plane import Plane
from inorder.sim.scenario import PlaneTable, parse
from inorder.sim.talk import talk
from inorder.sim.workload import node_names

CROWD = """
duration = 6.0
settle = 5.0
messages = false
topics = {topics}
[network]
model = "{model}"
overlay = "cube"
[network.cube]
mapping = "{mapping}"
links = "trusted"
[publishers]
count = 0
[[subscribers]]
count = {count}
topics = "uniform"
per = {per}
rate = {rate}
"""


def crowd(mapping, model="plane", count=64, topics=1, per=1, rate=0.5):
    return parse(
        CROWD.format(mapping=mapping, model=model, count=count, topics=topics, per=per, rate=rate)
    )


def latencies(scenario, seed):
    """The latency matrix in the order of the names, and the peers' numbers."""
    names = sorted(node_names(scenario))
    model = simulate._plain_model(scenario, seed)
    matrix = [[cube._mean_s(model, one, other) for other in names] for one in names]
    peers = cube.peers_of(scenario, seed, node_names(scenario), {}, model)
    return matrix, tuple(names.index(name) for name in peers.names), names


def measured(scenario, seed):
    """The mean time from launch to reception, of what is published when all have joined; and who
    has said how much on what."""
    memory = Memory()
    simulate.simulate(scenario, seed, memory)
    late = {row.event for row in memory.rows["events"] if row.published_at > 3.0}
    assert max(row.at for row in memory.rows["subscriptions"]) < 3.0
    took = [
        row.received_at - row.published_at
        for row in memory.rows["deliveries"]
        if row.event in late and row.subscriber != row.publisher
    ]
    said = Counter((row.topic, row.publisher) for row in memory.rows["events"] if row.event in late)
    held = [(topic, row.subscriber) for row in memory.rows["subscriptions"] for topic in row.topics]
    return sum(took) / len(took), said, held


@pytest.mark.parametrize("mapping", ["names", "latency", "talk"])
def test_what_a_run_measures_is_what_the_formula_says(mapping):
    scenario = crowd(mapping, topics=3, per=2, count=24)
    mean, said, held = measured(scenario, 3)
    matrix, order, names = latencies(scenario, 3)
    groups = [
        Group(
            tuple(sorted(names.index(name) for at, name in held if at == topic)),
            tuple((names.index(name), float(n)) for (at, name), n in said.items() if at == topic),
        )
        for topic in scenario.topic_names
    ]
    assert mean == pytest.approx(path_latency(matrix, order, groups))


def test_paths_are_measured_to_be_shorter_with_numbers_by_latency():
    """64 peers of one topic on a plane: a run with 0.60 of the latency of numbers by name."""
    by_name, _, _ = measured(crowd("names"), 1)
    by_latency, _, _ = measured(crowd("latency"), 1)
    assert 0.5 < by_latency / by_name < 0.7


def test_talk_shortens_the_paths_of_topics_that_some_hold():
    """Hops alone, with no latencies to go by, and with latencies."""
    shape = {"count": 48, "topics": 6, "per": 1, "rate": 1.0}
    ratios = []
    for model, plain in (("ideal", "names"), ("plane", "latency")):
        costs = []
        for mapping in (plain, "talk"):
            scenario = crowd(mapping, model, **shape)
            matrix, order, names = latencies(scenario, 2)
            groups = talk(scenario, 2, {name: place for place, name in enumerate(names)})
            costs.append(path_latency(matrix, order, groups))
        ratios.append(costs[1] / costs[0])
    assert ratios[0] < 0.93
    assert ratios[1] < 0.97


def test_one_seed_gives_the_same_numbers_every_time():
    scenario = crowd("latency", count=20)
    assert latencies(scenario, 4) == latencies(scenario, 4)
    assert latencies(scenario, 4)[1] != latencies(scenario, 5)[1]
    # Another story of the same seed has the same hosts.
    names = node_names(scenario)
    model = simulate._plain_model(scenario, 4)
    assert cube.peers_of(scenario, 4, names[::-1], {}, model).names == (
        cube.peers_of(scenario, 4, names, {}, model).names
    )


def test_roles_of_one_host_are_neighbours():
    scenario = crowd("latency", count=16)
    names = node_names(scenario)
    homes = {name: f"host{place % 4}" for place, name in enumerate(names)}
    model = simulate._plain_model(scenario, 1)
    order = cube.peers_of(scenario, 1, names, homes, model).names
    for at in range(0, 16, 4):
        assert len({homes[name] for name in order[at : at + 4]}) == 1


def test_numbers_by_name_are_the_default():
    scenario = parse('[network]\noverlay = "cube"')
    assert cube.peers_of(scenario, 1, ["p1", "s1", "a"], {}, Ideal()).names == ("a", "p1", "s1")


def test_a_peer_is_restored_with_its_number():
    peers = Peers(["c", "a", "b"], mapped=True)
    scenario = parse('[network]\noverlay = "cube"')
    order = order_of(scenario.guarantee, scenario.options, ("t1",))
    peer = Peered("a", peers, scenario.network.cube.options, order)
    again = Peered.restore(peer.snapshot())
    assert again.peers.ids == {"c": 0, "a": 1, "b": 2}
    assert again.snapshot() == peer.snapshot()


# Who talks to whom.


def groups_of(text, seed=1):
    scenario = parse(text)
    names = sorted(node_names(scenario))
    return talk(scenario, seed, {name: place for place, name in enumerate(names)}), names


PUBLISHERS = """
topics = ["a", "b", "c"]
[publishers]
count = 2
rate = 6.0
topics = "{topics}"
[[subscribers]]
count = 2
topics = ["a", "c"]
"""


def test_publishers_divide_their_rate_as_they_pick_topics():
    groups, names = groups_of(PUBLISHERS.format(topics="uniform"))
    assert names == ["p1", "p2", "s1", "s2"]
    # Nobody holds b: nothing of it travels.
    assert groups == [Group((2, 3), ((0, 2.0), (1, 2.0)))] * 2


def test_publishers_with_a_topic_of_their_own_say_all_of_it_there():
    groups, _ = groups_of(PUBLISHERS.format(topics="own"))
    assert groups == [Group((2, 3), ((0, 6.0),))]


def test_publishers_share_topics_of_their_own_when_there_are_more_of_them():
    text = PUBLISHERS.format(topics="own").replace("count = 2\nrate", "count = 4\nrate")
    groups, names = groups_of(text)
    assert names == ["p1", "p2", "p3", "p4", "s1", "s2"]
    assert groups == [Group((4, 5), ((0, 6.0), (3, 6.0))), Group((4, 5), ((2, 6.0),))]


def test_who_says_nothing_is_in_no_group():
    text = PUBLISHERS.format(topics="uniform").replace("rate = 6.0", "rate = 0.0")
    assert groups_of(text)[0] == []


def test_publishers_on_the_last_topic_say_all_of_it_there():
    groups, _ = groups_of(PUBLISHERS.format(topics="last"))
    assert groups == [Group((2, 3), ((0, 6.0), (1, 6.0)))]


def test_popular_topics_have_more_of_the_talk():
    groups, _ = groups_of(PUBLISHERS.format(topics="zipf"))
    popular, rare = (group.rates[0][1] for group in groups)
    assert popular == pytest.approx(3 * rare)


def test_subscribers_talk_evenly_on_what_they_hold():
    text = "topics = 2\n[publishers]\ncount = 0\n[[subscribers]]\ncount = 2\nrate = 3.0"
    groups, _ = groups_of(text)
    assert groups == [Group((0, 1), ((0, 1.5), (1, 1.5)))] * 2


def test_who_talks_to_itself_alone_is_no_topic():
    text = "[publishers]\ncount = 0\n[[subscribers]]\nrate = 3.0"
    assert groups_of(text)[0] == []


def test_those_who_come_later_are_in_no_topic():
    text = (
        "[publishers]\nrate = 1.0\n[[subscribers]]\ncount = 3\n"
        '[churn]\nspare = 1\nsession = {law = "constant", mean = 1.0}'
    )
    groups, names = groups_of(text)
    assert [names[place] for place in groups[0].members] == ["s1", "s2"]


# Where hosts are.


def test_a_message_takes_as_long_as_its_way_on_the_plane():
    plane = Plane("1", PlaneTable(side=2.0, least=0.5))
    far = plane.mean_s("a", "b")
    assert plane.arrival("b", "a", 0, 7.0, None) == 7.0 + far
    assert 0.5 < far < 0.5 + 2.0 * 2**0.5
    half = Plane("1", PlaneTable(side=1.0, least=0.5))
    assert half.mean_s("a", "b") - 0.5 == pytest.approx((far - 0.5) / 2)
    # The places follow from the names, in whatever order they are asked for.
    other = Plane("1", PlaneTable(side=2.0, least=0.5))
    assert other.mean_s("b", "c") == plane.mean_s("c", "b")
    assert other.mean_s("a", "b") == far


def test_hosts_of_a_site_are_near_each_other():
    plane = Plane("1", PlaneTable(side=1.0, least=0.0, sites=3, spread=0.02))
    hosts = [f"h{number}" for number in range(30)]
    near = Counter(sum(plane.mean_s(one, other) < 0.03 for other in hosts) for one in hosts)
    # Three groups: every host is near as many as its group has.
    assert len(near) <= 3
    assert sum(count / size for size, count in near.items()) == 3


def test_pairs_of_the_wide_area_network_are_near_or_far_on_average():
    wan = Wan("1")
    found = {wan.mean_s(f"a{number}", f"b{number}") for number in range(40)}
    assert found == {FAST.mean, SLOW.mean}
    assert wan.mean_s("x", "y") == wan.mean_s("y", "x")


@pytest.mark.parametrize("model", [Ideal(), Delay(Constant(mean=1.0)), WanPerMessage()])
def test_where_all_pairs_are_alike_hops_count(model):
    assert (cube._mean_s(model, "a", "b"), cube._mean_s(model, "a", "a")) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        ("overlay = 'cube'\ncube = {mapping = 'best'}", "network.cube.mapping", "'best' is not"),
        ("cube = {mapping = 'talk'}", "network.cube", "has no meaning without overlay"),
        ("overlay = 'cube'\ncube = {mapping = 'latency'}", "network.cube.mapping",
         "needs pairs of hosts that are near or far: model wan or plane"),
        ("overlay = 'cube'\nmodel = 'wan'\nclasses = 'message'\ncube = {mapping = 'latency'}",
         "network.cube.mapping", "needs pairs"),
        ("overlay = 'cube'\ncube = {mapping = 'talk'}\n[order]\nguarantee = 'total'",
         "network.cube.mapping", "all talk goes through services of total"),
        ("overlay = 'cube'\ncube = {mapping = 'talk'}\n[publishers]\ncount = 2000",
         "network.cube.mapping", "2001 peers are more than 1024"),
        ("plane = {side = 2.0}", "network.plane", "has no meaning without model"),
        ("model = 'plane'\nplane = {side = -2.0}", "network.plane.side", "-2 is not between"),
        ("model = 'plane'\nplane = {least = -1.0}", "network.plane.least", "-1 is not between"),
        ("model = 'plane'\nplane = {sites = 0}", "network.plane.sites", "0 is not between 1"),
        ("model = 'plane'\nplane = {sites = 2, spread = 1.5}", "network.plane.spread", "1.5 is"),
        ("model = 'plane'\nplane = {spread = 0.5}", "network.plane.spread", "without sites"),
    ],
)  # fmt: skip
def test_what_is_impossible_is_refused_by_its_key(text, key, words):
    with pytest.raises(BadScenario) as caught:
        parse(f"[network]\n{text}")
    assert caught.value.key == key
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "overlay = 'cube'\nmodel = 'wan'\ncube = {mapping = 'latency'}",
        "overlay = 'cube'\nmodel = 'plane'\ncube = {mapping = 'latency'}",
        "overlay = 'cube'\ncube = {mapping = 'talk'}\n[order]\nguarantee = 'fifo'",
        "overlay = 'cube'\ncube = {mapping = 'talk'}\n[publishers]\ncount = 1023",
        "model = 'plane'\nplane = {sites = 2, spread = 0.5, side = 0.0}",
    ],
)
def test_what_is_possible_is_read(text):
    assert parse(f"[network]\n{text}")
