"""Bundling in a world with time, and its keys of `[network.cube]`: S9, tau, presets, scenarios."""

from __future__ import annotations

from collections import Counter
from functools import partial
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inorder.check import judge
from inorder.core.errors import BadScenario
from inorder.guarantee.peer import Peered, order_of
from inorder.guarantee.registry import guarantee
from inorder.protocols.cube.buffers import Buffers
from inorder.protocols.cube.messages import SOURCE, Packet, Pub, Sub
from inorder.protocols.cube.options import Options
from inorder.protocols.cube.peers import Peers
from inorder.sim import cube
from inorder.sim.explore import explore, promised
from inorder.sim.laws import Constant
from inorder.sim.memory import Memory
from inorder.sim.models import Packet as PacketModel
from inorder.sim.pool import Op, Pool
from inorder.sim.presets import sources_of
from inorder.sim.queues import Watched
from inorder.sim.scenario import parse
from inorder.sim.simulate import build, simulate
from inorder.sim.workload import tell
from inorder.sim.world import World


class Fixed:
    """Every link has a delay of its own, always the same. It counts packets of publications."""

    sized = False

    def __init__(self, seed):
        self._seed = seed
        self._delays = {}
        self.packets = 0

    def show(self, message):
        inside = message.messages if isinstance(message, Packet) else (message,)
        self.packets += any(isinstance(each, Pub) for each in inside)

    def arrival(self, source, target, size, now, rng):
        delay = self._delays.get((source, target))
        if delay is None:
            drawn = Random(f"{self._seed}/{source}/{target}")
            # Some links are so slow that others overtake them.
            delay = self._delays[(source, target)] = drawn.choice((0.1, 1.0, 10.0)) * drawn.random()
        return now + delay


def static(count, members, seed, model, stamps="clock", order="causal", **chosen):
    """A world of preset members whose applications have subscribed."""
    memory = Memory()
    world = World(model, f"{seed}", memory, fifo=False)
    names = [f"n{number:02}" for number in range(count)]
    peers = Peers(names)
    named = guarantee(order)
    options = msgspec.convert({"stamps": stamps} if order == "causal" else {}, named.options)
    made = order_of(named, options, ("t",))
    for name in names:
        told = Options(window=1000, links="trusted", **chosen)
        world.add(name, partial(Peered, name, peers, told, made))
    held = [names[number] for number in members]
    cube.preset((node.machine for node in world.nodes.values()), ["t"], held)
    for name in held:
        world.subscribe(name, ["t"])
    return world, held, memory


def played(count, members, seed, events, model=None, **chosen):
    """When everybody was handed what, and the packets that took."""
    model = model or Fixed(seed)
    world, held, memory = static(count, members, seed, model, **chosen)
    rng = Random(f"{seed}/publications")
    for _ in range(events):
        world.agenda.at(rng.uniform(0.0, 20.0), world.publish, rng.choice(held), "t", {})
    world.agenda.run()
    assert all(node.machine.idle for node in world.nodes.values())
    rows = memory.rows["deliveries"]
    times = {(row.event, row.subscriber): row.delivered_at for row in rows}
    assert len(times) == len(rows) == events * len(held)
    return times, getattr(model, "packets", 0)


# S9: with fixed delays and no queues holding delays nothing.


@settings(max_examples=60)
@given(
    st.integers(2, 16), st.integers(0, 10**6), st.integers(1, 40), st.floats(0.3, 1.0),
    st.sampled_from(["clock", "barrier", "whole"]),
)  # fmt: skip
def test_every_event_is_handed_over_at_the_same_instant(count, seed, events, share, stamps):
    rng = Random(f"{seed}/members")
    members = [number for number in range(count) if rng.random() < share] or [0]
    if stamps == "clock":
        members = [*range(count)]
    without, _ = played(count, members, seed, events, stamps=stamps)
    for chosen in ({"aggregate": "causal"}, {"aggregate": "hybrid", "tau": 0.0}):
        with_it, _ = played(count, members, seed, events, stamps=stamps, **chosen)
        assert with_it == without


def test_and_packets_are_spared():
    spared = 0
    for seed in range(5):
        without, plain = played(16, range(16), seed, 60)
        with_it, fewer = played(16, range(16), seed, 60, aggregate="causal")
        assert (with_it, plain) == (without, 60 * 15)
        spared += plain - fewer
    assert spared > 300


def test_the_control_a_bundler_that_holds_too_much_delays(monkeypatch):
    """Holding whatever rests on anything missing, wherever that goes."""
    from inorder.protocols.cube.outlook import Outlook

    def differs():
        return any(
            played(8, range(8), seed, 40)[0] != played(8, range(8), seed, 40, aggregate="causal")[0]
            for seed in range(10)
        )

    assert not differs()
    monkeypatch.setattr(Outlook, "passes_on", lambda self, topic, source, child: True)
    assert differs()


# Timers.


def test_a_hop_takes_tau_longer_at_most():
    """Without an order an event is handed over as it comes: the way has four hops at most."""
    tau = 0.5
    for aggregate in ("timer", "hybrid"):
        for seed in range(6):
            chosen = {"order": "none"}
            without, plain = played(16, range(16), seed, 40, **chosen)
            with_it, fewer = played(16, range(16), seed, 40, aggregate=aggregate, tau=tau, **chosen)
            assert fewer < plain
            for pair, at in without.items():
                assert at <= with_it[pair] <= at + 4 * tau + 1e-9


@pytest.mark.parametrize("adapt", [False, True])
@pytest.mark.parametrize("aggregate", ["timer", "hybrid"])
def test_nothing_stays_longer_in_a_buffer_than_tau(monkeypatch, aggregate, adapt):
    put, finish = Buffers.put, Buffers.finish
    since, waits = {}, []

    def noting(self, peer, message, now):
        since[(id(self), peer, message.key)] = now
        put(self, peer, message, now)

    def leaving(self, hurried, now):
        packets = finish(self, hurried, now)
        waits.extend(now - since[(id(self), to, each.key)] for to, some in packets for each in some)
        return packets

    monkeypatch.setattr(Buffers, "put", noting)
    monkeypatch.setattr(Buffers, "finish", leaving)
    played(16, range(16), 3, 60, aggregate=aggregate, tau=0.3, adapt=adapt)
    assert len(waits) == 2 * 60 * 15
    assert max(waits) <= 0.3 + 1e-9
    # Nothing stands in a queue here: an adaptive tau becomes small.
    assert (sum(waits) / len(waits) < 0.2) == adapt


def test_a_piggyback_delays_less_than_a_timer_and_spares_more_than_holding_alone():
    packets, lateness = Counter(), Counter()
    modes = {
        "causal": {"aggregate": "causal"},
        "piggyback": {"aggregate": "hybrid", "tau": 1.0, "piggyback": True},
        "hybrid": {"aggregate": "hybrid", "tau": 1.0},
    }
    for seed in range(4):
        for mode, chosen in modes.items():
            times, some = played(16, range(16), seed, 60, **chosen)
            packets[mode] += some
            lateness[mode] += sum(times.values())
    assert packets["hybrid"] < packets["piggyback"] < packets["causal"]
    assert lateness["causal"] < lateness["piggyback"] < lateness["hybrid"]


# One tree for all.


def test_with_a_single_tree_everything_goes_through_peer_0():
    first = Counter()

    class Seen(Fixed):
        def show(self, message):
            super().show(message)
            self.message = message

        def arrival(self, source, target, size, now, rng):
            if isinstance(self.message, Pub) and source == f"n{self.message.source:02}":
                first[(source, target)] += 1
            return super().arrival(source, target, size, now, rng)

    _, packets = played(8, range(8), 1, 24, Seen(1), trees="single", aggregate="none")
    # From a source to peer 0, and from there to the other six.
    assert packets == 24 * 7
    assert {target for source, target in first if source != "n00"} == {"n00"}
    assert len({source for source, _ in first}) > 4


def test_members_that_are_not_there_need_no_single_tree_of_theirs():
    """Peer 0 spreads for others though it is no member itself."""
    for aggregate in ("none", "causal"):
        times, _ = played(
            8, [2, 3, 5, 7], 1, 24, stamps="barrier", trees="single", aggregate=aggregate
        )
        assert len(times) == 24 * 4


class Loose(Fixed):
    """Every message has a delay of its own."""

    def arrival(self, source, target, size, now, rng):
        return now + max(0.0, rng.gauss(5.0, 2.0))


def test_a_single_tree_spares_fewer_packets():
    spared = Counter()
    for trees in ("single", "source"):
        for seed in range(4):
            chosen = {"trees": trees, "aggregate": "causal"}
            _, packets = played(32, range(32), seed, 64, Loose(seed), **chosen)
            spared[trees] += 64 * 31 - packets
    assert 0 < spared["single"] < 0.85 * spared["source"]


def test_links_that_keep_their_order_leave_nothing_to_hold_in_a_single_tree():
    for seed in range(4):
        assert played(16, range(16), seed, 40, trees="single", aggregate="causal")[1] == 40 * 15


# Presets.


def joined(count, sources):
    """Peers that have joined one after the other; the last ones as sources."""
    names = [f"p{number:02}" for number in range(count)]
    order = order_of(guarantee("none"), guarantee("none").options(), ("t",))
    known = Peers(names)
    machines = {name: Peered(name, known, Options(links="trusted"), order) for name in names}
    pool = Pool(machines, ordered=False)
    for place, name in enumerate(names):
        if place < count - sources:
            pool.perform(name, Op("subscribe", ("t",)))
        else:
            peer = machines[name]
            peer._enter("t", peer._topic("t"), SOURCE, 0.0)
            pool._carry_out(name, peer._done(0.0), [])
        while steps := pool.steps():
            pool.take(steps[0])
    return names, machines, pool.disks


@pytest.mark.parametrize(("count", "sources"), [(1, 0), (2, 1), (9, 3), (64, 10)])
def test_a_preset_peer_is_one_that_has_joined(count, sources):
    names, machines, disks = joined(count, sources)
    _, others, _ = joined(0, 0)
    order = order_of(guarantee("none"), guarantee("none").options(), ("t",))
    known = Peers(names)
    others = {name: Peered(name, known, Options(links="trusted"), order) for name in names}
    first_source = count - sources
    written = cube.preset(others.values(), ["t"], names[:first_source], names[first_source:])
    for name in names[:first_source]:
        others[name].subscribe("call", ["t"], 0.0)
    for name in names:
        assert others[name]._topics["t"].packed() == machines[name]._topics["t"].packed()
        assert tuple(each.record for each in written[name]) == disks[name][-1:]


CROWD = """
topics = {topics}
duration = 8.0
settle = 60.0
[order]
guarantee = "{guarantee}"
[network]
overlay = "cube"
model = "biased"
mean = 0.3
fifo = false
[network.cube]
members = "preset"
{cube}
[publishers]
count = 3
rate = 1.0
topics = "{picks}"
[[subscribers]]
count = 6
reply = 0.3
{more}
"""


def crowd(cube="", more="", topics=2, guarantee="causal", picks="uniform"):
    text = CROWD.format(cube=cube, more=more, topics=topics, guarantee=guarantee, picks=picks)
    return parse(text)


def test_those_of_the_beginning_are_there_and_nobody_joins():
    scenario = crowd('links = "trusted"')
    memory = Memory()
    outcome = simulate(scenario, 1, memory)
    assert not [row for row in memory.rows["messages"] if row.kind in ("Sub", "Act")]
    rows = memory.rows["subscriptions"]
    assert [(row.op, sorted(row.topics), row.at) for row in rows] == [
        ("subscribe", ["t1", "t2"], 0.0)
    ] * 6
    assert outcome.delivered == 6 * len(memory.rows["events"])
    verdicts = judge(memory.history(), promised(scenario))
    assert not any(verdict.broken for verdict in verdicts.values())


@pytest.mark.parametrize(
    ("picks", "expected"),
    [
        ("own", {"t1": ["p1", "p3"], "t2": ["p2"]}),
        ("last", {"t1": [], "t2": ["p1", "p2", "p3"]}),
        ("zipf", {"t1": ["p1", "p2", "p3"], "t2": ["p1", "p2", "p3"]}),
    ],
)
def test_publishers_are_sources_of_what_they_may_publish_on(picks, expected):
    scenario = crowd(picks=picks)
    assert sources_of(scenario) == expected
    world = build(scenario, 1, Memory())
    for topic, names in expected.items():
        peer = world.nodes["s1"].machine
        known = peer._topics[topic]
        assert [peer.peers.names[each] for each in range(9) if known.sources >> each & 1] == names
        assert known.members.bit_count() == 6


def test_services_spread_events_and_join_by_themselves():
    scenario = crowd(guarantee="total", cube='links = "trusted"')
    assert sources_of(scenario) == {"t1": [], "t2": []}
    memory = Memory()
    simulate(scenario, 1, memory)
    verdicts = judge(memory.history(), promised(scenario))
    assert not any(verdict.broken for verdict in verdicts.values())
    assert memory.rows["deliveries"]


def test_who_subscribes_later_joins():
    scenario = crowd(more="[churn]\nrate = 1.0")
    story = tell(scenario, 3)
    assert [each for each in story.operations if each.at > 0.0]
    memory = Memory()
    simulate(scenario, 3, memory)
    assert [row for row in memory.rows["subscriptions"] if row.at > 0.0]
    verdicts = judge(memory.history(), promised(scenario))
    assert not any(verdict.broken for verdict in verdicts.values())


def test_a_preset_member_that_begins_again_says_so_with_a_higher_number():
    """Else it would be taken for one that says everything twice."""
    scenario = crowd('links = "trusted"')
    world = build(scenario, 1, Memory())
    world.subscribe("s1", ["t1", "t2"])
    world.crash("s1")
    world.restart("s1")
    said = []
    world.network.send = lambda source, target, message: said.append(message)
    world.subscribe("s1", ["t1"])
    assert {each.change for each in said if isinstance(each, Sub)} == {2}


# Scenarios: every way of bundling under churn, over links that lose, double and reorder.

EXPLORED = [
    'aggregate = "causal"',
    'aggregate = "timer"\ntau = 0.05',
    'aggregate = "hybrid"\ntau = 0.05\nmtu = 400',
    'aggregate = "hybrid"\ntau = 0.05\npiggyback = true\nwindow = 1',
    'aggregate = "causal"\ntrees = "single"',
]


@pytest.mark.parametrize("chosen", EXPLORED)
def test_schedules_with_churn_and_weather(chosen):
    more = '[churn]\nrate = 1.0\n[faults]\nuntil = 8.0\ndraw = ["weather", "pause", "clock"]'
    found = explore(crowd(chosen, more), range(5))
    assert found.failures == ()
    assert found.account["packets_several"] > 0


@pytest.mark.parametrize("chosen", EXPLORED)
def test_schedules_with_churn_over_trusted_links(chosen):
    found = explore(crowd(f'links = "trusted"\n{chosen}', "[churn]\nrate = 1.0"), range(12))
    assert found.failures == ()
    assert "timer" in chosen or found.account["held"] > 0


def test_an_adaptive_peer_is_told_of_its_queue():
    text = CROWD.format(
        cube='aggregate = "timer"\nadapt = true\ntau = 0.2\nlinks = "trusted"', more="", topics=1,
        guarantee="causal", picks="uniform",
    ).replace('model = "biased"', 'model = "packet"\ntransmission = 0.05')  # fmt: skip
    scenario = parse(text)
    world = build(scenario, 1, Memory())
    assert all(type(node.machine) is Watched for node in world.nodes.values())
    outcome = simulate(scenario, 1, Memory())
    assert outcome.account["packets_several"] > 0


def test_a_queue_is_busy_while_a_copy_would_have_to_wait():
    model = PacketModel(1.0, None, Constant(mean=5.0), transmission_s=2.0)
    assert not model.is_busy("a", 0.0)
    model.arrival("a", "b", 0, 0.0, Random(1))
    # Processing to 1, transmission to 3: whoever comes at 2 is ready at 3.
    assert model.is_busy("a", 1.9)
    assert not model.is_busy("a", 2.0)
    assert not model.is_busy("b", 1.9)


# What a file may ask for.


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        ("mtu = 2000", "mtu", "no meaning with aggregate = none: causal, timer, hybrid"),
        ("tau = 1.0", "tau", "no meaning with aggregate = none: timer, hybrid"),
        ('aggregate = "causal"\ntau = 1.0', "tau", "no meaning with aggregate = causal"),
        ('aggregate = "timer"\npiggyback = true', "piggyback", "aggregate = timer: hybrid"),
        ('aggregate = "causal"\nadapt = true', "adapt", "no meaning with aggregate = causal"),
        ('aggregate = "timer"\nadapt = true', "adapt", 'no meaning without model = "packet"'),
        ('aggregate = "timer"\ntau = -1.0', "tau", "-1 is not between 0 and 1000"),
        ('aggregate = "causal"\nmtu = 255', "mtu", "255 is not between 256 and 65507"),
        ('aggregate = "causal"\nmtu = 65508', "mtu", "65508 is not between 256 and 65507"),
        ('aggregate = "some"', "aggregate", "none, causal, timer, hybrid"),
        ('trees = "two"', "trees", "source, single"),
    ],
)
def test_what_has_no_meaning_is_refused(text, key, words):
    with pytest.raises(BadScenario) as caught:
        crowd(text)
    assert caught.value.key == f"network.cube.{key}"
    assert words in caught.value.problem


def test_all_keys_reach_the_peers():
    text = 'aggregate = "hybrid"\nmtu = 999\ntau = 0.5\npiggyback = true\ntrees = "single"'
    options = crowd(f"{text}\nwindow = 3\nresend = 0.7").network.cube.options
    assert options == Options(
        aggregate="hybrid", mtu=999, tau=0.5, piggyback=True, trees="single", window=3, resend=0.7
    )
