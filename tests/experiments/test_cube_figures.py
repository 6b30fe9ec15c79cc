"""The figures of the thesis on the hypercube: their quick versions, each against a slow twin."""

from __future__ import annotations

import math
from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any

import pytest
from experiments.cube import (
    brokered,
    churn,
    example,
    several,
    single,
    thesis,
    topics,
    trees,
    workloads,
)
from experiments.cube.meter import Paths
from experiments.cube.world import TOPIC, Run, Setting, srpt_world

# A slow twin: trees from the definition of clusters, and queues copy by copy.


def cluster(node: int, number: int) -> list[int]:
    """c(i, s) as the thesis defines it."""
    head = node ^ 1 << (number - 1)
    return [head, *(member for inner in range(1, number) for member in cluster(head, inner))]


def branches(node: int, height: int, holders: set[int]) -> Iterator[tuple[int, int, set[int]]]:
    """Children in the complete cube with holders among them: who, how high, which holders."""
    for number in range(1, height + 1):
        inside = holders & {*cluster(node, number)}
        if inside:
            yield cluster(node, number)[0], number - 1, inside


class Twin:
    """Publications over single trees: when each node has each of them, and what waits where."""

    def __init__(self, size: int, far_first: bool = False) -> None:
        self.size = size
        self.far_first = far_first
        self.free: dict[int, float] = {}
        self.waits: dict[int, list[float]] = {}
        self.tree_waits: dict[int, list[float]] = {}
        self.guests: dict[int, list[int]] = {}
        self.doors = False
        self.latencies: list[float] = []
        self.relays: set[int] = set()

    def play(
        self, publications: list[tuple[float, int, str]], holders: dict[str, set[int]],
        roots: dict[str, int],
    ) -> float:  # fmt: skip
        """The mean latency of all nodes but the publishers themselves."""
        order, heap = count(), []
        for at, node, topic in publications:
            heappush(heap, (at, next(order), node, None, (at, node, topic)))
        while heap:
            now, _, node, below, message = heappop(heap)
            at, publisher, topic = message
            root = roots[topic]
            if below is None and node != root:
                heappush(heap, (self.sent(node, now), next(order), root, None, message))
                continue
            if below is None:
                below = (self.size.bit_length() - 1, holders[topic])
            if node not in holders[topic]:
                self.relays.add(node)
            elif node != publisher and not self.guests:
                self.latencies.append(now - at)
            kids = [*branches(node, *below)]
            for child, height, inside in kids[::-1] if self.far_first else kids:
                arrives = self.sent(node, now, down=True)
                heappush(heap, (arrives, next(order), child, (height, inside), message))
            for guest in self.guests.get(node, ()):
                arrives = self.sent(-1 - node if self.doors else node, now)
                if guest != publisher:
                    self.latencies.append(arrives - at)
        return sum(self.latencies) / len(self.latencies)

    def sent(self, node: int, now: float, down: bool = False) -> float:
        """One copy more, perhaps down the tree: when it arrives."""
        ready = now + 1.0
        begun = max(ready, self.free.get(node, 0.0))
        self.free[node] = begun + 1.0
        self.waits.setdefault(node, []).append(begun - ready)
        if down:
            self.tree_waits.setdefault(node, []).append(begun - ready)
        return begun + 1.0 + 100.0

    def root_wait(self, node: int) -> float:
        waits = self.waits[node]
        return sum(waits) / len(waits)


class Kept:
    """What the figure's own code asked of its run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.runs: list[Run] = []
        self.publications: list[tuple[float, int, str]] = []
        build, publish = Run.__init__, Run.publish

        def building(run: Run, *args: Any, **options: Any) -> None:
            build(run, *args, **options)
            self.runs.append(run)

        def publishing(run: Run, at: float, node: int, topic: str = TOPIC) -> None:
            self.publications.append((at, node, topic))
            publish(run, at, node, topic)

        monkeypatch.setattr(Run, "__init__", building)
        monkeypatch.setattr(Run, "publish", publishing)

    @property
    def setting(self) -> Setting:
        (run,) = self.runs
        return run.setting

    def twin(self) -> tuple[Twin, float]:
        setting = self.setting
        twin = Twin(setting.size, setting.far_first)
        holders = {topic: {*some} for topic, some in setting.members.items()}
        roots = {topic: setting.root(topic) for topic in setting.members}
        return twin, twin.play(self.publications, holders, roots)


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Kept:
    return Kept(monkeypatch)


# One point of each figure, computed again.


@pytest.mark.parametrize("order", [single.NEAR, single.FAR])
@pytest.mark.parametrize(("share", "nodes"), [(25, 64), (100, 32), (30, 128)])
def test_a_point_of_5_6_and_5_7(order: str, share: int, nodes: int, kept: Kept) -> None:
    found = single.run("SRPT", order, share, nodes, 3)
    assert kept.setting.far_first is (order == "far first")
    twin, latency = kept.twin()
    assert found["latency"] == pytest.approx(latency)
    assert found["last"] == pytest.approx(max(twin.latencies))
    assert found["relays"] == len(twin.relays)
    copies = sum(map(len, twin.waits.values()))
    assert found["moved"] == copies
    asked = kept.publications[0][1] != kept.setting.root(TOPIC)
    assert found["pubs"] == copies - asked


@pytest.mark.parametrize(("propagation", "share"), [(100, 25), (100, 100), (1000, 100)])
def test_a_point_of_5_8(propagation: int, share: int, kept: Kept) -> None:
    found = several.run_58("SRPT", propagation, share, 64, 2)
    assert len(kept.publications) == 64 * share // 100
    if propagation == 100:
        twin, latency = kept.twin()
        assert found["latency"] == pytest.approx(latency)
        assert found["root"] == pytest.approx(twin.root_wait(kept.setting.root(TOPIC)))
    # The same hops, each 900 longer.
    hops = (found["latency"] - found["wait"]) / (2.0 + propagation)
    assert hops == pytest.approx(4.0, abs=0.1)


@pytest.mark.parametrize("mean", [several.MET, several.OVER_TIME])
def test_a_point_of_table_5_1(mean: str, kept: Kept) -> None:
    found = several.run_51("SRPT", mean, 64, 1)
    twin, _ = kept.twin()
    root, period = kept.setting.root(TOPIC), kept.runs[0].world.agenda.now
    lengths = []
    for node in range(64):
        waits = twin.tree_waits.get(node, [])
        met = 1.0 + sum(waits) / len(waits) if waits else 0.0
        lengths.append(met if mean == several.MET else (sum(waits) + len(waits)) / period)
    places = zip((-1.0, 0.0, 2.0, 4.0), (0.0, 2.0, 4.0, 8.0), several.NAMES[:4], strict=True)
    for low, high, name in places:
        assert found[name] == sum(low < round(length, 2) <= high for length in lengths)
    assert found["0"] == 32, "leaves send nothing down"
    assert found["root"] == pytest.approx(lengths[root], abs=0.006)
    assert found["longest"] == pytest.approx(1.0 + max(twin.waits[root]))


def test_queues_of_the_single_tree_fall_into_classes_by_their_children() -> None:
    """With k children a node has k copies at once, and the next when these are gone."""
    found = several.run_51("SRPT", several.MET, 256, 1)
    # k = 0: 128 nodes, 1 to 3: 64 + 32 + 16, 4 to 7: 8 + 4 + 2 + 1; the root is saturated.
    assert [found[name] for name in several.NAMES[:4]] == [128, 112, 15, 0]
    assert found["to 4096"] == 1
    # It has sent 1,000 of its 8 * 256 copies when the last event comes.
    assert found["longest"] == pytest.approx(8 * 256 - 1000, rel=0.02)
    assert found["root"] == pytest.approx(found["longest"] / 2, rel=0.03)


def test_a_point_of_5_10(kept: Kept) -> None:
    found = topics.run("SRPT", topics.ZIPF, 16, 256, 1)
    twin, latency = kept.twin()
    assert found["latency"] == pytest.approx(latency)
    popular = kept.setting.root("t1")
    assert found["root"] == pytest.approx(twin.root_wait(popular))
    assert found["moved"] == sum(map(len, twin.waits.values()))


def test_topics_of_5_10_are_popular_by_rank_or_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = {}
    for law in (topics.EVEN, topics.ZIPF):
        with monkeypatch.context() as patch:
            kept = Kept(patch)
            topics.run("SRPT", law, 16, 512, 1)
        shares[law] = sum(topic == "t1" for *_, topic in kept.publications) / 512
    assert shares[topics.EVEN] == pytest.approx(1 / 128, abs=0.015)
    assert shares[topics.ZIPF] == pytest.approx(0.1217, abs=0.05)


def test_roots_are_drawn_for_each_topic_and_run() -> None:
    held = {f"t{number}": range(16) for number in range(40)}
    one, other = (Setting(seed, 16, held) for seed in (1, 2))
    roots = [one.root(topic) for topic in held]
    assert {*roots} <= {*range(16)}
    assert len({*roots}) > 8
    assert roots != [other.root(topic) for topic in held]
    assert roots == [Setting(1, 16, held).root(topic) for topic in held]
    assert {Setting(seed, 16, held, brokers=4).root("t0") for seed in range(40)} == {0, 1, 2, 3}
    assert Setting(1, 16, held, {"t0": 9}).root("t0") == 9


def test_a_point_of_5_11_without_churn(kept: Kept) -> None:
    found = churn.run_a("SRPT", 64, 20, 1, **{"changes a": "second", "t_med min": churn.STATIC})
    assert [at for at, _, _ in kept.publications] == [500.0 * (n + 1) for n in range(40)]
    twin, latency = kept.twin()
    assert found["latency"] == pytest.approx(latency)
    assert found["changes"] == 0.0
    assert 0.0 < found["false"] < 1.0
    assert found["false"] == pytest.approx(relayed(twin, kept) / found["moved"], rel=0.05)


def relayed(twin: Twin, kept: Kept) -> int:
    """Copies to nodes that do not hold the topic; the root is asked, and gets none."""
    return len(twin.relays - {kept.setting.root(TOPIC)}) * len(kept.publications)


def test_readings_of_5_11_change_as_often_as_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[float, float]] = []

    def noting(run: Run, median: float, every: float, until: float, rng: Random) -> int:
        asked.append((median, until))
        run.publish(0.0, 0)
        return 0

    monkeypatch.setattr(workloads, "churn", noting)
    for reading, minutes in (("second", 1), ("minute", 1), ("second", 30), ("second", "static")):
        churn.run_a("SRPT", 16, 5, 1, **{"changes a": reading, "t_med min": minutes})
    assert asked == [(60_000.0, 20_000.0), (3_600_000.0, 600_000.0), (1_800_000.0, 20_000.0),
                     (math.inf, 20_000.0)]  # fmt: skip
    asked.clear()
    for reading, percent in (("second", 1), ("second", 10), ("minute", 4)):
        churn.run_b("SRPT", reading, percent, 16, 5, 1)
    # The thesis's own medians: 69, 7 and (a second) 17 s.
    assert asked == [(pytest.approx(69_315.0, abs=1.0), 20_000.0),
                     (pytest.approx(6_931.0, abs=1.0), 20_000.0),
                     (pytest.approx(60 * 17_329.0, abs=60.0), 600_000.0)]  # fmt: skip


@pytest.mark.parametrize("publishers", [50, 64])
@pytest.mark.parametrize("queues", [brokered.ONE, brokered.TWO])
def test_a_point_of_5_12(queues: str, publishers: int, kept: Kept) -> None:
    found = brokered.run("SRPT-B", 8, queues, publishers, 64, 1)
    setting = kept.setting
    twin = Twin(8, setting.far_first)
    twin.guests = {b: [g for g in range(8, 64) if (g - 8) % 8 == b] for b in range(8)}
    twin.doors = queues == brokered.TWO
    latency = twin.play(kept.publications, {TOPIC: {*range(8)}}, {TOPIC: setting.root(TOPIC)})
    assert found["latency"] == pytest.approx(latency)
    assert found["tree"] + found["guests"] == pytest.approx(latency)
    assert len(kept.publications) == brokered.MESSAGES
    assert {node for _, node, _ in kept.publications} <= {*range(8, 64)}
    assert max(at for at, *_ in kept.publications) == pytest.approx(128 * 500 / publishers, rel=0.2)


def test_a_point_of_2_9_has_its_root_at_node_0(kept: Kept) -> None:
    found = trees.run(trees.SINGLE, workloads.CALIBRATED, 64, 1)
    assert kept.setting.root(TOPIC) == 0
    assert kept.runs[0].queue(0).copies == 64 * 6
    assert found["moved"] == 64 * 63 + 63
    assert all(at <= 400.0 for at, _, _ in kept.publications)


def test_figure_5_2_has_two_relays_and_one_hop_more() -> None:
    found = {node: example.run("SRPT", node, 1) for node in example.HOLDERS}
    assert {numbers["relays"] for numbers in found.values()} == {2}
    assert found[0]["most"] == 2
    assert {numbers["most"] for node, numbers in found.items() if node} == {3}
    run = Run(srpt_world, Setting(1, 8, {TOPIC: example.HOLDERS}, {TOPIC: 0}), meter=Paths)
    run.publish(0.0, 3)
    run.go()
    assert isinstance(run.meter, Paths)
    depths = {name: depth for name, depth in run.meter.depths.items() if name != "n0"}
    assert depths == {"n1": 2, "n2": 2, "n4": 2, "n3": 3, "n5": 3, "n6": 3}


# The root's queue, and what fills it.


@pytest.mark.parametrize(
    ("resend", "session_ms", "saturated"),
    [(True, 120.0, True), (False, 120.0, False), (True, 5000.0, False)],
)
def test_a_root_saturates_if_it_passes_many_changes_on(
    resend: bool, session_ms: float, saturated: bool
) -> None:
    """32 members with a median of 0.12 s change 370 times a second, which is 5 copies each. Without
    the changes sent again, or with sessions of 5 s, the root has little to do."""
    setting = Setting(1, 64, {TOPIC: range(0, 64, 2)}, resend=resend)
    run = Run(srpt_world, setting)
    changes = workloads.churn(run, session_ms, 500.0, 10_000.0, Random(1))
    run.go()
    root = run.queue(setting.root(TOPIC))
    assert (changes > 3000) is (session_ms < 1000.0)
    assert (root.mean_wait_s > 1000.0) is saturated
    assert (root.mean_wait_s < 20.0) is not saturated


# Workloads.


def test_members_are_replaced_one_by_one_and_publish() -> None:
    run = Run(srpt_world, Setting(1, 64, {TOPIC: range(20)}))
    steps: list[tuple[float, str, int]] = []
    run.publish = lambda at, node, topic=TOPIC: steps.append((at, "publish", node))  # type: ignore
    run.leave = lambda at, node, topic=TOPIC: steps.append((at, "leave", node))  # type: ignore
    run.join = lambda at, node, topic=TOPIC: steps.append((at, "join", node))  # type: ignore
    changes = workloads.churn(run, 2000.0, 500.0, 100_000.0, Random(1))
    members = {*range(20)}
    assert steps == sorted(steps, key=lambda step: step[0])
    for at, what, node in steps:
        assert at <= 100_000.0
        assert (node in members) is (what != "join")
        if what == "leave":
            members.remove(node)
        elif what == "join":
            assert len(members) == 19
            members.add(node)
    published = [at for at, what, _ in steps if what == "publish"]
    assert published == [500.0 * (number + 1) for number in range(200)]
    assert changes == len(steps) - 200
    # 20 members, half of whom leave within 2 s of their coming: 0.347 a second each.
    assert changes / 2 == pytest.approx(100 * 20 * 0.3466, rel=0.12)


def test_loads_are_what_their_names_say() -> None:
    rng = Random(1)
    means = {}
    for name, load in workloads.LOADS.items():
        drawn = [load.at(rng) for _ in range(2000)]
        means[name] = sum(drawn) / 2000
        spread = (sum((at - means[name]) ** 2 for at in drawn) / 2000) ** 0.5
        expected = {"exp": 1000.0, "Poi": 31.6, "even in 1": 288.7, "even in 4": 115.5}
        (wanted,) = [value for key, value in expected.items() if name.startswith(key)]
        assert spread == pytest.approx(wanted, rel=0.1)
    assert means == pytest.approx(
        dict(zip(means, (1000.0, 1000.0, 500.0, 200.0), strict=True)), rel=0.1
    )
    spreads = [load.propagation.std for load in workloads.CHAPTER_4]
    assert spreads == [25.0, 25.0, 25.0, 40.0]


def test_zipf_weights_fall_by_their_exponent() -> None:
    weights = workloads.zipf(128)
    assert sum(weights) == pytest.approx(1.0)
    assert weights[0] / weights[1] == pytest.approx(2.0**0.825)
    run = Run(srpt_world, Setting(1, 16, dict.fromkeys(("a", "b"), range(16))))
    last = workloads.stream(run, 800, ["a", "b"], [0.75, 0.25], 500.0, Random(1))
    kinds = [args for _, args in run.world.agenda.pending()]
    assert len(kinds) == 800
    assert sum(topic == "a" for _, topic, _ in kinds) == pytest.approx(600, abs=50)
    # 16 nodes, each every 500: 31.25 between two, and none publishes twice as often as another.
    assert last == pytest.approx(800 * 31.25, rel=0.1)
    each = [sum(name == node for name, _, _ in kinds) for node in run.names]
    assert 25 < min(each) <= max(each) < 75


@pytest.mark.parametrize("questions", [1, 3])
def test_every_other_node_answers_once_when_it_has_heard_all_questions(questions: int) -> None:
    run = Run(srpt_world, Setting(1, 32, {TOPIC: range(32)}))
    published: list[tuple[float, str]] = []
    publish = run.world.publish

    def noting(name: str, topic: str, value: dict[str, Any]) -> bool:
        published.append((run.world.agenda.now, name))
        return publish(name, topic, value)

    run.world.publish = noting  # type: ignore[method-assign]
    answers = workloads.Answers(run, questions, workloads.even(1000.0), Random(1))
    answers.begin()
    run.go()
    assert sorted(name for _, name in published) == sorted(run.names)
    asked = [name for at, name in published if at == 0.0]
    assert len(asked) == questions
    assert min(at for at, name in published if name not in asked) > 2 * 102.0
    assert run.latencies().count == 32 * 31


# The thesis's numbers.


def test_every_figure_and_table_of_the_evaluation_has_its_numbers() -> None:
    figures = {each.figure for each in thesis.STATED}
    wanted = "2.9 3.1 4.3 4.4 4.5 4.6 4.7 4.9 5.1 5.2 5.6 5.7 5.8 5.9 5.10 5.11a 5.11b 5.12"
    assert {*wanted.split(), "table 4.1", "table 4.2", "table 4.3", "table 5.1"} == figures
    places = [(each.figure, each.quantity, tuple(sorted(each.at.items())))
              for each in thesis.STATED]  # fmt: skip
    assert len(places) == len({*places})


def test_stated_numbers_agree_with_each_other_where_they_must() -> None:
    packets = [each for each in thesis.STATED if each.figure == "table 4.1"]
    for each in packets:
        nodes = each.at["nodes"]
        plain = thesis.stated("table 4.1", "packets", nodes=nodes)
        assert plain == nodes * (nodes - 1)
        aggregated = thesis.stated("table 4.1", "packets-aggregated", nodes=nodes)
        reduction = thesis.stated("table 4.1", "reduction[%]", nodes=nodes)
        assert 100.0 * (1.0 - aggregated / plain) == pytest.approx(reduction, abs=0.02)
    for curve in (thesis.PS, thesis.S):
        rows = [each.value for each in thesis.STATED
                if each.figure == "table 5.1" and each.quantity == curve]  # fmt: skip
        assert sum(rows) == 1024
    assert thesis.text("3.1", "entries", curve="causal barrier", nodes=1024) == "< 6"
    assert thesis.text("3.1", "entries", curve="nothing") == ""
    with pytest.raises(KeyError):
        thesis.stated("3.1", "entries", curve="nothing")


# The figures.
