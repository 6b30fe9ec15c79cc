from __future__ import annotations

import pytest

from inorder.check import BROKE, History, Verdict, judge
from inorder.check.trace import DeliveryRow
from inorder.core.errors import BadTrace

from .build import build, deliver, publish


def causal(*rows: object) -> Verdict:
    return judge(build(*rows), ["causal"])["causal"]


def across(*rows: object) -> Verdict:
    name = "causal_across_topics"
    return judge(build(*rows), [name])[name]


ASK = publish("a:1", at=1.0)
ANSWER = publish("b:1", at=2.0, seen="b 1")  # b has delivered one event, the question


def test_a_reply_never_overtakes_what_it_replies_to() -> None:
    verdict = causal(ASK, ANSWER, deliver("b", "a:1"), deliver("c", "b:1 a:1"))
    assert verdict.violations == 1, BROKE["causal"]
    assert verdict.witness == {
        "cause": "a:1",
        "effect": "b:1",
        "subscriber": "c",
        "nths": {"effect": 1, "cause": 2},
    }


def test_the_witness_names_the_nearest_effect() -> None:
    more = publish("b:2", at=3.0)
    verdict = causal(ASK, ANSWER, more, deliver("b", "a:1"), deliver("c", "b:1 b:2 a:1"))
    assert verdict.witness is not None
    assert verdict.witness["effect"] == "b:2"
    assert verdict.witness["nths"] == {"effect": 2, "cause": 3}


def test_a_question_before_its_answer_is_right() -> None:
    assert causal(ASK, ANSWER, deliver("b", "a:1"), deliver("c", "a:1 b:1")).kept


def test_events_that_know_nothing_of_each_other_may_come_in_any_order() -> None:
    verdict = causal(ASK, publish("b:1"), deliver("b", "a:1 b:1"), deliver("c", "b:1 a:1"))
    assert verdict.kept


def test_a_late_cause_that_is_tagged_breaks_nothing() -> None:
    assert causal(ASK, ANSWER, deliver("b", "a:1"), deliver("c", "b:1 ?a:1")).kept


def test_a_tagged_effect_makes_no_cause_late() -> None:
    assert causal(ASK, ANSWER, deliver("b", "a:1"), deliver("c", "?b:1 a:1")).kept


def test_a_tagged_delivery_still_tells_the_publisher() -> None:
    assert not causal(ASK, ANSWER, deliver("b", "?a:1"), deliver("c", "b:1 a:1")).kept


def test_causes_reach_through_events_the_subscriber_never_sees() -> None:
    verdict = causal(
        ASK, ANSWER, publish("d:1", at=3.0, seen="d 1"),
        deliver("b", "a:1"), deliver("d", "b:1"), deliver("c", "d:1 a:1"),
    )  # fmt: skip
    assert verdict.violations == 1


def test_a_publisher_causes_its_own_later_events() -> None:
    assert not causal(publish("a:1"), publish("a:2"), deliver("c", "a:2 a:1")).kept


def test_what_was_handed_over_later_is_no_cause() -> None:
    early = publish("b:1", at=2.0, seen="b 1")
    rows = (ASK, publish("a:2"), early, deliver("b", "a:1 a:2"))
    assert causal(*rows, deliver("c", "a:1 b:1 a:2")).kept
    assert not causal(*rows, deliver("c", "b:1 a:1 a:2")).kept


def test_what_an_application_had_seen_once_stays_a_cause_of_all_it_publishes() -> None:
    """`seen` names only what has moved since the application's event before."""
    again = publish("b:2", at=3.0)
    verdict = causal(ASK, ANSWER, again, deliver("b", "a:1"), deliver("c", "b:2 a:1"))
    assert verdict.violations == 1


def test_an_application_sees_through_subscriptions_of_other_names() -> None:
    """As on the bus: nobody subscribes under the name of the publisher."""
    answer = publish("bus:1", at=2.0, seen="bus.s1 1", application="bus")
    assert not causal(ASK, answer, deliver("bus.s1", "a:1"), deliver("c", "bus:1 a:1")).kept
    assert causal(ASK, answer, deliver("bus.s1", "a:1"), deliver("c", "a:1 bus:1")).kept


def test_an_application_of_several_publishers_goes_by_its_clock() -> None:
    """It published under two names: what it saw before the first counts for the second."""
    first = publish("x:1", at=2.0, seen="s 1", application="shop")
    then = publish("b:1", at=3.0, application="shop")
    rows = (ASK, then, first, deliver("s", "a:1"))
    assert causal(*rows, deliver("c", "b:1 a:1")).violations == 1
    assert causal(*rows, deliver("c", "b:1 x:1")).violations == 1  # its own earlier one
    assert causal(*rows, deliver("c", "x:1 b:1")).kept


def test_how_much_was_judged_is_counted() -> None:
    unknown = publish("d:1", at=3.0, seen=None)
    verdict = causal(ASK, ANSWER, unknown, deliver("b", "a:1"), deliver("c", "d:1"))
    assert verdict.counts["events"] == 3
    assert verdict.counts["caused"] == 1
    assert verdict.counts["untold"] == 1


def test_events_that_say_nothing_of_what_was_seen_cannot_be_judged() -> None:
    verdict = causal(publish("a:1", seen=None), deliver("c", "a:1"))
    assert not verdict.judged
    assert "`seen`" in verdict.why


def test_a_broken_seen_is_refused_by_name() -> None:
    bad = publish("a:1")
    bad.seen = '{"b": "x"}'
    with pytest.raises(BadTrace, match="`seen` of a:1"):
        causal(bad)


def test_a_cause_on_another_topic_counts_only_across_topics() -> None:
    answer = publish("b:1", topic="u", at=2.0, seen="b 1")
    rows = (ASK, answer, deliver("b", "a:1"), deliver("c", "b:1 a:1"))
    assert causal(*rows).kept
    assert across(*rows).violations == 1


def test_a_publishers_own_order_across_topics_is_no_cause() -> None:
    """That is a promise of its own; but what it was handed of its own is a cause like any other."""
    first, then = publish("a:1", topic="t"), publish("a:2", topic="u", at=2.0)
    assert across(first, then, deliver("c", "a:2 a:1")).kept
    own = publish("a:2", topic="u", at=2.0, seen="a.s1 1", application="a")
    first.application = "a"
    assert across(first, own, deliver("a.s1", "a:1"), deliver("c", "a:2 a:1")).violations == 1
    rows = build(publish("a:1", topic="t"), then, deliver("c", "a:2 a:1"))
    assert judge(rows, ["per_publisher"])["per_publisher"].violations == 1


def test_a_chain_through_another_topic_is_no_cause_within_a_topic() -> None:
    hop = publish("b:1", topic="u", at=2.0, seen="b 1")
    last = publish("d:1", at=3.0, seen="d 1")
    rows = (ASK, hop, last, deliver("b", "a:1"), deliver("d", "b:1"), deliver("c", "d:1 a:1"))
    assert causal(*rows).kept
    assert across(*rows).violations == 1


def test_every_late_cause_counts_once_however_many_effects_it_has() -> None:
    verdict = causal(publish("a:1"), publish("a:2"), publish("a:3"), deliver("c", "a:3 a:2 a:1"))
    assert verdict.violations == 2


def test_a_forged_loop_of_causes_is_judged_and_not_followed_for_ever() -> None:
    loop = (publish("a:1", seen="a 1"), publish("b:1", seen="b 1"))
    verdict = causal(*loop, deliver("a", "b:1"), deliver("b", "a:1"), deliver("c", "a:1 b:1"))
    assert verdict.violations == 1


def test_without_events_it_is_not_judged() -> None:
    verdict = judge(History.foreign([("a", 1, "x")]), ["causal"])["causal"]
    assert not verdict.judged
    assert "events" in verdict.why


def test_a_foreign_log_with_events_is_judged_when_they_say_after_what() -> None:
    rows = [
        DeliveryRow(subscriber, place, event, "", "", 0, 0.0, 0.0, 0.0)
        for subscriber, place, event in [("b", 1, "a:1"), ("c", 1, "b:1"), ("c", 2, "a:1")]
    ]
    assert judge(History(rows, [ASK, ANSWER], bare=True), ["causal"])["causal"].violations == 1


def test_a_long_chain_needs_no_deep_stack() -> None:
    count = 2000
    events = [publish(f"n{i}:1", at=float(i), seen=f"n{i} {min(i, 1)}") for i in range(count)]
    hops = [deliver(f"n{i}", f"n{i - 1}:1") for i in range(1, count)]
    verdict = causal(*events, *hops, deliver("z", f"n{count - 1}:1 n0:1"))
    assert verdict.violations == 1
