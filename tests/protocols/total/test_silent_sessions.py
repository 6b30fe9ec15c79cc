"""Sessions of clients that fall silent: they end, are cut, or last."""

from __future__ import annotations

import pytest

from inorder.core.effect import SetTimer
from inorder.protocols.total.messages import (
    Accepted,
    Fill,
    Freeze,
    Renew,
    Walk,
    WalkDone,
)
from tests.protocols.total.drive import Net
from tests.protocols.total.test_lease import LEASE_TICKS, silent

# Sessions of the silent.


def test_a_session_with_nobody_is_ended_and_goes_on_if_it_must():
    net = Net("p")
    net.call("p", "publish", "t1", {})
    stage1 = net.machines["stage1"]
    assert "lease" in net.timers["stage1"]
    silent(net, "stage1")
    assert not [name for name, link in stage1.links.s.peers.items() if link.session]
    assert stage1.links.s.ended["p"].received == 1
    assert "session_ended" in net.notes
    assert stage1.fire("lease", 0.0) == [], "with nobody to watch, the timer ends"
    net.call("p", "publish", "t1", {})
    assert net.answers["p:2"] == "accepted"


def test_a_lease_is_watched_as_long_as_there_is_a_holder_or_a_client():
    net = Net("a", "p")
    net.call("p", "publish", "t1", {})
    stage1 = net.machines["stage1"]
    watch = SetTimer("lease", 10.0, background=True)
    assert watch in stage1.fire("lease", 0.0), "a client that holds nothing"
    net.call("a", "subscribe", "a/1", ["t1"])
    for name in ("a", "p"):
        stage1.links.end(name)
    assert watch in stage1.fire("lease", 0.0), "a holder without a session"


def test_nobody_has_what_was_not_yet_numbered():
    net = Net("a", "p")
    net.call("a", "subscribe", "a/1", ["t1"])
    net.act("stage1", net.machines["stage1"].receive("a", Renew((("t1", 99, 0),)), 0.0))
    net.members.clear()
    net.call("p", "publish", "t1", {})
    manager = net.machines["stage1"].managers["t1"]
    manager.tick()
    assert (manager.s.reported, manager.s.retained) == ({"a": 0}, 1)


def test_stamps_do_not_regard_who_was_forgotten():
    net = Net("a", "p")
    net.call("a", "subscribe", "a/1", ["t1", "t2"])
    net.call("p", "publish", "t2", {})
    silent(net, "stage2")
    stamps = []
    net.passes = lambda source, target, message: (
        not isinstance(getattr(message, "body", None), Accepted)
        or stamps.append(message.body.stamp) is not None
    )
    net.call("p", "publish", "t2", {})
    assert stamps[0] == (("t2", 2),)


def test_both_ends_of_a_session_with_nobody_end_it():
    net = Net("p")
    net.call("p", "publish", "t1", {})
    silent(net, "stage1")
    assert net.machines["p"].links.s.peers == {}
    assert net.machines["p"].links.s.ended["stage1"].sent == 1


def is_framed(kind, source):
    return lambda name, target, message: (
        not (name == source and isinstance(getattr(message, "body", None), kind))
    )


@pytest.mark.parametrize("waits", ["request", "round", "walk in", "walk out"])
def test_a_session_lasts_as_long_as_anything_of_its_client_waits_at_the_stage(waits):
    """All that its client said was acknowledged; nothing is on its way between the two."""
    net = Net("a", "p", swaps="on")
    net.call("a", "subscribe", "a/1", ["t1", "t2"])
    stage = "stage2"
    if waits in ("request", "walk in"):
        net.machines[stage].epochs.on_freeze("ranking", Freeze(0, 1, ("t2",)), 0.0)
    else:
        net.passes = is_framed(Fill if waits == "round" else Walk, stage)
    if waits in ("request", "round"):
        net.call("p", "publish", "t2", {})
    else:
        net.call("p", "subscribe", "p/1", ["t1", "t2"])
    assert net.machines[stage].links.may_end("p")
    silent(net, stage, 3 * LEASE_TICKS)
    assert "p" in net.machines[stage].links.s.peers


def test_a_session_is_not_ended_while_an_answer_is_owed():
    net = Net("a", "p")
    net.call("a", "subscribe", "a/1", ["t1", "t2"])
    net.passes = lambda source, target, message: target != "stage1"
    net.call("p", "publish", "t2", {})
    silent(net, "stage2", 3 * LEASE_TICKS)
    assert "p" in net.machines["stage2"].links.s.peers


@pytest.mark.parametrize("lost", [Accepted, WalkDone])
def test_who_was_cut_off_with_an_answer_asks_again(lost):
    net = Net("p")
    net.passes = lambda source, target, message: (
        not isinstance(getattr(message, "body", None), lost)
    )
    call = "p:1" if lost is Accepted else "p/1"
    if lost is Accepted:
        net.call("p", "publish", "t1", {})
    else:
        net.call("p", "subscribe", call, ["t1", "t2"])
    for name in ("stage1", "stage2"):
        silent(net, name, LEASE_TICKS)
    assert "link_cut" in net.notes
    net.passes = lambda source, target, message: True
    net.fire("p", "greet")
    assert net.answers[call] in ("accepted", "done")
    assert net.machines["stage1"].managers["t1"].s.count == (lost is Accepted), "numbered once"
    assert net.machines["p"].idle


def test_a_request_answered_long_ago_is_answered_again_without_its_number():
    net = Net("p")
    net.passes = lambda source, target, message: (
        not isinstance(getattr(message, "body", None), Accepted)
    )
    net.call("p", "publish", "t1", {})
    silent(net, "stage1", LEASE_TICKS)
    assert net.machines["stage1"].managers["t1"].s.log == []
    net.passes = lambda source, target, message: True
    net.fire("p", "greet")
    assert net.answers["p:1"] == "accepted"


def test_a_client_says_goodbye():
    net = Net("a", "p")
    net.call("a", "subscribe", "a/1", ["t1", "t2"])
    net.call("a", "publish", "t3", {})
    net.call("a", "close")
    assert net.answers["close"] == "done"
    for name in ("stage1", "stage2", "stage3"):
        stage = net.machines[name]
        assert "a" not in stage.links.s.peers, name
        assert all(not manager.s.reported for manager in stage.managers.values())
    assert net.machines["a"].links.s.peers == {}


def test_a_client_that_says_goodbye_waits_for_its_answers():
    net = Net("a")
    net.passes = lambda source, target, message: (
        not isinstance(getattr(message, "body", None), Accepted)
    )
    net.call("a", "publish", "t1", {})
    net.call("a", "close")
    assert "close" not in net.answers
    net.passes = lambda source, target, message: True
    net.fire("stage1", "resend/a")
    assert (net.answers["a:1"], net.answers["close"]) == ("accepted", "done")
