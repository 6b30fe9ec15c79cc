"""The index answers as the naive engine does, whatever happens to it (property A9)."""

from __future__ import annotations

import math
import random
import subprocess
import sys

import pytest
from hypothesis import given, settings

from inorder.content.engine import Naive, forms_of
from inorder.content.index import Index, block, columns, ends, grid, ladder
from inorder.content.predicate import Predicate
from inorder.content.show import show
from inorder.content.skeleton import Condition, Skeleton
from inorder.core.errors import Misuse
from tests.content import populations, strategies

HARD = [2**53, 2**53 + 1, 2**53 + 2, -(2**53) - 1, 2**63, 10**400, -(10**400)]


def drawn(rng):
    """A predicate with values, None when the draw is not one that can be subscribed to."""
    typed = rng.random() < 0.3
    tree = (strategies.draw_typed_tree if typed else strategies.draw_tree)(rng)
    try:
        predicate = Predicate.parse(show(tree), strategies.SCHEMA if typed else None)
        values = strategies.used(
            strategies.draw_values(rng), [use.name for use in predicate.parameters]
        )
        return predicate, values, forms_of(predicate, values)
    except Misuse:
        return None


class Pair:
    """An index and a naive engine that are told the same."""

    def __init__(self):
        self.index, self.naive = Index(), Naive()

    def tell(self, name, *arguments):
        getattr(self.index, name)(*arguments)
        getattr(self.naive, name)(*arguments)
        assert len(self.index) == len(self.naive)

    def check(self, events):
        for event in events:
            assert self.index.match(event) == self.naive.match(event), event


def wander(seed, steps=25):
    """A random life of a few subscriptions, compared after every step."""
    rng = random.Random(seed)
    pair, known, edges = Pair(), {}, list(HARD)
    for _ in range(steps):
        act = rng.random()
        if act < 0.5 or not known:
            if (found := drawn(rng)) is None:
                continue
            predicate, values, forms = found
            key = rng.randint(-20, 20)
            pair.tell("replace" if key in known else "add", key, forms)
            known[key] = predicate
            edges += strategies.edges_of(predicate.tree, values)
        elif act < 0.8:
            key = rng.choice(sorted(known))
            values = strategies.draw_values(rng)
            names = [use.name for use in known[key].parameters]
            try:
                vectors = known[key].values_of(strategies.used(values, names))
            except Misuse:
                continue
            pair.tell("set", key, vectors)
            edges += [beside for value in values.values() for beside in _beside(value)]
        else:
            key = rng.choice(sorted(known))
            del known[key]
            pair.tell("remove", key)
        names = [*strategies.NAMES, *strategies.SCHEMA]
        pair.check(strategies.draw_event(rng, edges, names) for _ in range(8))


def _beside(value):
    values = value if isinstance(value, list) else [value]
    return [beside for one in values for beside in strategies.neighbours(one)]


@settings(max_examples=150, deadline=None)
@given(strategies.randoms)
def test_index_and_naive_agree_after_any_calls(rng):
    wander(rng.randrange(2**32))


def crowd(draw, event, count, seed=1):
    """A large population that is added, moved about, thinned and matched."""
    rng = random.Random(seed)
    pair = Pair()
    for key in range(count):
        pair.tell("add", key, (draw(rng),))
    pair.check(event(rng) for _ in range(12))
    for key in rng.sample(range(count), count // 3):
        skeleton, vector = draw(rng)
        if rng.random() < 0.5:
            pair.tell("replace", key, ((skeleton, vector),))
        else:
            _, moved = next(f for f in iter(lambda: draw(rng), 0) if f[0] == skeleton_of(pair, key))
            pair.tell("set", key, (moved,))
    pair.check(event(rng) for _ in range(12))
    for key in rng.sample(range(count), count // 2):
        pair.tell("remove", key)
    pair.check(event(rng) for _ in range(12))
    return pair.index


def windows(rng):
    """Larger than those of the bench: most events are to match several."""
    return populations.traffic(rng, 4.0)


def skeleton_of(pair, key):
    return pair.naive._forms[key][0][0]


def kinds(index):
    """What sorts of bucket there are."""
    found = set()
    for one in index._blocks.values():
        for bucket in one.buckets.values():
            gridded = isinstance(bucket, columns.Columns) and bucket.grid is not None
            found.add("Grid" if gridded else type(bucket).__name__)
        found |= {"beside"} if one.beside else set()
    return found


@pytest.mark.parametrize(
    ("draw", "event", "count", "expected"),
    [
        (populations.trading, populations.quote, 2500, {"Keys", "Ladder"}),
        (windows, populations.position, 2500, {"Grid"}),
        (populations.sided, populations.position, 2500, {"Keys", "Ladder", "Columns"}),
        (populations.single, populations.quote, 5000, {"Ladder"}),
        (populations.span, populations.quote, 2500, {"Grid"}),
        (
            populations.mixed,
            populations.anything,
            9000,
            {"Keys", "Ladder", "Columns", "Grid", "beside"},
        ),
    ],
)
def test_large_populations_of_every_sort(draw, event, count, expected):
    assert kinds(crowd(draw, event, count)) == expected


def bucket_of(index):
    (only,) = index._blocks.values()
    (bucket,) = only.buckets.values()
    return bucket


def test_a_grid_comes_is_rebuilt_and_goes_as_windows_change():
    rng = random.Random(2)
    pair = Pair()
    for key in range(999):
        pair.tell("add", key, (populations.traffic(rng),))
    assert bucket_of(pair.index).grid is None
    pair.tell("add", 999, (populations.traffic(rng),))
    first = bucket_of(pair.index).grid
    assert first is not None
    for key in range(1000):
        pair.tell("set", key, (populations.traffic(rng, 0.1)[1],))
    second = bucket_of(pair.index).grid
    assert second is not first
    assert second.sizes[0] < first.sizes[0] / 4
    pair.check(populations.position(rng) for _ in range(50))
    for key in range(1000):
        pair.tell("set", key, ((-math.inf, rng.uniform(0, 9), 0, math.inf),))
    assert bucket_of(pair.index).grid is None
    pair.check(populations.position(rng) for _ in range(50))


def test_windows_that_wander_leave_no_empty_cells():
    rng = random.Random(3)
    index = Index()
    for key in range(1000):
        index.add(key, (populations.traffic(rng),))
    for step in range(1, 6):
        for key in range(1000):
            _, (left, right, bottom, top) = populations.traffic(rng)
            shift = 1000.0 * step
            index.set(key, ((left + shift, right + shift, bottom, top),))
    cells = bucket_of(index).grid._cells
    assert all(map(len, cells.values()))
    assert all(number[0] > 500 for number in cells)
    for key in range(1000):
        index.remove(key)
    assert index._blocks == {}
    assert index._collectors == []


def test_windows_without_end_or_of_all_sizes_stand_beside_the_grid():
    rng = random.Random(4)
    pair = Pair()
    for key in range(2000):
        pair.tell("add", key, (populations.traffic(rng),))
    odd = [(-math.inf, math.inf, 0, 50), (0, 100, 0, 100), (5, 4, 5, 6), (1e300, 1e301, 0, 1)]
    odd += [(7, 7, 7, 7), (0, 2**53, 0, 2**53), (2**53 - 1, 2**53, 0, 100)]
    for key, vector in enumerate(odd):
        pair.tell("set", key, (vector,))
    assert len(bucket_of(pair.index).grid.wide) >= 4
    points = [-math.inf, math.inf, 0, 7, 50.0, 100, 1e300, 2**53, 2**53 + 1, 10**400, 3.3, math.nan]
    pair.check({"lat": x, "lon": y} for x in points for y in points)


def test_a_long_ladder_splits_and_joins_and_equal_ends_are_told_apart():
    rng = random.Random(5)
    pair = Pair()
    skeleton = populations.SINGLE.skeleton[0]
    for key in range(6000):
        pair.tell("add", key, ((skeleton, (rng.randrange(4),)),))
    assert len(bucket_of(pair.index).ends) > 2
    pair.check({"price": point} for point in (-1, 0, 0.5, 1, 2.5, 3))
    for key in rng.sample(range(6000), 3000):
        pair.tell("set", key, ((rng.randrange(4),),))
    pair.check({"price": point} for point in (-1, 0, 0.5, 1, 2.5, 3))
    for key in rng.sample(range(6000), 5999):
        pair.tell("remove", key)
    assert len(bucket_of(pair.index).ends) == 1
    pair.check({"price": point} for point in (-1, 0, 0.5, 1, 2.5, 3))


def one(text, **values):
    return forms_of(Predicate.parse(text), values)


def test_an_equality_that_moves_and_a_set_that_changes():
    pair = Pair()
    events = [{"a": a, "x": x} for a in (1, 1.0, True, "1", 2, None, [1]) for x in (0, 5, "5")]
    pair.tell("add", 1, one("a = :a AND x <= :x", a=1, x=5))
    pair.tell("add", 2, one("a IN :a AND x <= :x", a=[1, 2], x=5))
    pair.tell("add", 3, one("a IN :a AND b IN :b", a=[1, 2], b=["u"]))
    pair.check(events)
    pair.tell("set", 1, ((2, 0),))
    pair.tell("set", 2, ((4, (1,)),))
    pair.check(events)
    pair.tell("set", 1, ((True, 0),))  # equal to 1 in Python, another kind to us
    pair.tell("set", 2, ((4, (True, "1")),))
    pair.check(events)
    pair.tell("set", 1, ((math.nan, 0),))
    pair.tell("set", 2, ((4, ()),))
    pair.check(events)
    pair.tell("set", 1, ((1, 3.5),))
    pair.check(events)


def test_forms_of_one_subscription_may_overlap():
    pair = Pair()
    pair.tell("add", 1, one("x <= :n OR x <= :m OR x = 3 OR x IN (3, 4)", n=3, m=3))
    pair.tell("add", 2, one("x <= 3"))
    events = [{"x": x} for x in (2, 3, 4, 5)]
    pair.check(events)
    assert pair.index.match({"x": 3}) == [1, 2]
    skeletons = [form for form, _ in pair.naive._forms[1]]
    vectors = [vector for _, vector in pair.naive._forms[1]]
    vectors[0] = (9,)
    pair.index.move(1, 0, (9,))
    pair.naive.set(1, vectors)
    assert len(skeletons) == 4
    pair.check(events)
    pair.tell("remove", 1)
    pair.check(events)


def test_sets_too_large_to_hash_stand_apart():
    pair = Pair()
    many = tuple(range(101))
    pair.tell("add", 1, one("a IN :a AND b IN :b", a=many, b=many))
    pair.tell("add", 2, one("a IN :a AND b IN :b", a=many, b=many[:3]))
    (only,) = pair.index._blocks.values()
    assert len(only.apart) == 1
    events = [{"a": a, "b": b} for a in (0, 100, 101) for b in (0, 100, 101)]
    pair.check(events)
    pair.tell("set", 1, ((many[:2], many[:2]),))
    assert len(only.apart) == 0
    pair.check(events)


def test_hard_numbers_on_both_sides():
    pair = Pair()
    bounds = [*HARD[:5], 2.0**53, 0, -0.0, 0.5, math.inf, -math.inf, 1e308, "a", True, math.nan]
    key = 0
    for op in ("<", "<=", ">", ">=", "=", "in"):
        role = {"=": "equality", "in": "sets"}.get(op, "ranges")
        for whole in ((), ("x",)):
            skeleton = Skeleton(**{role: (Condition("x", op, (0,)),)}, whole=whole)
            for bound in bounds:
                pair.tell("add", key, ((skeleton, (bound,)),))
                key += 1
    values = [*HARD, 2.0**53, 0, -0.0, 0.5, 1, 1e308, True, False, "a", "", math.nan, None, [], b""]
    values += [math.inf, -math.inf, math.nextafter(0.5, 1), 5e-324, -5e-324, 2.0**53 + 2, "\ud800"]
    pair.check({"x": value} for value in values)
    pair.check([{}])


def test_refusals_change_nothing():
    index = Index()
    assert index.match({"x": 1}) == []
    forms = one("x <= :n OR y <= :n", n=5)
    index.add(1, forms)
    for call in (
        lambda: index.add(1, forms),
        lambda: index.set(2, ((1,),)),
        lambda: index.replace(2, forms),
        lambda: index.remove(2),
        lambda: index.move(1, 2, (1,)),
        lambda: index.add(2**63, forms),
    ):
        with pytest.raises(Misuse):
            call()
    with pytest.raises(ValueError, match="zip"):
        index.set(1, ((9,),))
    with pytest.raises(IndexError):
        index.set(1, ((9,), ()))
    assert len(index) == 1
    assert index.match({"x": 9}) == []
    assert index.match({"x": 5}) == [1]
    index.replace(1, ())
    assert index.match({"x": 5}) == []
    assert len(index) == 1


def test_it_works_without_numpy():
    code = (
        "import sys; sys.modules['numpy'] = None\n"
        "import random\n"
        "from tests.content import populations\n"
        "from inorder.content.index import Index\n"
        "rng, index = random.Random(1), Index()\n"
        "for key in range(1500): index.add(key, (populations.traffic(rng, 20),))\n"
        "print(sum(len(index.match(populations.position(rng))) for _ in range(20)) > 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


# Negative controls: each defect must be found by one of the tests above.


def _fails(job):
    try:
        job()
    except (AssertionError, KeyError, IndexError, ValueError):
        return True
    return False


def _open_as_closed(patch):
    closed = ends._closed
    patch.setitem(ends._ENDS, "<", (closed, ends._whole_below))


def _truth_as_number(patch):
    def hashed_without_kinds(value, whole=False):
        return int(value) if isinstance(value, bool) else ends.hashed(value, whole)

    patch.setattr("inorder.content.index.plan.hashed", hashed_without_kinds)


def _rounded(patch):
    patch.setattr(block, "EXACT", 2**70)


def _trusting(patch):
    """Numbers between two floats are believed to be where the nearest float is."""
    patch.setattr(block.Block, "_collect_around", lambda *_: False)


def _sets_forgotten(patch):
    patch.setattr(block.Block, "_same_spot", lambda *_: True)


def _unsorted(patch):
    patch.setattr(ladder, "bisect_right", ladder.bisect_left)


@pytest.mark.parametrize(
    ("defect", "job"),
    [
        (_open_as_closed, test_hard_numbers_on_both_sides),
        (_truth_as_number, test_an_equality_that_moves_and_a_set_that_changes),
        (_rounded, test_hard_numbers_on_both_sides),
        (_trusting, test_hard_numbers_on_both_sides),
        (_sets_forgotten, test_an_equality_that_moves_and_a_set_that_changes),
        (_unsorted, test_a_long_ladder_splits_and_joins_and_equal_ends_are_told_apart),
    ],
)
def test_planted_defects_are_found(defect, job, monkeypatch):
    defect(monkeypatch)
    assert _fails(job)


def test_a_grid_that_misses_cells_is_found(monkeypatch):
    monkeypatch.setattr(grid, "_between", lambda first, last: [first])
    assert _fails(lambda: crowd(windows, populations.position, 2500))


def test_a_hole_that_is_not_filled_is_found(monkeypatch):
    from inorder.content.index.sheet import Sheet

    def drop(self, row):
        self._places.pop(row)

    monkeypatch.setattr(Sheet, "drop", drop)
    assert _fails(lambda: crowd(windows, populations.position, 1500))


def test_duplicates_that_stay_are_found(monkeypatch):
    put = Index._put

    def forgetful(self, *arguments):
        put(self, *arguments)
        self._several.clear()

    monkeypatch.setattr(Index, "_put", forgetful)
    assert _fails(test_forms_of_one_subscription_may_overlap)
