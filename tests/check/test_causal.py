from __future__ import annotations

from inorder.check import BROKE, History, Verdict, judge
from inorder.check.trace import DeliveryRow, EventRow

from .build import build, deliver, publish


def causal(*rows: object) -> Verdict:
    return judge(build(*rows), ["causal"])["causal"]


ASK = publish("a:1", at=1.0)
ANSWER = publish("b:1", at=2.0, after=1)  # b has delivered one event, the question


def test_a_reply_never_overtakes_what_it_replies_to() -> None:
    verdict = causal(ASK, ANSWER, deliver("b", "a:1"), deliver("c", "b:1 a:1"))
    assert verdict.violations == 1, BROKE["causal"]
    assert verdict.witness == {
        "cause": "a:1",
        "effect": "b:1",
        "subscriber": "c",
        "nths": {"effect": 1, "cause": 2},
    }


def test_a_question_before_its_answer_is_right() -> None:
    assert causal(ASK, ANSWER, deliver("b", "a:1"), deliver("c", "a:1 b:1")).kept


def test_events_that_know_nothing_of_each_other_may_come_in_any_order() -> None:
    verdict = causal(ASK, publish("b:1", after=0), deliver("b", "a:1 b:1"), deliver("c", "b:1 a:1"))
    assert verdict.kept


def test_a_late_cause_that_is_tagged_breaks_nothing() -> None:
    assert causal(ASK, ANSWER, deliver("b", "a:1"), deliver("c", "b:1 ?a:1")).kept


def test_a_tagged_effect_makes_no_cause_late() -> None:
    assert causal(ASK, ANSWER, deliver("b", "a:1"), deliver("c", "?b:1 a:1")).kept


def test_a_tagged_delivery_still_tells_the_publisher() -> None:
    assert not causal(ASK, ANSWER, deliver("b", "?a:1"), deliver("c", "b:1 a:1")).kept


def test_causes_reach_through_events_the_subscriber_never_sees() -> None:
    verdict = causal(
        ASK, ANSWER, publish("d:1", at=3.0, after=1),
        deliver("b", "a:1"), deliver("d", "b:1"), deliver("c", "d:1 a:1"),
    )  # fmt: skip
    assert verdict.violations == 1


def test_a_publisher_causes_its_own_later_events() -> None:
    assert not causal(publish("a:1"), publish("a:2"), deliver("c", "a:2 a:1")).kept


def test_without_after_the_times_decide() -> None:
    answer = publish("b:1", at=2.0, after=None)
    early = publish("b:1", at=1.0, after=None)
    assert not causal(ASK, answer, deliver("b", "a:1"), deliver("c", "b:1 a:1")).kept
    assert causal(ASK, early, deliver("b", "a:1"), deliver("c", "b:1 a:1")).kept


def test_a_cause_on_another_topic_counts_only_across_topics() -> None:
    answer = publish("b:1", topic="u", at=2.0, after=1)
    verdict = causal(ASK, answer, deliver("b", "a:1"), deliver("c", "b:1 a:1"))
    assert verdict.kept
    assert verdict.also["across_topics"].violations == 1


def test_a_chain_through_another_topic_is_no_cause_within_a_topic() -> None:
    hop = publish("b:1", topic="u", at=2.0, after=1)
    last = publish("d:1", at=3.0, after=1)
    rows = (ASK, hop, last, deliver("b", "a:1"), deliver("d", "b:1"), deliver("c", "d:1 a:1"))
    verdict = causal(*rows)
    assert verdict.kept
    assert verdict.also["across_topics"].violations == 1


def test_every_late_cause_counts_once_however_many_effects_it_has() -> None:
    verdict = causal(publish("a:1"), publish("a:2"), publish("a:3"), deliver("c", "a:3 a:2 a:1"))
    assert verdict.violations == 2


def test_a_forged_loop_of_causes_is_judged_and_not_followed_for_ever() -> None:
    loop = (publish("a:1", after=1), publish("b:1", after=1))
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
    timed = EventRow("b:1", "t", "b", 1, 2.0)
    assert not judge(History(rows, [ASK, timed], bare=True), ["causal"])["causal"].judged


def test_a_long_chain_needs_no_deep_stack() -> None:
    count = 2000
    events = [publish(f"n{i}:1", at=float(i), after=min(i, 1)) for i in range(count)]
    hops = [deliver(f"n{i}", f"n{i - 1}:1") for i in range(1, count)]
    verdict = causal(*events, *hops, deliver("z", f"n{count - 1}:1 n0:1"))
    assert verdict.violations == 1
