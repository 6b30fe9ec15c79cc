"""The schedules that each published rule fell over, one client at a time."""

from __future__ import annotations

from itertools import permutations

import pytest

from inorder.protocols.causal import Client
from tests.protocols.causal.drive import Member, Sent, event, ids
from tests.protocols.causal.judge import Judge
from tests.protocols.causal.weakened import (
    ClearsBarrier,
    DirectAcross,
    DoesNotWaitForUnheard,
    IgnoresCounts,
    JoinsBlindly,
    MutatesStamp,
    ReadsRawClocks,
    WaitsForUnheard,
)

ALL_STAMPS = pytest.mark.parametrize("stamps", ["barrier", "clock", "whole"])
MOVING = pytest.mark.parametrize("stamps", ["barrier", "whole"])


# P1: an answer overtakes its question, and its receiver has never heard of the one who asked.


def ask_and_answer(stamps: str, kind: type[Client]) -> tuple[Judge, Member]:
    judge = Judge()
    asks, answers, reads = (Member(each, ["t"], judge, stamps, kind) for each in range(3))
    question = asks.publish()
    answers.get(question)
    answer = answers.publish()
    assert reads.get(answer) == ([event(answer)] if kind is not Client else [])
    reads.get(question)
    return judge, reads


@ALL_STAMPS
def test_an_answer_waits_for_a_question_of_somebody_never_heard(stamps):
    judge, reads = ask_and_answer(stamps, Client)
    assert reads.got == ["p0:1", "p1:1"]
    assert judge.late["topic"] == []
    assert reads.client.waiting == 0


def test_the_published_text_does_not_wait_for_somebody_never_heard():
    judge, _ = ask_and_answer("barrier", DoesNotWaitForUnheard)
    assert judge.late["topic"] == [(2, "p0:1")]


# P1b: peer 2 joins between question and answer, and the one who asked stays silent for ever.


def join_between(stamps: str, kind: type[Client]) -> Member:
    judge = Judge()
    asks, answers = (Member(each, ["t"], judge, stamps) for each in range(2))
    question = asks.publish()
    answers.get(question)
    joins = Member(2, {"t": {0: (2, 2), 1: (1, 1), 2: (1, 1)}}, judge, stamps, kind)
    joins.get(answers.publish())
    assert judge.late["topic"] == []
    return joins


@MOVING
def test_a_late_joiner_does_not_wait_for_what_was_never_addressed_to_it(stamps):
    assert join_between(stamps, Client).got == ["p1:1"]


def test_the_published_listing_waits_for_ever_for_what_was_never_addressed_to_it():
    joins = join_between("barrier", WaitsForUnheard)
    assert joins.got == []
    assert joins.client.waiting == 1


@MOVING
def test_a_peer_that_never_published_and_never_will_is_not_waited_for(stamps):
    """An origin that has not begun addresses nobody here."""
    judge = Judge()
    asks, answers = (Member(each, ["t"], judge, stamps) for each in range(2))
    answers.get(asks.publish())
    joins = Member(2, {"t": {1: (1, 1), 2: (1, 1)}}, judge, stamps)
    assert joins.get(answers.publish()) == ["p1:1"]


# P6: a publisher leaves right after its last event, while an older cause is still on its way.


@MOVING
def test_the_last_event_of_one_who_left_keeps_its_place(stamps):
    judge = Judge()
    zero, one = (Member(each, ["t"], judge, stamps) for each in range(2))
    one.get(zero.publish())
    joins = Member(2, {"t": {0: (2, 2), 1: (1, 1), 2: (1, 1)}}, judge, stamps)
    middle = one.publish()
    zero.get(middle)
    last = zero.publish()
    zero.leave("t")
    # The view of peer 2 learns here that peer 0 has left: nothing of it is forgotten by that.
    assert joins.get(last) == []
    assert joins.get(middle) == [event(middle), event(last)]


# P14: cause, middle and effect; the joiner is addressed by the first and the last only.


def chain_without_middle(stamps: str, kind: type[Client]) -> tuple[Judge, Member]:
    judge = Judge()
    zero, one = (Member(each, ["t"], judge, stamps) for each in range(2))
    cause = zero.publish()
    one.get(cause)
    one.publish()
    joins = Member(2, {"t": {0: (1, 2), 1: (2, 2), 2: (1, 1)}}, judge, stamps, kind)
    effect = one.publish()
    assert joins.get(effect) == ([] if stamps == "whole" else [event(effect)])
    joins.get(cause)
    return judge, joins


def test_what_does_not_count_only_sets_the_order():
    judge, joins = chain_without_middle("barrier", Client)
    assert joins.got == ["p1:2"]
    assert judge.late["topic"] == []
    assert joins.client.waiting == 0


def test_whole_stamps_need_no_middle():
    judge, joins = chain_without_middle("whole", IgnoresCounts)
    assert joins.got == ["p0:1", "p1:2"]
    assert judge.late["topic"] == []


def test_without_the_second_wave_a_chain_breaks():
    judge, _ = chain_without_middle("barrier", IgnoresCounts)
    assert judge.late["topic"] == [(2, "p0:1")]


def test_what_does_not_count_holds_back_what_rests_on_it_and_is_part_of_the_past():
    judge = Judge()
    zero, one = (Member(each, ["t"], judge) for each in range(2))
    cause = zero.publish()
    one.get(cause)
    effect = one.publish()
    joins = Member(2, {"t": {0: (1, 2), 1: (1, 1), 2: (1, 1)}}, judge)
    assert joins.get(effect) == []
    assert joins.get(cause) == [event(effect)]
    # The effect stands for its cause; a cause alone would be named itself.
    assert joins.publish()[2].places == ((1, 1),)
    alone = Member(3, {"t": {0: (1, 2), 1: (1, 1), 3: (1, 1)}}, judge)
    alone.get(cause)
    assert alone.publish()[2].places == ((0, 1),)


# P18: who leaves and comes back has still seen what it has seen.


def leave_and_return(stamps: str, kind: type[Client]) -> tuple[Judge, Member]:
    judge = Judge()
    asks, reads = (Member(each, ["t"], judge, stamps) for each in (0, 2))
    moves = Member(1, ["t"], judge, stamps, kind)
    question = asks.publish()
    moves.get(question)
    moves.leave("t")
    moves.join("t", {0: (2, 2), 1: (1, 1), 2: (1, 1)})
    answer = moves.publish()
    reads.get(answer, question)
    return judge, reads


@MOVING
def test_who_leaves_and_comes_back_publishes_behind_what_it_has_seen(stamps):
    judge, reads = leave_and_return(stamps, Client)
    assert reads.got == ["p0:1", "p1:1"]
    assert judge.late["topic"] == []


def test_a_barrier_that_is_cleared_on_leaving_breaks_the_order():
    judge, _ = leave_and_return("barrier", ClearsBarrier)
    assert judge.late["topic"] == [(2, "p0:1")]


@MOVING
def test_who_only_publishes_after_leaving_publishes_behind_what_it_has_seen(stamps):
    judge = Judge()
    asks, moves, reads = (Member(each, ["t"], judge, stamps) for each in range(3))
    question = asks.publish()
    moves.get(question)
    moves.leave("t")
    answer, more = moves.publish(), moves.publish()
    reads.get(more, answer, question)
    assert reads.got == ["p0:1", "p1:1", "p1:2"]


# P10: the test takes nothing out of a stamp, and what a stamp names is taken out of the barrier.


def chain_of(count: int, kind: type[Client]) -> list[int]:
    """The sizes of the stamps of peers that talk one after the other."""
    judge = Judge()
    members = [Member(each, ["t"], judge, "barrier", kind, count) for each in range(count)]
    sizes = []
    for member in members:
        sent = member.publish()
        sizes.append(len(sent[2].places))
        for other in members:
            if other is not member:
                other.get(sent)
    return sizes


def test_a_barrier_names_direct_causes_only():
    assert chain_of(6, Client) == [0, 1, 1, 1, 1, 1]


def test_a_test_that_empties_the_stamp_prunes_nothing():
    assert chain_of(6, MutatesStamp) == [0, 1, 2, 3, 4, 5]


def test_two_that_speak_at_once_are_both_named_by_the_next():
    judge = Judge()
    members = [Member(each, ["t"], judge) for each in range(4)]
    first, second = members[0].publish(), members[1].publish()
    members[2].get(first, second)
    both = members[2].publish()
    assert both[2].places == ((0, 1), (1, 1))
    members[3].get(first, second, both)
    assert members[3].publish()[2].places == ((2, 1),)
    members[0].get(second)
    assert members[0].publish()[2].places == ((1, 1),)


# Compressed clocks: the second event of a publisher comes first (N publishers, 3 events each).


@ALL_STAMPS
def test_three_events_each_in_any_order_come_out_in_causal_order(stamps):
    judge = Judge()
    members = [Member(each, ["t"], judge, stamps) for each in range(3)]
    sent: list[Sent] = []
    for turn in range(2):
        for member in members:
            sent.append(member.publish())
            for other in members:
                if other is not member and (turn, other.number) != (0, 2):
                    other.get(sent[-1])
    for order in permutations(sent):
        reads = Member(3, ["t"], judge_of(judge), stamps)
        reads.get(*order)
        assert len(reads.got) == len(sent)
        assert reads.judge.late["topic"] == []
        assert reads.client.waiting == 0


def judge_of(judge: Judge) -> Judge:
    """A fresh judge that knows what was published."""
    fresh = Judge()
    fresh.past, fresh.topics = judge.past, judge.topics
    return fresh


def second_first(kind: type[Client]) -> tuple[Client, Sent]:
    """Peer 0 takes in 1's event, publishes twice; peer 3 gets the second first."""
    judge = Judge()
    zero, one = (Member(each, ["t"], judge, "clock") for each in range(2))
    reads = Member(3, ["t"], judge, "clock", kind)
    zero.get(one.publish())
    first, second = zero.publish(), zero.publish()
    assert first[2].places == ((1, 1),)
    assert second[2].places == ()
    assert reads.get(second) == []
    assert reads.client.expanded(second[0]) == (None if kind is Client else ())
    assert reads.get(first) == []
    return reads.client, second


def test_a_compressed_clock_rests_on_what_its_publishers_earlier_clocks_name():
    client, second = second_first(Client)
    assert client.expanded(second[0]) == ((0, 1), (1, 1))


def test_a_raw_clock_says_too_little():
    client, second = second_first(ReadsRawClocks)
    assert client.expanded(second[0]) == ()


# Across topics: e on a, f on b rests on it, g on c rests on f; the receiver holds a and c.


def over_three_topics(kind: type[Client], stamps: str) -> tuple[Judge, Member]:
    judge = Judge()
    zero = Member(0, ["a"], judge, stamps, kind)
    one = Member(1, ["a", "b"], judge, stamps, kind)
    two = Member(2, ["b", "c"], judge, stamps, kind)
    reads = Member(3, ["a", "c"], judge, stamps, kind)
    e = zero.publish("a")
    one.get(e)
    f = one.publish("b")
    two.get(f)
    g = two.publish("c")
    reads.get(g, e)
    return judge, reads


def test_whole_stamps_reach_over_a_topic_that_is_not_held():
    judge, reads = over_three_topics(Client, "whole")
    assert reads.got == ["p0:1", "p2:1"]
    assert judge.late["across"] == []
    assert reads.client.waiting == 0


@pytest.mark.parametrize(("kind", "stamps"), [(DirectAcross, "whole"), (Client, "barrier")])
def test_direct_barriers_do_not_reach_over_a_topic_that_is_not_held(kind, stamps):
    judge, _ = over_three_topics(kind, stamps)
    assert judge.late["across"] == [(3, "p0:1")]
    assert judge.late["topic"] == []


def test_direct_barriers_across_topics_reach_over_topics_that_are_held():
    judge = Judge()
    zero, one, reads = (Member(each, ["a", "b"], judge, "whole", DirectAcross) for each in range(3))
    e = zero.publish("a")
    one.get(e)
    reads.get(one.publish("b"), e)
    assert judge.late["across"] == []


def join_after_the_consequence(kind: type[Client]) -> tuple[Judge, Member]:
    """D reads g on c, which rests on e on a, and joins a while e is still on its way to D: e was
    published after everybody knew of D, so for the network it counts."""
    judge = Judge()
    zero = Member(0, ["a"], judge, "whole", kind)
    one = Member(1, ["a", "c"], judge, "whole", kind)
    joins = Member(3, ["c"], judge, "whole", kind)
    e = zero.publish("a")
    one.get(e)
    g = one.publish("c")
    assert joins.get(g) == [event(g)]
    joins.join("a", {0: (1, 1), 1: (1, 1), 3: (1, 1)})
    joins.get(e)
    return judge, joins


def test_what_is_in_the_past_when_its_topic_is_joined_only_sets_the_order():
    judge, joins = join_after_the_consequence(Client)
    assert judge.late["across"] == []
    assert joins.got == ["p1:1"]
    assert joins.client.waiting == 0


def test_who_joins_blindly_gets_a_cause_after_its_effect():
    judge, _ = join_after_the_consequence(JoinsBlindly)
    assert judge.late["across"] == [(3, "p0:1")]


def test_what_follows_the_past_is_handed_over_again():
    judge = Judge()
    zero = Member(0, ["a"], judge, "whole")
    one = Member(1, ["a", "c"], judge, "whole")
    joins = Member(3, ["c"], judge, "whole")
    first, second = zero.publish("a"), zero.publish("a")
    one.get(first)
    joins.get(one.publish("c"))
    joins.join("a", {0: (1, 1), 1: (1, 1), 3: (1, 1)})
    assert joins.get(second, first) == [event(second)]
    assert judge.late["across"] == []


def test_taking_in_an_old_event_takes_nothing_from_the_past():
    judge = Judge()
    zero = Member(0, ["a"], judge, "whole")
    one = Member(1, ["a", "c"], judge, "whole")
    joins = Member(3, ["c"], judge, "whole")
    first, second = zero.publish("a"), zero.publish("a")
    one.get(first, second)
    joins.get(one.publish("c"))
    joins.join("a", {0: (1, 1), 1: (1, 1), 3: (1, 1)})
    joins.get(first)
    assert joins.publish("a")[2].places == ((0, 2),)


def test_a_topic_that_is_being_joined_is_passed_over():
    """Its events that are in the past when it is joined only set the order."""
    judge = Judge()
    zero = Member(0, ["a"], judge, "whole")
    one = Member(1, ["a", "c"], judge, "whole")
    joins = Member(3, ["c"], judge, "whole")
    joins.client.subscribe("later", ["a"], 0.0)
    for origin, counts in ((0, 4), (1, 1), (3, 1)):
        joins.client.begins(("a", origin), 1, counts, 0.0)
    e = zero.publish("a")
    one.get(e)
    g = one.publish("c")
    assert joins.get(g) == [event(g)]
    joins.seen(joins.client.joined("a", 0.0))
    assert joins.get(e) == []
    for number in range(2, 6):
        assert len(joins.get(zero.publish("a"))) == (number > 3)
    assert judge.late["across"] == []


def test_the_same_events_in_another_order_on_two_topics_are_no_violation():
    judge = Judge()
    zero, one = (Member(each, ["a", "b"], judge) for each in range(2))
    on_a, on_b = zero.publish("a"), one.publish("b")
    zero.get(on_b)
    one.get(on_a)
    assert (zero.got, one.got) == (["p0:1", "p1:1"], ["p1:1", "p0:1"])
    assert judge.late == {"topic": [], "across": []}


def test_leaving_a_topic_frees_what_waited_for_its_events():
    judge = Judge()
    zero, one, reads = (Member(each, ["a", "b"], judge, "whole") for each in range(3))
    e = zero.publish("a")
    one.get(e)
    g = one.publish("b")
    assert reads.get(g) == []
    assert ids(reads.leave("a")) == [event(g)]
    assert reads.client.waiting == 0
    assert reads.get(e) == []
