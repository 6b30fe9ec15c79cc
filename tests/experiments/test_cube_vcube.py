"""VCube-PS in the thesis's figures: one point of each, computed again by slow twins."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any

import pytest
from experiments.cube import (
    answers,
    brokered,
    churn,
    example,
    several,
    single,
    thesis,
    topics,
    vcube,
    versus,
    workloads,
)
from experiments.cube.meter import Meter, Trace
from experiments.cube.world import TOPIC, Links, Run, Setting, vcube_world
from experiments.figure import Row

from inorder.core.event import event_id
from inorder.protocols.cube.messages import PUB, Ack, Packet, Pub
from inorder.sim.laws import Constant, Normal
from inorder.sim.models import Ideal
from tests.protocols.cube.twins import slow_down

PS = vcube.VCUBE


class Twin:
    """Publications over trees of their own, copy by copy, acknowledgements left out."""

    def __init__(self, size: int, propagation: float = 100.0) -> None:
        self.depth = (size - 1).bit_length()
        self.hop = propagation
        self.free: dict[int, float] = {}
        self.waits: dict[int, list[float]] = {}
        self.latencies: list[float] = []

    def play(
        self, publications: list[tuple[float, int, str]], members: dict[str, set[int]]
    ) -> float:
        order, heap = count(), []
        for at, node, topic in publications:
            heappush(heap, (at, next(order), node, self.depth, (at, topic, node)))
        while heap:
            now, _, node, height, message = heappop(heap)
            at, topic, source = message
            if node != source:
                self.latencies.append(now - at)
            # The largest sub-cube first. Nobody sends back: a source is not among its receivers.
            for child in reversed(slow_down(node, height, members[topic] - {source})):
                below = (node ^ child).bit_length() - 1
                heappush(heap, (self.sent(node, now), next(order), child, below, message))
        return sum(self.latencies) / len(self.latencies)

    def sent(self, node: int, now: float) -> float:
        begun = max(now + 1.0, self.free.get(node, 0.0))
        self.free[node] = begun + 1.0
        self.waits.setdefault(node, []).append(begun - now - 1.0)
        return begun + 1.0 + self.hop


class Kept:
    """What a figure's own code asked of its run."""

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

    def twin(self, propagation: float = 100.0) -> tuple[Twin, float]:
        (run,) = self.runs
        twin = Twin(run.setting.size, propagation)
        members = {topic: {*some} for topic, some in run.setting.members.items()}
        return twin, twin.play(self.publications, members)


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Kept:
    return Kept(monkeypatch)


# A point of each figure.


def test_vcube_needs_no_relays_where_the_single_tree_has_two() -> None:
    for node in example.HOLDERS:
        assert example.run(PS, node, 1)["relays"] == 0
        assert example.run("SRPT", node, 1)["relays"] == 2


@pytest.mark.parametrize(("share", "nodes"), [(25, 64), (100, 32), (30, 128)])
def test_a_point_of_5_6_and_5_7(share: int, nodes: int, kept: Kept) -> None:
    found = single.run(PS, single.FAR, share, nodes, 3)
    twin, latency = kept.twin()
    assert found["latency"] == pytest.approx(latency)
    assert found["last"] == pytest.approx(max(twin.latencies))
    assert found["pubs"] == sum(map(len, twin.waits.values())) == nodes * share // 100 - 1
    # Every publication is acknowledged, and that is moved, too.
    assert found["moved"] == 2 * found["pubs"]


@pytest.mark.parametrize(("propagation", "share"), [(100, 25), (100, 100), (1000, 100)])
def test_a_point_of_5_8(propagation: int, share: int, kept: Kept) -> None:
    found = several.run_58(PS, propagation, share, 64, 2)
    twin, latency = kept.twin(float(propagation))
    assert found["latency"] == pytest.approx(latency)
    waits = [wait for some in twin.waits.values() for wait in some]
    assert found["wait"] == pytest.approx(sum(waits) / len(waits))


def test_a_point_of_table_5_1(kept: Kept) -> None:
    found = several.run_51(PS, several.MET, 64, 1)
    twin, _ = kept.twin()
    lengths = [1.0 + sum(twin.waits[node]) / len(twin.waits[node]) for node in range(64)]
    assert found["to 2"] == sum(length <= 2.0 for length in lengths)
    assert found["to 4"] == sum(2.0 < length <= 4.0 for length in lengths)
    assert sum(found[name] for name in several.NAMES) == 64


def test_a_point_of_5_10(kept: Kept) -> None:
    found = topics.run(PS, topics.ZIPF, 16, 32, 1)
    pairs = [(node, topic) for _, node, topic in kept.publications]
    assert len(pairs) == len({*pairs}), "nobody waits for an acknowledgement before it publishes"
    _, latency = kept.twin()
    assert found["latency"] == pytest.approx(latency)


def test_a_point_of_5_11_without_churn(kept: Kept) -> None:
    found = churn.run_a(PS, 64, 20, 1, **{"changes a": "second", "t_med min": churn.STATIC})
    _, latency = kept.twin()
    assert found["latency"] == pytest.approx(latency)
    assert found["false"] == 0.0


def test_publications_to_peers_that_have_left_are_false_positives() -> None:
    """3.5 of 20 members go each second, and are addressed until they are out of all views."""
    nodes, members = 64, 20
    found = churn.run_b(PS, "second", 20, nodes, members, 1)
    assert found["changes"] == pytest.approx(20 * 0.2, rel=0.3)
    assert 0.0 < found["false"] < 0.2
    # Counted again: copies to peers that hold nothing when the copies come.
    setting = Setting(1, nodes, {TOPIC: range(members)})
    run = Run(vcube_world, setting)
    workloads.churn(run, 2000.0, 500.0, 20_000.0, Random(1))
    strangers = 0
    hand_over = run.world.network._hand_over

    def watching(source: str, target: str, message: Any, *rest: Any) -> None:
        nonlocal strangers
        if type(message) is Pub:
            strangers += TOPIC not in run.world.nodes[target].held
        hand_over(source, target, message, *rest)

    run.world.network._hand_over = watching
    run.go()
    # A member that waits for its publications to be acknowledged is one still.
    assert 0 < run.account("relays") <= strangers


def test_a_point_of_5_12(kept: Kept) -> None:
    found = brokered.run(PS, 0, brokered.ONE, 50, 32, 1)
    assert len(kept.publications) == brokered.MESSAGES
    assert found["latency"] > 3 * 102.0 * 0.8
    assert found["moved"] == 2 * brokered.MESSAGES * 31


# Figure 5.9.


class Pasts(Trace):
    """Every node's deliveries in order, its own publications among them."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[Any] = []

    def write(self, table: str, row: Any) -> None:
        super().write(table, row)
        if table == "deliveries":
            self.rows.append(row)

    def direct(self) -> Iterator[tuple[str, int]]:
        """Of each publication: how many causes it has that none of its other causes rests on."""
        heard: dict[str, set[str]] = {}
        past: dict[str, set[str]] = {}
        for row in self.rows:
            mine = heard.setdefault(row.subscriber, set())
            if row.publisher == row.subscriber:
                past[row.event] = {*mine}
                own = {event for event in mine if event.startswith(f"{row.publisher}:")}
                covered = {each for event in mine for each in past[event]}
                yield row.event, len(mine - covered - own)
            mine.add(row.event)


@pytest.mark.parametrize("questions", [1, 3])
def test_a_point_of_5_9(questions: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pasts = Pasts()
    monkeypatch.setattr(answers, "Waits", lambda: pasts)
    pasts.waits = []  # type: ignore[attr-defined]
    found, _ = answers.play(24, questions, "exponential", 100.0, 0.0, 1)
    assert isinstance(found.meter, answers.Stamps)
    entries = {event_id(found.names[source], number): size
               for (source, number), size in found.meter.entries.items()}  # fmt: skip
    assert entries == dict(pasts.direct())
    assert len(entries) == 24


def test_the_numbers_of_5_9_are_shares_of_the_same_messages() -> None:
    found = answers.run(16, 1, "exponential", 100.0, 0.0, 1)
    assert found["messages"] == 16 * 15
    counts = found["dependencies"]
    assert found["fewer than 5"] == sum(n for size, n in counts.items() if size < 5) / 16
    assert found["fewer than 15"] == sum(n for size, n in counts.items() if size < 15) / 16
    assert found["one"] == counts[1] / 16
    assert 0.0 < found["one"] <= found["fewer than 5"] <= found["fewer than 15"] <= 1.0
    assert found["not held"] <= found["below 10"]
    assert sum(found["dependencies"].values()) == 16
    assert found["dependencies"][0] == 1, "the question rests on nothing"


def test_answers_wait_for_all_questions() -> None:
    found = answers.run(16, 10, "even", 100.0, 0.0, 1)
    # Ten rest on nothing; whoever answers has heard all ten.
    assert found["dependencies"][0] == 10
    assert max(found["dependencies"]) >= 10


# Acknowledgements.


def test_a_publisher_stops_and_waits() -> None:
    """The second publication of a node is made when everybody has acknowledged the first."""
    last = {}
    for window in (None, 2):
        cube = vcube.Cube() if window is None else vcube.Cube(window=window)
        run = Run(vcube_world, Setting(1, 8, {TOPIC: range(8)}, cube=cube))
        for _ in range(2):
            run.publish(0.0, 3)
        run.go()
        last[window] = run.world.agenda.now
    # Three hops there and three back, twice; with a window of 2 both at once.
    assert last[None] > 1.9 * last[2]
    assert last[None] == pytest.approx(2 * 6 * 102.0, abs=10.0)


def test_acknowledgements_beside_delay_nobody() -> None:
    model = vcube.Beside(Meter(Ideal()), 102.0)
    pub, ack = Pub("t", 1, 1, b"", None), Ack(PUB, "t", 1, 1)
    rng = Random(1)
    for message, after in (
        (pub, 0.0), (ack, 102.0), (Packet((ack, ack)), 102.0), (Packet((ack, pub)), 0.0),
    ):  # fmt: skip
        model.show(message)
        assert model.arrival("a", "b", 0, 5.0, rng) == 5.0 + after


def test_acknowledgements_in_the_queues_make_others_wait() -> None:
    waits = {}
    for name, cube in (("beside", vcube.Cube()), ("queued", vcube.QUEUED)):
        run = Run(vcube_world, Setting(1, 64, {TOPIC: range(64)}, cube=cube))
        workloads.one_each(run, range(64), workloads.even(100.0), Random(1))
        run.go()
        waits[name] = sum(queue.waited_s for queue in run.packet.queues.values())
        copies = sum(queue.copies for queue in run.packet.queues.values())
        assert copies == 64 * 63 * (1 if name == "beside" else 2)
        assert run.meter.moved == 2 * 64 * 63
    assert waits["queued"] > 1.05 * waits["beside"]


def test_sizes_are_those_of_the_thesis() -> None:
    from inorder.core.event import Event
    from inorder.protocols.causal.messages import Published

    event = Event("n1", 1, "t", {}, 0.0)
    pub = Pub("t", 1, 1, b"", Published(event, ((2, 1), (3, 1)), ()))
    assert vcube.Thesis(50).of(pub) == 50 + 2 + 4 * 3
    assert vcube.Thesis(5).of(pub) == 5 + 2 + 4 * 3
    assert vcube.Thesis(50).of(Ack(PUB, "t", 1, 1)) == 0


# Claims.


def rows_of(point: dict[str, Any], **numbers: float) -> Row:
    return Row(point, [numbers])


def test_claims_of_one_publisher_are_judged() -> None:
    at = {"nodes": 4096, "share": 25}
    rows = [
        rows_of({"curve": PS, "order": single.FAR, **at}, latency=533.0, pubs=1023.0),
        rows_of({"curve": "SRPT", "order": single.FAR, **at}, latency=720.0, pubs=1830.0),
    ]
    lines = versus.by_size(rows)
    assert any(line.startswith("reproduced: (5.6) latency, VCube-PS below") for line in lines)
    assert any(line.startswith("reproduced: (5.6) PUB, VCube-PS below") for line in lines)
    worse = [rows_of(rows[0].settings, latency=700.0, pubs=1023.0), rows[1]]
    assert versus.by_size(worse)[0].startswith("NOT reproduced: (5.6) latency")


def test_claims_of_several_publishers_are_judged() -> None:
    def point(curve: str, share: int, nodes: int, latency: float) -> Row:
        settings = {"curve": curve, "propagation": 100, "share": share, "nodes": nodes}
        return rows_of(settings, latency=latency, wait=1.0)

    rows = [
        point(PS, 25, 4096, 100.0), point(PS, 100, 4096, 138.8), point(PS, 100, 256, 100.0),
        point("SRPT", 100, 256, 248.0), point(PS, 100, 128, 300.0),
        point("SRPT", 100, 128, 402.0),
    ]  # fmt: skip
    assert all(line.startswith("reproduced: ") for line in versus.publishers(rows))
    rows[1] = point(PS, 100, 4096, 300.0)
    assert versus.publishers(rows)[0].startswith("NOT reproduced: ")


def test_claims_of_churn_are_judged() -> None:
    def rate(percent: int, latency: float, false: float) -> Row:
        settings = {"curve": PS, "a": "second", "percent": percent}
        return rows_of(settings, latency=latency, false=false, wait=20.0)

    good = versus.rates([rate(1, 100.0, 0.002), rate(10, 255.0, 0.022)])
    assert len(good) == 3
    assert all(line.startswith("reproduced: ") for line in good)
    bad = versus.rates([rate(1, 100.0, 0.002), rate(10, 100.0, 0.1)])
    assert [line.startswith("NOT") for line in bad] == [True, True, False]


def test_an_event_waits_at_its_source_for_the_one_before_it() -> None:
    calls = topics.Calls()
    run = Run(vcube_world, Setting(1, 2, {"t": range(2), "u": range(2)}), trace=calls)
    for topic in ("t", "t", "u"):
        run.publish(0.0, 0, topic)
    run.go()
    # A hop is 102, and so is an acknowledgement: the second of t leaves at 204. That of u leaves at
    # once, and waits a unit of time in the queue.
    assert run.latencies().reception == pytest.approx((102.0 + 102.0 + 103.0) / 3)
    assert calls.latency == pytest.approx((102.0 + 306.0 + 103.0) / 3)


def test_in_a_single_tree_nothing_waits_at_its_source() -> None:
    found = topics.run("SRPT", topics.ZIPF, 16, 64, 1)
    assert found["call"] == pytest.approx(found["latency"])


def test_delays_of_5_9_vary_as_much_as_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def noting(build: Any, setting: Any, links: Links, **options: Any) -> Run:
        asked.append(links.propagation)
        return Run(build, setting, links, **options)

    monkeypatch.setattr(answers, "Run", noting)
    for sd in (0.0, 7.0):
        answers.play(8, 1, "exponential", 100.0, sd, 1)
    assert asked == [Constant(mean=100.0), Normal(mean=100.0, std=7.0)]
    assert {point["sd"] for point in answers.points(False)} == {0.0, answers.SPREAD}


def test_waits_for_answers_have_the_mean_that_is_asked_for() -> None:
    rng = Random(1)
    for law in answers.LAWS.values():
        drawn = [law(100.0)(rng) for _ in range(4000)]
        assert sum(drawn) / 4000 == pytest.approx(100.0, rel=0.05)


def test_how_long_is_told_by_the_deliveries_that_waited(monkeypatch: pytest.MonkeyPatch) -> None:
    _, waits = played = answers.play(16, 1, "exponential", 100.0, 0.0, 1)
    waits.waits = [0.0, 0.0, 5.0, 20.0, 51.0]
    monkeypatch.setattr(answers, "play", lambda *args: played)
    found = answers.run(16, 1, "exponential", 100.0, 0.0, 1)
    assert (found["not held"], found["below 10"], found["above 50"]) == (0.4, 0.6, 1)
    assert found["longest"] == 51.0


def test_claims_of_sessions_and_brokers_and_queues_are_judged() -> None:
    def session(median: object, latency: float) -> Row:
        settings = {"curve": PS, "changes a": "second", "t_med min": median, "nodes": 4096,
                    "subscribers": 500}  # fmt: skip
        return rows_of(settings, latency=latency)

    still = session("static", 100.0)
    assert versus.sessions([still, session(1, 109.0)])[0].startswith("reproduced: ")
    assert versus.sessions([still, session(1, 111.0)])[0].startswith("NOT reproduced: ")
    at = {"publishers": 50, "queues": "one"}
    rows = [
        rows_of({"curve": PS, **at, "brokers": 0}, latency=78.0),
        rows_of({"curve": "SRPT-B", **at, "brokers": 256}, latency=100.0),
    ]
    assert [line[:11] for line in versus.brokers(rows)] == ["reproduced:"] * 2
    row = rows_of({"curve": PS, "mean": several.MET, "nodes": 1024},
                  **{name: thesis.stated("table 5.1", PS, queue=name, nodes=1024)
                     for name in several.NAMES[:-1]})  # fmt: skip
    lines = versus.queues([row], several.NAMES[:-1], several.MET)
    assert len(lines) == 9
    assert all(line.startswith("reproduced: ") for line in lines)
