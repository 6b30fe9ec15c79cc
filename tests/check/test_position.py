"""What a subscriber was handed, beside where the events stand."""

from __future__ import annotations

import msgspec
import pytest

from inorder.check import BROKE, History, Verdict, judge

from .build import build, deliver, publish

PLACED = [publish(f"p:{n}", position=10 * n) for n in range(1, 5)]


def total(*rows: object) -> Verdict:
    return judge(build(*PLACED, *rows), ["total"])["total"]


def position(*rows: object) -> Verdict:
    return total(*rows).also["position"]


def test_the_order_of_positions_is_kept_with_gaps() -> None:
    verdict = total(deliver("a", "p:1 p:3 p:4"), deliver("b", "p:2 p:3"))
    assert not verdict.broken, BROKE["position"]
    assert verdict.also["position"].counts == {
        "late": 0, "in_order_deliveries": 5, "unplaced": 0,
    }  # fmt: skip


def test_a_subscriber_that_is_alone_breaks_total_by_positions() -> None:
    verdict = total(deliver("a", "p:1 p:3 p:2 p:4"))
    assert verdict.kept, "nobody contradicts it"
    assert verdict.broken, "but the positions do"
    assert verdict.also["position"].violations == 1
    assert verdict.also["position"].witness == {
        "events": ["p:3", "p:2"], "subscriber": "a", "nths": [2, 3], "positions": [30, 20],
    }  # fmt: skip


def test_two_that_agree_with_each_other_and_not_with_the_positions_break_it() -> None:
    verdict = total(deliver("a", "p:2 p:1"), deliver("b", "p:2 p:1"))
    assert verdict.kept
    assert verdict.broken
    assert verdict.also["position"].violations == 2


def test_every_delivery_below_what_came_before_counts_once() -> None:
    assert position(deliver("a", "p:4 p:1 p:2 p:3")).violations == 3
    assert position(deliver("a", "p:2 p:3 p:4 p:1")).violations == 1


def test_tagged_and_repeated_deliveries_break_nothing() -> None:
    assert position(deliver("a", "p:2 ?p:1 p:3")).kept
    assert position(deliver("a", "p:1 p:2 p:1")).kept


def test_two_events_at_one_position_are_one_violation() -> None:
    verdict = position(publish("q:1", position=10), deliver("a", "p:1 q:1 p:2"))
    assert verdict.violations == 1
    assert verdict.witness is not None
    assert verdict.witness["positions"] == [10, 10]


def test_the_witness_is_the_closest_pair_then_by_subscriber() -> None:
    verdict = position(
        deliver("a", "p:2 x:1 x:2 p:1"), deliver("c", "p:4 p:3"), deliver("b", "x:1 p:2 p:1")
    )
    assert verdict.witness is not None
    assert (verdict.witness["subscriber"], verdict.witness["nths"]) == ("b", [2, 3])


def test_events_without_a_position_are_counted_and_not_judged() -> None:
    verdict = position(publish("q:1"), deliver("a", "p:2 q:1 p:3"))
    assert verdict.kept
    assert verdict.counts["unplaced"] == 1


def test_without_any_position_there_is_nothing_to_compare() -> None:
    verdict = judge(build(publish("p:1"), deliver("a", "p:1")), ["total"])["total"]
    assert not verdict.also["position"].judged
    assert not verdict.broken


@pytest.mark.parametrize("seed", range(6))
def test_read_by_position_every_log_would_look_total(seed: int) -> None:
    """The control: a judge that sorts what was handed over by position sees nothing, ever."""
    import random

    rng = random.Random(seed)
    lines = []
    for name in ("a", "b"):
        events = [f"p:{n}" for n in range(1, 5)]
        rng.shuffle(events)
        if events == sorted(events):
            events.reverse()
        lines.append(deliver(name, " ".join(events)))
    honest = build(*PLACED, *lines)
    assert judge(honest, ["total"])["total"].broken
    at = {row.event: row.position for row in honest.events or ()}
    by_position = [msgspec.structs.replace(row, nth=at[row.event]) for row in honest.deliveries]
    fooled = History(by_position, honest.events, honest.subscriptions)
    assert not judge(fooled, ["total"])["total"].broken


# The lives of a publisher.


def test_a_later_life_begins_again_at_one_and_is_later() -> None:
    lives = [publish("p:1"), publish("p:2"), publish("p:2:1"), publish("p:2:2")]
    right = build(*lives, deliver("a", "p:1 p:2 p:2:1 p:2:2"))
    assert judge(right, ["fifo"])["fifo"].kept
    wrong = judge(build(*lives, deliver("a", "p:1 p:2:1 p:2")), ["fifo"])["fifo"]
    assert wrong.violations == 1
    assert wrong.witness is not None
    assert wrong.witness["events"] == ["p:2:1", "p:2"]


def test_one_number_in_two_lives_is_no_double() -> None:
    build(publish("p:1"), publish("p:2:1"))


def test_a_delivery_under_another_life_is_altered() -> None:
    history = build(publish("p:1"), deliver("a", "p:1"))
    [row] = history.deliveries
    row.epoch = 2
    altered = History([row], history.events, [])
    assert judge(altered, ["reliable"])["reliable"].also["integrity"].counts["altered"] == 1
