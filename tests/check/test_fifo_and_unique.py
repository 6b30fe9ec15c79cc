from __future__ import annotations

from inorder.check import BROKE, History, Verdict, judge

from .build import build, deliver, publish


def fifo(*rows: object) -> Verdict:
    return judge(build(*rows), ["fifo"])["fifo"]


def unique(*rows: object) -> Verdict:
    return judge(build(*rows), ["unique"])["unique"]


def test_a_publishers_events_come_in_the_order_of_their_numbers() -> None:
    assert fifo(deliver("a", "p:1 q:5 p:2 q:9 p:7")).kept, BROKE["fifo"]


def test_an_earlier_event_after_a_later_one_is_counted() -> None:
    verdict = fifo(deliver("a", "p:1 p:4 p:2 p:3"))
    assert verdict.violations == 2
    assert verdict.witness == {
        "subscriber": "a",
        "publisher": "p",
        "events": ["p:4", "p:2"],
        "numbers": [4, 2],
        "nths": [2, 3],
    }


def test_a_tagged_delivery_neither_breaks_fifo_nor_sets_the_mark() -> None:
    assert fifo(deliver("a", "p:2 ?p:1")).kept
    assert fifo(deliver("a", "?p:2 p:1")).kept


def test_two_topics_of_a_publisher_are_judged_apart_and_together() -> None:
    history = build(publish("p:1", "t"), publish("p:2", "u"), deliver("a", "p:2 p:1"))
    verdicts = judge(history, ["fifo", "per_publisher"])
    assert verdicts["fifo"].kept
    assert verdicts["per_publisher"].violations == 1, BROKE["per_publisher"]


def test_fifo_needs_numbers() -> None:
    verdict = judge(History.foreign([("a", 1, "x")]), ["fifo"])["fifo"]
    assert not verdict.judged
    assert not verdict.kept


def test_an_event_delivered_once_to_each_is_unique() -> None:
    assert unique(deliver("a", "p:1 p:2"), deliver("b", "p:1 p:2")).kept, BROKE["unique"]


def test_each_repeat_counts_tagged_or_not() -> None:
    verdict = unique(deliver("a", "p:1 p:2 p:1 ?p:1"), deliver("b", "p:9 ?p:9"))
    assert verdict.violations == 3
    assert verdict.witness == {"event": "p:9", "subscriber": "b", "nths": [1, 2]}
