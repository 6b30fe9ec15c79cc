"""Any schedule: memberships move, messages overtake each other, and causes come first."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inorder.protocols.causal import Client
from tests.protocols.causal.net import Net
from tests.protocols.causal.weakened import (
    ClearsBarrier,
    DirectAcross,
    DoesNotWaitForUnheard,
    IgnoresCounts,
    JoinsBlindly,
    WaitsForUnheard,
)

CALLS = ("subscribe", "unsubscribe", "publish")
TOPICS = ("a", "b", "c")


def churn(
    seed: int,
    stamps: str,
    kind: type[Client] = Client,
    size: int = 4,
    topics: tuple[str, ...] = ("t",),
    calls: int = 30,
    weights: tuple[int, int, int] = (2, 1, 6),
) -> Net:
    """A run with joins and leaves. Each pair of nodes and kind of message has a priority of its
    own in this run, which finds what overtakes what more often than equal chances do."""
    rng = Random(f"{seed}/{stamps}/{size}")
    net = Net(size, topics, stamps, kind, early=rng.random() < 0.5)
    for node in range(size):
        for topic in topics:
            if rng.random() < 0.6:
                net.subscribe(node, topic)
    if rng.random() < 0.5:
        net.settle(rng.randrange)
    ranks: dict[tuple[int, int, str], float] = {}
    strict = rng.random()

    while calls:
        if net.flying and rng.random() < 0.7:
            net.arrive(_ranked(net, ranks, rng, strict))
            continue
        calls -= 1
        call = rng.choices(CALLS, weights)[0]
        getattr(net, call)(rng.randrange(size), rng.choice(topics))
    while net.flying:
        net.arrive(_ranked(net, ranks, rng, strict))
    return net


def _ranked(
    net: Net, ranks: dict[tuple[int, int, str], float], rng: Random, strict: float = 0.8
) -> int:
    """Which message arrives next: of the highest rank, or now and then any."""
    if rng.random() > strict:
        return rng.randrange(len(net.flying))
    rank = [
        ranks.setdefault((source, target, message[0]), rng.random())
        for source, target, message in net.flying
    ]
    return rank.index(max(rank))


def faults(net: Net, across: bool = False) -> list[str]:
    found = {
        "late": net.judge.late["topic"],
        "repeated": net.judge.repeated,
        "missed": net.missed(),
        "unsound": net.unsound,
        "across": net.judge.late["across"] if across else [],
        "waiting": net.waiting(),
    }
    return [name for name, what in found.items() if what]


@pytest.mark.parametrize("stamps", ["barrier", "whole"])
def test_moving_members_keep_causal_order_and_miss_nothing(stamps):
    delivered = 0
    for seed in range(400):
        net = churn(seed, stamps, size=3 + seed % 4, calls=60, weights=(4, 2 + seed % 2, 6))
        assert faults(net, across=stamps == "whole") == [], f"seed {seed}"
        delivered += sum(len(net.judge.deliveries(node)) for node in range(6))
    assert delivered > 5000


def test_whole_stamps_keep_causal_order_across_topics():
    for seed in range(400):
        net = churn(seed, "whole", topics=TOPICS, calls=60)
        assert faults(net, across=True) == [], f"seed {seed}"


def test_barriers_keep_causal_order_of_each_of_several_topics():
    for seed in range(150):
        net = churn(seed, "barrier", topics=TOPICS, calls=60)
        assert faults(net) == [], f"seed {seed}"


@pytest.mark.parametrize("stamps", ["barrier", "clock", "whole"])
def test_members_that_stay_keep_causal_order(stamps):
    for seed in range(150):
        rng = Random(f"{seed}/static")
        net = Net(2 + seed % 5, stamps=stamps)
        net.preset()
        for _ in range(25):
            for _ in range(rng.randrange(4) if net.flying else 0):
                if net.flying:
                    net.arrive(rng.randrange(len(net.flying)))
            net.publish(rng.randrange(len(net.clients)), "t")
        net.settle(rng.randrange)
        assert faults(net, across=True) == [], f"seed {seed}"
        assert len(net.judge.deliveries(0)) == 25


STEPS = st.lists(
    st.tuples(st.sampled_from([*CALLS, "arrive", "arrive"]), st.integers(0, 30), st.integers(0, 1)),
    max_size=60,
)


@settings(max_examples=200)
@given(STEPS, st.sampled_from(["barrier", "whole"]), st.booleans(), st.booleans())
def test_no_schedule_breaks_the_order(steps, stamps, settled, early):
    net = Net(3, ("a", "b"), stamps, early=early)
    if settled:
        net.preset()
    for step, number, topic in steps:
        if step != "arrive":
            getattr(net, step)(number % 3, "ab"[topic])
        elif net.flying:
            net.arrive(number)
    net.settle(lambda size: size - 1)
    assert faults(net, across=stamps == "whole") == []


@settings(max_examples=60)
@given(STEPS, st.sampled_from(["barrier", "whole"]))
def test_a_client_behind_its_own_snapshot_behaves_alike(steps, stamps):
    """Every client is restored from its snapshot after every step."""
    nets = [Net(3, ("a", "b"), stamps, early=True) for _ in range(2)]
    for step, number, topic in steps:
        for net in nets:
            if step != "arrive":
                getattr(net, step)(number % 3, "ab"[topic])
            elif net.flying:
                net.arrive(number)
        nets[1].clients = [Client.restore(client.snapshot()) for client in nets[1].clients]
        assert [client.snapshot() for client in nets[0].clients] == [
            client.snapshot() for client in nets[1].clients
        ]
    for node in range(3):
        assert nets[0].judge.deliveries(node) == nets[1].judge.deliveries(node)


# Each rule is needed: without it some of these runs go wrong.


def scripted(seed: int, calls: list[tuple[str, int]], kind: type[Client]) -> Net:
    """Nodes 0 and 1 are in, and 2 if it is not to join; these calls, in any schedule."""
    rng = Random(f"{seed}/scripted")
    net = Net(3, kind=kind)
    for node in range(3):
        if ("subscribe", node) not in calls or ("unsubscribe", node) in calls:
            net.subscribe(node, "t")
    net.settle()
    ranks: dict[tuple[int, int, str], float] = {}
    for call, node in calls:
        while not getattr(net, call)(node, "t") or rng.random() < 0.3:
            if not net.flying:
                break
            net.arrive(_ranked(net, ranks, rng))
    while net.flying:
        net.arrive(_ranked(net, ranks, rng))
    return net


LATE_JOINER = [("subscribe", 2), ("publish", 0), ("publish", 1), ("publish", 1)]
RETURN = [("publish", 0), ("unsubscribe", 1), ("subscribe", 1), ("publish", 1)]


@pytest.mark.parametrize(
    ("kind", "calls", "fault"),
    [
        (DoesNotWaitForUnheard, [("publish", 0), ("publish", 1)], "late"),
        (WaitsForUnheard, LATE_JOINER, "waiting"),
        (IgnoresCounts, LATE_JOINER, "late"),
        (ClearsBarrier, RETURN, "late"),
    ],
)
def test_a_published_rule_breaks_some_schedule_of_a_few_calls(kind, calls, fault):
    broken = [fault in faults(scripted(seed, calls, kind)) for seed in range(3000)]
    assert any(broken)
    assert all(faults(scripted(seed, calls, Client)) == [] for seed in range(3000))


@pytest.mark.parametrize(
    ("kind", "fault", "size"),
    [
        (DoesNotWaitForUnheard, "late", 4),
        (WaitsForUnheard, "waiting", 4),
        (IgnoresCounts, "late", 8),
    ],
)
def test_a_published_rule_breaks_some_run_of_moving_members(kind, fault, size):
    how = {"size": size, "calls": 100, "weights": (4, 2, 6)}
    assert any(
        fault in faults(churn(seed, "barrier", kind, **how))  # type: ignore[arg-type]
        for seed in range(200)
    )


@pytest.mark.parametrize("kind", [DirectAcross, JoinsBlindly])
def test_less_than_whole_stamps_breaks_some_run_across_topics(kind):
    assert any(
        "across" in faults(churn(seed, "whole", kind, topics=TOPICS, calls=60), across=True)
        for seed in range(200)
    )
