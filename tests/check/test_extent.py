"""The line beside each verdict: how much was judged, how much not, and why."""

from __future__ import annotations

import random

import pytest

from inorder.check import PROMISES, History, judge
from inorder.check.ending import Ending
from inorder.check.extent import extent

from .build import build, change, deliver, publish, subscribe
from .random_history import any_history


def line(promise: str, *rows: object, **flags: object) -> str:
    return extent(judge(build(*rows, **flags), [promise])[promise])


def test_orders_say_how_many_deliveries_they_compared() -> None:
    rows = (publish("p:1"), publish("p:2"), deliver("a", "p:1 ?p:2"), deliver("b", "p:1"))
    assert line("total", *rows) == "2 deliveries in order of 2 subscribers"
    assert line("realtime", *rows) == "2 deliveries in order"
    assert line("unique", *rows) == "3 deliveries"
    assert line("fifo", *rows) == "2 streams of a publisher and topic"
    assert line("per_publisher", *rows[:3]) == "1 stream of a publisher"


def test_causes_say_how_many_events_have_one_and_of_how_many_nothing_is_known() -> None:
    answer, mute = publish("b:1", seen="b 1"), publish("d:1", seen=None)
    rows = (publish("a:1"), answer, deliver("b", "a:1"))
    assert line("causal", *rows) == "1 delivery in order; 1 of 2 events have a cause"
    assert line("causal", *rows, mute).endswith("; not known: what was seen before 1 event")
    assert line("causal", mute).startswith("not judged: needs `seen`")


def test_reliable_says_what_share_was_owed_and_why_the_rest_was_not() -> None:
    held = subscribe("a", where="x < :limit", limit=5)
    rows = (held, publish("p:1", x=1), publish("p:2", x=3), deliver("a", "p:1 p:2"))
    assert line("reliable", *rows) == "2 of 2 deliverable pairs (100 %) were owed"
    moved = change("a", at=1.2, limit=2)
    assert line("reliable", *rows, moved) == (
        "1 of 2 deliverable pairs (50 %) were owed; "
        "the others: a filter or a subscription, or the run, began or ended too near"
    )
    assert line("reliable", publish("p:1")) == "no event could be delivered to anybody"


def test_accepted_says_which_answers_there_were() -> None:
    cut = Ending(quiet=False, ended_at=3.0, within=1.0)
    rows = [publish("p:1"), publish("p:2", accepted=False, outcome="refused")]
    rows += [publish("p:3", accepted=False, outcome="unknown")]
    rows += [publish("p:4", accepted=False, at=2.5)]
    assert line("accepted", *rows, ending=cut) == (
        "4 publications: 1 accepted, 1 refused, 1 whose publisher or run ended first, "
        "1 too young to tell"
    )


def test_deliveries_of_events_that_the_trace_lacks_are_not_called_judged() -> None:
    rows = (publish("p:1"), subscribe("a"), deliver("a", "p:1 q:1 ?q:2"))
    lacks = "; not judged: 1 delivery of events that are not in the trace"
    assert line("causal", *rows) == f"1 delivery in order; 0 of 1 event has a cause{lacks}"
    assert line("realtime", *rows) == f"1 delivery in order{lacks}"
    unsound = judge(build(*rows, elsewhere=True), ["reliable"])["reliable"].also["integrity"]
    assert extent(unsound) == (
        "3 deliveries; 2 of events that others published, or earlier: not known"
    )


def test_realtime_says_of_what_nobody_knows_the_acceptance() -> None:
    lost = publish("p:1", accepted=False)
    said = line("realtime", lost, publish("p:2"), deliver("a", "p:1 p:2"))
    assert said == ("2 deliveries in order; 1 of events without a known acceptance precede nothing")


@pytest.mark.parametrize("promise", PROMISES)
def test_every_promise_has_a_line(promise: str) -> None:
    for seed in range(20):
        assert extent(judge(any_history(random.Random(seed)), [promise])[promise])
    nothing = History.foreign([])
    assert extent(judge(nothing, [promise])[promise])
