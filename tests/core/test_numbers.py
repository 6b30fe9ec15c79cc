"""Which numbers have come: runs that say what a plain set would say."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import inorder.core.numbers
from inorder.core.numbers import Numbers

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(1, 30)),
        st.tuples(st.just("hear"), st.integers(1, 30)),
        st.tuples(st.just("skip"), st.integers(1, 30)),
        st.tuples(st.just("cover"), st.integers(1, 30), st.integers(1, 30)),
        st.tuples(st.just("extend"), st.integers(-9, 0) | st.just(1), st.integers(1, 4)),
        st.tuples(st.just("leap"), st.integers(2, 4), st.integers(1, 3)),
    ),
    max_size=40,
)


@settings(max_examples=300)
@given(st.integers(0, 8), STEPS)
def test_runs_agree_with_a_plain_set(floor, steps):
    numbers = Numbers.after(floor)
    have, known = {*range(floor + 1)}, floor
    for name, first, *rest in steps:
        if name == "add":
            wanted = _wanted(first, numbers.floor, have)
            assert (numbers.look(first), numbers.add(first)) == (wanted, wanted)
            have.add(first)
            known = max(known, first)
        elif name == "hear":
            known = max(known, first)
            assert numbers.hear(first) == ({*range(known + 1)} - have != set())
        elif name == "skip":
            numbers.skip(first)
            have |= {*range(first + 1)}
            known = max(known, first)
        elif name == "cover":
            last = max(first, rest[0])
            numbers.cover(first, last)
            have |= {*range(first, last + 1)}
            known = max(known, last)
        elif name == "leap":
            runs = _runs_above(max(have), gap=first, count=rest[0])
            numbers.leap(*map(list, zip(*runs, strict=True)))
            have |= {number for low, high in runs for number in range(low, high + 1)}
            known = max(known, max(have))
        else:
            first += max(have)
            extended = numbers.extend(first, rest[0])
            assert extended == (first == max(have) + 1)
            have |= {*range(first, first + rest[0])} if extended else set()
            known = max(known, max(have))
        _same(numbers, have, known)


def test_whatever_order_few_numbers_come_in():
    for order in permutations((1, 2, 3, 5, 6, 8)):
        numbers, have = Numbers.after(0), {0}
        for number in order:
            assert numbers.add(number) == "new"
            have.add(number)
            _same(numbers, have, max(have))


def _wanted(number, floor, have):
    return "unknown" if number <= floor else "again" if number in have else "new"


def _runs_above(top, gap, count):
    """Runs of one number, two numbers, three numbers."""
    firsts = [top + gap]
    for length in range(1, count):
        firsts.append(firsts[-1] + length - 1 + gap)
    return [(first, first + place) for place, first in enumerate(firsts)]


def _same(numbers, have, known):
    assert (numbers.known, numbers.top) == (known, max(have))
    assert [number in numbers for number in range(90)] == [number in have for number in range(90)]
    missing = [number for number in range(known + 1) if number not in have]
    listed = [n for first, last in numbers.holes(0, known) for n in range(first, last + 1)]
    assert listed == missing
    assert numbers.have == (missing[0] - 1 if missing else known)
    assert numbers.missing(1) == ((missing[0], missing[0]) if missing else None)
    behind = [number for number in have if missing and number > missing[0]]
    assert numbers.behind == (max(behind) - min(behind) + 1 if behind else 0)
    assert {n for first, last in numbers.beyond() for n in range(first, last + 1)} == {*behind}
    ends = [0, *numbers.ends]
    assert all(first > end + 1 for first, end in zip(numbers.starts[1:], ends[1:], strict=False))
    assert all(first > numbers.floor for first in numbers.starts)


def test_a_hole_is_asked_for_in_parts():
    numbers = Numbers.after(0)
    numbers.add(9)
    assert numbers.missing(3) == (1, 3)
    assert numbers.missing(100) == (1, 8)


def test_holes_of_a_part_end_with_it():
    numbers = Numbers.after(0)
    for number in (3, 6, 7):
        numbers.add(number)
    assert list(numbers.holes(2, 8)) == [(2, 2), (4, 5), (8, 8)]
    assert list(numbers.holes(4, 4)) == [(4, 4)]
    assert list(numbers.holes(6, 7)) == []


def test_the_oldest_runs_are_forgotten_and_may_have_come_or_not(monkeypatch):
    monkeypatch.setattr(inorder.core.numbers, "NUMBER_RUNS_MAX", 10)
    numbers = Numbers.after(0)
    for number in range(2, 22, 2):
        numbers.add(number)
    assert (numbers.floor, len(numbers.starts)) == (0, 10)
    numbers.add(22)
    assert numbers.floor == 4
    assert [numbers.add(number) for number in (3, 4, 5, 6)] == [
        "unknown",
        "unknown",
        "new",
        "again",
    ]
    assert numbers.known == 22


@given(st.lists(st.integers(1, 40), max_size=60), st.integers(1, 12))
def test_memory_is_bounded_and_says_when_it_does_not_know(steps, most):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inorder.core.numbers, "NUMBER_RUNS_MAX", most)
        numbers, have = Numbers.after(0), set()
        for number in steps:
            floor = numbers.floor
            assert numbers.add(number) == _wanted(number, floor, have)
            have.add(number)
            assert len(numbers.starts) <= most
            assert floor == numbers.floor or len(numbers.starts) == most - most // 10
            above = range(numbers.floor + 1, 42)
            assert [each for each in above if each in numbers] == [n for n in above if n in have]
            listed = [n for first, last in numbers.holes(1, 41) for n in range(first, last + 1)]
            assert listed == [n for n in above if n not in have]


@given(st.lists(st.tuples(st.integers(2, 5), st.integers(1, 3)), max_size=60), st.integers(2, 25))
def test_numbers_that_rise_are_forgotten_alike_however_they_are_noted(drawn, most):
    runs, last = [], 0
    for gap, length in drawn:
        runs.append((last + gap, last + gap + length - 1))
        last = runs[-1][1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inorder.core.numbers, "NUMBER_RUNS_MAX", most)
        singly, by_run, at_once, in_parts = (Numbers.after(0) for _ in range(4))
        for first, last in runs:
            by_run.cover(first, last)
            assert {singly.add(number) for number in range(first, last + 1)} == {"new"}
        at_once.leap([first for first, _ in runs], [last for _, last in runs])
        for part in (runs[: len(runs) // 3], runs[len(runs) // 3 :]):
            in_parts.leap([first for first, _ in part], [last for _, last in part])
    assert singly == by_run == at_once == in_parts
    assert len(singly.starts) <= most


def test_a_flood_of_numbers_that_fall_is_bounded_too(monkeypatch):
    monkeypatch.setattr(inorder.core.numbers, "NUMBER_RUNS_MAX", 1000)
    numbers = Numbers.after(0)
    for number in range(6000, 0, -2):
        numbers.add(number)
    assert len(numbers.starts) == 900
    assert numbers.add(1) == "unknown"


@pytest.mark.parametrize("first", [6, 5, 3])
def test_a_run_that_touches_others_becomes_one_with_them(first):
    numbers = Numbers.after(0)
    numbers.cover(4, 5)
    numbers.cover(8, 9)
    numbers.cover(first, 7)
    assert (numbers.starts, numbers.ends) == ([min(first, 4)], [9])
