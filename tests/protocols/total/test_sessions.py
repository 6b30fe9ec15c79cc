"""Sessions of clients and stages together: what ends, is cut or forgotten while something is under
way elsewhere. Every story here once went wrong."""

from __future__ import annotations

import pytest

from inorder.core.effect import Answer, Persist
from inorder.core.errors import BadMessage
from inorder.protocols.session.messages import Ack, Frame, Unknown
from inorder.protocols.total.messages import Accepted, Events, Fill, Forget, Renew, WalkDone
from tests.protocols.total.drive import FIRST, Net, of, stage
from tests.protocols.total.test_lease import collect, hand_over, silent


def without(*kinds):
    return lambda source, target, message: not isinstance(getattr(message, "body", None), kinds)


def everything(source, target, message):
    return True


class Slow:
    """Nothing gets from stage2 to stage1 until it is let go."""

    def __init__(self, net):
        self._net = net
        self.kept = []
        self.cut = False
        net.passes = self

    def __call__(self, source, target, message):
        if (source, target) == ("stage2", "stage1") and self.kept is not None:
            self.kept.append(message)
            return False
        return not (self.cut and "p" in (source, target))

    def let_go(self):
        kept, self.kept = self.kept, None
        stage1 = self._net.machines["stage1"]
        for message in kept:
            self._net.act("stage1", stage1.receive("stage2", message, 0.0))
        self._net.run()


def insist(net, *timers):
    for _ in range(10):
        for timer in timers:
            net.fire("p", timer)
        for name in ("stage1", "stage2"):
            net.fire(name, "resend/p")


def test_a_life_is_on_disk_before_its_sign_of_life():
    net = Net("p")
    net.passes = without(Accepted)
    net.call("p", "publish", "t1", {})
    net.passes = everything
    net.restart("p")
    # The answer to the old life is answered with the session of the new one.
    net.fire("stage1", "resend/p")
    net.restart("p")
    seq = net.machines["p"].next_seq
    net.call("p", "publish", "t1", {})
    insist(net, "greet", "resend/stage1")
    assert net.answers[f"p:{seq}"] == "accepted"


def test_a_walk_made_again_is_registered_where_the_first_was_forgotten():
    net = Net("a", "b", "p", "q")
    net.passes = without(WalkDone)
    for name in "ab":
        net.call(name, "subscribe", f"{name}/1", ["t1", "t2"])
    for name in ("stage1", "stage2"):
        silent(net, name)
    net.passes = everything
    for name in "ab":
        net.fire(name, "greet")
    for name, topic in (("stage1", "t1"), ("stage2", "t2")):
        assert net.machines[name].managers[topic].group.holders == ["a", "b"]
    kept = collect(net)
    net.call("p", "publish", "t2", {})
    net.call("q", "publish", "t1", {})
    for name, topic in (("a", "t1"), ("a", "t2"), ("b", "t2"), ("b", "t1")):
        hand_over(net, kept, name, topic)
    assert net.delivered["a"] == net.delivered["b"] == ["p:1", "q:1"]


@pytest.mark.parametrize("mode", ["hold", "tag"])
def test_publishers_that_diffuse_say_whom_the_topic_has_forgotten(mode):
    net = Net("a", "b", "p", "q", mode=mode, diffusion="publisher")
    for name in "ab":
        net.call(name, "subscribe", f"{name}/1", ["t1", "t2"])
    silent(net, "stage1")
    kept = collect(net)
    net.call("p", "publish", "t2", {})
    net.call("q", "publish", "t1", {})
    for name, topic in (("a", "t1"), ("a", "t2"), ("b", "t2"), ("b", "t1")):
        hand_over(net, kept, name, topic)
    assert net.delivered["a"] == net.delivered["b"] == ["p:1"]


def test_a_replay_keeps_more_unacknowledged_and_cuts_nobody(monkeypatch):
    """Acknowledgements are not in the log."""
    monkeypatch.setattr("inorder.protocols.session.links.LINK_UNACKED_MAX", 20)
    machine = stage("stage2")
    log = []

    def take(source, message):
        log.extend(each.record for each in of(Persist, machine.receive(source, message, 0.0)))

    for number in range(1, 51):
        fill = Fill(0, "t3", number, 1, "t2", ("t2", "t1"), (("t3", number),))
        take("stage3", Frame(0, 0, number, 0, fill))
        take("stage1", Ack(0, 0, number))
    again = stage("stage2")
    for record in log:
        again.replay(record)
    link = again.links.s.peers["stage1"]
    assert (link.session, link.out.sent) == (0, 50)


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_requests_are_left_with_a_client_that_acknowledges_no_answers(more, monkeypatch):
    """Cut, its session would begin anew with the same requests, and be cut again, for ever."""
    monkeypatch.setattr("inorder.protocols.total.stage.LINK_ANSWERS_MAX", 3)
    monkeypatch.setattr("inorder.protocols.session.links.LINK_UNACKED_MAX", 3)
    net = Net("p", batch=1)
    net.passes = without(Accepted)
    for _ in range(3 + more):
        net.call("p", "publish", "t1", {})
    assert net.machines["stage1"].managers["t1"].s.count == min(3 + more, 3)
    assert ("stage_full" in net.notes) == (more == 1)
    assert "link_cut" not in net.notes
    net.passes = everything
    insist(net, "greet", "resend/stage1")
    assert [net.answers.get(f"p:{number}") for number in range(1, 4 + more)] == ["accepted"] * (
        3 + more
    )
    assert net.machines["stage1"].managers["t1"].s.count == 3 + more


def test_an_overfull_session_with_a_client_is_cut_in_the_log(monkeypatch):
    """A client that crashes again and again, and never gets the end of a walk."""
    monkeypatch.setattr("inorder.protocols.session.links.LINK_UNACKED_MAX", 3)
    net = Net("p")
    net.passes = without(WalkDone)
    for _ in range(4):
        net.call("p", "subscribe", "p/1", ["t1"])
        net.restart("p")
    assert net.notes.count("link_cut") == 1
    net.call("p", "subscribe", "p/2", ["t1"])
    net.passes = everything
    net.restart("stage1")
    insist(net, "greet", "resend/stage1")
    assert net.answers["p/2"] == "done"
    assert net.machines["p"].idle
    assert net.machines["stage1"].managers["t1"].group.holders == ["p"]


def test_who_was_cut_twice_is_told_by_any_sign_of_life():
    net = Net("p")
    slow = Slow(net)
    net.call("p", "subscribe", "p/1", ["t1", "t2"])
    net.passes = lambda *each: slow(*each) and without(Accepted)(*each)
    net.call("p", "publish", "t1", {})
    net.fire("p", "resend/stage1")
    net.passes = slow
    slow.cut = True
    silent(net, "stage1", 8)
    slow.let_go()
    silent(net, "stage1", 9)
    assert net.notes.count("link_cut") == 2
    slow.cut = False
    insist(net, "greet", "renew", "repair", "resend/stage1")
    assert (net.answers["p:1"], net.answers["p/1"]) == ("accepted", "done")
    assert net.machines["p"].idle


def test_frames_of_an_older_life_are_not_taken_for_those_of_the_next():
    net = Net("p")
    net.machines["stage1"].links.s.floor = 50 << 16
    late = []

    def passes(source, target, message):
        if source == "p" and isinstance(message, Frame) and message.session > 50 << 16:
            late.append(message)
            return False
        return True

    net.passes = passes
    net.call("p", "publish", "t1", {})
    net.restart("p")
    net.call("p", "subscribe", "p/1", ["t1"])
    net.passes = everything
    net.act("stage1", net.machines["stage1"].receive("p", late[0], 0.0))
    net.run()
    insist(net, "greet", "resend/stage1")
    assert net.answers["p/1"] == "done"
    assert net.machines["p"].idle


def test_an_answer_to_a_session_forgotten_meanwhile_arrives(monkeypatch):
    monkeypatch.setattr("inorder.protocols.session.book.LINK_ENDED_MAX", 10)
    others = [f"c{number}" for number in range(12)]
    net = Net("p", *others)
    for _ in range(2):
        net.call("p", "publish", "t1", {})
    slow = Slow(net)
    net.call("p", "subscribe", "p/1", ["t1", "t2"])
    silent(net, "stage1", 8)
    for name in others:
        net.call(name, "publish", "t1", {})
    silent(net, "stage1", 8)
    assert "p" not in net.machines["stage1"].links.s.ended
    slow.let_go()
    insist(net, "greet", "renew", "resend/stage1", "resend/stage2")
    assert net.answers["p/1"] == "done"
    assert net.machines["p"].idle


def test_a_copy_of_an_old_renewal_makes_no_gap():
    net = Net("a", "b")
    for name in "ab":
        net.call(name, "subscribe", f"{name}/1", ["t1"])
    stage1 = net.machines["stage1"]
    net.act("stage1", stage1._tell(Forget(("a",)), 0.0))
    net.run()
    net.fire("a", "renew")
    assert net.answers.pop("gap/t1") == "gap", "the one that there was"
    net.act("stage1", stage1._tell(Forget(("b",)), 0.0))
    net.act("stage1", stage1.receive("a", Renew((("t1", 0, 0),)), 0.0))
    net.run()
    assert "gap/t1" not in net.answers


def test_an_ended_session_that_an_early_frame_resumes_may_end_again_and_be_replayed():
    net = Net("p")
    net.call("p", "publish", "t1", {})
    silent(net, "stage1")
    net.passes = lambda source, target, message: (
        not (source == "p" and isinstance(message, Frame) and message.number == 2)
    )
    for _ in range(2):
        net.call("p", "publish", "t1", {})
    silent(net, "stage1", 8)
    net.restart("stage1")
    net.passes = everything
    insist(net, "greet", "resend/stage1")
    assert [net.answers[f"p:{number}"] for number in (1, 2, 3)] == ["accepted"] * 3


@pytest.mark.parametrize("mode", ["hold", "tag"])
def test_a_gap_begins_with_the_first_event_that_has_not_come(mode):
    net = Net("a", "p", "q", mode=mode)
    net.call("a", "subscribe", "a/1", ["t1", "t2"])
    net.passes = lambda source, target, message: (
        not (isinstance(message, Events) and message.topic == "t1")
    )
    for _ in range(2):
        net.call("p", "publish", "t1", {})
    net.call("q", "publish", "t2", {})
    for timer in [name for name in net.timers["a"] if name.startswith("ttl/")]:
        net.fire("a", timer)
    silent(net, "stage1")
    told = []
    act = net.act
    net.act = lambda name, effects: (told.extend(of(Answer, effects)), act(name, effects))[1]
    net.fire("a", "renew")
    gaps = [answer.reason for answer in told if answer.outcome == "gap"]
    assert gaps == ["t1 1 to 2 at the latest"]


def test_the_session_of_a_first_life_is_named_by_it():
    net = Net("p")
    net.call("p", "publish", "t1", {})
    assert net.machines["stage1"].links.s.peers["p"].session == FIRST


def test_a_stage_tries_again_when_a_client_that_it_gave_up_renews():
    """It has the answer, and nothing to say: only its acknowledgement was lost, again and again."""
    net = Net("p")
    net.call("p", "subscribe", "p/1", ["t1"])
    net.passes = lambda source, target, message: not (source == "p" and isinstance(message, Ack))
    net.call("p", "publish", "t1", {})
    for _ in range(70):
        net.fire("stage1", "resend/p")
    assert "link_gave_up" in net.notes
    assert not net.machines["stage1"].idle
    net.passes = everything
    net.fire("p", "renew")
    assert net.machines["stage1"].idle


@pytest.mark.parametrize("message", [
    Unknown(FIRST, 2**63 - 1), Frame(2**63 - 1, 0, 1, 0, WalkDone("p", 1, ())),
])  # fmt: skip
def test_a_service_cannot_use_up_the_numbers_of_a_client(message):
    net = Net("p")
    net.call("p", "publish", "t1", {})
    machine = net.machines["p"]
    before = machine.snapshot()
    with pytest.raises(BadMessage, match="leaves no number"):
        machine.receive("stage1", message, 0.0)
    assert machine.snapshot() == before
