from __future__ import annotations

from inorder.check import BROKE, History, Verdict, judge
from inorder.check.ending import Ending

from .build import build, change, deliver, publish, subscribe, unsubscribe


def reliable(*rows: object, **flags: object) -> Verdict:
    return judge(build(*rows, **flags), ["reliable"])["reliable"]


def integrity(*rows: object, **flags: object) -> Verdict:
    return reliable(*rows, **flags).also["integrity"]


def test_an_owed_event_that_never_comes_is_lost() -> None:
    verdict = reliable(subscribe("a"), publish("p:1"), publish("p:2"), deliver("a", "p:1"))
    assert verdict.violations == 1, BROKE["reliable"]
    assert verdict.counts["owed"] == 2
    assert verdict.witness == {
        "event": "p:2",
        "subscriber": "a",
        "topic": "t",
        "published_at": 1.0,
        "held_since": 0.0,
    }


def test_a_tagged_delivery_is_a_delivery() -> None:
    assert reliable(subscribe("a"), publish("p:1"), deliver("a", "?p:1")).kept


def test_an_event_that_was_not_accepted_is_owed_to_nobody() -> None:
    lost = publish("p:1", accepted=False)
    assert reliable(subscribe("a"), lost).kept
    assert not reliable(subscribe("a"), lost, accepted_known=False).kept


def test_an_event_published_as_the_subscription_returns_is_not_owed() -> None:
    assert reliable(subscribe("a", at=1.0), publish("p:1", at=1.0)).kept
    assert not reliable(subscribe("a", at=0.9), publish("p:1", at=1.0)).kept


def test_whoever_leaves_is_owed_what_was_accepted_before_and_on_return_only_what_follows() -> None:
    early, late = publish("p:1", at=1.0), publish("p:2", at=1.9)  # accepted half a second later
    left = (subscribe("a"), unsubscribe("a", at=2.0))
    assert reliable(*left, early).violations == 1
    assert reliable(*left, late).kept
    again = subscribe("a", at=3.0)
    assert reliable(*left, late, again).kept
    assert reliable(*left, late, again, publish("p:3", at=4.0)).violations == 1


def window(seconds: float, **flags: object) -> dict[str, object]:
    return {"ending": Ending(**{"quiet": True, "ended_at": 9.0, "within": seconds, **flags})}


def test_a_subscription_that_closed_is_owed_what_was_accepted_the_window_before() -> None:
    """Accepted at 1.5 and closed at 5: owed with a window of 3.4 s, not with one of 3.5."""
    rows = (subscribe("a"), publish("p:1", at=1.0), unsubscribe("a", at=5.0))
    assert reliable(*rows, **window(3.4)).violations == 1
    verdict = reliable(*rows, **window(3.5))
    assert verdict.kept
    assert (verdict.counts["owed"], verdict.counts["deliverable"]) == (0, 1)


def test_a_run_that_was_cut_owes_nothing_younger_than_the_window() -> None:
    rows = (subscribe("a"), publish("p:1", at=1.0))
    assert reliable(*rows, **window(7.5, quiet=False)).violations == 1
    assert reliable(*rows, **window(7.6, quiet=False)).kept
    assert reliable(*rows, **window(7.6)).violations == 1


def test_parameters_that_moved_within_the_window_decide_alone() -> None:
    """Published at 11, accepted at 11.5: what was in force from 9 to 13.5 must let it pass, what
    came later need not. That is how an update can lose an event and be found out."""
    held = subscribe("a", where="x < :limit", limit=5)
    small = publish("p:1", at=11.0, x=1)
    for at, owed in ((8.9, 1), (9.1, 0), (13.4, 0), (13.6, 1)):
        back = change("a", at=at + 0.05, limit=5)
        verdict = reliable(held, small, change("a", at=at, limit=1), back, **window(2.0))
        assert verdict.counts["owed"] == owed, at
        assert verdict.counts["deliverable"] == 1


def test_a_pair_is_deliverable_when_any_filter_in_force_lets_the_event_pass() -> None:
    held = subscribe("a", where="x < :limit", limit=1)
    small = publish("p:1", at=11.0, x=1)
    for at, may in ((13.4, 1), (13.6, 0)):
        verdict = reliable(held, small, change("a", at=at, limit=9), **window(2.0))
        assert (verdict.counts["deliverable"], verdict.counts["owed"]) == (may, 0), at


def test_a_second_subscribe_does_not_interrupt_the_first() -> None:
    verdict = reliable(subscribe("a"), publish("p:1", at=1.0), subscribe("a", at=2.0))
    assert verdict.violations == 1


def test_a_filtered_subscriber_is_owed_what_matches() -> None:
    held = subscribe("a", where="x < :limit", limit=5)
    small, large = publish("p:1", x=1), publish("p:2", x=7)
    assert reliable(held, large).kept
    assert reliable(held, small).violations == 1
    assert reliable(held, small, change("a", limit=1)).violations == 1  # too late to matter
    assert reliable(held, small, change("a", at=1.2, limit=1)).kept
    assert reliable(held, large, change("a", limit=9)).kept
    assert reliable(held, small, change("a", at=0.5, limit=1)).kept


def test_a_change_at_the_moment_of_publication_may_count_either_way() -> None:
    held = subscribe("a", where="x < :limit", limit=5)
    assert reliable(held, publish("p:1", x=7), change("a", at=1.0, limit=9)).kept
    assert reliable(held, publish("p:1", x=1), change("a", at=1.0, limit=1)).kept


def test_an_incomplete_trace_is_not_judged_for_losses() -> None:
    verdict = reliable(subscribe("a"), publish("p:1"), complete=False)
    assert not verdict.judged
    assert "complete" in verdict.why
    assert verdict.counts == {}
    assert verdict.also["integrity"].judged


def test_without_subscriptions_nothing_is_known_to_be_owed() -> None:
    verdict = judge(History.foreign([("a", 1, "x")]), ["reliable"])["reliable"]
    assert not verdict.judged
    assert not verdict.also["integrity"].judged


def test_an_event_never_published_must_not_be_delivered() -> None:
    verdict = integrity(subscribe("a"), deliver("a", "ghost:1"))
    assert verdict.counts == {
        "never_published": 1, "altered": 0, "not_held": 0, "deliveries": 1, "elsewhere": 0,
    }  # fmt: skip
    assert verdict.witness is not None
    assert verdict.witness["event"] == "ghost:1"


def test_in_one_trace_of_a_live_run_others_may_have_published_what_is_delivered() -> None:
    """But between two events of a publisher that are here there is no third that is not."""
    mine = (subscribe("a"), publish("p:2"), publish("p:5"))
    for event, violations in (("q:1", 0), ("p:1", 0), ("p:3", 1), ("p:4", 1), ("p:6", 0)):
        rows = (*mine, deliver("a", f"p:2 p:5 {event}"))
        verdict = integrity(*rows, elsewhere=True)
        assert verdict.violations == violations, event
        assert verdict.counts["elsewhere"] == 1 - violations, event
        assert integrity(*rows).violations == 1, event


def test_in_an_incomplete_trace_an_absent_row_proves_nothing() -> None:
    assert integrity(deliver("a", "ghost:1"), complete=False).kept


def test_a_number_that_another_event_has_was_given_by_nobody_elsewhere() -> None:
    history = build(subscribe("a"), publish("p:2"), deliver("a", "p:2 p:9"), elsewhere=True)
    for seq, violations in ((1, 0), (2, 1), (3, 0)):
        history.deliveries[1].seq = seq
        verdict = judge(history, ["reliable"])["reliable"].also["integrity"]
        assert verdict.counts["never_published"] == violations, seq


def test_a_delivery_must_say_of_the_event_what_the_event_says() -> None:
    history = build(subscribe("a"), publish("p:1"), deliver("a", "p:1"))
    history.deliveries[0].seq = 2
    verdict = judge(history, ["reliable"])["reliable"]
    assert verdict.kept
    assert verdict.also["integrity"].counts["altered"] == 1
    assert verdict.counts["altered"] == 1


def test_a_topic_must_be_held_at_the_delivery() -> None:
    event = publish("p:1", at=1.0)
    come = deliver("a", "p:1")
    assert integrity(event, come).counts["not_held"] == 1
    assert integrity(subscribe("a"), event, come).kept
    assert not integrity(subscribe("a", after=1), event, come).kept
    assert integrity(subscribe("a"), event, come, unsubscribe("a", after=1)).kept
    assert not integrity(subscribe("a"), event, come, unsubscribe("a", after=0)).kept
    assert integrity(
        subscribe("a"), unsubscribe("a", at=0.5), subscribe("a", at=0.6), event, come
    ).kept


def test_without_after_the_times_say_what_was_held() -> None:
    event, come = publish("p:1", at=1.0), deliver("a", "p:1")  # delivered at 1.01
    held = subscribe("a", after=None)
    assert integrity(held, event, come).kept
    assert integrity(held, event, come, unsubscribe("a", at=1.01, after=None)).kept
    assert not integrity(held, event, come, unsubscribe("a", at=1.005, after=None)).kept
    assert not integrity(subscribe("a", at=1.02, after=None), event, come).kept
    assert integrity(subscribe("a", at=1.01, after=None), event, come).kept


def test_an_unsubscribe_that_names_no_topic_leaves_them_all() -> None:
    verdict = integrity(
        subscribe("a", "t u"), publish("p:1"), unsubscribe("a", "", at=0.5), deliver("a", "p:1")
    )
    assert verdict.counts["not_held"] == 1
