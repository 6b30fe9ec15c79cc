"""The client around the receivers: publishing, topics, timers, accounts."""

from __future__ import annotations

from typing import Any

import pytest

from inorder.core.effect import CancelTimer, Deliver, Diffuse, Persist, SetTimer
from inorder.core.errors import UnknownName
from inorder.guarantee.registry import guarantee
from inorder.protocols.fifo import Client, Options, client
from inorder.protocols.fifo.header import Header, Published, unpack
from inorder.protocols.fifo.summary import equals


def make(name: str = "s", *held: str, **options: Any) -> Client:
    made = Client(name, ("a", "b"), Options(**options))
    if held:
        made.subscribe("c", held, 0.0)
        for topic in held:
            made.joined(topic, 0.0)
    return made


def published(made: Client, topic: str, now: float, **value: Any) -> Published:
    (found,) = [e.message for e in made.publish(topic, value, now) if isinstance(e, Diffuse)]
    return found


def header(made: Client, topic: str, now: float) -> Header:
    return unpack(published(made, topic, now).header)


def delivered(effects: list[Any]) -> list[str]:
    return [
        each.event.id + ("" if each.in_order else "*")
        for each in effects
        if isinstance(each, Deliver)
    ]


def test_numbers_and_gaps_count_over_all_topics():
    p = make("p")
    first, second = header(p, "a", 1.0), header(p, "b", 1.25)
    assert (first.seq, first.departure_us, first.prev_gap_us) == (1, 1_000_000, 0)
    assert (second.seq, second.departure_us, second.prev_gap_us) == (2, 1_250_000, 250_000)


def test_a_restarted_publisher_has_a_larger_incarnation_and_counts_from_one():
    p = make("p")
    records = [e.record for e in p.publish("a", {}, 1.0) if isinstance(e, Persist)]
    reborn = make("p")
    for record in records:
        reborn.replay(record)
    reborn.resume(5.0)
    again = header(reborn, "a", 5.0)
    assert again.incarnation is not None
    assert again.incarnation > 0
    assert again.seq == 1


def test_a_publishers_clock_that_is_set_back_goes_on_from_where_it_was():
    p = make("p")
    departures = [header(p, "a", now).departure_us for now in (10.0, 11.0, 3.0, 4.0)]
    assert departures == [10_000_000, 11_000_000, 11_000_000, 12_000_000]


def test_a_gap_sets_a_timer_and_filling_it_cancels_it():
    p, s = make("p"), make("s", "a")
    one, two, three = (published(p, "a", now) for now in (1.0, 1.01, 1.02))
    assert delivered(s.receive("p", one, 2.0)) == ["p:1"]
    effects = s.receive("p", three, 2.01)
    assert effects == [SetTimer("p", pytest.approx(0.05))]
    effects = s.receive("p", two, 2.03)
    assert delivered(effects) == ["p:2", "p:3"]
    assert effects[-1] == CancelTimer("p")


def test_when_the_timer_runs_out_what_waits_goes_and_the_missing_one_is_tagged():
    p, s = make("p"), make("s", "a")
    one, two, three = (published(p, "a", now) for now in (1.0, 1.01, 1.02))
    s.receive("p", one, 2.0)
    s.receive("p", three, 2.01)
    assert delivered(s.fire("p", 2.06)) == ["p:3"]
    assert delivered(s.receive("p", two, 2.07)) == ["p:2*"]


def test_late_events_are_dropped_if_so_wished():
    p, s = make("p"), make("s", "a", when_late="drop")
    one, two = (published(p, "a", now) for now in (1.0, 1.01))
    s.receive("p", two, 2.0)
    assert s.receive("p", one, 2.01) == []
    assert s.account()["late"] == 1


def test_another_topics_events_are_not_waited_for():
    p, s = make("p"), make("s", "a")
    one, _, three = published(p, "a", 1.0), published(p, "b", 1.01), published(p, "a", 1.02)
    s.receive("p", one, 2.0)
    assert delivered(s.receive("p", three, 2.01)) == ["p:3"]


def test_content_that_cannot_match_is_not_waited_for():
    options = {"summary": "content", "interest_window": 1.0}
    p, s = make("p", **options), make("s", "a", **options)
    s.want((((equals("firm", "IBM"),),),), 0.0)
    one, other, three = (
        published(p, "a", now, firm=firm)
        for now, firm in ((1.0, "IBM"), (1.01, "Sun"), (1.02, "IBM"))
    )
    s.receive("p", one, 2.0)
    assert delivered(s.receive("p", three, 2.01)) == ["p:3"]
    assert other.event.value["firm"] == "Sun"


def test_a_former_version_of_the_content_still_counts_for_a_while():
    options = {"summary": "content", "interest_window": 10.0}
    p, s = make("p", **options), make("s", "a", **options)
    s.want((((equals("firm", "Sun"),),),), 0.0)
    one = published(p, "a", 1.0, firm="IBM")
    published(p, "a", 1.01, firm="Sun")
    three = published(p, "a", 1.02, firm="IBM")
    s.want((((equals("firm", "IBM"),),),), 1.5)
    s.receive("p", one, 2.0)
    assert delivered(s.receive("p", three, 2.01)) == []


def test_what_waits_for_a_topic_left_meanwhile_is_not_delivered():
    p, s = make("p"), make("s", "a", "b")
    one, _, three = published(p, "a", 1.0), published(p, "a", 1.01), published(p, "b", 1.02)
    four = published(p, "a", 1.03)
    s.receive("p", one, 2.0)
    s.receive("p", three, 2.01)
    s.unsubscribe("c2", ["b"], 2.02)
    s.receive("p", four, 2.03)
    assert delivered(s.fire("p", 2.06)) == ["p:4"]


def test_one_publishers_gap_does_not_delay_anothers_events():
    p, q, s = make("p"), make("q"), make("s", "a")
    one, two, three = (published(p, "a", now) for now in (1.0, 1.01, 1.02))
    s.receive("p", one, 2.0)
    s.receive("p", three, 2.01)
    assert delivered(s.receive("q", published(q, "a", 1.0), 2.01)) == ["q:1"]
    assert two.event.id == "p:2"


def test_whoever_was_silent_longest_makes_room(monkeypatch):
    monkeypatch.setattr(client, "PUBLISHERS_PER_SUBSCRIBER_MAX", 3)
    s = make("s", "a")
    for number in range(5):
        s.receive("x", published(make(f"p{number}"), "a", 1.0), float(number))
    assert s.account()["received"] == 5
    with pytest.raises(UnknownName, match="known: p2, p3, p4"):
        s.estimator("p0")


def test_accounts_and_dial_of_a_client_that_heard_nothing():
    assert make("s").account()["received"] == 0
    assert guarantee("fifo").describe(make("s").account(), Options()) == []


def test_an_unknown_estimator_is_named():
    with pytest.raises(UnknownName, match="known: laplace2, predictive, static"):
        make("s", estimator="guess")
