"""A reader hands over a projection of the log: each wanted event once, judged by the filter as it
is when the event is asked for."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inorder.core.errors import BadValue, Damaged, Misuse, Removed
from inorder.core.limits import UNREAD_BYTES_MAX
from inorder.logs import cursor
from inorder.logs.broker import Rows, Run
from inorder.logs.cursor import Cursor
from inorder.logs.reader import Reader
from inorder.logs.topics import Topics, check_name


def run(offset: int, *values: object, topic: str = "t", **facts: object) -> Run:
    array = msgspec.msgpack.encode(list(values))
    return Run(topic, "p", 2, 5, len(values), array, 1.5, offset=offset, mark=b"mark", **facts)


def reader(after: int = -1, wanted: Sequence[str] = ("t",), **more: object) -> Reader:
    return Reader(Topics(wanted), "log-1", after, **more)


def values(reader: Reader) -> list[object]:
    got = []
    while (event := reader.take()) is not None:
        got.append(event.value)
    return got


def test_an_event_knows_where_it_stands():
    r = reader(9)
    assert r.wants == 10
    keys, headers = ("k", None), (None, {"trace": "7"})
    r.receive(10, Rows([run(10, {"n": 1}, {"n": 2}, keys=keys, headers=headers)], 12))
    first, second = r.take(), r.take()
    assert (first.id, first.seq, first.epoch, first.publisher) == ("p:2:5", 5, 2, "p")
    assert (second.id, second.position, second.offset) == ("p:2:6", 11, 11)
    assert (first.key, first.headers, second.key, second.headers) == ("k", {}, None, {"trace": "7"})
    assert (first.topic, first.published_at, first.in_order) == ("t", 1.5, True)
    assert cursor.parse(second.cursor) == Cursor("log-1", 11, b"mark")
    assert repr(first) == "Event('t', {'n': 1}, position=10, id='p:2:5')"
    assert second.as_dict()["headers"] == {"trace": "7"}
    assert (r.take(), r.done, r.passed, r.wants) == (None, 11, 11, 12)


def test_reading_goes_on_above_what_was_asked_for_though_runs_begin_below():
    r = reader(11)
    r.receive(12, Rows([run(10, 0, 1, 2, 3)], 14))
    assert values(r) == [2, 3]


def test_rows_that_were_read_for_another_place_are_not_taken():
    r = reader(9)
    r.receive(12, Rows([run(12, "x")], 13))
    assert (r.take(), r.wants) == (None, 10)


def test_what_is_of_other_topics_is_passed_over_and_counts_as_passed():
    r = reader(wanted=["a.*"])
    rows = [
        run(0, 0, topic="a.b"),
        run(1, 1, topic="b"),
        run(2, 2, topic="a"),
        run(5, 5, topic="c"),
    ]
    r.receive(0, Rows(rows, 7))
    assert values(r) == [0]
    assert (r.done, r.passed, r.wants) == (0, 6, 7)


def test_erased_events_and_beginnings_of_lives_are_not_handed_over():
    r = reader()
    life = Run("t", "p", 3, 0, 0, b"\x90", offset=3)
    r.receive(0, Rows([run(0, 1, None, 3), life], 4))
    assert values(r) == [1, 3]


def test_a_filter_that_moves_judges_all_above_what_was_handed_out_last():
    r = reader(judge=lambda value: value >= 100)
    r.receive(0, Rows([run(0, 50, 120, 70, 80, 130)], 5))
    assert r.take().value == 120
    assert r.move(lambda value: value >= 75, -1) == 1
    assert r.wants == 2
    r.receive(2, Rows([run(0, 50, 120, 70, 80, 130)], 5))
    assert values(r) == [80, 130]
    # Also what a waiting application was not handed: it was kept back, not had.
    assert r.passed == 4
    assert r.move(lambda value: True, -1) == 4


def test_what_was_kept_back_since_the_last_event_comes_when_the_filter_lets_it():
    r = reader(judge=lambda value: value > 9)
    r.receive(0, Rows([run(0, 1, 2)], 2))
    assert values(r) == []
    assert (r.done, r.passed) == (-1, 1)
    assert r.move(lambda value: True, -1) == -1
    r.receive(0, Rows([run(0, 1, 2)], 2))
    assert values(r) == [1, 2]


def test_a_move_never_goes_back_below_a_durable_position():
    r = reader(judge=lambda value: False)
    r.receive(0, Rows([run(0, 1, 2, 3)], 3))
    assert values(r) == []
    assert r.move(lambda value: True, 1) == 1
    r.receive(2, Rows([run(0, 1, 2, 3)], 3))
    assert values(r) == [3]


def test_a_removed_range_comes_between_the_events_once():
    r = reader()
    r.receive(0, Rows([run(0, "a"), run(7, "b")], 9, [(1, 6), (8, 9)]))
    assert r.take().value == "a"
    with pytest.raises(Removed) as caught:
        r.take()
    assert (caught.value.start, caught.value.upto, r.done) == (1, 6, 5)
    assert r.take().value == "b"
    with pytest.raises(Removed):
        r.take()
    assert r.take() is None


def test_what_was_removed_before_the_beginning_is_no_news():
    r = reader(9)
    r.receive(10, Rows([run(10, "a")], 11, [(0, 10)]))
    assert values(r) == ["a"]


def test_a_damaged_range_is_said_once_and_reading_goes_on_behind_it():
    r = reader()
    r.damaged(3, Damaged("log", "elsewhere", 3, 5))
    assert r.wants == 0
    r.damaged(0, Damaged("log", "a wrong sum", 0, 5))
    assert r.wants == 5
    r.receive(5, Rows([run(5, "a")], 6))
    with pytest.raises(Damaged, match="wrong sum"):
        r.take()
    assert values(r) == ["a"]


def test_a_run_with_another_number_of_values_is_damaged():
    r = reader()
    wrong = Run("t", "p", 1, 1, 3, msgspec.msgpack.encode([1, 2]), offset=0)
    r.receive(0, Rows([wrong, run(3, 4)], 4))
    with pytest.raises(Damaged, match="2 values stand where 3 events are") as caught:
        r.take()
    assert (caught.value.start, caught.value.upto) == (0, 3)
    assert values(r) == [4]


class Point(msgspec.Struct):
    x: int


def test_values_become_what_was_asked_for_and_another_type_costs_its_own_event():
    for judge in (None, lambda value: True):
        r = reader(kind=Point, judge=judge)
        r.receive(0, Rows([run(0, {"x": 1}, {"x": "one"}, None, {"x": 2})], 4))
        assert r.take().value == Point(1)
        with pytest.raises(BadValue, match="position 1"):
            r.take()
        assert values(r) == [Point(2)]
        r.receive(4, Rows([run(4, {"x": 3})], 5))
        assert values(r) == [Point(3)]


def test_nothing_of_a_topic_that_was_left_is_handed_over():
    r = reader(wanted=["a", "b"])
    r.receive(0, Rows([run(0, 1, 2, topic="a"), run(2, 3, topic="b"), run(3, 4, topic="a")], 4))
    assert r.take().value == 1
    assert r.holds("a")
    r.leave("a")
    assert not r.holds("a")
    assert values(r) == [3]
    r.receive(4, Rows([run(4, 5, topic="a"), run(5, 6, topic="b")], 6))
    assert values(r) == [6]


def test_what_is_read_ahead_is_bounded_in_bytes():
    r = reader()
    large = b"x" * (UNREAD_BYTES_MAX // 2)
    r.receive(0, Rows([run(0, large)], 1))
    assert r.wants == 1
    assert 0 < r.limit <= UNREAD_BYTES_MAX // 2
    r.receive(1, Rows([run(1, large)], 2))
    assert r.wants is None
    assert len(r.take().value) == len(large)
    assert r.wants is None
    r.take()
    assert r.wants == 2


# Against a twin that does the same with a list of events.

LOG = [(n, "ab"[n % 3 == 0], n % 7) for n in range(40)]
HOLES = {5, 6, 19, 33}


def rows(offset: int, limit: int, cuts: Sequence[int]) -> Rows:
    """Events of the log from an offset on, as runs that end where the topic changes, where a hole
    is, and at these cuts."""
    runs: list[Run] = []
    some: list[tuple[int, str, int]] = []
    upto = min(len(LOG), offset + limit)
    for n, topic, value in LOG[offset:upto]:
        if some and (some[-1][1] != topic or some[-1][0] != n - 1 or n in cuts):
            runs.append(run(some[0][0], *(v for *_, v in some), topic=some[0][1]))
            some = []
        if n not in HOLES:
            some.append((n, topic, value))
    if some:
        runs.append(run(some[0][0], *(v for *_, v in some), topic=some[0][1]))
    return Rows(runs, upto)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["read", "read", "take", "take", "take", "move", "leave", "durable"]),
        st.integers(0, 6), st.sets(st.integers(0, 39), max_size=5),
    ), max_size=80,
)  # fmt: skip


@settings(max_examples=300)
@given(STEPS, st.integers(-1, 20))
def test_a_reader_is_the_projection_of_its_log(steps, start):
    low, durable = 0, -1
    r = reader(start, ["a", "b"], judge=lambda value: value >= low)
    left: set[str] = set()
    done, seen = start, 0
    for what, number, cuts in steps:
        if what == "read" and r.wants is not None:
            r.receive(r.wants, rows(r.wants, number, sorted(cuts)))
        elif what == "take":
            event = r.take()
            wanted = [
                (n, value) for n, topic, value in LOG
                if n > done and n not in HOLES and topic not in left and value >= low
            ]  # fmt: skip
            if event is None:
                assert not wanted or wanted[0][0] >= r.wants
            else:
                assert (event.position, event.value) == wanted[0]
                done, seen = event.position, seen + 1
        elif what == "move":
            low = number
            done = max(done, durable)
            assert r.move(lambda value, low=low: value >= low, durable) == done
            assert r.wants == done + 1
        elif what == "durable":
            durable = max(durable, r.passed)
        elif number == 0:
            left.add("a")
            r.leave("a")
        assert r.done == done
        assert r.passed >= r.done


# Names.


@pytest.mark.parametrize(
    ("pattern", "matches", "passes_over"),
    [
        ("orders", ["orders"], ["order", "orders.eu", "Orders"]),
        ("orders.*", ["orders.eu", "orders.*x"], ["orders", "orders.eu.paid", "payments.eu"]),
        ("*.eu", ["orders.eu"], ["eu", "orders.us", "a.b.eu"]),
        ("orders.>", ["orders.eu", "orders.eu.paid"], ["orders", "payments.eu"]),
        (">", ["a", "a.b"], []),
        ("*.>", ["a.b", "a.b.c"], ["a"]),
    ],
)
def test_patterns(pattern, matches, passes_over):
    wanted = Topics([pattern])
    assert [name for name in [*matches, *passes_over] if wanted.matches(name)] == matches
    assert [name for name in [*matches, *passes_over] if wanted.matches(name)] == matches


@pytest.mark.parametrize("name", ["", "a..b", ".a", "a.", "a.>.b", "x" * 256, "\ud800", 7])
def test_what_is_no_topic(name):
    with pytest.raises(Misuse):
        Topics([name])


@pytest.mark.parametrize("name", ["orders.*", ">", "*"])
def test_nothing_is_published_on_a_pattern(name):
    with pytest.raises(Misuse, match="pattern"):
        check_name(name)


def test_topics_are_equal_by_what_they_want():
    assert Topics(["b", "a", "b"]) == Topics(["a", "b"]) != Topics(["a"])
    assert repr(Topics(["b", "a"])) == "Topics(a, b)"


# Cursors.


@given(st.text(max_size=40), st.integers(-1, 2**63 - 1), st.binary(max_size=16))
def test_a_cursor_is_a_short_text_and_comes_back(order, position, digest):
    made = Cursor(order, position, digest)
    assert cursor.parse(str(made)) == made
    assert str(made).isascii()


@given(st.text(max_size=80))
def test_rubbish_is_no_cursor(text):
    try:
        parsed = cursor.parse(text)
    except Misuse:
        return
    assert str(parsed)


@pytest.mark.parametrize(
    "wrong", [Cursor("x", -2, b""), Cursor("x", 0, b"", -1), Cursor("x", 0, b"", 0, 9)]
)
def test_a_cursor_of_another_kind_is_refused(wrong):
    with pytest.raises(Misuse):
        cursor.parse(str(wrong))
