from __future__ import annotations

import random
from itertools import combinations, permutations

import pytest

from inorder.check import BROKE, History, Verdict, judge

from .build import build, deliver, publish
from .random_history import any_history


def total(*rows: object) -> Verdict:
    return judge(build(*rows), ["total"])["total"]


def test_subscribers_that_share_one_order_agree() -> None:
    verdict = total(deliver("a", "p:1 q:1 p:2"), deliver("b", "p:1 p:2"), deliver("c", "q:1 p:2"))
    assert verdict.kept, BROKE["total"]
    assert verdict.also["acyclic"].kept


def test_two_subscribers_with_opposite_orders_disagree_once_a_pair() -> None:
    verdict = total(deliver("a", "p:1 p:2 p:3"), deliver("b", "p:3 p:2 p:1"))
    assert verdict.violations == 3
    assert verdict.witness == {
        "events": ["p:1", "p:2"],
        "subscribers": ["a", "b"],
        "nths": {"a": [1, 2], "b": [3, 2]},
    }


def test_the_same_two_events_count_for_every_two_subscribers() -> None:
    verdict = total(deliver("a", "p:1 p:2"), deliver("b", "p:2 p:1"), deliver("c", "p:2 p:1"))
    assert verdict.violations == 2
    assert verdict.counts["disagreeing_subscriber_pairs"] == 2


def test_a_late_delivery_that_is_tagged_breaks_nothing() -> None:
    assert total(deliver("a", "p:1 p:2"), deliver("b", "p:2 ?p:1")).kept


def test_a_repeated_delivery_counts_at_its_first_place() -> None:
    assert total(deliver("a", "p:1 p:2 p:1"), deliver("b", "p:1 p:2")).kept


def test_a_tagged_delivery_is_not_the_first_one_in_order() -> None:
    assert not total(deliver("a", "?p:1 p:2 p:1"), deliver("b", "p:1 p:2")).kept


def test_a_ring_of_three_keeps_total_but_has_a_cycle() -> None:
    verdict = total(deliver("a", "p:1 p:2"), deliver("b", "p:2 p:3"), deliver("c", "p:3 p:1"))
    assert verdict.kept
    ring = verdict.also["acyclic"]
    assert ring.violations == 1
    assert ring.witness is not None
    assert ring.witness["cycle"] == ["p:1", "p:2", "p:3"]
    assert [step["subscriber"] for step in ring.witness["because"]] == ["a", "b", "c"]


def test_the_cycle_shown_is_of_the_smallest_tangle() -> None:
    ring = total(
        deliver("a", "p:1 p:2"), deliver("b", "p:2 p:3"), deliver("c", "p:3 p:1"),
        deliver("d", "q:1 q:2"), deliver("e", "q:2 q:1"),
    ).also["acyclic"]  # fmt: skip
    assert ring.violations == 2
    assert ring.counts == {"tangles": 2, "events_in_tangles": 5}
    assert ring.witness is not None
    assert ring.witness["cycle"] == ["q:1", "q:2"]


def test_the_witness_is_the_closest_pair() -> None:
    verdict = total(
        publish("p:1"),
        deliver("a", "p:1 x:1 x:2 p:2 p:3"),
        deliver("b", "p:2 p:1 p:3"),
        deliver("c", "q:1 p:3 p:2"),
    )
    assert verdict.violations == 3
    assert verdict.witness is not None
    assert verdict.witness["events"] == ["p:2", "p:3"]
    assert verdict.witness["subscribers"] == ["a", "c"]


def test_a_foreign_log_is_enough() -> None:
    log = History.foreign([("a", 1, "x"), ("a", 2, "y"), ("b", 7, "y"), ("b", 9, "x")])
    verdict = judge(log, ["total"])["total"]
    assert verdict.violations == 1
    assert verdict.witness is not None
    assert verdict.witness["nths"] == {"a": [1, 2], "b": [9, 7]}


@pytest.mark.parametrize("seed", range(150))
def test_the_witness_is_the_closest_pair_of_all_and_the_cycle_the_shortest(seed: int) -> None:
    history = any_history(random.Random(seed))
    verdict = judge(history, ["total"])["total"]
    if verdict.witness is not None:
        first, then = verdict.witness["nths"][verdict.witness["subscribers"][0]]
        assert (then - first, first) == min(distances(history))
    ring = verdict.also["acyclic"]
    if ring.witness is not None:
        assert len(ring.witness["cycle"]) == shortest_cycle(history, ring.witness["cycle"])


def distances(history: History) -> list[tuple[int, int]]:
    """(distance, earlier place) at the first subscriber, for every disagreement."""
    at = {
        name: {row.event: row.nth for row in reversed(rows) if row.in_order}
        for name, rows in history.by_subscriber.items()
    }
    return [
        (at[a][f] - at[a][e], at[a][e])
        for a, b in combinations(sorted(at), 2)
        for e, f in permutations(sorted(set(at[a]) & set(at[b])), 2)
        if at[a][e] < at[a][f] and at[b][e] > at[b][f]
    ]


def shortest_cycle(history: History, cycle: list[str]) -> int:
    """The length of a shortest cycle of the events that reach, and are reached by, a given one."""
    before = {pair for sequence in history.sequences.values() for pair in combinations(sequence, 2)}
    inside = reach(before, cycle[0]) & reach({(f, e) for e, f in before}, cycle[0])
    edges = {(e, f) for e, f in before if e in inside and f in inside}
    length, walks = 1, edges
    while not any(e == f for e, f in walks):
        walks = {(e, g) for e, f in walks for other, g in edges if f == other}
        length += 1
    return length


def reach(edges: set[tuple[str, str]], start: str) -> set[str]:
    found = {start}
    while more := {f for e, f in edges if e in found} - found:
        found |= more
    return found


def test_twenty_subscribers_in_full_disorder_are_counted_exactly() -> None:
    rng = random.Random(1)
    names = [f"p:{n}" for n in range(1, 2001)]
    lines = []
    for s in range(20):
        rng.shuffle(names)
        lines += [(f"s{s:02}", place, event) for place, event in enumerate(names, 1)]
    log = History.foreign(lines)
    verdict = judge(log, ["total"])["total"]
    assert verdict.also["acyclic"].violations == 1
    pairs = 20 * 19 / 2 * 2000 * 1999 / 2
    assert 0.48 * pairs < verdict.violations < 0.52 * pairs
    some = set(names[:40])
    sample = History.foreign(
        [line for line in lines if line[2] in some and line[0] in ("s00", "s07", "s13")]
    )
    assert judge(sample, ["total"])["total"].violations == len(distances(sample))
