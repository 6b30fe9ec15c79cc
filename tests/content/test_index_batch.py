"""A batch finds what its events, matched one by one, find; whatever its columns are made of."""

from __future__ import annotations

import math
import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from inorder.content.engine import forms_of
from inorder.content.index import Index, batch, layout, table
from inorder.content.predicate import Predicate
from inorder.core.errors import Misuse
from tests.content import populations, strategies
from tests.content.test_index import HARD, drawn


def by_event(index, columns, size):
    places, keys = index.match_batch(columns)
    assert places.dtype == keys.dtype == np.int64
    found = [[] for _ in range(size)]
    for place, key in zip(places.tolist(), keys.tolist(), strict=True):
        found[place].append(key)
    return [sorted(one) for one in found]


def transposed(events):
    names = sorted({name for event in events for name in event})
    return {name: [event.get(name) for event in events] for name in names}


def agree(index, events):
    wanted = [index.match(event) for event in events]
    assert by_event(index, transposed(events), len(events)) == wanted
    return sum(map(len, wanted))


def some_batches(seed):
    rng = random.Random(seed)
    index, edges = Index(), list(HARD)
    for key in range(12):
        if (found := drawn(rng)) is not None:
            predicate, values, forms = found
            index.add(key, forms)
            edges += strategies.edges_of(predicate.tree, values)
    names = [*strategies.NAMES, *strategies.SCHEMA]
    for _ in range(2):
        agree(index, [strategies.draw_event(rng, edges, names) for _ in range(12)])
        if len(index):
            index.remove(rng.choice(sorted(index._known)))


@settings(max_examples=100, deadline=None)
@given(strategies.randoms)
def test_batches_of_anything(rng):
    some_batches(rng.randrange(2**32))


def crowded(draw, count, seed=1):
    rng = random.Random(seed)
    index = Index()
    for key in range(count):
        index.add(key, (draw(rng),))
    return index, rng


@pytest.mark.parametrize(
    ("draw", "event", "count"),
    [
        (populations.trading, populations.quote, 30_000),
        (lambda rng: populations.traffic(rng, 4.0), populations.position, 5000),
        (populations.sided, populations.position, 3000),
        (populations.single, populations.quote, 5000),
        (populations.span, populations.quote, 5000),
        (populations.mixed, populations.anything, 6000),
    ],
    ids=["trading", "traffic", "sided", "single", "span", "mixed"],
)
def test_batches_of_large_populations_also_after_changes(draw, event, count):
    index, rng = crowded(draw, count)
    assert agree(index, [event(rng) for _ in range(150)]) > 100
    for key in rng.sample(range(count), 500):
        index.replace(key, (draw(rng),))
    agree(index, [event(rng) for _ in range(150)])
    for key in range(300):
        skeleton = index._known[key].block.plan.skeleton
        moved = next(form for form in iter(lambda: draw(rng), 0) if form[0] == skeleton)
        index.set(key, (moved[1],))
    agree(index, [event(rng) for _ in range(150)])


def test_small_portions_give_the_same(monkeypatch):
    monkeypatch.setattr(layout, "INDEX_BATCH_PAIRS_MAX", 37)
    for draw, event in (
        (populations.traffic, populations.position),
        (populations.sided, populations.position),
        (lambda rng: populations.trading(rng, 5), lambda rng: populations.quote(rng, 5)),
    ):
        index, rng = crowded(draw, 1500)
        assert agree(index, [event(rng) for _ in range(40)]) > 0


WORDS = Predicate.parse("w = :w AND n >= :n")
TRUTH = Predicate.parse("ok = :b")
WHOLE = Predicate.parse("i = :i", {"i": "int"})


def small():
    index = Index()
    for key, (word, least) in enumerate([("a", 1), ("b", 2), ("é", -math.inf), ("", 2**53)]):
        index.add(key, forms_of(WORDS, {"w": word, "n": least}))
    index.add(10, forms_of(TRUTH, {"b": True}))
    index.add(11, forms_of(Predicate.parse("ok = 1"), {}))
    index.add(12, forms_of(WHOLE, {"i": 3}))
    index.add(13, forms_of(Predicate.parse("n IS NULL OR w <> 'a'"), {}))
    index.add(14, forms_of(Predicate.parse("n < 5 OR n < 7 OR w = 'a'"), {}))
    return index


EVENTS = {
    "w": ["a", "b", None, "é", "", "zz", "a", "a"],
    "n": [1, 3, 5, None, 2**53 + 1, -1, 2**53, 6],
    "ok": [True, False, None, True, False, True, None, False],
    "i": [3, 4, -3, 2**60, 3, 0, 3, 3],
}


def wanted(columns):
    events = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return [small().match(event) for event in events]


def test_lists_numpy_and_arrow_columns_are_read_alike():
    expected = wanted(EVENTS)
    assert any(expected)
    objects = {name: np.array(column, dtype=object) for name, column in EVENTS.items()}
    arrow = {name: pa.array(column) for name, column in EVENTS.items()}
    encoded = {**arrow, "w": arrow["w"].dictionary_encode(), "n": arrow["n"].dictionary_encode()}
    large = {**arrow, "w": arrow["w"].cast(pa.large_string())}
    chunks = {
        name: pa.chunked_array([pa.array(c[:3]), pa.array(c[3:])]) for name, c in EVENTS.items()
    }
    chunks["w"] = chunks["w"].dictionary_encode()
    sliced = {name: pa.array([None, *column])[1:] for name, column in EVENTS.items()}
    for columns in (EVENTS, objects, arrow, encoded, large, chunks, sliced):
        assert by_event(small(), columns, 8) == expected


@pytest.mark.parametrize("kind", ["i1", "i8", "u1", "u8", "f2", "f4", "f8", "g", "?", "U3", "S3"])
def test_numpy_columns_of_every_type(kind):
    column = np.array([0, 1, 3, 3, 6, 7], dtype=kind)
    columns = {"n": column, "ok": column, "i": column, "w": column}
    lists = {name: column.tolist() for name in columns}
    assert by_event(small(), columns, 6) == wanted(lists)


def test_arrow_floats_with_nulls_and_nan_and_infinity():
    values = [1.0, None, math.nan, math.inf, -math.inf, -0.0]
    columns = {"n": pa.array(values), "w": ["a"] * 6, "i": pa.array([3.0, 3.5, None, 3, 4, 2.9])}
    lists = {"n": values, "w": ["a"] * 6, "i": [3.0, 3.5, None, 3, 4, 2.9]}
    assert by_event(small(), columns, 6) == wanted(lists)


def test_times_are_whole_microseconds():
    index = Index()
    index.add(1, forms_of(Predicate.parse("at >= :t"), {"t": 1_000_000}))
    moments = np.array(["1970-01-01T00:00:00.9", "1970-01-01T00:00:01", "NaT"], "datetime64[ns]")
    assert by_event(index, {"at": moments}, 3) == [[], [1], []]
    assert by_event(index, {"at": moments[:2]}, 2) == [[], [1]]
    assert by_event(index, {"at": pa.array(moments)}, 3) == [[], [1], []]
    zoned = pa.array([0, 1000, None], pa.timestamp("ms", "UTC"))
    assert by_event(index, {"at": zoned}, 3) == [[], [1], []]


def test_empty_batches_empty_indexes_and_columns_that_do_not_fit():
    for index in (Index(), small()):
        for columns in ({}, {"n": []}, {"n": np.empty(0)}, {"n": pa.array([], pa.int64())}):
            places, keys = index.match_batch(columns)
            assert len(places) == len(keys) == 0
    assert by_event(Index(), {"n": [1, 2]}, 2) == [[], []]
    with pytest.raises(Misuse, match="1 and 2 events"):
        small().match_batch({"n": [1], "w": ["a", "b"]})
    with pytest.raises(Misuse, match="dimensions"):
        small().match_batch({"n": np.zeros((2, 2))})


def test_arrays_handed_out_do_not_pin_the_index():
    index, rng = crowded(populations.traffic, 2000)
    index.match_batch(transposed([populations.position(rng) for _ in range(50)]))
    held = index.match_batch(transposed([populations.position(rng) for _ in range(50)]))
    for key in range(2000, 2500):  # columns could not grow while arrays look at them
        index.add(key, (populations.traffic(rng),))
    for key in range(2400):
        index.remove(key)
    assert agree(index, [populations.position(rng) for _ in range(50)]) >= 0
    assert len(held) == 2


# Negative controls.


def _fails(job):
    try:
        job()
    except (AssertionError, IndexError, ValueError):
        return True
    return False


def _trading_job():
    test_batches_of_large_populations_also_after_changes(
        lambda rng: populations.trading(rng, 20), lambda rng: populations.quote(rng, 20), 2000
    )


def test_the_job_of_the_controls_passes_by_itself():
    assert not _fails(_trading_job)


def test_a_layout_that_is_never_renewed_is_found(monkeypatch):
    kept = {}
    made = batch.Layout

    def stale(block):
        return kept.setdefault(block.plan.skeleton, made(block))

    monkeypatch.setattr(batch, "Layout", stale)
    assert _fails(_trading_job)


def test_a_bisection_that_stops_early_is_found(monkeypatch):
    narrowed = batch._narrowed

    def early(layout, starts, counts, points, low):
        first, left = narrowed(layout, starts, counts, points, low)
        return first, np.maximum(left - 1, 0)

    monkeypatch.setattr(batch, "_narrowed", early)
    assert _fails(_trading_job)


def test_pairs_found_twice_and_rounded_numbers_are_found(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(batch, "_once", lambda places, keys, several: (places, keys))
        assert _fails(test_lists_numpy_and_arrow_columns_are_read_alike)
    with monkeypatch.context() as patch:
        patch.setattr(table, "EXACT", 2**70)
        assert _fails(lambda: [some_batches(seed) for seed in range(60)])
    with monkeypatch.context() as patch:
        lay = layout.Cells._lay

        def sparse(self, rows, numbers, spans):
            lay(self, rows, numbers, [np.ones_like(span) for span in spans])

        patch.setattr(layout.Cells, "_lay", sparse)
        traffic = (lambda rng: populations.traffic(rng, 4.0), populations.position, 5000)
        assert _fails(lambda: test_batches_of_large_populations_also_after_changes(*traffic))
