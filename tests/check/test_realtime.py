from __future__ import annotations

from inorder.check import BROKE, History, Verdict, judge

from .build import build, deliver, publish

EARLY = publish("p:1", at=1.0)  # accepted at 1.5
LATE = publish("q:1", at=2.0)


def realtime(*rows: object, **flags: object) -> Verdict:
    return judge(build(*rows, **flags), ["realtime"])["realtime"]


def test_what_was_accepted_before_another_was_published_comes_first() -> None:
    verdict = realtime(EARLY, LATE, deliver("a", "p:1 q:1"), deliver("b", "q:1 p:1"))
    assert verdict.violations == 1, BROKE["realtime"]
    assert verdict.witness == {
        "late": "p:1", "before": "q:1", "subscriber": "b", "accepted_at": 1.5,
        "published_at": 2.0, "nths": {"before": 1, "late": 2},
    }  # fmt: skip


def test_the_witness_names_the_nearest_that_was_published_after() -> None:
    later = publish("q:2", at=3.0)
    verdict = realtime(EARLY, LATE, later, deliver("a", "q:1 q:2 p:1"))
    assert verdict.witness is not None
    assert (verdict.witness["before"], verdict.witness["nths"]["before"]) == ("q:2", 2)


def test_events_whose_times_overlap_may_come_in_any_order() -> None:
    beside = publish("q:1", at=1.5)  # published as the other is accepted: not after it
    assert realtime(EARLY, beside, deliver("a", "q:1 p:1")).kept


def test_a_tagged_delivery_breaks_nothing_and_makes_nothing_late() -> None:
    assert realtime(EARLY, LATE, deliver("a", "q:1 ?p:1")).kept
    assert realtime(EARLY, LATE, deliver("a", "?q:1 p:1")).kept


def test_what_was_never_accepted_precedes_nothing_and_is_counted() -> None:
    lost = publish("p:1", at=1.0, accepted=False)
    verdict = realtime(lost, LATE, deliver("a", "q:1 p:1"))
    assert verdict.kept
    assert verdict.counts["unaccepted"] == 1


def test_clocks_that_may_differ_need_their_error() -> None:
    rows = (EARLY, LATE, deliver("a", "q:1 p:1"))
    unknown = realtime(*rows, clock_error=None)
    assert not unknown.judged
    assert "--clock-error" in unknown.why
    assert not realtime(*rows, clock_error=0.4).kept
    assert realtime(*rows, clock_error=0.5).kept  # as near as that may be the clocks


def test_without_times_it_is_not_judged() -> None:
    assert not judge(History.foreign([("a", 1, "x")]), ["realtime"])["realtime"].judged
    assert not realtime(EARLY, accepted_known=False).judged
