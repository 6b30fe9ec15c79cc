"""Which offsets a query reads: properties of the planning, without Spark, over a log in memory."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from inorder.core.errors import Damaged, InorderError, Misuse
from inorder.logs.cursor import Cursor
from inorder.pipeline import source
from inorder.pipeline.source_log import Extent
from inorder.pipeline.source_options import read_options
from inorder.pipeline.source_plan import above, tasks


class Toy:
    """A log that says which offsets are wanted, and whose past has a mark."""

    def __init__(self, wanted: list[bool], first: int = 1, order: str = "log") -> None:
        self.wanted, self.first, self.order = wanted, first, order
        self.past = "a"

    def extent(self) -> Extent:
        return Extent(self.order, self.first, self.first + len(self.wanted))

    def mark(self, offset: int) -> str:
        return "" if offset < self.first else f"{self.past}{offset}".encode().hex()

    def at(self, time: float) -> int:
        return int(time)

    def reach(self, start: int, stop: int, rows: int) -> int:
        left = rows
        for offset in range(start, stop):
            left -= self.wanted[offset - self.first]
            if not left:
                return offset + 1
        return stop

    def close(self) -> None: ...


@pytest.fixture
def toy(monkeypatch):
    found = Toy([True] * 10)
    monkeypatch.setattr(source, "open_log", lambda settings: found)
    return found


def reader(**options: str) -> source.StreamReader:
    return source.StreamReader({"url": "sqlite:////x.db", **options})


def offsets(parts: list[Any]) -> list[int]:
    return [offset for part in parts for offset in range(part.start, part.stop)]


@given(st.lists(st.booleans(), max_size=40), st.integers(1, 7), st.integers(1, 30))
def test_batches_under_a_limit_read_every_offset_once_and_are_never_empty(wanted, limit, first):
    toy = Toy(wanted, first)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "open_log", lambda settings: toy)
        query = reader(startingOffsets="earliest")
        at, read = query.initialOffset(), []
        while (end := query.latestOffset(at, ReadMaxRows(limit))) != at:
            some = offsets(query.partitions(at, end))
            rows = sum(wanted[offset - first] for offset in some)
            assert rows <= limit
            left = sum(wanted[offset - first] for offset in range(some[0], first + len(wanted)))
            assert rows == min(limit, left)
            read += some
            at = end
    assert read == list(range(first, first + len(wanted)))


@given(st.integers(0, 60_000), st.integers(1, 16), st.none() | st.integers(1, 50))
def test_tasks_read_everything_once_and_are_of_equal_size(total, cores, at_least):
    parts = tasks(7, 7 + total, cores, at_least)
    assert all(high == low for (_, high), (low, _) in pairwise(parts))
    assert not parts or (parts[0][0], parts[-1][1]) == (7, 7 + total)
    sizes = [high - low for low, high in parts]
    assert not sizes or (min(sizes) > 0 and max(sizes) - min(sizes) <= 1)
    assert len(parts) >= min(at_least or 1, total)
    assert len(parts) <= max(cores, at_least or 1)


@pytest.mark.parametrize(
    ("options", "position"),
    [({}, 10), ({"startingOffsets": "earliest"}, 0), ({"startingOffsets": "latest"}, 10),
     ({"startingOffsets": "4"}, 4), ({"startingOffsets": "-1"}, -1),
     ({"startingTimestamp": "6000"}, 5), ({"startingTimestamp": "99000"}, 10)],
)  # fmt: skip
def test_where_a_stream_begins(toy, options, position):
    """A position is done: the query reads what is above it."""
    assert reader(**options).initialOffset()["position"] == position


def test_a_cursor_of_an_event_is_a_place_to_start(toy):
    cursor = str(Cursor("log", 4, b"a5"))
    assert reader(startingOffsets=cursor).initialOffset() == {
        "order": "log", "position": 4, "digest": b"a5".hex(), "born": 0,
    }  # fmt: skip
    for wrong, told in (
        (Cursor("other", 4, b""), "of another log"),
        (Cursor("log", 4, b"zz"), "has lost"),
        (Cursor("log", 11, b""), "ends at"),
    ):
        with pytest.raises(Misuse, match=told):
            reader(startingOffsets=str(wrong)).initialOffset()


def test_a_batch_ends_above_its_last_position():
    extent = Extent("log", 1, 11)
    assert [above(place, Toy([True] * 10), extent) for place in (4, "latest", "earliest")] == [
        5, 11, 1,
    ]  # fmt: skip
    with pytest.raises(Misuse, match="the log ends at position 10, 11 was asked for"):
        above(11, Toy([True] * 10), extent)


def test_nothing_new_is_no_batch(toy):
    query = reader(startingOffsets="earliest")
    at = query.initialOffset()
    end = query.latestOffset(at, ReadAllAvailable())
    assert query.latestOffset(end, ReadAllAvailable()) is end
    toy.wanted.append(True)
    assert query.latestOffset(end, ReadAllAvailable())["position"] == 11


def test_available_now_reads_what_was_there_when_it_began(toy):
    query = reader(startingOffsets="earliest")
    query.prepareForTriggerAvailableNow()
    toy.wanted += [True] * 5
    assert query.latestOffset(query.initialOffset(), ReadAllAvailable())["position"] == 10


def read_to_the_end(toy: Toy) -> Any:
    query = reader(startingOffsets="earliest")
    return query.latestOffset(query.initialOffset(), ReadAllAvailable())


CHANGES = {
    "another log": (lambda toy: setattr(toy, "order", "new"), "is another log than log"),
    "a lost tail": (lambda toy: toy.wanted.__delitem__(slice(6, None)), "ends at position 6"),
    "a tail grown again": (lambda toy: setattr(toy, "past", "b"), "holds another event at"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_another_past_stops_the_query(toy, change):
    at = read_to_the_end(toy)
    CHANGES[change][0](toy)
    with pytest.raises(Damaged, match=CHANGES[change][1]):
        reader().latestOffset(at, ReadAllAvailable())
    with pytest.raises(Damaged, match=CHANGES[change][1]):
        reader().partitions(at, at)


def test_told_to_read_on_a_query_reads_another_log_from_its_first_event(toy):
    """It is noticed, and remembered, also while nothing of it can be read yet."""
    query = reader(startingOffsets="earliest", failOnDataLoss="false")
    at = read_to_the_end(toy)
    toy.order, toy.wanted = "new", []
    empty = query.latestOffset(at, ReadAllAvailable())
    assert (empty["order"], empty["position"]) == ("new", 0)
    assert query.partitions(at, empty) == []
    toy.wanted = [True] * 20
    after = query.latestOffset(empty, ReadMaxRows(15))
    assert offsets(query.partitions(empty, after)) == list(range(1, 16))
    assert offsets(query.partitions(at, after)) == list(range(1, 16))
    # A batch that was planned in the log that is gone reads nothing.
    assert query.partitions(at, at) == []


def test_another_log_that_is_as_long_is_another_log(toy):
    query = reader(startingOffsets="earliest", failOnDataLoss="false")
    at = read_to_the_end(toy)
    toy.order = "new"
    after = query.latestOffset(at, ReadAllAvailable())
    assert after == {**at, "order": "new"}
    assert offsets(query.partitions(at, after)) == list(range(1, 11))


def test_told_to_read_on_a_query_goes_on_where_a_shorter_log_ends(toy):
    query = reader(startingOffsets="earliest", failOnDataLoss="false")
    at = read_to_the_end(toy)
    del toy.wanted[6:]
    assert query.latestOffset(at, ReadAllAvailable())["position"] == 6


def test_marks_that_nobody_can_say_accuse_nobody(toy):
    query = reader(startingOffsets="earliest")
    at = query.latestOffset(query.initialOffset(), ReadMaxRows(3))
    toy.first, toy.wanted = 6, toy.wanted[5:]  # what the cursor stood on was removed
    assert query.latestOffset(at, ReadAllAvailable())["position"] == 10


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"url": ""}, "option url is missing"),
        ({"url": "sqlite://a.db"}, "is not scheme:///relative"),
        ({"startingoffset": "earliest"}, "unknown option 'startingoffset'"),
        ({"startingOffsets": "earlist"}, "'earlist' is none of earliest, latest, a position"),
        ({"startingOffsets": '{"a": 5}'}, "is none of earliest, latest, a position"),
        ({"startingOffsets": "-2"}, "is none of earliest, latest, a position"),
        ({"startingTimestamp": "-1"}, "option startingTimestamp: '-1'"),
        ({"startingTimestamp": "1", "startingOffsets": "1"}, "give one of them, not both"),
        ({"endingOffsets": "earliest"}, "nothing ends at the earliest"),
        ({"maxOffsetsPerTrigger": "0"}, "option maxOffsetsPerTrigger: '0'"),
        ({"minPartitions": "x"}, "option minPartitions: 'x'"),
        ({"failOnDataLoss": "maybe"}, "neither true nor false"),
        ({"subscribe": " , "}, "names no topic"),
        ({"subscribe": "a..b"}, "a token is empty"),
        ({"subscribe": "a", "subscribePattern": "a"}, "give one of them, not both"),
        ({"subscribePattern": "("}, "is no pattern"),
        ({"table": "deliveries"}, "is a table of traces"),
        ({"table": "nothing"}, "unknown table"),
        ({"path": "/x"}, "options url and path"),
    ],
)
def test_a_wrong_option_is_one_sentence_that_names_it(options, told):
    with pytest.raises(InorderError, match=told):
        read_options({"url": "sqlite:////x.db", **options})
