"""Thousands of schedules without time, each judged by what could be seen (judge.py, packets.py)."""

from __future__ import annotations

import os
from collections import Counter

import pytest
from msgspec import structs

from inorder.core.event import Event
from inorder.protocols.cube.messages import Ack, Act, Pub, Sub, Uns
from inorder.protocols.cube.trees import Trees
from inorder.sim.pool import Op
from tests.protocols.cube.judge import Broken, Judge
from tests.protocols.cube.packets import Packets
from tests.protocols.cube.published import leaves_at_the_call
from tests.protocols.cube.world import Cube, Drawn, Plan, broken, draw, run, shrunk, story

# `make explore` runs more of them: python -m tests.protocols.cube.world --schedules N
SCHEDULES = int(os.environ.get("INORDER_SCHEDULES", "3000"))


def judged(plan: Plan) -> Drawn:
    try:
        return run(plan)
    except Exception:
        print(plan, *story(shrunk(plan)), sep="\n")
        raise


def test_no_schedule_breaks_causal_order_or_loses_anything():
    """Up to 16 peers, windows of 1 to 4, joins, leaves, returns, pure sources, doubled packets."""
    marks: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    named = relays = 0
    for seed in range(SCHEDULES):
        drawn = judged(draw(seed))
        marks.update(drawn.seen_marks)
        counts.update(drawn.packets.counts)
        named += drawn.packets.entries
        relays += drawn.packets.relays
    # That much has happened: barriers that name something, copies for who has left meanwhile.
    assert min(counts[kind.__name__] for kind in (Sub, Act, Uns, Pub, Ack)) > 4 * SCHEDULES
    assert named > SCHEDULES / 2
    assert relays > SCHEDULES / 20
    assert marks["duplicate"] > SCHEDULES / 100


def test_no_schedule_breaks_what_the_network_alone_promises():
    """Without an order on top: whom a publication goes to, views, calls, bounds."""
    for seed in range(SCHEDULES // 3):
        judged(draw(seed, guarantee="none"))


def test_no_schedule_breaks_the_order_of_whole_stamps():
    for seed in range(SCHEDULES // 6):
        judged(structs.replace(draw(seed), order={"stamps": "whole"}))


def test_no_schedule_breaks_the_order_of_clocks_while_members_come_and_go():
    for seed in range(SCHEDULES // 10):
        judged(structs.replace(draw(seed), order={"stamps": "clock"}))


def test_a_seed_is_the_whole_reproduction():
    for seed in (3, 17, 40):
        assert story(draw(seed)) == story(draw(seed))
    assert story(draw(3)) != story(draw(4))


def test_a_story_ends_with_what_is_broken_and_is_short(monkeypatch):
    leaves_at_the_call(monkeypatch)
    plan = next(plan for plan in map(draw, range(300)) if broken(plan))
    smallest = shrunk(plan)
    assert sum(map(len, smallest.programs.values())) <= sum(map(len, plan.programs.values()))
    assert story(smallest)[-1].startswith(f"Broken: {broken(plan)}")


# The judges themselves.

NAMES = ["a", "b", "c"]


def watched() -> Judge:
    """a and b are in, and a:1 is launched."""
    judge = Judge(NAMES, ordered=True)
    for node in "ab":
        judge.called(node, "subscribe", "t", f"{node}/1")
        judge.answered(node, f"{node}/1", "done")
    launch(judge, "a", 1)
    return judge


def launch(judge: Judge, node: str, number: int) -> Event:
    event = Event(node, number, "t", {"n": number})
    judge.called(node, "publish", "t", f"{node}/publish/{number}", number)
    judge.launched(node, f"{node}/publish/{number}", event)
    return event


def test_the_judge_sees_what_comes_twice_or_was_never_launched_so():
    judge = watched()
    judge.delivered("b", Event("a", 1, "t", {"n": 1}), True)
    for event in (Event("a", 1, "t", {"n": 1}), Event("a", 2, "t"), Event("a", 1, "t", {"n": 2})):
        with pytest.raises(Broken, match="S1"):
            judge.delivered("b", event, True)
    with pytest.raises(Broken, match="S1"):
        judge.launched("a", "a/publish/1", Event("a", 1, "t", {"n": 1}))
    judge.called("a", "publish", "t", "x", 7)
    with pytest.raises(Broken, match="S1"):
        judge.launched("a", "x", Event("a", 7, "t", {"n": 8}))


def test_the_judge_sees_deliveries_outside_of_memberships():
    judge = watched()
    event = Event("a", 1, "t", {"n": 1})
    with pytest.raises(Broken, match="S1"):
        judge.delivered("c", event, True)
    judge.called("c", "subscribe", "t", "c/1")
    with pytest.raises(Broken, match="S1"):
        judge.delivered("c", event, True)
    judge.answered("c", "c/1", "done")
    with pytest.raises(Broken, match="S10"):
        judge.delivered("c", event, True)
    judge.called("b", "unsubscribe", "t", "b/2")
    with pytest.raises(Broken, match="S1"):
        judge.delivered("b", event, True)


def test_the_judge_sees_an_effect_before_its_cause_through_a_chain():
    judge = Judge(NAMES, ordered=True)
    for node in NAMES:
        judge.called(node, "subscribe", "t", f"{node}/1")
        judge.answered(node, f"{node}/1", "done")
    cause = launch(judge, "a", 1)
    judge.delivered("b", cause, True)
    middle = launch(judge, "b", 1)
    judge.delivered("a", middle, True)
    effect = launch(judge, "a", 2)
    judge.delivered("c", effect, True)
    for late in (middle, cause):
        with pytest.raises(Broken, match="S2"):
            judge.delivered("c", late, True)


def test_the_judge_counts_an_order_for_each_publisher_and_asks_for_what_is_due():
    judge = watched()
    second = launch(judge, "a", 2)
    judge.delivered("b", second, True)
    with pytest.raises(Broken, match=r"S[23]"):
        judge.delivered("b", Event("a", 1, "t", {"n": 1}), True)
    with pytest.raises(Broken, match=r"L1: a:1 has never been delivered by \['a', 'b'\]"):
        judge.finish()
    for node in "ab":
        judge.called(node, "unsubscribe", "t", f"{node}/2")
    with pytest.raises(Broken, match="L5"):
        judge.finish()
    for call in ("a/2", "b/2"):
        judge.answered(call[0], call, "done")
    for number in (1, 2):
        judge.answered("a", f"a:{number}", "accepted")
    judge.finish()
    with pytest.raises(Broken, match="L5"):
        judge.answered("a", "a:1", "accepted")


def packets(*members: str) -> tuple[Judge, Packets]:
    judge = Judge(["a", "b", "c", "d"], ordered=True)
    seen = Packets(["a", "b", "c", "d"], judge, doubled=False)
    for node in members:
        judge.called(node, "subscribe", "t", f"{node}/1")
        judge.answered(node, f"{node}/1", "done")
        seen.preset(node, "t")
    return judge, seen


def pub(judge: Judge, seen: Packets, source: str = "a", places: tuple = ()) -> Pub:
    from inorder.protocols.causal.messages import Published

    event = launch(judge, source, 1)
    seen.launch(source, "t", event.id)
    return Pub("t", NAMES.index(source), 1, b"", Published(event, places))


def test_the_judge_of_packets_sees_a_second_copy_and_a_wave_of_nobody():
    judge, seen = packets("a", "b")
    message = pub(judge, seen)
    with pytest.raises(Broken, match="S5"):
        seen.sent("b", "a", message)
    seen.sent("a", "b", message)
    for source, target in (("a", "b"), ("b", "a")):
        with pytest.raises(Broken, match="S4"):
            seen.sent(source, target, message)


@pytest.mark.parametrize(
    ("copies", "acks", "what"),
    [
        (["ab", "ac"], ["ba", "ca"], "S6.*misses.*'d'"),
        (["ab", "ac", "bd"], ["ba", "ca"], "cost.*acknowledges.*0 times"),
        (["ab", "ac", "bd"], ["ba", "ca", "db", "db"], "cost.*acknowledges.*2 times"),
        (["ab", "ac", "bd"], ["ba", "ca", "db", "ad"], "cost"),
        (["ab", "bc", "cd"], ["ba", "cb", "dc"], "S5.*higher"),
        (["ab", "ac", "ad"], ["ba", "ca", "da"], "S5.*degree"),
        (["ab", "ac", "bd"], ["ba", "ca", "db"], ""),
    ],
)
def test_the_judge_of_packets_sees_a_wrong_tree(copies, acks, what):
    judge, seen = packets("a", "b", "c", "d")
    message = pub(judge, seen)
    for source, target in copies:
        seen.sent(source, target, message)
    for source, target in acks:
        seen.sent(source, target, Ack(3, "t", 0, 1))
    if not what:
        seen.finish()
        return
    with pytest.raises(Broken, match=what):
        seen.finish()


def test_the_judge_of_packets_sees_a_copy_for_somebody_else():
    judge, seen = packets("a", "b")
    seen.sent("a", "c", pub(judge, seen))
    seen.sent("a", "b", Pub("t", 0, 1, b"", None))
    with pytest.raises(Broken, match=r"S6.*\['c'\] as well"):
        seen.finish()


def test_the_judge_of_packets_sees_a_question_that_misses_somebody():
    _, seen = packets("a")
    sub = Sub("t", 1, 1, 1, 1, b"")
    for target in "ac":
        seen.sent("b", target, sub)
        seen.sent(target, "b", Ack(0, "t", 1, 1))
    with pytest.raises(Broken, match=r"cost.*\['a', 'c'\] only"):
        seen.finish()


def test_the_judge_of_packets_looks_up_what_a_stamp_names():
    judge, seen = packets("a", "b")
    cause = pub(judge, seen)
    with pytest.raises(Broken, match="S7"):
        seen.sent("b", "a", pub(judge, seen, "b", ((0, 1),)))
    judge, seen = packets("a", "b")
    cause = pub(judge, seen)
    seen.sent("a", "b", cause)
    seen.received("b", "a", cause)
    effect = pub(judge, seen, "b", ((0, 1),))
    for places in (((0, 2),), ((0, 1), (0, 1)), ((1, 1),)):
        wrong = structs.replace(effect.body, places=places)
        with pytest.raises(Broken, match="S7"):
            seen.sent("b", "a", structs.replace(effect, body=wrong))
    seen.sent("b", "a", effect)


def test_who_has_left_may_be_addressed_until_the_source_has_heard_of_it():
    for heard in (False, True):
        judge, seen = packets("a", "b")
        uns = Uns("t", 1, 2, b"")
        seen.sent("b", "a", uns)
        seen.sent("a", "b", Ack(2, "t", 1, 2))
        judge.called("b", "unsubscribe", "t", "b/2")
        if heard:
            seen.received("a", "b", uns)
        seen.sent("a", "b", pub(judge, seen))
        seen.sent("b", "a", Ack(3, "t", 0, 1))
        if heard:
            with pytest.raises(Broken, match="S6"):
                seen.finish()
        else:
            seen.finish()


def test_a_plan_can_be_written_by_hand():
    calls = {0: (Op("publish", ("t",)),), 2: (Op("subscribe", ("t",)),)}
    drawn = run(Plan(1, 4, 1, members=(0, 1), programs=calls))
    assert drawn.judge.members("t") == {"p00", "p01", "p02"}
    assert drawn.packets.counts["Sub"] == 3


def test_acknowledgements_that_wait_for_room_end_in_no_deadlock(monkeypatch):
    """A member that holds anything back acknowledges no publications: the sources stop at their
    windows, and what it waits for still comes."""
    monkeypatch.setattr("inorder.protocols.cube.peer.HELD_EVENTS_MAX", 0)
    withheld = 0
    acknowledge = Trees._acknowledge

    def counted(self, parent, key, *more):
        nonlocal withheld
        before = len(self._withheld)
        acknowledge(self, parent, key, *more)
        withheld += len(self._withheld) - before

    monkeypatch.setattr(Trees, "_acknowledge", counted)
    for seed in range(SCHEDULES // 6):
        judged(draw(seed))
    assert withheld > SCHEDULES / 30


def test_a_member_that_holds_too_much_stops_its_source(monkeypatch):
    monkeypatch.setattr("inorder.protocols.cube.peer.HELD_EVENTS_MAX", 0)
    made = Cube(["a", "b", "c", "d"], ["t"], 1, "causal", ["a", "b", "c"])
    for node, link in (("a", ("a", "b")), ("b", ("b", "c"))):
        made.perform(node, Op("publish", ("t",)))
        made.take(next(step for step in made.steps() if (step.source, step.node) == link))
    assert made.peer("c").inner.waiting == 1, "b:1 rests on a:1, which has not come to c"
    for _ in range(2):
        made.perform("b", Op("publish", ("t",)))
    quiet = [step for step in made.steps() if (step.source, step.node) != ("a", "c")]
    while quiet:
        made.take(quiet[0])
        quiet = [step for step in made.steps() if (step.source, step.node) != ("a", "c")]
    launched = {event for event in made.judge.launches if event.startswith("b:")}
    assert launched == {"b:1", "b:2"}, "b:2 was acknowledged before the peer saw how much it held"
    while steps := made.steps():
        made.take(steps[0])
    made.finish()
    assert {"b:3"} < {*made.judge.launches}
