"""Chapter 4's figures: points computed again, and relations that hold for every seed."""

from __future__ import annotations

import doctest
from collections import Counter
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any

import pytest
from experiments.cube import aggregation, bundles, chapter4, entries, shown, trees, vcube, workloads
from experiments.cube.chapter4 import AGGR, PLAIN, Bundles, Played
from experiments.cube.world import TOPIC, Run
from experiments.figure import Row

from inorder.protocols.cube.messages import Pub
from tests.protocols.cube.twins import slow_down

LOAD = workloads.CALIBRATED


@pytest.fixture(scope="module")
def numbers() -> dict[str, Any]:
    return chapter4.run(LOAD, 64, 50, "source", 1)


class Twin:
    """Trees of their own, one message each, delays by message and link, whole pasts as stamps."""

    def __init__(self, nodes: int, seed: int, publications: list[tuple[float, int]]) -> None:
        self.nodes, self.seed = nodes, seed
        self.law = workloads.LOADS[LOAD].propagation
        self.free: dict[int, float] = {}
        self.waits: list[float] = []
        self.received: dict[tuple[int, int], float] = {}
        self.delivered: dict[tuple[int, int], float] = {}
        self.past: dict[int, set[int]] = {}
        self.published: dict[int, float] = {}
        self.order, self.heap = count(), []
        for at, node in publications:
            heappush(self.heap, (at, next(self.order), node, node, (nodes - 1).bit_length()))
        self.play()

    def play(self) -> None:
        had: list[set[int]] = [set() for _ in range(self.nodes)]
        pending: list[set[int]] = [set() for _ in range(self.nodes)]
        while self.heap:
            now, _, node, source, height = heappop(self.heap)
            if node == source:
                self.past[source] = {*had[node]}
                self.published[source] = now
                had[node].add(source)
            else:
                self.received[source, node] = now - self.published[source]
                pending[node].add(source)
                self.deliver(node, now, had[node], pending[node])
            for child in reversed(slow_down(node, height, {*range(self.nodes)} - {source})):
                below = (node ^ child).bit_length() - 1
                heappush(self.heap, (self.sent(source, node, child, now), next(self.order), child,
                                     source, below))  # fmt: skip

    def deliver(self, node: int, now: float, had: set[int], pending: set[int]) -> None:
        while ready := [each for each in pending if self.past[each] <= had]:
            for each in ready:
                pending.remove(each)
                had.add(each)
                self.delivered[each, node] = now - self.published[each]

    def sent(self, source: int, node: int, child: int, now: float) -> float:
        begun = max(now + 1.0, self.free.get(node, 0.0))
        self.free[node] = begun + 1.0
        self.waits.append(begun - now - 1.0)
        digits = len(str(self.nodes - 1))
        link = f"n{node:0{digits}}/n{child:0{digits}}"
        rng = Random(f"{self.seed}/paired/{TOPIC}/{source}:1/{link}")
        return begun + 1.0 + self.law.draw(rng)


def test_a_point_without_aggregation(monkeypatch: pytest.MonkeyPatch) -> None:
    publications: list[tuple[float, int]] = []
    publish = Run.publish

    def publishing(run: Run, at: float, node: int, topic: str = TOPIC) -> None:
        publications.append((at, node))
        publish(run, at, node, topic)

    monkeypatch.setattr(Run, "publish", publishing)
    found = Played(LOAD, 32, 50, "source", 2, False).numbers()
    twin = Twin(32, 2, publications)
    received = sum(twin.received.values()) / len(twin.received)
    delivered = sum(twin.delivered.values()) / len(twin.delivered)
    assert found["reception"] == pytest.approx(received)
    assert found["delivery"] == pytest.approx(delivered)
    assert found["held"] == pytest.approx(delivered - received)
    assert found["longest"] == pytest.approx(max(twin.received.values()))
    assert found["wait"] == pytest.approx(sum(twin.waits) / len(twin.waits))
    assert found["packets"] == len(twin.waits) == 32 * 31
    late = sum(twin.delivered[key] > at + 1e-9 for key, at in twin.received.items())
    assert found["delayed"] == late
    sizes = [len(past) for past in twin.past.values()]
    assert found["rests on none"] == sizes.count(0) / 32
    assert found["rests on most"] == max(sizes)
    bytes_ = Counter(20 + 50 + 2 + 4 * (1 + size) for size in sizes)
    assert found["most bytes"] == max(bytes_)
    assert found["bytes"] == 31 * sum(size * n for size, n in bytes_.items())
    assert found["cost"] == 2.0 * 32 * 31 + found["bytes"] / 4.0


@pytest.mark.parametrize("way", ["source", "single"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_both_runs_send_the_same_messages_over_the_same_edges(
    way: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    edges: list[Counter[tuple[int, str, str]]] = []
    note = Bundles._note

    def noting(meter: Bundles, source: str, target: str, pubs: list[Pub[Any]]) -> None:
        edges[-1].update((pub.source, source, target) for pub in pubs)
        note(meter, source, target, pubs)

    monkeypatch.setattr(Bundles, "_note", noting)
    packets = []
    for aggr in (False, True):
        edges.append(Counter())
        played = Played(LOAD, 32, 50, way, seed, aggr)
        packets.append(played.meter.packets)
        assert played.run.latencies().count == 32 * 31, "everybody has everything"
    plain, aggregated = edges
    assert plain == aggregated
    assert max(plain.values()) == 1
    assert packets[1] < packets[0] == sum(plain.values())


def test_aggregation_reduces_packets_bytes_and_cost(numbers: dict[str, Any]) -> None:
    assert numbers["plain packets"] == 64 * 63
    assert 0.07 < numbers["packets"] < 0.2
    assert 0.0 < numbers["bytes"] < numbers["cost"] < numbers["packets"]
    # A header less for each packet less, and nothing else.
    spared = numbers["plain packets"] - numbers["aggr packets"]
    assert numbers["plain bytes"] - numbers["aggr bytes"] == 20 * spared


def test_shares_are_of_everything(numbers: dict[str, Any]) -> None:
    for way in (PLAIN, AGGR):
        of_all = sum(numbers[f"{way} of all {name}"] for name in chapter4.SEVERAL)
        assert of_all == pytest.approx(1.0)
        assert sum(numbers[f"{way} bytes {name}"] for name in chapter4.SIZES) == pytest.approx(1.0)
        rests = ("none", "1 to 4", "5 to 9", "10 to 12", "above 12")
        assert sum(numbers[f"{way} rests on {name}"] for name in rests) == pytest.approx(1.0)
    several = sum(numbers[f"aggr of several {name}"] for name in chapter4.SEVERAL[1:])
    assert several == pytest.approx(1.0)
    assert numbers["plain several"] == 0.0
    assert numbers["aggr several"] == pytest.approx(1.0 - numbers["aggr of all 1"])


def test_messages_in_packets_of_two_come_later_and_are_held_less(numbers: dict[str, Any]) -> None:
    assert numbers["in twos"] > 100
    assert numbers["twos aggr reception"] > numbers["twos plain reception"]
    assert numbers["twos aggr held"] < 0.6 * numbers["twos plain held"]
    assert numbers["twos aggr delivery"] == pytest.approx(numbers["twos plain delivery"], rel=0.05)


def test_eight_nodes_hardly_aggregate() -> None:
    several = [chapter4.run(LOAD, 8, 50, "source", seed) for seed in range(1, 6)]
    assert sum(each["aggr aggregations"] for each in several) <= 3


def test_the_stated_load_aggregates_far_less(numbers: dict[str, Any]) -> None:
    stated = chapter4.run(workloads.STATED, 64, 50, "source", 1)
    assert stated["packets"] < 0.5 * numbers["packets"]
    assert stated["plain rests on above 12"] > 3 * numbers["plain rests on above 12"]


def test_a_single_tree_aggregates_less(numbers: dict[str, Any]) -> None:
    single = chapter4.run(LOAD, 64, 50, "single", 1)
    assert single["aggr aggregations"] < 0.5 * numbers["aggr aggregations"]
    assert single["aggr delayed"] < 0.5 * numbers["aggr delayed"]
    assert single["plain reception"] > numbers["plain reception"] + 80.0


def test_small_messages_fit_in_larger_packets() -> None:
    small, large = (Played(LOAD, 128, payload, "source", 1, True) for payload in (5, 400))
    assert large.run.account("packets_full") > 0
    assert small.run.account("packets_full") == 0
    assert max(small.meter.messages) > max(large.meter.messages)
    assert max(large.meter.bytes) <= 1500
    assert large.numbers()["full"] > 0


def test_the_most_that_is_held_is_counted_moment_by_moment() -> None:
    times = chapter4.Times(2)
    times._steps[0] = [(1.0, 1), (2.0, 1), (3.0, -1), (3.0, 1), (4.0, -1), (5.0, -1)]
    assert times.most_held() == [2, 0]


# Chapter 2 and 3.


def test_a_point_of_2_9_with_a_tree_a_source() -> None:
    single, multiple = (trees.run(curve, "even in 1000", 64, 1) for curve in trees.TREES)
    assert multiple["latency"] + 80.0 < single["latency"] < multiple["latency"] + 160.0
    hard = {nodes: [trees.run(curve, LOAD, nodes, 1) for curve in trees.TREES]
            for nodes in (32, 128)}  # fmt: skip
    saturated, calm = (hard[128][place]["root"] for place in (0, 1))
    assert saturated > 100.0 > 10.0 > calm, "the single root saturates"
    assert hard[32][0]["root"] < 10.0


def test_a_point_of_3_1(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock names each source heard of since one's own message before, a barrier the last."""
    sent: list[dict[tuple[int, int], int]] = []
    play = entries.play

    def playing(nodes: int, stamps: Any, seed: int) -> Run:
        run = play(nodes, stamps, seed)
        assert isinstance(run.meter, entries.Stamps)
        sent.append(run.meter.entries)
        return run

    monkeypatch.setattr(entries, "play", playing)
    monkeypatch.setattr(entries, "SHARE", 1.0)
    found = entries.run(16, 1)
    barriers, clocks = sent
    assert barriers.keys() == clocks.keys()
    assert len(barriers) == found["messages"] == 16
    assert all(barriers[key] <= clocks[key] for key in clocks)
    assert found[entries.CLOCK] == sum(clocks.values()) / 16
    assert found[entries.CLOCK] > found[entries.BARRIER] > 0.0
    assert found["indirect"] == max(clocks[key] - barriers[key] for key in clocks)
    # The first message rests on nothing.
    assert 0 in barriers.values()


def test_a_slow_rate_makes_barriers_of_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "SHARE", 1.0)
    monkeypatch.setattr(entries, "RATE", 1e-5)
    barriers = entries.play(16, "barrier", 1).meter
    clocks = entries.play(16, "clock", 1).meter
    assert isinstance(barriers, entries.Stamps)
    assert isinstance(clocks, entries.Stamps)
    assert {*barriers.entries.values()} <= {0, 1}
    assert max(clocks.entries.values()) > 4


# Figures.


def test_figures_of_the_same_runs_keep_them_once() -> None:
    assert {figure.kept_as for figure in aggregation.FIGURES} == {"chapter-4"}
    for figure in aggregation.FIGURES:
        for point in (*figure.points(True), *figure.points(False)):
            assert {*point} == {"load", "nodes", "payload", "trees"}
        assert max(point["nodes"] for point in figure.points(True)) <= 128


def test_every_column_and_claim_of_chapter_4_is_measured(numbers: dict[str, Any]) -> None:
    for figure in aggregation.FIGURES:
        for column in figure.columns:
            assert column.key in numbers, column.key
        rows = [Row(point, [numbers]) for point in figure.points(False)]
        lines = figure.judge(rows)
        assert lines, figure.name
        assert all("reproduced: " in line for line in lines)
        for name, picture in figure.charts(rows).items():
            assert name == f"figure-{figure.name}.svg"
            assert "<polyline" in picture


def test_claims_of_table_4_1_are_judged_by_what_is_stated(numbers: dict[str, Any]) -> None:
    def judged(packets: float) -> list[str]:
        changed = {**numbers, "plain packets": 65280, "aggr packets": packets}
        point = {"load": LOAD, "nodes": 256, "payload": 50, "trees": "source"}
        return bundles.judge_41([Row(point, [changed])])

    assert judged(49262)[0].startswith("reproduced: ")
    assert judged(65280)[0].startswith("NOT reproduced: ")
    assert bundles.paper_41({"nodes": 256}) == "49262 (-24.54 %), 15.41 %"
    assert shown.where([], nodes=1) == []
    assert vcube.HEADER == 20


def test_examples_in_the_docstrings_are_true() -> None:
    found = doctest.testmod(chapter4)
    assert found.attempted > 3
    assert found.failed == 0


def test_a_packet_as_large_as_the_largest_plain_one_is_not_above_it() -> None:
    alone = chapter4.run(LOAD, 8, 50, "source", 1)
    assert alone["aggr aggregations"] == 0
    assert alone["above all plain"] == 0.0
