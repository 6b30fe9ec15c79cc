"""Stages, publishers, subscribers and the ranking, driven by hand over links that work."""

from __future__ import annotations

import pytest

from inorder.core.effect import Answer, Diffuse, Persist, Send, SetTimer
from inorder.core.errors import Misuse, TooLarge, UnknownName
from inorder.protocols.total.messages import (
    Create,
    Events,
    Fill,
    Freeze,
    Frozen,
    Gone,
    Heartbeat,
    Renew,
    Repair,
    SwapRequest,
    Walk,
)
from tests.protocols.total.drive import TOPICS, Net, bodies, client, of


def test_an_event_reaches_everybody_who_holds_its_topic():
    net = Net("a", "b", "p")
    net.call("a", "subscribe", "a/1", ["t1", "t2"])
    net.call("b", "subscribe", "b/1", ["t2"])
    net.call("p", "publish", "t2", {"x": 1})
    net.call("p", "publish", "t1", {})
    assert net.delivered == {"a": ["p:1", "p:2"], "b": ["p:1"], "p": []}
    assert net.answers["a/1"] == "done"
    assert net.answers["p:1"] == "accepted"
    net.rest()
    assert all(machine.idle for machine in net.machines.values())


def test_numbers_start_at_one_and_have_no_holes_over_subscriptions():
    net = Net("a", "b", "p")
    for number, name in enumerate("ab"):
        net.call(name, "subscribe", f"{name}/{number}", ["t1"])
        net.call("p", "publish", "t1", {})
    assert net.machines["stage1"].managers["t1"].s.count == 2
    assert net.delivered["b"] == ["p:2"]


def test_a_batch_is_contiguous_and_shares_its_stamp():
    net = Net("a", "p", window=1, batch=10)
    net.call("a", "subscribe", "a/1", ["t1", "t2"])
    held = []
    net.passes = lambda source, target, message: target != "stage2" or held.append(message)
    for _ in range(4):
        net.call("p", "publish", "t2", {})
    net.passes = lambda source, target, message: True
    net.act("p", [Send("stage2", message) for message in held])
    net.run()
    batches = net.machines["p"].publisher.s
    assert not batches.waiting
    assert net.delivered["a"] == ["p:1", "p:2", "p:3", "p:4"]
    assert net.machines["stage2"].managers["t2"].s.count == 4


def test_merging_requests_into_batches_gives_the_same_numbers():
    """A metamorphic check: batches change messages, not numbers."""
    stamps = []
    for window, batch in ((1, 50), (1, 2), (50, 1)):
        net = Net("a", "p", window=window, batch=batch)
        net.call("a", "subscribe", "a/1", list(TOPICS))
        machine = net.machines["p"]
        for number in range(9):
            net.act("p", machine.publish(TOPICS[number % 2], {}, 0.0))
        net.run()
        stamps.append([row.split(":") for row in net.delivered["a"]])
        assert len(stamps[-1]) == 9
    per_topic = [[[e for e in log if (int(e[1]) - 1) % 2 == k] for k in (0, 1)] for log in stamps]
    assert per_topic[0] == per_topic[1] == per_topic[2]


def test_publishing_beyond_the_queue_is_refused_and_said(monkeypatch):
    monkeypatch.setattr("inorder.protocols.total.publisher.WAITING_PUBLICATIONS_MAX", 2)
    machine = client("p", window=1)
    answers = [of(Answer, machine.publish("t1", {}, 0.0)) for _ in range(4)]
    assert answers[:3] == [[], [], []], "one under way, two waiting"
    (refused,) = answers[3]
    assert (refused.call, refused.outcome) == ("p:4", "refused")
    assert machine.next_seq == 5, "its number is spent"


def test_an_event_id_is_never_used_twice():
    net = Net("p")
    net.call("p", "publish", "t1", {})
    net.restart("p")
    assert net.machines["p"].next_seq == 1001
    net.call("p", "publish", "t1", {})
    assert net.machines["stage1"].managers["t1"].s.numbered == {"p": 1001}


def test_the_life_of_a_client_is_on_disk_before_anything_is_sent():
    machine = client("a")
    first = machine.subscribe("a/1", ["t1"], 0.0)
    assert isinstance(first[0], Persist)
    twin = client("a")
    twin.replay(first[0].record)
    assert twin._s.life == 2


def test_a_new_life_tells_managers_what_it_no_longer_holds():
    net = Net("a")
    net.call("a", "subscribe", "a/1", ["t1", "t2"])
    net.members.clear()
    net.restart("a")
    net.call("a", "subscribe", "a/2", ["t2"])
    assert net.machines["stage1"].managers["t1"].group.holders == []
    assert net.machines["stage2"].managers["t2"].group.holders == ["a"]


def test_changes_of_one_subscriber_queue():
    """R9: two overlapping calls."""
    net = Net("a", "p")
    machine = net.machines["a"]
    effects = machine.subscribe("a/1", ["t1"], 0.0)
    effects += machine.subscribe("a/2", ["t2"], 0.0)
    effects += machine.unsubscribe("a/3", ["t1"], 0.0)
    net.act("a", effects)
    net.run()
    assert [net.answers[f"a/{n}"] for n in (1, 2, 3)] == ["done"] * 3
    assert machine.subscriber.s.engine.active == {"t2"}
    assert net.machines["stage1"].managers["t1"].group.holders == []
    assert machine.idle


def test_leaving_a_topic_while_its_subscription_is_under_way():
    net = Net("a")
    machine = net.machines["a"]
    machine.subscribe("a/1", ["t1", "t2"], 0.0)
    net.act("a", machine.unsubscribe("a/2", ["t1", "t2"], 0.0))
    net.run()
    assert net.answers == {"a/1": "done", "a/2": "done"}
    assert machine.idle


# Losses.


def test_a_lost_event_is_asked_for_and_repaired():
    net = Net("a", "p")
    net.call("a", "subscribe", "a/1", ["t1"])
    net.passes = lambda source, target, message: not isinstance(message, Events)
    net.call("p", "publish", "t1", {})
    net.passes = lambda source, target, message: True
    net.call("p", "publish", "t1", {})
    assert net.delivered["a"] == []
    net.fire("a", "repair")
    assert net.delivered["a"] == ["p:1", "p:2"]
    assert net.machines["a"].idle


def test_a_heartbeat_finds_the_loss_of_the_last_event():
    """L6."""
    net = Net("a", "p")
    net.call("a", "subscribe", "a/1", ["t1"])
    net.passes = lambda source, target, message: not isinstance(message, Events)
    net.call("p", "publish", "t1", {})
    net.passes = lambda source, target, message: True
    assert "heartbeat/t1" in net.timers["stage1"]
    net.fire("stage1", "heartbeat/t1")
    net.fire("a", "repair")
    assert net.delivered["a"] == ["p:1"]
    assert net.machines["stage1"].s.beats == {}
    manager = net.machines["stage1"].managers["t1"]
    assert manager.unreported, "it does not know yet that all is well"
    net.fire("a", "renew")
    net.fire("stage1", "lease")
    assert not manager.unreported
    assert manager.s.log == [], "nobody needs it any more"


def test_a_heartbeat_waits_until_no_event_follows():
    net = Net("a", "p")
    net.call("a", "subscribe", "a/1", ["t1"])
    net.call("p", "publish", "t1", {})
    net.call("p", "publish", "t1", {})
    before = len(net.timers["stage1"])
    assert net.machines["stage1"].fire("heartbeat/t1", 0.0) == [SetTimer("heartbeat/t1", 1.0)]
    [beat] = of(Diffuse, net.machines["stage1"].fire("heartbeat/t1", 0.0))
    assert beat.message == Heartbeat("t1", 2)
    assert len(net.timers["stage1"]) == before
    assert net.machines["stage1"].s.beats == {}, "said once"


def test_a_heartbeat_waits_longer_where_events_are_rarer():
    net = Net("a", "p")
    net.call("a", "subscribe", "a/1", ["t1"])
    for number in range(40):
        net.call("p", "publish", "t1", {}, now=2.0 * number)
    manager = net.machines["stage1"].managers["t1"]
    assert manager.quiet_s(1.0) == pytest.approx(12.0, rel=0.05)
    assert manager.quiet_s(13.0) == 13.0
    net.call("p", "publish", "t1", {}, now=50.0)
    assert manager.quiet_s(1.0) == pytest.approx(12.0, rel=0.05), "a clock set back says nothing"


def test_a_renewal_finds_what_event_and_heartbeat_have_lost():
    net = Net("a", "p")
    net.call("a", "subscribe", "a/1", ["t1"])
    net.passes = lambda source, target, message: not isinstance(message, Events | Heartbeat)
    net.call("p", "publish", "t1", {})
    net.fire("a", "renew")
    assert net.delivered["a"] == [], "an event may still be on its way: nothing is sent again"
    net.fire("stage1", "heartbeat/t1")
    net.passes = lambda source, target, message: True
    net.fire("a", "renew")
    assert net.delivered["a"] == ["p:1"]


@pytest.mark.parametrize(
    ("options", "seen"),
    [
        ({"mode": "hold"}, ["p:7"]),  # a new start behind the gap
        ({"mode": "tag"}, ["p:5", "p:6", "p:7"]),
        ({"mode": "tag", "buffer": 0}, ["p:6", "p:5*", "p:7"]),
    ],
)
def test_what_is_gone_is_said_and_life_goes_on(options, seen):
    net = Net("a", "p", **options, retention=2)
    net.call("a", "subscribe", "a/1", ["t1", "t2"])
    net.passes = lambda source, target, message: not isinstance(message, Events)
    for _ in range(5):
        net.call("p", "publish", "t1", {})
    net.passes = lambda source, target, message: True
    net.call("p", "publish", "t1", {})
    net.fire("a", "repair")
    assert "gone" in net.notes
    assert net.answers["gap/t1"] == "gap"
    net.fire("a", "repair")
    net.call("p", "publish", "t1", {})
    assert net.delivered["a"] == seen
    assert net.machines["a"].idle


def test_repair_beyond_what_exists_gives_what_exists():
    net = Net("a", "p")
    net.call("a", "subscribe", "a/1", ["t1"])
    net.passes = lambda source, target, message: not isinstance(message, Events)
    net.call("p", "publish", "t1", {})
    answers = net.machines["stage1"].receive("a", Repair("t1", 1, 10**9), 0.0)
    assert [type(each.message) for each in of(Send, answers)] == [Events]


# Epochs.


def says(message, kind):
    return isinstance(getattr(message, "body", None), kind)


def test_a_reorder_reaches_everybody_and_events_go_on():
    net = Net("a", "p", swaps="on")
    net.call("a", "subscribe", "a/1", list(TOPICS))
    net.call("p", "publish", "t3", {})
    net.call("ranking", "reorder", ("t3", "t2", "t1"))
    net.fire("ranking", "collect")
    orders = {net.machines[f"stage{n}"].s.order for n in (1, 2, 3)}
    assert orders == {("t3", "t2", "t1")}
    assert {net.machines[f"stage{n}"].s.epoch for n in (1, 2, 3)} == {1}
    net.call("p", "publish", "t1", {})
    assert net.delivered["a"] == ["p:1", "p:2"]
    # The cut: t3, now above, knows how far t1 was; t1's new event names t3's old one.
    assert dict(net.machines["stage1"].managers["t1"].s.lower) is not None


def test_a_request_for_another_epoch_is_forgotten():
    """E3: asked twice, swapped once."""
    net = Net(swaps="on")
    ranking = net.machines["ranking"]
    request = SwapRequest(0, "t1", "t2")
    ranking._on_swap_request("stage1", request, 0.0)
    assert ranking._on_swap_request("stage1", request, 0.0)[0].mark == "swap_refused"
    net.fire("ranking", "collect")
    assert ranking.s.order == ("t2", "t1", "t3")
    assert ranking._on_swap_request("stage1", request, 0.0)[0].mark == "swap_refused"


def test_a_storm_of_requests_becomes_one_change():
    net = Net(swaps="on")
    ranking = net.machines["ranking"]
    for upper in TOPICS:
        for lower in TOPICS:
            if upper < lower:
                ranking._on_swap_request("stage1", SwapRequest(0, upper, lower), 0.0)
    net.fire("ranking", "collect")
    assert ranking.s.epoch == 1
    assert sorted(ranking.s.order) == sorted(TOPICS)
    assert ranking.idle


def test_a_busy_topic_climbs_by_rate():
    net = Net("a", "p", swaps="on")
    net.call("a", "subscribe", "a/1", list(TOPICS))
    for second in range(20):
        net.call("p", "publish", "t3", {}, now=float(second))
        net.fire("ranking", "collect", now=float(second))
    ranking = net.machines["ranking"]
    assert ranking.s.order[0] == "t3"
    assert ranking.s.rates.changed
    assert ranking.s.rates.seen < 20, "counted anew since the change"
    assert ranking.idle


def test_while_frozen_requests_wait_and_lose_nothing():
    net = Net("a", "p", swaps="on")
    net.call("a", "subscribe", "a/1", list(TOPICS))
    net.call("ranking", "reorder", ("t2", "t1", "t3"))
    net.passes = lambda source, target, message: not says(message, Frozen)
    net.fire("ranking", "collect")
    net.call("p", "publish", "t1", {})
    assert net.delivered["a"] == []
    assert not net.machines["stage1"].idle
    net.passes = lambda source, target, message: True
    for name in ("stage1", "stage2", "stage3"):
        net.fire(name, "resend/ranking")
    assert net.delivered["a"] == ["p:1"]


# Misuse: an error with a name, and nothing has changed.


@pytest.mark.parametrize(
    ("error", "verb", "args"),
    [
        (UnknownName, "publish", ("nowhere", {})),
        (UnknownName, "subscribe", ("a/2", ["nowhere"])),
        (Misuse, "subscribe", ("a/2", [])),
        (Misuse, "subscribe", ("a/2", ["t1"])),
        (Misuse, "unsubscribe", ("a/2", ["t3"])),
        (TooLarge, "publish", ("t1", {"x": "y" * 600_000})),
    ],
)
def test_misuse_is_named_and_changes_nothing(error, verb, args):
    net = Net("a")
    net.call("a", "subscribe", "a/1", ["t1"])
    machine = net.machines["a"]
    before = machine.snapshot()
    with pytest.raises(error):
        getattr(machine, verb)(*args, 0.0)
    assert machine.snapshot() == before


def test_more_topics_than_a_subscriber_may_hold_are_refused(monkeypatch):
    monkeypatch.setattr("inorder.protocols.total.subscriber.TOPICS_PER_SUBSCRIBER_MAX", 2)
    machine = client("a")
    machine.subscribe("a/1", ["t1", "t2"], 0.0)
    with pytest.raises(TooLarge) as refused:
        machine.subscribe("a/2", ["t3"], 0.0)
    assert (refused.value.size, refused.value.limit) == (3, 2)


def test_a_full_stage_leaves_requests_with_their_senders(monkeypatch):
    monkeypatch.setattr("inorder.protocols.total.stage.QUEUED_REQUESTS_MAX", 1)
    net = Net("a", "p", swaps="on")
    net.call("a", "subscribe", "a/1", list(TOPICS))
    net.call("ranking", "reorder", ("t2", "t1", "t3"))
    net.passes = lambda source, target, message: not says(message, Frozen)
    net.fire("ranking", "collect")
    for _ in range(3):
        net.call("p", "publish", "t1", {})
    assert "stage_full" in net.notes
    net.passes = lambda source, target, message: True
    for name in ("stage1", "stage2", "stage3"):
        net.fire(name, "resend/ranking")
    net.fire("p", "resend/stage1")
    assert [net.answers[f"p:{n}"] for n in (1, 2, 3)] == ["accepted"] * 3


def test_messages_have_the_fields_their_rules_speak_of():
    assert bodies([]) == []
    for kind in (Create, Fill, Walk, Freeze, Gone, Heartbeat, Renew):
        assert kind.__struct_config__.frozen
