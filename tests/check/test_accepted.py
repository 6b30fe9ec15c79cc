from __future__ import annotations

from inorder.check import BROKE, Verdict, judge
from inorder.check.ending import Ending

from .build import build, publish

QUIET = Ending(quiet=True, ended_at=20.0, within=5.0)
CUT = Ending(quiet=False, ended_at=20.0, within=5.0)


def accepted(*rows: object, ending: Ending | None = QUIET, **flags: object) -> Verdict:
    return judge(build(*rows, ending=ending, **flags), ["accepted"])["accepted"]


def silent(event: str, at: float = 1.0, outcome: str | None = None) -> object:
    return publish(event, at=at, accepted=False, outcome=outcome)


def test_a_publication_that_never_ends_is_named() -> None:
    verdict = accepted(publish("p:1"), silent("p:3", at=2.0), silent("p:2", at=2.0))
    assert verdict.violations == 2, BROKE["accepted"]
    assert verdict.witness == {
        "event": "p:2", "publisher": "p", "topic": "t", "published_at": 2.0, "outcome": None,
    }  # fmt: skip


def test_of_those_without_an_answer_the_first_published_is_named() -> None:
    verdict = accepted(silent("a:1", at=3.0), silent("p:9", at=2.0))
    assert verdict.witness is not None
    assert verdict.witness["event"] == "p:9"


def test_what_the_publisher_was_told_counts_and_not_the_time_beside_it() -> None:
    odd = publish("p:1", accepted=True, outcome="refused")
    assert accepted(odd).counts["refused"] == 1
    assert accepted(odd).counts["accepted"] == 0


def test_refused_and_unknown_are_answers_and_are_counted() -> None:
    verdict = accepted(publish("p:1"), silent("p:2", 1, "refused"), silent("p:3", 1, "unknown"))
    assert verdict.kept
    assert verdict.counts == {
        "published": 3, "accepted": 1, "refused": 1, "unknown": 1, "young": 0, "never": 0,
    }  # fmt: skip


def test_an_answer_may_be_under_way_when_a_run_is_cut_but_not_for_longer_than_the_window() -> None:
    assert accepted(silent("p:1", at=15.1), ending=CUT).counts["young"] == 1
    assert accepted(silent("p:1", at=15.0), ending=CUT).violations == 1
    assert accepted(silent("p:1", at=19.9), ending=QUIET).violations == 1


def test_what_is_not_known_is_not_judged() -> None:
    nothing = accepted(silent("p:1"), ending=None)
    assert not nothing.judged
    assert "`outcome`" in nothing.why
    some = accepted(silent("p:1"), silent("p:2", 1, "refused"), ending=None)
    assert not some.judged
    assert "how the run ended" in some.why
    assert accepted(publish("p:1"), ending=None).kept
    cut_off = accepted(publish("p:1"), complete=False)
    assert not cut_off.judged
    assert "complete" in cut_off.why
