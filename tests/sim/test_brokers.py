"""Messages take the one way through the brokers, once a link, and as long as they should."""

from __future__ import annotations

from itertools import accumulate, pairwise
from math import sqrt
from statistics import fmean, pvariance
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import structs

from inorder.sim import graphs
from inorder.sim.agenda import Agenda
from inorder.sim.brokers import Broker, Brokers
from inorder.sim.laws import Constant, Wave
from inorder.sim.models import Delay
from inorder.sim.network import Network
from inorder.sim.path import STREAMS, stream
from inorder.sim.scenario import BrokersTable, parse
from tests.sim.test_graphs import SHAPES, distances

STILL = Constant(mean=0.0)
TEN_MS = Constant(mean=0.01)


# Ways. One role on each broker, named after it: n0, n1, ...


class Yard:
    """A network of brokers and a list of what it hands over, without a world."""

    def __init__(self, table: BrokersTable, roles: int | None = None, seed: str = "1") -> None:
        self.agenda = Agenda()
        self.got: list[tuple[str, str, Any, float]] = []
        self.lost: list[tuple[str, str, Any]] = []
        self.network = Network(self.agenda, Delay(table.link), seed, self._hand_over, fifo=True)
        names = table.names
        homes = {f"n{place}": names[place % len(names)] for place in range(roles or len(names))}
        self.ways = self.network.ways = Brokers(self.network, self.agenda, table, homes, seed)

    def _hand_over(
        self, source: str, target: str, message: Any, size: int, sent_at: float, arrives: bool
    ) -> None:
        if arrives:
            self.got.append((source, target, message, self.agenda.now - sent_at))
        else:
            self.lost.append((source, target, message))

    def say(self, at: float, source: str, message: Any, topic: str = "t") -> None:
        self.agenda.at(at, self.network.diffuse, source, topic, message)

    def stream(self, rate: float, count: int, source: str = "n0") -> list[float]:
        """Publish periodically; the delays, in order of arrival."""
        for number in range(count):
            self.say(number / rate, source, number)
        self.agenda.run()
        return [delay for *_, delay in self.got]


def needed_links(graph: graphs.Graph, source: int, members: set[int]) -> int:
    """Links that, if taken away, would cut a member off from the source."""
    needed = 0
    for here, near in enumerate(graph):
        for there in near:
            if here < there:
                rest = [[x for x in xs if {x, place} != {here, there}]
                        for place, xs in enumerate(graph)]  # fmt: skip
                needed += not members <= distances(rest, source).keys()
    return needed


def check_diffusion(shape: Any, count: int, seed: str, steps: list[tuple[bool, int]]) -> None:
    """After any joins and leaves: all members once, over no link more than needed."""
    table = BrokersTable(count=count, shape=shape)
    yard = Yard(table, roles=2 * count, seed=seed)
    members: set[int] = set()
    for joins, number in steps:
        role = number % (2 * count)
        if joins:
            yard.network.join(f"n{role}", "t")
            members.add(role)
        else:
            yard.network.leave(f"n{role}", "t")
            members.discard(role)
    source = steps[0][1] % (2 * count)
    yard.say(0.0, f"n{source}", "news")
    yard.agenda.run()
    assert sorted(target for _, target, *_ in yard.got) == sorted(f"n{role}" for role in members)
    homes = {role % count for role in members}
    assert yard.ways.crossings == needed_links(yard.ways.graph, source % count, homes)


STEPS = st.lists(st.tuples(st.booleans(), st.integers(0, 1000)), min_size=1, max_size=30)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(SHAPES), st.integers(1, 20), st.integers(0, 99), STEPS)
@example("line", 4, 1, [(False, 0), (True, 1), (True, 3), (True, 7), (False, 3), (False, 7)])
def test_members_get_one_copy_over_one_copy_a_link(
    shape: Any, count: int, seed: int, steps: list[tuple[bool, int]]
) -> None:
    check_diffusion(shape, count, f"{seed}", steps)


def test_a_leave_that_is_not_announced_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(self: Brokers, node: str, topic: str) -> None:
        self._residents[topic][self._at(node)].pop(node, None)

    steps = [(True, 0), (True, 3), (True, 5), (False, 5)]
    check_diffusion("line", 6, "1", steps)
    monkeypatch.setattr(Brokers, "leave", forgetful)
    with pytest.raises(AssertionError):
        check_diffusion("line", 6, "1", steps)


def test_hops_count_the_brokers_on_the_one_way() -> None:
    ways = Yard(BrokersTable(count=46, shape="long")).ways
    for one in range(46):
        for other, far in distances(ways.graph, one).items():
            assert ways.hops(f"n{one}", f"n{other}") == far + 1
    assert max(ways.hops("n0", f"n{other}") for other in range(46)) >= 15
    way = ways.way("n3", "n30")
    assert way == ways.way("n30", "n3")[::-1]
    assert way[0] == ways.home("n3") == "broker4"


def test_a_message_to_one_goes_the_same_way_and_to_oneself_none() -> None:
    yard = Yard(BrokersTable(count=9, shape="line", processing=TEN_MS))
    yard.network.send("n2", "n7", "for you")
    yard.network.send("n4", "n4", "for me")
    yard.agenda.run()
    assert yard.got[0] == ("n4", "n4", "for me", 0.0)
    assert yard.got[1][:3] == ("n2", "n7", "for you")
    assert yard.got[1][3] == pytest.approx(6 * 0.01 + 5 * 0.01)
    assert yard.ways.crossings == 5


def cut(yard: Yard, *nodes: str) -> None:
    one, other = yard.ways.sides(nodes)
    yard.network.weather.cut([(one, other), (other, one)])


def test_a_partition_runs_between_its_brokers_and_the_others() -> None:
    yard = Yard(BrokersTable(count=6, shape="line"))
    cut(yard, "n2", "n3")
    for source, target in ("n0", "n1"), ("n1", "n2"), ("n2", "n3"), ("n3", "n4"), ("n0", "n5"):
        yard.network.send(source, target, "?")
    yard.agenda.run()
    assert sorted(row[:2] for row in yard.got) == [("n0", "n1"), ("n2", "n3")]
    assert sorted(row[:2] for row in yard.lost) == [("n0", "n5"), ("n1", "n2"), ("n3", "n4")]


# Delays.


@pytest.mark.parametrize("workers", [None, 100])
def test_a_delay_is_all_brokers_and_all_links(workers: int | None) -> None:
    table = BrokersTable(
        count=46, shape="long", link=Constant(mean=0.03), processing=TEN_MS, workers=workers,
        slow=5, slow_factor=7.0,
    )  # fmt: skip
    yard = Yard(table)
    slow = [broker.name for broker in yard.ways.brokers if broker.factor == 7.0]
    assert len(slow) == 5
    assert [broker.factor for broker in Yard(table).ways.brokers] == [
        broker.factor for broker in yard.ways.brokers
    ]
    for number in range(46):
        yard.network.join(f"n{number}", "t")
    yard.say(0.0, "n11", "news")
    yard.agenda.run()
    assert len(yard.got) == 46
    for source, target, _, delay in yard.got:
        way = yard.ways.way(source, target)
        work = sum(0.07 if name in slow else 0.01 for name in way)
        assert delay == pytest.approx(work + 0.03 * (len(way) - 1))


def test_exponential_brokers_add_up_to_a_hypoexponential_delay() -> None:
    yard = Yard(BrokersTable(count=5, shape="line"))
    yard.network.join("n4", "t")
    delays = yard.stream(rate=100.0, count=20_000)
    # Five means of 10 ms and four links; the standard errors are 0.18 % and about 1.5 %.
    assert fmean(delays) == pytest.approx(0.05 + 0.04, rel=0.01)
    assert pvariance(delays) == pytest.approx(5 * 0.01**2, rel=0.06)
    # One message's delay says nothing about the next one's.
    by_number = [delay for _, _, _, delay in sorted(yard.got, key=lambda row: row[2])]
    products = [(one - 0.09) * (other - 0.09) for one, other in pairwise(by_number)]
    assert abs(fmean(products)) / pvariance(delays) < 4 / sqrt(20_000)


def late(yard: Yard) -> int:
    numbers = [message for _, _, message, _ in yard.got]
    return sum(
        number < highest for number, highest in zip(numbers, accumulate(numbers, max), strict=True)
    )


def test_workers_of_their_own_overtake_and_a_single_one_does_not() -> None:
    shares = {}
    for workers in (None, 2, 1):
        yard = Yard(BrokersTable(count=5, shape="line", workers=workers))
        yard.network.join("n4", "t")
        yard.stream(rate=60.0, count=2000)
        assert len(yard.got) == 2000
        shares[workers] = late(yard) / 2000
    assert shares[1] == 0.0
    assert shares[2] > 0.02
    assert shares[None] > 0.3


def test_a_line_of_brokers_is_a_path() -> None:
    """Event by event and column by column (sim/path.py) the same share comes late."""
    path = structs.replace(STREAMS["S1"], rate=80.0)
    drawn = stream(path, 10_000, 1)
    yard = Yard(BrokersTable(count=5, shape="line"))
    yard.network.join("n4", "t")
    for number, at in enumerate(drawn.sent_s.tolist()):
        yard.say(at, "n0", number)
    yard.agenda.run()
    assert late(yard) / 10_000 == pytest.approx(drawn.late_share, abs=0.02)


def test_links_keep_their_order_whatever_their_law() -> None:
    text = "[network]\noverlay='brokers'\n[network.brokers]\nlink={law='exponential', mean=0.1}"
    table = parse(text + "\nprocessing={law='constant', mean=0.01}").network.brokers
    yard = Yard(table)
    yard.network.join("n4", "t")
    yard.stream(rate=100.0, count=1000)
    assert len(yard.got) == 1000
    assert late(yard) == 0


def test_a_queue_grows_when_its_workers_cannot_keep_up() -> None:
    def delays(rate: float) -> list[float]:
        yard = Yard(BrokersTable(count=1, processing=TEN_MS, link=STILL, workers=2), roles=2)
        yard.network.join("n1", "t")
        return yard.stream(rate, 1000)

    assert delays(190.0) == pytest.approx([0.01] * 1000)
    jammed = delays(250.0)
    # Two workers manage 200 a second: each message waits 1 ms longer than the one before.
    assert jammed[-1] == pytest.approx(0.01 + 1000 * (1 / 200 - 1 / 250), rel=0.01)
    assert jammed[500] == pytest.approx(jammed[-1] / 2, rel=0.02)


def test_congestion_swells_and_falls_on_all_brokers_and_keeps_the_order() -> None:
    wave = Wave(period=30.0, height=0.3)
    table = BrokersTable(count=5, shape="line", processing=TEN_MS, link=STILL, congestion=wave)
    yard = Yard(table)
    yard.network.join("n4", "t")
    delays = yard.stream(rate=100.0, count=3000)
    assert late(yard) == 0
    assert min(delays) == pytest.approx(0.05, abs=0.001)
    assert max(delays) == pytest.approx(0.05 + 5 * 0.3, rel=0.01)
    assert 1000 < delays.index(max(delays)) < 1800


def test_nothing_to_do_on_a_link_is_the_same_as_doing_it() -> None:
    """The short cut of fair weather changes no arrival."""
    arrivals = []
    for quick in (True, False):
        yard = Yard(BrokersTable(count=20, shape="random"))
        if not quick:
            yard.ways._quick_link_s = None
        for number in range(0, 20, 2):
            yard.network.join(f"n{number}", "t")
        for source in ("n1", "n2"):
            yard.stream(rate=50.0, count=200, source=source)
        arrivals.append(yard.got)
    assert arrivals[0] == arrivals[1]
    assert len(arrivals[0]) == 4000


# Chance: what one meets does not depend on the others.


def arrivals_at_n4(*, other_sender: bool, other_member: bool) -> list[tuple[Any, float]]:
    yard = Yard(BrokersTable(count=8, shape="line"))
    yard.network.join("n4", "t")
    if other_member:
        yard.network.join("n7", "t")
    for number in range(200):
        yard.say(number / 100, "n0", number)
        if other_sender:
            yard.say(number / 90, "n1", -number)
    yard.agenda.run()
    return [
        (message, delay)
        for source, target, message, delay in yard.got
        if source == "n0" and target == "n4"
    ]


def check_independence() -> None:
    alone = arrivals_at_n4(other_sender=False, other_member=False)
    assert len(alone) == 200
    assert alone == arrivals_at_n4(other_sender=True, other_member=False)
    assert alone == arrivals_at_n4(other_sender=False, other_member=True)


def test_other_senders_and_members_do_not_change_what_a_message_meets() -> None:
    check_independence()


def test_a_shared_random_stream_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    done = Broker.done
    monkeypatch.setattr(Broker, "done", lambda self, source, now: done(self, "all", now))
    with pytest.raises(AssertionError):
        check_independence()
