"""A change of the topic order, message by message: asking, freezing, giving up."""

from __future__ import annotations

import pytest

from inorder.core.effect import CancelTimer, SetTimer
from inorder.protocols.total.messages import Abort, Ask, Freeze, Frozen, Install
from tests.protocols.total import weakened
from tests.protocols.total.drive import TOPICS, Net, bodies, of


def sure(net, kind, *, to):
    """Messages of a kind that the ranking has sent to somebody and still keeps."""
    link = net.machines["ranking"].links.s.peers.get(to)
    return [body for body in (link.out.unacked if link else []) if isinstance(body, kind)]


def net_of_all(**options):
    net = Net("a", "p", swaps="on", metric="f", beta=10.0, **options)
    net.call("a", "subscribe", "a/1", list(TOPICS))
    return net


def says(*kinds):
    return lambda source, target, message: not isinstance(getattr(message, "body", None), kinds)


def test_whoever_stands_still_before_a_change_stops_nobody():
    """A question stops nothing: no Freeze before all are ready."""
    net = net_of_all()
    net.passes = lambda source, target, message: target != "stage2" or source != "ranking"
    net.call("ranking", "reorder", ("t3", "t1", "t2"))
    net.fire("ranking", "collect")
    assert net.machines["ranking"].s.phase == "asking"
    net.call("p", "publish", "t3", {})
    assert net.delivered["a"] == ["p:1"]
    assert not sure(net, Freeze, to="stage1")
    assert net.machines["ranking"].fire("change", 99.0) == [], "there is nothing to give up"
    net.passes = lambda *anything: True
    net.fire("ranking", "resend/stage2")
    assert net.machines["stage2"].s.order == ("t3", "t1", "t2")


def frozen_net():
    """stage2 has been told to freeze and its answer is lost: all wait."""
    net = net_of_all()
    net.passes = lambda source, target, message: source != "stage2" or says(Frozen)("", "", message)
    net.call("ranking", "reorder", ("t3", "t1", "t2"))
    net.fire("ranking", "collect")
    net.call("p", "publish", "t1", {})
    assert net.delivered["a"] == []
    return net


def test_a_change_is_given_up_and_made_later():
    net = frozen_net()
    assert "change" in net.timers["ranking"]
    net.fire("ranking", "change")
    assert net.delivered["a"] == ["p:1"], "everybody goes on as before"
    ranking = net.machines["ranking"]
    assert (ranking.s.epoch, ranking.s.phase, ranking.s.aborted) == (0, "waiting", 1)
    net.passes = lambda *anything: True
    net.fire("stage2", "resend/ranking")
    assert ranking.s.phase == "waiting", "an answer that comes too late counts for nothing"
    net.fire("ranking", "collect")
    assert net.machines["stage2"].s.order == ("t3", "t1", "t2")
    assert (ranking.s.attempt, ranking.s.aborted, ranking.s.wish) == (0, 0, None)
    assert ranking.idle


def test_each_attempt_in_vain_waits_twice_as_long_and_rests_as_long():
    net = frozen_net()
    for aborted, seconds in enumerate((10.0, 20.0, 40.0)):
        ranking = net.machines["ranking"]
        assert ranking.s.aborted == aborted
        effects = ranking.fire("change", 0.0)
        rests = [each.after_s for each in of(SetTimer, effects) if each.name == "collect"]
        assert rests == [seconds]
        net.act("ranking", effects)
        # What was to be said late is said; the next answers are lost again.
        net.passes = lambda *anything: True
        net.run()
        for number in (1, 2, 3):
            net.fire(f"stage{number}", "resend/ranking")
        net.passes = says(Frozen)
        begun = ranking.fire("collect", 0.0)
        net.act("ranking", begun)
        net.run()
        assert ranking.s.phase == "freezing"
        assert ranking._patience() == 2 * seconds


def test_long_rounds_make_a_change_more_patient():
    net = net_of_all()
    ranking = net.machines["ranking"]
    for longest, seconds in ((0.0, 10.0), (3.0, 10.0), (5.0, 15.0), (60.0, 180.0)):
        ranking.s.longest = longest
        assert ranking._patience() == seconds
    ranking.s.longest = 0.0
    ranking.s.aborted = 9
    assert ranking._patience() == 640.0, "not for ever longer"


def test_a_round_is_measured_until_the_next_question():
    net = net_of_all()
    net.passes = lambda source, target, message: (source, target) != ("stage2", "stage1")
    net.call("p", "publish", "t2", {}, now=1.0)
    net.passes = lambda *anything: True
    net.fire("stage2", "resend/stage1", now=5.5)
    assert net.machines["stage2"].epochs.s.longest == 4.5
    net.call("ranking", "reorder", ("t1", "t2", "t3"))
    net.fire("ranking", "collect")
    assert net.machines["ranking"].s.longest == 4.5
    assert net.machines["stage2"].epochs.s.longest == 0.0
    net.machines["stage2"].epochs.took(3600.0)
    assert net.machines["stage2"].epochs.s.longest == 0.0, "a clock that jumped"


def late_answer():
    """The second attempt waits for stage2, and an answer to the first turns up."""
    net = frozen_net()
    net.fire("ranking", "change")
    net.passes = lambda *anything: True
    net.fire("stage2", "resend/ranking")
    net.call("p", "publish", "t2", {})
    net.passes = says(Frozen)
    net.fire("ranking", "collect")
    ranking = net.machines["ranking"]
    assert (ranking.s.phase, ranking.s.attempt) == ("freezing", 2)
    for number in (1, 2, 3):
        link = ranking.links.s.peers[f"stage{number}"]
        answer = Frozen(0, 1, ((f"t{number}", 0),))
        ranking._bodies[Frozen](f"stage{number}", answer, 0.0)
        assert link.into.received
    return ranking


def test_answers_to_an_attempt_that_was_given_up_count_for_nothing():
    ranking = late_answer()
    assert (ranking.s.phase, ranking.s.epoch, ranking.s.answered) == ("freezing", 0, {})


def test_without_attempts_they_would_install_a_wrong_cut(monkeypatch):
    weakened.no_attempts(monkeypatch)
    ranking = late_answer()
    sent = ranking.links.s.peers["stage2"].out.unacked
    installs = [body for body in sent if isinstance(body, Install)]
    assert [dict(each.cut)["t2"] for each in installs] == [0], "one event of t2 is missing in it"


def test_after_the_last_answer_nothing_is_given_up():
    net = net_of_all()
    net.passes = says(Install)
    net.call("ranking", "reorder", ("t3", "t1", "t2"))
    net.fire("ranking", "collect")
    ranking = net.machines["ranking"]
    assert ranking.s.epoch == 1
    assert ranking.fire("change", 99.0) == []
    assert not sure(net, Abort, to="stage1")
    net.passes = lambda *anything: True
    for number in (1, 2, 3):
        net.fire("ranking", f"resend/stage{number}")
    assert {net.machines[f"stage{n}"].s.order for n in (1, 2, 3)} == {("t3", "t1", "t2")}


def test_a_change_that_is_made_needs_its_timer_no_more():
    net = net_of_all()
    net.passes = says(Frozen)
    net.call("ranking", "reorder", ("t3", "t1", "t2"))
    net.fire("ranking", "collect")
    ranking = net.machines["ranking"]
    answers = [Frozen(0, 1, ((f"t{n}", 0),)) for n in (1, 2, 3)]
    effects = [
        ranking._on_frozen(f"stage{number}", answer, 0.0)
        for number, answer in enumerate(answers, 1)
    ]
    assert [CancelTimer("change") in each for each in effects] == [False, False, True]


def test_a_freeze_that_comes_again_is_late():
    net = frozen_net()
    (note,) = net.machines["stage1"].epochs.on_freeze("ranking", Freeze(0, 1, ()), 0.0)
    assert note.mark == "late"
    assert net.machines["stage1"].epochs.stops("t1")


def test_only_the_attempt_in_progress_is_given_up():
    epochs = frozen_net().machines["stage1"].epochs
    epochs.on_freeze("ranking", Freeze(0, 2, ("t1",)), 0.0)
    for epoch, attempt in ((0, 1), (0, 3), (1, 2)):
        (note,) = epochs.on_abort("ranking", Abort(epoch, attempt), 0.0)
        assert note.mark == "late"
        assert epochs.stops("t1")
    epochs.on_abort("ranking", Abort(0, 2), 0.0)
    assert not epochs.stops("t1")


def test_a_ranking_that_comes_back_rests_before_the_next_attempt():
    net = frozen_net()
    ranking = net.machines["ranking"]
    ranking.fire("change", 0.0)
    assert ranking._resume(0.0) == [SetTimer("collect", 10.0)]
    ranking.s.phase = "collecting"
    assert ranking._resume(0.0) == [SetTimer("collect", 0.05)]
    ranking.s.phase = "asking"
    assert ranking._resume(0.0) == []


def test_a_wish_during_a_change_takes_its_turn():
    net = net_of_all()
    net.passes = says(Frozen)
    net.call("ranking", "reorder", ("t3", "t1", "t2"))
    net.fire("ranking", "collect")
    net.call("ranking", "reorder", ("t2", "t3", "t1"))
    net.passes = lambda *anything: True
    for number in (1, 2, 3):
        net.fire(f"stage{number}", "resend/ranking")
    ranking = net.machines["ranking"]
    assert (ranking.s.epoch, ranking.s.order) == (1, ("t3", "t1", "t2"))
    net.fire("ranking", "collect")
    assert (ranking.s.epoch, ranking.s.order) == (2, ("t2", "t3", "t1"))
    assert ranking.idle


def test_after_an_attempt_in_vain_a_wish_waits_as_all_do():
    """Else whoever asks again and again keeps everybody standing still."""
    net = frozen_net()
    net.fire("ranking", "change")
    ranking = net.machines["ranking"]
    assert ranking.reorder(("t2", "t1", "t3"), 0.0)
    assert ranking.s.phase == "waiting"


def test_a_walk_that_joins_what_goes_on_to_what_stands_still_makes_the_change_begin_anew():
    """The question is answered, then the walk enters; its stage says so before it says Frozen."""
    net = Net("a", "b", "p", swaps="on", metric="f", beta=10.0)
    net.call("a", "subscribe", "a/1", ["t1", "t2"])
    net.call("b", "subscribe", "b/1", ["t3"])
    net.passes = says(Freeze)
    net.call("ranking", "reorder", ("t2", "t1", "t3"))
    net.fire("ranking", "collect")
    assert net.machines["ranking"].s.stopped == ["t1", "t2"]
    net.call("b", "subscribe", "b/2", ["t1"])
    assert net.answers["b/2"] == "done"
    net.passes = lambda *anything: True
    for number in (1, 2, 3):
        net.fire("ranking", f"resend/stage{number}")
    assert "change_aborted" in net.notes
    assert net.machines["ranking"].s.phase == "collecting", "at once, nobody stands still"
    net.fire("ranking", "collect")
    assert net.machines["stage3"].s.order == ("t2", "t1", "t3")


def test_a_frozen_stage_lets_single_topics_in_and_no_walk_over_several():
    net = Net("a", "b", "c", "p", swaps="on", metric="f", beta=10.0)
    net.call("a", "subscribe", "a/1", ["t1", "t2"])
    net.passes = says(Frozen)
    net.call("ranking", "reorder", ("t2", "t1", "t3"))
    net.fire("ranking", "collect")
    net.call("b", "subscribe", "b/1", ["t3"])
    assert net.answers["b/1"] == "done"
    net.call("c", "subscribe", "c/1", ["t1"])
    net.call("b", "subscribe", "b/2", ["t2"])
    assert not {"c/1", "b/2"} & {*net.answers}
    net.passes = lambda *anything: True
    for number in (1, 2, 3):
        net.fire(f"stage{number}", "resend/ranking")
    assert {"c/1", "b/2"} <= {*net.answers}


@pytest.mark.parametrize("phase", ["waiting", "collecting", "asking", "freezing"])
def test_a_ranking_that_crashes_in_any_phase_goes_on(phase):
    net = frozen_net()
    if phase == "freezing":
        net.restart("ranking")
        assert net.timers["ranking"][-1] == "change"
    else:
        net.fire("ranking", "change")
        if phase == "collecting":
            net.machines["ranking"].s.phase = "collecting"
        if phase == "asking":
            net.passes = says(Ask, Frozen)
            net.fire("ranking", "collect")
        assert net.machines["ranking"].s.phase == phase
        net.restart("ranking")
        assert phase == "asking" or net.timers["ranking"][-1] == "collect"
    net.passes = lambda *anything: True
    for _ in range(3):
        for name in ("ranking", "stage1", "stage2", "stage3"):
            machine = net.machines[name]
            for peer in sorted(machine.links.s.peers):
                net.fire(name, f"resend/{peer}")
        net.fire("ranking", "collect")
    assert net.machines["stage2"].s.order == ("t3", "t1", "t2")
    assert net.machines["ranking"].idle
    assert net.delivered["a"] == ["p:1"]


def test_a_stage_that_crashes_frozen_comes_back_frozen():
    net = frozen_net()
    net.restart("stage1")
    assert net.machines["stage1"].epochs.stops("t1")
    assert net.delivered["a"] == []
    net.fire("ranking", "change")
    assert not net.machines["stage1"].epochs.stops("t1")
    assert net.machines["stage1"].s.managers["t1"].count == 1


def test_an_aborted_change_is_told_to_everybody():
    net = frozen_net()
    effects = net.machines["ranking"].fire("change", 0.0)
    told = [(to, body) for to, body in bodies(effects) if isinstance(body, Abort)]
    assert told == [(f"stage{n}", Abort(0, 1)) for n in (1, 2, 3)]
