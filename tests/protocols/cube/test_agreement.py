"""What the living agree on, as pure functions: agreement.py, quorum.py, remains.py."""

from __future__ import annotations

import pytest

from inorder.protocols.cube.agreement import lacking, remaining, settled_by_all, to_send
from inorder.protocols.cube.messages import MEMBER, Row, View
from inorder.protocols.cube.quorum import is_primary, may_go_on
from inorder.protocols.cube.remains import NEVER, Remains
from inorder.protocols.cube.topic import Topic


def row(*runs: tuple[int, int], start: int = 1, settled: int = 0) -> Row:
    return Row("t", 4, start, settled, runs)


# The example of agreement.py: 0 has 1 to 3, 1 has 1, 2 and 4, 2 has 1 to 3.
ROWS = {0: row((1, 3)), 1: row((1, 2), (4, 4)), 2: row((1, 3))}


def test_what_somebody_has_remains_and_is_sent_once():
    assert remaining(ROWS) == ((1, 4),)
    assert [lacking(each, ((1, 4),)) for each in ROWS.values()] == [((4, 4),), ((3, 3),), ((4, 4),)]
    assert to_send(0, [1, 2, 3], ROWS, ((1, 4),)) == [(3, 0b010)]
    assert to_send(1, [4, 2], ROWS, ((1, 4),)) == [(4, 0b101)]
    assert to_send(2, [3], ROWS, ((1, 4),)) == [], "0 sends it"


def test_what_has_come_since_the_report_is_not_sent():
    assert to_send(0, [1, 2, 3, 4], ROWS, ((1, 4),)) == [(3, 0b010)]


def test_where_somebody_has_settled_that_word_holds():
    rows = {0: row((1, 3), settled=5), 1: row((1, 5))}
    assert remaining(rows) == ((1, 3),)
    assert remaining({0: row(settled=1), 1: row((1, 2))}) == ((2, 2),)
    assert lacking(row((1, 3), settled=5), ((1, 7),)) == ((6, 7),)
    assert lacking(row(settled=1), ((1, 2),)) == ((2, 2),)
    assert lacking(row(start=0), ((1, 7),)) == ()
    assert lacking(row(start=3), ((1, 7),)) == ((3, 7),)


def test_settled_by_all_is_what_the_last_one_has_settled():
    assert settled_by_all({0: row(settled=5), 1: row(settled=3), 2: row(start=0, settled=1)}) == 3
    assert settled_by_all({0: row(start=0)}) == 0


@pytest.mark.parametrize(
    ("dead", "goes_on"),
    [((3,), True), ((2, 3), True), ((0, 1), False), ((0, 3), False), ((1, 2, 3), False)],
)
def test_more_than_half_go_on_or_half_with_the_lowest(dead, goes_on):
    now = View(tuple((peer, 1) for peer in dead))
    assert is_primary(View(), now, 4) == goes_on


def test_a_life_that_is_proved_dead_does_not_count():
    """1 is back in another life: of 0, 2 and 3, who are left, two live."""
    silent = View(((0, 1), (1, 1)))
    back = View(((0, 1), (1, 1)), ((1, 2),))
    assert not is_primary(View(), silent, 4)
    assert is_primary(View(), back, 4)


def test_counted_are_those_of_the_last_flush_and_without_one_all():
    """Of the six that went on three live, the lowest among them; the two cut off do not count."""
    last = View(((6, 1), (7, 1)))
    assert is_primary(last, View(((3, 1), (4, 1), (5, 1), (6, 1), (7, 1))), 8)
    assert not is_primary(last, View(((0, 1), (4, 1), (5, 1), (6, 1), (7, 1))), 8)
    five = View(tuple((peer, 1) for peer in range(8)), tuple((peer, 2) for peer in range(5)))
    four = View(tuple((peer, 1) for peer in range(8)), tuple((peer, 2) for peer in range(4)))
    assert may_go_on([None], five, 8)
    assert not may_go_on([None], four, 8)
    assert may_go_on([None, View()], View(((7, 1),)), 8)


def held(have: int) -> Topic:
    topic = Topic()
    topic.phase, topic.role = "in", MEMBER
    topic.begin(4, 1)
    for number in range(1, have + 1):
        topic.come(4, number)
    return topic


def test_what_is_kept_goes_when_it_is_stable_and_has_a_bound():
    remains = Remains()
    for number in (1, 2, 3):
        remains.keep(4, number, None, 1)
    remains.is_stable(4, 2)
    assert list(remains.kept[4]) == [3]
    remains.is_stable(4, 3)
    assert remains.kept == {}
    for number in range(1, 7):
        remains.keep(4, number, None, 1)
    assert list(remains.kept[4]) == [3, 4, 5, 6]


def test_own_numbers_are_stable_below_the_first_that_is_not_acknowledged():
    remains = Remains()
    assert remains.stable(8) == 7
    remains.unacked = {5: True, 7: True}
    assert remains.stable(8) == 4


def test_numbers_end_where_another_life_begins():
    remains = Remains()
    assert not remains.is_based(4, 1, 1)
    assert remains.end(4, 1) == NEVER
    assert remains.is_based(4, 2, 18)
    assert not remains.is_based(4, 2, 30), "that life is known"
    assert remains.end(4, 1) == 18
    assert remains.end(4, 2) == NEVER
    topic = held(17)
    topic.come(4, 18)
    assert remains.row("t", topic, 4, 1) == Row("t", 4, 1, 0, ((1, 17),))


def test_what_is_settled_is_lost_where_it_has_not_come_and_never_goes_back():
    topic = held(2)
    topic.come(4, 4)
    remains = Remains()
    remains.is_dying(4, 1)
    assert remains.settle(topic, 4, 5) == ((3, 3), (5, 5))
    assert topic.have[4] == 5
    assert remains.dying == {}
    assert remains.settle(topic, 4, 3) == ()
    assert (topic.have[4], remains.settled[4]) == (5, 5)
    assert remains.row("t", topic, 4, 1) == Row("t", 4, 1, 5, ((1, 2), (4, 4)))
    remains.is_dying(4, 1)
    assert remains.dying == {}, "it is told again, and settled already"
    remains.is_based(4, 2, 9)
    remains.is_dying(4, 2)
    assert remains.dying == {4: None}
