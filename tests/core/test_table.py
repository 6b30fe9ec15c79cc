"""Numbers by origin: a table says what a plain dictionary would say."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inorder.core import table as tables
from inorder.core.table import Table, ones

ORIGINS = st.one_of(
    st.integers(0, 40), st.integers(0, 300), st.sampled_from([700, 5000, 10**6, 2**40])
)
NUMBERS = st.one_of(st.integers(0, 3), st.sampled_from([255, 2**32 - 1, 2**32, 2**63 - 1]))


@settings(max_examples=300)
@given(
    st.one_of(st.none(), st.lists(st.integers(0, 2), max_size=80)),
    st.lists(st.tuples(ORIGINS, NUMBERS), max_size=150),
)
def test_a_table_agrees_with_a_dictionary(common, changes):
    shared = None if common is None else array("I", common)
    table = Table(shared)
    plain = {} if common is None else dict(enumerate(common))
    for origin, number in changes:
        table[origin] = number
        plain[origin] = number
        assert table[origin] == number
    for origin in [*plain, *range(350), 2**50]:
        assert table[origin] == plain.get(origin, 0)
    assert table.pairs() == tuple(sorted(item for item in plain.items() if item[1]))
    assert Table.of(table.pairs()).pairs() == table.pairs()
    assert common is None or shared == array("I", common)  # nobody changes what is shared


def test_tables_with_one_shared_array_do_not_see_each_others_changes():
    many = [Table(ones(100)) for _ in range(3)]
    for origin in range(100):
        many[0][origin] = 7
        many[1][origin] = 0
    assert many[0].pairs() == tuple((origin, 7) for origin in range(100))
    assert many[1].pairs() == ()
    assert many[2].pairs() == Table(ones(100)).pairs() == tuple((each, 1) for each in range(100))


def cells(table):
    return len(table._many)


def test_an_origin_that_somebody_made_up_costs_no_array():
    table = Table()
    for origin in range(0, 10**9, 10**6):
        table[origin] = 1
    assert cells(table) <= tables.CELLS_PER_ENTRY * 1000
    for origin in range(3000):
        table[origin] = 5
    table[2**50] = 1
    assert 1000 <= cells(table) < 100_000
    assert (table[2**50], table[3 * 10**6], table[2999], table[3000]) == (1, 1, 5, 0)


@pytest.mark.parametrize("step", [1, 3])
def test_many_origins_stand_in_an_array_of_four_bytes_each(step):
    table = Table()
    for origin in range(0, 4096, step):
        table[origin] = 1 + origin
    assert cells(table) >= 4096 - 4096 // 2
    assert table._many.itemsize == 4
    assert len(table._few) <= 4096 // step // 2


def test_what_is_shared_is_left_when_much_differs():
    table = Table(ones(4096))
    for origin in range(10):
        table[origin] = 9
    assert table._many is ones(4096)
    for origin in range(1000):
        table[origin] = 9
    assert table._many is not ones(4096)
    assert not table._few
