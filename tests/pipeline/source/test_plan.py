"""Which offsets a query reads: properties of the planning, without Spark or a log."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inorder.core.errors import Damaged, InorderError, Misuse
from inorder.pipeline.source_log import Extent, Slice
from inorder.pipeline.source_options import Settings, read_options
from inorder.pipeline.source_plan import admitted, chosen, ranges, resolved, tasks

SIZES = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 40_000), min_size=1)

SMALL = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 100), min_size=1)


def slices_of(sizes: dict[str, int]) -> list[Slice]:
    return [Slice(topic, 3, 3 + size) for topic, size in sorted(sizes.items()) if size]


def covers(parts: list[list[Slice]], slices: list[Slice]) -> bool:
    """Every offset once, in order within its topic."""
    joined: list[Slice] = []
    for each in (each for part in parts for each in part):
        if joined and joined[-1].topic == each.topic and joined[-1].end == each.start:
            joined[-1] = Slice(each.topic, joined[-1].start, each.end)
        else:
            joined.append(each)
    return joined == slices


@given(SIZES, st.integers(1, 16), st.none() | st.integers(1, 50))
def test_tasks_read_everything_once_and_are_of_equal_size(sizes, cores, at_least):
    slices = slices_of(sizes)
    parts = tasks(slices, cores, at_least)
    assert covers(parts, slices)
    loads = [sum(each.end - each.start for each in part) for part in parts]
    assert not loads or max(loads) - min(loads) <= 1
    total = sum(loads)
    assert len(parts) >= min(at_least or 1, total)
    assert len(parts) <= max(cores, at_least or 1)


RUNS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 5)), min_size=1, max_size=30)


def log_of(runs):
    """Messages in the order of their arrival, and how far each topic reaches."""
    ends: dict[str, int] = {}
    arrived = []
    for topic, count in runs:
        arrived.append((topic, ends.get(topic, 0), count))
        ends[topic] = ends.get(topic, 0) + count
    return arrived, ends


def check_cuts(admit, runs, limit, start):
    """Batches under a limit, one behind the other, are the log cut into pieces: the first arrivals
    first, as many as there may be."""
    arrived, ends = log_of(runs)
    extents = {topic: Extent(0, end) for topic, end in ends.items()}
    places = [(t, n) for t, offset, count in arrived for n in range(offset, offset + count)]
    at = {topic: min(offset, ends[topic]) for topic, offset in start.items() if topic in ends}
    left = [(topic, n) for topic, n in places if n >= at.get(topic, 0)]
    while left:
        taken = admit(ranges("log", at, ends, extents, True), limit, iter(arrived))
        read = {(each.topic, n) for each in taken for n in range(each.start, each.end)}
        assert read == {*left[:limit]}
        del left[:limit]
        at = {**at, **{each.topic: each.end for each in taken}}
    assert not ranges("log", at, ends, extents, True)


@given(RUNS, st.integers(1, 20), st.dictionaries(st.sampled_from("abc"), st.integers(0, 9)))
def test_a_limit_admits_the_first_arrivals_also_of_a_topic_that_lags(runs, limit, start):
    check_cuts(admitted, runs, limit, start)


def test_shares_of_topics_are_found():
    """Negative control: who takes as much of every topic lets events overtake."""

    def shared(waiting, limit, arrived):
        each = limit // len(waiting)
        return [Slice(some.topic, some.start, some.start + each) for some in waiting]

    with pytest.raises(AssertionError):
        check_cuts(shared, [("a", 4), ("b", 4)], 4, {})


def test_events_that_are_gone_do_not_hold_up_a_limited_stream():
    """Some or all of what waits is not in the log: the batch goes over it."""
    waiting = [Slice("a", 2, 10), Slice("b", 0, 5)]
    assert admitted(waiting, 3, iter([("a", 0, 2)])) == waiting
    assert admitted(waiting, 3, iter([("a", 5, 5), ("b", 0, 5)])) == [Slice("a", 2, 8)]
    assert admitted(waiting[:1], 3, iter([])) == [Slice("a", 2, 5)]


@given(st.lists(SMALL, min_size=1, max_size=6), st.integers(5, 300))
def test_batches_one_after_the_other_read_every_event_once(grown, limit):
    """The log grows and gets topics between the batches; nothing is read twice or left out."""
    ends: dict[str, int] = {}
    at: dict[str, int] = {}
    read: dict[str, int] = {}
    steps = [*grown, *([{}] * 12)]
    while steps or at != ends:
        for topic, size in (steps.pop(0) if steps else {}).items():
            ends[topic] = ends.get(topic, 0) + size
        extents = {topic: Extent(0, end) for topic, end in ends.items()}
        waiting = ranges("log", at, ends, extents, True)
        runs = [(each.topic, each.start, each.end - each.start) for each in waiting]
        taken = admitted(waiting, limit, iter(runs))
        end = {**at, **{each.topic: each.end for each in taken}}
        for each in ranges("log", at, end, extents, True):
            assert each.start == read.get(each.topic, 0)
            read[each.topic] = each.end
        at = end
        if not steps and not taken:
            break
    assert read == {topic: end for topic, end in ends.items() if end}


def test_a_topic_that_appears_is_read_from_its_first_event():
    extents = {"a": Extent(0, 4), "b": Extent(2, 9)}
    assert ranges("log", {"a": 4}, {"a": 4, "b": 9}, extents, True) == [Slice("b", 2, 9)]


@pytest.mark.parametrize(
    ("start", "end", "extent", "left"),
    [
        (3, 9, Extent(5, 9), (5, 9)),  # the oldest were dropped
        (7, 4, Extent(0, 4), (0, 4)),  # another file, shorter
        (7, 4, Extent(0, 12), (0, 4)),  # another file, which has grown since
        (3, 9, Extent(0, 6), (3, 6)),  # the end is gone
        (3, 3, Extent(0, 0), None),  # the topic is gone
    ],
)
def test_loss_stops_a_query_or_is_read_over(start, end, extent, left):
    extents = {"a": extent}
    with pytest.raises(Damaged, match=r"topic 'a' .* failOnDataLoss = false"):
        ranges("log", {"a": start}, {"a": end}, extents, True)
    expected = [] if left is None else [Slice("a", *left)]
    assert ranges("log", {"a": start}, {"a": end}, extents, False) == expected


def test_topics_are_chosen_by_name_or_by_whole_pattern():
    extents = {name: Extent(0, 1) for name in ("orders", "orders-eu", "payments")}
    url = {"url": "sqlite:////x.db"}
    assert list(chosen(extents, read_options({**url, "subscribe": "payments, orders"}))) == [
        "orders", "payments",
    ]  # fmt: skip
    assert list(chosen(extents, read_options({**url, "subscribePattern": "orders.*"}))) == [
        "orders", "orders-eu",
    ]  # fmt: skip
    assert list(chosen(extents, read_options({**url, "subscribePattern": "orders"}))) == ["orders"]
    assert list(chosen(extents, read_options(url))) == sorted(extents)


def test_offsets_are_resolved_to_numbers():
    extents = {"a": Extent(2, 9), "b": Extent(0, 5)}
    assert resolved(None, extents, -2) == {"a": 2, "b": 0}
    assert resolved({"": -1}, extents, -2) == {"a": 9, "b": 5}
    assert resolved({"a": 4, "b": -1}, extents, -2) == {"a": 4, "b": 5}
    with pytest.raises(Misuse, match="topic 'b' ends at offset 5, 6 was asked for"):
        resolved({"b": 6}, extents, -2)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "option url is missing"),
        ({"url": "x.db"}, "is not scheme:///relative"),
        ({"url": "sqlite:///"}, "is not scheme:///relative"),
        ({"url": "sqlite:////x", "path": "y"}, "not both"),
        ({"url": "sqlite:////x", "startingOffset": "1"}, "unknown option 'startingoffset'"),
        ({"url": "sqlite:////x", "startingOffsets": "soon"}, "option startingOffsets: 'soon'"),
        ({"url": "sqlite:////x", "startingOffsets": '{"a": -3}'}, "'a' cannot be at -3"),
        ({"url": "sqlite:////x", "endingOffsets": '{"a": "b"}'}, "option endingOffsets"),
        ({"url": "sqlite:////x", "maxOffsetsPerTrigger": "0"}, "option maxOffsetsPerTrigger: '0'"),
        ({"url": "sqlite:////x", "minPartitions": "many"}, "option minPartitions: 'many'"),
        ({"url": "sqlite:////x", "failOnDataLoss": "maybe"}, "option failOnDataLoss: 'maybe'"),
        ({"url": "sqlite:////x", "subscribe": " , "}, "option subscribe names no topic"),
        ({"url": "sqlite:////x", "subscribe": "a", "subscribePattern": "b"}, "not both"),
        ({"url": "sqlite:////x", "subscribePattern": "("}, "option subscribePattern"),
        ({"url": "sqlite:////x", "table": "deliveries"}, "is a table of traces"),
        ({"path": "x", "table": "nothing"}, "unknown table 'nothing'"),
    ],
)
def test_a_wrong_option_is_named(options, told):
    with pytest.raises(InorderError, match=told.replace("(", r"\(")):
        read_options(options)


def test_options_do_not_mind_capitals():
    assert read_options({"URL": "sqlite:////x", "FAILONDATALOSS": "False"}) == Settings(
        "sqlite", "/x", fail_on_loss=False
    )
